# Written by docs/stubs.py from the tables of core and the entry points of the plugins: do not edit.

from plait_numpy.scipy.integrate import trapezoid as trapezoid
