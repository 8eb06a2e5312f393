"""Tree structures as JSON, in which classes appear only under registered names.

    {"args": "*"}                              leaves are "*", None is null
    {"tuple": [...]}, {"list": [...]}          children in order
    {"dict": [[key, child], ...]}              also "ordered", an OrderedDict
    {"node": name, "static": ..., "children": [...]}    a registered class

Invariant: only classes that were registered under a name are written or made.  Input is data:
reading it runs no code but the functions that were registered here.
"""

import base64
import reprlib
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import plait
from plait.ext.errors import ArgumentError, DuplicateRule
from plait.ext.plugins import names
from plait.ext.tree import LEAF, TreeDef, node_data, registry

from .errors import ArtifactError, NotExportable
from .parts import SHAPES, Parts, parts_from

_DEEPEST = 200
_LEAF = "*"


class Registered(NamedTuple):
    """A class with its name in artifacts, and functions that write and read its static part."""

    cls: type
    name: str
    write: Callable[[Any], bytes] | None
    read: Callable[[bytes], Any] | None


_by_class: dict[type, Registered] = {}
_by_name: dict[str, Registered] = {}


_RESULTS = ("EigResult", "EighResult", "QRResult", "SVDResult", "SlogdetResult")
_HOME = "plait.numpy.linalg."
_MADE_IN = "plait_numpy.numpy.linalg."
"""The home of the named tuples that numpy's functions return, and where it is defined; they need
not be registered."""


def _named(cls: type) -> Registered | None:
    """Return the registration of a class; None if it has none."""
    held = _by_class.get(cls)
    saved = cls.__dict__.get("__plait_saved__")
    if held is None and saved is not None:
        return Registered(cls, saved.name, saved.write, saved.read)
    if held is None and cls.__name__ in _RESULTS and cls.__module__.startswith(_MADE_IN):
        held = Registered(cls, _HOME + cls.__name__, None, None)
    return held


def _called(name: str) -> Registered | None:
    """Return the registration under a name; None if there is none."""
    held, (home, _, last) = _by_name.get(name), name.rpartition(".")
    in_surface = home == "plait" or (home.startswith("plait.") and home[6:] in names("plait.api"))
    if held is None and in_surface and last.isidentifier():
        return _of_plugin(name)
    if held is None and home + "." == _HOME and last in _RESULTS:
        held = Registered(getattr(plait.numpy.linalg, last), name, None, None)
    if held is None and _stands_for_all:
        held = Registered(_stands_for_all[0], name, None, bytes)
    return held


def _of_plugin(name: str) -> Registered | None:
    """Return the registration of a public class that describes itself.

    Where its plugin is not installed, its parts stand for it."""
    try:
        cls = plait
        for part in name.split(".")[1:]:
            cls = getattr(cls, part)
    except AttributeError:
        return Registered(Parts, name, None, partial(parts_from, name)) if name in SHAPES else None
    saved = getattr(cls, "__dict__", {}).get("__plait_saved__")
    return None if saved is None else Registered(cls, name, saved.write, saved.read)


class _Stranger:
    """A stand-in for every registered class in a process without the user's classes."""

    __slots__ = ("children",)

    def __init__(self, children: Any):
        self.children = children


def take_any_class() -> None:
    """Accept nodes of any name from now on, in a process that does not use the trees."""
    plait.tree.register(_Stranger, lambda s: (s.children, None), lambda _, c: _Stranger(c))
    _stands_for_all.append(_Stranger)


_stands_for_all: list[type] = []


def reads_bytes(name: str) -> bool:
    """Return whether the class under a name has a function that reads its static part."""
    held = _called(name)
    return held is not None and held.read is not None


def fields_of(name: str) -> tuple[str, ...] | None:
    """Return the fields of the named tuple under a name; None if it is not a named tuple."""
    held = _called(name)
    is_plain = held is not None and held.read is None and issubclass(held.cls, tuple)
    return getattr(held.cls, "_fields", None) if is_plain and held is not None else None


