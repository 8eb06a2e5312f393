"""Trees of values: tuples, lists, dicts, None, named tuples, and classes that users register.

Users call this module `plait.tree`: `flatten`, `unflatten`, `leaves`, `structure`, `map`, `reduce`,
`all`, `transpose`, `broadcast`, and the same with paths.

Invariant: Plait has a registry of its own, and registers nothing in those of other libraries.
Every message about a tree names the place in it by a key path like `['w'][0].bias`.
"""

import builtins
import dataclasses
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from ._base.errors import (
    ArgumentError,
    AxisError,
    DeletedArrayError,
    PlacementError,
    TreeMismatch,
    TypeRule,
)
from ._base.freezing import PLAIN, Exact, bare, exact, freeze
from ._base.guarded import guarded_map, guarded_nodes, visible_leaves
from ._base.jaxlib_api import new_registry, pytree
from ._base.lazy import advise as _advise
from ._base.lazy import later
from ._base.tracebacks import border
from ._base.tracebacks import explained_calls as _explained_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
    "map_with_path", "reduce", "reduce_associative", "register", "register_dataclass", "static",
    "structure", "transpose", "unflatten",
]  # fmt: skip

DictKey: type[Any] = pytree.DictKey
SequenceKey: type[Any] = pytree.SequenceKey
GetAttrKey: type[Any] = pytree.GetAttrKey
FlattenedIndexKey: type[Any] = pytree.FlattenedIndexKey
"""The entries of paths; `str` of an entry is its text after the value, like `.w` or `['w']`."""
KeyPath: TypeAlias = tuple[Any, ...]
"""The entries from the root of a tree to a leaf."""

registry: Any = new_registry()
# Pickling a structure pickles its registry by name, so the registry must be found under this name.
registry.__module__, registry.__name__ = __name__, "registry"
_flatten = registry.flatten
if TYPE_CHECKING:

    class TreeDef(Protocol):
        """The structure of a tree: hashable, and equal to that of trees of the same form."""

        @property
        def num_leaves(self) -> int: ...
        def children(self) -> "list[TreeDef]": ...
        def node_data(self) -> "tuple[Any, Any] | None": ...
        @border
        def unflatten(self, leaves: "Iterable[Any]", /) -> Any: ...
        def flatten_up_to(self, tree: Any, /) -> list[Any]: ...

else:
    TreeDef = type(_flatten(0)[1])
LEAF: "TreeDef" = _flatten(0)[1]
"""The structure of a single leaf."""


def flatten(
    tree: object, is_leaf: "Callable[[Any], bool] | None" = None
) -> "tuple[list[Any], TreeDef]":
    """Return (leaves in order, structure).

    Args:
      tree: values in nested containers; None is a container without leaves.
      is_leaf: called with each node; the node is a leaf if it returns True.

    >>> import plait
    >>> plait.tree.flatten({"b": [1, 2], "a": 3})
    ([3, 1, 2], PyTreeDef({'a': *, 'b': [*, *]}))
    """
    try:
        return _flatten(tree) if is_leaf is None else _flatten(tree, is_leaf)
    except (SystemError, RecursionError) as e:
        # jaxlib counts its own recursion against Python's limit, and raises either of these.
        if e.__class__ is SystemError and not isinstance(e.__cause__, RecursionError):
            raise
        raise TreeMismatch(
            "a tree is nested more deeply than trees can be taken apart, or contains itself",
            fix="keep many levels in a flat list or a dictionary, or raise "
            "sys.setrecursionlimit before",
        ) from None


def node_data(tree: "TreeDef") -> "tuple[type, Any] | None":
    """Return the class and the static part of the node at the top; None for a leaf."""
    data = tree.node_data()
    return None if data is None else (data[0], bare(data[1]))


class KeyedTree(NamedTuple):
    """A structure whose dictionaries have keys that == may not distinguish, with these keys."""

    keys: "Hashable"
    tree: "TreeDef"


