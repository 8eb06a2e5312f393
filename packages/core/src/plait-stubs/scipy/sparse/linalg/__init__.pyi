# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_numpy.scipy.sparse.linalg import bicgstab as bicgstab
from plait_numpy.scipy.sparse.linalg import cg as cg
from plait_numpy.scipy.sparse.linalg import gmres as gmres
