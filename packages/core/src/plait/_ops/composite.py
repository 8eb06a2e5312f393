"""Calls of programs that the compiler may recognise by a name.

Invariant: the name belongs to the program as it was given.  A transformation replaces the program,
and the operation becomes a plain call.
"""

from typing import Any

import numpy as np

from .._base.errors import ArgumentError
from .._base.jaxlib_api import IrValue
from .._core.higher_order import Wiring
from .._core.ir import Program, ordered
from .._core.primitive import Primitive
from .._types.avals import Aval
from .._xla.lower import Emitter, lower_rules
from .._xla.mlir import attr, element_type, string, symbol, type_of
from .control_flow import call, expect

__all__ = ["composite"]


class Named(Wiring):
    """The wiring of a call whose name every transformation drops."""

    custom = "name"
    hint = True

    def erase(self, prim, params: dict[str, Any]):
        return call, {"program": params["program"]}


def _composite(
    *xs: Aval, program: Program, name: str, version: int, attributes: tuple
) -> list[Aval]:
    """Apply a program that compilers may recognise by name; `attributes` are (name, text) pairs."""
    expect("composite", program.in_avals, xs)
    return program.out_avals


composite = Primitive("core.composite", _composite, many=True, higher=Named())


@lower_rules.rule(composite)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    program: Program,
    name: str,
    version: int,
    attributes: tuple[tuple[Any, ...], ...],
):
    if not name or ordered([program]) or e.dims or e.unit.needs(program) or not outs:
        return e.call(program, xs)
    said = ", ".join(f"{_quoted(k)} = {v}" for k, v in attributes)
    function = e.function(program, e.unit.unique(program.name))
    o = e.create(
        "stablehlo.composite",
        [type_of(t) for t in outs],
        xs,
        {
            "name": string(name),
            "decomposition": symbol(function),
            "version": attr(f"{version} : i32"),
            "composite_attributes": attr(f"{{{said}}}"),
        },
        None,
        0,
        e.where,
        e.ip,
    )
    return list(o.results)


def _quoted(text: str) -> str:
    plain = lambda b: 32 <= b < 127 and b not in b'"\\'  # noqa: E731
    return '"' + "".join(chr(b) if plain(b) else f"\\{b:02X}" for b in text.encode()) + '"'


def _tensor(x: np.ndarray) -> str:
    """Return an array of numbers as the text of a tensor; raw bytes keep every bit."""
    sizes = "".join(f"{n}x" for n in x.shape)
    if not x.size:
        inner = ""
    elif x.dtype.kind == "b":  # bits, not bytes, would be read from a string
        inner = str(x.tolist()).lower()
    else:
        inner = f'"0x{np.ascontiguousarray(x, x.dtype.newbyteorder("<")).tobytes().hex().upper()}"'
    return f"dense<{inner}> : tensor<{sizes}{element_type(x.dtype)}>"


def attribute(name: str, key: str, value: object) -> str:
    """Return a keyword argument as the text of an attribute.

    Raises TypeRule for a value without such a text.
    """
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        value = value.item()
    if isinstance(value, type) and issubclass(value, np.generic):
        value = np.dtype(value)
    if not hasattr(value, "shape"):  # a scalar type that stands for a dtype
        value = getattr(value, "dtype", value)
    if isinstance(value, np.dtype):
        return str(element_type(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, float):
        bits = np.float64(value).view(np.uint64).item()
        return f"0x{bits:016X} : f64"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(attribute(name, key, v) for v in value)}]"
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return _tensor(value)
    raise ArgumentError(
        f"composite {name}: {key}={value!r} is not an attribute",
        fix="pass arrays by position, and numbers, strings and tuples of these by name",
    )
