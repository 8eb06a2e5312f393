"""Trees: containers, registered classes, paths, prefixes; against Python's own recursion.

Invariant: what is expected is written out, or found by plain recursion over Python containers.
"""

import dataclasses
import enum
import functools
import pickle
from collections import OrderedDict, defaultdict, namedtuple

import pytest

import plait
from plait import tree
from plait import tree_util as tu
from plait.errors import TreeMismatch, TypeRule
from plait.tree import exact_key, in_words

Point = namedtuple("Point", "x y")


def nested():
    return {
        "w": [1, (2, None)],
        "p": Point(3, OrderedDict(z=4, a=5)),
        "d": defaultdict(int, {"k": 6}),
    }


def by_recursion(t):
    """(path as text, leaf), in order."""
    if t is None:
        return []
    if isinstance(t, OrderedDict):
        kids = [(f"[{k!r}]", v) for k, v in t.items()]
    elif isinstance(t, dict):
        kids = [(f"[{k!r}]", t[k]) for k in sorted(t)]
    elif hasattr(t, "_fields"):
        kids = [(f".{f}", getattr(t, f)) for f in t._fields]
    elif isinstance(t, list | tuple):
        kids = [(f"[{i}]", v) for i, v in enumerate(t)]
    else:
        return [("", t)]
    return [(k + rest, leaf) for k, v in kids for rest, leaf in by_recursion(v)]


def test_leaves_and_paths_are_those_of_a_recursion():
    t = nested()
    want = by_recursion(t)
    assert plait.tree.leaves(t) == [x for _, x in want]
    assert [(tu.keystr(p), x) for p, x in plait.tree.leaves_with_path(t)] == want
    pairs, kind = plait.tree.flatten_with_path(t)
    assert kind == plait.tree.structure(t) and [x for _, x in pairs] == plait.tree.leaves(t)


def test_flatten_and_unflatten_are_inverse():
    t = nested()
    leaves, kind = plait.tree.flatten(t)
    again = plait.tree.unflatten(kind, leaves)
    assert again == t and type(again["p"]) is Point and type(again["d"]) is defaultdict
    assert again["d"].default_factory is int and list(again["p"].y) == ["z", "a"]
    assert hash(kind) == hash(plait.tree.structure(nested())) and kind.num_leaves == 6
    with pytest.raises(ValueError):
        plait.tree.unflatten(kind, [*leaves, 0])


def test_map():
    assert plait.tree.map(lambda x: x * 2, nested())["p"] == Point(6, OrderedDict(z=8, a=10))
    assert plait.tree.map(lambda x, y: (x, y), [1, 2], [[3], (4,)]) == [(1, [3]), (2, (4,))]
    assert plait.tree.map(lambda x: x, None) is None
    assert plait.tree.map(lambda x: x or 0, [None, 1], is_leaf=lambda x: x is None) == [0, 1]
    named = plait.tree.map_with_path(lambda p, x, y: (tu.keystr(p), x, y), [1, 2], [3, 4])
    assert named == [("[0]", 1, 3), ("[1]", 2, 4)]


@pytest.mark.parametrize(
    ("other", "where"),
    [({"a": [1]}, r"\['a'\]"), ({"b": [1, 2]}, "top"), ({"a": (1, 2)}, r"list against tuple")],
)
def test_a_mismatch_says_where(other, where):
    with pytest.raises(TreeMismatch, match=where):
        plait.tree.map(lambda x, y: x, {"a": [1, 2]}, other)


def test_is_leaf_may_take_the_path():
    stop = lambda path, node: len(path) == 1
    assert plait.tree.leaves_with_path([[1], [2]], stop, is_leaf_takes_path=True) == [
        ((tu.SequenceKey(0),), [1]),
        ((tu.SequenceKey(1),), [2]),
    ]


def test_folds():
    assert plait.tree.reduce(lambda a, b: a - b, [10, [1, 2]]) == 7
    assert plait.tree.reduce(lambda a, b: a + b, [], 5) == 5
    assert plait.tree.reduce(lambda a, b: a + [b], [1, 2], []) == [1, 2]
    for n in range(1, 9):
        assert plait.tree.reduce_associative(lambda a, b: a + b, [f"{i}" for i in range(n)]) == (
            "".join(map(str, range(n)))
        )
    assert plait.tree.reduce_associative(lambda a, b: a + b, [], identity="") == ""
    assert plait.tree.all([True, [1, ()]]) and not plait.tree.all({"a": 0})
    for f in (plait.tree.reduce, plait.tree.reduce_associative):
        with pytest.raises(TypeRule, match="without leaves"):
            f(lambda a, b: a, ())


