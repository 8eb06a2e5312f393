"""Derivatives of what users call: plait.numpy, plait.nn and plait.lax, away from kinks and at them.

Invariant: away from kinks against finite differences in float64; at kinks, at infinity and at
ties against limits that are written out.
"""

import numpy as np
import pytest

import plait
from plait_autodiff import check_grads, grad, jvp

pnp, nn, lax = plait.numpy, plait.nn, plait.lax
rng = np.random.default_rng(0)
INF = np.inf
X = rng.permutation(12).reshape(3, 4) / 7.0 - 0.8
Y = rng.permutation(12).reshape(3, 4) / 5.0 - 1.1
V = np.array([0.3, -1.2, 2.0, 0.7])
P = np.abs(X) + 0.1

ONE = ["exp2", "log2", "log10", "sinc", "square", "reciprocal", "deg2rad", "fabs", "nan_to_num",
       "abs", "negative", "cbrt", "log1p", "expm1", "sqrt", "tanh", "arcsinh"]  # fmt: skip
TWO = ["add", "subtract", "multiply", "divide", "maximum", "minimum", "fmax", "fmin", "hypot",
       "logaddexp", "logaddexp2", "arctan2", "copysign", "fmod", "remainder", "power"]  # fmt: skip
SMOOTH = ["silu", "gelu", "softplus", "log_sigmoid", "mish", "elu", "celu", "selu", "squareplus",
          "soft_sign", "sigmoid", "tanh", "softmax", "log_softmax", "standardize", "glu",
          "logsumexp", "logmeanexp", "relu", "relu6", "leaky_relu", "hard_tanh", "hard_sigmoid",
          "hard_silu", "sparse_plus", "sparse_sigmoid"]  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_array(name):
    check_grads(getattr(pnp, name), (P,), order=2)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_arrays(name):
    x, y = (P, Y + 2) if name in ("power", "remainder", "fmod") else (X, Y)
    check_grads(getattr(pnp, name), (x, y), order=2)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", SMOOTH)
def test_activations(name):
    check_grads(getattr(nn, name), (X * 2 + 0.05,), order=2)


