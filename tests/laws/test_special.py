"""Every law over special functions.

Invariant: what is an order and must be whole is held fixed by the case.
"""

import numpy as np
import pytest

from plait_numpy.ext import special as bessel
from plait_numpy.ext import special as error_functions
from plait_numpy.ext import special as hyp
from plait_numpy.ext import special as inc
from plait_numpy.ext import special as ints
from plait_numpy.ext import special as sp
from plait_numpy.ext import special as trigonometric_integrals

X = np.array([0.4, 1.3, 2.2])
A, B = np.array([0.7, 2.5, 4.0]), np.array([1.3, 0.8, 3.0])
P = np.array([0.3, 0.6, 0.55])
WHOLE = np.array([1.0, 2.0, 3.0])
FIRST = {"not": ("second", "jet", "laplacian")}
"""What is judged of algorithms that are differentiated: more is slow to compile."""

CASES = {
    **{p.name: (p, (X,)) for p in (sp.bessel_i0e, sp.bessel_i1e, sp.log_ndtr, ints.expi,
                                   ints.spence)},
    "special.ndtri": (sp.ndtri, (P,), {}, {"tol": 1e-5}),
    "special.lbeta": (sp.lbeta, (A, B)),
    "special.polygamma": (lambda x: sp.polygamma(WHOLE, x), (X + 1,)),
    "special.zeta": (lambda q: sp.zeta(WHOLE + 1, q), (X + 1,)),
    "special.expn": (lambda x: ints.expn(WHOLE, x), (X,)),
    **{p.name: (p, (X,)) for p in (error_functions.erfcx, error_functions.dawsn,
                                   trigonometric_integrals.fresnel,
                                   trigonometric_integrals.sici)},
    "special.wofz": (error_functions.wofz, (X - 0.2j * A,)),
    "special.owens_t": (error_functions.owens_t, (X - 1, A)),
    "special.bessel_j": (bessel.bessel_j, (X,), {"order": 3}),
    "special.hyp1f1": (hyp.hyp1f1, (A, B, X), {}, {**FIRST, "tol": 1e-5}),
    "special.hyp2f1": (hyp.hyp2f1, (A, B, X, P), {}, {**FIRST, "tol": 1e-5}),
    "special.igamma": (inc.igamma, (A, X)),
    "special.igammac": (inc.igammac, (A, X), {}, FIRST),
    "special.igamma_grad_a": (inc.igamma_grad_a, (A, X), {}, FIRST),
    "special.random_gamma_grad": (inc.random_gamma_grad, (A, X), {}, {**FIRST, "tol": 1e-5}),
    "special.regularized_incomplete_beta": (inc.regularized_incomplete_beta, (A, B, P), {},
                                         {**FIRST, "tol": 1e-5}),
}  # fmt: skip


@pytest.mark.wide
def test_derivatives(judge):
    judge.derivatives(CASES)


def test_mapping(judge):
    judge.mapping(CASES)
