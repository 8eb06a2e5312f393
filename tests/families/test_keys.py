"""Keys as elements of an opaque dtype: moved like numbers, made and spent by their generators.

Invariant: what an operation does to keys is judged by what numpy does to their words; bits of the
device's generator were drawn once with jax 0.10.2, from key(42, impl="rbg").
"""

import copy
import pickle

import numpy as np
import pytest

import plait
from plait import lax, random
from plait import numpy as pnp
from plait._ops.opaque import unwrap, wrap
from plait._xla.physical import laid_out
from plait.errors import DeletedArrayError, ProgramError
from plait.ext.errors import TypeRule
from plait.ext.ops.random import (
    random_bits,
    random_fold_in,
    random_seed,
    random_split,
    rng_bit_generator,
)
from plait.ext.types import Aval, Opaque
from plait.ext.values import asarray
from plait.lax import scan
from plait.text import parse, same_program, show

KEY = random.key(42)
KEYS = random.split(KEY, (4, 3))
WORDS = np.asarray(random.key_data(KEYS))
EVEN = np.arange(12).reshape(4, 3) % 2 == 0


def words(x):
    return np.asarray(random.key_data(x))


# ---- what moves elements -----------------------------------------------------------------------


def updated(w):
    new = w.copy()
    new[::2], new[1, 1:] = w[1], w[0, :2]
    return new


MOVES = {
    "reshape": (lambda x: x.reshape(6, 2), lambda w: w.reshape(6, 2, 2)),
    "transpose": (lambda x: x.T, lambda w: w.transpose(1, 0, 2)),
    "broadcast": (lambda x: pnp.broadcast_to(x[0], (2, 3)), lambda w: np.stack([w[0], w[0]])),
    "squeeze": (lambda x: pnp.squeeze(x[None, :, None], (0, 2)), lambda w: w),
    "reverse": (lambda x: x[::-1, ::2], lambda w: w[::-1, ::2]),
    "concatenate": (lambda x: pnp.concatenate([x, x[:1]]), lambda w: np.concatenate([w, w[:1]])),
    "stack": (lambda x: pnp.stack([x[0], x[2]], 1), lambda w: np.stack([w[0], w[2]], 1)),
    "where": (lambda x: pnp.where(EVEN, x, x[::-1]),
              lambda w: np.where(EVEN[..., None], w, w[::-1])),
    "gather": (lambda x: x[np.array([3, 0]), 1:], lambda w: w[[3, 0], 1:]),
    "set": (lambda x: x.at[::2].set(x[1]).at[1, 1:].set(x[0, :2]), updated),
    "scatter": (lambda x: x.at[np.array([0, 2])].set(x[1]), lambda w: w[[1, 1, 1, 3]]),
    "pad": (lambda x: lax.pad(x[0], x[3, 2], [(1, 2, 1)]),
            lambda w: np.stack([w[3, 2] if i % 2 == 0 or i > 5 else w[0, i // 2]
                                for i in range(8)])),
    "dynamic slice": (lambda x: lax.dynamic_slice(x, (1, 1), (2, 2)), lambda w: w[1:3, 1:3]),
    "scan": (lambda x: scan(lambda c, k: (k[0], c), x[0, 0], x)[1],
             lambda w: np.concatenate([w[:1, 0], w[:-1, 0]])),
    "map": (lambda x: lax.map(lambda k: k[::-1], x), lambda w: w[:, ::-1]),
    "cond": (lambda x: lax.cond(x[0, 0] == x[0, 0], lambda a, b: a, lambda a, b: b, x, x[::-1]),
             lambda w: w),
    "switch": (lambda x: lax.switch(1, [lambda a: a[0], lambda a: a[1]], x), lambda w: w[1]),
    "while": (lambda x: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1][::-1]),
                                       (0, x[0]))[1], lambda w: w[0]),
    "permutation": (lambda x: random.permutation(KEY, x),
                    lambda w: w[np.asarray(random.permutation(KEY, 4))]),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_moved_as_words_are(name):
    f, reference = MOVES[name]
    want = reference(WORDS)
    got = f(KEYS)
    assert got.dtype is KEY.dtype and got.shape == want.shape[:-1]
    np.testing.assert_array_equal(words(got), want)
    np.testing.assert_array_equal(words(plait.jit(f)(KEYS)), want)


