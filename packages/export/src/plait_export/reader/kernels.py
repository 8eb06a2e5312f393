"""Reading custom calls: size checks, and linear algebra libraries.

The kernels are those of `library_calls`, which has verified operands and results.  A kernel also
returns a status code, which Plait's operations do not have; it is read as success, 0.

Invariant: a call is read only if all options of the kernel are taken into account.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import plait
from plait.ext import ops
from plait.ext.errors import DimMismatch, UndecidedDim
from plait.ext.lower import ASKED, STABLE, read
from plait.ext.ops import elementwise as el
from plait.ext.ops.platforms import platform_index
from plait.ext.ops.random import DYNAMIC_GENERATOR
from plait.ext.trace import Value

from ..errors import NotReadable
from ..portable import ASSERTION
from .generators import drawn
from .module import Op
from .sizes import Known
from .table import reads
from .walking import Walk, takes_known


@reads("stablehlo.custom_call")
@takes_known
def _(walk: Walk, op: Op, xs: list[Value | Known]):
    name = op.attributes["call_target_name"]
    if name == ASSERTION:
        return _check(op, xs)
    if name == ASKED:
        groups = read(op.attributes["backend_config"]["platforms"])
        return platform_index.bind(platforms=groups)
    if name == DYNAMIC_GENERATOR:
        return drawn(op, walk.value(xs[0]), walk.sizes(xs[1], "sizes of random bits"))
    routine = _routine(name)
    if routine is None:
        raise NotReadable(f"{name} is a function outside StableHLO, of which nothing is known")
    told = op.attributes.get("mhlo.backend_config") or op.attributes.get("backend_config")
    values = [walk.value(x) for x in xs]
    count, rule = _KERNELS[routine]
    return rule(op, values[:count], told if isinstance(told, dict) else {})


def _check(op: Op, xs: Any) -> list:
    """Evaluate a size check now.

    Raises DimMismatch if it fails, and UndecidedDim if that depends on the sizes.
    """
    holds = xs[0].items[0] if xs[0].__class__ is Known else None
    sizes = [x.items[0] if x.__class__ is Known else "?" for x in xs[1:]]
    message = str(op.attributes.get("error_message", "sizes do not fit"))
    for i, n in enumerate(sizes):
        message = message.replace(f"{{{i}}}", str(n))
    if holds is None:
        raise UndecidedDim(f"it is not known for all sizes whether this holds: {message}",
                           fix="Exported.specialize(sizes) makes them numbers")  # fmt: skip
    if not holds:
        raise DimMismatch(message, fix="give arrays whose sizes fit together")
    return []


# ---- linear algebra ------------------------------------------------------------------------


def _routine(name: str) -> str | None:
    """Return the routine of a kernel, independent of its library; None if it is unknown."""
    if name not in STABLE:
        return None
    if name.startswith("lapack_"):
        short = name[len("lapack_") + 1 : -len("_ffi")]
        short = _SAME.get(short, short)
        return short if short in _KERNELS else None
    short = name.partition("_")[2][: -len("_ffi")] if name.endswith("_ffi") else name
    return short if short in _KERNELS else None


_SAME = {"heevd": "syevd", "ungqr": "orgqr", "hetrd": "sytrd"}


def _letter(told: dict[str, Any], name: str) -> str:
    """Return a one-letter option of a kernel, which is stored as a character code."""
    return chr(told[name] & 255)


def _codes(x: Value) -> Any:
    """Return status codes of success, one for each matrix of a stack."""
    shape = x.aval.shape[:-2]
    return plait.lax.full(shape, 0, np.int32)


def _lower(told: dict[str, Any]) -> bool:
    return bool(told["lower"]) if "lower" in told else _letter(told, "uplo") == "L"


def _potrf(op: Op, xs: list[Value], told: dict[str, Any]) -> list:
    """Factorise, and keep the other triangle of the operand as the kernel does."""
    x = xs[0]
    if _lower(told):
        factor = ops.linalg.cholesky_.bind(x)
        return [ops.linalg.triangle(factor) + ops.linalg.triangle(x, False, 1), _codes(x)]
    factor = ops.linalg.adjoint(ops.linalg.cholesky_.bind(ops.linalg.adjoint(x)))
    return [ops.linalg.triangle(factor, False) + ops.linalg.triangle(x, True, -1), _codes(x)]


def _getrf(op: Op, xs: Any, told: dict[str, Any]) -> list:
    """Return a pivoted LU factorisation, with pivots counted from 1 as in LAPACK."""
    both, pivots = ops.linalg.lu_.bind(xs[0])
    return [both, pivots + np.int32(1), _codes(xs[0])]


def _geqrf(op: Op, xs: Any, told: dict[str, Any]) -> list:
    return list(ops.linalg.geqrf.bind(xs[0]))


def _orgqr(op: Op, xs: Any, told: dict[str, Any]) -> list:
    return [ops.linalg.householder_product_.bind(*xs)]


def _syevd(op: Op, xs: Any, told: dict[str, Any]) -> list:
    x = xs[0]
    vectors = "mode" not in told or _letter(told, "mode") == "V"
    found = ops.linalg.eigh_.bind(x, lower=_lower(told), vectors=vectors)
    return [found[1] if vectors else x, found[0], _codes(x)]


def _gesdd(op: Op, xs: Any, told: dict[str, Any]) -> list:
    x, mode = xs[0], _letter(told, "mode")
    if mode == "N":
        (s,) = ops.linalg.svd_.bind(x, full_matrices=True, compute_uv=False)
        *lead, m, n = x.aval.shape
        u, v = (plait.lax.full((*lead, k, k), 0, x.aval.dtype) for k in (m, n))
        return [x, s, u, v, _codes(x)]
    s, u, v = ops.linalg.svd_.bind(x, full_matrices=mode == "A", compute_uv=True)
    return [x, s, u, v, _codes(x)]


def _gesvdj(op: Op, xs: Any, told: dict[str, Any]) -> list:
    """Return a singular value decomposition with V, not its adjoint."""
    x, full = xs[0], bool(told["full_matrices"])
    s, u, v = ops.linalg.svd_.bind(x, full_matrices=full, compute_uv=True)
    return [x, s, u, ops.linalg.adjoint(v), _codes(x)]


def _geev(op: Op, xs: Any, told: dict[str, Any]) -> list:
    left, right = (_letter(told, f"compute_{side}") == "V" for side in ("left", "right"))
    w, *vectors = ops.linalg.eig_.bind(xs[0], left=left, right=right)
    empty = plait.lax.full(xs[0].aval.shape, 0, op.types[-2].dtype)
    rest = iter(vectors)
    both = [next(rest) if wanted else empty for wanted in (left, right)]
    values = [w] if len(op.types) == 4 else [el.real.bind(w), el.imag.bind(w)]
    return [*values, *both, _codes(xs[0])]


def _trsm(op: Op, xs: Any, told: dict[str, Any]) -> list:
    how = _letter(told, "trans_x")
    return [ops.linalg.triangular_solve_.bind(
        *xs, left_side=_letter(told, "side") == "L", lower=_lower(told),
        transpose_a=how != "N", conjugate_a=how == "C",
        unit_diagonal=_letter(told, "diag") == "U",
    )]  # fmt: skip


def _gehrd(op: Op, xs: Any, told: dict[str, Any]) -> list:
    if told["low"] != 1 or told["high"] != xs[0].aval.shape[-1]:
        raise NotReadable("a Hessenberg form of a part of a matrix")
    return [*ops.linalg.hessenberg_.bind(xs[0]), _codes(xs[0])]


def _sytrd(op: Op, xs: Any, told: dict[str, Any]) -> list:
    return [*ops.linalg.tridiagonal_.bind(xs[0], lower=_lower(told)), _codes(xs[0])]


def _gees(op: Op, xs: Any, told: dict[str, Any]) -> list:
    """Return a Schur form with its eigenvalues.

    Real parts are on the diagonal of T.  Complex pairs come from blocks of two rows.  LAPACK gives
    these equal diagonals, so the imaginary part is sqrt(-b * c) of the off-diagonal elements.
    """
    vectors = _letter(told, "mode") == "V"
    t, *z = ops.linalg.schur_.bind(xs[0], vectors=vectors)
    on = ops.linalg.diagonal(t)
    values = [on]
    if len(op.types) == 6:
        above, below = (plait.numpy.diagonal(t, k, -2, -1) for k in (1, -1))
        size = plait.numpy.sqrt(abs(above)) * plait.numpy.sqrt(abs(below))
        beside = [(0, 0)] * (size.ndim - 1)
        pad = plait.numpy.pad
        values = [on, pad(size, [*beside, (0, 1)]) - pad(size, [*beside, (1, 0)])]
    codes = _codes(xs[0])
    return [t, z[0] if vectors else t, *values, codes, codes]


def _gtsv(op: Op, xs: Any, told: dict[str, Any]) -> list:
    x = ops.linalg.tridiagonal_solve_.bind(*xs)
    codes = [_codes(x)] if len(op.types) == 5 else []
    return [*xs[:3], x, *codes] if len(op.types) > 1 else [x]


def _lu_decomposition(op: Op, xs: Any, told: dict[str, Any]) -> list:
    both, pivots = ops.linalg.lu_.bind(xs[0])
    order = ops.linalg.pivots_to_permutation.bind(pivots, size=xs[0].aval.shape[-2])
    return [both, pivots, order]


_KERNELS: dict[str, tuple[int, Callable]] = {
    "potrf": (1, _potrf), "getrf": (1, _getrf), "geqrf": (1, _geqrf), "orgqr": (2, _orgqr),
    "syevd": (1, _syevd), "gesdd": (1, _gesdd), "gesvdj": (1, _gesvdj), "geev": (1, _geev),
    "gees": (1, _gees), "trsm": (2, _trsm), "gehrd": (1, _gehrd), "sytrd": (1, _sytrd),
    "gtsv": (4, _gtsv), "gtsv2": (4, _gtsv), "Qr": (1, _geqrf), "LuDecomposition":
    (1, _lu_decomposition), "ProductOfElementaryHouseholderReflectors": (2, _orgqr),
}  # fmt: skip
"""By routine: the number of matrix operands, which precede the sizes of results, and the rule."""
