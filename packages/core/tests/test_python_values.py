"""What Python programs hand to Plait beside arrays: shapes without contents, members of enums,
plain classes as trees, closures whose programs are looked at, threads.

Invariant: what is expected is written out, or computed by numpy.
"""

import enum
import logging
import threading
import types

import numpy as np
import pytest

import plait
from plait.ext.ir import evaluate

jnp = plait.numpy
Spec = plait.ShapeDtypeStruct


# ---- shapes without contents -------------------------------------------------------------------


class Record(dict):
    """A class of another library: a dictionary with attributes."""

    def __init__(self, **items):
        super().__init__(**items)
        self.__dict__ = self


class Described:
    shape, dtype = (3,), np.dtype("float32")


@pytest.mark.parametrize(
    "duck",
    [
        types.SimpleNamespace(shape=(3,), dtype=np.dtype("float32")),
        types.SimpleNamespace(shape=[3], dtype="float32"),
        Record(shape=(3,), dtype=np.float32),
        Described,
        Described(),
        Spec((3,), "float32"),
    ],
    ids=lambda d: type(d).__name__,
)
def test_what_has_a_shape_and_a_dtype_is_enough_to_ask_for_shapes(duck):
    want = Spec((3,), np.float32)
    assert plait.eval_shape(lambda x: x + x, duck) == want
    assert plait.eval_shape(lambda t: t["a"][0], {"a": [duck]}) == want
    assert plait.jit(lambda x: x).eval_shape(duck) == want
    assert plait.jit(lambda x: x).lower(duck).out_info == want
    assert plait.make_program(lambda x: x)(duck).in_avals[0].shape == (3,)
    assert Spec.like(duck) == want


def test_like():
    assert Spec.like(2.0).weak_type
    assert Spec.like(np.ones((2, 1))) == Spec((2, 1), "float64")
    assert plait.eval_shape(lambda x: Spec.like(x[0]), jnp.ones((3, 2))) == Spec((2,), "float32")
    for bad in ("text", [1.0], types.SimpleNamespace(shape=(1,))):
        with pytest.raises(plait.errors.NotAnArrayError):
            Spec.like(bad)


def test_shapes_stand_for_values_where_only_shapes_are_asked_for():
    """As arguments of jitted functions within, and as results; no program is made of them."""
    spec = Spec((2,), "float32")
    double = plait.jit(lambda x: x * 2)
    assert plait.eval_shape(lambda: double(spec)) == spec
    assert plait.eval_shape(lambda x: (spec, x), 1)[0] == spec

    def both(x):
        return double(spec) + x

    assert plait.eval_shape(both, jnp.ones((3, 1))) == Spec((3, 2), "float32")
    assert plait.eval_shape(both, jnp.ones((3, 1))) == Spec((3, 2), "float32")
    for call in (plait.jit(both), both, lambda x: plait.jit(lambda: spec)()):
        with pytest.raises(plait.errors.NotAnArrayError, match="ShapeDtypeStruct"):
            call(jnp.ones((3, 1)))


# ---- programs of closures ----------------------------------------------------------------------


def test_what_a_function_closes_over_are_constants_of_its_program():
    held = jnp.arange(3.0)
    program = plait.make_jaxpr(lambda x: x * held + 1)(jnp.ones(3))
    assert len(program.inputs) == len(program.in_avals) == len(program.outputs) == 1
    assert program.consts[0][1] is held
    np.testing.assert_array_equal(evaluate(program, [jnp.ones(3)])[0], [1.0, 2.0, 3.0])


@pytest.mark.parametrize("depth", [1, 2])
def test_traced_values_are_given_back_with_the_program(depth):
    def f(x):
        program, shape = plait.make_jaxpr(lambda y: y * x + x, return_shape=True)(1.0)
        assert shape.shape == ()
        assert [c is x for _, c in program.consts] == [True]
        assert len(program.inputs) == 1
        assert "const" in str(program)
        return evaluate(program, [5.0])[0]

    g = f
    for _ in range(depth):
        g = plait.jit(g)
    assert float(g(3.0)) == 18.0
    assert float(f(3.0 * jnp.ones(()))) == 18.0


# ---- other Python values -----------------------------------------------------------------------


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 7


class Ratio(float):
    pass


def test_members_of_number_classes_are_numbers():
    assert int(plait.jit(lambda: Level.HIGH)()) == 7
    assert int(plait.jit(lambda x: x + Level.LOW)(Level.HIGH)) == 8
    assert plait.jit(lambda x: x)(Level.LOW).weak_type
    assert jnp.asarray(Level.HIGH).dtype == np.int32
    np.testing.assert_array_equal(jnp.ones(2, "int8") * Level.HIGH, [7, 7])
    assert (jnp.ones(2, "int8") * Level.HIGH).dtype == np.int8
    assert float(plait.jit(lambda x: x * 2)(Ratio(1.5))) == 3.0
    with pytest.raises(plait.errors.OutOfBounds):
        plait.jit(lambda x: x)(enum.IntEnum("Big", {"A": 2**40}).A)


def test_plain_classes_are_trees_by_the_names_of_their_fields():
    class Layer:
        def __init__(self, weight, name):
            self.weight, self.name = weight, name

    assert plait.tree_util.register_dataclass(Layer, ["weight"], ["name"]) is Layer
    doubled = plait.jit(lambda m: plait.tree.map(lambda w: w * 2, m))(Layer(1.5, "l"))
    assert (float(doubled.weight), doubled.name) == (3.0, "l")

    class Other:
        pass

    for fields in ({}, {"data_fields": ["a"]}, {"meta_fields": ["a"]}):
        with pytest.raises(plait.errors.ArgumentError, match="data_fields and meta_fields"):
            plait.tree_util.register_dataclass(Other, **fields)
    with pytest.raises(plait.errors.ArgumentError, match=r"\['a'\] of Other are named twice"):
        plait.tree_util.register_dataclass(Other, ["a", "b"], ["a"])


def test_a_platform_that_is_not_here():
    """Programs written for JAX catch a RuntimeError."""
    for ask in (
        lambda: plait.devices("gpu"),
        lambda: plait.local_devices(backend="tpu"),
        lambda: plait.jit(lambda x: x, backend="gpu"),
    ):
        with pytest.raises(RuntimeError, match="there is no platform"):
            ask()
        with pytest.raises(plait.errors.PlacementError):
            ask()


def test_misses_are_explained_in_threads(caplog):
    """Each of several threads that trace one function hears of every miss of its own."""
    caplog.set_level(logging.CRITICAL, "plait")
    f, failed = plait.jit(lambda x, y: (x + y).sum()), []

    def run(k):
        try:
            for n in range(1, 16):
                f(jnp.ones(n + 20 * k), y=jnp.ones(n + 20 * k))
        except Exception as e:
            failed.append(e)

    with plait.config(explain_cache_misses=True):
        threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not failed
