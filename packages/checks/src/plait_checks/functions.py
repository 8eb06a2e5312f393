"""The public functions: conditions that must hold, and functions that return errors as values.

Invariant: a checked function returns its usual results, and an Error.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from plait.errors import ArgumentError, ConcretizationError
from plait.ext import as_value, evaluate, materialise_at_ground
from plait.ext.errors import border, here
from plait.ext.ir import Program, freeze_params
from plait.ext.ops.checks import CHECK, check_p
from plait.ext.ops.control_flow import call
from plait.ext.trace import Value, trace, wraps
from plait.ext.types import BOOL, OPAQUE
from plait.tree import flatten

from .collecting import LeftOut, checked
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
from .findings import NOTHING, Rethrown

__all__ = [
    "all_checks", "automatic_checks", "check", "check_error", "checkify", "debug_check",
    "div_checks", "float_checks", "index_checks", "init_error", "nan_checks", "user_checks",
]  # fmt: skip

user_checks: ErrorCategory = frozenset([FailedCheckError])
"""Conditions given to `check`."""
nan_checks: ErrorCategory = frozenset([NaNError])
"""Operations that return a nan."""
index_checks: ErrorCategory = frozenset([OutOfBoundsError])
"""Indices outside of arrays, read or written."""
div_checks: ErrorCategory = frozenset([DivisionByZeroError])
"""Divisors that are zero."""
float_checks: ErrorCategory = nan_checks | div_checks
automatic_checks: ErrorCategory = float_checks | index_checks
all_checks: ErrorCategory = automatic_checks | user_checks

init_error = Error(np.int32(-1), (), ())
"""The Error without an error."""


@border
def check(
    pred: object, msg: str, *fmt_args: object, debug: bool = False, **fmt_kwargs: object
) -> None:
    """Require that `pred` is True; if not, the error is `msg.format(*fmt_args, **fmt_kwargs)`.

    Outside of transformations, and under `vmap` and `grad` of known values, the error is raised
    here.  A compiled function cannot raise: `checkify` returns the error beside the results.

    Args:
      pred: a bool without axes.
      msg: a format string.
      fmt_args, fmt_kwargs: trees of arrays.
      debug: whether to leave it out of compiled functions that `checkify` does not check.

    Raises:
      FailedCheckError: `pred` is False.
      ArgumentError: `pred` is not a bool without axes; `msg` is not a string or does not fit its
        arguments; or the check is compiled without `checkify`.

    >>> import plait
    >>> from plait.checks import check, checkify
    >>> check(1 < 2, "the world is upside down")
    >>> def inverse(x):
    ...     check(x != 0, "no inverse of {x}", x=x)
    ...     return 1 / x
    >>> error, _ = plait.jit(checkify(inverse))(0.0)
    >>> error.get()
    'no inverse of 0.0'
    """
    ok = as_value(pred)
    if ok.aval.ndim or ok.aval.dtype != BOOL:
        raise ArgumentError(
            f"check takes a bool without axes, not {ok.aval!r}",
            fix="write check(cond.all(), ...)",
        )
    if not isinstance(msg, str):
        raise ArgumentError(f"the message of a check is {msg!r}", fix="give a format string")
    leaves, tree = flatten((fmt_args, fmt_kwargs))
    values = [as_value(x) for x in leaves]
    if any(v.aval.category == OPAQUE for v in values):
        raise ArgumentError(
            "a key is not a number that a message can show", fix="give its key_data"
        )
    _formatted(msg, tree, [np.zeros(v.aval.shape, v.aval.dtype) for v in values])

    def text(payload: Sequence[Any]) -> str:
        return _formatted(msg, tree, payload)

    place = Place(FailedCheckError, text, len(values), here())
    check_p.bind(ok, *values, said=place, optional=bool(debug))


def _formatted(msg: str, tree: Any, values: Sequence[Any]) -> str:
    """Return the message with these values.  Raises ArgumentError if it has no place for them."""
    args, kwargs = tree.unflatten([v[()] for v in values])
    try:
        return msg.format(*args, **kwargs)
    except (IndexError, KeyError, ValueError, TypeError, AttributeError) as e:
        raise ArgumentError(
            f"check: the message {msg!r} does not fit what it is given: {e}",
            fix="write {} for each argument and {name} for each keyword",
        ) from None


@border
def debug_check(pred: object, msg: str, *fmt_args: object, **fmt_kwargs: object) -> None:
    """Do `check(..., debug=True)`: compiled functions leave it out unless `checkify` checks them.

    >>> import plait
    >>> from plait.checks import debug_check
    >>> def f(x):
    ...     debug_check(x > 0, "x is {}", x)
    ...     return x
    >>> float(plait.jit(f)(-1.0))
    -1.0
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


