"""What is reduced over devices, element by element.

Invariant: rows of one device meet those of the same example on others.  That takes types that say
that all devices have the same sizes; where none do, nothing is reduced.
"""

from typing import Any

from plait.ext.ops.collective import pmax_, pmin_, psum_
from plait.ext.sizes import Dim

from ..carrier import Ragged, pile_rules


def _each(prim: Any) -> None:
    @pile_rules.rule(prim)
    def _(r: Ragged, args, out, *, axes, groups=()):
        (x,) = args
        lengths = [r.lengths(d).aval.vma for d in x.aval.shape if d.__class__ is Dim]
        over = frozenset(axes)
        # a value varies along no axis where types do not say it: then lengths may be others, too
        if not over <= x.aval.vma or any(over & v for v in lengths):
            return None
        how = r.like(args, out)
        return r.result(out, prim.bind(r.data(x, how), axes=axes, groups=groups), how)


for _prim in (psum_, pmax_, pmin_):
    _each(_prim)
