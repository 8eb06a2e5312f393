"""Reductions of ragged values over devices, element by element.

Invariant: a row is combined with the same row of the same example on other devices.  That needs
types that show equal sizes on all devices; without them the rule does not apply.
"""

from plait.ext.ir import Primitive
from plait.ext.ops.collective import pmax_, pmin_, psum_
from plait.ext.sizes import Dim
from plait.ext.types import Aval

from ..carrier import Ragged, pile_rules


def _each(prim: Primitive) -> None:
    @pile_rules.rule(prim)
    def _(r: Ragged, args, out: Aval, *, axes, groups=()):
        (x,) = args
        lengths = [r.lengths(d).aval.vma for d in x.aval.shape if d.__class__ is Dim]
        over = frozenset(axes)
        # Without device variance in its type, the value may still differ between devices, and so
        # may the lengths.
        if not over <= x.aval.vma or any(over & v for v in lengths):
            return None
        how = r.like(args, out)
        return r.result(out, prim.bind(r.data(x, how), axes=axes, groups=groups), how)


for _prim in (psum_, pmax_, pmin_):
    _each(_prim)
