"""Intended differences of results from numpy's or scipy's.

Invariant: every difference that samples show is in this table; all else follows the references.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from plait.ext import Primitive

from .closeness import flushed

__all__ = ["DIFFERENCES", "Difference", "differences_text", "excused"]


class Difference(NamedTuple):
    """A documented difference.

    Attributes:
      where: the function and the operands.
      ours, theirs: the results of Plait and of the other library.
      why: the reason.
      prims: primitives whose samples show it; their references include it unless `mask` is given.
      mask: (operands, result of the reference) -> elements that may differ.
    """

    where: str
    ours: str
    theirs: str
    why: str
    prims: tuple[str, ...] = ()
    mask: Callable[[Sequence[np.ndarray], np.ndarray], Any] | None = None


def _both_infinite(xs: Sequence[np.ndarray], want: np.ndarray) -> Any:
    z = xs[0]
    return np.isinf(np.real(z)) & np.isinf(np.imag(z)) if z.dtype.kind == "c" else False


DIFFERENCES = (
    Difference(
        "subnormal numbers of float32, float64, bfloat16, on CPUs",
        "zeros of their sign, as operands and as results", "kept",
        "the compiler's programs run with subnormal numbers switched off",
    ),
    Difference(
        "`digamma` at 0", "nan", "-inf, or inf at -0.0", "as at its other poles",
        ("core.digamma",), lambda xs, want: flushed(xs[0]) == 0,
    ),
    Difference(
        "`exp`, `expm1` at -inf with an infinite imaginary part", "zeros of some sign",
        "zeros of another", "the C standard leaves these signs open",
        ("core.exp", "core.expm1"), _both_infinite,
    ),
    Difference(
        "integers divided by 0", "-1 (all bits set), remainder `x`", "0, with a warning",
        "the compiler's definition; `plait.debug` can check divisors", ("core.div", "core.rem"),
    ),
    Difference(
        "floats to integers that do not hold them", "the nearest integer held; 0 of nan",
        "undefined", "the same on every platform", ("core.convert",),
    ),
    Difference(
        "`maximum`, `minimum` of 0.0 and -0.0", "0.0 and -0.0", "the first operand",
        "IEEE 754-2019 orders zeros", ("core.maximum", "core.minimum", "core.clamp"),
    ),
    Difference(
        "`sign` at -0.0", "-0.0", "0.0", "it preserves zeros", ("core.sign",)
    ),
    Difference(
        "sums of -0.0 alone", "0.0", "-0.0", "sums start from 0.0",
        ("core.reduce_sum", "core.cumsum"),
    ),
    Difference(
        "signs of zeros in complex quotients and products", "either", "either",
        "they depend on the order of operations",
        ("core.div", "core.rsqrt", "core.reduce_prod", "core.cumprod"),
    ),
    Difference(
        "complex division by and of infinities", "0 or infinite", "often nan",
        "ISO C99, annex G, 5.1.2", ("core.div",),
    ),
    Difference(
        "complex `power` and `arctan2` of infinite operands or nan; complex contractions with them",
        "nan where parts are lost", "nan elsewhere", "no standard says what they are",
        ("core.pow", "core.atan2", "core.dot_general"),
    ),
    Difference(
        "`gammaln` at -inf; `erfinv` at -0.0", "inf; -0.0", "-inf; 0.0",
        "the limit of the C standard; an odd function", ("core.lgamma", "core.erf_inv"),
    ),
)  # fmt: skip
"""All documented differences."""


def excused(prim: Primitive, xs: Sequence[np.ndarray], want: np.ndarray) -> np.ndarray:
    """Return the elements of a result that the table permits to differ."""
    out = np.zeros(want.shape, bool)
    for d in DIFFERENCES:
        if d.mask is not None and prim.name in d.prims:
            with np.errstate(all="ignore"):
                out |= d.mask(xs, want)
    return out


def differences_text() -> str:
    """Return the table, as Markdown."""
    lines = ["| where | Plait | numpy, scipy | why |", "|---|---|---|---|"]
    lines += [f"| {d.where} | {d.ours} | {d.theirs} | {d.why} |" for d in DIFFERENCES]
    return "\n".join(lines) + "\n"
