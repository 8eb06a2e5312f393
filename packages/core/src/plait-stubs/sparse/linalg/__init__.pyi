# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_sparse.linalg import spsolve as spsolve
