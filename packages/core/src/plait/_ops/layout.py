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
from .._core.divided import lie_as
from .._core.interpreter import Value
from .._plugins.metadata import resolve
from ..tree import flatten
from .collective import varied


def placed(out: Any, sharding: Any) -> Any:
    """`out`, a tree, which the compiler shall lay out as `sharding` says if one is given."""
    return out if sharding is None else resolve("with_sharding_constraint")(out, sharding)


def free(x: Any, sharding: Any) -> Any:
    """`x`, an operand of what shall lie as `sharding` says: if one is given, nothing has to follow
    from how the operand is divided over explicit axes, of which its type then says nothing."""
    if sharding is None or not isinstance(x, Value) or x.aval.sharding is None:
        return x
    return lie_as(x, None)


def all_free(tree: Any, sharding: Any) -> Any:
    """The same of the leaves of a tree."""
    if sharding is None:
        return tree
    leaves, treedef = flatten(tree)
    return treedef.unflatten([free(x, sharding) for x in leaves])


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
            return placed(f(*all_free(args, out_sharding), **options), out_sharding)
        except BaseException as e:
            leaving(e)
            raise

    return offering(function, f, OUT_SHARDING)


def beside(out: Any, like: Any) -> Any:
    """Return `out` where `like` is, if it has its shape: where the array is, or as its type says;
    and varying along the axes of a mesh that `like` varies along, whatever its shape."""
    if not isinstance(like, Value):
        return out
    if like.aval.vma:
        out = varied(out, like.aval.vma)
    if like.aval.shape != out.aval.shape:
        return out
    if like.__class__ is not Array:
        return out if like.aval.sharding is None else lie_as(out, like.aval.sharding)
    there: Any = like
    if there.key.placement is not None and out.__class__ is Array:
        return resolve("device_put")(out, there.sharding)
    return out
