"""vmap of special functions and of samplers against a Python loop.

Invariant: an element is worked out in as many turns as it takes, whatever its neighbours take.
"""

import numpy as np

import plait
from plait_numpy.ext import special as inc
from plait_numpy.ext import special as sp


def test_nested(mapped):
    mapped.nested(lambda x, y: inc.igamma(abs(x) + 0.1, abs(y)), (), ())
    mapped.nested(lambda x: [sp.bessel_i0e(x), sp.log_ndtr(x)], (2,))


def test_samplers_of_many_keys():
    keys = plait.random.split(plait.random.key(3), 3)
    a = np.float32([0.3, 2, 25])
    for f in (plait.random.gamma, plait.random.poisson):
        want = [np.asarray(f(k, v)) for k, v in zip(keys, a)]
        np.testing.assert_allclose(np.asarray(plait.vmap(f)(keys, a)), want, rtol=1e-5)
