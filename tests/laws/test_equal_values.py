"""Values that are equal and differ, given one after the other to whatever keeps what it made.

Every way of giving a function a static value is one entry of `WAYS`; every way of giving a number
is one of `NUMBERS`.  Each is called in one process with values that Python takes for equal, in both
orders.

Invariant: the truth is what the user's function itself was given, told apart by its bytes when it
is pickled, or what numpy computes.
"""

import collections
import dataclasses
import decimal
import enum
import fractions
import itertools
import pickle
import struct

import numpy as np
import pytest

import plait
from plait import lax

pnp = plait.numpy


# ---- values --------------------------------------------------------------------------------------


class One(enum.IntEnum):
    ONE = 1
    ZERO = 0


class Word(enum.StrEnum):
    A = "a"


class Whole(int):
    pass


class Real(float):
    pass


class Text(str):
    __slots__ = ()


class Named(collections.namedtuple("Named", "a")):
    __slots__ = ()


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object


@dataclasses.dataclass(frozen=True)
class Deep:
    name: str
    inner: object


def a_nan(bits):
    return struct.unpack("d", struct.pack("q", 0x7FF8000000000000 + bits))[0]


PLAIN = {
    "ones": [1, True, 1.0, 1 + 0j, np.int32(1), np.int64(1), np.float32(1), np.float64(1),
             np.complex64(1), np.bool_(True), fractions.Fraction(1), decimal.Decimal(1),
             decimal.Decimal("1.0"), One.ONE, Whole(1), Real(1)],
    "zeros": [0.0, -0.0, 0, False, np.float16(0), np.float16(-0.0), np.float32(0),
              np.float32(-0.0), np.float64(0), np.float64(-0.0), Real(0), Real(-0.0),
              decimal.Decimal("0"), decimal.Decimal("-0"), One.ZERO, np.longdouble(0),
              np.longdouble(-0.0)],
    "complex": [complex(3, 0.0), complex(3, -0.0), 3.0, 3, np.complex64(complex(3, 0.0)),
                np.complex64(complex(3, -0.0)), np.complex128(complex(3, 0.0)),
                np.complex128(complex(3, -0.0))],
    "imaginary": [complex(0.0, 3), complex(-0.0, 3)],
    "texts": ["a", Word.A, Text("a"), np.str_("a")],
    "nans": [a_nan(0), a_nan(5), np.float64(a_nan(0)), np.float64(a_nan(5)), np.float32(np.nan)],
    "dates": [np.datetime64("2020-01-01", "D"), np.datetime64("2020-01-01", "s")],
    "ranges": [range(0, 3, 2), range(0, 4, 2)],
}  # fmt: skip
HOLDERS = {
    "bare": lambda v: v,
    "tuple": lambda v: ("s", v),
    "nested": lambda v: ((v,), None),
    "named": Named,
    "frozenset": lambda v: frozenset([v]),
    "dataclass": Frozen,
    "deep": lambda v: Deep("d", Frozen((v,))),
}
UNHASHABLE = {
    "list": lambda v: [v],
    "dict": lambda v: {"k": v},
    "of lists": lambda v: ([v], {"k": (v,)}),
}
"""Holders that metadata of trees may be, and static arguments may not."""


FEW = {k: HOLDERS[k] for k in ("bare", "deep")}


def told(value):
    """Return the bytes by which a value is told apart from others."""
    return type(value), pickle.dumps(value)


class Seen(set):
    """The values that the user's function received."""

    def see(self, value):
        self.add(told(value))


# ---- ways to give static values ------------------------------------------------------------------

X = pnp.ones(2)
F32 = plait.ShapeDtypeStruct((), np.float32)


class Tree:
    """One array, and metadata."""

    def __init__(self, a, m):
        self.a, self.m = a, m


plait.tree.register(Tree, lambda t: ((t.a,), t.m), lambda m, kids: Tree(kids[0], m))


@plait.tree.register_dataclass
@dataclasses.dataclass
class Fields:
    a: object
    m: object = plait.tree.static(default=None)


def of_argument(make):
    """A way of a function f(x, s), transformed by `make`, and called."""

    def way(seen):
        f = make(lambda x, s: (seen.see(s), x * 2)[1])
        return lambda s: f(X, s)

    return way


def of_tree(make, kind=Tree):
    """A way of a function of a tree that has the value for metadata."""

    def way(seen):
        f = make(lambda t: (seen.see(t.m), t.a.sum())[1])
        return lambda s: f(kind(X, s))

    return way


def by_name(seen):
    f = plait.jit(lambda x, *, s: (seen.see(s), x * 2)[1], static_argnames="s")
    return lambda s: f(X, s=s)