@border
def checkify(
    f: Callable[..., Any],
    errors: Iterable[type[CheckError]] = user_checks,
    *,
    others: Literal["keep", "drop"] = "keep",
) -> Callable[..., tuple[Error, Any]]:
    """Return a function that returns `(error, f(*args, **kwargs))`.

    The error is the first that occurs when the function runs; nothing is raised, and the function
    runs to its end.  It can be compiled, mapped (`error` then holds one for each example) and
    differentiated, and `f` may be made by any transformation.

    Args:
      f: takes and returns trees of arrays; it is staged, as by `jit`.
      errors: kinds of errors to look for: `user_checks`, `nan_checks`, `div_checks`,
        `index_checks`, and unions of these by `|`.
      others: what becomes of a `check` in `f` whose kind is not in `errors`: "keep" leaves it to a
        `checkify` further out, and "drop" leaves it out.

    Raises:
      ArgumentError: `f` is not a function, or a kind or `others` is unknown.
      MissingRule: a check is inside of a plugin's operation without a rule in the table `checks`.

    >>> import plait
    >>> import plait.numpy as pnp
    >>> from plait.checks import automatic_checks, checkify
    >>> f = plait.jit(checkify(lambda x, i: pnp.log(x)[i], errors=automatic_checks))
    >>> error, y = f(pnp.array([1.0, -1.0]), 0)
    >>> print(error.get())
    core.log gave a nan
    >>> error, y = f(pnp.array([1.0, 2.0]), 5)
    >>> print(error.get().partition(":")[2])
     index 5 is out of bounds for axis 0 of an array of shape (2,)
    """
    kinds = frozenset(errors)
    if others not in ("keep", "drop"):
        raise ArgumentError(
            f"checkify: `others` is {others!r}", fix='write others="keep" or others="drop"'
        )
    if not callable(f):
        raise ArgumentError(f"checkify: {f!r} is not a function", fix="pass what can be called")
    if not kinds <= all_checks:
        strange = sorted(map(repr, kinds - all_checks))
        raise ArgumentError(
            f"checkify: there are no errors of the kind {', '.join(strange)}",
            fix="give unions of user_checks, nan_checks, div_checks and index_checks",
        )
    traced_with = _Traces(f)
    sought = kinds | {LeftOut} if others == "drop" else kinds

    @border
    @wraps(f)
    def checked_function(*args: object, **kwargs: object) -> tuple[Error, Any]:
        traced = traced_with(args, kwargs)
        made = checked(traced.program, sought)
        values = [*traced.captured, *traced.values]
        # A program with uncollected checks has an effect, and cannot be compiled.
        run = evaluate if CHECK in made.program.effects else _called
        outs = [materialise_at_ground(o) for o in run(made.program, values)]
        found = outs[: made.width] or [materialise_at_ground(NOTHING)]
        error = Error(found[0], found[1:], made.places)
        return error, traced.tree.unflatten(outs[made.width :])

    return checked_function


_FIXED = (bool, str, bytes)
_NUMBERS = (*_FIXED, int, float, complex)


class _Traces:
    """The traces of a function, one for each choice of the Python values that it branches on.

    Of an argument that `jit` holds static, the function gets the value itself."""

    def __init__(self, f: Callable[..., Any]):
        self.f = f
        self.fixed: tuple[type, ...] = _FIXED
        self.tables: dict[Any, dict[tuple[Any, ...], Any]] = {}

    def __call__(self, args: Any, kwargs: dict[str, Any]) -> Any:
        try:
            return self._traced(args, kwargs)
        except ConcretizationError:
            if self.fixed is _NUMBERS:
                raise
        # Numbers are operands until the function needs one of them: a size, a number of turns.
        self.fixed = _NUMBERS
        return self._traced(args, kwargs)

    def _traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        leaves, tree = flatten((args, kwargs))
        kept = {i: x for i, x in enumerate(leaves) if x.__class__ in self.fixed}
        if not kept:
            return trace(self.f, args, kwargs, "checkify", self.tables.setdefault((), {}))

        def rest(*moving: Any) -> Any:
            free = iter(moving)
            whole = [kept[i] if i in kept else next(free) for i in range(len(leaves))]
            args, kwargs = tree.unflatten(whole)
            return self.f(*args, **kwargs)

        key = tree, freeze_params({str(i): x for i, x in kept.items()})
        moving = [x for i, x in enumerate(leaves) if i not in kept]
        return trace(wraps(self.f)(rest), moving, {}, "checkify", self.tables.setdefault(key, {}))


def _called(program: Program, values: list[Value]) -> list[Any]:
    return call.bind(*values, program=program)


@border
def check_error(error: Error) -> None:
    """Raise the error, if there is one, or let a `checkify` around this return it.

    Raises the error; ArgumentError for any other object.

    >>> from plait.checks import check, check_error, checkify
    >>> def f(x):
    ...     check(x > 0, "x is {}", x)
    ...     return x
    >>> error, _ = checkify(f)(-1.0)
    >>> def g():
    ...     check_error(error)
    >>> checkify(g)()[0].get()
    'x is -1.0'
    """
    if not isinstance(error, Error):
        raise ArgumentError(
            f"check_error takes an Error, not {error!r}", fix="give what checkify returned"
        )
    if error.places:
        found = [as_value(x) for x in (error.code, *error.payload)]
        said = Rethrown(error.places)
        check_p.bind(found[0] < 0, *found, said=said, optional=False)
