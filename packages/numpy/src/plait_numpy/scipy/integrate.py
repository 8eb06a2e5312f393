"""Integrals of sampled functions, with the names of scipy.integrate.

Invariant: functions that numpy has too are numpy's.
"""

from ..numpy.differences import trapezoid
from ..refusals import explain

__all__ = ["trapezoid"]

explain(globals())