def test_transpose():
    s = plait.tree.structure
    rows = [{"a": 1, "b": (2, 3)}, {"a": 4, "b": (5, 6)}]
    want = {"a": [1, 4], "b": ([2, 5], [3, 6])}
    assert plait.tree.transpose(s([0, 0]), s(rows[0]), rows) == want
    assert plait.tree.transpose(s([0, 0]), None, rows) == want
    assert plait.tree.transpose(s([]), s((0, 0)), []) == ([], [])
    with pytest.raises(TreeMismatch):
        plait.tree.transpose(s([0, 0]), None, [(1, 2), (3,)])
    with pytest.raises(TreeMismatch):
        plait.tree.transpose(s([]), None, [])


def test_broadcast():
    assert plait.tree.broadcast(1, nested())["p"] == Point(1, OrderedDict(z=1, a=1))
    with pytest.raises(TreeMismatch):
        plait.tree.broadcast([1, 2], [1, 2, 3])


class Pair:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def tree_flatten(self):
        return (self.x, self.y), "pair"

    @classmethod
    def tree_unflatten(cls, static, children):
        assert static == "pair"
        return cls(*children)


class Named(Pair):
    def tree_flatten_with_keys(self):
        return ((tu.GetAttrKey("x"), self.x), (tu.DictKey("y"), self.y)), "pair"


tu.register_pytree_node_class(Pair)
tu.register_pytree_with_keys_class(Named)


def test_registered_classes():
    assert plait.tree.leaves(Pair(1, [2])) == [1, 2]
    assert plait.tree.map(lambda x: -x, Pair(1, [2])).y == [-2]
    assert [tu.keystr(p) for p, _ in plait.tree.leaves_with_path(Named(1, [2]))] == [
        ".x",
        "['y'][0]",
    ]
    with pytest.raises(TypeRule, match="registered as a tree already"):
        tu.register_pytree_node_class(Pair)
    with pytest.raises(TypeRule, match="only classes"):
        tu.register_pytree_node(3, None, None)
    with pytest.raises(TreeMismatch, match=r"\.x"):
        plait.tree.map(lambda x, y: 0, Named([1, 2], 2), Named([1], 2))


def test_register_with_names_of_attributes():
    class Box:
        def __init__(self, w):
            self.w = w

    plait.tree.register(Box, lambda b: ((b.w,), None), lambda s, kids: Box(*kids), lambda b: [".w"])
    assert plait.tree.leaves_with_path(Box(3)) == [((tu.GetAttrKey("w"),), 3)]


def test_dataclasses():
    @plait.tree.register_dataclass
    @dataclasses.dataclass
    class Layer:
        w: object
        name: str = plait.tree.static(default="layer")

    a = Layer(1)
    assert plait.tree.leaves(a) == [1] and plait.tree.map(lambda x: 2, a) == Layer(2)
    assert plait.tree.structure(a) != plait.tree.structure(Layer(1, "other"))
    assert [tu.keystr(p) for p, _ in plait.tree.leaves_with_path(a)] == [".w"]
    with pytest.raises(TypeRule, match="not a dataclass"):
        plait.tree.register_dataclass(int)
    with pytest.raises(TypeRule, match="neither data nor static"):
        plait.tree.register_dataclass(dataclasses.make_dataclass("D", ["a", "b"]), ["a"], [])


def test_static_objects():
    @tu.register_static
    @dataclasses.dataclass(frozen=True)
    class Mode:
        name: str

    assert plait.tree.leaves([Mode("a"), 1]) == [1]
    assert plait.tree.structure(Mode("a")) == plait.tree.structure(Mode("a"))
    assert plait.tree.structure(Mode("a")) != plait.tree.structure(Mode("b"))
    assert plait.tree.static().metadata == {"static": True}
    assert plait.tree.static(metadata={"static": False, "k": 1}).metadata["static"] is False


def test_partial():
    def f(a, b, c):
        return (a, b, c)

    p = tu.Partial(f, 1, c=3)
    assert p(2) == (1, 2, 3) and plait.tree.leaves(p) == [1, 3]
    assert plait.tree.map(lambda x: x * 10, p)(2) == (10, 2, 30)
    assert plait.tree.leaves(tu.Partial(p, 2)) == [1, 2, 3] and tu.Partial(p, 2)() == (1, 2, 3)
    opaque = tu.Partial(functools.partial(f, "text"), 2)
    assert plait.tree.leaves(opaque) == [2] and opaque(3) == ("text", 2, 3)
    assert plait.tree.structure(opaque) == plait.tree.structure(plait.tree.map(lambda x: x, opaque))


