"""Promotion of several arrays to one dtype, as libraries import it from `jax._src.numpy.util`.

Invariant: the dtypes are those of `plait.numpy.result_type`.
"""

from typing import Any

import plait.numpy as pnp
from plait.errors import NotAnArrayError
from plait.ext import as_value

__all__ = ["check_arraylike", "promote_dtypes", "promote_dtypes_complex", "promote_dtypes_inexact"]


def promote_dtypes(*arrays: object) -> list[Any]:
    """Return the arrays in their common dtype."""
    return _converted(arrays, pnp.result_type(*arrays)) if arrays else []


def promote_dtypes_inexact(*arrays: object) -> list[Any]:
    """Return the arrays in their common dtype, floating or complex."""
    common = pnp.result_type(*arrays)
    if not pnp.issubdtype(common, pnp.inexact):
        common = pnp.result_type(*arrays, pnp.result_type(float))
    return _converted(arrays, common)


def promote_dtypes_complex(*arrays: object) -> list[Any]:
    """Return the arrays in their common complex dtype."""
    common = promote_dtypes_inexact(*arrays)[0].dtype
    return _converted(arrays, pnp.result_type(common, pnp.complex64))


def _converted(arrays: tuple[Any, ...], dtype: object) -> list[Any]:
    return [pnp.asarray(x, dtype) for x in arrays]


def check_arraylike(name: str, *args: float | list[Any], **options: object) -> None:
    """Raise NotAnArrayError for an argument that is neither an array nor a number."""
    for i, x in enumerate(args):
        if isinstance(x, list | tuple):
            raise NotAnArrayError(
                f"argument {i} of {name} must be an array, got {type(x).__name__}",
                fix="make an array of it with jax.numpy.asarray",
            )
        as_value(x)
