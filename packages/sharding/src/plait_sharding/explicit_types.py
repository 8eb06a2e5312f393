"""Types over explicit axes: the division of an operation's results.

A rule of the table `explicit` gives it, for a primitive or for a trait; for operations without a
rule it follows from their expansion (`expand`).  A package may give rules for its own primitives
under its namespace (entry-point group `plait.rules.explicit`).

Invariant: every divided axis of a result is divided evenly, and a mesh axis divides at most one
axis.  If the division does not follow from the operands, an error shows their specs; nothing is
guessed.
"""

from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from plait.ext.errors import AxisError, TypeRule
from plait.ext.ir import Primitive
from plait.ext.rules import RuleTable, expand_rules
from plait.ext.trace import as_list, staged
from plait.ext.types import Aval

from .mesh import Mesh, Names, PartitionSpec

if TYPE_CHECKING:
    from .named_shardings import NamedSharding

__all__ = [
    "Entries", "ShardingTypeError", "divided_results", "entries_of", "explicit_rules", "joined",
]  # fmt: skip

Entries = tuple[Names, ...]
"""For each axis of an array, the explicit axes of a mesh that it is divided over."""

explicit_rules = RuleTable(
    "explicit",
    signature="(avals, outs, **params)",
    doc="for the result, of type `outs`, the names of the mesh axes that each of its axes is "
    "divided over, a tuple of tuples; for many results, whose types `outs` are, a list of them. "
    "`entries_of` says it of an operand.",
)


class ShardingTypeError(TypeRule, AxisError):
    """An operation whose operands' types have divisions that do not fit together."""


def entries_of(aval: Aval) -> Entries:
    """Return the names that each axis of an operand is divided over."""
    return ((),) * aval.ndim if aval.division is None else aval.division.entries(aval.ndim)


def spec_said(entries: Iterable[Names]) -> str:
    """Return entries as the text of a PartitionSpec."""
    said = [
        repr(names) if len(names) > 1 else repr(names[0]) if names else "None" for names in entries
    ]
    return f"P({', '.join(said)})"


def unclear(what: str, avals: Sequence[Aval], why: str) -> ShardingTypeError:
    """Return the error for operands divided in a way that an operation does not admit."""
    specs = " and ".join([spec_said(entries_of(a)) for a in avals])
    return ShardingTypeError(
        f"{what} of operands divided by {specs}: {why}",
        fix="bring an operand where it fits, by plait.sharding.reshard(x, P(...)); or say how the "
        "result shall lie: out_sharding=P(...) where the function takes it, else "
        "plait.sharding.auto_axes(f, out_sharding=P(...))",
    )


def joined(
    prim: Primitive | str, avals: Sequence[Aval], given: Sequence[Entries] | None = None
) -> Entries:
    """Return the merged entries of operands of one shape; a division wins over none.

    Raises ShardingTypeError if an axis is divided in different ways.
    """
    every = [entries_of(a) for a in avals] if given is None else given
    out: list[Names] = []
    for axis, names in enumerate(zip(*every, strict=True)):
        divided = list(dict.fromkeys([n for n in names if n]))
        if len(divided) > 1:
            first, second = map(said_over, divided[:2])
            raise unclear(
                name_of(prim), avals, f"axis {axis} is divided over {first} and over {second}"
            )
        out.append(divided[0] if divided else ())
    return tuple(out)


def whole_along(prim: Any, avals: Sequence[Aval], axes: Iterable[int]) -> Entries:
    """Return the merged entries of operands of one shape that must be whole along these axes.

    Raises ShardingTypeError if they are divided along one of them.
    """
    entries = joined(prim, avals)
    for axis in axes:
        if entries[axis]:
            raise unclear(
                name_of(prim),
                avals,
                f"it goes along axis {axis}, which is divided over {said_over(entries[axis])}",
            )
    return entries


def name_of(prim: Any) -> str:
    """Return the name of an operation for messages."""
    return prim if prim.__class__ is str else prim.name.rpartition(".")[2]


def said_over(names: Names) -> str:
    """Return names of axes as words."""
    return " and ".join(map(repr, names))


