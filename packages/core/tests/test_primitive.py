"""Primitives: schema, names, memo of types; keys of static values.

Invariant: types and keys are compared with values that are written here.
"""

import copy
import importlib
import pickle
import pkgutil
from collections import namedtuple

import numpy as np
import pytest

import plait
from plait import _ops, ext
from plait._base.freezing import freeze, freeze_params
from plait._core.primitive import Primitive, primitives, registered
from plait._ops import families
from plait.ext.errors import TypeRule
from plait.ext.ops.elementwise import mul

pnp = plait.numpy
F = ext.Aval((2,), np.float32)
calls = []


@ext.primitive("core_primitive.scaled", traits=(ext.Linear,))
def scaled(x, *, k: int):
    """Multiply by `k`.

    More of it.
    """
    calls.append((x, k))
    return x


ext.expand_rules.rule(scaled)(lambda x, *, k: x * k)


def test_what_a_primitive_says_of_itself():
    assert (scaled.name, scaled.namespace) == ("core_primitive.scaled", "core_primitive")
    assert repr(scaled) == "core_primitive.scaled"
    assert scaled.doc == "Multiply by `k`.\n\nMore of it."
    assert scaled.traits == (ext.Linear,) and not scaled.many
    assert scaled.higher is None and scaled.ambient is None and scaled.effect is None


def test_it_is_known_by_its_name():
    assert registered("core_primitive.scaled") is scaled
    assert registered("core_primitive.nobody") is None
    everyone = primitives()
    assert everyone["core_primitive.scaled"] is scaled and everyone["core.mul"] is mul
    everyone.clear()
    assert registered("core.mul") is mul
    for again in (pickle.loads(pickle.dumps(scaled)), copy.copy(scaled), copy.deepcopy(scaled)):
        assert again is scaled


def test_applying_and_binding():
    """Calling takes what users have; binding takes values."""
    np.testing.assert_array_equal(scaled(np.float32([1, 2]), k=3), [3, 6])
    np.testing.assert_array_equal(scaled([2.0, 1.0][0], k=3), 6)
    x = pnp.asarray(np.float32([1, 2]))
    np.testing.assert_array_equal(scaled.bind(x, k=3), [3, 6])


@pytest.mark.feature("C07")
def test_no_array_is_refused():
    """Containers and strings are not operands, whatever the checks."""
    x = pnp.asarray(np.float32([1, 2]))
    for wrong in ((x, x), [x], "x", None, {"x": x}, object()):
        with pytest.raises(TypeError, match="is not an array|not a valid array|dtype"):
            scaled(wrong, k=1)


def test_operands_are_prepared():
    """`prepare` makes of users' operands what the type rule wants."""
    twice = Primitive("core_primitive.same", lambda x, y: x, prepare=lambda args: args * 2)
    ext.expand_rules.rule(twice)(lambda x, y: x + y)
    assert twice(pnp.asarray(1.5)).item() == 3


def test_type_rules_are_asked_once_for_each_key():
    """One answer for each type and parameters, told apart as `freeze` tells them apart."""
    asked = []

    def rule(x, *, k):
        asked.append((x, k))
        return x

    p = Primitive("core_primitive.asked", rule)
    for k in (1, 1.0, True, 1, 1.0, True, -0.0, 0.0, 0.0):
        assert p.infer((F,), {"k": k}) is F
    assert [repr(k) for _, k in asked] == ["1", "1.0", "True", "-0.0", "0.0"]
    p.infer((ext.Aval((3,), np.float32),), {"k": 1})
    assert len(asked) == 6
    plain = Primitive("core_primitive.plain", lambda x: asked.append(x) or x)
    del asked[:]
    assert plain.infer((F,), {}) is plain.infer((F,), {}) is F and asked == [F]


def test_typed_parameters_cost_no_freezing():
    """Annotations that rule out equal values of different types spare the key its types."""

    def exact(x, *, axes: "tuple[int, ...]", name: str, flag: bool):
        return x

    def loose(x, *, axes: "tuple[int, ...]", scale: float):
        return x

    def bare(x, *, k):
        return x

    def anything(x, **params):
        return x

    assert Primitive("core_primitive.exact", exact).loose is None
    assert Primitive("core_primitive.loose", loose).loose == ("scale",)
    assert Primitive("core_primitive.bare", bare).loose == ("k",)
    assert Primitive("core_primitive.anything", anything).loose == ("params",)


def test_operations_with_effects_are_asked_every_time():
    """What a primitive does may depend on more than types: nothing is remembered."""
    asked = []
    p = Primitive(
        "core_primitive.acts",
        lambda x: asked.append(x) or x,
        effect=lambda params: ext.Effect("core_primitive"),
    )
    p.infer((F,), {})
    p.infer((F,), {})
    assert asked == [F, F]