def exact_key(tree: "TreeDef") -> "TreeDef | KeyedTree":
    """Return a hashable key of a structure: the structure itself if == distinguishes its kind.

    jaxlib compares the keys of dictionaries by ==, for which 1, True and 1.0 are one.  Strings,
    members of string enumerations among them, are compared so here too: a look-up by one finds the
    other, and jitted calls look keys up.
    """
    try:
        is_loose = _has_other_keys(tree)
    except ValueError:  # the structure holds numpy arrays, whose == is not a bool
        is_loose = True
    return KeyedTree(tuple(_dict_keys(tree)), tree) if is_loose else tree


def bare_tree(key: "TreeDef | KeyedTree") -> "TreeDef":
    """Return the structure of a key."""
    return key.tree if key.__class__ is KeyedTree else key  # type: ignore[union-attr,return-value]


# The cache is small: hashes leave static parts out, so a look-up compares a structure with all
# others that differ only in these.
@lru_cache(maxsize=128)
def _has_other_keys(tree: "TreeDef") -> bool:
    """Return whether dictionaries have keys that are not strings.

    Structures that are equal by == have one answer, whichever of them the cache meets first.
    """
    return builtins.any(not issubclass(kind, str) for kind, _ in _dict_keys(tree))


def _dict_keys(tree: "TreeDef") -> "Iterator[Any]":
    """Yield the keys of all dictionaries in a structure, frozen: (class, value)."""
    data = tree.node_data()
    if data is not None and data[0] is dict:
        yield from builtins.map(freeze, data[1])
    for child in tree.children():
        yield from _dict_keys(child)


def unflatten(treedef: "TreeDef", leaves: "Iterable[Any]") -> Any:
    """Return the tree of this structure with these leaves; the inverse of `flatten`.

    Raises ValueError if there are more or fewer leaves than the structure has.
    """
    return treedef.unflatten(leaves)


def leaves(tree: object, is_leaf: "Callable[..., bool] | None" = None) -> list[Any]:
    """Return the leaves in order."""
    return flatten(tree, is_leaf)[0]


def structure(tree: object, is_leaf: "Callable[..., bool] | None" = None) -> "TreeDef":
    """Return the tree without its leaves: comparable and hashable."""
    return flatten(tree, is_leaf)[1]


def map_tree(
    f: "Callable[..., Any]",
    tree: object,
    *rest: object,
    is_leaf: "Callable[..., bool] | None" = None,
) -> Any:
    """Apply `f` to corresponding leaves of trees, with no exception; see `map`."""
    xs, kind = flatten(tree, is_leaf)
    others = [flatten_up_to(kind, r, tree, f"argument {i + 2}") for i, r in enumerate(rest)]
    return kind.unflatten([f(*vs) for vs in zip(xs, *others, strict=True)])


def in_words(kind: "TreeDef") -> str:
    """Return a structure as a user would write such a tree, with `array` for each leaf."""
    return "a single array" if kind == LEAF else _in_words(kind)


def _in_words(kind: "TreeDef") -> str:
    data = node_data(kind)
    if data is None:
        return "array"
    cls, static = data
    parts = [_in_words(k) for k in kind.children()]
    inside = ", ".join(parts)
    if cls is tuple:
        return f"({inside},)" if len(parts) == 1 else f"({inside})"
    if cls is list:
        return f"[{inside}]"
    if cls in (dict, OrderedDict, defaultdict):
        keys = static[1] if cls is defaultdict else static
        text = "{" + ", ".join(f"{k!r}: {x}" for k, x in zip(keys, parts, strict=True)) + "}"
        return text if cls is dict else f"{cls.__name__}({text})"
    if cls is type(None):
        return "None"
    if is_named_tuple(cls):
        fields = zip(cls._fields, parts, strict=True)  # type: ignore[attr-defined]
        return f"{cls.__name__}({', '.join(f'{k}={x}' for k, x in fields)})"
    if static is None:
        return f"{cls.__name__}({inside})"
    name = f"{cls.__name__}[{static}]"  # its arrays are often as the static part says
    plain = builtins.all(k == LEAF for k in kind.children())
    return name if plain else f"{name}({inside})"


