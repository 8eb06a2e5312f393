"""`eigh` of `jax.numpy.linalg` and `jax.scipy.linalg`, which average a matrix with its transpose.

numpy and scipy read one triangle if it is named, and so do Plait's own functions.

Invariant: the values and derivatives of symmetric matrices are those of Plait's own functions.
"""

import functools
from typing import Any

import plait
import plait.numpy as pnp
from plait.typing import ArrayLike

__all__ = ["eigh", "eigh_of_scipy"]


@functools.wraps(pnp.linalg.eigh)
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> Any:
    return pnp.linalg.eigh(a, UPLO, symmetrize_input=bool(symmetrize_input))


@functools.wraps(plait.scipy.linalg.eigh)
def eigh_of_scipy(a: ArrayLike, *args: Any, **kwargs: Any) -> Any:
    x = pnp.asarray(a)
    mean = (x + x.mT.conj()) / 2 if x.ndim > 1 and x.shape[-1] == x.shape[-2] else x
    return plait.scipy.linalg.eigh(mean, *args, **kwargs)
