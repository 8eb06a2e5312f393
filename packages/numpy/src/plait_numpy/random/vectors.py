"""Random vectors and matrices.

Invariant: all random numbers of a vector are drawn at once; the components of one vector are
combined along the last axis.
"""

from typing import Any, SupportsIndex, cast

import numpy as np

from plait.errors import ArgumentError, ShapeError
from plait.ext.ops import elementwise as el
from plait.ext.ops.reduction import max_
from plait.ext.ops.shape import broadcast_to, convert, expand_dims, moveaxis, normal_shape
from plait.ext.surface import fixed, fused
from plait.ext.trace import Value
from plait.ext.types import COMPLEX, FLOATING, broadcast_shapes
from plait.typing import Array, ArrayLike, DTypeLike, Shape

from ..exact import matmul
from ..primitives.linalg.batched_matrices import diagonal
from ..primitives.linalg.factorisation import cholesky_, qr_
from ..primitives.linalg.spectral import eigh_, svd_
from .distributions import exponential, normal
from .keys import parameter, split
from .numbers import sample_dtype
from .samples import generalized_normal, given, loggamma


def dirichlet(
    key: ArrayLike, alpha: ArrayLike, shape: SupportsIndex | Shape | None = None,
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw vectors of positive numbers with sum 1, from the Dirichlet distribution.

    Args:
      key: a key.
      alpha: positive parameters, the components along the last axis.
      shape: shape of the result without its last axis; by default that of `alpha`.
      dtype: a floating dtype; the default one if None.

    Raises TypeRule if `alpha` has no axis.

    >>> import numpy as np, plait
    >>> key = plait.random.key(0)
    >>> plait.random.dirichlet(key, np.ones(3), (2,)).shape
    (2, 3)
    """
    d, _, parameters = given("dirichlet", dtype, (), alpha=alpha)
    (alpha,) = cast(tuple[Array], parameters)
    if not alpha.aval.ndim:
        raise ShapeError("dirichlet: `alpha` has no axis", fix="give a vector of parameters")
    lead = alpha.aval.shape[:-1] if shape is None else normal_shape(shape)
    return _dirichlet(key, alpha, shape=(*lead, alpha.aval.shape[-1]))


@fused
def _dirichlet(key: Any, alpha: Array, *, shape: tuple[int, ...]) -> Any:
    logs = loggamma(key, alpha, shape, alpha.aval.dtype)
    sizes = el.exp(logs - el.stop(max_(logs, -1, keepdims=True)))
    return sizes / sizes.sum(-1, keepdims=True)


def ball(
    key: ArrayLike, d: int, p: ArrayLike = 2, shape: SupportsIndex | Shape = (),
    dtype: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Draw points uniformly from the unit ball of the p-norm in `d` dimensions.

    Source: F. Barthe, O. Guedon, S. Mendelson, A. Naor: A probabilistic approach to the
    geometry of the lpn-ball, 2005.

    Args:
      key: a key.
      d: the number of dimensions, a Python integer.
      p: the order of the norm, a positive number.
      shape: shape of the result without its last axis.
      dtype: a floating dtype; the default one if None.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.ball(key, 3, shape=(2,)).shape
    (2, 3)
    """
    kind, shape, (p,) = given("ball", dtype, normal_shape(shape), p=p)
    return _ball(key, p, shape=shape, d=size_of("ball", "d", d))


def size_of(what: str, name: str, given: object) -> int:
    """Return a number of dimensions, rows or columns; raise TypeRule for other values."""
    n = fixed(what, name, given)
    if n < 0:
        raise ArgumentError(f"{what}: {name}={n} is negative", fix="give a size")
    return n


@fused
def _ball(key: Any, p: Any, *, shape: Any, d: int) -> Any:
    first, second = split(key)
    g = generalized_normal(first, p, (*shape, d), p.aval.dtype)
    e = exponential(second, shape, p.aval.dtype)
    size = el.pow_(el.abs_(g), p).sum(-1) + e
    return g / expand_dims(el.pow_(size, 1.0 / p), len(shape))


_METHODS = ("cholesky", "eigh", "svd")


def multivariate_normal(
    key: ArrayLike, mean: ArrayLike, cov: ArrayLike, shape: SupportsIndex | Shape | None = None,
    dtype: DTypeLike | None = None, method: str = "cholesky",
) -> Array:  # fmt: skip
    """Draw vectors from the normal distribution of this mean and covariance.

    Args:
      key: a key.
      mean: the components lie along the last axis.
      cov: covariances, along the last two axes.
      shape: shape of the result without its last axis; by default that of the parameters without
        the axes of components.
      dtype: a floating dtype; the default one if None.
      method: factorisation of the covariance: "cholesky" (which needs it to be positive definite),
        "eigh" or "svd".

    Raises TypeRule if the parameters do not fit together.

    >>> import numpy as np, plait
    >>> key = plait.random.key(0)
    >>> plait.random.multivariate_normal(key, np.zeros(2), np.eye(2), (3,)).shape
    (3, 2)
    """
    if method not in _METHODS:
        raise ArgumentError(
            f"multivariate_normal has no method {method!r}", fix=f"use one of {_METHODS}"
        )
    d = sample_dtype(dtype, FLOATING, "multivariate_normal")
    mean, cov = convert(parameter(mean, "mean"), d), convert(parameter(cov, "cov"), d)
    n = mean.aval.shape[-1:]
    if not n or cov.aval.shape[-2:] != (*n, *n):
        raise ArgumentError(
            f"multivariate_normal: means {mean.aval!r} and covariances {cov.aval!r}",
            fix="give vectors of n components and matrices of n times n",
        )
    lead = broadcast_shapes([mean.aval.shape[:-1], cov.aval.shape[:-2]])
    shape = lead if shape is None else normal_shape(shape)
    return _multivariate_normal(key, mean, cov, shape=(*shape, *n), method=method)


@fused
def _multivariate_normal(
    key: Any, mean: Value, cov: Value, *, shape: tuple[int, ...], method: str
) -> Any:
    root = _root(cov, method)
    z = normal(key, shape, mean.aval.dtype)
    moved = matmul(root, expand_dims(z, len(shape)))
    return broadcast_to(mean, shape) + moved.reshape(shape)


def _root(cov: Value, method: str) -> Any:
    """Return a matrix whose product with its transpose is the covariance."""
    dtype = cov.aval.dtype
    x = convert(cov, np.float32) if dtype.itemsize < 4 else cov
    x = 0.5 * (x + moveaxis(x, -1, -2))
    if method == "cholesky":
        return convert(cholesky_.bind(x), dtype)
    if method == "eigh":
        values, vectors = eigh_.bind(x, lower=True, vectors=True)
    else:
        values, vectors, _ = svd_.bind(x, full_matrices=True, compute_uv=True)
    root = el.sqrt(el.maximum(values, 0.0))
    return convert(vectors * expand_dims(root, values.aval.ndim - 1), dtype)


def orthogonal(
    key: ArrayLike, n: int, shape: SupportsIndex | Shape = (), dtype: DTypeLike | None = None,
    m: int | None = None,
) -> Array:  # fmt: skip
    """Draw orthogonal or unitary matrices uniformly (Haar's measure); n times m if `m` is given.

    Source: F. Mezzadri, How to generate random matrices from the classical compact groups, 2007.
    Takes the orthogonal factor of a normal matrix, with signs or phases that make the other
    factor's diagonal positive.

    Args:
      key: a key.
      n: the number of rows, a Python integer.
      shape: shape of the result without its last two axes.
      dtype: a floating or complex dtype; the default floating one if None.
      m: the number of columns; rows or columns are orthonormal, whichever are fewer.

    Raises TypeRule unless `key` is a key, and for shapes and dtypes that do not fit.

    >>> import plait
    >>> key = plait.random.key(0)
    >>> plait.random.orthogonal(key, 3).shape
    (3, 3)
    """
    d = sample_dtype(dtype, FLOATING, "orthogonal", COMPLEX)
    m = n if m is None else m
    size = size_of("orthogonal", "n", n), size_of("orthogonal", "m", m)
    return _orthogonal(key, shape=normal_shape(shape), size=size, dtype=d)


@fused
def _orthogonal(key: Any, *, shape: tuple[int, ...], size: tuple, dtype: np.dtype) -> Any:
    n, m = size
    z = normal(key, (*shape, max(n, m), min(n, m)), dtype)
    z = convert(z, np.float32) if dtype.itemsize < 4 else z
    q, r = qr_.bind(z, full_matrices=False, pivoting=False)
    signs = el.sign(diagonal(r))
    q = q * expand_dims(el.select(el.eq(signs, 0.0), 1.0, signs), len(shape))
    return convert(q if n >= m else moveaxis(q, -1, -2), dtype)
