"""Python callbacks for examples whose sizes differ: each call gets arrays of its own sizes.

All examples go to the host at once, padded, with their lengths.  The host calls the function for
one example after the other.

Invariant: the function is called once per example, in order, with the arguments that the example
alone would have.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.ext.ops.callbacks import exact, host
from plait.ext.ops.checks import check_p
from plait.ext.sizes import Dim
from plait.ext.types import Aval

from ..capacities import PRESENCE, Size
from ..carrier import pile_rules
from ..operation import PADDED, layout

__all__: list[str] = []


@pile_rules.rule(host)
def _(r, args, out, *, f, outs, effect: object, whole: str):
    types = tuple([layout(o, r.caps, PADDED) for o in out])
    if any(t.dims for t in types):
        return None  # capacities that are sizes of an enclosing program are not known here
    xs, own = [], []
    for a in args:
        x, at = (r.data(a, PADDED), 0) if r.axes(a.aval) else r.dense(a)
        own.append(at is not None)
        xs.append(x if at is None else r.front(x, at))
    called = _Each(f, r.table, [a.aval for a in args], own, outs, types)
    got = host.bind(*r.ambient, *xs, f=called, outs=types, effect=effect, whole="")
    return [r.result(o, y, PADDED) for o, y in zip(out, got, strict=True)]


@pile_rules.rule(check_p)
def _(r, args, out: Aval, /, **params: object):
    ok, *payload = [r.data(a, PADDED) for a in args]
    # What lies beyond the end of an example holds; of what is for the message it is cleared.
    ok = r.of_examples(r.masked(ok, args[0].aval, r.axes(args[0].aval), True), 0, True)
    shown = [r.masked(x, a.aval, r.axes(a.aval), 0) for x, a in zip(payload, args[1:], strict=True)]
    check_p.bind(ok, *shown, **params)
    return []


class _Each:
    """Callback that calls `f` for every example, given lengths and padded operands.

    Args:
      f: the function of one example.
      table: the named sizes, in the order of the lengths.
      ins, outs: types of an example's operands and results.
      own: which operands differ between examples.
      types: types of the padded results.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        table: Sequence[Size],
        ins: Sequence[Aval],
        own: Sequence[bool],
        outs: Sequence[Aval],
        types: Sequence[Aval],
    ):
        self.f, self.table, self.ins, self.own = f, table, ins, own
        self.outs, self.types = outs, types

    def __call__(self, *given: np.ndarray) -> tuple:
        lengths, xs = given[: len(self.table)], given[len(self.table) :]
        padded = [np.zeros(t.shape, t.dtype) for t in self.types]
        for b in range(len(lengths[0])):
            sizes = {s.name: s.part(int(n[b])) for s, n in zip(self.table, lengths)}
            if not sizes.get(PRESENCE, 1):
                continue
            mine = [
                x[_place(b, _shape(t, sizes))] if own else x
                for x, t, own in zip(xs, self.ins, self.own)
            ]
            types = tuple([t.with_shape(_shape(t, sizes)) for t in self.outs])
            for room, y in zip(padded, exact(self.f, types)(*mine)):
                room[_place(b, y.shape)] = y
        return tuple(padded)


def _shape(t: Aval, sizes: dict[str, int]) -> tuple[int, ...]:
    """Return the shape of an example of these sizes."""
    return tuple([d.substitute(sizes) if d.__class__ is Dim else d for d in t.shape])


def _place(b: int, shape: Sequence[int]) -> tuple:
    """Return the index of an example of this shape among padded ones."""
    return (b, *[slice(0, n) for n in shape])
