"""Taylor mode: derivatives along a curve, compared with Taylor's formula and known series."""

import math

import numpy as np
import pytest

import plait
from plait import lax, nn
from plait import numpy as jnp
from plait._core.primitive import primitives
from plait_autodiff.ext import jet_rules, jvp_rules
from plait_autodiff.taylor.laws import numerically

ORDER = 4
AT = 0.7
STEP = 0.35
TERMS = np.arange(1, 4, dtype=np.float64)

FUNCTIONS = {
    "sin": lax.sin, "cos": lax.cos, "tan": lax.tan, "exp": lax.exp, "log": lax.log,
    "tanh": lax.tanh, "sinh": lax.sinh, "cosh": lax.cosh, "sqrt": lax.sqrt, "rsqrt": lax.rsqrt,
    "logistic": lax.logistic, "expm1": lax.expm1, "log1p": lax.log1p, "cbrt": lax.cbrt,
    "asin": lambda x: lax.asin(x / 2), "atan": lax.atan, "erf": lax.erf, "lgamma": lax.lgamma,
    "reciprocal": lambda x: 1 / x, "division": lambda x: lax.sin(x) / (1 + x * x),
    "power": lambda x: x**2.5, "of two": lambda x: lax.pow(x, x),
    "cube": lambda x: x**3, "inverse cube": lambda x: x**-3,
    "atan2": lambda x: lax.atan2(x, x * x + 1), "greater": lambda x: lax.max(x * x, x),
    "abs": lambda x: abs(x * x - 3), "clamp": lambda x: lax.clamp(0.1, x * x, 2.0),
    "where": lambda x: jnp.where(x > 0, x * x, x), "gelu": nn.gelu,
    "dot": lambda x: jnp.dot(x * TERMS, lax.sin(x * TERMS)),
    "prod": lambda x: jnp.prod(x + TERMS), "max": lambda x: jnp.max(lax.sin(x * TERMS / 3)),
    "cumprod": lambda x: jnp.cumprod(x + TERMS).sum(),
    "cumlogsumexp": lambda x: lax.cumlogsumexp(x * TERMS).sum(),
    "sort": lambda x: (jnp.sort(lax.cos(x * TERMS / 3)) * TERMS).sum(),
    "gather": lambda x: lax.exp(x * TERMS)[np.array([2, 0])].sum(),
    "scatter": lambda x: (jnp.zeros(3).at[np.array([1, 1])].add(x * x) * TERMS).sum(),
    "slices": lambda x: jnp.concatenate([x * TERMS, (x * TERMS)[:1]])[::-1].prod(),
    "modulus": lambda x: abs(lax.complex(x, x * x + 1) * (1 + 2j)),
    "fft": lambda x: (jnp.abs(jnp.fft.fft(lax.sin(x * TERMS))) ** 2).sum(),
    "solve": lambda x: jnp.linalg.solve(jnp.outer(TERMS, TERMS) + x * np.eye(3), x * TERMS).sum(),
    "cond": lambda x: lax.cond(x > 0, lax.sin, lax.cos, x),
    "scan": lambda x: lax.scan(lambda c, y: (lax.sin(c) * y, c), x, TERMS)[0],
    "while": lambda x: lax.while_loop(
        lambda s: s[0] < 3, lambda s: (s[0] + 1, lax.sin(s[1]) * 2), (0, x)
    )[1],
    "jit": lambda x: plait.jit(lambda y: lax.sin(y) * y)(x),
    "checkpoint": lambda x: plait.checkpoint(lambda y: lax.sin(y) * y)(x),
    "vmap": lambda x: plait.vmap(lambda k: lax.sin(k * x))(TERMS).sum(),
}  # fmt: skip


def series(f, x, order=ORDER, run=lambda f, x: f(x)):
    rest = [np.float64(1)] + [np.float64(0)] * (order - 1)
    value, derivatives = run(lambda x: plait.jet(f, (x,), (rest,)), x)
    return np.array([float(value), *map(float, derivatives)])


