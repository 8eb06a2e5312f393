"""Copies, pickles and the lives of what users hold: structures, keys, arrays, jitted functions.

Invariant: what comes back is compared with what went in, by value, or by calling it.
"""

import copy
import functools
import gc
import pickle
import sys
import weakref
from collections import OrderedDict, defaultdict, namedtuple
from contextvars import ContextVar

import cloudpickle
import numpy as np
import pytest

import plait

jnp = plait.numpy
Pair = namedtuple("Pair", "left right")


@plait.tree_util.register_pytree_node_class
class Box:
    def __init__(self, held, note="n"):
        self.held, self.note = held, note

    def tree_flatten(self):
        return (self.held,), self.note

    @classmethod
    def tree_unflatten(cls, note, children):
        return cls(*children, note)


TREES = [
    0,
    None,
    [1, {"a": (2, None)}],
    OrderedDict(b=1, a=[2]),
    defaultdict(list, a=1),
    Pair(1, [2]),
    Box({"x": 1}),
    plait.tree_util.Partial(max, 1, default=2),
]


# ---- copies and pickles ------------------------------------------------------------------------


@pytest.mark.parametrize("tree", TREES, ids=lambda t: type(t).__name__)
def test_structures_are_pickled_and_copied(tree):
    kind = plait.tree.structure(tree)
    leaves = list(range(kind.num_leaves))
    for back in (
        pickle.loads(pickle.dumps(kind)),
        cloudpickle.loads(cloudpickle.dumps(kind)),
        copy.copy(kind),
        copy.deepcopy(kind),
    ):
        assert back == kind
        assert hash(back) == hash(kind)
        assert plait.tree.leaves(back.unflatten(leaves)) == leaves


def test_traced_values_are_their_own_copies():
    """A model that is copied inside of a traced function is the same model."""

    def same(x):
        assert copy.copy(x) is x
        assert copy.deepcopy(x) is x
        return copy.deepcopy({"w": [x, x]})["w"][1] * 2

    assert float(plait.jit(same)(3.0)) == 6.0
    assert plait.eval_shape(same, 3.0).shape == ()
    with pytest.raises(plait.errors.ConcretizationError, match="pickling"):
        plait.jit(pickle.dumps)(1.0)


def test_other_values_are_pickled():
    key = plait.random.key(3)
    for back in (pickle.loads(pickle.dumps(key)), copy.copy(key), copy.deepcopy(key)):
        assert back.dtype == key.dtype
        np.testing.assert_array_equal(plait.random.key_data(back), plait.random.key_data(key))
    shape = plait.ShapeDtypeStruct((2, 3), "int8", weak_type=False)
    for x in (shape, plait.devices()[0]):
        assert pickle.loads(pickle.dumps(x)) == copy.copy(x) == copy.deepcopy(x) == x
    partial = pickle.loads(pickle.dumps(plait.tree_util.Partial(max, 5)))
    assert partial(3) == 5


def test_modules_are_pickled_by_their_names():
    """A function that reads `plait.experimental.x` takes this module along, as Ray and Dask do."""
    ours = [m for name, m in list(sys.modules.items()) if name.partition(".")[0] == "plait"]
    ours += [plait.experimental, plait.experimental.pjit, plait.core]
    for module in ours:
        assert cloudpickle.loads(cloudpickle.dumps(module)) is module
    for module in ours[-3:]:
        assert pickle.loads(pickle.dumps(module)) is copy.deepcopy(module) is module


def elsewhere(make):
    """Return what `make` returns, on the last device."""
    with plait.default_device(plait.devices()[-1]):
        return plait.jit(make)()


VALUES = {
    "weak float": lambda: plait.jit(lambda: 1.5)(),
    "weak integer": lambda: plait.jit(lambda: 3)(),
    "weak complex": lambda: plait.jit(lambda: 3j)(),
    "weak vector": lambda: plait.jit(lambda: jnp.broadcast_to(2.5, (3,)))(),
    "strong": lambda: jnp.ones(3, "float32"),
    "wide": lambda: jnp.arange(3, dtype="uint64"),
    "boolean": lambda: jnp.array(True),
    "bfloat16": lambda: jnp.ones(2, "bfloat16"),
    "of eight bits": lambda: jnp.ones(2, "float8_e4m3fn"),
    "of four bits": lambda: jnp.ones(2, "int4"),
    "empty": lambda: jnp.zeros((0, 2), "float16"),
    "keys": lambda: plait.random.split(plait.random.key(3), 2),
    "elsewhere": lambda: elsewhere(lambda: 1.5),
}
WAYS = {
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "cloudpickle": lambda x: cloudpickle.loads(cloudpickle.dumps([x]))[0],
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy of a tree": lambda x: copy.deepcopy({"a": [x]})["a"][0],
    ".copy()": lambda x: x.copy(),
    "asarray": jnp.asarray,
    "array": jnp.array,
    "jit": plait.jit(lambda x: x),
    "tree.map": lambda x: plait.tree.map(lambda v: v, (x,))[0],
    "flatten": lambda x: plait.tree.unflatten(plait.tree.structure([x]), plait.tree.leaves([x]))[0],
    "Partial": lambda x: pickle.loads(pickle.dumps(plait.tree_util.Partial(max, x))).args[0],
}