_being_said: ContextVar[tuple[Any, ...]] = ContextVar("plait_sharding.being_said", default=())
"""Operations and operand types whose expansion is being staged.  The expansion may need the type of
the operation's own result; its division is then unknown, and the type is used without one."""


# ---- for one operation ---------------------------------------------------------------------


def divided_results(
    prim: Any, avals: Sequence[Aval], params: dict[str, Any], outs: Aval | list[Aval]
) -> Any:
    """Return the types `outs` of results with their divisions over explicit axes."""
    types = as_list(outs)
    call = prim, tuple(avals)
    if call in _being_said.get():
        return outs
    mesh = _one_mesh(prim, avals)
    rule = explicit_rules.find(prim)
    if rule is not None:
        try:
            found = rule(avals, outs, **params)
        except TypeError as e:
            raise explicit_rules.misapplied(prim, rule, e) or e from None
        if found is None:  # the rule leaves the results' types without a division
            return outs
        every = found if prim.many else [found]
    else:
        every = _said_otherwise(prim, avals, params, types)
    typed = [_checked(prim, avals, mesh, o, e) for o, e in zip(types, every, strict=True)]
    return typed if prim.many else typed[0]


def _one_mesh(prim: Primitive, avals: Sequence[Aval]) -> Any:
    """Return the sharding whose mesh the results get; all operands must be on one mesh."""
    found: Any = None
    for a in avals:
        sharding: Any = a.division
        if sharding is None:
            continue
        if found is not None and found.mesh.untyped != sharding.mesh.untyped:
            raise ShardingTypeError(
                f"{name_of(prim)} of operands on two meshes, {found.mesh!r} of the devices "
                f"{list(found.mesh.ids)} and {sharding.mesh!r} of {list(sharding.mesh.ids)}",
                fix="bring one of them to the other's, by plait.device_put(x, sharding)",
            )
        # Within auto_axes a type may have fewer explicit axes; the results then have as few.
        fewer = found is None or len(sharding.mesh.explicit_axes) < len(found.mesh.explicit_axes)
        found = sharding if fewer else found
    return found


def _said_otherwise(
    prim: Primitive, avals: Sequence[Aval], params: dict[str, Any], types: Sequence[Aval]
) -> list[Entries]:
    """Return the entries of results, from the expansion of an operation."""
    if not any(any(entries_of(a)) for a in avals):
        return [((),) * o.ndim for o in types]
    say = expand_rules.find(prim)
    if say is None:
        raise ShardingTypeError(
            f"{prim} has no rule of the table 'explicit', which says how its results are divided, "
            f"and an operand is divided: {', '.join(map(repr, avals))}",
            fix="bring the operands together, by plait.sharding.reshard(x, P()); or say how the "
            "result shall lie: plait.sharding.auto_axes(f, out_sharding=P(...)); or register a "
            f"rule: @explicit_rules.rule({name_of(prim)})",
        )
    token = _being_said.set((*_being_said.get(), (prim, tuple(avals))))
    try:
        program = staged(lambda *xs: as_list(say(*xs, **params)), avals, name_of(prim))
    finally:
        _being_said.reset(token)
    return [entries_of(a) for a in program.out_avals]


def _checked(
    prim: Primitive, avals: Sequence[Aval], sharding: "NamedSharding", out: Aval, entries: Entries
) -> Aval:
    """Return the type of a result with its entries, after checking them."""
    mesh: Mesh = sharding.mesh
    said = mesh.explicit_axes
    entries = tuple([tuple([n for n in names if n in said]) for names in entries])
    used = [n for names in entries for n in names]
    twice = [n for i, n in enumerate(used) if n in used[:i]]
    if twice:
        raise unclear(
            name_of(prim),
            avals,
            f"the result would be divided over {twice[0]!r} twice, by {spec_said(entries)}",
        )
    for axis, (n, names) in enumerate(zip(out.shape, entries, strict=True)):
        k = mesh.product(names)
        if k != 1 and n % k != 0:
            raise unclear(
                name_of(prim),
                avals,
                f"axis {axis} of the result, of shape {out.shape}, cannot be divided in {k} "
                f"equal pieces, over {said_over(names)} of {mesh!r}",
            )
    return out.with_sharding(sharding.update(mesh=mesh, spec=PartitionSpec(*entries)))