def flatten_up_to(kind: "TreeDef", tree: Any, like: Any, what: str) -> list[Any]:
    """Return the parts of `tree` at the leaves of `kind` (the structure of `like`)."""
    try:
        return kind.flatten_up_to(tree)
    except (ValueError, TypeError):
        raise TreeMismatch(
            f"{what} has another structure than expected: {difference(like, tree)}",
            fix=f"give it the structure {in_words(kind)}",
        ) from None


# ---- registration --------------------------------------------------------------------------


def register(
    cls: type,
    to_children: "Callable[[Any], tuple[Iterable[Any], Hashable]]",
    from_children: "Callable[[Any, Any], Any]",
    keys: "Callable[[Any], Sequence[Any]] | None" = None,
) -> None:
    """Make a class a tree: `to_children(x) -> (children, static)` and its inverse
    `from_children(static, children) -> x`.

    Structures are equal only if their static parts are of one class and equal by the rule of keys
    (1, 1.0 and True differ, as do 0.0 and -0.0).  `keys(x)` returns the path entries of the
    children, for messages and paths: entries like `DictKey("w")`, or `".w"` for an attribute.
    Raises TypeRule if the class is registered already.
    """

    def with_keys(x: object):
        kids, static = to_children(x)
        return tuple(zip(builtins.map(_entry, keys(x)), kids, strict=True)), static  # type: ignore[misc]

    register_with_keys(cls, to_children, from_children, None if keys is None else with_keys)


_registered: "set[type]" = set()
_AS_THEY_ARE = frozenset((*PLAIN, Exact))
"""Classes of static parts that need no wrapper."""


def is_named_tuple(cls: type) -> bool:
    """Return whether a class is a named tuple that is not registered as another kind of tree."""
    return issubclass(cls, tuple) and hasattr(cls, "_fields") and cls not in _registered


def register_with_keys(
    cls: type,
    to_children: Callable[..., Any],
    from_children: Callable[..., Any] | type,
    with_keys: Any,
) -> None:
    """Make a class a tree, like `register`; `with_keys(x)` returns ((entry, child) pairs, static),
    or is None."""
    if not isinstance(cls, type):
        raise ArgumentError(f"only classes can be registered as trees, not {cls!r}")

    # jaxlib compares the static parts of structures by ==, for which 1, True and 1.0 are equal.
    def exactly(x: object):
        kids, static = to_children(x)
        return kids, static if static.__class__ in _AS_THEY_ARE else exact(static)

    def exactly_with_keys(x: object):
        kids, static = with_keys(x)
        return kids, exact(static)

    def made(static: object, kids: tuple[Any, ...]):
        return from_children(bare(static), kids)

    try:
        registry.register_node(cls, exactly, made, with_keys and exactly_with_keys)
        _registered.add(cls)
    except ValueError:
        raise ArgumentError(
            f"{cls.__name__} is registered as a tree already", fix="register it once"
        ) from None


def _entry(key: object):
    """Return an attribute's path entry for `.name`; other keys as they are."""
    return GetAttrKey(key[1:]) if isinstance(key, str) and key.startswith(".") else key


def static(**options: Any) -> Any:
    """Return a field of a dataclass that is static: part of the structure, not a child."""
    metadata = {"static": True, **(options.pop("metadata", None) or {})}
    return dataclasses.field(metadata=metadata, **options)