@pytest.mark.parametrize("value", VALUES)
def test_copies_have_the_type_and_the_elements_of_the_original(value):
    """Shape, dtype and weakness: promotion treats a copy as it treats the original."""
    x = VALUES[value]()
    elements = plait.random.key_data if value == "keys" else np.asarray
    for name, way in WAYS.items():
        y = way(x)
        assert (y.shape, y.dtype, y.aval.weak_type) == (x.shape, x.dtype, x.aval.weak_type), name
        assert repr(y.aval) == repr(x.aval), name
        np.testing.assert_array_equal(elements(y), elements(x), err_msg=name)
    if x.aval.weak_type:
        narrow = jnp.ones((), "bfloat16" if x.dtype.kind == "f" else "int8")
        assert (narrow * copy.deepcopy(x)).dtype == (narrow * x).dtype
        traced = []
        f = plait.jit(lambda v: traced.append(v) or v + 1)
        f(x), f(pickle.loads(pickle.dumps(x))), f(copy.deepcopy(x))
        assert len(traced) == 1


def test_deep_copies_stay_on_their_devices_in_memory_of_their_own():
    for x in (elsewhere(lambda: jnp.arange(3.0)), elsewhere(lambda: 1.5)):
        y = copy.deepcopy(x)
        assert y.key == x.key  # which holds the placement
        want = np.array(x)
        x.delete()
        np.testing.assert_array_equal(y, want)


def test_unravel_functions_of_equal_trees_are_equal():
    trees = {"a": jnp.arange(3), "b": 2.5}, {"a": jnp.ones(3, "int32"), "b": 0.5}
    (flat, back), (_, again) = map(plait.flatten_util.ravel_pytree, trees)
    assert back == again
    assert hash(back) == hash(again)
    assert back != plait.flatten_util.ravel_pytree([1.0])[1]
    copied = pickle.loads(pickle.dumps(back))
    assert copied == back
    np.testing.assert_array_equal(copied(flat)["a"], np.arange(3))
    traced = []
    f = plait.jit(lambda v, u: traced.append(1) or u(v)["b"], static_argnums=1)
    f(flat, back), f(flat, again), f(flat, copied)
    assert len(traced) == 1


# ---- jitted functions --------------------------------------------------------------------------

JITS = {
    "plain": lambda f: plait.jit(f),
    "static": lambda f: plait.jit(f, static_argnums=1),
    "donated": lambda f: plait.jit(f, donate_argnums=0),
    "inner": lambda f: plait.jit(lambda x, n: plait.jit(f)(x, n) + 0),
    "inline": lambda f: plait.jit(f, inline=True),
}


@pytest.mark.parametrize("called", [False, True])
@pytest.mark.parametrize("how", JITS)
def test_jitted_functions_are_pickled_by_their_contents(how, called):
    """Before and after they were called, by place and by name; what comes back has its methods."""
    scale = jnp.asarray(2.0)
    f = JITS[how](lambda x, n: x["a"] * n + scale)

    def given():
        return {"a": jnp.arange(3.0)}

    want = np.arange(3.0) * 3 + 2
    if called:
        np.testing.assert_array_equal(f(given(), 3), want)
        np.testing.assert_array_equal(f(given(), n=3), want)
        np.testing.assert_array_equal(f(given(), 3), want)
    back = cloudpickle.loads(cloudpickle.dumps(f))
    for _ in range(3):
        np.testing.assert_array_equal(back(given(), 3), want)
    np.testing.assert_array_equal(back(given(), n=3), want)
    assert back.eval_shape(given(), 3).shape == (3,)
    wide = {"a": np.ones(2)}
    assert [back(wide, 3).dtype for _ in range(2)] == [np.float64] * 2
    with plait.config(x64=False):  # settings are watched by what came back, too
        assert back(wide, 3).dtype == np.float32
    np.testing.assert_array_equal(copy.deepcopy(f)(given(), 3), want)


def test_context_variables_of_others_are_not_pickled():
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(ContextVar("theirs"))
    assert pickle.loads(pickle.dumps(plait.ext.trace.current))() is plait.ext.trace.GROUND


