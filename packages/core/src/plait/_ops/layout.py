"""Results laid out on devices as a sharding says.

Invariant: the package that offers placements defines them and moves values to them.
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
from .._types.avals import Aval
from ..tree import flatten
from ..typing import Array as AnyArray
from .collective import varied


def placed(out: Any, sharding: object) -> Any:
    """Constrain `out`, a tree, to `sharding` if one is given."""
    return out if sharding is None else resolve("with_sharding_constraint")(out, sharding)


def free(x: object, sharding: object) -> Any:
    """Release an operand of a result whose `sharding` is given.

    The division of the operand over explicit axes then has no effect on the result, and is removed
    from its type.
    """
    if sharding is None or not isinstance(x, Value) or x.aval.division is None:
        return x
    return lie_as(x, None)


def all_free(tree: object, sharding: object) -> Any:
    """Release the leaves of a tree."""
    if sharding is None:
        return tree
    leaves, treedef = flatten(tree)
    return treedef.unflatten([free(x, sharding) for x in leaves])


def with_parameter(f: Callable[..., Any], name: str) -> inspect.Signature:
    """Return the signature of `f` with one more keyword, which is None by default."""
    signature = inspect.signature(f)
    kind = inspect.Parameter.KEYWORD_ONLY
    extra = inspect.Parameter(name, kind, default=None, annotation=Any)
    own = list(signature.parameters.values())
    at = len(own) - (bool(own) and own[-1].kind is inspect.Parameter.VAR_KEYWORD)
    return signature.replace(parameters=[*own[:at], extra, *own[at:]])


OUT_SHARDING = {
    "out_sharding": "`out_sharding` says how the result lies on devices; if it is None, that "
    "is left to the\ncompiler."
}
"""The argument of functions whose results can be laid out, and its documentation."""


def offering(
    function: Callable[..., Any], f: Callable[..., Any], arguments: Mapping[str, str]
) -> Callable[..., Any]:
    """Give `function` the signature and documentation of `f` with more keyword arguments.

    `arguments` maps their names to sentences.  Return `function`.
    """
    wrapped = f
    for name in arguments:
        function.__signature__ = with_parameter(wrapped, name)  # type: ignore[attr-defined]
        wrapped = function
    said = " ".join(arguments.values())
    function.__doc__ = f"{inspect.cleandoc(f.__doc__ or '')}\n\n{said}"
    return function


def laid_out(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function to take one more argument, `out_sharding`, for its results."""

    @functools.wraps(f)
    def function(*args: object, out_sharding: object = None, **options: object) -> Any:
        try:
            if out_sharding is None:
                return f(*args, **options)
            return placed(f(*all_free(args, out_sharding), **options), out_sharding)
        except BaseException as e:
            leaving(e)
            raise

    return offering(function, f, OUT_SHARDING)


def beside(out: AnyArray, like: Any) -> Any:
    """Return `out` placed like `like`: an array, a traced value, or a description of an array.

    If the shapes agree, it goes to the placement of the array, or gets the sharding of the type.
    Otherwise it goes to the device of an array that lies on one.  It varies along the mesh axes
    that `like` varies along, whatever the shapes.
    """
    same = tuple(like.shape) == out.aval.shape if hasattr(like, "shape") else False
    if not isinstance(like, Value):
        said = like.division if isinstance(like, Aval) else getattr(like, "sharding", None)
        sharding = said if same else None
        return placed(out, sharding)
    if like.aval.vma:
        out = varied(out, like.aval.vma)
    if like.__class__ is not Array:
        return lie_as(out, like.aval.division) if same and like.aval.division is not None else out
    there: Any = like
    if there.key.placement is None or out.__class__ is not Array:
        return out
    if same or len(there.devices()) == 1:
        return resolve("device_put")(out, there.sharding)
    return out
