"""Functions of JAX's that take what Plait's own refuse, or give it as libraries expect it.

Invariant: what Plait takes they hand to it; what they give is what it gives.
"""

import functools
from typing import Any

import numpy as np

import plait.numpy as pnp
from plait import dtypes

__all__ = ["canonicalize_dtype", "finfo", "ndim", "shape", "size"]


@functools.wraps(pnp.shape)
def shape(a: Any) -> tuple[Any, ...]:
    # None is an object without axes for numpy
    return () if a is None else pnp.shape(a)


@functools.wraps(pnp.ndim)
def ndim(a: Any) -> int:
    return 0 if a is None else pnp.ndim(a)


@functools.wraps(pnp.size)
def size(a: Any, axis: Any = None) -> Any:
    return 1 if a is None and axis is None else pnp.size(a, axis)


class finfo:
    """`plait.numpy.finfo`, whose numbers are scalars of the dtype, as JAX has them: they have
    numpy's methods, and meet arrays as numbers of that dtype."""

    def __init__(self, dtype: Any):
        self._of = pnp.finfo(dtype)

    def __getattr__(self, name: str) -> Any:
        if name == "_of":  # of one that is being copied
            raise AttributeError(name)
        value = getattr(self._of, name)
        return self._of.dtype.type(value) if value.__class__ is float else value

    def __repr__(self) -> str:
        return repr(self._of)


@functools.wraps(dtypes.canonicalize_dtype)
def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    # a dtype that no array can have stays as it is: one compares it
    if dtype is object or (isinstance(dtype, np.dtype) and dtype.kind == "O"):
        return np.dtype(object)
    if allow_extended_dtype and isinstance(dtype, type) and issubclass(dtype, dtypes.opaque):
        return dtype
    return dtypes.canonicalize_dtype(dtype, allow_extended_dtype)
