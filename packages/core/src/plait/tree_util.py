"""Trees under the names of JAX's `tree_util`.

Invariant: only `Partial` and names are defined here; the functions are those of `plait.tree`.
"""

import functools
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Self

from ._base.errors import ArgumentError
from ._base.freezing import bare
from ._base.jaxlib_api import pytree
from ._base.lazy import advise as _advise
from ._base.tracebacks import explained_calls as _explained_calls
from .tree import (
    LEAF,
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyPath,
    SequenceKey,
    TreeDef,
    register,
    register_dataclass,
    register_with_keys,
    registry,
)
from .tree import all as tree_all
from .tree import broadcast as tree_broadcast
from .tree import flatten as tree_flatten
from .tree import flatten_with_path as tree_flatten_with_path
from .tree import leaves as tree_leaves
from .tree import leaves_with_path as tree_leaves_with_path
from .tree import map as tree_map
from .tree import map_with_path as tree_map_with_path
from .tree import reduce as tree_reduce
from .tree import reduce_associative as tree_reduce_associative
from .tree import structure as tree_structure
from .tree import transpose as tree_transpose
from .tree import unflatten as tree_unflatten

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef",
    "SequenceKey", "all_leaves", "default_registry", "flatten_one_level",
    "flatten_one_level_with_keys", "is_tree_node", "keystr", "register_dataclass",
    "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast",
    "tree_flatten", "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map",
    "tree_map_with_path", "tree_reduce", "tree_reduce_associative", "tree_structure",
    "tree_transpose", "tree_unflatten", "treedef_children", "treedef_is_leaf", "treedef_tuple",
]  # fmt: skip

PyTreeDef = TreeDef
KeyEntry = Any
default_registry: Any = registry
"""The only registry."""


# ---- registration --------------------------------------------------------------------------


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]]
    | None = None,
) -> None:
    """Make a class a tree.

    Args:
      nodetype: the class.
      flatten_func: x -> (children, static part: hashable and comparable).
      unflatten_func: (static part, children) -> x.
      flatten_with_keys_func: x -> ((entry of a path, child) pairs, static part).

    Raises TypeRule if the class is registered already.
    """
    register_with_keys(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)


def register_pytree_node_class(cls: type) -> type:
    """Make a class a tree by its methods `tree_flatten(self) -> (children, static part)` and
    `tree_unflatten(cls, static part, children)`, a classmethod; a decorator.

    >>> import plait
    >>> @plait.tree_util.register_pytree_node_class
    ... class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    ...     def tree_flatten(self):
    ...         return (self.x, self.y), None
    ...     @classmethod
    ...     def tree_unflatten(cls, static, children):
    ...         return cls(*children)
    >>> plait.tree.leaves(Pair(1, [2, 3]))
    [1, 2, 3]
    """
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)
    return cls


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Make a class a tree whose children have names in paths; see `register_pytree_node`."""

    def without_keys(x: Any) -> tuple[Iterable[Any], Hashable]:
        pairs, static = flatten_with_keys(x)
        return [child for _, child in pairs], static

    register_with_keys(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_with_keys_class(cls: type) -> type:
    """Make a class a tree by its methods `tree_flatten_with_keys(self) -> ((entry, child) pairs,
    static part)` and `tree_unflatten(cls, static part, children)`; a decorator."""
    plain = getattr(cls, "tree_flatten", None)
    register_pytree_with_keys(cls, lambda x: x.tree_flatten_with_keys(), cls.tree_unflatten, plain)
    return cls


def register_static(cls: type) -> type:
    """Make the instances of a class trees without leaves, static as a whole; a decorator."""
    register(cls, lambda x: ((), x), lambda static, _: static)
    return cls


# ---- structures and paths ------------------------------------------------------------------


def treedef_is_leaf(treedef: TreeDef) -> bool:
    """Return whether it is the structure of a single leaf."""
    return treedef == LEAF


def treedef_children(treedef: TreeDef) -> list[TreeDef]:
    """Return the structures of the children of the outermost node."""
    return treedef.children()


def treedef_tuple(treedefs: Iterable[TreeDef]) -> TreeDef:
    """Return the structure of a tuple of trees of these structures."""
    return pytree.treedef_tuple(registry, list(treedefs))


def flatten_one_level(tree: object) -> tuple[Iterable[Any], Hashable]:
    """Return (children, static part) of the outermost node.

    Raises TypeRule for a leaf.

    >>> import plait
    >>> plait.tree_util.flatten_one_level({"a": [1, 2]})
    ([[1, 2]], ('a',))
    """
    pairs, static = flatten_one_level_with_keys(tree)
    return [child for _, child in pairs], static


def flatten_one_level_with_keys(tree: object) -> tuple[list[tuple[Any, Any]], Hashable]:
    """Return ([(entry of a path, child), ...], static part) of the outermost node; see
    `flatten_one_level`."""
    if tree is None:
        return [], None
    level = registry.flatten_one_level_with_keys(tree)
    if level is None:
        raise ArgumentError(
            f"{tree!r} is a leaf, and has no children", fix="give it a node of a tree"
        )
    pairs, static = level[0], bare(level[1])
    return list(pairs), tuple(static) if isinstance(static, list) else static


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Return whether every element is a leaf."""
    if is_leaf is None:
        return pytree.all_leaves(registry, iterable)
    xs = list(iterable)
    found = tree_leaves(xs, is_leaf)
    return len(found) == len(xs) and all(a is b for a, b in zip(found, xs))


