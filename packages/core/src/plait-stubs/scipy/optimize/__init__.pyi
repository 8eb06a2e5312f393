# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_numpy.scipy.optimize import OptimizeResults as OptimizeResults
from plait_numpy.scipy.optimize import minimize as minimize