def register_pytree_serialization(
    nodetype: type,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes] | None = None,
    deserialize_auxdata: Callable[[bytes], Any] | None = None,
) -> type:
    """Let trees with nodes of a registered class be arguments and results of exported functions.

    Args:
      nodetype: a class registered as a tree (`plait.tree.register`, `register_dataclass`).
      serialized_name: its name in artifacts; unique, and never to be changed.
      serialize_auxdata: a function from the static part to bytes.  By default the static part may
        consist of None, booleans, numbers, strings, tuples and lists.
      deserialize_auxdata: the inverse function.

    Returns the class.  Raises DuplicateRule if the class or the name is registered already, and
    ArgumentError if only one of the two functions is given.

    >>> import dataclasses, plait
    >>> @plait.tree.register_dataclass
    ... @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     y: float
    >>> _ = plait.export.register_pytree_serialization(Point, serialized_name="example.Point")
    >>> saved = plait.export.export(lambda p: p.x + p.y)(Point(1.0, 2.0)).serialize()
    >>> plait.export.deserialize(saved).call(Point(3.0, 4.0)).item()
    7.0
    """
    if not isinstance(nodetype, type):
        raise ArgumentError(f"{nodetype!r} is not a class", fix="give the class of the nodes")
    if not isinstance(serialized_name, str) or not serialized_name:
        raise ArgumentError(
            f"{serialized_name!r} is not a name of {nodetype.__name__}",
            fix='write serialized_name="package.Class", which is never to be changed',
        )
    for f in (serialize_auxdata, deserialize_auxdata):
        if f is not None and not callable(f):
            raise ArgumentError(
                f"{nodetype.__name__}: static parts are written and read by functions, not {f!r}",
                fix="give functions from the static part to bytes, and back",
            )
    if (serialize_auxdata is None) != (deserialize_auxdata is None):
        raise ArgumentError(
            f"{nodetype.__name__}: static parts must be both written and read",
            fix="give serialize_auxdata and deserialize_auxdata, or neither",
        )
    made = Registered(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata)
    for held in (_by_class.get(nodetype), _by_name.get(serialized_name)):
        if held is not None:
            raise DuplicateRule(
                f"{held.cls.__name__} is registered for artifacts already, as {held.name!r}",
                fix="register each class once, each under another name",
            )
    _by_class[nodetype] = _by_name[serialized_name] = made
    return nodetype


def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> type:
    """Let trees with a named tuple be arguments and results of exported functions.

    Args:
      nodetype: a named tuple, which is a tree without registration.
      serialized_name: its name in artifacts; unique, and never to be changed.

    Returns the class.  Raises ArgumentError for another class, and DuplicateRule if the class or
    the name is registered already.
    """
    is_named = isinstance(nodetype, type) and issubclass(nodetype, tuple)
    if not (is_named and hasattr(nodetype, "_fields")):
        raise ArgumentError(
            f"{getattr(nodetype, '__name__', repr(nodetype))} is not a named tuple",
            fix="use register_pytree_serialization, for classes that are trees",
        )
    return register_pytree_serialization(nodetype, serialized_name=serialized_name)


# ---- writing -------------------------------------------------------------------------------


def written(tree: TreeDef, what: str, names: set[str]) -> Any:
    """Return the structure as JSON, and add the names of its registered classes to `names`.

    Raises NotExportable for a node of an unregistered class; `what` names the tree in the error.
    """
    data = node_data(tree)
    if data is None:
        return _LEAF
    cls, static = data
    children = [written(c, what, names) for c in tree.children()]
    if cls is type(None):
        return None
    if cls in (tuple, list):
        return {cls.__name__: children}
    if cls in (dict, OrderedDict):
        keys = [_plain(k, f"a key of {what}") for k in static]
        return {"dict" if cls is dict else "ordered": [*map(list, zip(keys, children))]}
    held = _named(cls)
    if held is None:
        raise NotExportable(
            f"artifacts have no name for nodes of class {cls.__name__}, and there is one in {what}",
            fix=f"plait.export.{_registrar(cls)}({cls.__name__}, serialized_name=...), here and "
            "where the artifact is read",
        )
    names.add(held.name)
    node: dict[str, Any] = {"node": held.name, "children": children}
    if held.write is not None:
        try:
            node["bytes"] = base64.b64encode(held.write(static)).decode("ascii")
        except ValueError as e:
            raise NotExportable(
                f"a {cls.__name__} in {what} cannot be saved: {e}",
                fix="pass it as tuples, lists or dictionaries of arrays",
            ) from None
    elif static is not None:
        node["static"] = _plain(static, f"the static part of {cls.__name__} in {what}")
    return node


def _registrar(cls: type) -> str:
    named = issubclass(cls, tuple) and hasattr(cls, "_fields")
    return f"register_{'namedtuple' if named else 'pytree'}_serialization"


