"""Reductions to the greatest and the least of floats, in forms that keep nan on CPUs.

The compiler for CPUs leaves reductions of 4096 elements and more to a library, whose maximum and
minimum drop nan and take either of two zeros.  On one device, therefore, reductions have a region
that the library does not know, and the compiler emits the loop itself.  This loop is fast along an
axis that others follow, where it works on vectors of neighbours.  So large arrays are reduced along
one axis at a time, and neighbours are divided into groups whose elements are reduced last.

Between devices, the compiler divides a reduction only if it knows the region, and loses nan when it
joins the parts.  So integers are reduced that are ordered as the floats are.

Invariant: nan is the greatest and the least, and -0 is less than 0, for any compiler that follows
the StableHLO specification.
"""

import math
import struct
from collections.abc import Sequence
from typing import Any

from .._base.jaxlib_api import IrOperation, IrType, IrValue
from . import mlir, rows
from .origins import Mark, kind_of, value_of

KNOWN = ("stablehlo.maximum", "stablehlo.minimum")

_GROUP = 16
"""About how many neighbours are reduced last: as many as fit into one vector."""

_LONGEST = 32
"""The longest reduction that the compiler does not rewrite; others read their operand from
memory."""

_NARROW = ("f16", "bf16")
"""Types that are reduced as 32-bit floats, which all their numbers are."""

_DIVIDED = (*_NARROW, "f32", "f64")
"""Types whose order has a form in integers."""


def replaced(op: IrOperation, cpus: int, start: Mark) -> list[Any]:
    """Write another form of a reduction before it; return the results, none if it keeps its form.

    Args:
      op: a reduction of an array, or one between devices.
      cpus: how many of these the module runs on, 0 for devices of other kinds.
      start: the origin of what a reduction of an array starts from.
    """
    if not cpus or not is_extreme(op):
        return []
    made = Extreme(op)
    if cpus == 1:
        return made.alone() if op.name == "stablehlo.reduce" else []
    if op.name == "stablehlo.all_reduce":
        return made.divided(None)
    value = value_of(start) if start.written else None
    return [] if value is None or math.isnan(value) else made.divided(value)


def is_extreme(op: IrOperation) -> bool:
    """Return whether a reduction is one of floats to the greatest or the least."""
    floats = all(kind_of(y.type).category == "f" for y in op.results)
    return rows.step_of(op) in KNOWN and floats


