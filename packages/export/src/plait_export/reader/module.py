"""A StableHLO module as plain data, independent of the library that parsed it.

Values are numbered.  Attributes are plain Python: integers, texts, tuples, numpy arrays, and
dictionaries of these.  So the MLIR context is used only once per module, and rules need no lock.

Invariant: results hold no MLIR objects; an operation that has no such form is an error that names
it.
"""

import re
from collections.abc import Container, Sequence
from typing import Any, NamedTuple

import numpy as np

from plait.ext.lower import IrValue, bindings, lock
from plait.ext.types import EXTRA_DTYPES
from plait.typing import ArrayLike

from ..errors import NotReadable
from ..portable import answered, parsed


class Type(NamedTuple):
    """The type of a value: sizes, with None for unknown ones, and the dtype."""

    shape: tuple[int | None, ...]
    dtype: np.dtype


class Divided(NamedTuple):
    """The sharding of a value.

    Attributes:
      mesh: (name, size) of each axis of the mesh.
      spec: for each axis of the value, the mesh axes that divide it, the first slowest.
    """

    mesh: tuple[tuple[str, int], ...]
    spec: tuple[tuple[str, ...], ...]


class Op(NamedTuple):
    """An operation, with the numbers of its operands and results."""

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    types: tuple[Type, ...]
    attributes: dict[str, Any]
    regions: "tuple[Block, ...]"


class Block(NamedTuple):
    """A straight sequence of operations: the body of a function or region.

    The operations of a region may also use values from outside.

    Attributes:
      arguments, types: the numbers and types of its arguments.
      ops: its operations, in order.
      returned: the numbers of its results.
    """

    arguments: tuple[int, ...]
    types: tuple[Type, ...]
    ops: tuple[Op, ...]
    returned: tuple[int, ...]


class Function(NamedTuple):
    """A function of a module, with its attributes."""

    name: str
    body: Block
    attributes: dict[str, Any]


def functions_of(
    artifact: bytes, platforms: Sequence[str], wanted: Container[str] | None = None
) -> dict[str, Function]:
    """Return the functions of a portable artifact, by name.

    Args:
      artifact: portable StableHLO.
      platforms: its platforms; with a single one, the platform queries of format 1 are resolved.
      wanted: names of the functions to read; by default all.

    Raises NotReadable for values that are not arrays, and for attributes of unknown form.
    """
    with lock:
        reader = _Reader()
        body = answered(parsed(artifact), platforms).body
        reader.meet_meshes(body)
        found = [reader.function(f.operation) for f in body.operations
                 if f.operation.name == "func.func"
                 and (wanted is None or f.operation.attributes["sym_name"].value in wanted)
                 ]  # fmt: skip
    return {f.name: f for f in found}


_END = ("func.return", "stablehlo.return", "sdy.return")
_ABSENT = object()


