"""Derivatives at edges: ties, zeros, poles and infinities.

The values are those that JAX 0.10.2 gives, recorded, but for a few (`DIFFERS`) where they are wrong
or arbitrary; docs/edges.md has the table that users see.
"""

from importlib.metadata import version

import numpy as np
import pytest
from packaging.version import Version

import plait
from plait import lax, nn
from plait import numpy as jnp
from plait.ops import segment_max

INF, NAN = float("inf"), float("nan")
NEWER = Version(version("jaxlib")) >= Version("0.11")  # whose digamma(0) is -inf, as scipy's is
A = np.float32

CASES = {
    "max tie": (jnp.maximum, (1.0, 1.0), (0.5, 0.5)),
    "min tie": (jnp.minimum, (1.0, 1.0), (0.5, 0.5)),
    "max zeros": (jnp.maximum, (0.0, -0.0), (0.5, 0.5)),
    "max nan": (jnp.maximum, (NAN, 1.0), (0.0, 0.0)),
    "lax max tie": (lax.max, (1.0, 1.0), (0.5, 0.5)),
    "reduce max ties": (jnp.max, (A([1.0, 3.0, 3.0, 2.0]),), ([0.0, 0.5, 0.5, 0.0],)),
    "reduce min ties": (jnp.min, (A([1.0, 1.0, 1.0, 2.0]),), ([0.33333, 0.33333, 0.33333, 0.0],)),
    "prod zeros": (jnp.prod, (A([0.0, 2.0, 0.0]),), ([0.0, 0.0, 0.0],)),
    "prod one zero": (jnp.prod, (A([0.0, 2.0, 3.0]),), ([6.0, 0.0, 0.0],)),
    "cumprod zero": (lambda x: jnp.cumprod(x).sum(), (A([2.0, 0.0, 3.0]),), ([1.0, 8.0, 0.0],)),
    "cummax ties": (lambda x: lax.cummax(x).sum(), (A([1.0, 1.0, 0.0]),), ([2.0, 1.0, 0.0],)),
    "sort ties": (
        lambda x: (jnp.sort(x) * A([1.0, 10.0, 100.0])).sum(),
        (A([2.0, 2.0, 1.0]),),
        ([10.0, 100.0, 1.0],),
    ),
    "median even": (jnp.median, (A([1.0, 2.0, 2.0, 5.0]),), ([0.0, 0.5, 0.5, 0.0],)),
    "abs 0": (jnp.abs, (0.0,), (1.0,)),
    "abs -0": (jnp.abs, (-0.0,), (1.0,)),
    "sign 0": (jnp.sign, (0.0,), (0.0,)),
    "sqrt 0": (jnp.sqrt, (0.0,), (INF,)),
    "rsqrt 0": (lax.rsqrt, (0.0,), (-INF,)),
    "cbrt 0": (jnp.cbrt, (0.0,), (INF,)),
    "log 0": (jnp.log, (0.0,), (INF,)),
    "recip 0": (lambda x: 1 / x, (0.0,), (-INF,)),
    "square 0": (jnp.square, (0.0,), (0.0,)),
    "norm 0": (lambda x: jnp.sqrt((x * x).sum()), (A([0.0, 0.0]),), ([NAN, NAN],)),
    "hypot 0": (jnp.hypot, (0.0, 0.0), (0.0, 0.0)),
    "atan2 0 0": (jnp.arctan2, (0.0, 0.0), (NAN, NAN)),
    "pow 0 2": (jnp.power, (0.0, 2.0), (0.0, 0.0)),
    "pow 0 1": (jnp.power, (0.0, 1.0), (1.0, 0.0)),
    "pow 0 0": (jnp.power, (0.0, 0.0), (0.0, 0.0)),
    "pow 0 0.5": (jnp.power, (0.0, 0.5), (INF, 0.0)),
    "pow 0 -1": (jnp.power, (0.0, -1.0), (-INF, -INF)),
    "pow -2 3": (jnp.power, (-2.0, 3.0), (12.0, NAN)),
    "pow 1 inf": (jnp.power, (1.0, INF), (INF, 0.0)),
    "pow 2 0": (jnp.power, (2.0, 0.0), (0.0, 0.69315)),
    "int pow 0 0": (lambda x: x**0, (0.0,), (0.0,)),
    "int pow 0 1": (lambda x: x**1, (0.0,), (1.0,)),
    "int pow 0 2": (lambda x: x**2, (0.0,), (0.0,)),
    "int pow 0 -1": (lambda x: x**-1, (0.0,), (-INF,)),
    "relu 0": (nn.relu, (0.0,), (0.0,)),
    "relu6 6": (nn.relu6, (6.0,), (0.0,)),
    "leaky 0": (nn.leaky_relu, (0.0,), (1.0,)),
    "elu 0": (nn.elu, (0.0,), (1.0,)),
    "softplus 0": (nn.softplus, (0.0,), (0.5,)),
    "softplus 1000": (nn.softplus, (1000.0,), (1.0,)),
    "hard tanh 1": (nn.hard_tanh, (1.0,), (1.0,)),
    "clip low": (lambda x: jnp.clip(x, 0.0, 1.0), (0.0,), (0.5,)),
    "clip high": (lambda x: jnp.clip(x, 0.0, 1.0), (1.0,), (0.5,)),
    "clamp low": (lambda x: lax.clamp(0.0, x, 1.0), (0.0,), (0.0,)),
    "where nan": (lambda x: jnp.where(x > 0, jnp.log(x), 0.0), (0.0,), (NAN,)),
    "where sqrt": (lambda x: jnp.where(x > 0, jnp.sqrt(x), x), (0.0,), (NAN,)),
    "where neg log": (lambda x: jnp.where(x > 0, jnp.log(x), 0.0), (-1.0,), (-0.0,)),
    "floor 1": (jnp.floor, (1.0,), (0.0,)),
    "round .5": (jnp.round, (0.5,), (0.0,)),
    "mod": (jnp.mod, (4.0, 2.0), (1.0, -2.0)),
    "rem": (lambda x, y: lax.rem(x, y), (4.0, 2.0), (1.0, -2.0)),
    "fmod": (jnp.fmod, (-5.0, 3.0), (1.0, 1.0)),
    "logsumexp -inf": (lambda x: nn.logsumexp(x), (A([-INF, -INF]),), ([0.0, 0.0],)),
    "logsumexp inf": (lambda x: nn.logsumexp(x), (A([INF, 1.0]),), ([NAN, 0.0],)),
    "logaddexp -inf": (jnp.logaddexp, (-INF, -INF), (0.0, 1.0)),
    "logaddexp tie": (jnp.logaddexp, (1.0, 1.0), (0.5, 0.5)),
    "sinc 0": (jnp.sinc, (0.0,), (0.0,)),
    "tanh inf": (jnp.tanh, (INF,), (0.0,)),
    "logistic -inf": (nn.sigmoid, (-INF,), (0.0,)),
    "acos 1": (jnp.arccos, (1.0,), (-INF,)),
    "asin 1": (jnp.arcsin, (1.0,), (INF,)),
    "atanh 1": (jnp.arctanh, (1.0,), (INF,)),
    "acosh 1": (jnp.arccosh, (1.0,), (INF,)),
    "log1p -1": (jnp.log1p, (-1.0,), (INF,)),
    "expm1 -inf": (jnp.expm1, (-INF,), (0.0,)),
    "erfinv 1": (lax.erf_inv, (1.0,), (INF,)),
    "std const": (jnp.std, (A([1.0, 1.0]),), ([NAN, NAN],)),
    "var const": (jnp.var, (A([1.0, 1.0]),), ([0.0, 0.0],)),
    "div 0 0": (jnp.divide, (0.0, 0.0), (INF, NAN)),
    "heaviside": (lambda x: jnp.heaviside(x, 0.5), (0.0,), (0.0,)),
    "ptp ties": (jnp.ptp, (A([1.0, 1.0]),), ([0.0, 0.0],)),
    "amax inf": (jnp.max, (A([INF, INF]),), ([0.5, 0.5],)),
    "nanmax": (jnp.nanmax, (A([NAN, 1.0]),), ([0.0, 1.0],)),
    "logit 0": (lambda x: jnp.log(x / (1 - x)), (0.0,), (NAN,)),
    "float_power": (jnp.float_power, (0.0, 2.0), (0.0, 0.0)),
    "digamma": (lax.digamma, (0.0,), (INF,)),
    "lgamma 0": (lax.lgamma, (0.0,), (-INF if NEWER else NAN,)),
    "abs complex 0": (lambda x, y: jnp.abs(lax.complex(x, y)), (0.0, 0.0), (0.0, 0.0)),
    "segment_max ties": (
        lambda x: segment_max(x, np.array([0, 0, 1])).sum(),
        (A([1.0, 1.0, 2.0]),),
        ([0.5, 0.5, 1.0],),
    ),
    "inv singular": (
        lambda x: jnp.linalg.inv(x).sum(),
        (A([[1.0, 2.0], [2.0, 4.0]]),),
        ([[NAN, NAN], [NAN, NAN]],),
    ),
}
"""What is done, at which point, and the derivative by each argument."""

DIFFERS = {
    "hypot 0": "(0.5, 0.5)",
    "pow 0 0": "(nan, 0.0)",
    "pow 0 -1": "(-inf, nan)",
    "logsumexp -inf": "([nan, nan],)",
    "logaddexp -inf": "(nan, nan)",
}
"""What JAX says there."""


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", CASES)
def test_derivative(name):
    f, xs, want = CASES[name]
    got = plait.grad(f, argnums=tuple(range(len(xs))))(*xs)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=2e-5, atol=2e-5)
