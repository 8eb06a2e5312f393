"""Named: the carrier that rewrites operations along a logical axis to its parts.

It lifts no values: all forms are None.  It sees every operation along one of its axes, whatever
the operands.  It applies the operation along mesh axes and lanes instead, which the surrounding
shard_map and vmap bind.  Core takes it through operations with programs, like every carrier.

Invariant: the first part of an axis varies slowest; rules never pass a logical name to the parent.
"""

from collections.abc import Callable, Sequence
from typing import Any

from plait import lax
from plait.ext.errors import AxisError
from plait.ext.ir import Primitive
from plait.ext.ops import collective
from plait.ext.rules import RuleTable
from plait.ext.trace import Carrier, Interpreter, Value, current, open_under, use
from plait.ext.types import Aval

from .logical_axes import Lane

__all__ = ["Named", "naming_rules"]

naming_rules = RuleTable(
    "naming",
    signature="(named, *args, **params)",
    doc="results, of the parent: what an operation along a logical axis of `named`, a `Named`, is "
    "along the parts of the axis.",
)

Parts = tuple[tuple[Any, int], ...]
"""Name and size of each part of an axis, the first slowest."""


class Named(Carrier):
    """A carrier that replaces logical axes by their parts.

    Args:
      parent: the interpreter around it, under the maps that bind the parts.
      axes: the name and the parts of each logical axis.
    """

    rules, does, fields = naming_rules, "xmap", ("axes",)
    commutes = frozenset(("derivative", "mapping"))
    axes: tuple[tuple[str, Parts], ...]

    def __init__(
        self,
        parent: Interpreter | None,
        axes: tuple[tuple[str, Parts], ...],
        ambient: tuple[Any, ...] = (),
        of: Callable[..., Any] | None = None,
    ):
        super().__init__(parent, axes, ambient=ambient, of=of)
        self.parts = dict(axes)

    def concerns(self, axes: frozenset[Any]) -> bool:
        return not axes.isdisjoint(self.parts)

    def hidden_by(self, axes: frozenset[Any]) -> "Named":
        rest = tuple([(n, parts) for n, parts in self.axes if n not in axes])
        return self if len(rest) == len(self.axes) else Named(self.parent, rest, of=self.of)

    def whole(self, aval: Aval) -> None:
        return None

    def part_avals(self, aval: Aval, form: object) -> tuple[Aval, ...]:
        return (aval,)

    def coerce(self, aval: Aval, parts: tuple[Any, ...], f: object, g: object) -> tuple[Any, ...]:
        return parts

    def run(self, prim: Primitive, rule: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        with use(_Bound(self, current())):
            return rule(self, *args, **params)

    def names(self, name: str) -> tuple[Any, ...]:
        """Return the names of the parts of a logical axis; other names are returned unchanged."""
        return tuple([part for part, _ in self.parts[name]]) if name in self.parts else (name,)

    def one(self, name: str, groups: tuple[Any, ...]) -> Any:
        """Return the only part of an axis, which `groups` needs; AxisError if it has several."""
        only, *more = self.names(name)
        if more:
            raise AxisError(
                f"xmap: axis_index_groups {groups} are of positions along {name!r}, which is laid "
                "out on several axes of the mesh, or on devices and lanes",
                fix=f"lay {name!r} out on one axis of the mesh of its own size, or on none",
            )
        return only


class _Bound(Interpreter):
    """An interpreter that adds the sizes of parts; its parent applies all operations.

    The carrier may be applied to a program on its own, where no surrounding map binds the parts.
    """

    does = "xmap"

    def __init__(self, named: Named, parent: Interpreter):
        open_under(self, parent)
        self.sizes = {n: k for parts in named.parts.values() for n, k in parts}  # type: ignore[misc]

    def joins(self, name: str) -> str | None:
        return None if isinstance(name, Lane) else "mesh"

    def apply(self, prim: Any, args: Sequence[Value], params: dict[str, Any]) -> Any:
        assert self.parent is not None
        return self.parent.apply(prim, args, params)


# ---- collectives ---------------------------------------------------------------------------------


def _reduction(prim: Primitive) -> None:
    @naming_rules.rule(prim)
    def _(named: Named, x: Value, *, axes: tuple[str, ...], groups: tuple = ()) -> Any:
        if groups:
            return prim.bind(x, axes=(named.one(axes[0], groups),), groups=groups)
        return prim.bind(x, axes=tuple([part for n in axes for part in named.names(n)]))


for _prim in (collective.psum_, collective.pmax_, collective.pmin_):
    _reduction(_prim)


@naming_rules.rule(collective.axis_index_)
def _(named, *, name):
    return lax.axis_index(named.names(name))


@naming_rules.rule(collective.all_gather_)
def _(named, x, *, name, axis, size, groups=()):
    if groups:
        return collective.all_gather_.bind(
            x, name=named.one(name, groups), axis=axis, size=size, groups=groups
        )
    return lax.all_gather(x, named.names(name), axis=axis, tiled=True)


@naming_rules.rule(collective.psum_scatter_)
def _(named, x, *, name, axis, size, groups=()):
    if groups:
        return collective.psum_scatter_.bind(
            x, name=named.one(name, groups), axis=axis, size=size, groups=groups
        )
    return lax.psum_scatter(x, named.names(name), scatter_dimension=axis, tiled=True)


@naming_rules.rule(collective.all_to_all_)
def _(named, x, *, name, split, concat, size: int, groups=()):
    if groups:
        one = named.one(name, groups)
        return collective.all_to_all_.bind(
            x, name=one, split=split, concat=concat, size=size, groups=groups
        )
    return lax.all_to_all(x, named.names(name), split, concat, tiled=True)


@naming_rules.rule(collective.ppermute_)
def _(named, x, *, name, perm, size: object):
    return lax.ppermute(x, named.names(name), perm)
