"""Special functions.

Invariant: nothing is defined here.
"""

from ..primitives.special.bessel import bessel_j
from ..primitives.special.error_functions import (
    bell,
    dawsn,
    erfcx,
    far_right,
    odd_series,
    owens_t,
    wofz,
)
from ..primitives.special.functions import (
    bessel_i0e,
    bessel_i1e,
    far_left,
    lbeta,
    log_ndtr,
    mills,
    ndtri,
    polygamma,
    series,
    zeta,
)
from ..primitives.special.hypergeometric import hyp1f1, hyp2f1
from ..primitives.special.incomplete import (
    beta_density,
    gamma_density,
    igamma,
    igamma_grad_a,
    igammac,
    random_gamma_grad,
    regularized_incomplete_beta,
)
from ..primitives.special.integrals import expi, expn, spence
from ..primitives.special.sampling import random_gamma
from ..primitives.special.trigonometric_integrals import fresnel, quarter_turns, sici

__all__ = [
    "bell", "bessel_i0e", "bessel_i1e", "bessel_j", "beta_density", "dawsn", "erfcx", "expi",
    "expn", "far_left", "far_right", "fresnel", "gamma_density", "hyp1f1", "hyp2f1", "igamma",
    "igamma_grad_a", "igammac", "lbeta", "log_ndtr", "mills", "ndtri", "odd_series", "owens_t",
    "polygamma", "quarter_turns", "random_gamma", "random_gamma_grad",
    "regularized_incomplete_beta", "series", "sici", "spence", "wofz", "zeta",
]  # fmt: skip
