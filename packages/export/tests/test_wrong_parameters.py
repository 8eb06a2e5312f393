"""Things of every other kind for each parameter of the public functions: an error of ours, with
what to write, at the line of the call."""

from typing import Any

import numpy as np
import pytest

import plait
from plait import export as E
from plait import numpy as pnp

X = np.ones((4, 3), np.float32)
WEIGHT = np.ones((3, 300), np.float32)


class Strange:
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other):
        raise RuntimeError("compared")


class Plain:
    pass


JUNK: list[Any] = [
    None, True, -1, 3.5, float("nan"), "", "x", "a\0b", b"\0" * 40, [], ["x"], [None], {"a": 1},
    {"b": -1}, {"b": "4"}, {"b": 2.5}, set(), object(), Strange(), Plain, print, np.ones(3),
    np.array("x"), np.array([None]), X, pnp.ones((4, 3)), plait.ShapeDtypeStruct((4, 3), "f4"),
    iter([1]), slice(1), 40, plait.random.key(0),
]  # fmt: skip


def f(x):
    return pnp.tanh(x) * 2


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    of_sizes = E.export(f)(E.symbolic_args_specs(X, "b, 3"))
    found = {
        "e": of_sizes, "fixed": E.export(f)(X), "blob": of_sizes.serialize(), "folder": folder,
        "weighted": E.export(lambda x: x @ WEIGHT, weights=1)(X), "path": folder / "f",
        "compiled": of_sizes.compile({"b": 4}), "bundle": folder / "b",
    }  # fmt: skip
    found["e"].save(found["path"])
    found["compiled"].save(found["bundle"])
    return found


CALLS = {
    "fun_jit": lambda m, j: E.export(j),
    "platforms": lambda m, j: E.export(f, platforms=j)(X),
    "platforms[]": lambda m, j: E.export(f, platforms=[j])(X),
    "disabled_checks": lambda m, j: E.export(f, disabled_checks=j)(X),
    "disabled_checks[]": lambda m, j: E.export(f, disabled_checks=[j])(X),
    "custom_calls": lambda m, j: E.export(f, custom_calls=j)(X),
    "custom_calls[]": lambda m, j: E.export(f, custom_calls=[j])(X),
    "libraries": lambda m, j: E.export(f, libraries=j)(X),
    "weights": lambda m, j: E.export(f, weights=j)(X),
    "argument": lambda m, j: E.export(f)(j),
    "deserialize": lambda m, j: E.deserialize(j),
    "calls of strangers": lambda m, j: E.deserialize(m["blob"], custom_calls=j),
    "key": lambda m, j: E.deserialize(m["blob"], key=j),
    "isolated": lambda m, j: None if j is True else E.deserialize(m["blob"], isolated=j),
    "lose_custom_rules": lambda m, j: E.deserialize(m["blob"], lose_custom_rules=j),
    "load": lambda m, j: E.load(j),
    "load_compiled": lambda m, j: E.load_compiled(j, trusted=True),
    "trusted": lambda m, j: E.load_compiled(m["bundle"], trusted=j),
    "key of a bundle": lambda m, j: E.load_compiled(m["bundle"], trusted=True, key=j),
    "import_jax": lambda m, j: E.import_jax(j),
    "symbolic_shape": lambda m, j: E.symbolic_shape(j),
    "constraints": lambda m, j: E.symbolic_shape("a, b", constraints=j),
    "constraints[]": lambda m, j: E.symbolic_shape("a, b", constraints=[j]),
    "scope": lambda m, j: E.symbolic_shape("a, b", scope=j),
    "like": lambda m, j: E.symbolic_shape("a, ...", like=j),
    "args": lambda m, j: E.symbolic_args_specs(j, "b, 3"),
    "shapes_specs": lambda m, j: E.symbolic_args_specs(X, j),
    "scope of args": lambda m, j: E.symbolic_args_specs(X, "b, 3", scope=j),
    "call": lambda m, j: m["e"].call(j),
    "call of a second": lambda m, j: m["e"].call(X, j),
    "jit": lambda m, j: plait.jit(m["e"].call)(j),
    "serialize": lambda m, j: None if j is JUNK[-2] else m["e"].serialize(j),
    "seal": lambda m, j: m["e"].serialize(key=j),
    "save": lambda m, j: m["e"].save(j),
    "program": lambda m, j: m["e"].program(j),
    "lost": lambda m, j: m["e"].program(lose_custom_rules=j),
    "compile": lambda m, j: m["e"].compile(j),
    "compile fixed": lambda m, j: m["fixed"].compile(j),
    "specialize": lambda m, j: m["e"].specialize(j),
    "a size": lambda m, j: m["e"].specialize({"b": j}),
    "platform": lambda m, j: m["e"].specialize({"b": 4}, j),
    "call compiled": lambda m, j: m["compiled"].call(j),
    "with_weights": lambda m, j: m["weighted"].with_weights(j),
    "a weight": lambda m, j: m["weighted"].with_weights({"WEIGHT": j}),
    "mesh": lambda m, j: m["fixed"].in_shardings_jax(j),
    "nodetype": lambda m, j: E.register_pytree_serialization(j, serialized_name=""),
    "serialized_name": lambda m, j: None if isinstance(j, str) and j else
    E.register_pytree_serialization(Plain, serialized_name=j),
    "auxdata": lambda m, j: E.register_pytree_serialization(Plain, serialized_name="",
                                                            serialize_auxdata=j),
    "named tuple": lambda m, j: E.register_namedtuple_serialization(j, serialized_name="x"),
    "custom_call": lambda m, j: E.DisabledSafetyCheck.custom_call(j),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_what_is_of_no_such_kind_is_refused_in_words(made, name, monkeypatch):
    monkeypatch.chdir(made["folder"])  # some of it is a name of a file
    refused = 0
    for junk in JUNK:
        try:
            CALLS[name](made, junk)
        except plait.errors.PlaitError as e:
            refused += 1
            assert e.fix and "test_wrong_parameters.py" in str(e), str(e)
    assert refused or name == "mesh"


def test_a_single_name_is_no_list_of_letters():
    with pytest.raises(plait.errors.ArgumentError, match="custom_calls is 'theirs'") as e:
        E.export(f, custom_calls="theirs")
    assert 'custom_calls=["name"]' in str(e.value)