def by_custom_jvp(seen):
    f = plait.custom_jvp(lambda s, x: (seen.see(s), x * 2)[1], nondiff_argnums=0)
    f.defjvp(lambda s, xs, ts: (seen.see(s), (f(s, xs[0]), ts[0]))[1])
    return lambda s: plait.jvp(lambda x: f(s, x), (X,), (X,))


def by_custom_vjp(seen):
    f = plait.custom_vjp(lambda s, x: (seen.see(s), x * 2)[1], nondiff_argnums=0)
    f.defvjp(lambda s, x: (f(s, x), None), lambda s, r, t: (seen.see(s), (t,))[1])
    return lambda s: plait.grad(lambda x: f(s, x).sum())(X)


def of_result(transformed):
    """A way of a function that returns a tree with the value for metadata."""

    def way(seen):
        return lambda s: seen.see(transformed(lambda x: Tree(x * 2, s))(X).m)

    return way


def by_called_object(seen):
    @dataclasses.dataclass(frozen=True)
    class Callable_:
        s: object

        def __call__(self, *xs):
            seen.see(self.s)
            return xs[0] if len(xs) == 1 else xs

    def call(s):
        plait.jit(Callable_(s))(X)
        lax.scan(Callable_(s), X, None, length=1)
        lax.cond(True, Callable_(s), Callable_(s), X)

    return call


def of_keys(kind):
    """A way of dictionaries that have the value for a key."""

    def way(seen):
        f = plait.jit(lambda t: (seen.see(next(iter(t))), [v * 2 for v in t.values()])[1])
        return lambda s: f(kind({s: X}))

    return way


def keys_of_results(seen):
    return lambda s: seen.see(next(iter(plait.jit(lambda x: {s: x * 2})(X))))


CALLED = {
    "static_argnums": of_argument(lambda f: plait.jit(f, static_argnums=1)),
    "static_argnames": by_name,
    "checkpoint": of_argument(lambda f: plait.checkpoint(f, static_argnums=1)),
    "jit of checkpoint": of_argument(
        lambda f: plait.jit(plait.checkpoint(f, static_argnums=1), static_argnums=1)
    ),
    "in jit": of_argument(
        lambda f: lambda x, s, g=plait.jit(f, static_argnums=1): plait.jit(lambda x: g(x, s))(x)
    ),
    "in vmap": of_argument(
        lambda f: lambda x, s, g=plait.jit(f, static_argnums=1): plait.vmap(lambda x: g(x, s))(x)
    ),
    "lower": of_argument(lambda f: plait.jit(f, static_argnums=1).lower),
    "eval_shape": of_argument(lambda f: plait.jit(f, static_argnums=1).eval_shape),
    "custom_jvp": by_custom_jvp,
    "custom_vjp": by_custom_vjp,
    "called object": by_called_object,
}
HELD = {
    "metadata": of_tree(plait.jit),
    "static field": of_tree(plait.jit, Fields),
    "nested metadata": of_tree(lambda f: lambda t, g=plait.jit(lambda d: f(d["k"][0])):
                               g({"k": [t]})),
    "donated": of_tree(lambda f: lambda t, g=plait.jit(
        lambda t: (f(t), t.a)[1], donate_argnums=0): g(Tree(pnp.array(t.a), t.m))),
    "metadata in jit": of_tree(lambda f: lambda t, g=plait.jit(f): plait.vmap(
        lambda a: g(Tree(a, t.m)))(X)),
    "grad": of_tree(lambda f: plait.grad(lambda t: f(t))),
    "jit of grad": of_tree(lambda f: plait.jit(plait.grad(f))),
    "vmap": of_tree(plait.vmap),
    "scan": of_tree(lambda f: lambda t, g=(lambda c, _: (f(c), (c, None))[1]):
                    lax.scan(g, t, None, length=2)),
    "while_loop": of_tree(lambda f: lambda t, g=(lambda c: (f(c), c)[1]):
                          lax.while_loop(lambda c: c.a.sum() < 1, g, t)),
    "cond": of_tree(lambda f: lambda t: lax.cond(True, f, f, t)),
    "map": of_tree(lambda f: lambda t: lax.map(f, Tree(X, t.m))),
    "checkpoint": of_tree(plait.checkpoint),
    "make_program": of_tree(plait.make_program),
    "eval_shape": of_tree(lambda f: lambda t: plait.eval_shape(f, t)),
    "linearize": of_tree(lambda f: lambda t: plait.linearize(f, t)),
    "result of jit": of_result(plait.jit),
    "result of vmap": of_result(plait.vmap),
    "result of nested jit": of_result(lambda f: plait.jit(plait.jit(f))),
    "result of cond": of_result(lambda f: lambda x: lax.cond(True, f, f, x)),
    "result of scan": of_result(lambda f: lambda x: lax.scan(
        lambda c, _: (c, f(c)), x, None, length=1)[1]),
}  # fmt: skip
KEYED = {
    "dict": of_keys(dict),
    "OrderedDict": of_keys(collections.OrderedDict),
    "defaultdict": of_keys(lambda d: collections.defaultdict(list, d)),
    "key of a result": keys_of_results,
}


