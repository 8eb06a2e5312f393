"""Reader of `jax.export` files, which needs no jax.

The files are FlatBuffers (https://flatbuffers.dev/internals/).  Each table begins with the offset
of a list that locates its fields.  This module reads the fields that a function needs.

Invariant: the outcome is an Exported that is verified like Plait's own, or an ArtifactError that
names the unreadable part.  These files have no checksums, so a damaged module may compute anything.
Its argument and result types are still as declared, and it calls only permitted functions.
"""

import base64
import json
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from plait.ext.errors import PlaitError, border
from plait.ext.lower import known_platforms, lock
from plait.ext.sizes import Scope
from plait.ext.types import Aval

from . import container, portable, signature, structure
from .artifact import STABLE_CALLS, Exported, pullback_types
from .errors import ArtifactError, expecting
from .isolation import Limits, limits_of, read_apart
from .loading import read as read_archive
from .loading import verify, with_rules, with_trees
from .parameters import flag_of, names_of

_SAVE_ALONE = "export the function there without it, and save that"
_AGAIN = "give what jax.export's Exported.serialize() returned, unchanged"

_TYPES = (
    *("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"),
    *("c64", "c128", "bf16", "int4", "uint4", "float8_e4m3b11fnuz", "float8_e4m3fn"),
    *("float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float0", "float8_e4m3"),
    *("float8_e3m4", "float8_e8m0fnu", "float4_e2m1fn", "key<fry>", "key<rbg>"),
)
"""Plait's names of the element types, indexed by their numbers in the files."""

_LEAF, _NONE, _TUPLE, _LIST, _DICT, _CUSTOM = range(6)
_DEEPEST = 200
_CONVENTIONS = range(9, 11)
"""Supported versions of the calling convention of `main`."""


@border
def import_jax(
    blob: bytes | bytearray | memoryview,
    *,
    custom_calls: Iterable[str] = (),
    isolated: bool | Limits = False,
    lose_custom_rules: bool = False,
) -> Exported:
    """Read a function that `jax.export` saved.

    Args:
      blob: the bytes.
      custom_calls, isolated: as for `deserialize`.
      lose_custom_rules: whether it may be differentiated through its operations, beyond the
        derivatives that were saved.  The files do not record whether a function has its own rules.

    Returns an Exported, with the derivatives that were saved; jax is not needed.  The files hold no
    constraints of symbolic sizes; the checks inside the module run when it is specialised to sizes.
    They hold no checksums either: read only files that you know to be undamaged, or read them with
    `isolated`.

    Raises ArtifactError for bytes that are not such a file, are damaged, or hold something that
    this reader does not support: effects, several devices, host memory, unknown types, platforms or
    calling conventions, custom calls, and classes that are not registered.

    >>> exported = plait.export.import_jax(open("model.bin", "rb").read())  # doctest: +SKIP
    """
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise ArtifactError(
            f"a file of jax.export is bytes, not {type(blob).__name__}",
            fix='read the file with open(path, "rb").read()',
        )
    data = bytes(blob)
    if data.startswith(b"PK"):
        raise ArtifactError(
            "this is an artifact of Plait's, and no file of jax.export",
            fix="plait.export.deserialize(blob)",
        )
    allowed, limits = {*STABLE_CALLS, *names_of(custom_calls, "custom_calls")}, limits_of(isolated)
    lose_custom_rules = flag_of(lose_custom_rules, "lose_custom_rules")
    if limits is None:
        return with_rules(read(data, allowed), lose_custom_rules)
    exported = read_archive(read_apart(data, "import_jax", allowed, limits), allowed)
    with _expecting():
        root = _root(data)
        trees = [_structure(root, 2, exported.in_avals), _structure(root, 4, exported.out_avals)]
    return with_rules(with_trees(exported, *trees), lose_custom_rules)


def read(data: bytes, allowed: set[str]) -> Exported:
    """Read and verify the function in a file.

    Raises only ArtifactError, whatever the bytes are.
    """
    with _expecting():
        return _function(_root(data), allowed)


def _expecting() -> expecting:
    return expecting("this is not a file of jax.export, or it is damaged")


def _root(data: bytes) -> "_Table":
    return _Table(data, _number(data, 0, "<I"))


# ---- tables --------------------------------------------------------------------------------


def _number(data: bytes, at: int, form: str) -> int:
    if at < 0:
        raise _damaged()
    try:
        return struct.unpack_from(form, data, at)[0]
    except struct.error:
        raise _damaged() from None