CASES = {
    "var": lambda x: pnp.var(x, axis=0, ddof=1),
    "std": lambda x: pnp.std(x, axis=1),
    "average": lambda x: pnp.average(x, axis=1, weights=V + 2),
    "median": lambda x: pnp.median(x, axis=1),
    "quantile": lambda x: pnp.quantile(x, np.array([0.2, 0.55]), axis=0),
    "ptp": lambda x: pnp.ptp(x, axis=1),
    "cumprod": lambda x: pnp.cumprod(x, axis=1),
    "clip": lambda x: pnp.clip(x, -0.4, 0.3),
    "where": lambda x: pnp.where(x > 0, x * x, pnp.exp(x)),
    "diag": lambda x: pnp.diag(x[0]) @ pnp.diag(x[1], 0),
    "diagonal": lambda x: pnp.diagonal(x, 1) ** 2,
    "trace": lambda x: pnp.trace(x @ x.T),
    "tril": lambda x: pnp.tril(x) @ pnp.triu(x).T,
    "pad": lambda x: pnp.pad(x, 2, "reflect") ** 2,
    "pad edge": lambda x: pnp.pad(x, ((1, 2), (0, 3)), "edge") ** 2,
    "pad wrap": lambda x: pnp.pad(x, 1, "wrap") ** 2,
    "roll": lambda x: pnp.roll(x, (1, -1), (0, 1)) * x,
    "repeat": lambda x: pnp.repeat(x, np.array([1, 0, 2]), axis=0) ** 2,
    "tile": lambda x: pnp.tile(x, (2, 2)) ** 2,
    "rot90": lambda x: pnp.rot90(x) @ x,
    "sort": lambda x: pnp.sort(x, axis=1) * np.arange(4.0),
    "take": lambda x: pnp.take(x, np.array([0, 2, 2]), axis=1) ** 2,
    "take_along_axis": lambda x: pnp.take_along_axis(x, np.array([[0], [3], [1]]), 1) ** 2,
    "einsum": lambda x: pnp.einsum("ij,kj,ij->k", x, x, x),
    "einsum diagonal": lambda x: pnp.einsum("ii,i->i", x @ x.T, x[:, 0]),
    "kron": lambda x: pnp.kron(x[:2, :2], x[1:]),
    "cross": lambda x: pnp.cross(x[:, :3], x[:, 1:]),
    "convolve": lambda x: pnp.convolve(x[0], x[1]),
    "correlate": lambda x: pnp.correlate(x[0], x[1], "same"),
    "cov": lambda x: pnp.cov(x),
    "corrcoef": lambda x: pnp.corrcoef(x),
    "polyval": lambda x: pnp.polyval(x[0], x[1:]),
    "interp": lambda x: pnp.interp(x, np.array([-1.0, 0.1, 2.0]), V[:3]),
    "interp data": lambda x: pnp.interp(np.array([0.5, 1.5]), np.arange(4.0), x[0]),
    "trapezoid": lambda x: pnp.trapezoid(x**2, axis=0),
    "gradient": lambda x: pnp.gradient(x**2, axis=1),
    "diff": lambda x: pnp.diff(x, 2) ** 2,
    "linspace": lambda x: pnp.linspace(x[0], x[1], 5) ** 2,
    "vander": lambda x: pnp.vander(x[0], 3),
    "select": lambda x: pnp.select([x > 0.5, x > 0], [x**2, x**3], x),
    "nansum": lambda x: pnp.nansum(pnp.where(x > 0.3, np.nan, x) ** 2, 0),
    "frexp": lambda x: pnp.ldexp(pnp.frexp(x)[0], 2) ** 2,
    "unwrap": lambda x: pnp.unwrap(x * 3) ** 2,
    "histogram": lambda x: pnp.histogram(V, np.array([-2.0, 0.0, 3.0]), weights=x[0])[0] ** 2,
    "put_along_axis": lambda x: pnp.put_along_axis(x, np.array([[0], [3], [1]]), x[:, :1] ** 2, 1),
    "reduce": lambda x: lax.reduce(x, 1.0, lambda a, b: a * b + 0.0, (1,)),
    "reduce_window": lambda x: lax.reduce_window(x, -INF, lax.max, (2, 2), (1, 1), "SAME") ** 2,
    "pool": lambda x: lax.reduce_window(x**2, 0.0, lax.add, (2, 3)),
    "attention": lambda x: nn.dot_product_attention(
        *(x.reshape(1, 3, 2, 2) * k for k in (1, 2, 3))),
    "one_hot": lambda x: nn.one_hot(np.array([0, 2]), 3, dtype="float64") @ x,
    "apply_along_axis": lambda x: pnp.apply_along_axis(lambda r: r[0] * r, 1, x),
}  # fmt: skip


@pytest.mark.sampled(32)
@pytest.mark.parametrize("name", CASES)
def test_compositions(name):
    check_grads(CASES[name], (X,), order=2)


# ---- kinks, ties and infinities ------------------------------------------------------------

KINKS = {
    "relu": [0, 0, 0, 0, 1, 1, 1], "relu6": [0, 0, 0, 0, 1, 0, 0],
    "leaky_relu": [0.01, 0.01, 0.01, 1, 1, 1, 1], "hard_tanh": [0, 0, 1, 1, 1, 0, 0],
    "softplus": [0, 0, 0.26894143, 0.5, 0.73105858, 1, 1],
    "log_sigmoid": [1, 1, 0.73105858, 0.5, 0.26894143, 0, 0],
    "sigmoid": [0, 0, 0.19661193, 0.25, 0.19661193, 0, 0],
    "silu": [0, 0, 0.07232949, 0.5, 0.92767051, 1, 1],
    "gelu": [0, 0, -0.08296408, 0.5, 1.08296408, 1, 1],
    "mish": [0, 0, 0.05921672, 0.6, 1.04903615, 1, 1],
    "elu": [0, 0, 0.36787944, 1, 1, 1, 1], "selu": [0, 0, 0.64676868, 1.75809934] + [1.050701] * 3,
    "soft_sign": [0, 0, 0.25, 1, 0.25, 0, 0], "hard_silu": [0, 0, 1 / 6, 0.5, 5 / 6, 1, 1],
    "squareplus": [0, 0, 0.2763932, 0.5, 0.7236068, 1, 1],
    "sparse_plus": [0, 0, 0, 0.5, 1, 1, 1],
}  # fmt: skip


