"""Pieces of StableHLO: types, attributes, constants, functions.

Results are memoised.  jaxlib's MLIR is imported only when the first module is built.

Invariant: the process has one context, which is used only while `jaxlib_api.lock` is held; modules
leave it as bytes.
"""

import io
import re
from collections.abc import Iterable, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from .._base import jaxlib_api
from .._base.errors import ShapeError
from .._base.jaxlib_api import IrModule, IrOperation, IrType, IrValue
from .._base.source import Named, hidden, of_a_library, of_standard_library
from .._types.avals import COMPLEX, FLOATING, Aval, category, float0

_state: dict[str, Any] = {}


def _is_called(file: str) -> bool:
    """Return whether code of this file is Plait's, or calls Plait on behalf of the user."""
    return hidden(file) or of_standard_library(file) or of_a_library(file)


def bindings() -> Any:
    """Return jaxlib's MLIR bindings with Plait's context: `.ir`, `.create`, `.context`, ..."""
    try:
        return _state["m"]
    except KeyError:
        pass
    with jaxlib_api.lock:
        if "m" not in _state:
            m = jaxlib_api.mlir()
            m.context = jaxlib_api.new_context()
            m.unknown = m.ir.Location.unknown(m.context)
            m.create = m.ir.Operation.create
            m.locations = jaxlib_api.location_cache(_is_called, m.context)
            m.dynamic = m.ir.ShapedType.get_dynamic_size()
            m.token = m.ir.Type.parse("!stablehlo.token", m.context)
            _state["m"] = m
    return _state["m"]


# ---- types ---------------------------------------------------------------------------------

_NAMES = {
    "bool": "i1",
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    "float8_e3m4": "f8E3M4",
    "float8_e4m3": "f8E4M3",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3fnuz": "f8E4M3FNUZ",
    "float8_e5m2": "f8E5M2",
    "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
    "float4_e2m1fn": "f4E2M1FN",
}


_one_zero: list[str] = []
"""Names of the types without a negative zero that this process has used."""


@cache
def element_type(dtype: np.dtype):
    """Return the MLIR type of an element."""
    name = _NAMES.get(dtype.name) if dtype != float0 else "i1"
    if name is None:
        name = dtype.name.replace("uint", "ui").replace("int", "i")
    if name.endswith("FNUZ"):
        _one_zero.append(name)
    return bindings().ir.Type.parse(name, bindings().context)


def has_one_zero(module: Any) -> bool:
    """Return whether a module has numbers of a type that has no negative zero."""
    if not _one_zero:  # this is the usual case, and writing a module as text is slow
        return False
    text = module.operation.get_asm(large_elements_limit=16)
    return any(name in text for name in _one_zero)


_MOST = 2**60 - 1
"""The most bytes whose bits can be counted too, as the runtime does for small types."""


def _expect_countable(sizes: Iterable[Any], element: int, what: IrType | Aval) -> None:
    # The compiler ends the process where such a product overflows.  It multiplies sizes in their
    # order, so that an axis of size 0 helps only in front: like numpy, these are left out.
    sizes = list(sizes)
    size = max(1, element) * prod(d for d in sizes if d)
    if size > _MOST:
        raise ShapeError(
            f"an array of type {what} is larger than memory can be: it has {size} bytes"
            + (", not counting axes of size 0" if 0 in sizes else ""),
            fix="make a smaller one; a computation in parts, as by plait.lax.map, needs "
            "only a part at a time",
        )


def type_of(aval: Aval):
    """Return the MLIR type of a value, which is cached on the aval.

    Raises ShapeError for a type with more bytes than can be counted.
    """
    t = aval.mlir
    if t is None:
        known = (d for d in aval.shape if d.__class__ is int)
        _expect_countable(known, aval.dtype.itemsize, aval)
        m = bindings()
        shape = [d if d.__class__ is int else m.dynamic for d in aval.shape]
        t = m.ir.RankedTensorType.get(shape, element_type(aval.dtype), loc=m.unknown)
        aval.mlir = t
    return t


# ---- attributes ----------------------------------------------------------------------------