def test_a_jitted_function_and_what_it_closes_over_are_freed_at_once():
    """Without the collector, whatever it was called with."""
    gc.collect()
    gc.disable()
    try:
        for calls in (
            [()],
            [(jnp.ones(2),)],
            [(1.0,), (np.ones(2, np.float32),)],
            [({"a": jnp.ones(2)},), ([np.ones(3, np.float32)],)],
        ):
            for options in ({}, {"donate_argnums": ()}, {"keep_unused": True}):
                held = jnp.ones(10)
                alive = weakref.ref(held)
                f = (lambda held: lambda *args: held * 2)(held)
                g = plait.jit(f, **options)
                for args in calls:
                    g(*args)
                    g(*args)
                del f, held
                g(*calls[0])
                assert alive() is not None
                del g
                assert alive() is None, (calls, options)
    finally:
        gc.enable()


def test_jitting_anew_compiles_nothing_again():
    def f(x):
        return x * 3 + 1

    plait.jit(f)(jnp.ones(3))
    with plait.events.counting() as happened:
        for _ in range(3):
            np.testing.assert_array_equal(plait.jit(f)(jnp.ones(3)), [4.0, 4.0, 4.0])
    assert not happened


def test_wrappers_have_the_attributes_of_functions():
    def f(x):
        "What it is."
        return x * 2

    f.note, f.lower = 5, str.lower
    f(1.0)
    plait.eval_shape(f, 1.0)  # leaves traces on it, which are its own
    g = plait.jit(f)
    assert g.__wrapped__ is f
    assert (g.note, g.__doc__, g.__name__) == (5, "What it is.", "f")
    assert g.lower(1.0).out_info.shape == ()  # a method of the jitted function goes first
    again = plait.make_jaxpr(g)
    assert again.note == 5
    assert not hasattr(again, "clear_cache")
    assert not [n for n in vars(g) if "traces" in n]
    assert not hasattr(plait.jit(functools.partial(f)), "note")


# ---- what jit refuses, and what it takes -------------------------------------------------------


def test_what_returns_no_arrays_is_refused_where_it_is_jitted():
    def generator(x):
        yield x

    async def coroutine(x):
        return x

    async def both(x):
        yield x

    class Callable:
        def __call__(self, x):
            yield x

    for f in (generator, coroutine, both, functools.partial(generator), Callable()):
        with pytest.raises(plait.errors.ArgumentError, match="returns a"):
            plait.jit(f)
    for kind in (staticmethod, classmethod):
        with pytest.raises(plait.errors.ArgumentError, match=f"@{kind.__name__} above @jit"):
            plait.jit(kind(lambda x: x))

    class Good:
        @staticmethod
        @plait.jit
        def doubled(x):
            return 2 * x

        @classmethod
        @functools.partial(plait.jit, static_argnums=0)
        def named(cls, x):
            return x + len(cls.__name__)

    assert float(Good().doubled(3.0)) == 6.0
    assert float(Good.named(3.0)) == 7.0


def test_static_numbers_and_names_that_are_both_given_are_taken_as_they_are():
    traced = []

    def f(x, y):
        traced.append(isinstance(y, plait.core.Tracer))
        return x

    plait.jit(f, static_argnums=1)(1, y=2)
    plait.jit(f, static_argnums=1, static_argnames=())(1, y=2)
    plait.jit(f, static_argnames="y")(1, 2)
    plait.jit(f, static_argnums=(), static_argnames="y")(1, 2)
    assert traced == [False, True, False, True]


@pytest.mark.parametrize("depth", [60, 70, 220, 500])
def test_deep_trees_pass_through_jit(depth):
    def nested(x):
        for i in range(depth):
            x = ([x], {"k": x}, (x,), Pair(x, None))[i % 4]
        return x

    out = plait.jit(lambda t: nested(plait.tree.leaves(t)[0] * 2))(nested(jnp.ones(2)))
    assert plait.tree.structure(out) == plait.tree.structure(nested(0))
    np.testing.assert_array_equal(plait.tree.leaves(out)[0], [2.0, 2.0])


def test_trees_that_are_too_deep_are_refused():
    deep, itself = jnp.ones(2), []
    for _ in range(100_000):
        deep = [deep]
    itself.append(itself)
    for tree in (deep, itself):
        for call in (plait.jit(lambda t: 0), plait.tree.leaves, plait.tree.structure):
            with pytest.raises(plait.errors.TreeMismatch, match="more deeply"):
                call(tree)
    while isinstance(deep, list):  # or Python's own destructor would go as deep
        deep = deep[0]


def test_numpy_arrays_are_let_go_by_the_runtime():
    """The last one too, which the runtime has read and would keep until it is called again."""
    for take in (jnp.asarray, plait.jit(lambda x: x + 1), jnp.sin):
        given = np.arange(100_000, dtype=np.float32)
        result, seen = take(given), weakref.ref(given)
        result.block_until_ready()
        del given, result
        gc.collect()
        assert seen() is None