def _plain(x: Any, what: str) -> Any:
    """Return a static value as JSON that distinguishes tuples from lists."""
    if x is None or x.__class__ in (bool, int, str):
        return x
    if x.__class__ is float:
        return {"float": x.hex()}
    if x.__class__ is tuple or x.__class__ is list:
        return {x.__class__.__name__: [_plain(v, what) for v in x]}
    raise NotExportable(
        f"{what} is {x!r}, which has no text form",
        fix="use None, booleans, numbers, strings and tuples of them; or give serialize_auxdata",
    )


# ---- reading -------------------------------------------------------------------------------


def read(node: object) -> TreeDef:
    """Return the structure that JSON describes.

    Raises ArtifactError for any other JSON, and for a class that is not registered here.
    """
    try:
        return _read(node, 0)
    except RecursionError:
        raise _unreadable(node) from None


def _read(node: object, depth: int) -> TreeDef:
    if node == _LEAF:
        return LEAF
    if node is None:
        return _made((type(None), None), [])
    if not isinstance(node, dict) or depth > _DEEPEST:
        raise _unreadable(node)
    if "node" in node:
        return _registered_node(node, depth)
    if len(node) != 1:
        raise _unreadable(node)
    ((kind, inside),) = node.items()
    if not isinstance(inside, list):
        raise _unreadable(node)
    if kind in ("tuple", "list"):
        children = [_read(c, depth + 1) for c in inside]
        return _made((tuple if kind == "tuple" else list, None), children)
    if kind in ("dict", "ordered") and all(isinstance(p, list) and len(p) == 2 for p in inside):
        keys = [_unplain(k) for k, _ in inside]
        if not _are_keys(keys):
            raise _unreadable(node)
        children = [_read(c, depth + 1) for _, c in inside]
        data = (dict, keys) if kind == "dict" else (OrderedDict, tuple(keys))
        return _made(data, children)
    raise _unreadable(node)


def _are_keys(keys: list[Any]) -> bool:
    """Return whether keys are hashable, unique and sortable, as dictionaries in trees need."""
    try:
        return len(set(keys)) == len(keys) and bool(sorted(keys) or True)
    except TypeError:
        return False


def _registered_node(node: dict[str, Any], depth: int) -> TreeDef:
    name, children = node["node"], node.get("children")
    if not isinstance(name, str) or not isinstance(children, list):
        raise _unreadable(node)
    held = _called(name)
    if held is None:
        raise ArtifactError(
            f"the artifact has a node of a class it calls {name!r}, which is not registered here",
            fix=f"plait.export.register_pytree_serialization(cls, serialized_name={name!r})",
        )
    if held.read is not None:
        static = _decoded(held, node)
    else:
        static = _unplain(node.get("static"))
    return _made((held.cls, static), [_read(c, depth + 1) for c in children])


def _decoded(held: Registered, node: dict[str, Any]) -> Any:
    assert held.read is not None
    try:
        return held.read(base64.b64decode(node.get("bytes", ""), validate=True))
    except Exception as e:
        raise ArtifactError(
            f"the static part of a node {held.name!r} cannot be read: {type(e).__name__}: {e}",
            fix="read it where it was registered with the same functions",
        ) from e


def _made(data: tuple[type, Any], children: list[TreeDef]) -> TreeDef:
    try:
        return TreeDef.from_node_data_and_children(  # pyright: ignore[reportAttributeAccessIssue]
            registry, data, children
        )
    except (ValueError, TypeError, RuntimeError) as e:
        raise ArtifactError(
            f"no tree can be made of a {data[0].__name__} here: {e}",
            fix=f"register {data[0].__name__} as a tree before reading the artifact",
        ) from None


def _unplain(x: object) -> Any:
    if x is None or x.__class__ in (bool, int, str):
        return x
    if isinstance(x, dict) and len(x) == 1:
        ((kind, inside),) = x.items()
        if kind == "float" and isinstance(inside, str):
            try:
                return float.fromhex(inside)
            except (ValueError, OverflowError):
                raise _unreadable(x) from None
        if kind in ("tuple", "list") and isinstance(inside, list):
            values = [_unplain(v) for v in inside]
            return tuple(values) if kind == "tuple" else values
    raise _unreadable(x)


def _unreadable(x: object) -> ArtifactError:
    return ArtifactError(
        f"the artifact is damaged: {reprlib.repr(x)} describes no tree",
        fix="save it again with Exported.serialize()",
    )
