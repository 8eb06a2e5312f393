"""Batch, the interpreter of vmap: it stacks the values of all elements along one axis.

Invariant: the form of a value is the position of the mapped axis, None for a value that does not
vary; the type that the user sees lacks that axis.  Mapping commutes with differentiation, so custom
derivatives are kept.
"""

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from plait.ext.errors import AxisError
from plait.ext.ir import Primitive, Program
from plait.ext.ops.control_flow import cond, map_axes, row
from plait.ext.ops.elementwise import eq, select
from plait.ext.ops.reduction import reduce_sum
from plait.ext.ops.shape import broadcast_in_dim, convert, iota_, transpose_
from plait.ext.rules import RuleTable
from plait.ext.sizes import is_symbolic
from plait.ext.trace import Carrier, Interpreter, Value, as_list, staged, with_axis, without_axis
from plait.ext.types import BOOL, INT32, Aval
from plait.ext.values import Literal
from plait.typing import Array

__all__ = ["Batch", "batching_rules", "insert", "skip", "with_axis_at"]

batching_rules = RuleTable(
    "batching",
    signature="(batch, xs, dims, **params)",
    programs="(batch, args, params)",
    doc="(out, dim), lists if the primitive has many; a dim is the position of the mapped axis, or "
    "None; lifted values of an operation with programs.",
)

_inner: dict[tuple, Aval] = {}  # (type, axis, size) -> type without the axis


def with_axis_at(x: Any, a: int, b: int) -> Any:
    """Move axis `a` to position `b`; the others keep their order."""
    if a == b:
        return x
    perm = [i for i in range(x.aval.ndim) if i != a]
    perm.insert(b, a)
    return transpose_.bind(x, perm=tuple(perm))