class _Reader:
    """A traversal of a module that numbers its values."""

    def __init__(self) -> None:
        self.m = bindings()
        self.numbers: dict[Any, int] = {}
        self.types: dict[Any, Type] = {}
        self.plain: dict[Any, Any] = {}
        self.meshes: dict[str, Any] = {}

    def meet_meshes(self, body: Any) -> None:
        """Record the meshes that a module defines, by name."""
        for op in body.operations:
            if op.operation.name == "sdy.mesh":
                attributes = op.operation.attributes
                self.meshes[attributes["sym_name"].value] = attributes["mesh"]

    def function(self, f: Any) -> Function:
        blocks = list(f.regions[0].blocks)
        attributes = self.attributes(f)
        name = str(attributes.pop("sym_name"))
        if len(blocks) != 1:
            raise NotReadable(f"the function {name} has {len(blocks)} blocks, and one is read")
        return Function(name, self.block(blocks[0]), attributes)

    def number(self, value: IrValue) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    def block(self, block: Any) -> Block:
        arguments = tuple([self.number(a) for a in block.arguments])
        types = tuple([self.type(a.type) for a in block.arguments])
        *ops, last = [op.operation for op in block.operations]
        if last.name not in _END:
            raise NotReadable(f"a block ends with {last.name}")
        returned = tuple([self.number(v) for v in last.operands])
        return Block(arguments, types, tuple([self.op(o) for o in ops]), returned)

    def op(self, o: Any) -> Op:
        operands = tuple([self.number(v) for v in o.operands])
        results = list(o.results)
        types = tuple([self.type(r.type) for r in results])
        attributes = self.attributes(o)
        regions = []
        for region in o.regions:
            blocks = list(region.blocks)
            if len(blocks) != 1:
                raise NotReadable(f"a region of {o.name} has {len(blocks)} blocks")
            regions.append(self.block(blocks[0]))
        numbers = tuple([self.number(r) for r in results])
        return Op(o.name, operands, numbers, types, attributes, tuple(regions))

    # -- types -----------------------------------------------------------------------------

    def type(self, t: object) -> Type:
        found = self.types.get(t)
        if found is None:
            found = self.types[t] = self._type(t)
        return found

    def _type(self, t: Any) -> Type:
        ranked = self.m.ir.RankedTensorType
        if not isinstance(t, ranked):
            raise NotReadable(
                f"a value of type {t} is not an array",
                fix="only functions of arrays are read back: call the artifact as it is",
            )
        dtype = _dtype(str(t.element_type))
        unknown = self.m.dynamic
        return Type(tuple([None if d == unknown else int(d) for d in t.shape]), dtype)

    # -- attributes ------------------------------------------------------------------------

    def attributes(self, o: Any) -> dict[str, Any]:
        found = {}
        for name in o.attributes:
            name = name if isinstance(name, str) else name.name
            found[name] = self.attribute(o, name)
        return found

    def attribute(self, o: Any, name: str) -> Any:
        try:
            attribute = o.attributes[name]
        except TypeError:  # jaxlib's bindings do not support attributes of complex numbers.
            return self.array_in_text(str_of(o), self.type(o.results[0].type))
        known = self.plain.get(attribute, _ABSENT)
        if known is _ABSENT:
            known = self.plain[attribute] = self.value(attribute)
        return known

    def value(self, a: Any) -> Any:
        ir = self.m.ir
        if isinstance(a, ir.BoolAttr):
            return bool(a.value)
        if isinstance(a, ir.IntegerAttr):
            return int(a.value)
        if isinstance(a, ir.FloatAttr):
            return float(a.value)
        if isinstance(a, ir.StringAttr | ir.FlatSymbolRefAttr):
            return a.value
        if isinstance(a, ir.DenseI64ArrayAttr):
            return tuple(map(int, a))
        if isinstance(a, ir.DenseBoolArrayAttr):
            return tuple(map(bool, a))
        if isinstance(a, ir.ArrayAttr):
            return tuple([self.value(x) for x in a])
        if isinstance(a, ir.DictAttr):
            return {x.name: self.value(x.attr) for x in a}
        if isinstance(a, ir.DenseElementsAttr):
            return self.dense(a)
        sdy = self.m.sdy
        if sdy.ManualAxesAttr.isinstance(a):
            named = sdy.ManualAxesAttr(a)
            return tuple([named[i] for i in range(len(named))])
        if sdy.TensorShardingPerValueAttr.isinstance(a):
            each = sdy.TensorShardingPerValueAttr(a).shardings
            return tuple([self.divided(sdy.TensorShardingAttr(s)) for s in each])
        return str(a)

    def divided(self, a: Any) -> Divided | None:
        """Return the sharding of a value; None if `Divided` cannot express it.

        It cannot express parts of mesh axes, devices out of order, and unreduced values.
        """
        sdy, ref = self.m.sdy, a.mesh_or_ref
        mesh = self.meshes.get(ref.value) if isinstance(ref, self.m.ir.FlatSymbolRefAttr) else ref
        if mesh is None or sdy.MeshAttr(mesh).device_ids or a.unreduced_axes:
            return None
        parts = [
            [sdy.AxisRefAttr(x) for x in sdy.DimensionShardingAttr(d).axes]
            for d in a.dimension_shardings
        ]
        if any(x.sub_axis_info is not None for part in parts for x in part):
            return None
        axes = [sdy.MeshAxisAttr(x) for x in sdy.MeshAttr(mesh).axes]
        names = tuple([tuple([x.name for x in part]) for part in parts])
        return Divided(tuple([(x.name, int(x.size)) for x in axes]), names)

    def dense(self, a: Any) -> Any:
        kind = self.m.ir.RankedTensorType(a.type)
        if str(kind.element_type) == "index":
            return tuple(np.asarray(a).reshape(-1).tolist())
        of = self.type(kind)
        try:
            return np.array(a).reshape([d or 0 for d in of.shape]).astype(of.dtype, copy=False)
        except TypeError:  # The buffer protocol has no format for elements of this type.
            return self.array_in_text(str(a), of)

    def array_in_text(self, text: str, of: Type) -> np.ndarray:
        """Parse the elements of `dense<...>` in the text of an attribute or operation."""
        found = re.search(r"dense(?:_resource)?<(.*)>\s*:\s*tensor", text, re.S)
        if found is None or None in of.shape:
            raise NotReadable(f"a constant of type {of.dtype}{list(of.shape)} cannot be read")
        said, shape = found[1].strip(), [d or 0 for d in of.shape]
        if said.startswith('"0x'):
            return _of_bytes(bytes.fromhex(said[3:-1]), of.dtype, shape)
        each = [_element(word, of.dtype) for word in _WORDS.findall(said)]
        with np.errstate(all="ignore"):
            held = np.array(each, None if of.dtype.kind == "c" else object)
            held = np.array([_cast(v, of.dtype) for v in each], of.dtype) if each else held
        return np.broadcast_to(held.reshape(shape if len(each) != 1 else ()), shape).astype(
            of.dtype
        )


