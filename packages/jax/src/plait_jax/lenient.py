"""JAX functions that accept more arguments than Plait's own, or return what libraries expect.

Invariant: arguments that Plait's own functions accept are passed to these, and their values are
returned unchanged.
"""

import functools
from typing import Any

import numpy as np

import plait.numpy as pnp
from plait import dtypes

__all__ = ["canonicalize_dtype", "finfo", "ndim", "shape", "size"]


@functools.wraps(pnp.shape)
def shape(a: Any) -> tuple[Any, ...]:
    # For numpy, None is an object without axes.
    return () if a is None else pnp.shape(a)


@functools.wraps(pnp.ndim)
def ndim(a: Any) -> int:
    return 0 if a is None else pnp.ndim(a)


@functools.wraps(pnp.size)
def size(a: Any, axis: Any = None) -> Any:
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
def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    # A dtype that no array can have is returned unchanged: libraries compare with it.
    if dtype is object or (isinstance(dtype, np.dtype) and dtype.kind == "O"):
        return np.dtype(object)
    if allow_extended_dtype and isinstance(dtype, type) and issubclass(dtype, dtypes.opaque):
        return dtype
    return dtypes.canonicalize_dtype(dtype, allow_extended_dtype)