def _damaged(what: str = "it ends where more is expected") -> ArtifactError:
    return ArtifactError(f"this is not a file of jax.export, or it is damaged: {what}", fix=_AGAIN)


class _Table:
    """A table, whose fields are read by their numbers in the schema; each may be missing."""

    __slots__ = ("data", "at", "_offsets", "_count")

    def __init__(self, data: bytes, at: int):
        self.data, self.at = data, at
        self._offsets = at - _number(data, at, "<i")
        self._count = (_number(data, self._offsets, "<H") - 4) // 2

    def _field(self, number: int) -> int | None:
        """Return the position of a field; None if it is missing."""
        if number >= self._count:
            return None
        offset = _number(self.data, self._offsets + 4 + 2 * number, "<H")
        return self.at + offset if offset else None

    def scalar(self, number: int, form: str) -> int:
        at = self._field(number)
        return 0 if at is None else _number(self.data, at, form)

    def _followed(self, at: int) -> int:
        return at + _number(self.data, at, "<I")

    def table(self, number: int) -> "_Table | None":
        at = self._field(number)
        return None if at is None else _Table(self.data, self._followed(at))

    def raw(self, number: int) -> bytes:
        at = self._field(number)
        return b"" if at is None else self._bytes(self._followed(at))

    def _bytes(self, at: int) -> bytes:
        length = _number(self.data, at, "<I")
        found = self.data[at + 4 : at + 4 + length]
        if len(found) != length:
            raise _damaged()
        return found

    def text(self, number: int) -> str:
        return self.raw(number).decode("utf-8")

    def _elements(self, number: int, width: int) -> Iterator[int]:
        """Yield the positions of the elements of a vector."""
        at = self._field(number)
        if at is None:
            return
        start = self._followed(at)
        length = _number(self.data, start, "<I")
        if start + 4 + length * width > len(self.data):
            raise _damaged()
        yield from range(start + 4, start + 4 + length * width, width)

    def numbers(self, number: int, form: str) -> list[int]:
        width = struct.calcsize(form)
        return [_number(self.data, at, form) for at in self._elements(number, width)]

    def texts(self, number: int) -> list[str]:
        return [self._bytes(self._followed(at)).decode("utf-8") for at in self._elements(number, 4)]

    def tables(self, number: int) -> list["_Table"]:
        return [_Table(self.data, self._followed(at)) for at in self._elements(number, 4)]


# ---- functions -----------------------------------------------------------------------------


def _function(t: _Table, allowed: set[str]) -> Exported:
    name = t.text(1)
    _refuse_what_is_more(t, name)
    scope = Scope()
    named = [_type(u, scope, name) for u in t.tables(19)]
    ins = _types(t, named, 22, 3, scope, name)
    outs = _types(t, named, 23, 5, scope, name)
    in_tree, out_tree = (_structure(t, k, avals) for k, avals in ((2, ins), (4, outs)))
    platforms = tuple(t.texts(9))
    several = len(platforms) > 1
    artifact, kept = _module(t, name), t.numbers(15, "<H")
    if kept != list(range(len(ins))):  # jax drops unused arguments of `main`
        artifact = portable.with_arguments(artifact, ins, kept, several)
    with lock:
        calls = portable.custom_calls(portable.parsed(artifact))
    symbolic = signature.scope_of(ins) is not None
    vjp = t.table(17)
    held = None if vjp is None else _function(vjp, allowed)
    derive: Callable[[], Exported] | None = None
    if held is not None:
        want = [[*map(repr, avals)] for avals in pullback_types(ins, outs)]
        if _shown(held) != want:  # as text: sizes are of two scopes
            raise _damaged(f"the derivative of {name} is of another function")
        held.linear_from = len(ins)
        derive = lambda: held  # noqa: E731
    exported = Exported(
        name, ins, in_tree, outs, out_tree, platforms, scope if symbolic else None, artifact,
        calls, several, derive,
    )  # fmt: skip
    verify(exported, allowed, "import_jax")
    return exported


def _module(t: _Table, name: str) -> bytes:
    """Return the StableHLO, possibly damaged, since the file has no checksums."""
    artifact = t.raw(13)
    version, newest = container.stablehlo_version(artifact), portable.newest_version()
    if version > newest:
        raise ArtifactError(
            f"{name} is StableHLO {'.'.join(map(str, version))}, newer than the "
            f"{'.'.join(map(str, newest))} that the jaxlib here reads",
            fix="python -m pip install --upgrade jaxlib",
        )
    return artifact


def _shown(exported: Exported) -> list[list[str]]:
    return [[*map(repr, exported.in_avals)], [*map(repr, exported.out_avals)]]