def check(way, values):
    """Check that what is made for one value is not used for another, in both orders, and also by
    calls that come again."""
    for ordered in (values, values[::-1]):
        seen = Seen()
        call = way(seen)
        for _ in range(2):
            for value in ordered:
                call(value)
                assert told(value) in seen, (value, type(value))


def cases(*holders):
    """Return lists of equal values in each holder."""
    return [
        [hold(v) for v in vs] for held in holders for hold in held.values() for vs in PLAIN.values()
    ]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", CALLED)
def test_static_values(name):
    for values in cases(HOLDERS if name == "static_argnums" else FEW):
        check(CALLED[name], values)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", HELD)
def test_metadata(name):
    for values in cases(*((HOLDERS, UNHASHABLE) if name == "metadata" else (FEW,))):
        check(HELD[name], values)


@pytest.mark.parametrize("name", KEYED)
def test_keys_of_dictionaries(name):
    for kind, values in PLAIN.items():
        if name in ("OrderedDict", "defaultdict") or kind != "texts":
            check(KEYED[name], values)


def test_alike_is_found_again():
    """A value that is made anew, and is alike in all its bits, is not traced again."""
    count = itertools.count()
    f = plait.jit(lambda x, s: (next(count), x * 2)[1], static_argnums=1)
    g = plait.jit(lambda t: (next(count), t.a * 2)[1])
    for hold in HOLDERS.values():
        for value in map(hold, [True, -0.0, complex(3, -0.0), np.float32(1), Word.A, a_nan(5)]):
            f(X, value), g(Tree(X, value))
            before = next(count)
            again = pickle.loads(pickle.dumps(value))
            f(X, again), g(Tree(X, again))
            assert next(count) == before + 1, value


# ---- ways to give numbers ------------------------------------------------------------------------

REAL = np.array([1, -1], np.float32)
COMPLEX = np.array([1, -1], np.complex64)
HALF = np.array([True, False])
ZEROS = [0.0, -0.0, np.float32(0), np.float32(-0.0), np.float64(0), np.float64(-0.0), np.float16(0),
         np.float16(-0.0), 0, False]  # fmt: skip
SIGNED = [complex(3, 0.0), complex(3, -0.0), np.complex64(complex(3, 0.0)),
          np.complex64(complex(3, -0.0)), np.complex128(complex(3, -0.0)), complex(0.0, 3),
          complex(-0.0, 3), complex(-0.0, -0.0), complex(0.0, -0.0), 3.0]  # fmt: skip


def jitted_with(value_of):
    """Return the function of a number that a jitted one gets as `value_of` says."""
    return lambda z: value_of(z)(pnp.asarray(COMPLEX))


def from_ref(z):
    ref = plait.new_ref(pnp.zeros(2, np.complex64))
    ref[0] = z if z.__class__ is complex else np.complex64(z)
    return ref[...]