def differences(f, x):
    """Derivatives by a polynomial through values near x, in double precision."""
    n = 7
    nodes = np.cos((2 * np.arange(n) + 1) * np.pi / (2 * n)) * STEP / 3
    values = np.asarray(numerically(plait.vmap(f), x + nodes))
    fit = np.linalg.solve(np.vander(nodes, n, increasing=True), values)
    return np.array([c * math.factorial(k) for k, c in enumerate(fit)])[: ORDER + 1]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_those_of_the_interpolating_polynomial(name):
    f, x = FUNCTIONS[name], np.float64(AT)
    got, want = series(f, x, run=numerically), differences(f, x)
    scale = max(1.0, np.abs(want).max())
    np.testing.assert_allclose(got[:4], want[:4], rtol=2e-3, atol=2e-3 * scale)


def test_known_series():
    x = np.float64(0.3)
    np.testing.assert_allclose(series(lax.exp, x, 8), [np.exp(x)] * 9, rtol=1e-12)
    want = [1 / x] + [(-1) ** k * math.factorial(k) / x ** (k + 1) for k in range(1, 9)]
    np.testing.assert_allclose(series(lambda v: 1 / v, x, 8), want, rtol=1e-10)
    want = [math.comb(5, k) * math.factorial(k) * x ** (5 - k) for k in range(6)] + [0]
    np.testing.assert_allclose(series(lambda v: v**5, x, 6), want, rtol=1e-12, atol=1e-12)
    assert series(lambda v: v**3, np.float64(0), 3).tolist() == [0, 0, 0, 6]


def test_curves_through_trees_of_arguments():
    """Along (x(t), y(t)) = (2 + 3t + 4t^2, 5 - t), with x y^2 written out."""
    f = lambda d, y: {"out": d["x"] * y * y, "n": d["n"]}  # noqa: E731
    n = np.zeros((), plait.float0)
    slopes = [{"x": 3.0, "n": n}, {"x": 8.0, "n": n}]
    value, (first, second) = plait.jet(f, ({"x": 2.0, "n": 7}, 5.0), (slopes, [-1.0, 0.0]))
    curve = np.polymul([4.0, 3.0, 2.0], np.polymul([-1.0, 5.0], [-1.0, 5.0]))[::-1]
    found = [value["out"], first["out"], second["out"]]
    assert [float(v) for v in found] == [curve[0], curve[1], 2 * curve[2]]
    assert int(value["n"]) == 7 and first["n"].dtype == plait.float0


def test_composition_with_other_transformations():
    second = lambda x: plait.jet(lax.sin, (x,), ([1.0, 0.0],))[1][1]  # noqa: E731
    assert float(plait.jit(second)(AT)) == pytest.approx(-math.sin(AT), rel=1e-6)
    assert float(plait.grad(second)(AT)) == pytest.approx(-math.cos(AT), rel=1e-6)
    xs = np.float32([0.1, 0.2])
    np.testing.assert_allclose(plait.vmap(second)(xs), -np.sin(xs), rtol=1e-6)
    along = plait.jet(lambda x: plait.grad(lambda y: y**4)(x), (2.0,), ([1.0, 0.0],))[1]
    assert [float(v) for v in along] == [48.0, 48.0]


def test_work_grows_like_the_square_of_the_order():
    deep = lambda x: lax.tanh(lax.exp(lax.sin(x)) / x)  # noqa: E731

    def equations(k):
        f = lambda x: plait.jet(deep, (x,), ([1.0] + [0.0] * (k - 1),))  # noqa: E731
        return len(plait.make_program(f)(1.0).eqns)

    counts = [equations(k) for k in (2, 4, 8, 16)]
    assert all(b < 4.5 * a for a, b in zip(counts, counts[1:])), counts


def test_every_primitive_with_a_derivative_has_a_series():
    first_order = [p for p in primitives().values() if p.higher is None and jvp_rules.find(p)]
    assert len(first_order) > 100 and all(jet_rules.find(p) for p in first_order)


def test_messages():
    with pytest.raises(ValueError, match="a list of derivatives for each of the 2 arguments"):
        plait.jet(lambda x, y: x, (1.0, 2.0), ([1.0], [1.0, 2.0]))
    with pytest.raises(TypeError, match="series of jet must be a tuple or list"):
        plait.jet(lax.sin, (1.0,), 1.0)
    with pytest.raises(TypeError, match="jet was given a term of a series of another type"):
        plait.jet(lax.sin, (1.0,), ([np.ones(2, np.float32)],))