@cache
def attr(text: str):
    """Return the attribute with this text."""
    return bindings().ir.Attribute.parse(text, bindings().context)


@cache
def more_bits() -> dict[str, Any]:
    """Return the attributes of a rounding to more bits than floats have, which changes none.

    The compiler keeps such a rounding, between operations that it would merge.
    """
    return {"exponent_bits": attr("11 : i32"), "mantissa_bits": attr("52 : i32")}


@cache
def i64s(*xs: int):
    """Return `array<i64: ...>`."""
    return bindings().ir.DenseI64ArrayAttr.get(xs, bindings().context)


@cache
def bools(*xs: bool):
    """Return `array<i1: ...>`."""
    return bindings().ir.DenseBoolArrayAttr.get(xs, bindings().context)


@cache
def i64(n: int):
    """Return `n : i64`."""
    return attr(f"{n} : i64")


@cache
def boolean(b: bool):
    """Return `true` or `false`."""
    return attr("true" if b else "false")


@cache
def string(text: str):
    """Return a string attribute."""
    return bindings().ir.StringAttr.get(text, bindings().context)


@cache
def indices(*xs: int):
    """Return a dense vector of indices: a layout."""
    inner = f"[{', '.join(map(str, xs))}]" if xs else ""
    return attr(f"dense<{inner}> : tensor<{len(xs)}xindex>")


@cache
def matrix(rows: tuple[tuple[int, ...], ...]):
    """Return a dense matrix of i64: replica groups, paddings."""
    n = len(rows[0]) if rows else 0
    return attr(f"dense<{[list(r) for r in rows]}> : tensor<{len(rows)}x{n}xi64>")


def array_of(attributes: Iterable[Any]):
    """Return an array attribute."""
    return bindings().ir.ArrayAttr.get(list(attributes), bindings().context)


def constant_of(value: Any) -> int | None:
    """Return the value of a constant integer without axes; None if it is not constant."""
    op = value.owner
    if getattr(op, "name", "") != "stablehlo.constant":
        return None
    (number,) = op.attributes["value"]
    return int(number)


def without_zeros(value: Any) -> bool:
    """Return whether `value` is one constant integer (broadcast or not) other than 0."""
    op = value.owner
    while "broadcast_in_dim" in getattr(op, "name", ""):
        op = op.operands[0].owner
    if getattr(op, "name", "") != "stablehlo.constant":
        return False
    numbers = op.attributes["value"]
    return numbers.is_splat and bool(numbers.get_splat_value().value)


def word(op: Any, name: str) -> str:
    """Return an attribute of an operation that is a name or a text."""
    return op.attributes[name].value


def maker(x: IrValue) -> Any:
    """Return the operation that made a value; None for an argument."""
    made: Any = x.owner
    return None if isinstance(made, bindings().ir.Block) else made


def symbol(name: str):
    """Return `@name`."""
    return bindings().ir.FlatSymbolRefAttr.get(name, bindings().context)


def location(where: Any):
    """Return the MLIR location of a source location."""
    m = bindings()
    if where.__class__ is Named:
        return m.ir.Location.name(where.name, location(where.at), m.context)
    return m.unknown if where is None else m.locations.get(where)


def dense(x: np.ndarray, aval: Aval):
    """Return the attribute of a constant; a 0-d `x` fills the shape."""
    m = bindings()
    element = element_type(aval.dtype)
    if aval.dtype == float0:
        x, aval = np.zeros((), bool), aval.physical
    with m.context, m.unknown:
        kind = category(aval.dtype)
        if x.ndim == 0 and kind != COMPLEX:
            if kind == FLOATING:
                one = m.ir.FloatAttr.get(element, float(x))
            else:
                n = int(x)  # the attribute takes the signed number with these bits
                one = m.ir.IntegerAttr.get(element, n - 2**64 if n >= 2**63 else n)
            return m.ir.DenseElementsAttr.get_splat(type_of(aval), one)
        x = np.broadcast_to(x, aval.shape)
        shape = list(aval.shape)
        if aval.dtype.name in ("int4", "uint4", "float4_e2m1fn"):
            x = x.view(np.uint8) if aval.dtype.itemsize == 1 else x
        return m.ir.DenseElementsAttr.get(np.ascontiguousarray(x), type=element, shape=shape)