class Extreme:
    """One reduction of a module, and the operations that are written beside it."""

    def __init__(self, op: Any) -> None:
        self.op = op
        self.m = mlir.bindings()
        self.step = op.regions[0].blocks[0].operations[0].operation.name
        self.uses = [[(u.owner, u.operand_number) for u in r.uses] for r in op.results]
        self.at = self.m.ir.InsertionPoint(op)

    # -- the forms -----------------------------------------------------------------------------

    def alone(self) -> list[Any]:
        """Write the form for one device; return the new result."""
        x, start = self.op.operands
        t = self.op.result.type
        if str(t.element_type) in _NARROW:
            f32 = self.m.ir.F32Type.get(self.m.context)
            x, start = (
                self.made("stablehlo.convert", self.like(v.type, f32), [v]) for v in (x, start)
            )
        axes = list(self.op.attributes["dimensions"])
        if axes and x.type.has_static_shape and math.prod(x.type.shape) >= rows.FEWEST:
            result = self.by_steps(x, start, axes)
        else:
            result = self.reduced(x, start, axes)
        if result.type != t:
            result = self.made("stablehlo.convert", t, [result])
        return self.replaced([result])

    def by_steps(self, x: IrValue, start: IrValue, axes: list[int]) -> Any:
        """Return the reduction of a large array, in several steps.

        The last axes are reduced first if they hold several groups, else after the other ones.
        """
        first = len(x.type.shape)
        while first - 1 in axes:
            first -= 1
        last = list(range(first, len(x.type.shape)))
        steps = [[a - i] for i, a in enumerate(a for a in axes if a < first)]
        grouped = math.prod(x.type.shape[first:]) >= 2 * _GROUP
        if grouped:
            x = self.by_groups(x, start, first)
        elif last:
            steps.append([a - len(steps) for a in last])
        for i, step in enumerate(steps):
            x = self.reduced(self.kept(x) if grouped or i else x, start, step)
        return x

    def by_groups(self, x: IrValue, start: IrValue, first: int) -> Any:
        """Return the reduction along all axes from `first` on."""
        *before, n = *x.type.shape[:first], math.prod(x.type.shape[first:])
        size = _group_of(n)
        whole = n - n % size
        rows = self.shaped(x, [*before, n])
        groups = rows if whole == n else self.part(rows, 0, whole)
        groups = self.shaped(groups, [*before, whole // size, size])
        result = self.reduced(self.kept(self.reduced(groups, start, [first])), start, [first])
        if whole == n:
            return result
        rest = self.reduced(self.part(rows, whole, n), start, [first])
        both = self.made(self.step, result.type, [self.kept(result), self.kept(rest)])
        return self.kept(both)  # or else the library computes it, with what follows

    def divided(self, start: float | None) -> list[Any]:
        """Write the form for several devices; return the new results, none if it has no form.

        Args:
          start: what a reduction starts from; None for one over devices.
        """
        op = self.op
        inputs = list(op.operands)[: len(op.results)]
        t = inputs[0].type
        if not all(x.type.has_static_shape for x in inputs) or str(t.element_type) not in _DIVIDED:
            return []
        f32 = self.m.ir.F32Type.get(self.m.context)
        element = f32 if str(t.element_type) in _NARROW else t.element_type
        keys = [self.keys(x, element) for x in inputs]
        cell = self.like(t, keys[0].type.element_type, [])
        outs = [self.like(r.type, cell.element_type) for r in op.results]
        if start is not None:
            bits = int(str(cell.element_type)[1:])
            keys.append(self.whole(cell, _key(start, bits)))
        attributes = {name: op.attributes[name] for name in op.attributes}
        made = self.create(op.name, outs, keys, attributes, 1)
        self.fill(made, cell)
        results = [
            self.floats(k, r.type, element) for k, r in zip(made.results, op.results, strict=True)
        ]
        return self.replaced(results)

    # -- ordered integers ----------------------------------------------------------------------

    def keys(self, x: IrValue, element: IrType) -> Any:
        """Return integers that are ordered as floats are, with nan at the end that wins."""
        if x.type.element_type != element:
            x = self.made("stablehlo.convert", self.like(x.type, element), [x])
        nan = math.nan if self.step == KNOWN[0] else -math.nan
        is_nan = self.compared(x, x, "NE")
        x = self.made("stablehlo.select", x.type, [is_nan, self.number(x.type, nan), x])
        bits = 64 if str(element) == "f64" else 32
        whole = self.m.ir.IntegerType.get_signless(bits, self.m.context)
        i = self.made("stablehlo.bitcast_convert", self.like(x.type, whole), [x])
        return self.flipped(i, bits)

    def floats(self, k: IrValue, t: Any, element: Any) -> Any:
        """Return the floats of some keys, as values of type `t`."""
        i = self.flipped(k, 64 if str(element) == "f64" else 32)
        x = self.made("stablehlo.bitcast_convert", self.like(t, element), [i])
        return x if t.element_type == element else self.made("stablehlo.convert", t, [x])

    def flipped(self, i: IrValue, bits: int) -> Any:
        """Return negative integers with all bits but the sign inverted, and others as they are."""
        t = i.type
        last = self.whole(t, bits - 1)
        signs = self.made("stablehlo.shift_right_arithmetic", t, [i, last])
        signs = self.made("stablehlo.and", t, [signs, self.whole(t, 2 ** (bits - 1) - 1)])
        return self.made("stablehlo.xor", t, [i, signs])

    # -- operations ----------------------------------------------------------------------------

    def create(
        self,
        name: str,
        ts: list[Any],
        xs: list[IrValue],
        attributes: object = None,
        regions: int = 0,
    ):
        return self.m.create(name, ts, xs, attributes, None, regions, self.op.location, self.at)

    def made(self, name: str, t: IrType, xs: list[Any], **attributes: object) -> Any:
        return self.create(name, [t], xs, attributes or None).result

    def like(self, t: Any, element: IrType, shape: Sequence[int] | None = None) -> Any:
        """Return a type of other elements, with the same shape or another."""
        shape = t.shape if shape is None else shape
        return self.m.ir.RankedTensorType.get(shape, element, None, self.m.unknown)

    def number(self, t: Any, value: float) -> Any:
        one = self.m.ir.FloatAttr.get(t.element_type, value, self.m.unknown)
        return self.splat(t, one)

    def whole(self, t: Any, value: int) -> Any:
        return self.splat(t, self.m.ir.IntegerAttr.get(t.element_type, value))

    def splat(self, t: IrType, one: object) -> Any:
        value = self.m.ir.DenseElementsAttr.get_splat(t, one)
        return self.made("stablehlo.constant", t, [], value=value)

    def compared(self, x: IrValue, y: IrValue, direction: str) -> Any:
        bools = self.like(x.type, self.m.ir.IntegerType.get_signless(1, self.m.context))
        how = mlir.attr(f"#stablehlo<comparison_direction {direction}>")
        return self.made("stablehlo.compare", bools, [x, y], comparison_direction=how)

    def shaped(self, x: Any, shape: Sequence[int]) -> Any:
        t = self.like(x.type, x.type.element_type, shape)
        return x if t == x.type else self.made("stablehlo.reshape", t, [x])

    def part(self, x: IrValue, low: int, high: int) -> Any:
        """Return the elements from `low` to `high` along the last axis."""
        *before, n = x.type.shape
        zeros, ones = [0] * len(before), [1] * len(x.type.shape)
        t = self.like(x.type, x.type.element_type, [*before, high - low])
        return self.made(
            "stablehlo.slice", t, [x],
            start_indices=mlir.i64s(*zeros, low), limit_indices=mlir.i64s(*before, high),
            strides=mlir.i64s(*ones),
        )  # fmt: skip

    def kept(self, x: IrValue) -> Any:
        """Return an equal value that the compiler does not merge with what made it."""
        return self.made("stablehlo.reduce_precision", x.type, [x], **mlir.more_bits())

    def reduced(self, x: IrValue, start: IrValue, axes: Sequence[int]) -> Any:
        """Return a reduction by a region that no library knows."""
        shape = [n for i, n in enumerate(x.type.shape) if i not in axes]
        t = self.like(x.type, x.type.element_type, shape)
        made = self.create(
            "stablehlo.reduce", [t], [x, start], dict(dimensions=mlir.i64s(*axes)), 1
        )
        self.fill(made, start.type, kept=True)
        return made.result

    def fill(self, op: IrOperation, cell: IrType, kept: bool = False) -> None:
        """Write the region of a reduction."""
        body = mlir.block(op.regions[0], [cell, cell])
        outer, self.at = self.at, self.m.ir.InsertionPoint(body)
        value = self.made(self.step, cell, list(body.arguments))
        self.create("stablehlo.return", [], [self.kept(value) if kept else value])
        self.at = outer

    def replaced(self, results: list[Any]) -> list[Any]:
        """Let the operations that read the old results read these, and return them."""
        for uses, new in zip(self.uses, results, strict=True):
            for owner, i in uses:
                owner.operation.operands[i] = new
        return results


def _group_of(n: int) -> int:
    """Return the size of groups of `n` neighbours: one that divides them, if there is any.

    Otherwise the first groups are copied, which takes twice as long as to reduce them.  So is the
    whole operand, unless an array makes it, where there are more groups than `_LONGEST`.
    """
    wanted = max(_GROUP, -(-n // _LONGEST))
    few = [n // count for count in range(2, _LONGEST + 1) if n % count == 0]
    many = [size for size in range(_GROUP // 2, 8 * _GROUP) if n % size == 0 and 2 * size <= n]
    sizes = [size for size in few if _GROUP // 2 <= size <= 8 * wanted] or many
    return min(sizes, key=lambda size: abs(size - wanted), default=_GROUP)


def _key(value: float, bits: int) -> int:
    """Return the integer that stands for a float."""
    as_float, as_whole = ("<f", "<i") if bits == 32 else ("<d", "<q")
    i: int = struct.unpack(as_whole, struct.pack(as_float, value))[0]
    return i ^ (2 ** (bits - 1) - 1) if i < 0 else i
