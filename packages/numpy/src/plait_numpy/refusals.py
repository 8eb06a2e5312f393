"""Conversion of exceptions of Python and numpy about arguments into errors of Plait.

As in numpy, functions here rely on Python to refuse values that are not integers, sequences or
arrays of numbers.  At the package's border such an exception gets the user's line and the call's
signature.

Invariant: exceptions of the user's own functions pass unchanged; the error raised is also an
instance of the original exception's class.
"""

import functools
import inspect
import weakref
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from plait.errors import OutOfBounds, SubscriptError, TypeRule
from plait.ext import PlaitError
from plait.ext.surface import (
    OUT_SHARDING,
    all_free,
    hidden,
    leaving,
    offering,
    overridden,
    placed,
    refused_call,
)
from plait.ext.types import ml_dtypes

F = TypeVar("F", bound=Callable[..., Any])
_SAID = (TypeError, ValueError, IndexError, OverflowError, AttributeError)
_LIBRARIES = (*np.__path__, *ml_dtypes.__path__, inspect.__file__)


def _of_user(error: BaseException) -> bool:
    """Return whether a function of the user was running."""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not hidden(file) and not file.startswith(_LIBRARIES):
            return True
        trace = trace.tb_next
    return False


def _told(f: Callable, error: Exception) -> PlaitError:
    kinds = {OverflowError: OutOfBounds, IndexError: SubscriptError}
    kind = next((k for c, k in kinds.items() if isinstance(error, c)), TypeRule)
    return refused_call(f, error, kind)


def explained(f: F) -> F:
    """Rewrite exceptions of Python and numpy about arguments in three parts (a decorator)."""

    lies = f.__name__ in _LAID_OUT

    @functools.wraps(f)
    def function(*args: object, **options: object) -> Any:
        try:
            try:
                if lies and "out_sharding" in options:
                    sharding = options.pop("out_sharding")
                    return placed(f(*all_free(args, sharding), **options), sharding)
                return f(*args, **options)
            except PlaitError as error:
                out = overridden(error, this(), args, options)
                if out is NotImplemented:
                    raise
                return out
            except _SAID as error:
                if _of_user(error):
                    raise
                told = _told(f, error)
            # Raised outside of the handler, the error does not carry the original as its context.
            raise told
        except BaseException as error:
            leaving(error)
            raise

    this: Callable[[], Any] = weakref.ref(
        function
    )  # no cycle, as in `plait._base.tracebacks.border`
    return cast(F, offering(function, f, OUT_SHARDING) if lies else function)


_LAID_OUT = frozenset(
    ("bincount", "broadcast_to", "dot", "einsum", "matmul", "ravel", "repeat", "reshape")
) | {"tensordot"}
"""Functions that have `out_sharding`, besides those that make arrays."""
_THIN = ("plait._api.surfaces", "plait_numpy.numpy.masking")
"""Modules of functions of one primitive, which refuse by themselves operands that are not
arrays."""


def explain(namespace: dict[str, Any]) -> None:
    """Decorate the public functions of a module (its `globals()`); aliases stay one function, and
    functions that another module has decorated stay as they are."""
    made: dict[Callable, Callable] = {}
    for name in namespace["__all__"]:
        f = namespace[name]
        own = inspect.isfunction(f) and f.__module__.startswith("plait")
        if own and f.__module__ not in _THIN and f.__code__.co_filename != __file__:
            namespace[name] = made[f] = made.get(f) or explained(f)
            made[f].__module__ = namespace["__name__"]