@border
def register_dataclass(
    nodetype: type,
    data_fields: "Sequence[str] | None" = None,
    meta_fields: "Sequence[str] | None" = None,
    drop_fields: "Sequence[str]" = (),
) -> type:
    """Make a dataclass a tree: `data_fields` are children, `meta_fields` are static.

    By default fields made by `static()` are static and the others are children.  `drop_fields` are
    neither, and get their defaults when a value is rebuilt.  A class that is not a dataclass works
    too, if both kinds of fields are named and its instances are made by `cls(**fields)`.  Returns
    the class, so it can be used as a decorator.  Raises TypeRule if a field is neither, both or
    unknown.

    >>> import dataclasses, plait
    >>> @plait.tree.register_dataclass
    ... @dataclasses.dataclass
    ... class Scale:
    ...     factor: float
    ...     name: str = plait.tree.static(default="s")
    >>> plait.tree.map(lambda x: x * 2, Scale(1.5))
    Scale(factor=3.0, name='s')
    """
    cls = nodetype
    if not dataclasses.is_dataclass(cls):
        if not isinstance(cls, type) or data_fields is None or meta_fields is None:
            raise ArgumentError(
                f"{cls!r} is not a dataclass",
                fix="decorate it with @dataclasses.dataclass, or name its data_fields and "
                "meta_fields, which are then the arguments that it is made with",
            )
        return _register_fields(cls, tuple(data_fields), tuple(meta_fields))
    fields = [f for f in dataclasses.fields(cls) if f.init and f.name not in drop_fields]
    if meta_fields is None:
        named = set(data_fields or ())
        meta_fields = [
            f.name
            for f in fields
            if (f.name not in named if data_fields is not None else f.metadata.get("static"))
        ]
    if data_fields is None:
        data_fields = [f.name for f in fields if f.name not in meta_fields]
    data, meta = tuple(data_fields), tuple(meta_fields)
    missing = {f.name for f in fields} ^ {*data, *meta}
    if missing:
        raise ArgumentError(
            f"fields {sorted(missing)} of {cls.__name__} are neither data nor static, or unknown",
            fix="name every field of the dataclass once, in data_fields or meta_fields",
        )
    return _register_fields(cls, data, meta)


def _register_fields(cls: type, data: tuple[str, ...], meta: tuple[str, ...]) -> type:
    """Make a class a tree by the names of its fields, which are the arguments of its
    constructor."""
    twice = sorted(n for n in {*data, *meta} if [*data, *meta].count(n) > 1)
    if twice:
        raise ArgumentError(
            f"fields {twice} of {cls.__name__} are named twice",
            fix="a field is in data_fields or in meta_fields, once",
        )

    children, static = _getter(data), _getter(meta)

    def to_children(x: object):
        return children(x), static(x)

    def from_children(static: tuple[Any, ...], children: tuple[Any, ...]):
        return cls(**dict(zip(data, children)), **dict(zip(meta, static)))

    register(cls, to_children, from_children, lambda x: [f".{n}" for n in data])
    return cls