def test_as_arguments_and_results():
    assert KEY.dtype.name == "key<fry>" and KEY.dtype.itemsize == 8 and KEYS.nbytes == 96
    assert plait.dtypes.issubdtype(KEY.dtype, plait.dtypes.prng_key)
    assert plait.dtypes.issubdtype(plait.dtypes.prng_key, plait.dtypes.opaque)
    assert not plait.dtypes.issubdtype(KEY.dtype, pnp.integer)
    assert not plait.dtypes.issubdtype("uint32", plait.dtypes.prng_key)
    out = plait.jit(lambda d: {"b": d["a"], "n": random.split(d["a"])})({"a": KEY})
    assert (out["b"] == KEY).item() and (out["n"] != KEY).tolist() == [True, True]
    like = plait.eval_shape(lambda k: random.split(k, 5), plait.ShapeDtypeStruct((), KEY.dtype))
    assert like == plait.ShapeDtypeStruct((5,), KEY.dtype)
    assert repr(KEYS[0, :1]) == f"Array((1,), dtype=key<fry>) over\n{WORDS[0, :1]}"
    for again in (pickle.loads(pickle.dumps(KEYS)), copy.deepcopy(KEYS)):
        assert (again == KEYS).all() and again.dtype is KEYS.dtype
    twice = plait.jit(lambda: random.normal(KEYS[0, 0]))  # a key that is closed over
    np.testing.assert_array_equal(twice(), random.normal(KEYS[0, 0]))


@pytest.mark.feature("C14")
def test_spent_by_donating():
    once = plait.jit(random.uniform, donate_argnums=0)
    key = random.key(7)
    assert 0 <= float(once(key)) < 1
    with pytest.raises(DeletedArrayError):
        once(key)


