"""Calls of every form: each is done by the text made for it the second time, and must equal the
function itself; and calls that look alike but are not must not be confused."""

import gc
import weakref
from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import plait
from plait import config, events
from plait._jit.call_forms import CallForm, taker
from plait.tree import flatten

Point = namedtuple("Point", "x y")
Tagged = namedtuple("Tagged", "x tag")
plait.tree.register(Tagged, lambda t: ((t.x,), t.tag), lambda tag, kids: Tagged(*kids, tag))
X = np.arange(4, dtype=np.float32)
Y = np.arange(4, 8, dtype=np.float32)


def as_arrays(tree):
    return plait.tree.map(plait.numpy.asarray, tree)


def equal(got, want):
    leaves, structure = flatten(got)
    expected, wanted = flatten(want)
    assert structure == wanted
    for a, b in zip(leaves, expected, strict=True):
        assert isinstance(a, plait.Array) and a.dtype == np.asarray(b).dtype
        np.testing.assert_array_equal(np.asarray(a), b)


CALLS = {
    "nothing": (lambda: np.float32(3), (), {}),
    "one": (lambda x: x * 2, (X,), {}),
    "two": (lambda x, y: x - y, (X, Y), {}),
    "named": (lambda x, *, y: x - y, (X,), {"y": Y}),
    "two named": (lambda *, b, a: a - b, (), {"b": X, "a": Y}),
    "dict": (lambda d: d["a"] - d["b"], ({"b": X, "a": Y},), {}),
    "keys of other classes": (lambda d: d[2] - d[1], ({1: X, 2: Y},), {}),
    "nested": (lambda t: [t[0]["p"][0], {"q": t[1]}], (({"p": [X]}, Y),), {}),
    "named tuple": (lambda p: Point(p.y, p.x), (Point(X, Y),), {}),
    "none": (lambda x, y: (x, y, None), (X, None), {}),
    "empty": (lambda x, y: {"e": (), "x": [x]}, (X, ()), {}),
    "ordered": (lambda d: OrderedDict(z=d["z"], a=d["a"]), (OrderedDict(z=X, a=Y),), {}),
    "two hundred": (lambda d: {k: v * 2 for k, v in d.items()},
                    ({f"k{i}": X for i in range(200)},), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", ["arrays", "numpy arrays", "mixed"])
def test_each_form(name, kind):
    f, args, kwargs = CALLS[name]
    want = f(*args, **kwargs)
    if kind == "arrays":
        args, kwargs = as_arrays((args, kwargs))
    elif kind == "mixed":
        leaves, structure = flatten((args, kwargs))
        leaves = [plait.numpy.asarray(x) if i % 2 else x for i, x in enumerate(leaves)]
        args, kwargs = structure.unflatten(leaves)
    jitted = plait.jit(lambda *args, **kwargs: f(*args, **kwargs))
    with events.counting() as counts:
        for _ in range(4):
            equal(jitted(*args, **kwargs), want)
    assert counts["trace"] == 1 and counts["compile"] <= 1  # equal code is compiled once


def test_forms_that_alternate():
    f = plait.jit(lambda t, k=1.0: plait.tree.reduce(lambda a, b: a + b, t) * k)
    x = plait.numpy.asarray(X)
    calls = [
        (((x, x),), {}),
        (([x, x],), {}),
        (({"a": x, "b": x},), {}),
        (({"a": x},), {"k": x}),
        ((x,), {}),
        ((X,), {}),
        ((X, 2.0), {}),
        ((x, X), {}),
        ((np.float32(1.5),), {"k": True}),
    ]
    for _ in range(3):
        for args, kwargs in calls:
            t = args[0]
            k = kwargs.get("k", args[1] if len(args) > 1 else 1.0)
            leaves = [np.asarray(v) for v in flatten(t)[0]]
            np.testing.assert_allclose(f(*args, **kwargs), sum(leaves) * np.asarray(k))


class LookedUp(BaseException):
    """An exception that calls do not take for a miss."""


class Anything(dict):
    """A table that has an entry for every call, and so shows which calls come to look into it."""

    def __missing__(self, key):
        raise LookedUp


def test_a_call_of_another_form_misses():
    seen = []
    form = CallForm(flatten((({"a": 0, "b": 0}, 0), {"k": 0}))[1], "aasa")
    way = taker(form, Anything(), lambda args, kwargs: seen.append((args, kwargs)))
    x = plait.numpy.asarray(X)
    with pytest.raises(LookedUp):
        way(({"a": x, "b": x}, 1), {"k": x})
    for args, kwargs in [
        ((), {}),
        (({"a": x, "b": x}, 1), {}),
        (({"a": x, "b": x, "c": x}, 1), {"k": x}),
        (({"a": x, "c": x}, 1), {"k": x}),
        ((OrderedDict(a=x, b=x), 1), {"k": x}),
        (({"a": x, "b": x}, 1, 2), {"k": x}),
        (({"a": x, "b": 3.0}, 1), {"k": x}),
        (({"a": x, "b": x}, 1), {"j": x}),
        (({"a": x, "b": x}, 1), {"k": x, "j": x}),
        (([x, x], 1), {"k": x}),
    ]:
        way(args, kwargs)
        assert seen.pop() == (args, kwargs)


class Other(dict):
    """A dictionary that is not a tree."""


ALIKE = {
    "one": lambda x: ((x(),), {}),
    "two": lambda x: ((x(), x()), {}),
    "none at all": lambda x: ((), {}),
    "named": lambda x: ((), {"k": x()}),
    "one and named": lambda x: ((x(),), {"k": x()}),
    "one and another name": lambda x: ((x(),), {"m": x()}),
    "one and two named": lambda x: ((x(),), {"k": x(), "m": x()}),
    "tuple of one": lambda x: (((x(),),), {}),
    "list of one": lambda x: (([x()],), {}),
    "tuple of two": lambda x: (((x(), x()),), {}),
    "list of two": lambda x: (([x(), x()],), {}),
    "named tuple": lambda x: ((Point(x(), x()),), {}),
    "dict of one": lambda x: (({"a": x()},), {}),
    "dict of two": lambda x: (({"a": x(), "b": x()},), {}),
    "dict of others": lambda x: (({"a": x(), "c": x()},), {}),
    "dict of numbers": lambda x: (({0: x(), 1: x()},), {}),
    "dict of tuples": lambda x: (({("a", 0): x(), ("b", 1): x()},), {}),
    "ordered": lambda x: ((OrderedDict(a=x(), b=x()),), {}),
    "one and none": lambda x: ((x(), None), {}),
    "one and nothing": lambda x: ((x(), ()), {}),
    "one and an empty list": lambda x: ((x(), []), {}),
    "one and an empty dict": lambda x: ((x(), {}), {}),
    "one and a named none": lambda x: ((x(),), {"k": None}),
    "a tree in a tree": lambda x: (({"a": [x()], "b": (x(), None)},), {}),
    "the other tree in a tree": lambda x: (({"a": (x(),), "b": [x(), None]},), {}),
    "deep": lambda x: (([[[[[[x()]]]]]],), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in ALIKE if name != "ordered"])
def test_ordinary_forms_have_a_text(name):
    """Those of tuples, lists, dictionaries, named tuples and None, as arguments and as results."""
    args, kwargs = ALIKE[name](lambda: 0)
    leaves, tree = flatten((args, kwargs))
    way = taker(CallForm(tree, "a" * len(leaves)), Anything(), lambda args, kwargs: "slow")
    assert way is not None
    x = plait.numpy.asarray(X)
    with pytest.raises(LookedUp):
        way(*ALIKE[name](lambda: x))
    assert way((x, x, x), {}) == way((), {"z": x}) == "slow"


@pytest.mark.sampled(10)
@pytest.mark.parametrize("roles", [{}, {"donate_argnames": "k"}], ids=["alike", "with roles"])
@pytest.mark.parametrize("kind", ["arrays", "numpy arrays", "numbers"])
def test_a_call_after_one_that_looks_like_it(kind, roles):
    """Each form directly after each other one: what comes back has the structure that was given."""
    leaf = {
        "arrays": lambda: plait.numpy.asarray(X),
        "numpy arrays": lambda: X,
        "numbers": lambda: 3.0,
    }[kind]

    def f(*args, **kwargs):
        return plait.tree.map(lambda v: v * 2, (args, kwargs))

    jitted = plait.jit(f, **roles)

    def check(make):
        given = make(leaf)
        want = plait.tree.map(lambda v: np.asarray(v, np.float32) * 2, given)
        equal(jitted(*given[0], **given[1]), want)

    for before in ALIKE.values():
        for after in ALIKE.values():
            check(before), check(before), check(after)


def test_a_call_after_one_that_had_more_numbers():
    """Dictionaries of our own class are leaves to nobody, and not taken for dictionaries."""
    f = plait.jit(lambda d: d["a"] + 1)
    x = plait.numpy.asarray(X)
    for _ in range(2):
        np.testing.assert_array_equal(f({"a": x}), X + 1)
        with pytest.raises(plait.errors.PlaitError, match="Other"):
            f(Other(a=x))


def test_static_values_of_one_hash_are_told_apart():
    f = plait.jit(lambda x, how, *, mode: x * (10 if how is True else how) + mode,
               static_argnums=1, static_argnames="mode")  # fmt: skip
    x = plait.numpy.asarray(X)
    for _ in range(3):
        for how in (1, True, 2, 0, False):
            for mode in (1, 2):
                want = X * (10 if how is True else how) + mode
                np.testing.assert_array_equal(f(x, how, mode=mode), want)


def test_static_values_that_are_equal_and_differ():
    """Values of any kind, one after another: each call is done for its own value."""
    values = [1, True, 1.0, 0, False, 0.0, -0.0, "1", None, (1,), (True,), (1.0,), (0.0,), (-0.0,)]
    values += [frozenset({1}), frozenset({1.0}), 1 + 0j, int, float, np.float32(1), ((1,),)]
    seen = []

    def f(x, how, *, mode):
        seen.append(repr((how, mode)))
        return x + len(seen)  # a result that tells which trace it is of

    jitted = plait.jit(
        lambda x, how, *, mode: f(x, how, mode=mode), static_argnums=1, static_argnames="mode"
    )
    known = {}
    x = plait.numpy.asarray(np.float32(0))
    for before in values:
        for after in values:
            for how, mode in ((before, "m"), (before, "m"), (after, "m"), ("h", after)):
                number = int(jitted(x, how, mode=mode))
                assert seen[number - 1] == repr((how, mode))
                assert known.setdefault(repr((how, mode)), number) == number


def test_the_number_of_arguments_is_part_of_a_call():
    """With static arguments in the middle, and others beyond that may be left out."""
    f = plait.jit(lambda x, n, y=0.0, z=0.0: x * n + 10 * y + 100 * z, static_argnums=1)
    g = plait.jit(lambda *xs: sum(10**i * v for i, v in enumerate(xs)), static_argnums=1)
    x = plait.numpy.asarray(X)
    for calls in ([(2,), (2, 3.0), (2, 3.0, 4.0)], [(2, 3.0, 4.0), (2,), (2, 3.0)]):
        for _ in range(3):
            for rest in calls:
                y, z = (*rest[1:], 0.0, 0.0)[:2]
                np.testing.assert_array_equal(f(x, *rest), X * 2 + 10 * y + 100 * z)
                np.testing.assert_array_equal(g(x, *rest), X + 20 + 100 * y + 1000 * z)
        f.clear_cache(), g.clear_cache()


def test_staged_calls_that_differ_in_names_only():
    """Inside of another traced function, where calls with flat values are found by their types."""
    f = plait.jit(lambda x, k=None, m=1.0: x * 2 if k is None else x * k + m)
    calls = [
        lambda x, y: f(x),
        lambda x, y: f(x, k=None),
        lambda x, y: f(x, k=y),
        lambda x, y: f(x, m=y),
        lambda x, y: f(x, k=y, m=y),
        lambda x, y: f(x, y),
        lambda x, y: f(k=x, x=y),
    ]
    wants = [2 * X, 2 * X, X * Y + 1, 2 * X, X * Y + Y, X * Y + 1, X * Y + 1]
    for i in range(len(calls)):
        for j in range(len(calls)):
            f.clear_cache()
            got = plait.jit(lambda x, y, i=i, j=j: (calls[i](x, y), calls[j](x, y)))(X, Y)
            np.testing.assert_array_equal(got[0], wants[i])
            np.testing.assert_array_equal(got[1], wants[j])


def test_static_floats_of_either_sign():
    f = plait.jit(lambda x, z: x * 0 + np.copysign(1.0, z), static_argnums=1)
    x = plait.numpy.asarray(X)
    for _ in range(3):
        assert float(f(x, 0.0)[0]) == 1.0 and float(f(x, -0.0)[0]) == -1.0


@pytest.mark.parametrize("tree", [False, True])
def test_donated_arrays_are_gone_every_time(tree):
    f = plait.jit(lambda p, x: plait.tree.map(lambda v: v + x, p), donate_argnums=0)
    x = plait.numpy.asarray(Y)
    for _ in range(4):
        given = plait.numpy.asarray(X)
        out = f({"p": [given]} if tree else given, x)
        np.testing.assert_array_equal(out["p"][0] if tree else out, X + Y)
        assert given.is_deleted() and not x.is_deleted()
        with pytest.raises(plait.errors.DeletedArrayError, match="its memory is gone"):
            given + 1


def test_memory_that_was_donated_under_another_name():
    """The numbers of a key are in its memory: they are gone with it, for calls of every form."""
    one = plait.jit(lambda x: x + 1)
    tree = plait.jit(lambda t: t["a"] + 1)
    there = plait.random.key_data(plait.random.key(2))
    compiled = one.lower(there).compile()
    np.testing.assert_array_equal(compiled(there), np.asarray(there) + 1)
    key = plait.random.key(1)
    gone = plait.random.key_data(key)
    plait.jit(lambda k: plait.random.fold_in(k, 1), donate_argnums=0)(key)
    for _ in range(3):
        one(there), tree({"a": there})
        for use in (
            lambda: one(gone), lambda: tree({"a": gone}), lambda: gone + 1, lambda: gone[0],
            lambda: np.asarray(gone), lambda: str(gone), lambda: gone.tolist(), lambda: -gone,
            lambda: plait.numpy.invert(gone), lambda: plait.lax.neg(gone), lambda: gone[:1],
            lambda: compiled(gone), lambda: plait.numpy.sum(gone), lambda: gone.at[0].set(1),
        ):  # fmt: skip
            with pytest.raises(plait.errors.DeletedArrayError):
                use()


@dataclass(frozen=True, order=True)
class Name:
    """A key of dictionaries whose text is not an expression."""

    text: str

    def __repr__(self):
        return f"<{self.text}>"


def test_keys_of_dictionaries_of_any_class():
    f = plait.jit(lambda d: {k: v * 2 for k, v in d.items()})
    for keys in ((Name("a"), Name("b")), (1, 2), ("a", "'\n\\"), ((1, "x"), (2, "y")), (1.5, 2.5)):
        for given in (X, plait.numpy.asarray(X)):
            for _ in range(3):
                got = f(dict.fromkeys(keys, given))
                assert tuple(sorted(got)) == tuple(sorted(keys))
                assert [type(k) for k in got] == [type(k) for k in keys]
                for v in got.values():
                    np.testing.assert_array_equal(v, X * 2)


@pytest.mark.parametrize("levels", [10, 63, 64, 65, 90, 250])
def test_trees_of_many_levels(levels):
    f = plait.jit(lambda t: plait.tree.map(lambda v: v * 2, t))
    wide = {"a": None, "b": [1.0] * 20}
    for kind in (lambda t: [t], lambda t: (t,), lambda t: {"k": t, "z": None}):
        deep = wide
        for _ in range(levels):
            deep = kind(deep)
        for _ in range(3):
            equal(f(deep), plait.tree.map(lambda v: np.float32(v * 2), deep))


def test_the_same_array_donated_twice_is_refused():
    f = plait.jit(lambda a, b: (a + 1, b + 2), donate_argnums=(0, 1))
    for _ in range(2):
        f(plait.numpy.asarray(X), plait.numpy.asarray(X))
        same = plait.numpy.asarray(X)
        with pytest.raises((plait.errors.PlaitError, RuntimeError)):
            f(same, same)


# ---- numpy arrays ----------------------------------------------------------------------------


def test_numpy_arrays_of_all_dtypes_and_layouts():
    f = plait.jit(lambda x: x)
    for _ in range(3):
        for dtype in ("f4", "f8", "i4", "i8", "u1", "?", "c8", "f2", ">f4", ">i8"):
            for x in (np.ones((2, 3), dtype), np.ones((4, 6), dtype)[::2, ::2], np.ones(3, dtype)):
                got = f(x)
                assert got.dtype == x.dtype.newbyteorder("=")
                np.testing.assert_array_equal(got, x)


def test_numpy_arrays_of_64_bits_under_a_setting():
    f = plait.jit(lambda x: x * 2)
    x = np.full(3, 1.5)
    for _ in range(2):
        assert f(x).dtype == np.float64
        assert f(x.astype(np.float32)).dtype == np.float32
        with config(x64=False):
            for _ in range(3):
                assert f(x).dtype == np.float32
                assert f(x.astype(np.float32)).dtype == np.float32


def test_a_numpy_array_may_be_written_to_at_once():
    slow = plait.jit(lambda a: ((a @ a @ a @ a) * 0).sum())
    f = plait.jit(lambda x, z: x + z)
    big = plait.numpy.ones((700, 700))
    zero = slow(big)
    raw = np.zeros(10 * 4 + 64, np.uint8)
    start = -raw.ctypes.data % 64  # memory that a runtime would gladly read in place
    x = raw[start : start + 40].view(np.float32)
    for _ in range(4):
        x[:] = 1
        out = f(x, zero)
        x[:] = 1
        pending = slow(big)
        out = f(x, pending)
        x[:] = 7
        np.testing.assert_array_equal(out, np.ones(10))


def test_numpy_subclasses_and_errors():
    class Mine(np.ndarray):
        pass

    f = plait.jit(lambda x, y: x @ y)
    with pytest.raises(TypeError, match="dtype <U1"):
        f(np.array(["a"]), X)
    for _ in range(2):
        np.testing.assert_array_equal(f(X, Y), X @ Y)
        with pytest.raises(plait.errors.PlaitError):
            f(X, np.ones(3, np.float32))
        with pytest.raises(TypeError, match="dtype object"):
            f(np.array([object()]), X)
        np.testing.assert_array_equal(f(X.view(Mine), Y), X @ Y)
        with pytest.raises(TypeError, match="lose its mask"):
            f(np.ma.masked_array(X), Y)


def test_numpy_arrays_for_programs_that_call_python():
    seen = []

    def host(v):
        seen.append(float(v.sum()))
        return v * 2

    f = plait.jit(lambda x: plait.pure_callback(host, x, x))
    for n in range(3):
        np.testing.assert_array_equal(f(X), X * 2)
        assert seen == [6.0] * (n + 1)


def test_numpy_arrays_and_closed_over_arrays():
    c = plait.numpy.asarray(Y)
    f = plait.jit(lambda x: x + c)
    for _ in range(3):
        np.testing.assert_array_equal(f(X), X + Y)
        np.testing.assert_array_equal(f(X[:1]), X[:1] + Y)


# ---- what is shared and what is forgotten --------------------------------------------------------


def test_jits_of_one_function_share_what_they_know():
    def f(x):
        return x + 1

    with events.counting() as counts:
        for _ in range(3):
            np.testing.assert_array_equal(plait.jit(f)(plait.numpy.asarray(X)), X + 1)
    assert counts["trace"] == 1 and counts["compile"] <= 1


def test_clear_cache_forgets_every_form():
    f = plait.jit(lambda t: t["x"] + 1)
    t = {"x": plait.numpy.asarray(X)}
    f(t), f(t)
    f.clear_cache()
    with events.counting() as counts:
        f(t), f(t)
    assert counts["trace"] == 1


def test_other_callables_are_collected_too():
    class Adder:
        def __call__(self, x):
            return x + 1

        def method(self, x):
            return x - 1

    adder = Adder()
    ref = weakref.ref(adder)
    for f in (plait.jit(adder), plait.jit(adder.method)):
        f(plait.numpy.asarray(X)), f(X), f(1.0)
    del adder, f
    gc.collect()
    assert ref() is None


def test_named_tuples_that_are_registered_are_trees_as_registered():
    x = plait.numpy.asarray(X)
    f = plait.jit(lambda p: Tagged(p.x * 2, p.tag + "!") if p.tag == "a" else p)
    for _ in range(3):
        for tag, want in (("a", ("a!", X * 2)), ("b", ("b", X))):
            out = f(Tagged(x, tag))
            assert isinstance(out, Tagged) and out.tag == want[0]
            np.testing.assert_array_equal(out.x, want[1])


def test_numpy_arrays_beside_static_values():
    f = plait.jit(lambda x, n: x * n, static_argnums=1)
    for _ in range(3):
        for n in (2, 3):
            np.testing.assert_array_equal(f(X, n), X * n)
    with events.counting() as counts:
        f(X, 2), f(X, 3)
    assert not counts


def test_a_function_is_collected_with_its_jit():
    class Held:
        pass

    def used():
        held = Held()
        f = plait.jit(lambda t: (held, t["x"] + 1)[1])
        for x in (plait.numpy.asarray(X), X, 1.0):
            f({"x": x}), f({"x": x})
        return weakref.ref(held)

    ref = used()
    gc.collect()
    assert ref() is None
