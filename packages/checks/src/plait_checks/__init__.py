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

from .errors import (
    CheckError,
    DivisionByZeroError,
    Error,
    ErrorCategory,
    FailedCheckError,
    NaNError,
    OutOfBoundsError,
    Place,
)
from .functions import (
    all_checks,
    automatic_checks,
    check,
    check_error,
    checkify,
    debug_check,
    div_checks,
    float_checks,
    index_checks,
    init_error,
    nan_checks,
    user_checks,
)

__all__ = [
    "CheckError",
    "DivisionByZeroError",
    "Error",
    "ErrorCategory",
    "FailedCheckError",
    "NaNError",
    "OutOfBoundsError",
    "Place",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]

_hide(_os.path.dirname(__file__))
