"""Cholesky, LU and QR by numpy, and by LAPACK as scipy has it.

Invariant: for factors that are not unique only a unique part is compared: the signs of columns are
normalised alike on both sides.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from plait.ext.ir import Primitive

from ..samples import Reference, Sample

__all__ = ["FLOATS", "REFERENCES", "each", "lapack", "matrices", "positive"]

FLOATS = ("float32", "float64", "complex64", "complex128")
"""The dtypes of matrices."""


def matrices(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Return well-conditioned matrices, with a heavy diagonal."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return (x + 2 * np.eye(shape[-2], shape[-1])).astype(dtype)


def positive(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Return positive definite matrices."""
    x = matrices(dtype, shape, seed)
    return x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1], dtype=dtype)


def each(f: Callable, ndims: tuple[int, ...] = (2,), wide: bool = True) -> Callable:
    """Map `f` over the matrices of a stack; `ndims` are the axes of an element of each operand.
    It computes in double precision and rounds to the operands' dtype (unless `wide` is False)."""

    def value(*xs: np.ndarray, **params: object) -> Any:
        single = xs[0].dtype in (np.float32, np.complex64)
        if wide:
            xs = tuple([_double(x) for x in xs])
        lead = xs[0].shape[: xs[0].ndim - ndims[0]]
        count = int(np.prod(lead))
        rows = [x.reshape(count, *x.shape[x.ndim - n :]) for x, n in zip(xs, ndims, strict=True)]
        outs = [f(*row, **params) for row in zip(*rows)]
        many = isinstance(outs[0], list | tuple)
        columns = list(zip(*outs)) if many else [outs]
        made = [np.stack(c).reshape((*lead, *np.shape(c[0]))) for c in columns]
        if single and wide:
            made = [_single(y) for y in made]
        return made if many else made[0]

    return value


def _double(x: np.ndarray) -> np.ndarray:
    return x.astype({"f": np.float64, "c": np.complex128}.get(x.dtype.kind, x.dtype))


def _single(x: np.ndarray) -> np.ndarray:
    return x.astype({"f": np.float32, "c": np.complex64}.get(x.dtype.kind, x.dtype))


def lapack(name: str, x: np.ndarray) -> Callable:
    """Return LAPACK's routine for the dtype of `x`."""
    from scipy.linalg import get_lapack_funcs

    found: Any = get_lapack_funcs((name,), (x,))
    return found[0]


# ---- values --------------------------------------------------------------------------------


def _cholesky(x: np.ndarray) -> np.ndarray:
    low = np.tril(x)
    whole = low + np.conj(np.tril(x, -1)).T
    np.fill_diagonal(whole, np.real(np.diag(x)))
    try:
        return np.linalg.cholesky(whole)
    except np.linalg.LinAlgError:
        return np.full_like(x, np.nan)


def _lu(x: np.ndarray) -> tuple:
    if not x.size:  # LAPACK refuses empty matrices
        return x.copy(), np.zeros(0, np.int32)
    out, pivots, _ = lapack("getrf", x)(x)
    return out, pivots.astype(np.int32)


def _permutation(pivots: np.ndarray, size: int) -> np.ndarray:
    order = list(range(size))
    for i, j in enumerate(pivots):
        order[i], order[j] = order[j], order[i]
    return np.array(order, np.int32)


def _geqrf(x: np.ndarray) -> tuple:
    out, taus, _, _ = lapack("geqrf", x)(x)
    return out, taus


def _geqp3(x: np.ndarray) -> tuple:
    out, order, taus, _, _ = lapack("geqp3", x)(x)
    return out, (order - 1).astype(np.int32), taus


def _reflections(x: np.ndarray, taus: np.ndarray) -> np.ndarray:
    """Return the square product of I - tau v v^H, one after the other."""
    m = x.shape[0]
    q = np.eye(m, dtype=x.dtype)
    for k, tau in enumerate(taus):
        v = np.zeros(m, x.dtype)
        v[k] = 1
        v[k + 1 :] = x[k + 1 :, k]
        q = q @ (np.eye(m) - tau * np.outer(v, np.conj(v)))
    return q