@pytest.mark.parametrize("name", KINKS)
def test_first_derivatives_of_activations_at_the_edges(name):
    f = grad(getattr(nn, name))
    for dtype in (np.float32, np.float64):
        points = np.array([-INF, -1e4, -1, 0, 1, 1e4, INF], dtype)
        got = [float(f(p)) for p in points]
        np.testing.assert_allclose(got, KINKS[name], rtol=1e-5, atol=1e-7)
    assert np.isnan(float(getattr(nn, name)(np.float32(np.nan))))


def test_second_derivatives_where_branches_meet():
    second = lambda f: grad(grad(f))
    assert float(second(nn.softplus)(0.0)) == pytest.approx(0.25)
    assert float(second(lambda x: pnp.logaddexp(x, 0.0))(0.0)) == pytest.approx(0.25)
    assert float(second(pnp.sinc)(0.0)) == pytest.approx(-(np.pi**2) / 3, rel=1e-5)
    assert float(second(lambda x: pnp.hypot(x, 2.0))(0.0)) == pytest.approx(0.5)
    assert float(second(lambda x: pnp.hypot(x, 2.0))(2.0)) == pytest.approx(4 / 8**1.5)
    assert float(second(nn.silu)(0.0)) == pytest.approx(0.5)


def test_ties_and_zeros_of_pairs():
    def both(f, x, y):
        return [float(grad(f, a)(np.float32(x), np.float32(y))) for a in (0, 1)]

    assert both(pnp.maximum, 1, 1) == [0.5, 0.5] and both(pnp.logaddexp, 2, 2) == [0.5, 0.5]
    assert both(pnp.logaddexp, -INF, -INF) == both(pnp.logaddexp, -INF, -INF)
    assert both(pnp.logaddexp, INF, 0) == [1, 0] and both(pnp.logaddexp, -INF, 0) == [0, 1]
    assert both(pnp.hypot, 0, 0) == [0, 0]
    np.testing.assert_allclose(both(pnp.hypot, 3, 3), [2**-0.5, 2**-0.5], rtol=1e-6)
    np.testing.assert_allclose(both(pnp.hypot, -3, 4), [-0.6, 0.8], rtol=1e-6)
    assert both(pnp.copysign, -2, 3) == [-1, 0]
    assert float(grad(pnp.sinc)(0.0)) == 0


def test_softmax_of_rows_with_infinities():
    x = np.float32([-INF, 0.0, 1.0])
    full = np.exp(x) / np.exp(x).sum()
    want = np.diag(full) - np.outer(full, full)
    got = [np.asarray(grad(lambda v, i=i: nn.softmax(v)[i])(x)) for i in range(3)]
    np.testing.assert_allclose(got, want, atol=1e-6)
    assert (np.asarray(grad(nn.logsumexp)(np.float32([-INF, -INF]))) == 0).all()
    np.testing.assert_allclose(grad(nn.logsumexp)(x), full, atol=1e-6)
    mask = np.array([[True, False, True], [False, False, False]])
    some = np.array([[1.0, np.nan, 2.0], [np.nan, 1.0, INF]], np.float32)
    got = np.asarray(grad(lambda v: (nn.softmax(v, where=mask) ** 2).sum())(some))
    assert np.isfinite(got).all() and (got[~mask] == 0).all()
    labels = np.float32([0, 1, 0])
    loss = lambda v: -(nn.log_softmax(v) * labels).sum()
    np.testing.assert_allclose(grad(loss)(np.float32([1e4, 0, -1e4])), [1, -1, 0], atol=1e-6)


def test_stop_gradient():
    f = lambda x: lax.stop_gradient({"a": x * x})["a"] * x
    assert float(grad(f)(3.0)) == 9.0
    assert lax.stop_gradient(np.int32(3)) == 3


@pytest.mark.feature("C04")
def test_objects_that_convert_have_derivatives():
    class Wrapped:
        def __jax_array__(self):
            return pnp.asarray(V)

    f = plait.jit(lambda x: pnp.sin(x).sum())
    np.testing.assert_allclose(np.asarray(grad(f)(Wrapped())), np.cos(V), rtol=1e-12)


