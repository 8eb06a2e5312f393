"""Random numbers: known answers of the generator, the bits of jax.random, and distributions.

Invariant: the literals were drawn once with jax 0.10.2 and its default settings (64-bit ones with
x64 on), from key(42); whole numbers must agree exactly, floats to rounding.
"""

import numpy as np
import pytest

import plait
from plait import random
from plait.errors import SubscriptError, TypeRule
from plait.events import counting
from plait.ext import Aval
from plait.ext.control import scan
from plait.ext.ops.random import threefry2x32
from plait.ext.values import asarray
from plait.tree import flatten

KEY = random.key(42)
LOGITS = np.log(np.float32([[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]))
THREE = np.log(np.float32([0.1, 0.2, 0.7]))
FOUR = np.float32([0.1, 0.2, 0.3, 0.4])
GRID = np.arange(6).reshape(3, 2)


def host(x):
    is_key = plait.dtypes.issubdtype(x.dtype, plait.dtypes.prng_key)
    x = np.asarray(random.key_data(x) if is_key else x)
    return x.astype(np.float32) if x.dtype.name in ("bfloat16", "float16") else x


# ---- the generator -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "counter", "want"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_known_answers(key, counter, want):
    """The test vectors published with the paper."""
    words = [asarray(np.array([w], np.uint32)) for w in (*key, *counter)]
    got = threefry2x32(*words)
    assert [int(np.asarray(g)[0]) for g in got] == list(want)


def test_by_its_definition():
    """Twenty rounds in Python integers."""

    def threefry(k, x):
        m = 0xFFFFFFFF
        ks = [k[0], k[1], k[0] ^ k[1] ^ 0x1BD11BDA]
        a, b = (x[0] + ks[0]) & m, (x[1] + ks[1]) & m
        for r in range(20):
            n = (13, 15, 26, 6, 17, 29, 16, 24)[r % 8]
            a = (a + b) & m
            b = ((b << n) & m | b >> (32 - n)) ^ a
            if r % 4 == 3:
                s = r // 4 + 1
                a, b = (a + ks[s % 3]) & m, (b + ks[(s + 1) % 3] + s) & m
        return a, b

    words = np.random.default_rng(0).integers(0, 2**32, (4, 50), np.uint32)
    got = threefry2x32(*map(asarray, words))
    want = [threefry((int(a), int(b)), (int(c), int(d))) for a, b, c, d in words.T]
    np.testing.assert_array_equal(np.stack([np.asarray(g) for g in got], 1), want)


# ---- the bits of jax.random --------------------------------------------------------------------

# fmt: off
SAME = [
    ("split", (), {}, [1832780943, 270669613, 64467757, 2916123636]),
    ("split", (3,), {},
     [1832780943, 270669613, 64467757, 2916123636, 2465931498, 255383827]),
    ("split", ((2, 2),), {},
     [1832780943, 270669613, 64467757, 2916123636, 2465931498, 255383827, 3134548294, 894150801]),
    ("fold_in", (0,), {}, [1832780943, 270669613]),
    ("fold_in", (7,), {}, [2547012911, 1371500959]),
    ("fold_in", (2**32 - 1,), {}, [2398536845, 3890976714]),
    ("bits", (), {}, [2098992034]),
    ("bits", ((3,),), {}, [2098992034, 2919706841, 2646866425]),
    ("bits", ((2, 3),), {},
     [2098992034, 2919706841, 2646866425, 2409546199, 1935504149, 2516274904]),
    ("bits", ((4,), "uint8"), {}, [162, 217, 249, 215]),
    ("bits", ((4,), "uint16"), {}, [5026, 12505, 63993, 49623]),
    ("bits", ((3,), "uint64"), {},
     [7871734211187709741, 276886910877598708, 10591095138341673235]),
    ("bernoulli", (), {}, [True]),
    ("bernoulli", (0.3, (8,)), {}, [0, 0, 0, 0, 0, 0, 1, 0]),
    ("bernoulli", (0.3, (8,), "high"), {}, [0, 0, 0, 0, 0, 0, 1, 0]),
    ("permutation", (10,), {}, [7, 4, 2, 5, 3, 6, 8, 9, 0, 1]),
    ("permutation", (np.arange(5) * 10,), {}, [40, 20, 30, 0, 10]),
    ("permutation", (GRID,), {}, [4, 5, 0, 1, 2, 3]),
    ("permutation", (GRID, 1), {}, [0, 1, 2, 3, 4, 5]),
    ("permutation", (GRID, 0, True), {}, [4, 5, 2, 3, 0, 1]),
    ("categorical", (LOGITS,), {}, [2, 0]),
    ("categorical", (LOGITS, 0), {}, [1, 0, 0]),
    ("categorical", (THREE,), {"shape": (8,)}, [2, 2, 2, 2, 1, 2, 1, 2]),
    ("categorical", (THREE,), {"shape": (2,), "replace": False}, [2, 1]),
    ("randint", ((5,), 0, 10), {}, [4, 4, 1, 9, 9]),
    ("randint", ((2, 2), -7, 1000000), {}, [272394, 841674, 365660, 980521]),
    ("randint", ((6,), 0, 256, "uint8"), {}, [196, 18, 183, 193, 141, 107]),
    ("randint", ((6,), -128, 128, "int8"), {}, [68, -110, 55, 65, 13, -21]),
    ("randint", ((6,), -8, 8, "int4"), {}, [-4, -6, -1, -7, 5, 3]),
    ("randint", ((6,), 2, 16, "uint4"), {}, [10, 14, 13, 13, 7, 5]),
    ("randint", ((3,), 5, 5), {}, [5, 5, 5]),
    ("randint", ((3,), -(2**31), 2**31 - 1), {}, [977810628, 1236381714, -1367112521]),
    ("randint", ((4,), 0, 50000, "uint32"), {}, [32644, 914, 18071, 22369]),
    ("randint", ((3,), 0, 10**15, "int64"), {},
     [679464050701877, 242604979476158, 727848944880791]),
    ("randint", ((3,), -5, 2**63 - 1, "int64"), {},
     [4466307427195926060, 869870568124700341, 1104727848944880786]),
    ("rademacher", ((8,),), {}, [1, -1, -1, -1, 1, -1, 1, -1]),
    ("choice", (10, (4,)), {}, [4, 4, 1, 9]),
    ("choice", (10, (4,), False), {}, [7, 4, 2, 5]),
    ("choice", (4, (6,), True, FOUR), {}, [2, 2, 2, 2, 2, 2]),
    ("choice", (4, (3,), False, FOUR), {}, [3, 2, 1]),
    ("choice", (GRID * 1.0, (2,)), {}, [0.0, 1.0, 0.0, 1.0]),
]
CLOSE = [
    ("uniform", (), {}, [0.48870957]),
    ("uniform", ((4,),), {}, [0.48870957, 0.6797972, 0.6162715, 0.5610161]),
    ("uniform", ((2, 2), "float16"), {}, [0.076171875, 0.19042969, 0.97558594, 0.75683594]),
    ("uniform", ((4,), "bfloat16"), {}, [0.6328125, 0.84375, 0.96875, 0.8359375]),
    ("uniform", ((3,), "float32", -2.0, 5.0), {}, [1.420967, 2.7585802, 2.3139005]),
    ("uniform", ((3,), "float64"), {},
     [0.4267275666499091, 0.015010069515314584, 0.5741444178995352]),
    ("normal", (), {}, [-0.028304616]),
    ("normal", ((5,),), {}, [-0.028304616, 0.46713185, 0.29570296, 0.15354592, -0.12403282]),
    ("normal", ((2, 2),), {}, [-0.028304616, 0.46713185, 0.29570296, 0.15354592]),
    ("normal", ((3,), "float16"), {}, [-1.4296875, -0.8754883, 1.9746094]),
    ("normal", ((3,), "bfloat16"), {}, [0.34375, 1.015625, 1.890625]),
    ("normal", ((2,), "complex64"), {},
     [0.05368746072053909 + 0.4283398389816284j, -0.34389618039131165 + 0.5650094747543335j]),
    ("normal", ((3,), "float64"), {},
     [-0.18471174528191162, -2.169824560397754, 0.18693555179382582]),
    ("normal", ((2,), "complex128"), {},
     [-0.5093295292642132 + 0.45954304860759587j, -0.18428781404443714 + 0.08377702715980621j]),
    ("exponential", ((4,),), {}, [0.6708175, 1.1388006, 0.95782, 0.8232925]),
    ("exponential", ((2,), "float64"), {}, [0.5563942243855916, 0.015123860720489336]),
    ("gumbel", ((4,),), {}, [0.3340934, 0.95201945, 0.72553056, 0.5481715]),
    ("gumbel", ((4,),), {"mode": "high"}, [0.399258, -0.12997562, 0.043095414, 0.19444373]),
    ("laplace", ((4,),), {}, [0.022839652, -0.44565356, -0.2646729, -0.13014539]),
    ("logistic", ((4,),), {}, [-0.045169413, 0.7528398, 0.47375232, 0.24528676]),
    ("cauchy", ((4,),), {}, [-0.03548463, 0.6337261, 0.38244057, 0.1940707]),
    ("truncated_normal", (-1.0, 2.0, (4,)), {}, [0.14770006, 0.5684449, 0.4210255, 0.29997]),
]
# fmt: on


def title(case):
    return f"{case[0]}{case[1]}{case[2] or ''}"[:60]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("case", SAME, ids=title)
def test_same_whole_numbers(case):
    name, args, how, want = case
    f = getattr(random, name)
    np.testing.assert_array_equal(host(f(KEY, *args, **how)).ravel(), want)
    np.testing.assert_array_equal(host(plait.jit(lambda k: f(k, *args, **how))(KEY)).ravel(), want)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("case", CLOSE, ids=title)
def test_same_floats(case):
    name, args, how, want = case
    f = getattr(random, name)
    wide = "64" in str(args) or "128" in str(args)
    for got in (f(KEY, *args, **how), plait.jit(lambda k: f(k, *args, **how))(KEY)):
        np.testing.assert_allclose(host(got).ravel(), want, rtol=1e-13 if wide else 3e-6)


def test_long_permutation():
    """More than one round of sorting."""
    p = host(random.permutation(KEY, 3000))
    assert p[:8].tolist() == [2629, 116, 2048, 2566, 2509, 255, 444, 1443]
    np.testing.assert_array_equal(np.sort(p), np.arange(3000))


@pytest.mark.parametrize(
    ("seed", "want"),
    [
        (0, (0, 0)),
        (-1, (0, 2**32 - 1)),
        (2**31, (0, 2**31)),
        (2**32 - 1, (0, 2**32 - 1)),
        (2**40 + 17, (256, 17)),
        (-(2**40), (2**32 - 256, 0)),
        (np.int8(-3), (0, 2**32 - 3)),
        (np.uint64(2**63), (2**31, 0)),
    ],
)
def test_seeds(seed, want):
    assert host(random.key(seed)).tolist() == list(want)
    assert np.asarray(random.PRNGKey(seed)).tolist() == list(want)
    if not isinstance(seed, int):
        assert host(plait.jit(random.key)(asarray(np.asarray(seed)))).tolist() == list(want)


# ---- distributions -------------------------------------------------------------------------------

N = 40000
MOMENTS = {  # mean and variance
    "uniform": (lambda k: random.uniform(k, (N,), minval=-1.0, maxval=3.0), 1.0, 16 / 12),
    "normal": (lambda k: random.normal(k, (N,)), 0.0, 1.0),
    "exponential": (lambda k: random.exponential(k, (N,)), 1.0, 1.0),
    "gumbel": (lambda k: random.gumbel(k, (N,)), 0.5772157, np.pi**2 / 6),
    "gumbel high": (lambda k: random.gumbel(k, (N,), mode="high"), 0.5772157, np.pi**2 / 6),
    "laplace": (lambda k: random.laplace(k, (N,)), 0.0, 2.0),
    "logistic": (lambda k: random.logistic(k, (N,)), 0.0, np.pi**2 / 3),
    "bernoulli": (lambda k: random.bernoulli(k, 0.3, (N,)), 0.3, 0.21),
    "bernoulli high": (lambda k: random.bernoulli(k, 0.3, (N,), "high"), 0.3, 0.21),
    "rademacher": (lambda k: random.rademacher(k, (N,)), 0.0, 1.0),
    "randint": (lambda k: random.randint(k, (N,), -3, 8), 2.0, 10.0),
    "choice": (lambda k: random.choice(k, 4, (N,), p=FOUR), 2.0, 1.0),
    "categorical": (lambda k: random.categorical(k, np.log(FOUR), shape=(N,)), 2.0, 1.0),
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", MOMENTS)
def test_moments(name):
    draw, mean, variance = MOMENTS[name]
    x = host(draw(random.key(1))).astype(np.float64)
    assert abs(x.mean() - mean) < 5 * np.sqrt(variance / N)
    assert abs(x.var() / variance - 1) < 0.06


def test_ranges():
    u = host(random.uniform(KEY, (N,), minval=2.0, maxval=3.0))
    assert u.min() >= 2.0 and u.max() < 3.0
    n = host(random.randint(KEY, (N,), -2, 3))
    assert sorted(set(n.tolist())) == [-2, -1, 0, 1, 2]
    t = host(random.truncated_normal(KEY, -0.5, 0.25, (N,)))
    assert t.min() > -0.5 and t.max() < 0.25
    assert np.isfinite(host(random.normal(KEY, (N,), "float16"))).all()
    assert (abs(host(random.cauchy(KEY, (N,)))) > 1).mean() == pytest.approx(0.5, abs=0.02)


def test_parameters_broadcast():
    low = np.float32([0, 10, 20])
    u = host(random.uniform(KEY, (1000, 3), minval=low, maxval=low + 1))
    np.testing.assert_array_equal(np.floor(u), np.broadcast_to(low, (1000, 3)))
    p = np.float32([0.0, 1.0])
    assert host(random.bernoulli(KEY, p)).tolist() == [False, True]
    assert random.truncated_normal(KEY, low - 1, 30.0).shape == (3,)
    n = host(random.randint(KEY, (100, 2), np.array([0, 50]), np.array([1, 51])))
    assert (n == [0, 50]).all()


def test_categories_without_repeating():
    draws = host(random.categorical(KEY, np.zeros((5, 7)), shape=(7, 5), replace=False))
    for column in draws.T:
        assert sorted(column) == list(range(7))
    with pytest.raises(TypeRule, match="8 samples without replacement of 7"):
        random.categorical(KEY, np.zeros(7), shape=(8,), replace=False)
    with pytest.raises(TypeRule, match="must end in"):
        random.categorical(KEY, np.zeros((5, 7)), shape=(3,))


def test_places_do_not_depend_on_how():
    """The first numbers of a long draw along one axis are those of a shorter one."""
    long = host(random.bits(KEY, (1000,)))
    np.testing.assert_array_equal(host(random.bits(KEY, (10,))), long[:10])
    np.testing.assert_array_equal(host(random.bits(KEY, (20, 50))), long.reshape(20, 50))


def test_nothing_and_empty():
    assert random.normal(KEY, (0, 3)).shape == (0, 3)
    assert random.split(KEY, 0).shape == (0,)
    assert random.permutation(KEY, 0).shape == (0,)
    assert random.choice(KEY, np.ones((2, 3)), (0,), axis=1).shape == (2, 0)
    with pytest.raises(TypeRule, match="choice of 3 out of 2"):
        random.choice(KEY, 2, (3,), replace=False)


# ---- keys -----------------------------------------------------------------------------------


def test_keys_are_arrays_of_keys():
    keys = random.split(KEY, (4, 3))
    assert keys.shape == (4, 3) and keys.ndim == 2 and keys.size == 12 and len(keys) == 4
    assert repr(keys.dtype) == "key<fry>" and repr(KEY) == "Array((), dtype=key<fry>) over [ 0 42]"
    words = host(keys)
    for index in (0, -1, (1, 2), (slice(None), 0), slice(1, 3), (None, 0)):
        np.testing.assert_array_equal(host(keys[index]), words[index])
    np.testing.assert_array_equal(host(keys[..., 1]), words[:, 1])
    np.testing.assert_array_equal(host(keys.reshape(-1)), words.reshape(12, 2))
    a, b, c = keys[0]
    np.testing.assert_array_equal(host(b), words[0, 1])
    assert np.asarray(keys == keys).all() and not np.asarray(keys[0] != keys[0]).any()
    with pytest.raises(SubscriptError, match="too many indices: 3 for an array of 2 axes"):
        keys[0, 0, 0]
    with pytest.raises(SubscriptError):
        KEY[0]
    with pytest.raises(TypeError):
        len(KEY)


def test_keys_are_trees():
    leaves, structure = flatten({"k": KEY})
    assert leaves == [KEY] and structure.unflatten([1]) == {"k": 1}

    def turn(key, _):
        key, used = random.split(key)
        return key, random.normal(used)

    last, xs = scan(turn, KEY, None, length=3)
    key, want = KEY, []
    for _ in range(3):
        key, used = random.split(key)
        want.append(float(random.normal(used)))
    np.testing.assert_allclose(np.asarray(xs), want, rtol=1e-6)
    np.testing.assert_array_equal(host(last), host(key))
    rows = scan(lambda c, k: (c, random.bits(k)), 0, random.split(KEY, 4))[1]
    np.testing.assert_array_equal(
        np.asarray(rows), [host(random.bits(k)) for k in random.split(KEY, 4)]
    )


def test_words_for_keys():
    raw = random.PRNGKey(42)
    np.testing.assert_array_equal(host(random.bits(raw, (3,))), host(random.bits(KEY, (3,))))
    assert random.split(raw).dtype == np.uint32 and random.fold_in(raw, 1).shape == (2,)
    wrapped = random.wrap_key_data(random.key_data(KEY))
    np.testing.assert_array_equal(host(wrapped), host(KEY))
    assert random.key_impl(KEY) == "threefry2x32"
    np.testing.assert_array_equal(host(random.clone(KEY)), host(KEY))
    with pytest.raises(TypeRule, match="not words of keys"):
        random.wrap_key_data(np.zeros(2, np.float32))


@pytest.mark.parametrize(
    "f",
    [
        lambda: KEY + 1,
        lambda: np.float32(2) * KEY,
        lambda: np.ones(2) - KEY,
        lambda: asarray(np.ones(2)) * KEY,
        lambda: -KEY,
        lambda: bool(KEY),
        lambda: np.asarray(KEY),
        lambda: KEY < KEY,
    ],
)
def test_keys_are_no_numbers(f):
    with pytest.raises(TypeRule, match="a key of shape .* is not a number") as e:
        f()
    assert "plait.random.normal(key, shape)" in str(e.value)


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (lambda: random.normal(0), "int 0 is not a key"),
        (lambda: random.normal(np.zeros(2)), "is not a key"),
        (lambda: random.normal(random.split(KEY)), r"takes one key, not an array of keys"),
        (lambda: random.normal(KEY, (2,), int), "normal does not draw int32"),
        (lambda: random.uniform(KEY, (2,), "complex64"), "uniform does not draw complex64"),
        (lambda: random.bits(KEY, (2,), "int32"), "bits are unsigned"),
        (lambda: random.randint(KEY, (2,), 0, 5, "float32"), "randint does not draw float32"),
        (lambda: random.key(1.5), "a seed is an integer"),
        (lambda: random.key(0, impl="lcg"), "no generator 'lcg'"),
        (lambda: random.fold_in(KEY, 0.5), "fold_in takes an integer"),
        (lambda: random.bernoulli(KEY, mode="medium"), "no mode 'medium'"),
        (lambda: random.permutation(KEY, 2.5), "permutation of"),
        (lambda: random.choice(KEY, 4, (2,), p=np.ones(3)), "for 4 elements"),
    ],
)
def test_refused(f, text):
    with pytest.raises(TypeRule, match=text) as e:
        f()
    assert "test_random.py" in str(e.value)


