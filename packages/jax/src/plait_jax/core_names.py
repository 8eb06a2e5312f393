"""Small functions and classes of `jax.core` and of the modules under `jax._src`, by JAX's names.

Invariant: nothing here traces or computes; values of arrays pass through unchanged.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

from plait.errors import TypeRule
from plait.ext import Aval, Tracer

from .jaxprs import ClosedJaxpr, Jaxpr, JaxprEqn, Var

__all__ = [
    "DropVar", "Effect", "Effects", "JaxprTypeError", "call", "check_jaxpr", "concrete_or_error",
    "gensym", "is_constant_dim", "is_constant_shape", "merge_lists", "new_jaxpr_eqn", "no_effects",
    "partition_list", "primal_dtype_to_tangent_dtype", "safe_zip", "split_list", "unzip2", "unzip3",
]  # fmt: skip


class Effect:
    """The class that libraries derive their effects from; effects of Plait's operations have a name
    (`plait.ext.ir.Effect`)."""


Effects = Set[Effect]
"""A set of effects, for annotations."""
no_effects: Effects = frozenset()
"""The effects of a pure computation."""


class JaxprTypeError(TypeRule):
    """The error for an equation whose types do not fit."""


class _Dropped(type):
    """The metaclass of a class that has no instances."""

    def __instancecheck__(cls, x: object) -> bool:
        return False


class DropVar(metaclass=_Dropped):
    """The class of results that no equation reads; here these are ordinary variables."""


def concrete_or_error(force: Callable[[Any], Any] | None, val: object, context: str = "") -> Any:
    """Return `force(val)`.  Raises ConcretizationError if `val` is traced and its value unknown.

    Args:
      force: a conversion such as `int`; None returns `val` itself.
    """
    if isinstance(val, Tracer) and force is None:
        val.numpy()  # raises the error that names the transformation
    return val if force is None else force(val)


def check_jaxpr(jaxpr: Jaxpr | ClosedJaxpr) -> None:
    """Check that each equation reads only variables that are bound before it.

    Raises JaxprTypeError otherwise.
    """
    inner = jaxpr.jaxpr
    bound = {*inner.constvars, *inner.invars}
    for i, eqn in enumerate(inner.eqns):
        free = [v for v in eqn.invars if isinstance(v, Var) and v not in bound]
        if free:
            raise JaxprTypeError(
                f"equation {i} ({eqn.primitive}) reads {len(free)} variables that nothing binds",
                fix="bind them by an earlier equation, or add them to `invars`",
            )
        bound |= set(eqn.outvars)


def gensym(*args: object, **options: object) -> Callable[[Any], Any]:
    """Return a function that makes a new variable of a type."""
    return Var


new_jaxpr_eqn = JaxprEqn
"""Makes an equation."""


def call(f: Any, *args: Any) -> Any:
    """Call a wrapped function."""
    return f.call_wrapped(*args)


def is_constant_dim(size: object) -> bool:
    """Return whether the size of an axis is a number."""
    return isinstance(size, int) or hasattr(size, "__array__")


def is_constant_shape(shape: Iterable[Any]) -> bool:
    """Return whether all sizes of a shape are numbers."""
    return all(map(is_constant_dim, shape))


def primal_dtype_to_tangent_dtype(dtype: Any) -> Any:
    """Return the dtype of tangents of values with a dtype.

    >>> import numpy
    >>> primal_dtype_to_tangent_dtype(numpy.dtype("float32"))
    dtype('float32')
    """
    return Aval((), dtype).tangent_type.dtype


# ---- lists -----------------------------------------------------------------------------------


def safe_zip(*xs: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return the list of tuples of sequences of equal length."""
    return list(zip(*xs, strict=True))


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the first and the second items of pairs."""
    rows = list(pairs)
    return tuple(a for a, _ in rows), tuple(b for _, b in rows)


def unzip3(triples: Iterable[tuple[Any, Any, Any]]) -> tuple[tuple[Any, ...], ...]:
    """Return the first, the second and the third items of triples."""
    rows = list(triples)
    return tuple(r[0] for r in rows), tuple(r[1] for r in rows), tuple(r[2] for r in rows)


def split_list(items: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Return lists of these sizes, and a list of the remaining items.

    >>> split_list([1, 2, 3, 4], [1, 2])
    [[1], [2, 3], [4]]
    """
    rest, out = list(items), []
    for n in sizes:
        out.append(rest[:n])
        rest = rest[n:]
    return [*out, rest]


def partition_list(second: Sequence[bool], items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the items whose flag is false, and those whose flag is true."""
    rows = list(zip(second, items, strict=True))
    return [x for flag, x in rows if not flag], [x for flag, x in rows if flag]


def merge_lists(second: Sequence[bool], first: Sequence[Any], other: Sequence[Any]) -> list[Any]:
    """Return the inverse of `partition_list`."""
    sources = iter(first), iter(other)
    return [next(sources[bool(flag)]) for flag in second]