def _getter(names: tuple[str, ...]) -> "Callable[[Any], tuple[Any, ...]]":
    """Return the function that returns attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda x: tuple([getattr(x, name) for name in names])


def _register_builtins() -> None:
    register(
        OrderedDict,
        lambda x: (tuple(x.values()), tuple(x)),
        lambda keys, xs: OrderedDict(zip(keys, xs)),
        lambda x: [DictKey(k) for k in x],
    )

    def default_children(x):
        keys = tuple(sorted(x))
        return [x[k] for k in keys], (x.default_factory, keys)

    register(
        defaultdict,
        default_children,
        lambda static, xs: defaultdict(static[0], zip(static[1], xs)),
        lambda x: [DictKey(k) for k in sorted(x)],
    )


_register_builtins()

# ---- key paths -----------------------------------------------------------------------------


def children(tree: object) -> "list[tuple[str, Any]] | None":
    """Return (key, child) of each child of a node, one level down; None for a leaf."""
    level = registry.flatten_one_level_with_keys(tree)
    if level is None:
        return None
    fields = getattr(type(tree), "_fields", None)
    if isinstance(tree, tuple) and fields is not None:
        return [("." + name, kid) for name, kid in zip(fields, tree)]
    return [(_key_text(key), kid) for key, kid in level[0]]


def _key_text(key) -> str:
    return f"[{key.key}]" if isinstance(key, FlattenedIndexKey) else str(key)


def key_paths(tree: object) -> list[str]:
    """Return the path of every leaf, in the order of `leaves`."""
    return list(_paths(tree, ""))


def _paths(node: object, path: str) -> "Iterator[str]":
    kids = children(node)
    if kids is None:
        yield path
    else:
        for key, kid in kids:
            yield from _paths(kid, path + key)


def each_leaf(
    made: "Iterable[Any]", tree: object, named: "str | Callable[[str], str]"
) -> list[Any]:
    """Return the results that `made` yields for each leaf of a tree, in order.

    An error names the leaf: by `named` and its path, or by `named(path)`.
    """
    out: list[Any] = []
    try:
        for x in made:
            out.append(x)
    except (AxisError, DeletedArrayError, PlacementError, TypeRule) as e:
        path = key_paths(tree)[len(out)]
        e.of(named + path if isinstance(named, str) else named(path))
        raise
    return out


def difference(want: Any, got: dict[str, Any] | tuple[Any, ...], path: str = "") -> str:
    """Return where two trees first differ in structure, in words."""
    a, b = children(want), children(got)
    at = path or "the top"
    if a is None:
        return "" if b is None else f"at {at}: a leaf against a {type(got).__name__}"
    if b is None:
        return f"at {at}: a {type(want).__name__} against a leaf {got!r}"
    if type(want) is not type(got):
        return f"at {at}: {type(want).__name__} against {type(got).__name__}"
    if [k for k, _ in a] != [k for k, _ in b]:
        if isinstance(want, tuple | list):
            return f"at {at}: {_shape_of(want)} against {_shape_of(got)}"
        extra = {k for k, _ in a} ^ {k for k, _ in b}
        return f"at {at}: the keys {', '.join(sorted(extra)) or 'differ'} are in one only"
    for (key, x), (_, y) in zip(a, b):
        found = difference(x, y, path + key)
        if found:
            return found
    one, other = (flatten(node, lambda n, top=node: n is not top)[1] for node in (want, got))
    return "" if one == other else f"at {at}: {in_words(one)} against {in_words(other)}"


def flatten_with_path(
    tree: object, is_leaf: "Callable[..., bool] | None" = None, is_leaf_takes_path: bool = False
) -> "tuple[list[tuple[KeyPath, Any]], TreeDef]":
    """Return ([(path, leaf) in order], structure).

    A path is a tuple of entries, like `DictKey("w")`.  If `is_leaf_takes_path`, `is_leaf` is called
    as `is_leaf(path, node)`.

    >>> import plait
    >>> [(plait.tree_util.keystr(p), x) for p, x in plait.tree.flatten_with_path({"a": [1, 2]})[0]]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    if is_leaf is None:
        return registry.flatten_with_path(tree)
    stop = is_leaf if is_leaf_takes_path else lambda path, node: is_leaf(node)
    return registry.flatten_with_path(tree, stop)


def leaves_with_path(
    tree: object, is_leaf: "Callable[..., bool] | None" = None, is_leaf_takes_path: bool = False
) -> "list[tuple[KeyPath, Any]]":
    """Return (path, leaf) of every leaf, in order."""
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


