"""Every law over special functions.

Invariant: what is an order and must be whole is held fixed by the case.
"""

import numpy as np

from plait.ext.ops import special as bessel
from plait.ext.ops import special as error_functions
from plait.ext.ops import special as hyp
from plait.ext.ops import special as inc
from plait.ext.ops import special as ints
from plait.ext.ops import special as sp
from plait.ext.ops import special as trigonometric_integrals

X = np.array([0.4, 1.3, 2.2])
A, B = np.array([0.7, 2.5, 4.0]), np.array([1.3, 0.8, 3.0])
P = np.array([0.3, 0.6, 0.55])
WHOLE = np.array([1.0, 2.0, 3.0])
FIRST = {"not": ("second", "jet", "laplacian")}
"""What is judged of algorithms that are differentiated: more is slow to compile."""

CASES = {
    **{p.name: (p, (X,)) for p in (sp.bessel_i0e, sp.bessel_i1e, sp.log_ndtr, ints.expi,
                                   ints.spence)},
    "core.ndtri": (sp.ndtri, (P,), {}, {"tol": 1e-5}),
    "core.lbeta": (sp.lbeta, (A, B)),
    "core.polygamma": (lambda x: sp.polygamma(WHOLE, x), (X + 1,)),
    "core.zeta": (lambda q: sp.zeta(WHOLE + 1, q), (X + 1,)),
    "core.expn": (lambda x: ints.expn(WHOLE, x), (X,)),
    **{p.name: (p, (X,)) for p in (error_functions.erfcx, error_functions.dawsn,
                                   trigonometric_integrals.fresnel,
                                   trigonometric_integrals.sici)},
    "core.wofz": (error_functions.wofz, (X - 0.2j * A,)),
    "core.owens_t": (error_functions.owens_t, (X - 1, A)),
    "core.bessel_j": (bessel.bessel_j, (X,), {"order": 3}),
    "core.hyp1f1": (hyp.hyp1f1, (A, B, X), {}, {**FIRST, "tol": 1e-5}),
    "core.hyp2f1": (hyp.hyp2f1, (A, B, X, P), {}, {**FIRST, "tol": 1e-5}),
    "core.igamma": (inc.igamma, (A, X)),
    "core.igammac": (inc.igammac, (A, X), {}, FIRST),
    "core.igamma_grad_a": (inc.igamma_grad_a, (A, X), {}, FIRST),
    "core.random_gamma_grad": (inc.random_gamma_grad, (A, X), {}, {**FIRST, "tol": 1e-5}),
    "core.regularized_incomplete_beta": (inc.regularized_incomplete_beta, (A, B, P), {},
                                         {**FIRST, "tol": 1e-5}),
}  # fmt: skip


def test_derivatives(judge):
    judge.derivatives(CASES)


def test_mapping(judge):
    judge.mapping(CASES)
