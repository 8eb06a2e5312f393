"""Mapping rules of custom_vmap functions on the components of lifted values.

A rule takes stacks.  A stack of lifted values has the form that `grow` gives for a new first axis,
so a carrier lifts the rule as it lifts any function.  Components enter and leave with the mapped
axis in front, and this module moves that axis to and from its place within each component.

Invariant: in a lifted rule either all components of a result are stacks, or none.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from plait.ext.errors import MissingRule
from plait.ext.ir import Program, evaluate
from plait.ext.ops.shape import broadcast_in_dim
from plait.ext.trace import Value, staged
from plait.ext.types import Aval

from .interpreter import with_axis_at

if TYPE_CHECKING:
    from .overrides import Stacked

Flags = tuple[bool, ...]


def on_components(
    rule: "Stacked", carrier: Any, given: Sequence[Any], wanted: Sequence[Any]
) -> Any:
    """Return the mapping rule for components.

    Args:
      rule: the mapping rule, a `Stacked`.
      carrier: the transformation.
      given, wanted: the forms of single operands and results, as the function has them.
    """
    parts = [carrier.parts_of(a, f) for a, f in zip(rule.in_avals, given, strict=True)]
    ambient = [v.aval for v in carrier.ambient]

    def at(size: int, flags: Flags) -> tuple[Program, Flags]:
        own = _by_slot(flags[len(ambient) :], parts)
        program, out_flags = rule.at(size, tuple(map(any, own)))
        ins = _stacked_forms(carrier, program.in_avals, given, map(any, own))
        outs = _stacked_forms(carrier, program.out_avals, wanted, out_flags)
        lifted = carrier.lift_program(program, ins, outs, of_rule=True)[0]
        places = [
            _places(carrier, a, f) if any(fs) else (None,) * len(fs)
            for a, f, fs in zip(program.in_avals, ins, own, strict=True)
        ]
        ends = [
            _places(carrier, a, f) if flag else (None,) * len(carrier.parts_of(a, f))
            for a, f, flag in zip(program.out_avals, outs, out_flags, strict=True)
        ]

        def stacks(*vs: Any) -> list[Any]:
            xs = iter(vs[len(ambient) :])
            moved = [
                _placed(carrier, next(xs), p, f, size)
                for ps, fs in zip(places, own, strict=True)
                for p, f in zip(ps, fs, strict=True)
            ]
            ys = evaluate(lifted, [*vs[: len(ambient)], *moved])
            at = [p for ps in ends for p in ps]
            return [y if p is None else with_axis_at(y, p, 0) for y, p in zip(ys, at, strict=True)]

        one = [p.aval for ps in parts for p in ps]
        types = [
            a.with_shape((size, *a.shape)) if f else a
            for a, f in zip([*ambient, *one], flags, strict=True)
        ]
        return staged(stacks, types, program.name), tuple([p is not None for e in ends for p in e])

    return type(rule)(at, [*ambient, *[p.aval for ps in parts for p in ps]], rule.user)


def _by_slot(flags: Flags, parts: Sequence[tuple[Any, ...]]) -> list[Flags]:
    """Return the flags of the components of each operand."""
    rest = iter(flags)
    return [tuple([next(rest) for _ in ps]) for ps in parts]


def _stacked_forms(
    carrier: Any, avals: list[Aval], forms: Sequence[str], flags: Any
) -> tuple[Any, ...]:
    return tuple(
        [
            carrier.grow(f, 0, a) if flag and f is not None else f
            for a, f, flag in zip(avals, forms, flags, strict=True)
        ]
    )


def _places(carrier: Any, aval: Aval, form: str) -> tuple[int | None, ...]:
    """Return the position of the mapped axis, the first of the value, in each component."""
    return tuple([p.at[0] for p in carrier.parts_of(aval, form)])


def _placed(carrier: Any, x: Value, place: int | None, is_stack: bool, size: int) -> Any:
    """Return a component of a stack, with the mapped axis at `place`."""
    if place is None:
        if not is_stack:
            return x
        raise MissingRule(
            f"{carrier.does}: a component of a mapped value differs between examples, and the form "
            "of a stack has one component for all of them",
            fix=f"mend {type(carrier).__name__}.grow and part_axes, which describe stacks",
        )
    if is_stack:
        return with_axis_at(x, 0, place)
    shape = (*x.aval.shape[:place], size, *x.aval.shape[place:])
    dims = tuple([i + (i >= place) for i in range(x.aval.ndim)])
    return broadcast_in_dim.bind(x, shape=shape, dims=dims)