@border
def map_with_path(
    f: "Callable[..., Any]",
    tree: object,
    *rest: object,
    is_leaf: "Callable[..., bool] | None" = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Apply `f(path, leaf, ...)` to corresponding leaves; see `map`."""
    pairs, kind = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [flatten_up_to(kind, r, tree, f"argument {i + 2}") for i, r in enumerate(rest)]
    rows = list(zip([x for _, x in pairs], *others, strict=True))
    each = lambda i, *xs: f(pairs[i][0], *xs)  # noqa: E731
    return kind.unflatten(guarded_map(each, rows, guarded_nodes(kind)))


# ---- prefixes ------------------------------------------------------------------------------


def spread(
    prefix: object,
    value: object,
    what: str,
    is_entry: "Callable[[Any], bool]",
    entry: str,
    named: "Callable[[str], str] | None" = None,
) -> "list[Any]":
    """Return one entry of the tree prefix `prefix` for each leaf of the tree `value`.

    `is_entry(x)` returns whether x is an entry (which may be None or a tuple); `entry` is the word
    for one in messages, and `named(path)` is the name of a part of the value.
    """
    return list(_Spread(value, what, is_entry, entry, named).entries(prefix, value, ""))


class _Spread(NamedTuple):
    """The arguments of `spread` that stay the same for all parts of the trees."""

    value: Any
    what: str
    is_entry: "Callable[[Any], bool]"
    entry: str
    named: "Callable[[str], str] | None"

    def entries(self, p: object, t: object, path: str) -> "Iterator[Any]":
        """Yield the entries of a part of the prefix, for the leaves of the value's part there."""
        if self.is_entry(p):
            yield from [p] * _flatten(t)[1].num_leaves
            return
        a, b = children(p), children(t)
        if a is None:
            raise TreeMismatch(
                f"{self.what}{path} is {p!r}, which is not {self.entry}",
                fix=f"give {self.entry}, or a tree of them that is a prefix of the value's",
            )
        same = type(p) is type(t) or (isinstance(p, tuple | list) and isinstance(t, tuple | list))
        if b is None or not same or [k for k, _ in a] != [k for k, _ in b]:
            raise TreeMismatch(
                f"{self.what}{path} does not fit {self._part(path)}: {_shape_of(p)} for "
                f"{_shape_of(t)}",
                fix=f"{self.what}{path} must be {self.entry}, or a tree prefix of "
                f"{self._part(path)}: {_shape_of(t)}",
            )
        for (key, x), (_, y) in zip(a, b):
            yield from self.entries(x, y, path + key)

    def _part(self, path: str) -> str:
        """Return the name of the part of the value with a path."""
        if not path:
            return "the value" if self.named is None else "the arguments"
        return f"the value at {path}" if self.named is None else self.named(path)


def _shape_of(tree) -> str:
    kids = children(tree)
    if kids is None:
        return "a leaf" if not isinstance(tree, int) else str(tree)
    name = type(tree).__name__
    inner = ", ".join(k for k, _ in kids) if isinstance(tree, dict) else f"{len(kids)} parts"
    return f"{name} of {inner}" if tree is not None else "None"


@border
def broadcast(
    prefix_tree: object, full_tree: object, is_leaf: "Callable[..., bool] | None" = None
) -> Any:
    """Return `full_tree` with every leaf replaced by the leaf of `prefix_tree` there or above.

    >>> import plait
    >>> plait.tree.broadcast([1, 2], [0, {"a": 0, "b": 0}])
    [1, {'a': 2, 'b': 2}]
    """
    xs, kind = flatten(prefix_tree, is_leaf)
    parts = flatten_up_to(kind, full_tree, prefix_tree, "full_tree")
    return kind.unflatten([map_tree(lambda _, x=x: x, t, is_leaf=is_leaf)
                           for x, t in zip(xs, parts)])  # fmt: skip


# ---- folds ---------------------------------------------------------------------------------

_NOTHING: Any = object()
T = TypeVar("T")


@border
def reduce(
    function: "Callable[[T, Any], T]",
    tree: object,
    initializer: T = _NOTHING,
    is_leaf: "Callable[..., bool] | None" = None,
) -> T:
    """Combine the leaves from the left: `function(function(x0, x1), x2)`, as functools.reduce.

    The lengths of piles are left out, and `function` meets their rows without those that are
    hidden.

    >>> import plait
    >>> plait.tree.reduce(lambda x, y: x + y, {"a": 1, "b": (2, 3)})
    6
    """
    parts: list[Any] = visible_leaves(*flatten(tree, is_leaf))
    if initializer is not _NOTHING:
        parts = [lambda f: f(initializer), *parts]
    if not parts:
        raise ArgumentError("a tree without leaves cannot be reduced", fix="give an initializer")
    out = parts[0](_itself)
    for part in parts[1:]:
        out = part(functools.partial(function, out))
    return out


def _itself(x: T) -> T:
    return x


def reduce_associative(
    operation: "Callable[[T, T], T]",
    tree: object,
    *,
    identity: T = _NOTHING,
    is_leaf: "Callable[..., bool] | None" = None,
) -> T:
    """Combine the leaves pairwise, in a balanced way; `operation` must be associative.

    Of piles it takes what `reduce` takes."""
    xs = [part(_itself) for part in visible_leaves(*flatten(tree, is_leaf))]
    if not xs and identity is _NOTHING:
        raise ArgumentError("a tree without leaves cannot be reduced", fix="give an identity")
    while len(xs) > 1:
        pairs = [operation(a, b) for a, b in zip(xs[::2], xs[1::2])]
        xs = pairs + xs[len(xs) & ~1 :]
    return xs[0] if xs else identity


def all(tree: object, *, is_leaf: "Callable[..., bool] | None" = None) -> bool:
    """Return whether every leaf is true, as Python's `all`; of piles those that `reduce` takes."""
    return builtins.all(part(bool) for part in visible_leaves(*flatten(tree, is_leaf)))


@border
def transpose(
    outer_treedef: "TreeDef", inner_treedef: "TreeDef | None", pytree_to_transpose: object
) -> Any:
    """Turn a tree of trees inside out: `inner` on the outside, `outer` within.

    If `inner_treedef` is None, it is the structure of the first part.  Raises TreeMismatch if the
    tree does not have the structure `outer` of `inner`s.

    >>> import plait
    >>> plait.tree.transpose(plait.tree.structure([0, 0]), None, [(1, 2), (3, 4)])
    ([1, 3], [2, 4])
    """
    outer = outer_treedef.unflatten([0] * outer_treedef.num_leaves)
    parts = flatten_up_to(outer_treedef, pytree_to_transpose, outer, "pytree_to_transpose")
    if inner_treedef is None and not parts:
        raise TreeMismatch(
            "the inner structure of a tree without leaves is not known", fix="give inner_treedef"
        )
    kind = structure(parts[0]) if inner_treedef is None else inner_treedef
    inner = kind.unflatten([0] * kind.num_leaves)
    rows = [flatten_up_to(kind, p, inner, "a part of pytree_to_transpose") for p in parts]
    columns = zip(*rows, strict=True) if rows else [()] * kind.num_leaves
    return kind.unflatten([outer_treedef.unflatten(c) for c in columns])


def _map(
    f: "Callable[..., Any]",
    tree: object,
    *rest: object,
    is_leaf: "Callable[..., bool] | None" = None,
) -> Any:
    """Apply `f` to corresponding leaves of trees; `rest` may be deeper where `tree` has leaves.

    The lengths of piles are left alone, unless `f` adds axes to their rows.  An `f` that reduces
    rows meets them without those that are hidden.  Raises TreeMismatch, with the place, if one of
    `rest` has another structure.

    >>> import plait
    >>> plait.tree.map(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
    {'a': 11, 'b': (22,)}
    """
    xs, kind = flatten(tree, is_leaf)
    nodes = guarded_nodes(kind)
    if nodes and rest and is_leaf is None:
        same = later("_core.fitting").aligned((tree, *rest))
        if same is not None:
            tree, *rest = same  # type: ignore[assignment]
            xs, kind = flatten(tree)
            nodes = guarded_nodes(kind)
    others = [flatten_up_to(kind, r, tree, f"argument {i + 2}") for i, r in enumerate(rest)]
    rows = list(zip(xs, *others, strict=True))
    if not nodes:
        return kind.unflatten([f(*vs) for vs in rows])
    return kind.unflatten(guarded_map(lambda i, *vs: f(*vs), rows, nodes))


map = border(_map)  # last, since `map` is Python's in the code above
map.__qualname__ = "map"  # by which it is pickled
_explained_calls(globals())
_advise("plait.tree", globals())
