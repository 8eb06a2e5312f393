"""Forward mode: values become duals, (value, tangent).

Invariant: a plain value is a dual whose tangent is the symbolic ZERO; only values that can vary
have tangents.  A tangent has the type of its value, and is checked where it is made.  The carrier
mechanism handles loops, branches and calls.
"""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from plait.ext.errors import ArgumentError, OperandTypeError, here
from plait.ext.ir import Var
from plait.ext.ops.collective import varied
from plait.ext.rules import RuleTable
from plait.ext.trace import Carrier, Lifted, Tracer, Value, lie_as
from plait.ext.types import Aval
from plait.ext.values import Array, Literal
from plait.typing import Array as AnyArray

__all__ = ["DUAL", "JVP", "ZERO", "Zero", "instantiate", "jvp_rules"]

jvp_rules = RuleTable(
    "jvp",
    signature="(primals, tangents, **params)",
    programs="(jvp, args, params)",
    doc="(out, tangent), lists if the primitive has many; a tangent may be ZERO; duals of an "
    "operation with programs.",
)
DUAL = "dual"


class Zero:
    """The tangent of a value that does not vary."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ZERO"


ZERO = Zero()


def instantiate(t: "Value | Zero", x: Value) -> Any:
    """Return a tangent of `x` as a value."""
    return Literal(0, x.aval.tangent_type) if t is ZERO else t


class JVP(Carrier):
    """Carries the derivative along one direction."""

    rules = jvp_rules
    does = "jvp"
    heeds = MappingProxyType({"derivative": "differentiated"})
    fixed_boxes = False
    noting: tuple[Any, ...] | None = None
    """A cache of `recorders`; None before the first use."""

    def part_avals(self, aval: Aval, form: str) -> tuple[Aval, ...]:
        return aval, aval.tangent_type

    def coerce(self, aval: Aval, parts: tuple[Any, ...], f: object, g: str) -> tuple[Any, ...]:
        return parts[0], Literal(0, aval.tangent_type)

    def dual(self, x: Any, t: Any, where: Any = None) -> Any:
        """Return the value with its tangent; a plain value if it does not vary."""
        if t is ZERO or not x.aval.varies:
            return x
        if t.aval is not x.aval and not t.aval.same_type(x.aval.tangent_type):
            raise OperandTypeError(
                f"a tangent of type {t.aval!r} was given for a value of type {x.aval!r}",
                fix="a tangent has the shape and dtype of the value it belongs to",
            )
        if t.aval.vma is not x.aval.vma:
            # Reverse mode depends on the types of tangents.  If the value differs between
            # devices, its cotangent exists on each of them, also if the tangent is the same.
            t = varied(t, x.aval.vma)
        if t.aval.division is not x.aval.division:
            t = lie_as(t, x.aval.division)
        d = Lifted()
        d.by = self
        d.aval = x.aval
        d.form = DUAL
        d.parts = (x, t)
        d.where = x.where if x.__class__ is Var else where or here()
        return d

    def halves(self, args: Any) -> tuple[list[Any], list[Any]]:
        """Return (values, tangents) of operands; ZERO for plain ones."""
        xs = []
        ts = []
        for a in args:
            if a.__class__ is Lifted and a.by is self:
                x, t = a.parts
                xs.append(x)
                ts.append(t)
            else:
                xs.append(a)
                ts.append(ZERO)
        return xs, ts

    def duals(self, outs: Any, dots: list[Any]) -> list[Any]:
        """Return results with their tangents."""
        return [self.dual(o, d) for o, d in zip(outs, dots, strict=True)]

    def run(self, prim: Any, rule: Any, args: Sequence[AnyArray], params: dict[str, Any]) -> Any:
        xs, ts = self.halves(args)
        noting = self.noting
        if noting is None:
            noting = self.noting = self.recorders
        where = here()  # once for the whole rule: the lookup is a good part of an operation's cost
        for p in noting:
            if p.where is None:
                p.where = where
        try:
            out, dot = rule(xs, ts, **params)
        finally:
            for p in noting:
                if p.where is where:
                    p.where = None
        if prim.many:
            return self.duals(out, dot)
        if out.__class__ is list:
            raise ArgumentError(
                f"the 'jvp' rule of {prim} returned a list, and {prim} has one result",
                fix="return (out, tangent)",
            )
        return self.dual(out, dot, where)

    def concrete(self, x: Tracer) -> Any:
        """Return the value of a dual: branching on a dual is branching on its value."""
        value: Array | Tracer = x.parts[0]  # type: ignore[attr-defined]
        return value.concrete()