def test_integers_have_no_derivative_and_do_not_disturb():
    f = lambda x: pnp.sum(pnp.take(x, pnp.argsort(x))[pnp.searchsorted(pnp.sort(x), 0.5)] ** 2)
    assert np.isfinite(np.asarray(grad(f)(V))).all()
    count = lambda x: pnp.bincount(pnp.digitize(x, np.array([0.0, 1.0])), length=3) * 1.0
    out, tangent = jvp(count, (V,), (V,))
    assert out.tolist() == [1.0, 2.0, 1.0] and (np.asarray(tangent) == 0).all()


@pytest.mark.parametrize("name", ["silu", "gelu", "mish", "soft_sign", "squareplus", "softplus",
                                  "sparse_plus", "elu", "celu", "selu", "log_sigmoid", "sigmoid",
                                  "tanh", "hard_silu", "log1mexp"])  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_nan_is_not_hidden_by_derivatives_of_smooth_functions(name, dtype):
    f = getattr(nn, name)
    x = np.array([np.nan, 0.5, INF], dtype)
    value, tangent = jvp(f, (x,), (np.ones(3, dtype),))
    assert np.isnan(value[0]) and np.isnan(tangent[0])
    assert np.isfinite(np.asarray(tangent[1])) and not np.isnan(tangent[2])
    assert np.isnan(grad(lambda x: f(x).sum())(x)[0])
    if name not in ("sparse_plus", "hard_silu"):  # parts of these are polynomials of degree 2
        assert np.isnan(grad(grad(f))(dtype(np.nan)))


def test_a_nan_is_not_hidden_by_derivatives_of_relative_entropy():
    f = plait.scipy.special.rel_entr
    for p, q in ((np.nan, 2.0), (2.0, np.nan), (np.nan, np.nan)):
        assert all(np.isnan(g) for g in grad(f, argnums=(0, 1))(np.float32(p), np.float32(q)))


MASKS = [[True, True, False], [False, True, False], [False, False, False], [True, True, True]]


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("hidden", [0.0, 3e4, -3e4, INF, -INF, np.nan])
def test_elements_that_do_not_count_are_no_matter_to_derivatives(mask, hidden):
    mask = np.array(mask)
    x = np.where(mask, np.array([0.3, -0.7, 1.1]), hidden)
    seen = x[mask]
    b = np.array([0.5, 2.0, 1.5])
    want = {
        "logsumexp": np.exp(seen) / np.exp(seen).sum(),
        "weighted": b[mask] * np.exp(seen) / (b[mask] * np.exp(seen)).sum(),
        "logmeanexp": np.exp(seen) / np.exp(seen).sum(),
    }
    fs = {
        "logsumexp": lambda x: nn.logsumexp(x, where=mask),
        "weighted": lambda x: nn.logsumexp(x, b=b, where=mask),
        "logmeanexp": lambda x: nn.logmeanexp(x, where=mask),
    }
    for name, f in fs.items():
        if name == "logmeanexp" and not mask.any():
            continue  # a mean of nothing is nan
        got = np.asarray(grad(f)(x))
        np.testing.assert_allclose(got[mask], want[name], rtol=1e-6)
        assert (got[~mask] == 0).all()
    for f in (nn.softmax, nn.log_softmax):
        got = np.asarray(f(x, where=mask))
        share = np.exp(seen) / np.exp(seen).sum()
        outside = 0 if f is nn.softmax else -INF
        np.testing.assert_allclose(
            got[mask], share if f is nn.softmax else np.log(share), rtol=1e-6
        )
        assert (got[~mask] == outside).all()
        first = grad(lambda x: plait.numpy.where(mask, f(x, where=mask), 0)[1])(x)  # noqa: B023
        if mask[1]:
            jacobian = -share * share[list(seen).index(x[1])]
            jacobian[list(seen).index(x[1])] += share[list(seen).index(x[1])]
            if f is nn.log_softmax:
                jacobian = (np.arange(len(seen)) == list(seen).index(x[1])) - share
            np.testing.assert_allclose(np.asarray(first)[mask], jacobian, rtol=1e-6, atol=1e-9)
        assert (np.asarray(first)[~mask] == 0).all()
