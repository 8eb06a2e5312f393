"""Errors as values: conditions that compiled functions check, and errors found automatically.

    def f(x):
        check(x > 0, "x must be positive, and is {}", x)
        return plait.numpy.log(x)

    error, y = plait.jit(checkify(f))(-1.0)
    error.throw()  # FailedCheckError, with the line of the check

Invariant: no name is defined here.
"""

import os as _os

from plait.ext.errors import hide as _hide
from plait.ext.surface import advise as _advise

from . import errors as _errors
from . import functions as _functions
from .errors import *
from .functions import *

__all__: list[str] = []
__all__ += _errors.__all__
__all__ += _functions.__all__

_hide(_os.path.dirname(__file__))

_advise("plait.checks", globals())
