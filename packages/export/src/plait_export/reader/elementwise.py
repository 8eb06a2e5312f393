"""Reading elementwise operations.

Invariant: operands have one shape, as StableHLO requires, except for scalar conditions and bounds.
"""

import re
from typing import TYPE_CHECKING, Any

import numpy as np

import plait
from plait.ext.ir import Primitive
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as shapes
from plait.ext.trace import Value
from plait.ext.types import FLOATING, Aval
from plait.ext.values import Literal

from .table import enum, reads

if TYPE_CHECKING:
    from .module import Op
    from .walking import Walk

_PLAIN = {
    "abs": el.abs_, "add": el.add, "and": el.and_, "atan2": el.atan2, "ceil": el.ceil,
    "complex": el.complex_, "count_leading_zeros": el.clz, "divide": el.div, "floor": el.floor,
    "imag": el.imag, "is_finite": el.is_finite, "maximum": el.maximum, "minimum": el.minimum,
    "multiply": el.mul, "negate": el.neg, "not": el.not_, "or": el.or_,
    "popcnt": el.population_count, "power": el.pow_, "real": el.real, "remainder": el.rem,
    "round_nearest_afz": el.round_away, "round_nearest_even": el.round_even,
    "shift_left": el.shift_left, "shift_right_arithmetic": el.shift_right_arithmetic,
    "shift_right_logical": el.shift_right_logical, "sign": el.sign, "subtract": el.sub,
    "xor": el.xor,
}  # fmt: skip
_ASKED = {
    "cbrt": "cbrt", "cosine": "cos", "exponential": "exp", "exponential_minus_one": "expm1",
    "log": "log", "log_plus_one": "log1p", "logistic": "logistic", "rsqrt": "rsqrt",
    "sine": "sin", "sqrt": "sqrt", "tan": "tan", "tanh": "tanh",
}  # fmt: skip
"""Functions that may carry a requested accuracy."""

_FLAGS = {"add": el.or_, "multiply": el.and_, "maximum": el.or_, "minimum": el.and_}
"""The equivalents of arithmetic operations on booleans."""


def _plain(name: str, prim: Primitive) -> None:
    @reads(f"stablehlo.{name}")
    def _(walk: "Walk", op: "Op", xs: list[Value]):
        flags = xs[0].aval.dtype == np.bool_ and name in _FLAGS
        return (_FLAGS[name] if flags else prim).bind(*xs)


for _name, _prim in _PLAIN.items():
    _plain(_name, _prim)


def _asked(name: str, of: str) -> None:
    prim = getattr(el, of)

    @reads(f"stablehlo.{name}")
    def _(walk: "Walk", op, xs: list[Value]):
        how = accuracy(op.attributes.get("result_accuracy"))
        return prim.bind(*xs) if how is None else el.accurate.bind(*xs, of=of, **how)


for _name, _of in _ASKED.items():
    _asked(_name, _of)


def accuracy(said: object) -> dict[str, Any] | None:
    """Return the requested accuracy of a function; None for the default."""
    if said is None or "DEFAULT" in str(said):
        return None
    number = lambda key: (re.search(rf"{key} = ([^,>]+)", str(said)) or ["", "0"])[1]  # noqa: E731
    mode = "highest" if "HIGHEST" in str(said) else "tolerance"
    tolerance = float(number("atol")), float(number("rtol")), int(number("ulps"))
    return {"mode": mode, "tolerance": tolerance}


@reads("stablehlo.compare")
def _(walk: "Walk", op, xs: list[Value]):
    x, y = xs
    if enum(op.attributes.get("compare_type", "NOTYPE")) == "TOTALORDER":
        if x.aval.category == FLOATING:
            x, y = in_total_order(x), in_total_order(y)
    return _COMPARED[enum(op.attributes["comparison_direction"])].bind(x, y)


_COMPARED = {"EQ": el.eq, "NE": el.ne, "LT": el.lt, "LE": el.le, "GT": el.gt, "GE": el.ge}


def in_total_order(x: Value) -> Any:
    """Map floats to signed integers in their total order (IEEE 754, 5.10).

    The integers are the bits of the floats; if the sign is set, the other bits are inverted.
    """
    width = x.aval.dtype.itemsize * 8
    bits = el.bitcast_.bind(el.stop.bind(x), dtype=np.dtype(f"int{width}"))
    fill = lambda n: Literal(n, Aval(bits.aval.shape, bits.aval.dtype))  # noqa: E731
    sign = el.shift_right_arithmetic.bind(bits, fill(width - 1))
    return el.xor.bind(bits, el.and_.bind(sign, fill(2 ** (width - 1) - 1)))


@reads("stablehlo.select")
def _(walk: "Walk", op: "Op", xs: list[Value]):
    p, x, y = xs
    return el.select.bind(_spread(p, x), x, y)


@reads("stablehlo.clamp")
def _(walk: "Walk", op: "Op", xs: list[Value]):
    low, x, high = xs
    return el.clamp.bind(_spread(low, x), x, _spread(high, x))


def _spread(x: Value, like: Value) -> Any:
    """Broadcast a scalar to the shape of another value."""
    if x.aval.shape == like.aval.shape:
        return x
    return shapes.broadcast_in_dim.bind(x, shape=like.aval.shape, dims=())


@reads("stablehlo.convert")
def _(walk: "Walk", op, xs: list[Value]):
    return shapes.convert(xs[0], op.types[0].dtype)


@reads("stablehlo.bitcast_convert")
def _(walk: "Walk", op, xs: list[Value]):
    return plait.lax.bitcast_convert_type(xs[0], op.types[0].dtype)


@reads("stablehlo.reduce_precision")
def _(walk: object, op, xs: list[Value]):
    at = op.attributes
    bits = {k: at[k] for k in ("exponent_bits", "mantissa_bits")}
    return el.reduce_precision.bind(xs[0], **bits)


@reads("stablehlo.optimization_barrier")
def _(walk: "Walk", op: "Op", xs: list[Value]):
    return shapes.barrier.bind(*xs)
