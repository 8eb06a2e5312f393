"""Cumulative operations along rows, restarted at the first row of each example.

Invariant: no value, not even a nan, passes from one example's rows to the next.  Sums are never
differences of sums over all rows, which would lose digits.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import plait.numpy as pnp
from plait import lax
from plait.ext.ir import Primitive
from plait.ext.lower import IrValue
from plait.ext.ops.cumulative import accumulated, cumprod_, law_of, recurrence
from plait.ext.ops.shape import convert
from plait.ext.rules import expand_rules, lower_rules
from plait.ext.trace import Value, staged
from plait.ext.types import COMPLEX, Aval
from plait.typing import Array

from ..interpreter import with_axis_at
from .layouts import along
from .row_access import chosen, filled

if TYPE_CHECKING:
    from plait.ext.lower import Emitter

__all__ = ["segmented"]


def _segmented(new: Aval, *xs: Aval, of: Primitive, axis: int, reverse: bool) -> Aval:
    """Apply the cumulative operation `of` along `axis`, restarted at each row where `new`,
    bool[rows], is true."""
    return of.infer(xs, {"axis": axis, "reverse": reverse})


segmented = Primitive("piles.segmented", _segmented)


@lower_rules.rule(segmented)
def _(
    e: "Emitter",
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    of: Primitive,
    axis: int,
    reverse: bool,
):
    # Core does the same: row after row on CPUs, elsewhere as a tree.
    say = _row_after_row if e.unit.platforms == ("cpu",) else _tree
    told = partial(say, of=of, axis=axis, reverse=reverse)
    return e.program(staged(lambda *vs: [told(*vs)], ins), xs)[0]


@expand_rules.rule(segmented)
def _(new, *xs, of: Primitive, axis: int, reverse: bool):
    return _row_after_row(new, *xs, of=of, axis=axis, reverse=reverse)


def _row_after_row(new: Value, *xs: Value, of: Primitive, axis: int, reverse: bool) -> Any:
    law, aval = law_of(of), xs[0].aval
    wide = accumulated(aval).dtype
    rows = [with_axis_at(x, axis, 0) for x in xs]
    start = filled(law.start(wide), Aval(rows[0].aval.shape[1:], wide))

    def turn(carry: Value, row: tuple[Value, ...]) -> tuple:
        begins, *elements = row
        elements = [convert(x, wide) for x in elements]
        y = law.step(chosen(begins, (), start, carry), *elements)
        if of is cumprod_ and aval.category == COMPLEX:  # 1 times an infinite one has nan parts
            y = chosen(begins, (), elements[0], y)
        return y, convert(y, aval.dtype)

    _, out = lax.scan(turn, start, (new, *rows), reverse=reverse)
    return with_axis_at(out, 0, axis)


def _tree(new: Value, *xs: Value, of: Primitive, axis: int, reverse: bool) -> Any:
    law, aval = law_of(of), xs[0].aval
    wide = accumulated(aval).dtype
    turned = (lambda v: pnp.flip(v, axis)) if reverse else (lambda v: v)
    flags = pnp.broadcast_to(along(new, axis, aval.ndim), aval.shape)
    vs = [convert(x, wide) for x in xs]
    if of is recurrence:  # restart from zero; an infinite factor times zero must give nan
        first = pnp.where(flags, vs[0] * 0 + vs[1], vs[1])
        vs = [vs[0], first]

    def join(p: Sequence[Array], q: Sequence[Array]) -> tuple:
        (f, *us), (g, *ws) = p, q
        joined = law.join(us, ws)
        return f | g, *[pnp.where(g, w, j) for w, j in zip(ws, joined, strict=True)]

    out = lax.associative_scan(join, tuple(map(turned, (flags, *vs))), axis=axis)[-1]
    return convert(turned(out), aval.dtype)
