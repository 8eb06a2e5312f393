"""Eigenvalues, singular values and intermediate forms, by numpy and scipy.

Invariant: only determined values are compared: eigenvectors are normalised by a factor of size one,
and for forms that are not unique the matrix that they compose is compared.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from plait.ext.ir import Primitive

from ..samples import Reference, Sample
from .factorisation import FLOATS, each, lapack, matrices, positive

__all__ = ["REFERENCES"]

Arrays = list[np.ndarray]


def _phases(v: np.ndarray) -> np.ndarray:
    """Return the factors of size one that make the greatest component of each column positive."""
    at = np.abs(v).argmax(-2, keepdims=True)
    top = np.take_along_axis(v, at, -2)
    return np.conj(top) / np.abs(top)


def _in_phase(outs: Arrays) -> Arrays:
    return [outs[0], *[v * _phases(v) for v in outs[1:]]]


def _eigh(x: np.ndarray, lower: bool, vectors: bool) -> Any:
    w, v = np.linalg.eigh(x, "L" if lower else "U")
    return [w, v] if vectors else [w]


def _svd(x: np.ndarray, full_matrices: bool, compute_uv: bool) -> Any:
    out = np.linalg.svd(x, full_matrices, compute_uv)
    return [out[1], out[0], out[2]] if compute_uv else [out]


def _svd_view(outs: Arrays) -> Arrays:
    """Return U and V^H with the same factors; columns without a singular value as their
    projector."""
    if len(outs) == 1:
        return outs
    s, u, vh = outs
    k = s.shape[-1]
    phases = _phases(u[..., :k])
    first = vh[..., :k, :] * np.conj(np.swapaxes(phases, -1, -2))
    rest = _projector(u[..., k:]), _projector(_adjoint(vh[..., k:, :]))
    return [s, u[..., :k] * phases, first, *rest]


def _adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def _projector(v: np.ndarray) -> np.ndarray:
    return v @ _adjoint(v)


def _eig(x: np.ndarray, left: bool, right: bool) -> Arrays:
    import scipy.linalg

    out = scipy.linalg.eig(x, left=left, right=right)
    w, *vectors = out if isinstance(out, tuple) else (out,)
    wide = np.complex128
    return [w.astype(wide), *[v.astype(wide) for v in vectors]]


def _eig_view(outs: Arrays) -> Arrays:
    """Return sorted eigenvalues with their vectors, of length one."""
    w, *vectors = outs
    order = np.lexsort((np.round(np.imag(w), 3), np.round(np.real(w), 3)), -1)
    kept = [np.take_along_axis(v, order[..., None, :], -1) for v in vectors]
    return _in_phase([np.take_along_axis(w, order, -1), *kept])


def _schur(x: np.ndarray, vectors: bool) -> Arrays:
    import scipy.linalg

    made: Any = scipy.linalg.schur(x, "complex" if x.dtype.kind == "c" else "real")
    t, z = made
    return [t, z] if vectors else [t]


def _schur_view(outs: Arrays) -> Arrays:
    """Return the matrix that they compose, and whether Z is unitary and T triangular; for T
    alone its diagonal."""
    t, *rest = outs
    if not rest:
        return [
            np.sort_complex(np.diagonal(t, axis1=-2, axis2=-1)).astype(
                np.result_type(t, np.complex64)
            )
        ]
    (z,) = rest
    return [z @ t @ _adjoint(z), _adjoint(z) @ z, np.tril(t, -2)]


def _hessenberg(x: np.ndarray) -> Arrays:
    out, taus, _ = lapack("gehrd", x)(x)
    return [out, taus]


def _tridiagonal(x: np.ndarray, lower: bool) -> Arrays:
    name = "hetrd" if x.dtype.kind == "c" else "sytrd"
    out, d, e, taus, _ = lapack(name, x)(x, lower=lower)
    return [out, d, e, taus]


# ---- samples -------------------------------------------------------------------------------


def _of(make: Callable[..., Any], *all_params: dict, shape: tuple = (2, 3, 3)) -> Any:
    def samples(prim: Primitive) -> Iterator[Sample]:
        for k, params in enumerate(all_params):
            yield Sample((make("float32", shape, k),), params)
            for name in FLOATS[1:]:
                yield Sample((make(name, shape, k),), params)
        lost = make("float64", shape, 3)
        lost[0, 0, 0] = np.nan
        if prim.name in _SAFE:  # the other matrices of the stack must stay unaffected
            yield Sample((lost,), all_params[-1])
        yield Sample((make("float32", (1, 1), 2),), all_params[0])

    return samples


_SAFE = ("linalg.eigh", "linalg.svd", "linalg.eig")
_BOTH = {"lower": True, "vectors": True}, {"lower": False, "vectors": False}
_PARTS = {"full_matrices": False, "compute_uv": True}, {"full_matrices": True, "compute_uv": True}
_ALONE = {"full_matrices": False, "compute_uv": False}
_SIDES = {"left": True, "right": True}, {"left": False, "right": False}


def _kept(f: Callable[..., Any]) -> Any:
    """Return nan for matrices with nan, for which numpy raises."""

    def safe(x: np.ndarray, /, **params: object) -> Arrays:
        if np.isnan(x).any():
            like = f(np.eye(*x.shape, dtype=x.dtype), **params)
            return [np.full_like(y, complex(np.nan, np.nan) if y.dtype.kind == "c" else np.nan)
                    for y in like]  # fmt: skip
        return f(x, **params)

    return safe


REFERENCES = {
    "linalg.eigh": Reference(
        each(_kept(_eigh)), _of(positive, *_BOTH), 64, whole=True, view=_in_phase
    ),
    "linalg.svd": Reference(
        each(_kept(_svd)),
        _of(matrices, *_PARTS, _ALONE, shape=(2, 4, 3)),
        64,
        whole=True,
        view=_svd_view,
    ),
    "linalg.eig": Reference(
        each(_kept(_eig)), _of(matrices, *_SIDES), 256, whole=True, zeros=False, view=_eig_view
    ),
    "linalg.schur": Reference(
        each(_schur),
        _of(matrices, {"vectors": True}, {"vectors": False}),
        128,
        whole=True,
        least=1.0,
        view=_schur_view,
    ),
    "linalg.hessenberg": Reference(
        each(_hessenberg), _of(matrices, {}, shape=(2, 4, 4)), 64, whole=True
    ),
    "linalg.tridiagonal": Reference(
        each(_tridiagonal),
        _of(positive, {"lower": True}, {"lower": False}, shape=(2, 4, 4)),
        64,
        whole=True,
    ),
}
"""The Reference of each primitive of the family."""