class Batch(Carrier):
    """Interpreter that maps operations over an axis.

    Attributes:
      axis_name: the name of the axis for collectives, or None.
      spmd_axis_name: the mesh axes that the mapped axis is divided over wherever a sharding is
        stated, a tuple of names; None leaves that to the compiler.
    """

    rules = batching_rules
    copies = True
    fixed_boxes = False
    does = "vmap"
    heeds = MappingProxyType({"mapping": "mapped"})
    fields = ("size", "axis_name", "spmd_axis_name")
    commutes = frozenset(("derivative",))
    size: Any
    axis_name: Any
    spmd_axis_name: tuple[str, ...] | None
    present: Any = None
    """bool[size]: which elements exist; None if all do."""
    indices: dict[Any, Any] | None = None
    """Cached indices of the elements, by the function that makes them; see `vmappable`."""

    def __init__(
        self,
        parent: Interpreter | None,
        size: Any,
        axis_name: object,
        spmd_axis_name: tuple[str, ...] | None = None,
        ambient: Sequence[Any] = (),
        of: Callable | None = None,
    ):
        super().__init__(parent, size, axis_name, spmd_axis_name, ambient=ambient, of=of)
        self.sizes = {} if axis_name is None else {axis_name: size}  # type: ignore[misc]

    def part_avals(self, aval: Aval, form: int) -> tuple[Aval, ...]:
        return (with_axis(aval, form, self.size, self.spmd_axis_name or ()),)

    def join(self, aval: Aval, f: int, g: int) -> int:
        return 0

    def whole(self, aval: Aval) -> int:
        return 0

    def coerce(
        self, aval: Aval, parts: tuple[Any, ...], f: int | None, g: int | None
    ) -> tuple[Any, ...]:
        if g is None:
            raise AxisError(f"vmap: {aval!r} varies along the mapped axis where it must not")
        return (self.move(parts[0], f, g),)

    def collect(
        self, aval: Aval, parts: tuple[Any, ...], f: int | None, g: int | None
    ) -> tuple[Any, ...]:
        if g is not None or f is None:
            return self.coerce(aval, parts, f, g)
        return (reduce_sum.bind(parts[0], axes=(f,)),)  # every element used the one value

    def spread(self, aval: Aval, parts: tuple[Any, ...], g: int) -> tuple[Any, ...]:
        """Give the whole cotangent to the first element, and zero to the others."""
        number = iota_.bind(shape=(self.size,), axis=0, dtype=np.dtype(np.int32))
        first = eq.bind(number, Literal(0, number.aval))
        x = self.move(parts[0], None, g)
        there = broadcast_in_dim.bind(first, shape=x.aval.shape, dims=(g,))
        return (select.bind(there, x, Literal(0, x.aval)),)

    def part_axes(self, aval: Aval, form: int) -> tuple[Any, ...]:
        return (tuple([i + (i >= form) for i in range(aval.ndim)]),)

    def grow(self, form: int, axis: int, aval: Aval | None = None) -> int:
        return form + (axis <= form)

    def drop(self, form: int, axis: int, aval: Aval | None = None) -> int:
        return form - (axis < form)

    def cut(self, form: int, axis: int, aval: Aval | None = None) -> int:
        return form

    def concerns(self, axes: frozenset[Any]) -> bool:
        return self.axis_name is not None and self.axis_name in axes

    def hidden_by(self, axes: frozenset[Any]) -> "Batch":
        if not self.concerns(axes):
            return self
        values = (self.size, None, self.spmd_axis_name)
        return type(self)(self.parent, *values, ambient=self.ambient, of=self.of)

    def move(self, x: Any, f: int | None, g: int) -> Any:
        """Move the mapped axis from `f` to `g`; if `f` is None, broadcast along a new one."""
        if f == g:
            return x
        if f is None:
            shape = (*x.aval.shape[:g], self.size, *x.aval.shape[g:])
            if x.__class__ is Literal:
                return Literal(x.value, x.aval.with_shape(shape))
            dims = tuple([i + (i >= g) for i in range(x.aval.ndim)])
            return broadcast_in_dim.bind(x, shape=shape, dims=dims)
        return with_axis_at(x, f, g)

    def front(self, x: Value, dim: int | None) -> Any:
        """Move the mapped axis to the front."""
        return self.move(x, dim, 0)

    def of_elements(self, x: Value, dim: int | None, fill: float) -> tuple[Any, int | None]:
        """Return a value and the position of its mapped axis, with `fill` for missing elements.

        An operation that reads across the mapped axis, or acts for each element, calls it first.
        """
        return x, dim

    def each(
        self,
        prim: Primitive,
        xs: Sequence[Any],
        dims: Sequence[Any],
        params: dict[str, Any],
        where: Value | None = None,
    ) -> tuple[Any, ...]:
        """Apply the operation to one element after the other.

        This serves operations that must not run for all elements at once.  With `where`,
        bool[size], it is applied to these elements only, and the results of others are zeros."""
        avals = [row(x.aval, d) for x, d in zip(xs, dims)]
        name = prim.name.rpartition(".")[2]
        program = staged(lambda *vs: as_list(prim.bind(*vs, **params)), avals, name)
        n = len(program.outputs)
        where = self.present if where is None else where
        if where is not None:
            program, xs, dims = _selected(program, name), [where, *xs], [0, *dims]
        outs = map_axes.bind(
            *xs,
            program=program,
            in_axes=tuple(dims),
            out_axes=(0,) * n,
            size=self.size,
            parallel=False,
        )
        return (outs, [0] * n) if prim.many else (outs[0], 0)

    def wrap(self, out: Array, dim: int | None) -> Any:
        """Return the lifted value of a stack whose mapped axis is at `dim`."""
        if dim is None:
            return out
        key = out.aval, dim, self.size
        aval = _inner.get(key)
        if aval is None:
            s = out.aval.shape
            if not 0 <= dim < len(s) or s[dim] != self.size:
                raise AxisError(
                    f"a batching rule says that axis {dim} of {out.aval!r} is the mapped one, of "
                    f"size {self.size}",
                    fix="mend the rule: it returns (out, dim)",
                )
            aval = without_axis(out.aval, dim)
            if not is_symbolic(s):
                _inner[key] = aval
        return self.lift(aval, dim, (out,))

    def run(self, prim: Any, rule: Any, args: Sequence[Array], params: dict[str, Any]) -> Any:
        xs = []
        dims = []
        for a in args:
            d, p = self.split(a)
            xs.append(p[0])
            dims.append(d)
        out, dim = rule(self, xs, dims, **params)
        if prim.many:
            return [self.wrap(o, d) for o, d in zip(out, dim, strict=True)]
        return self.wrap(out, dim)


def _selected(act: Program, name: str) -> Any:
    """Return a program that runs `act` if its first operand is true, and else returns zeros."""
    skip = staged(lambda *vs: [Literal(0, o) for o in act.out_avals], act.in_avals, "skip")

    def one(selected: Value, *vs: Value) -> list:
        return cond.bind(convert(selected, INT32), *vs, branches=(skip, act))

    return staged(one, [Aval((), BOOL), *act.in_avals], name)


# ---- axes around the mapped one ------------------------------------------------------------


def skip(axes: Sequence[int], d: int) -> tuple[int, ...]:
    """Convert axes of the user's value to axes of the stack."""
    return tuple([a + (a >= d) for a in axes])


def insert(items: Sequence[Any], d: int, item: Any) -> tuple[Any, ...]:
    """Insert the mapped axis' item at `d` into items per axis of the user's value."""
    return (*items[:d], item, *items[d:])
