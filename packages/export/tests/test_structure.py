"""Trees of arguments and results, written and read."""

import dataclasses
import json
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest

import plait
from plait.ext.errors import DuplicateRule, TypeRule
from plait.ext.tree import flatten
from plait_export import (
    ArtifactError,
    NotExportable,
    deserialize,
    export,
    register_namedtuple_serialization,
    register_pytree_node_serialization,
    register_pytree_serialization,
    structure,
)

X = np.arange(3, dtype=np.float32)
Pair = namedtuple("Pair", "a b")
Lonely = namedtuple("Lonely", "a")


@plait.tree.register_dataclass
@dataclasses.dataclass
class Layer:
    w: object
    b: object
    kind: object = plait.tree.static(default=("relu", 2, None, True, (1.5, float("inf"))))


@plait.tree.register_dataclass
@dataclasses.dataclass
class Unnamed:
    w: object


class Tagged:
    def __init__(self, x, tag):
        self.x, self.tag = x, tag


plait.tree.register(Tagged, lambda t: ((t.x,), t.tag), lambda tag, xs: Tagged(*xs, tag))
register_namedtuple_serialization(Pair, serialized_name="test.Pair")
register_pytree_serialization(Layer, serialized_name="test.Layer")
register_pytree_node_serialization(
    Tagged,
    serialized_name="test.Tagged",
    serialize_auxdata=lambda tag: tag.encode(),
    deserialize_auxdata=lambda data: data.decode(),
)

TREES = [
    X,
    (X, [X, None], {"a": X, "b": (), "c": {}}),
    {2: X, 10: [X], -1: X},
    {("a", 1): X, ("b", 0): X},
    {True: X},
    {1.5: X, float("-inf"): X},
    OrderedDict([("z", X), ("a", X)]),
    Pair(X, Pair(X, None)),
    Layer(X, [X]),
    Layer(X, None, kind=None),
    [Tagged(X, "grüße"), Tagged((X, X), "")],
    None,
]


@pytest.mark.parametrize("tree", TREES, ids=[str(i) for i in range(len(TREES))])
def test_trees_come_back(tree):
    _, kind = flatten(tree)
    text = json.dumps(structure.written(kind, "it", set()))
    assert structure.read(json.loads(text)) == kind


@pytest.mark.parametrize("tree", TREES, ids=[str(i) for i in range(len(TREES))])
def test_functions_of_trees(tree):
    """Called after reading with the very trees, and returning them doubled."""
    double = lambda t, *, again: plait.tree.map(lambda x: x * 2, (t, again))  # noqa: E731
    exported = export(double)(tree, again=tree)
    out = deserialize(exported.serialize()).call(tree, again=tree)
    want = plait.tree.map(lambda x: x * 2, (tree, tree))
    assert flatten(out)[1] == flatten(want)[1]
    for a, b in zip(flatten(out)[0], flatten(want)[0], strict=True):
        np.testing.assert_array_equal(a, b)


def test_dicts_keep_the_order_of_structures():
    exported = export(lambda d: d)({"b": X, "a": X * 2})
    out = deserialize(exported.serialize()).call({"a": X, "b": X + 1})
    np.testing.assert_array_equal(out["b"], X + 1)


def test_classes_without_a_name_are_refused():
    with pytest.raises(NotExportable, match="class Unnamed, .* in the arg") as e:
        export(lambda t: t.w)(Unnamed(X)).serialize()
    assert "register_pytree_serialization(Unnamed, serialized_name=...)" in e.value.fix
    with pytest.raises(NotExportable, match="class Lonely, .* in the result") as e:
        export(lambda x: Lonely(x))(X).serialize()
    assert "register_namedtuple_serialization(Lonely" in e.value.fix
    with pytest.raises(NotExportable, match="class defaultdict"):
        export(lambda d: d["a"])(defaultdict(list, a=X)).serialize()


def test_they_can_be_called_all_the_same():
    exported = export(lambda t: Lonely(t.w))(Unnamed(X))
    np.testing.assert_array_equal(exported.call(Unnamed(X + 1)).a, X + 1)


def test_static_parts_without_text_are_refused():
    with pytest.raises(NotExportable, match="the static part of Layer in the arguments is") as e:
        export(lambda t: t.w)(Layer(X, X, kind=np.sin)).serialize()
    assert "serialize_auxdata" in e.value.fix
    with pytest.raises(NotExportable, match="a key of the arguments is"):
        export(lambda t: t[b"k"])({b"k": X}).serialize()


def test_classes_not_registered_where_it_is_read(monkeypatch):
    saved = export(lambda p: p.a)(Pair(X, X)).serialize()
    monkeypatch.delitem(structure._by_name, "test.Pair")
    with pytest.raises(ArtifactError, match="a class it calls 'test.Pair'") as e:
        deserialize(saved)
    assert "serialized_name='test.Pair'" in e.value.fix


def test_static_parts_that_can_not_be_read(monkeypatch):
    saved = export(lambda t: t.x)(Tagged(X, "a")).serialize()
    broken = structure._by_name["test.Tagged"]._replace(read=lambda data: 1 / 0)
    monkeypatch.setitem(structure._by_name, "test.Tagged", broken)
    with pytest.raises(ArtifactError, match="'test.Tagged' cannot be read: ZeroDivisionError"):
        deserialize(saved)


def test_names_and_classes_are_registered_once():
    with pytest.raises(DuplicateRule, match="registered for artifacts already, as 'test.Pair'"):
        register_namedtuple_serialization(Pair, serialized_name="test.Other")
    with pytest.raises(DuplicateRule, match="Pair is registered"):
        register_namedtuple_serialization(Lonely, serialized_name="test.Pair")
    with pytest.raises(TypeRule, match="int is not a named tuple"):
        register_namedtuple_serialization(int, serialized_name="test.Int")
    with pytest.raises(TypeRule, match="both written and read"):
        register_pytree_serialization(
            Lonely, serialized_name="test.Half", serialize_auxdata=lambda x: b""
        )
    assert register_namedtuple_serialization.__doc__


@pytest.mark.parametrize(
    "node",
    [3, "x", [], {}, {"tuple": 3}, {"tuple": [3]}, {"dict": [["a"]]}, {"dict": [[{}, "*"]]},
     {"node": 3, "children": []}, {"node": "test.Pair"}, {"a": [], "b": []}, {"what": []},
     {"dict": [["a", "*"], ["a", "*"]]}, {"dict": [[{"tuple": [{"list": []}]}, "*"]]},
     {"dict": [[{"float": "x"}, "*"]]},
     {"node": "test.Pair", "children": ["*"]},
     {"node": "test.Tagged", "bytes": "%", "children": []},
     {"node": "test.Layer", "static": {"list": []}, "children": ["*", "*"]}],
)  # fmt: skip
def test_json_that_describes_no_tree(node):
    """Never a crash: an error here, or a structure that holds no other number of leaves."""
    try:
        found = structure.read(node)
    except ArtifactError:
        return
    assert found.num_leaves == json.dumps(node).count('"*"')


def test_very_deep_json_is_refused():
    node: object = "*"
    for _ in range(5000):
        node = {"tuple": [node]}
    with pytest.raises(ArtifactError):
        structure.read(node)