STATIC = plait.jit(lambda v, z: pnp.where(HALF, z, v), static_argnums=1)
IN_TUPLE = plait.jit(lambda v, zs: pnp.where(HALF, zs[0], v), static_argnums=1)
ARGUMENT = plait.jit(lambda v, z: pnp.where(HALF, z, v))
IN_PLACE = {
    "where": lambda z: pnp.where(HALF, z, COMPLEX),
    "select": lambda z: pnp.select([HALF], [z], COMPLEX),
    "at": lambda z: pnp.asarray(COMPLEX).at[0].set(z),
    "at slice": lambda z: pnp.asarray(COMPLEX).at[:1].set(z),
    "argument": lambda z: ARGUMENT(COMPLEX, z),
    "static": lambda z: STATIC(COMPLEX, z),
    "static in a tuple": lambda z: IN_TUPLE(COMPLEX, (z,)),
    "closed over": lambda z: plait.jit(lambda v: pnp.where(HALF, z, v))(COMPLEX),
    "partial": lambda z: plait.jit(plait.tree_util.Partial(ARGUMENT, z=z))(COMPLEX),
    "vmap": lambda z: plait.vmap(lambda h, v: pnp.where(h, z, v))(HALF, COMPLEX),
    "vmap of an argument": lambda z: plait.vmap(pnp.where, (0, None, 0))(HALF, z, COMPLEX),
    "carry": lambda z: lax.scan(lambda c, h: (c, pnp.where(h, c, COMPLEX[1])),
                                pnp.asarray(z, np.complex64), HALF)[1],
    "loop": lambda z: lax.fori_loop(
        0, 1, lambda i, v: pnp.where(HALF, z, v).astype("complex64"), COMPLEX),
    "cond": lambda z: lax.cond(
        True, lambda t: pnp.where(HALF, t, COMPLEX).astype("complex64"), lambda t: COMPLEX, z),
    "jvp": lambda z: plait.jvp(lambda v: pnp.where(HALF, z, v), (COMPLEX,), (COMPLEX,))[0],
    "checkpoint": lambda z: plait.checkpoint(lambda v: pnp.where(HALF, z, v))(COMPLEX),
    "array": lambda z: pnp.array([z, COMPLEX[1]]),
    "stack": lambda z: pnp.stack([pnp.asarray(z, np.complex64), pnp.asarray(COMPLEX[1])]),
    "full": lambda z: pnp.full(2, z, np.complex64).at[1].set(-1),
    "full_like": lambda z: pnp.full_like(COMPLEX, z).at[1].set(-1),
    "pad": lambda z: pnp.pad(pnp.asarray(COMPLEX[1:]), (1, 0), constant_values=z),
    "fill": lambda z: pnp.asarray(COMPLEX).at[pnp.array([9, 1])].get(mode="fill", fill_value=z),
    "reference": lambda z: from_ref(z).at[1].set(-1),
}  # fmt: skip
COMPUTED = {
    "quotient": (lambda z: pnp.asarray(REAL) / z, lambda z: REAL / np.float32(z)),
    "sum": (lambda z: pnp.asarray(-0.0 * abs(REAL)) + z,
            lambda z: -0.0 * abs(REAL) + np.float32(z)),
    "clip": (lambda z: pnp.clip(REAL, z, 5.0), lambda z: np.clip(REAL, np.float32(z), 5)),
    "initial": (lambda z: pnp.max(REAL[1:], initial=z), lambda z: np.float32(z)),
    "copysign": (lambda z: pnp.copysign(REAL, z), lambda z: np.copysign(REAL, np.float32(z))),
    "nan_to_num": (lambda z: pnp.nan_to_num(REAL * np.nan, nan=z),
                   lambda z: np.full(2, np.float32(z))),
    "heaviside": (lambda z: pnp.heaviside(REAL * 0, z), lambda z: np.full(2, np.float32(z))),
    "reciprocal": (plait.jit(lambda z: 1 / z), lambda z: 1 / np.float32(z)),
    "callback": (lambda z: plait.pure_callback(lambda t: np.float32(1) / np.float32(t), F32, z),
                 lambda z: 1 / np.float32(z)),
    "gradient": (lambda z: plait.grad(lambda v: (v / z).sum())(pnp.asarray(REAL)),
                 lambda z: 1 / np.full(2, np.float32(z))),
}  # fmt: skip


def bits(x, dtype):
    return np.asarray(x).astype(dtype).tobytes()


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", IN_PLACE)
def test_numbers_are_put_where_they_belong(name):
    """The first of two elements is the number, to the signs of its zeros; the second is -1."""
    for ordered in (SIGNED, SIGNED[::-1], SIGNED):
        for z in ordered:
            want = np.array([z, -1], np.complex64)
            assert bits(IN_PLACE[name](z), np.complex64) == want.tobytes(), repr(z)


@pytest.mark.parametrize("name", COMPUTED)
def test_numbers_that_are_computed_with(name):
    ours, numpys = COMPUTED[name]
    for ordered in (ZEROS, ZEROS[::-1], ZEROS):
        for z in ordered:
            with np.errstate(divide="ignore"):
                want = numpys(z)
                assert bits(ours(z), np.float32) == bits(want, np.float32), repr(z)


@pytest.mark.parametrize("size", [np.float32(1), np.bool_(True), 1 + 0j, 1.0])
def test_what_equals_a_size_is_none(size):
    """Also after that size was mapped."""
    assert plait.vmap(lambda: 2.0, axis_size=1)().shape == (1,)
    with pytest.raises(plait.errors.ShapeError, match="axis_size"):
        plait.vmap(lambda: 2.0, axis_size=size)()