REFUSED = {
    "sum": lambda: pnp.sum(KEYS), "sort": lambda: pnp.sort(KEYS[0]), "sin": lambda: pnp.sin(KEY),
    "astype": lambda: KEY.astype("float32"), "to keys": lambda: asarray(1).astype(KEY.dtype),
    "add at": lambda: KEYS.at[0].add(KEYS[0]), "stack": lambda: pnp.stack([KEY, 1.0]),
    "where": lambda: pnp.where(True, KEY, 1), "item": lambda: KEY.item(),
    "jit": lambda: plait.jit(lambda k: k * 2)(KEY), "product": lambda: KEYS[0] @ KEYS[0],
    "ones": lambda: pnp.ones_like(KEY),
    "scatter": lambda: KEYS.at[np.array([0])].max(KEYS[1]), "cumsum": lambda: pnp.cumsum(KEYS[0]),
    "other": lambda: pnp.where(True, KEY, random.key(0, impl="rbg")),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_no_arithmetic(name):
    with pytest.raises(TypeRule, match="a key of shape .* is not a number") as e:
        REFUSED[name]()
    assert "test_keys.py" in str(e.value) and "plait.random.normal(key, shape)" in str(e.value)


# ---- generators --------------------------------------------------------------------------------


def test_the_generator_of_the_device():
    key = random.key(42, impl="rbg")
    assert key.dtype.name == "key<rbg>" and random.key_impl(key) == "rbg"
    assert words(key).tolist() == [0, 42, 0, 42]
    assert words(random.key(2**40 + 17, impl="rbg")).tolist() == [256, 17, 256, 17]
    bits = {
        "uint8": [210, 89, 227, 186],
        "uint16": [14546, 58969, 995, 41146],
        "uint32": [2620864722, 2991908441, 282133475, 2589630650],
        "uint64": [12850148909342210258, 11122378950751355875, 4595359157297867242,
                   4597825422712572712],
    }  # fmt: skip
    for dtype, want in bits.items():
        assert np.asarray(random.bits(key, (4,), dtype)).tolist() == want
    a, b = [1832780943, 270669613] * 2, [64467757, 2916123636] * 2
    assert words(random.split(key)).tolist() == [a, b]
    assert words(random.split(key, (2, 2)))[0].tolist() == [a, b]
    assert words(random.fold_in(key, 7)).tolist() == [2547012911, 1371500959] * 2
    want = [0.51466939, 0.26097828, -0.6772776]
    np.testing.assert_allclose(random.normal(key, (3,), "float64"), want, rtol=1e-7)
    again = random.wrap_key_data(random.key_data(key), impl="rbg")
    assert (again == key).item()
    keys = random.split(key, 3)  # each as if it were alone
    drawn = np.asarray(plait.vmap(lambda k: random.bits(k, (2,)))(keys))
    np.testing.assert_array_equal(drawn, [np.asarray(random.bits(k, (2,))) for k in keys])
    (n,) = plait.symbolic_dims("n")
    like = plait.ShapeDtypeStruct((n,), "int8")
    exported = plait.export.export(lambda x: random.bits(key, x.shape))(like)
    assert exported.call(np.zeros(4, np.int8)).tolist() == bits["uint32"]


def test_arrays_of_keys_at_once():
    for keys in (KEYS, random.split(random.key(3, impl="rbg"), (4, 3))):
        one = [[keys[i, j] for j in range(3)] for i in range(4)]
        numbers = asarray(np.arange(12, dtype=np.uint32).reshape(4, 3))
        got = words(random_fold_in.bind(keys, numbers))
        want = [[words(random.fold_in(one[i][j], 3 * i + j)) for j in range(3)] for i in range(4)]
        np.testing.assert_array_equal(got, want)
        got = words(random_split.bind(keys, shape=(2,)))
        want = [[words(random.split(k)) for k in row] for row in one]
        np.testing.assert_array_equal(got, want)
        got = np.asarray(random_bits.bind(keys, shape=(2,), dtype=np.dtype(np.uint32)))
        want = [[np.asarray(random.bits(k, (2,))) for k in row] for row in one]
        np.testing.assert_array_equal(got, want)
    seeds = np.array([-1, 2**40 + 17, -(2**40), 5])
    got = words(random_seed.bind(asarray(seeds), dtype=KEY.dtype))
    np.testing.assert_array_equal(got, [words(random.key(int(s))) for s in seeds])


@pytest.mark.parametrize(
    ("prim", "avals", "params", "text"),
    [
        (random_split, "u32[2]", {"shape": ()}, "is not a key"),
        (random_bits, "key<fry>[]", {"shape": (), "dtype": np.dtype("int32")}, "unsigned"),
        (random_fold_in, "key<fry>[3] u32[]", {}, "for key<fry>"),
        (random_seed, "f32[]", {"dtype": KEY.dtype}, "a seed is an integer"),
        (rng_bit_generator, "u32[3]",
         {"shape": (), "dtype": np.dtype("uint32"), "algorithm": "default"}, "is not a state"),
        (rng_bit_generator, "u64[2]",
         {"shape": (), "dtype": np.dtype("uint32"), "algorithm": "lcg"}, "by 'lcg'"),
    ],
)  # fmt: skip
def test_type_rules(prim, avals, params, text):
    types = {"key<fry>": KEY.dtype, "u32": "uint32", "u64": "uint64", "f32": "float32"}
    given = []
    for a in avals.split():
        dtype, _, shape = a[:-1].partition("[")
        given.append(Aval(tuple(map(int, filter(None, shape.split(",")))), types[dtype]))
    with pytest.raises(TypeRule, match=text):
        prim.infer(tuple(given), params)


# ---- opaque elements in general ----------------------------------------------------------------


def test_a_dtype_of_ones_own():
    money = Opaque("money<cents>", (), "int64", "sum of money", "take it apart with unwrap")
    assert Opaque("money<cents>", (), "int64", "sum of money", "take it apart with unwrap") is money
    with pytest.raises(TypeRule, match="is not the name of a dtype"):
        Opaque("money")
    assert pnp.dtype(money) is money and pnp.dtype(KEY) is KEY.dtype
    with pytest.raises(TypeRule, match="another dtype"):
        Opaque("money<cents>", (3,), "int64")
    cents = np.array([5, 1200, -3])
    xs = wrap(cents, money)
    assert xs.aval.physical is Aval((3,), "int64") and repr(xs.aval) == "money<cents>[3]"
    np.testing.assert_array_equal(unwrap(plait.jit(lambda x: x[::-1])(xs)), cents[::-1])
    assert (xs == xs[::-1]).tolist() == [False, True, False]
    with pytest.raises(TypeRule, match="a sum of money of shape .* is not a number") as e:
        xs * 2
    assert "take it apart with unwrap" in str(e.value)
    with pytest.raises(TypeRule, match="are no money<cents>"):
        wrap(np.float32(1), money)
    with pytest.raises(TypeRule, match="has no opaque elements"):
        unwrap(cents)
    assert pickle.loads(pickle.dumps(money)) is money


def test_laid_out():
    """Programs without keys are left alone; others speak of their words."""
    plain = plait.make_program(pnp.sin)(1.0)
    assert laid_out(plain) is plain
    program = plait.make_program(lambda k: (random.split(k)[0], KEYS))(KEY)
    laid = laid_out(program)
    assert [repr(a) for a in laid.in_avals] == ["u32[2]"] and laid_out(program) is laid
    assert [repr(a) for a in laid.out_avals] == ["u32[2]", "u32[4,3,2]"]
    assert "key" not in show(laid)


def test_text():
    def f(k, x):
        ends = scan(lambda c, k: (random.fold_in(c, 1), random.bits(k)), k, KEYS[0])
        return random.wrap_key_data(x), pnp.where(True, k, KEY), ends, KEYS

    program = plait.make_program(f)(KEY, np.zeros(2, np.uint32))
    text = show(program)
    assert "%0: key<fry>[]" in text and "= [0, 42]" in text and "dtype=key<fry>" in text
    again = parse(text, [KEYS])
    assert same_program(program, again) and show(again) == text
    with pytest.raises(ProgramError, match="there is no dtype 'key<lcg>'"):
        parse("f(%0: key<lcg>[]) { return %0 }")


def test_where_numbers_are_made():
    assert words(pnp.zeros((2,), KEY.dtype)).tolist() == [[0, 0]] * 2
    assert (pnp.full((2,), KEY) == KEY).all() and (lax.stop_gradient(KEY) == KEY).item()
    tree = plait.device_get({"key": KEY, "x": pnp.ones(2)})
    assert tree["key"] is KEY and isinstance(tree["x"], np.ndarray)
