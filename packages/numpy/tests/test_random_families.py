"""Samplers of families with parameters: the bits of jax.random, and the distributions.

Invariant: the literals were drawn once with jax 0.10.2 and its default settings, from key(42);
whole numbers must agree exactly, floats to rounding.
"""

import numpy as np
import pytest
import scipy.stats as ss

import plait
from plait import random
from plait.errors import TypeRule

KEY = random.key(42)
F32 = np.float32
COV, MEAN = np.array([[2.0, 0.5], [0.5, 1]], F32), np.array([1.0, -1], F32)

RECORDED = [
    ("gamma", (2.5,), [4.378075, 1.500786, 4.194111], ss.gamma(2.5)),
    ("gamma", (0.3,), [0.4362474, 0.3200987, 1.03847], ss.gamma(0.3)),
    ("loggamma", (0.01,), [-53.09775, -17.20119, -25.39408], None),
    ("beta", (2.0, 3.0), [0.4319618, 0.3128183, 0.6368728], ss.beta(2, 3)),
    ("chisquare", (3.0,), [5.870714, 1.397851, 5.559423], ss.chi2(3)),
    ("f", (3.0, 5.0), [0.7283635, 0.3569255, 0.2356074], ss.f(3, 5)),
    ("t", (3.0,), [0.08987478, -1.735747, 2.352019], ss.t(3)),
    ("generalized_normal", (3.0,), [-0.6937109, -0.2762445, 0.8334612], ss.gennorm(3)),
    ("pareto", (3.0,), [1.250578, 1.4617, 1.376127], ss.pareto(3)),
    ("lognormal", (0.7,), [0.9803818, 1.386791, 1.229973], ss.lognorm(0.7)),
    ("rayleigh", (2.0,), [2.393302, 1.757181, 1.967877], ss.rayleigh(scale=2)),
    ("weibull_min", (2.0, 3.0), [1.75078, 2.088555, 1.971475], ss.weibull_min(3, scale=2)),
    ("maxwell", (), [0.5535825, 0.2932851, 1.708603], ss.maxwell()),
    ("double_sided_maxwell", (1.0, 2.0), [-1.762043, -0.351378, 5.444043], None),
    ("triangular", (0.0, 0.3, 2.0), [0.6815208, 0.9565971, 0.8577754], ss.triang(0.15, scale=2)),
    ("wald", (2.0,), [2.226588, 3.927712, 0.3894753], ss.invgauss(2)),
]


@pytest.mark.sampled(16)
@pytest.mark.parametrize(("name", "parameters", "want", "law"), RECORDED)
def test_floats(name, parameters, want, law):
    """An element does not depend on how many there are: the first ones are those recorded."""
    x = np.asarray(getattr(random, name)(KEY, *parameters, (4000,)))
    assert x.dtype == F32
    np.testing.assert_allclose(x[:3], want, 2e-5)
    assert law is None or ss.kstest(x.astype(np.float64), law.cdf).pvalue > 1e-3


PARAMETERS = [(name, parameters) for name, parameters, *_ in RECORDED if parameters] + [
    ("ball", (2, 2.0)), ("bernoulli", (0.5,)), ("binomial", (5.0, 0.5)),
    ("categorical", (F32([0.5, 0.5]),)), ("choice", (2, (2,), True, F32([0.5, 0.5]))),
    ("dirichlet", (F32([1, 2]),)), ("geometric", (0.5,)),
    ("multinomial", (20.0, F32([0.5, 0.5]))), ("multivariate_normal", (MEAN, COV)),
    ("poisson", (3.0,)), ("randint", ((2,), 0, 5)), ("truncated_normal", (-1.0, 1.0)),
    ("uniform", ((2,), F32, 0.0, 2.0)),
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "parameters"), PARAMETERS)
def test_complex_parameters_are_refused(name, parameters):
    """Their imaginary parts would be dropped without a word."""
    draw, given = getattr(random, name), [*parameters]
    places = [i for i, p in enumerate(given) if isinstance(p, float | np.ndarray)]
    places = places or [1, 2]  # the bounds of integers
    np.asarray(draw(KEY, *given))
    for i in places:
        one = np.asarray(given[i])
        for wrong in (one + 1j, complex(one.flat[0], 1), random.normal(KEY, one.shape, "c8")):
            wrong = wrong if np.ndim(wrong) == one.ndim else np.full(one.shape, wrong)
            with pytest.raises(TypeRule, match="must be real"):
                draw(KEY, *given[:i], wrong, *given[i + 1 :])


@pytest.mark.parametrize("n, m", [(3, 3), (2, 4), (4, 2), (0, 2)])
def test_unitary_matrices(n, m):
    q = np.asarray(random.orthogonal(KEY, n, (5,), "complex64", m))
    assert q.shape == (5, n, m) and q.dtype == np.complex64
    h = np.conj(np.swapaxes(q, -1, -2))
    one = np.broadcast_to(np.eye(min(n, m)), (5, min(n, m), min(n, m)))
    np.testing.assert_allclose(q @ h if n <= m else h @ q, one, atol=1e-5)