def test_elements_that_are_no_numbers():
    """Primitives that compute refuse keys; those that only move elements take them."""
    key = plait.random.key(0)
    p = Primitive("core_primitive.computes", lambda x: x)
    moves = Primitive("core_primitive.moves", lambda x: x, traits=(ext.Structural,))
    with pytest.raises(TypeRule, match="computes"):
        p.infer((key.aval,), {})
    assert moves.infer((key.aval,), {}) is key.aval
    assert moves.opaque and not p.opaque


Pair = namedtuple("Pair", "a b")
Other = namedtuple("Other", "a b")


def test_keys_of_static_values():
    """Equal keys only where nothing could tell the values apart."""
    different = [
        1, 1.0, True, 1 + 0j, 0, 0.0, -0.0, False, 0j, complex(0.0, -0.0), complex(-0.0, 0.0),
        (), (1,), (1.0,), ((1,),), Pair(1, 2), Other(1, 2), (1, 2), (2, 1), "1", None,
        frozenset(), frozenset([1]), frozenset([1.0]), np.float32(1), np.float64(1), int, float,
    ]  # fmt: skip
    keys = [freeze(x) for x in different]
    assert len(set(keys)) == len(different)
    for x in different:
        assert freeze(x) == freeze(copy.deepcopy(x))
    for wrong in ([1], {1: 2}, (1, [2]), {1}):
        with pytest.raises(TypeError):
            freeze(wrong)
    with pytest.raises(TypeError):
        freeze_params({"k": [1]})
    assert freeze_params({"a": 1}) != freeze_params({"a": 1.0}) != freeze_params({"b": 1.0})


def test_a_second_primitive_of_one_name_is_refused():
    """Both owners are named; a definition that runs twice is one definition."""
    ext.Primitive("core_primitive.claimed", lambda x: x)
    with pytest.raises(plait.errors.DuplicateRule) as caught:
        ext.Primitive("core_primitive.claimed", lambda x: x.with_shape(()))
    assert caught.value.what.count("test_primitive.py:") == 2
    with pytest.raises(
        plait.errors.DuplicateRule, match=r"'core\.mul': one of plait\._ops.*one of"
    ):
        ext.Primitive("core.mul", lambda x, y: x)
    for _ in range(2):
        ext.Primitive("core_primitive.cell", lambda x: x)


def test_a_former_name_is_read_as_the_primitive():
    """Where a name was another's, or is one, it is refused; the same definition may run twice."""

    def define(name, formerly):
        def rule(x):
            return x

        rule.__qualname__ = name
        return ext.Primitive(f"core_primitive.{name}", rule, formerly=formerly)

    for _ in range(2):
        made = define("renamed", ("core_primitive.early", "core_past.early"))
        assert made.formerly == ("core_primitive.early", "core_past.early")
        assert registered("core_past.early") is made and registered(made.name) is made
    text = "f(%0: f32[]) { %1: f32[] = core_past.early(%0) return %1 }"
    assert plait.text.parse(text).eqns[0].prim is made
    duplicate, wrong = plait.errors.DuplicateRule, plait.errors.RegistrationError
    with pytest.raises(duplicate, match="two primitives have the former name 'core_past.early'"):
        define("other", ("core_past.early",))
    with pytest.raises(duplicate, match="two primitives have the name 'core_primitive.renamed'"):
        define("other", ("core_primitive.renamed",))
    with pytest.raises(wrong, match="'early' has no namespace"):
        define("other", ("early",))
    with pytest.raises(wrong, match="must be a tuple of names, got the text 'core_past.early'"):
        define("other", "core_past.early")
    later = define("early", ())
    assert registered("core_primitive.early") is later, "a name of today is never a former one"
    assert registered("core_past.early") is made


def _scaled_by(k):
    @ext.primitive("core_primitive.by")
    def by(x):
        return x

    ext.expand_rules.rule(by)(lambda x: x * k)
    return by


def test_a_redefined_primitive_is_never_read_as_the_other():
    """Text and pickles find primitives by name: of a replaced one they are refused."""
    old, new = _scaled_by(2), _scaled_by(3)
    p, q = (plait.make_program(f.bind)(pnp.ones(2)) for f in (old, new))
    np.testing.assert_array_equal(ext.evaluate(p, [pnp.ones(2)])[0], [2, 2])
    (back,) = ext.evaluate(plait.text.parse(str(q)), [pnp.ones(2)])
    np.testing.assert_array_equal(back, [3, 3])
    assert "<core_primitive.by, since redefined>" in str(p)
    with pytest.raises(plait.errors.ProgramError):
        plait.text.parse(str(p))
    with pytest.raises(plait.errors.RegistrationError, match="was defined again"):
        pickle.dumps(old)
    assert copy.copy(old) is old and copy.deepcopy(old) is old


def test_every_family_is_known():
    """A module of `plait._ops` that defines primitives is imported by `families`."""
    for m in pkgutil.iter_modules(_ops.__path__, "plait._ops."):
        importlib.import_module(m.name)
    made_in = {getattr(p.rule, "func", p.rule).__module__ for p in primitives().values()}
    found = {m.rpartition(".")[2] for m in made_in if m.startswith("plait._ops.")}
    assert found <= {*families.__all__} and found
