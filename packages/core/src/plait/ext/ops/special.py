"""Special functions.

Invariant: nothing is defined here.
"""

from ..._ops.bessel import (
    bessel_j as bessel_j,
)
from ..._ops.error_functions import (
    bell as bell,
)
from ..._ops.error_functions import (
    dawsn as dawsn,
)
from ..._ops.error_functions import (
    erfcx as erfcx,
)
from ..._ops.error_functions import (
    far_right as far_right,
)
from ..._ops.error_functions import (
    odd_series as odd_series,
)
from ..._ops.error_functions import (
    owens_t as owens_t,
)
from ..._ops.error_functions import (
    wofz as wofz,
)
from ..._ops.hypergeometric import (
    hyp1f1 as hyp1f1,
)
from ..._ops.hypergeometric import (
    hyp2f1 as hyp2f1,
)
from ..._ops.incomplete import (
    beta_density as beta_density,
)
from ..._ops.incomplete import (
    gamma_density as gamma_density,
)
from ..._ops.incomplete import (
    igamma as igamma,
)
from ..._ops.incomplete import (
    igamma_grad_a as igamma_grad_a,
)
from ..._ops.incomplete import (
    igammac as igammac,
)
from ..._ops.incomplete import (
    random_gamma_grad as random_gamma_grad,
)
from ..._ops.incomplete import (
    regularized_incomplete_beta as regularized_incomplete_beta,
)
from ..._ops.integrals import (
    expi as expi,
)
from ..._ops.integrals import (
    expn as expn,
)
from ..._ops.integrals import (
    spence as spence,
)
from ..._ops.special import (
    bessel_i0e as bessel_i0e,
)
from ..._ops.special import (
    bessel_i1e as bessel_i1e,
)
from ..._ops.special import (
    far_left as far_left,
)
from ..._ops.special import (
    lbeta as lbeta,
)
from ..._ops.special import (
    log_ndtr as log_ndtr,
)
from ..._ops.special import (
    mills as mills,
)
from ..._ops.special import (
    ndtri as ndtri,
)
from ..._ops.special import (
    polygamma as polygamma,
)
from ..._ops.special import (
    zeta as zeta,
)
from ..._ops.trigonometric_integrals import (
    fresnel as fresnel,
)
from ..._ops.trigonometric_integrals import (
    quarter_turns as quarter_turns,
)
from ..._ops.trigonometric_integrals import (
    sici as sici,
)

__all__ = [
    "bell",
    "bessel_i0e",
    "bessel_i1e",
    "bessel_j",
    "beta_density",
    "dawsn",
    "erfcx",
    "expi",
    "expn",
    "far_left",
    "far_right",
    "fresnel",
    "gamma_density",
    "hyp1f1",
    "hyp2f1",
    "igamma",
    "igamma_grad_a",
    "igammac",
    "lbeta",
    "log_ndtr",
    "mills",
    "ndtri",
    "odd_series",
    "owens_t",
    "polygamma",
    "quarter_turns",
    "random_gamma_grad",
    "regularized_incomplete_beta",
    "sici",
    "spence",
    "wofz",
    "zeta",
]
