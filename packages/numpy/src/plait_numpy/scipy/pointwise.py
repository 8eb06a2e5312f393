"""Special functions that are one primitive each, with the names of scipy.special.

Invariant: operands broadcast together, integers become the default float, complex numbers are
refused; a function costs only its primitive.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from plait.errors import ArgumentError, OperandTypeError
from plait.ext import Value
from plait.ext.errors import border
from plait.ext.ir import Primitive
from plait.ext.ops import elementwise as el
from plait.ext.surface import binary, fixed, fused, unary
from plait.ext.types import FLOATING
from plait.typing import Array, ArrayLike

from ..primitives.special import error_functions as gs
from ..primitives.special import functions as sp
from ..primitives.special import incomplete as inc
from ..primitives.special import integrals as ints


def _shown(name: str, says: str) -> str:
    """Return `arguments -> result` as a runnable example."""
    given, result = says.split(" -> ")
    call = f"plait.scipy.special.{name}({given}).item()"
    return f">>> import plait\n>>> print(f'{{{call}:.4f}}')\n{result}"


def _one(name: str, prim: Primitive, doc: str, says: str, arg: str = "x") -> Callable[..., Array]:
    how = f"{arg}: real, any shape; the result has it too, and a floating dtype.\n\n"
    about = f"{doc}\n\n{how}Raises TypeRule for complex numbers.\n\n{_shown(name, says)}"
    return unary(name, prim, about, arg=arg)


def _two(
    name: str, prim: Primitive, doc: str, says: str, args: tuple[str, str]
) -> Callable[..., Array]:
    how = f"{args[0]}, {args[1]}: real, of shapes that broadcast; the result is floating.\n\n"
    about = (
        f"{doc}\n\n{how}Raises TypeRule for complex numbers and shapes that do not fit.\n\n"
        f"{_shown(name, says)}"
    )
    return binary(name, prim, about, args=args)


erf = _one("erf", el.erf, "The error function.", "1.0 -> 0.8427")
erfc = _one("erfc", el.erfc, "1 - erf(x), exact for large x.", "1.0 -> 0.1573")


@fused
def erfinv(x: ArrayLike) -> Array:
    """Inverse of the error function.

    x: real, any shape; the result has it too, and a floating dtype.

    Raises TypeRule for complex numbers.

    >>> import plait
    >>> print(f"{plait.scipy.special.erfinv(0.5).item():.4f}")
    0.4769
    """
    (x,) = floats(x)
    y = el.erf_inv(x)
    # The compiler's approximation takes 1 - x * x, which loses its digits near 1.  There one step
    # of Newton's method takes 1 - |x|, which is exact.
    size = el.abs_(x)
    steep = el.and_(el.gt(size, 0.5), el.lt(size, 1.0))
    z, rest = el.select(steep, el.abs_(y), 1.0), el.select(steep, 1.0 - size, math.erfc(1.0))
    step = (el.erfc(z) - rest) * (el.exp(z * z) * (math.sqrt(math.pi) / 2))
    return y + el.select(steep, el.sign(x) * step, 0.0)


gammaln = _one("gammaln", el.lgamma, "log |Gamma(x)|.", "5.0 -> 3.1781")
digamma = _one("digamma", el.digamma, "The derivative of gammaln.", "1.0 -> -0.5772")
expit = _one("expit", el.logistic, "1 / (1 + e ** -x).", "1.0 -> 0.7311")
i0e = _one("i0e", sp.bessel_i0e, "e ** -|x| times the modified Bessel function of order 0.",
           "1.0 -> 0.4658")  # fmt: skip
i1e = _one("i1e", sp.bessel_i1e, "e ** -|x| times the modified Bessel function of order 1.",
           "1.0 -> 0.2079")  # fmt: skip
ndtri = _one("ndtri", sp.ndtri, "Quantiles of the normal distribution: -inf at 0, inf at 1, nan\n"
             "outside.  Source: a rational start, refined by Halley's method.", "0.975 -> 1.9600",
             "p")  # fmt: skip
expi = _one("expi", ints.expi, "The exponential integral Ei(x), the principal value.\n\n"
            "Source: DLMF 6.6.1 and 6.12.2.", "1.0 -> 1.8951")  # fmt: skip
spence = _one("spence", ints.spence, "The integral of log(t) / (1 - t) from 1 to x; nan for "
              "negative x.", "0.5 -> 0.5822")  # fmt: skip
dawsn = _one("dawsn", gs.dawsn, "Dawson's integral: e ** (-x * x) times the integral of "
             "e ** (t * t) from 0 to x.\n\nWithin 9 units in the last place; its derivative is "
             "1 - 2 x dawsn(x).\nSource: Taylor's series, and Chebyshev's.",
             "1.0 -> 0.5381")  # fmt: skip
betaln = _two("betaln", sp.lbeta, "log |B(a, b)|, of the beta function.", "2.0, 3.0 -> -2.4849",
              ("a", "b"))  # fmt: skip
gammainc = _two("gammainc", inc.igamma, "P(a, x), the regularised lower incomplete gamma function;"
                "\nit has derivatives in both.  Source: DLMF 8.11.4, 8.9.2 and 8.12.",
                "2.0, 1.0 -> 0.2642", ("a", "x"))  # fmt: skip
gammaincc = _two("gammaincc", inc.igammac, "1 - gammainc(a, x), exact where it is small.",
                 "2.0, 1.0 -> 0.7358", ("a", "x"))  # fmt: skip
polygamma = _two("polygamma", sp.polygamma, "The n-th derivative of digamma, for whole n >= 0; "
                 "nan for others.", "1.0, 1.0 -> 1.6449", ("n", "x"))  # fmt: skip
expn = _two("expn", ints.expn, "The exponential integral E_n(x) for whole n >= 0 and x >= 0.\n\n"
            "Source: DLMF 8.19.8 and 8.19.17.", "1.0, 1.0 -> 0.2194", ("n", "x"))  # fmt: skip
owens_t = _two("owens_t", gs.owens_t, "Owen's T: the chance that X > h and 0 < Y < a X, of "
               "independent\nnormal numbers.\n\nWithin 60 units in the last place for |h| < 10.  "
               "Source: Gauss's rule for its integral,\nand D. B. Owen, 1956, for |a| > 1.",
               "1.0, 2.0 -> 0.0785", ("h", "a"))  # fmt: skip


@border
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """Return the logarithm of the normal distribution function, exact in both tails.

    Args:
      x: real, any shape; the result has the same shape, and a floating dtype.
      series_order: accepted for compatibility: the series far on the left has all significant
        terms.

    Raises TypeRule for complex numbers, and unless `series_order` is a number from 1 to 30.

    >>> import plait
    >>> round(plait.scipy.special.log_ndtr(-20.0).item(), 3)
    -203.917
    """
    n = fixed("log_ndtr", "series_order", series_order)
    if not 1 <= n <= 30:
        raise ArgumentError(f"log_ndtr: series_order={n}", fix="leave it out, or give 1 to 30")
    return sp.log_ndtr(x)


def floats(*xs: Any) -> Sequence[Value]:
    """Return operands in one shape and floating dtype; raise TypeRule for complex numbers."""
    vs = el.floating(xs)
    for v in vs:
        if v.aval.category != FLOATING:
            raise OperandTypeError(
                f"this function is for real numbers, not {v.aval!r}",
                fix="take .real or abs() of complex numbers first",
            )
    return vs


__all__ = [
    "betaln", "dawsn", "digamma", "erf", "erfc", "erfinv", "expi", "expit", "expn", "floats",
    "gammainc", "gammaincc", "gammaln", "i0e", "i1e", "log_ndtr", "ndtri", "owens_t", "polygamma",
    "spence",
]  # fmt: skip