def test_phases_of_unitary_matrices_are_uniform():
    q = np.asarray(random.orthogonal(KEY, 2, (4000,), "complex64"))
    phases = (np.angle(q).astype(np.float64) / (2 * np.pi)) % 1
    for at in np.ndindex(2, 2):
        assert ss.kstest(phases[(slice(None), *at)], "uniform").pvalue > 1e-3
    # |q_ij|^2 is uniform for 2 x 2 unitary matrices
    assert ss.kstest(np.abs(q[:, 0, 0]).astype(np.float64) ** 2, "uniform").pvalue > 1e-3


def test_recorded_vectors():
    close = lambda x, want: np.testing.assert_allclose(np.asarray(x), want, 3e-5)  # noqa: E731
    close(random.dirichlet(KEY, F32([1, 2, 3])), [0.26473245, 0.1347997, 0.60046774])
    close(random.ball(KEY, 2, 2.0, (2,)), [[0.3234561, 0.06134896], [0.015618555, 0.47010365]])
    close(random.multivariate_normal(KEY, MEAN, COV), [0.95997125, -0.57304537])
    close(random.orthogonal(KEY, 2), [[-0.09528422, 0.99545008], [0.99545008, 0.09528429]])
    got = random.multinomial(KEY, 20.0, F32([0.1, 0.2, 0.3, 0.4]), shape=(2, 4))
    assert got.tolist() == [[1, 2, 4, 13], [2, 6, 7, 5]]


def test_whole_numbers():
    """By either method, and at the edges."""
    got = random.poisson(KEY, F32([0, -1, np.nan, 1e6, 1e12, 3, 40]))
    assert got.dtype == np.int32
    assert got.tolist() == [0, -1, -1, 999286, 2**31 - 1, 2, 36]
    n = F32([0, 10, 10, -1, 10, np.nan, 10, 1000, 100, 10])
    p = F32([0.5, 0, 1, 0.5, -0.1, 0.5, 1.2, 0.7, 0.01, 0.3])
    want = [0, 0, 10, np.nan, np.nan, np.nan, np.nan, 721, 0, 4]
    np.testing.assert_array_equal(np.asarray(random.binomial(KEY, n, p)), want)
    assert random.geometric(KEY, 0.3, (3,)).tolist() == [3, 2, 2]
    assert random.geometric(KEY, 1.0).item() == 1


def test_edges_of_gamma():
    a = np.asarray(random.gamma(KEY, F32([-1, 0, np.nan, 1])))
    assert np.isnan(a[[0, 2]]).all() and a[1] == 0 and a[3] > 0


# ---- distributions ---------------------------------------------------------------------------

LAWS = {
    "poisson": ((F32([[3], [25]]),), (ss.poisson(3), ss.poisson(25))),
    "binomial": ((60.0, F32([[0.9], [0.4]])), (ss.binom(60, 0.9), ss.binom(60, 0.4))),
    "geometric": ((F32([[0.3]]),), (ss.geom(0.3),)),
}


@pytest.mark.parametrize("name", LAWS)
def test_distribution_of_whole_numbers(name):
    parameters, laws = LAWS[name]
    size = 4000
    rows = np.asarray(getattr(random, name)(KEY, *parameters, (len(laws), size)), int)
    for x, law in zip(rows, laws):
        low, high = int(law.ppf(0.005)), int(law.ppf(0.995))
        counts = np.bincount(np.clip(x, low, high), minlength=high + 1)[low:]
        expected = law.pmf(np.arange(low, high + 1))
        expected[0], expected[-1] = law.cdf(low), law.sf(high - 1)
        assert ss.chisquare(counts, expected * size).pvalue > 1e-3


@pytest.mark.wide
def test_distribution_of_vectors():
    n = 2000
    for method in ("eigh", "svd"):
        x = np.asarray(random.multivariate_normal(KEY, MEAN, COV, (n,), method=method))
        np.testing.assert_allclose(x.mean(0), MEAN, atol=0.15)
        np.testing.assert_allclose(np.cov(x.T), COV, atol=0.2)
    x = np.asarray(random.ball(KEY, 3, 2.0, (n,)))
    assert ss.kstest((x * x).sum(-1) ** 1.5, "uniform").pvalue > 1e-3
    x = np.asarray(random.dirichlet(KEY, F32([1, 2, 3]), (n,)))
    np.testing.assert_allclose(x.sum(-1), 1, rtol=1e-5)
    assert ss.kstest(x[:, 1], ss.beta(2, 4).cdf).pvalue > 1e-3
    q = np.asarray(random.orthogonal(KEY, 3, (5,), m=4))
    eye = np.broadcast_to(np.eye(3), (5, 3, 3))
    np.testing.assert_allclose(q @ q.swapaxes(1, 2), eye, atol=1e-5)