def _refuse_what_is_more(t: _Table, name: str) -> None:
    """Raise ArtifactError for features that Plait's artifacts lack."""
    devices = t.scalar(18, "<I") or t.scalar(6, "<h")
    effects = [e.text(0) for k in (10, 11) for e in t.tables(k)]
    convention = t.scalar(14, "<H")
    if convention not in _CONVENTIONS:
        raise ArtifactError(
            f"{name} is called by version {convention} of the calling convention, and known here "
            f"are {', '.join(map(str, _CONVENTIONS))}",
            fix="save it with another release of jax",
        )
    if devices > 1:
        raise ArtifactError(f"{name} runs on {devices} devices, and an artifact runs on one",
                            fix="export it there without shardings")  # fmt: skip
    if effects:
        raise ArtifactError(f"{name} has effects: {', '.join(effects)}", fix=_SAVE_ALONE)
    try:
        known_platforms(t.texts(9))
    except PlaitError as e:
        raise ArtifactError(f"{name} is for platforms of others: {e.what}", fix=e.fix) from None


def _types(t: _Table, named: list, chosen: int, written: int, scope: Scope, name: str) -> list:
    """Return a list of types: indices into `named`, or, from older releases, the types in place."""
    numbers = t.numbers(chosen, "<I")
    if any(n >= len(named) for n in numbers):
        raise _damaged(f"a type of {name} is missing")
    return [named[n] for n in numbers] or [_type(u, scope, name) for u in t.tables(written)]


def _type(t: _Table, scope: Scope, name: str) -> Aval:
    kind, number, memory = t.scalar(0, "<b"), t.scalar(2, "<b"), t.scalar(3, "<b")
    if kind != 0:
        raise ArtifactError(f"{name} takes or returns tokens, not arrays", fix=_SAVE_ALONE)
    if memory not in (0, 1):
        raise ArtifactError(f"{name} takes or returns what is in memory of the host or any other",
                            fix="export it there for memory of the device")  # fmt: skip
    if not 0 <= number < len(_TYPES):
        raise ArtifactError(f"{name} takes or returns a type of elements, number {number}, that "
                            "this reader does not know", fix="convert it there")  # fmt: skip
    return signature.read(f"{_TYPES[number]}[{','.join(t.texts(1))}]", scope)


# ---- trees ---------------------------------------------------------------------------------


def _structure(t: _Table, number: int, avals: Sequence[Aval]) -> Any:
    root = t.table(number)
    if root is None:
        raise _damaged("a tree is missing")
    left = [len(t.data)]  # bounds the nodes: offsets can share them
    tree = structure.read(_node(root, left, 0))
    if tree.num_leaves != len(avals):
        raise _damaged(f"{len(avals)} values in a tree of {tree.num_leaves} leaves")
    return tree


def _node(t: _Table, left: list[int], depth: int) -> Any:
    """Convert a tree to the JSON form of Plait's artifacts."""
    left[0] -= 1
    if depth > _DEEPEST or left[0] < 0:
        raise _damaged("a tree is nested too deeply")
    kind = t.scalar(0, "<b")
    if kind == _LEAF:
        return "*"
    if kind == _NONE:
        return None
    children = [_node(c, left, depth + 1) for c in t.tables(1)]
    if kind in (_TUPLE, _LIST):
        return {"tuple" if kind == _TUPLE else "list": children}
    if kind == _DICT:
        names = t.texts(2)
        if len(names) != len(children):
            raise _damaged("a dictionary has not as many keys as values")
        return {"dict": [*map(list, zip(names, children))]}
    if kind == _CUSTOM:
        return _custom(t.text(3), t.raw(4), children)
    raise _damaged(f"a tree has a node of kind {kind}")


def _custom(name: str, static: bytes, children: list) -> dict[str, Any]:
    """Convert a node of a registered class; jax writes the fields of a named tuple as JSON."""
    fields = structure.fields_of(name)
    if fields is not None:
        found = json.loads(static)
        if found != list(fields):
            raise ArtifactError(
                f"the named tuple {name!r} has the fields {found}, and here {list(fields)}",
                fix="register the class that was exported",
            )
        return {"node": name, "children": children}
    if static and not structure.reads_bytes(name):
        raise ArtifactError(
            f"the static part of a node {name!r} is bytes, which nothing reads here",
            fix=f"plait.export.register_pytree_serialization(cls, serialized_name={name!r}, "
            "serialize_auxdata=..., deserialize_auxdata=...)",
        )
    return {"node": name, "children": children, "bytes": base64.b64encode(static).decode("ascii")}