def _product(x: np.ndarray, taus: np.ndarray) -> np.ndarray:
    return _reflections(x, taus)[:, : x.shape[1]]


def _ormqr(x: np.ndarray, taus: np.ndarray, c: np.ndarray, left: bool, adjoint: bool) -> np.ndarray:
    q = _reflections(x, taus)
    q = np.conj(q).T if adjoint else q
    return q @ c if left else c @ q


def _qr(x: np.ndarray, full_matrices: bool, pivoting: bool) -> tuple:
    import scipy.linalg

    mode = "full" if full_matrices else "economic"
    made: Any = scipy.linalg.qr(x, mode=mode, pivoting=pivoting)
    q, r, *order = made
    return q, r, *[o.astype(np.int32) for o in order]


# ---- samples -------------------------------------------------------------------------------


def _squares(make: Callable, /, **params: object) -> Callable:
    def samples(prim: Primitive) -> Iterator[Sample]:
        yield Sample((make("float32", (3, 3)),), params)
        for name in FLOATS:
            yield Sample((make(name, (2, 3, 3), 1),), params)
        yield Sample((make("float64", (1, 1)),), params)

    return samples


def _definite(prim: Primitive) -> Iterator[Sample]:
    yield from _squares(positive)(prim)
    x = positive("float64", (3, 3, 3))
    x[1, 0, 0] = -1  # the other matrices of the stack must stay unaffected
    yield Sample((x,))
    yield Sample((np.zeros((0, 0), np.float32),))


def _rectangles(*all_params: dict) -> Callable:
    def samples(prim: Primitive) -> Iterator[Sample]:
        for k, params in enumerate(all_params):
            yield Sample((matrices("float32", (3, 2), k),), params)
            for name in FLOATS[1 - (k == 0) :]:
                yield Sample((matrices(name, (2, 3, 4)),), params)

    return samples


def _exchanges(prim: Primitive) -> Iterator[Sample]:
    yield Sample((np.array([[2, 1], [3, 3]], np.int32),), {"size": 4})
    yield Sample((np.array([1, 1], np.int32),), {"size": 2})
    yield Sample((np.zeros((2, 0), np.int32),), {"size": 3})


def _reflectors(dtype: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    out, taus = each(_geqrf)(matrices(dtype, (2, 4, 3), seed))
    return out, taus


def _reflected(prim: Primitive) -> Iterator[Sample]:
    for name in FLOATS:
        yield Sample(_reflectors(name))
    x, taus = _reflectors("float32")
    yield Sample((x[..., :2], taus[..., :1]))


def _turned(prim: Primitive) -> Iterator[Sample]:
    for k, name in enumerate(FLOATS):
        left = k % 2 == 0
        c = matrices(name, (2, 4, 2) if left else (2, 2, 4), 5)
        yield Sample((*_reflectors(name), c), {"left": left, "adjoint": k > 1})


REFERENCES = {
    "linalg.cholesky": Reference(each(_cholesky), _definite, 16, whole=True),
    "linalg.lu": Reference(each(_lu), _rectangles({}), 32, whole=True),
    "linalg.pivots_to_permutation": Reference(each(_permutation, (1,)), _exchanges),
    "linalg.geqrf": Reference(each(_geqrf), _rectangles({}), 32, whole=True),
    "linalg.geqp3": Reference(each(_geqp3), _rectangles({}), 32, whole=True),
    "linalg.householder_product": Reference(each(_product, (2, 1)), _reflected, 16, whole=True),
    "linalg.ormqr": Reference(each(_ormqr, (2, 1, 2)), _turned, 32, whole=True),
    "linalg.qr": Reference(
        each(_qr),
        _rectangles({"full_matrices": False, "pivoting": False},
                    {"full_matrices": True, "pivoting": True}),
        32, whole=True,
    ),
}  # fmt: skip
"""The Reference of each primitive of the family."""