def is_tree_node(typ: type) -> bool:
    """Return whether instances of the class have children: it is built in or registered."""
    return (
        typ is type(None)
        or issubclass(typ, tuple)
        and hasattr(typ, "_fields")
        or (registry.is_node(typ))
    )


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """Return a path as text.

    Args:
      keys: entries of a path.
      simple: True for names and numbers only, without brackets, quotes and dots.
      separator: text between entries.

    >>> import plait
    >>> path = plait.tree.leaves_with_path({"w": [1.0]})[0][0]
    >>> plait.tree_util.keystr(path), plait.tree_util.keystr(path, simple=True, separator="/")
    ("['w'][0]", 'w/0')
    """
    return separator.join([_name(k) if simple else str(k) for k in keys])


def _name(key: object) -> str:
    for field in ("key", "idx", "name"):
        if hasattr(key, field):
            return str(getattr(key, field))
    return str(key)


class _Whole:
    """A `functools.partial` that is not taken apart: it is called, and is equal to it."""

    __slots__ = ("__weakref__", "args", "func", "keywords", "whole")

    def __init__(self, whole: functools.partial):
        self.whole = whole
        self.func, self.args, self.keywords = whole.func, whole.args, whole.keywords

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.whole(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self.whole == (other.whole if isinstance(other, _Whole) else other)

    def __hash__(self) -> int:
        return hash(self.whole)

    def __repr__(self) -> str:
        return repr(self.whole)

    def __reduce__(self) -> tuple:
        return _Whole, (self.whole,)


class Partial(functools.partial):
    """A `functools.partial` that is a tree: the arguments are children, the function is static.

    >>> import plait
    >>> half = plait.tree_util.Partial(lambda s, x: s * x, 0.5)
    >>> float(plait.jit(lambda f, x: f(x))(half, 3.0))
    1.5
    """

    def __new__(cls, func: Callable[..., Any], *args: Any, **kw: Any) -> Self:
        if isinstance(func, functools.partial) and not isinstance(func, Partial):
            func = _Whole(func)  # otherwise its arguments would become children too
        return super().__new__(cls, func, *args, **kw)


register(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, children: Partial(func, *children[0], **children[1]),
    lambda p: [GetAttrKey("args"), GetAttrKey("keywords")],
)


_explained_calls(globals())
_advise("plait.tree_util", globals())