# ---- what they are given -----------------------------------------------------------------------


def test_shapes_and_dtypes():
    def shape(f, *args, **kwargs):
        out = plait.eval_shape(lambda: f(KEY, *args, **kwargs))
        return (*out.shape, out.dtype.name)

    a, b = np.ones((2, 1), F32), np.ones(3, F32)
    assert shape(random.gamma, a) == (2, 1, "float32")
    assert shape(random.beta, a, b) == (2, 3, "float32")
    assert shape(random.gamma, a, (4, 2, 3)) == (4, 2, 3, "float32")
    assert shape(random.t, 2, dtype="float16") == ("float16",)
    assert shape(random.binomial, 3, a) == (2, 1, "float32")
    assert shape(random.poisson, a, dtype="int16") == (2, 1, "int16")
    assert shape(random.dirichlet, a * b) == (2, 3, "float32")
    assert shape(random.ball, 3, shape=(2,)) == (2, 3, "float32")
    assert shape(random.orthogonal, 3, (2,), m=4) == (2, 3, 4, "float32")
    assert shape(random.multivariate_normal, MEAN, COV, (5,)) == (5, 2, "float32")


def test_keys_as_words_and_inside_of_programs():
    want = np.asarray(random.gamma(KEY, 2.5, (3,), np.float64))
    words = random.key_data(KEY)
    inside = plait.jit(lambda k, v: random.gamma(k, v, (3,), np.float64))(words, np.float64(2.5))
    np.testing.assert_allclose(np.asarray(inside), want, 1e-14)


def test_errors():
    with pytest.raises(TypeRule, match="does not draw"):
        random.gamma(KEY, 1.0, dtype="int32")
    with pytest.raises(TypeRule, match="has no axis"):
        random.dirichlet(KEY, 1.0)
    with pytest.raises(TypeRule, match="for 3 categories"):
        random.multinomial(KEY, 3, np.ones(3, F32) / 3, shape=(2,))
    with pytest.raises(TypeRule, match="matrices of n times n"):
        random.multivariate_normal(KEY, MEAN, COV[0])
    with pytest.raises(TypeRule, match="has no method 'lu'"):
        random.multivariate_normal(KEY, MEAN, COV, method="lu")
    with pytest.raises(TypeRule, match="broadcast"):
        random.gamma(KEY, np.ones(3, F32), (2,))


WIDE = {
    "ball": [-0.212945, -0.015311, -0.691222, -0.390944, 0.648466, 0.519516],
    "generalized_normal": [0.008096, 0.690474, 0.320034, -0.286493, -0.719507],
    "rademacher": [-1, 1, -1, -1, 1, 1, 1, 1],
    "rademacher of float32": [-1, 1, -1, -1, 1, 1, 1, 1],
    "double_sided_maxwell": [3.038069, 4.685895, 3.508791, -2.76959, -2.048594],
    "poisson": [1, 2, 4, 3, 3, 1, 3, 1],
    "poisson of many": [271, 285, 275, 288, 276],
    "poisson of some": [0, 6, 43, 0, 0, 6, 45, 0, 0, 9, 41, 0],
}
NARROW = WIDE | {
    "ball": [0.206305, -0.151852, -0.94148, 0.642899, -0.277673, 0.584661],
    "generalized_normal": [0.251422, 0.520756, 1.935795, 0.607779, 0.840747],
    "rademacher": [1, -1, -1, 1, -1, -1, 1, 1],
    "rademacher of float32": [1, -1, -1, 1, -1, -1, 1, 1],
    "double_sided_maxwell": [3.784304, 3.765401, 5.835945, 4.518843, 4.778179],
}
DRAWS = {
    "ball": lambda r, k: r.ball(k, 3, shape=(2,)),
    "generalized_normal": lambda r, k: r.generalized_normal(k, 1.5, (5,)),
    "rademacher": lambda r, k: r.rademacher(k, (8,)),
    "rademacher of float32": lambda r, k: r.rademacher(k, (8,), "float32"),
    "double_sided_maxwell": lambda r, k: r.double_sided_maxwell(k, 1.0, 2.0, (5,)),
    "poisson": lambda r, k: r.poisson(k, 3.0, (8,)),
    "poisson of many": lambda r, k: r.poisson(k, 300.0, (5,)),
    "poisson of some": lambda r, k: r.poisson(k, np.float32([0.5, 9, 40, 0]), (3, 4)),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", DRAWS)
def test_bits_follow_the_default_dtypes_as_in_jax(name):
    """What jax.random gives for key(5) with and without its 64 bits."""
    for wide, want in ((True, WIDE), (False, NARROW)):
        with plait.enable_x64(wide):
            key = plait.random.key(5)
            for draw in (DRAWS[name], lambda r, k: plait.jit(lambda k: DRAWS[name](r, k))(k)):
                got = np.asarray(draw(plait.random, key), np.float64).ravel()
                np.testing.assert_allclose(got, want[name], atol=2e-6)