def str_of(o: Any) -> str:
    """Return the text of an operation with all elements of its constants."""
    return o.get_asm(large_elements_limit=None)


_WORDS = re.compile(r"\([^()]*\)|[^\s,\[\]()]+")


def _element(word: str, dtype: np.dtype) -> Any:
    if word.startswith("("):
        a, b = word[1:-1].split(",")
        part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
        return complex(_element(a.strip(), part), _element(b.strip(), part))
    if word in ("true", "false"):
        return word == "true"
    if word.startswith("0x"):
        width = dtype.itemsize
        return np.frombuffer(int(word, 16).to_bytes(width, "little"), dtype)[0]
    return float(word) if re.search(r"[.en]", word) else int(word)


def _cast(value: ArrayLike, dtype: np.dtype) -> Any:
    return np.asarray(value).astype(dtype)


def _of_bytes(data: bytes, dtype: np.dtype, shape: list[int]) -> np.ndarray:
    """Return elements from raw memory; types smaller than a byte use one byte per element."""
    found = np.frombuffer(data, dtype)
    count = int(np.prod(shape))
    return np.broadcast_to(found[:count].reshape(shape if len(found) > 1 else ()), shape).copy()


_DTYPES = {
    "i1": np.dtype(bool),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "complex<f32>": np.dtype(np.complex64),
    "complex<f64>": np.dtype(np.complex128),
    **{f"i{n}": np.dtype(f"int{n}") for n in (8, 16, 32, 64)},
    **{f"ui{n}": np.dtype(f"uint{n}") for n in (8, 16, 32, 64)},
}  # fmt: skip
_EXTRA = {
    "bf16": "bfloat16", "f8E3M4": "float8_e3m4", "f8E4M3": "float8_e4m3",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz", "f8E4M3FN": "float8_e4m3fn",
    "f8E4M3FNUZ": "float8_e4m3fnuz", "f8E5M2": "float8_e5m2", "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E8M0FNU": "float8_e8m0fnu", "f4E2M1FN": "float4_e2m1fn", "i4": "int4", "ui4": "uint4",
    "i2": "int2", "ui2": "uint2",
}  # fmt: skip


def _dtype(name: str) -> np.dtype:
    found = _DTYPES.get(name) or EXTRA_DTYPES.get(_EXTRA.get(name, ""))
    if found is None:
        raise NotReadable(f"elements of type {name} are known to nobody here")
    return found