def test_drawing_again_compiles_nothing():
    keys = random.split(KEY, 5)
    first = keys[0]
    random.normal(first, (3,)), random.randint(first, (3,), 0, 5), random.fold_in(first, 0)
    random.uniform(first, (3,), minval=0.5), list(random.split(first))
    with counting() as seen:
        for i, k in enumerate(keys):
            random.normal(k, (3,)), random.randint(k, (3,), i, 9 + i), random.fold_in(k, i)
            random.uniform(k, (3,), minval=(i + 1) / 10), list(random.split(k))
    assert seen["compile"] == 0


def test_type_rule():
    u = Aval((3,), np.uint32)
    for bad in (Aval((3,), np.int32), Aval((2,), np.uint32)):
        with pytest.raises(TypeRule, match="must be uint32 of one shape"):
            threefry2x32.infer((u, u, bad, u), {})


# ---- the generator of the device -----------------------------------------------------------------


def test_keys_of_the_device():
    """What jax.random gives on the CPU for key(7, impl="unsafe_rbg")."""
    k = random.key(7, impl="unsafe_rbg")
    assert random.key_impl(k) == "unsafe_rbg" and k.dtype is random.key_dtype("unsafe_rbg")
    assert (random.key(7, dtype=k.dtype) == k).item() and random.key_dtype() is KEY.dtype
    assert host(random.split(k, 3)).tolist() == [
        [3109483441, 1367189518, 2515982561, 3310080778],
        [3848958661, 3271070264, 2639373597, 23941900],
        [284021501, 2052574751, 3806814422, 128699926],
    ]
    assert host(random.fold_in(k, 5)).tolist() == [3810769997, 2355009018, 1837142617, 748193193]
    assert host(random.bits(k, (3,))).tolist() == [3109483441, 1367189518, 2515982561]
    ends = plait.jit(
        lambda k: scan(lambda c, _: (random.split(c)[0], random.fold_in(c, 3)), k, None, 2)
    )
    c, ys = ends(k)
    assert (ys[1] == random.fold_in(random.split(k)[0], 3)).item()
    assert (c == random.split(random.split(k)[0])[0]).item()
    again = random.wrap_key_data(random.key_data(k), dtype=k.dtype)
    assert (again == k).item()
    with pytest.raises(TypeRule, match="say the same thing"):
        random.key(0, impl="rbg", dtype=k.dtype)


