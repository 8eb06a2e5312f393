"""Rewriting of Programs on opaque elements to Programs on their memory.

An opaque array of shape S, whose elements are arrays of shape T, is an array of shape S + T: a
lifted value with one component, whose first axes are those of the value.  So this is a carrier
like any other.  Core takes it through every operation with programs, and `expand` rules serve
composite primitives; only primitives that move or compare elements themselves need a rule.
The carrier is applied to a whole Program right before lowering.  Hence lowering rules, buffers and
executables need no support for opaque elements, and programs without them are lowered unchanged.

Invariant: a value of opaque type always has the form WORDS here, also if it is a constant or a
literal; the result of `laid_out` contains numbers only.
"""

from collections.abc import Callable, Sequence
from typing import Any

from .._core.array import Array, Literal, laid
from .._core.carrier import Carrier, Lifted, expand_rules
from .._core.interpreter import Value, as_list, enter, leave
from .._core.ir import Program, derived, programs_in
from .._core.lift_higher_order import lift_program
from .._core.primitive import Primitive
from .._plugins.rules import RuleTable
from .._types.avals import OPAQUE, Aval, Placed, no_number

__all__ = ["Physical", "laid_out", "physical_key", "physical_rules"]

WORDS = "words"

physical_rules = RuleTable(
    "physical",
    owns=("core",),
    signature="(tail, xs, **params)",
    doc="the result, a list if the primitive has many: an operation on "
    "what stands for opaque elements; `tail` is the shape of one of them, the last axes of those "
    "`xs` that are opaque.",
)


class Physical(Carrier):
    """Carries the memory of opaque values."""

    rules = physical_rules
    does = "lowering"

    def part_avals(self, aval: Aval, form: str) -> tuple[Aval, ...]:
        return (aval.physical,)

    def lose(self, prim: Primitive, params: dict[str, Any]) -> None:
        """Do not warn: no transformation follows that could use the rule."""

    def whole(self, aval: Aval) -> Any:
        return WORDS if aval.category == OPAQUE else None

    def form_of(self, x: Any) -> Any:
        return WORDS if x.aval.category == OPAQUE else None

    def split(self, x: Any) -> tuple[Any, tuple[Any, ...]]:
        if x.__class__ is Lifted and x.by is self:
            return WORDS, x.parts
        return self.form_of(x), (_memory(x),)

    def apply(self, prim: Primitive, args: Sequence[Value], params: dict[str, Any]) -> Any:
        if prim.higher is not None:
            if any(map(self.form_of, args)) or any(map(speaks, programs_in(params))):
                return self.through(prim, args, params)
            return self.parent.apply(prim, args, params)  # type: ignore[union-attr]
        avals = [a.aval for a in args]
        results = as_list(prim.infer(tuple(avals), params))
        dtype = next((a.dtype for a in [*avals, *results] if a.category == OPAQUE), None)
        if dtype is None:
            return self.parent.apply(prim, args, params)  # type: ignore[union-attr]
        rule, say = self.rules.find(prim), expand_rules.find(prim)
        if rule is None and say is not None:
            return self._said(say, prim, args, params)
        if rule is None:
            if prim.opaque:
                raise self.rules.missing(prim)
            raise no_number(prim.name, next(a for a in [*avals, *results] if a.dtype is dtype))
        token = enter(self.parent)  # type: ignore[arg-type]
        try:
            outs = rule(dtype.shape, [self.split(a)[1][0] for a in args], **params)
        finally:
            leave(token)
        wrapped = [self._lifted(o, t) for o, t in zip(as_list(outs), results, strict=True)]
        return wrapped if prim.many else wrapped[0]

    def _said(
        self,
        say: Callable[..., Any],
        prim: Primitive,
        args: Sequence[Value],
        params: dict[str, Any],
    ) -> Any:
        token = enter(self)
        try:
            out = say(*args, **params)
        finally:
            leave(token)
        return as_list(out) if prim.many else out

    def _lifted(self, x: Value, aval: Aval) -> Any:
        return self.lift(aval, WORDS, (x,)) if aval.category == OPAQUE else x


def _memory(x: Any) -> Any:
    """Return the memory of a value that has no component here; numbers are returned unchanged."""
    if x.aval.category != OPAQUE:
        return x
    if x.__class__ is Array:
        return laid(x)
    if x.__class__ is Literal:
        return Literal(x.value, x.aval.physical)
    raise no_number("lowering", x.aval)


def speaks(program: Program) -> bool:
    """Return whether a program, or a program inside it, has opaque elements."""
    return derived(program, "opaque", lambda: _speaks(program))


def _speaks(p: Program) -> bool:
    if _any([*p.inputs, *p.outputs, *(v for v, _ in p.consts)]):
        return True
    for e in p.eqns:
        if _any(e.outputs) or e.prim.higher is not None and any(map(speaks, programs_in(e.params))):
            return True
    return False


def _any(values: Sequence[Any]) -> bool:
    for v in values:
        if v.aval.category == OPAQUE:
            return True
    return False


def laid_out(program: Program) -> Program:
    """Return the program on the memory of opaque elements; the same program if it has none.

    The types of inputs and outputs become `aval.physical`; their number and order stay.
    """
    if not speaks(program):
        return program
    carrier = Physical(None)
    forms = tuple([carrier.whole(a) for a in program.in_avals])
    outs = tuple([carrier.whole(a) for a in program.out_avals])
    return lift_program(carrier, program, forms, outs)[0]


def physical_key(key: Aval | Placed) -> Any:
    """Return the dispatch key of the memory of an array with this key."""
    aval = key.aval.physical
    return aval if key.placement is None else Placed(aval, key.placement)
