"""The cotangents that a reverse pass collects, of one value each.

In a program that runs on several devices, a type lists the mesh axes along which a value may
differ (`Aval.vma`).  A value that is the same on all devices may be an operand of an operation
whose result differs.  It then has a cotangent on each device, and its own cotangent is their sum.
This module makes the sum, so no rule has to.  Conversely, a cotangent that is the same everywhere
is made to vary as its value does.

Invariant: a cotangent has the type of its value, which is checked when it is added; it is moved to
the sharding of the value.  Three or more cotangents of narrow floats are summed in float32.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from plait.ext.errors import OperandTypeError, PlaitError
from plait.ext.ir import Eqn, Var
from plait.ext.ops.collective import psum_, varied
from plait.ext.ops.elementwise import add
from plait.ext.trace import Value, apart_from, lie_as
from plait.ext.types import is_narrow

from .sums import rounded, widened


class Cotangents:
    """The cotangents of values that a reverse pass has met and not yet taken.

    A cotangent may vary along mesh axes along which its value does not.  Such cotangents are shares
    of the value's cotangent, and are kept apart until they are summed over the devices along these
    axes.
    """

    __slots__ = ("_total", "_shares", "_often")

    def __init__(self) -> None:
        self._total: dict[Any, Any] = {}
        self._shares: dict[Any, dict[frozenset[str], Any]] = {}
        """By value, then by the mesh axes along which only the cotangent varies."""
        self._often: set[Any] = set()
        """Values of narrow floats with two cotangents or more; their sums may be in float32."""

    def add(self, a: Any, ct: Any, by: Any) -> None:
        """Add a cotangent of the value `a`, which the operation `by` gives.

        Raises OperandTypeError if it has another type.
        """
        # Only `linear_transpose` makes cotangents of integers, and these are integers too.
        have, want = ct.aval, a.aval
        if have is not want and not (have.same_type(want) or have.same_type(want.tangent_type)):
            raise OperandTypeError(
                f"a cotangent of type {ct.aval!r} was given for a value of type {a.aval!r}, by "
                f"{by}",
                fix="a cotangent has the shape and dtype of the value it belongs to",
            )
        if ct.aval.division is not a.aval.division:
            ct = lie_as(ct, a.aval.division)
        kept, key = self._total, a
        if ct.aval.vma is not a.aval.vma and (over := ct.aval.vma - a.aval.vma):
            kept, key = self._shares.setdefault(a, {}), over
        have = kept.get(key)
        if have is not None:
            if a in self._often:
                have, ct = widened(have), widened(ct)
            elif is_narrow(ct.aval):
                self._often.add(a)
            ct = add.bind(have, ct)
        kept[key] = ct

    def take(self, a: Value) -> Any:
        """Remove and return the cotangent of `a`, made to vary as `a` does; None is zero."""
        ct = self._total.pop(a, None)
        if self._often:
            ct = self._in_dtype(a, ct)
        if self._shares:
            for over, share in self._shares.pop(a, {}).items():
                whole = sum_over_devices(self._in_dtype(a, share), over)
                ct = whole if ct is None else add.bind(ct, whole)
        return ct if ct is None or ct.aval.vma is a.aval.vma else varied(ct, a.aval.vma)

    def take_results(
        self,
        e: Eqn,
        ins: Sequence[Any],
        is_summed_after: Callable[[Eqn, Sequence[Any], bool], bool],
    ) -> Sequence[Any]:
        """Remove the cotangents of an equation's results; return what to call its rule with, once
        each.

        There is one call if a cotangent is not zero; or one for each share of a cotangent, if
        `is_summed_after(e, ins, is_one)` allows to sum over devices after the rule.
        """
        o = e.outputs[0]
        if not e.prim.many:
            if o in self._shares and is_summed_after(e, ins, self._is_one(o)):
                return self._take_shares(o)
            if self._shares or self._often or o.aval.vma:
                ct = self.take(o)
            else:  # the common case, one device and wide floats
                ct = self._total.pop(o, None)
            return () if ct is None else (ct,)
        cts = [self.take(o) for o in e.outputs]
        return (cts,) if any(ct is not None for ct in cts) else ()

    def _is_one(self, a: Value) -> bool:
        """Return whether the only cotangent of `a` is still to be summed over devices."""
        return a not in self._total and len(self._shares[a]) == 1

    def _take_shares(self, a: Value) -> list[Any]:
        """Remove and return the cotangents of `a` that are not summed over devices."""
        found = [*self._shares.pop(a).values()]
        if a in self._total:
            found.append(self._total.pop(a))
        return [self._in_dtype(a, ct) for ct in found]

    def take_all(self, later: Collection[Any]) -> dict[Var, Any]:
        """Remove and return all cotangents by their values; those of values in `later` need not be
        summed over devices."""
        for a in [*self._shares]:
            self._total[a] = (
                self._take_shares(a)[0] if a in later and self._is_one(a) else self.take(a)
            )
        for a in self._often & self._total.keys():
            self._total[a] = self._in_dtype(a, self._total[a])
        return self._total

    def _in_dtype(self, a: Value, ct: Value) -> Any:
        """Return a sum of cotangents of `a` in the dtype of `a`."""
        narrow = ct is not None and a in self._often
        return rounded([ct], [a.aval.tangent_type])[0] if narrow else ct


def sum_over_devices(ct: Value, axes: Collection[str]) -> Any:
    """Return the sum of a cotangent over the devices along these axes of a mesh.

    Raises PlaitError if some device along them does not take part.
    """
    if not axes:
        return ct
    alone = sorted(apart_from(None) & frozenset(axes))
    if alone:
        raise PlaitError(
            f"a derivative, by a value that all devices along {alone} share, is taken in a branch "
            "or loop that not all of them are in: the sum over them would wait for ever",
            fix="pass the value to cond as an operand, or carry it in the loop; or let it vary "
            f"before: plait.lax.pcast(x, {alone[0] if len(alone) == 1 else tuple(alone)!r}, "
            "to='varying')",
        )
    return psum_.bind(ct, axes=tuple(sorted(axes)))