def test_rng_bit_generator():
    """As jax.lax.rng_bit_generator on the CPU; Philox and Threefry are the same everywhere."""
    draw, how = plait.lax.rng_bit_generator, plait.lax.RandomAlgorithm
    words = np.arange(4, dtype=np.uint32)
    for algorithm, after, want in (
        (how.RNG_PHILOX, [0, 1, 3, 3], [895509795, 3230209149, 3834998268]),
        (how.RNG_THREE_FRY, [0, 1, 4, 3], [2689575991, 2205648888, 150810639]),
    ):
        state, got = draw(words, (3,), algorithm=algorithm)
        assert (host(state).tolist(), host(got).tolist()) == (after, want)
        wide = draw(words.view(np.uint64), (3,), algorithm=int(algorithm))
        assert host(wide[0]).tolist() == np.uint32(after).view(np.uint64).tolist()
        assert host(wide[1]).tolist() == want
    assert host(draw(words, (3,), "uint8")[1]).tolist() == [35, 125, 252]
    for bad in (words[:3], words.astype(np.int32), words.reshape(2, 2), np.ones(4), KEY):
        with pytest.raises(TypeRule, match="rng_bit_generator"):
            draw(bad, (2,))
    for more in (dict(dtype=np.float32), dict(algorithm="lcg"), dict(algorithm=3)):
        with pytest.raises(TypeRule, match="algorithm|float32"):
            draw(words, (2,), **more)
    with pytest.raises(TypeRule, match="is not a state"):
        draw(np.arange(6, dtype=np.uint32), (2,), algorithm=how.RNG_THREE_FRY)


def test_dtypes_of_keys_have_a_type():
    """A class with a name, as dtypes of numbers have: what annotations of arrays ask for."""
    for impl in ("threefry2x32", "rbg"):
        dtype = plait.random.key(0, impl=impl).dtype
        assert dtype.type is plait.dtypes.prng_key and dtype.type.__name__ == "prng_key"
        assert plait.dtypes.issubdtype(dtype, dtype.type)
    other = plait.ext.types.Opaque("thing<of_this_test>", family="thing")
    assert other.type is not plait.dtypes.prng_key and issubclass(plait.dtypes.prng_key, other.type)