# ---- modules, functions, blocks ------------------------------------------------------------


def new_module():
    """Return an empty module."""
    m = bindings()
    module = m.ir.Module.create(loc=m.unknown)
    module.operation.attributes["sym_name"] = string("plait")
    return module


def name_module(module: IrModule, name: str) -> None:
    """Give a module the name under which profilers show it; by default modules of equal programs
    are equal."""
    module.operation.attributes["sym_name"] = string(re.sub(r"\W+", "_", name).strip("_") or "f")


def function(module, name: str, ins: Sequence[Any], outs: Sequence[Any], public: bool):
    """Return the entry block of a new function, and the function."""
    m = bindings()
    with m.context, m.unknown, m.ir.InsertionPoint(module.body):
        kind = m.ir.FunctionType.get(ins, outs)
        f = m.func.FuncOp(name, kind, visibility="public" if public else "private")
        return f.add_entry_block(), f


def code_of(f) -> bytes:
    """Return a function as bytes, alone in a module."""
    m = bindings()
    module = m.ir.Module.create(loc=m.unknown)
    f.operation.clone(m.ir.InsertionPoint(module.body))
    return bytecode(module)


def add_function(module: IrModule, code: bytes, name: str) -> None:
    """Add a function to a module, from its bytes, under this name."""
    parsed = parse(code)  # keeps the module alive, since its operations do not
    (f,) = parsed.body.operations
    made = f.operation.clone(bindings().ir.InsertionPoint(module.body))
    made.attributes["sym_name"] = string(name)


def function_of(module: IrModule, name: str):
    """Return the function with this name."""
    symbols = bindings().ir.SymbolTable(module.operation)
    return symbols[name]


def annotate(f, arguments: Sequence[dict], results: Sequence[dict] = ()) -> None:
    """Give attributes to the arguments and results of a function."""
    m = bindings()
    for name, attributes in (("arg_attrs", arguments), ("res_attrs", results)):
        if any(attributes):
            f.attributes[name] = m.ir.ArrayAttr.get(
                [m.ir.DictAttr.get(a, m.context) for a in attributes], m.context
            )


def declare(module: IrModule, text: str) -> None:
    """Add a module-level operation, given as text."""
    m = bindings()
    parsed = m.ir.Module.parse(text, m.context)
    at = m.ir.InsertionPoint.at_block_begin(module.body)
    parsed.body.operations[0].operation.clone(at)


def block(region, types: Sequence[Any]):
    """Return a new block of a region."""
    return region.blocks.append(*types, arg_locs=[bindings().unknown] * len(types))


def insertion_point(b: object):
    """Return the point at the end of a block."""
    return bindings().ir.InsertionPoint(b)


def bytecode(module: IrModule) -> bytes:
    """Return the module as bytes.

    The compiler reads them into its own context: it runs without the GIL, and a context belongs to
    one thread at a time.
    """
    out = io.BytesIO()
    module.operation.write_bytecode(out)
    return out.getvalue()


def text(code: bytes, locations: bool = False) -> str:
    """Return the text of a module."""
    m = bindings()
    with jaxlib_api.lock:
        module = m.ir.Module.parse(code, m.context)
        return module.operation.get_asm(enable_debug_info=locations)


def parse(code: bytes):
    """Return the module of some bytes or text."""
    return bindings().ir.Module.parse(code, bindings().context)


def expect_countable(module: IrModule) -> None:
    """Raise ShapeError if a module from elsewhere has values with more bytes than can be counted.

    The caller holds the lock.
    """
    m = bindings()
    walk_on, ranked = m.ir.WalkResult.ADVANCE, m.ir.RankedTensorType
    found = set()

    def look(op: IrOperation) -> Any:
        found.update([r.type for r in op.results])
        return walk_on

    module.operation.walk(look)
    for t in found:
        if isinstance(t, ranked):
            e = t.element_type
            bits = e.width if hasattr(e, "width") else 2 * e.element_type.width
            _expect_countable([d for d in t.shape if d >= 0], bits // 8, t)
