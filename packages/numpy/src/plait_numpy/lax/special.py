"""Special functions, elementwise, without conversions.

Invariant: as in `elementwise`: operands have one floating dtype, and only arrays without axes are
broadcast.
"""

from plait.ext.surface import agree, found_by_name, strict_binary, strict_unary
from plait.ext.surface import explained_calls as _explained_calls
from plait.typing import Array, ArrayLike

from ..primitives.special import functions as special
from ..primitives.special import incomplete

bessel_i0e = strict_unary("bessel_i0e", special.bessel_i0e, special.bessel_i0e.doc, "0.0 -> 1.0")
bessel_i1e = strict_unary("bessel_i1e", special.bessel_i1e, special.bessel_i1e.doc, "1.0 -> 0.208")
_inc, _AX = incomplete, ("a", "x")
igamma = strict_binary("igamma", _inc.igamma, _inc.igamma.doc, "1.0, 1.0 -> 0.632", _AX)
igammac = strict_binary("igammac", _inc.igammac, _inc.igammac.doc, "1.0, 1.0 -> 0.368", _AX)
igamma_grad_a = strict_binary(
    "igamma_grad_a", _inc.igamma_grad_a, _inc.igamma_grad_a.doc, "1.0, 1.0 -> -0.432", _AX
)
random_gamma_grad = strict_binary(
    "random_gamma_grad",
    _inc.random_gamma_grad,
    _inc.random_gamma_grad.doc,
    "1.0, 1.0 -> 1.174",
    _AX,
)
polygamma = strict_binary(
    "polygamma", special.polygamma, special.polygamma.doc, "1.0, 1.0 -> 1.645", ("m", "x")
)
zeta = strict_binary("zeta", special.zeta, special.zeta.doc, "2.0, 1.0 -> 1.645", ("x", "q"))


def regularized_incomplete_beta(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Return I_x(a, b), the regularised incomplete beta function: one floating dtype.

    Raises TypeRule for different dtypes.

    >>> import plait
    >>> round(plait.lax.regularized_incomplete_beta(1.0, 1.0, 0.25).item(), 3)
    0.25
    """
    prim = incomplete.regularized_incomplete_beta
    return prim.bind(*agree("regularized_incomplete_beta", (a, b, x)))


betainc = regularized_incomplete_beta

__all__ = [
    "bessel_i0e", "bessel_i1e", "betainc", "igamma", "igamma_grad_a", "igammac", "polygamma",
    "random_gamma_grad", "regularized_incomplete_beta", "zeta",
]  # fmt: skip

_explained_calls(globals())
found_by_name(globals())
