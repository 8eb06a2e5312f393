"""Special functions, element by element: nothing is converted.

Invariant: as in `elementwise`: operands have one floating dtype, and only arrays without axes are
broadcast.
"""

from typing import Any

from ..ops import incomplete, special
from ..surface import unary
from .elementwise import agree, binary

_FLOATS = "x: floats; the result has their shape and dtype."

bessel_i0e = unary(
    "bessel_i0e", special.bessel_i0e, f"{special.bessel_i0e.doc}\n\n{_FLOATS}", strict=True
)
bessel_i1e = unary(
    "bessel_i1e", special.bessel_i1e, f"{special.bessel_i1e.doc}\n\n{_FLOATS}", strict=True
)
igamma = binary("igamma", incomplete.igamma, incomplete.igamma.doc)
igammac = binary("igammac", incomplete.igammac, incomplete.igammac.doc)
igamma_grad_a = binary("igamma_grad_a", incomplete.igamma_grad_a, incomplete.igamma_grad_a.doc)
random_gamma_grad = binary(
    "random_gamma_grad", incomplete.random_gamma_grad, incomplete.random_gamma_grad.doc
)
polygamma = binary("polygamma", special.polygamma, special.polygamma.doc)
zeta = binary("zeta", special.zeta, special.zeta.doc)


def regularized_incomplete_beta(a: Any, b: Any, x: Any) -> Any:
    """I_x(a, b), the regularised incomplete beta function: one floating dtype.

    Raises TypeRule for different dtypes.
    """
    prim = incomplete.regularized_incomplete_beta
    return prim.bind(*agree("regularized_incomplete_beta", (a, b, x)))


betainc = regularized_incomplete_beta
