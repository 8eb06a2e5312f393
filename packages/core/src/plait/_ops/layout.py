"""Results that shall lie on devices in a certain way.

Invariant: what a placement is, and how a value is brought there, is the affair of the package that
offers placements.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from .._base.tracebacks import leaving
from .._core.array import Array
from .._plugins.metadata import resolve


def placed(out: Any, sharding: Any) -> Any:
    """`out`, a tree, which the compiler shall lay out as `sharding` says if one is given."""
    return out if sharding is None else resolve("with_sharding_constraint")(out, sharding)


def with_parameter(f: Callable[..., Any], name: str) -> inspect.Signature:
    """Return the signature of `f` with one more keyword, which is None by default."""
    signature = inspect.signature(f)
    extra = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
    own = list(signature.parameters.values())
    at = len(own) - (bool(own) and own[-1].kind is inspect.Parameter.VAR_KEYWORD)
    return signature.replace(parameters=[*own[:at], extra, *own[at:]])


OUT_SHARDING = {
    "out_sharding": "`out_sharding` says how the result shall lie on devices; if it is None, that "
    "is left to the\ncompiler."
}
"""The argument of functions whose results can be laid out, and its sentence."""


def offering(
    function: Callable[..., Any], f: Callable[..., Any], arguments: Mapping[str, str]
) -> Callable[..., Any]:
    """Give `function` the signature and documentation of `f` with more arguments, given by name
    with a sentence for each; return it."""
    wrapped = f
    for name in arguments:
        function.__signature__ = with_parameter(wrapped, name)  # type: ignore[attr-defined]
        wrapped = function
    said = " ".join(arguments.values())
    function.__doc__ = f"{inspect.cleandoc(f.__doc__ or '')}\n\n{said}"
    return function


def laid_out(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: a function with one more argument, `out_sharding`, for its results."""

    @functools.wraps(f)
    def function(*args: Any, out_sharding: Any = None, **options: Any) -> Any:
        try:
            return placed(f(*args, **options), out_sharding)
        except BaseException as e:
            leaving(e)
            raise

    return offering(function, f, OUT_SHARDING)


def beside(out: Any, like: Any) -> Any:
    """`out` where the array `like` is, if it has its shape and nothing is traced."""
    there = like.__class__ is Array and like.key.placement is not None and out.__class__ is Array
    if there and like.aval.shape == out.aval.shape:
        return resolve("device_put")(out, like.sharding)
    return out