def test_a_partial_of_a_partial_holds_it_whole():
    """functools would join the two; the inner one stays apart, and is equal to what was given."""
    inner = functools.partial(max, 1, key=abs)
    outer = tu.Partial(inner, 5)
    assert outer.func == inner and inner == outer.func and hash(outer.func) == hash(inner)
    assert outer.func != functools.partial(max, 1, key=abs)  # functools compares by identity
    assert (outer.func.func, outer.func.args, outer.func.keywords) == (max, (1,), {"key": abs})
    assert outer(-3) == 5 and pickle.loads(pickle.dumps(outer))(-7) == -7
    one, other = (plait.tree.structure(tu.Partial(inner, x)) for x in (5, 6))
    assert one == other and hash(one) == hash(other)
    assert one != plait.tree.structure(tu.Partial(functools.partial(max, 1), 5))


def test_structures():
    kind = plait.tree.structure(([1], {"a": 2}))
    assert tu.treedef_children(kind) == [plait.tree.structure([1]), plait.tree.structure({"a": 2})]
    assert tu.treedef_tuple(tu.treedef_children(kind)) == kind
    assert tu.treedef_is_leaf(plait.tree.structure(0)) and not tu.treedef_is_leaf(kind)
    assert not tu.treedef_is_leaf(plait.tree.structure(None))
    assert tu.all_leaves([1, "a"]) and not tu.all_leaves([1, (2,)])
    assert tu.all_leaves([(1, 2)], is_leaf=lambda x: isinstance(x, tuple))
    classes = [dict, list, tuple, type(None), Point, Pair, int, str]
    assert [tu.is_tree_node(c) for c in classes] == [True] * 6 + [False] * 2


def test_names_of_keys():
    path = (tu.DictKey("w"), tu.SequenceKey(0), tu.GetAttrKey("b"), tu.FlattenedIndexKey(1))
    assert tu.keystr(path[:3]) == "['w'][0].b"
    assert tu.keystr(path, simple=True, separator="/") == "w/0/b/1"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("numbers", [False, True])
def test_keys_of_structures_do_not_depend_on_the_order_of_calls(order, numbers):
    """Strings that a dictionary takes for one are one; numbers that it takes for one are told
    apart, whichever of them was met first."""
    stem = f"key of {order} {numbers}"  # a structure that no other test has met
    name = enum.Enum("Name", {"member": stem}, type=str).member
    pair = [{stem + "!": {k: 0}} for k in ((1, True) if numbers else (stem, name))]
    keys = {}
    for i in order:
        keys[i] = exact_key(plait.tree.structure(pair[i]))
    assert (keys[0] == keys[1]) is not numbers


@dataclasses.dataclass
class Layer:
    name: str
    w: object
    b: object


tree.register(Layer, lambda x: ((x.w, x.b), x.name), lambda name, xs: Layer(name, *xs))


class Both:
    def __init__(self, *parts):
        self.parts = parts


tree.register(Both, lambda x: (x.parts, None), lambda _, xs: Both(*xs))
Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "value, words",
    [
        (1.0, "a single array"),
        ((1,), "(array,)"),
        ([(), None, {"a": 1}], "[(), None, {'a': array}]"),
        (Point(1, (2,)), "Point(x=array, y=(array,))"),
        (OrderedDict(b=1, a=2), "OrderedDict({'b': array, 'a': array})"),
        (defaultdict(list, a=1), "defaultdict({'a': array})"),
        (Both(1, {"k": 2}), "Both(array, {'k': array})"),
        ({"*": Layer("first", 1, 2)}, "{'*': Layer[first]}"),
        (Layer("first", Both(1), 2), "Layer[first](Both(array), array)"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_structures_are_written_as_users_write_trees(value, words):
    assert in_words(tree.structure(value)) == words


def test_classes_whose_static_parts_differ_are_told_apart_in_words():
    with pytest.raises(TreeMismatch, match=r"at \[0\]: Layer\[a\] against Layer\[b\]"):
        tree.map(lambda x, y: x, [Layer("a", 1, 2)], [Layer("b", 1, 2)])
