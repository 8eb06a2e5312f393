"""JAX functions that accept more arguments than Plait's own, or return what libraries expect.

Invariant: arguments that Plait's own functions accept are passed to these, and their values are
returned unchanged.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import plait
import plait.numpy as pnp
from plait import dtypes, flatten_util, random
from plait.errors import MissingPlugin
from plait.typing import ArrayLike

from .finder import part
from .requests import missing

__all__ = ["canonicalize_dtype", "finfo", "ndim", "ravel_pytree", "shape", "size", "uniform"]


@functools.wraps(pnp.shape)
def shape(a: Any) -> tuple[Any, ...]:
    # For numpy, None is an object without axes.
    return () if a is None else pnp.shape(a)


@functools.wraps(pnp.ndim)
def ndim(a: Any) -> int:
    return 0 if a is None else pnp.ndim(a)


@functools.wraps(pnp.size)
def size(a: list[Any] | None, axis: int | None = None) -> Any:
    return 1 if a is None and axis is None else pnp.size(a, axis)  # type: ignore[arg-type]


class finfo:
    """`plait.numpy.finfo` with scalars of the dtype in place of Python numbers, as in JAX.

    They have numpy's methods, and combine with arrays as numbers of that dtype.
    """

    def __init__(self, dtype: Any):
        self._of = pnp.finfo(dtype)

    def __getattr__(self, name: str) -> Any:
        if name == "_of":  # a copy that has no fields yet; without this, the lookup would recurse
            raise AttributeError(name)
        value = getattr(self._of, name)
        return self._of.dtype.type(value) if value.__class__ is float else value

    def __repr__(self) -> str:
        return repr(self._of)


@functools.wraps(dtypes.canonicalize_dtype)
def canonicalize_dtype(dtype: str | type, allow_extended_dtype: bool = False) -> Any:
    # A dtype that no array can have is returned unchanged: libraries compare with it.
    if dtype is object or (isinstance(dtype, np.dtype) and dtype.kind == "O"):
        return np.dtype(object)
    if allow_extended_dtype and isinstance(dtype, type) and issubclass(dtype, dtypes.opaque):
        return dtype
    return dtypes.canonicalize_dtype(dtype, allow_extended_dtype)


# ---- arguments that say what happens anyway --------------------------------------------------


def _accepting(fun: Callable[..., Any], name: str, same: tuple[Any, ...]) -> Any:
    """Return `fun` with one more keyword argument, which must have a value that changes nothing."""

    @functools.wraps(fun)
    def accepting(*args: Callable[..., Any], **kwargs: object) -> Any:
        value = kwargs.pop(name, same[0])
        if value not in same:
            raise missing(f"{name}={value!r} of jax.{fun.__name__}")
        return fun(*args, **kwargs)

    return accepting


_NO_AXES = ((), None, [])
_MORE: dict[str, tuple[str, tuple[Any, ...]]] = {
    "checkpoint": ("concrete", (False, None)),
    "grad": ("reduce_axes", _NO_AXES),
    "linear_transpose": ("reduce_axes", _NO_AXES),
    "value_and_grad": ("reduce_axes", _NO_AXES),
    "vjp": ("reduce_axes", _NO_AXES),
    "vmap": ("sum_match", (False,)),
}
"""Function -> its further argument, and the values that change nothing."""


def _of_first_device(pmap: Callable[..., Any]) -> Any:
    """Return `pmap` that gives the first device's results where they differ and have no axis."""

    @functools.wraps(pmap)
    def lenient(*args: Callable[..., Any], **kwargs: object) -> Any:
        return pmap(*args, **{"check_vma": False} | kwargs)

    return lenient


def _has_meshes() -> bool:
    """Return whether plait-sharding is installed."""
    try:
        plait.sharding  # noqa: B018 - the look-up is the question
    except MissingPlugin:
        return False
    return True


def __getattr__(name: str) -> Any:
    # The packages of these functions need not be installed, so each is made when first used.
    if name == "pmap":
        made = _of_first_device(plait.pmap)
    elif name == "typeof":
        made = part("type_shardings").typeof if _has_meshes() else plait.typeof
    elif name in _MORE:
        made = _accepting(getattr(plait, name), *_MORE[name])
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made
    return made


@dataclasses.dataclass(frozen=True)
class _OfAnyDtype:
    """The inverse of `ravel_pytree` for a tree of one dtype: arrays get the vector's."""

    unravel: Any

    def __call__(self, flat: ArrayLike) -> Any:
        dtype = plait.typeof(flat).dtype
        avals = tuple([a.with_dtype(dtype) for a in self.unravel.avals])
        return dataclasses.replace(self.unravel, avals=avals)(flat)


@functools.wraps(flatten_util.ravel_pytree)
def ravel_pytree(pytree: object) -> tuple[Any, Any]:
    flat, unravel = flatten_util.ravel_pytree(pytree)
    one = len({a.dtype for a in unravel.avals}) == 1
    return flat, _OfAnyDtype(unravel) if one else unravel


@functools.wraps(random.uniform)
def uniform(
    key: Any,
    shape: tuple[Any, ...] = (),
    dtype: type | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    **options: object,
) -> Any:
    # JAX accepts bounds of one element with axes where the shape has none: the result has them.
    own = np.broadcast_shapes(pnp.shape(minval), pnp.shape(maxval))
    if own and shape == () and set(own) == {1}:
        shape = own
    return random.uniform(key, shape, dtype, minval, maxval, **options)
