"""Integrals of sampled functions, with the names of scipy.integrate.

Invariant: functions that numpy has too are numpy's.
"""

from plait.ext.surface import advise as _advise

from ..numpy.differences import trapezoid
from ..refusals import explain

__all__ = ["trapezoid"]

explain(globals())

_advise("plait.scipy.integrate", globals())
