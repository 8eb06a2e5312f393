"""Values that may be known by type only, and partial evaluation of functions on such values
(`jax.interpreters.partial_eval`), by `plait_autodiff.ext.partial_trace`.

Invariant: only the table of JAX's names loads this module.
"""

from collections.abc import Sequence
from typing import Any

from plait.ext import Aval
from plait_autodiff.ext import PartialVal as Value
from plait_autodiff.ext import partial_trace

from .flat_functions import WrappedFun
from .jaxprs import Jaxpr

__all__ = ["PartialVal", "trace_to_jaxpr_nounits"]


class PartialVal(tuple[Any, Any]):
    """A pair: (None, known value), or (type of an unknown value, None)."""

    __slots__ = ()

    @classmethod
    def known(cls, const: Any) -> "PartialVal":
        """Return a known value."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: Aval) -> "PartialVal":
        """Return an unknown value of a type."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Return whether there is a value."""
        return self[0] is None

    def get_known(self) -> Any:
        """Return the value; None if it is not known."""
        return self[1]

    def get_aval(self) -> Aval:
        """Return the type."""
        return Value.known(self[1]).get_aval() if self[0] is None else self[0]


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Run a flat function on known values, and stage the rest.

    Returns (jaxpr, results, constants).  The jaxpr's constants are residuals, its inputs the
    unknown arguments, its outputs the unknown results.
    """
    given = [Value.known(p[1]) if p[0] is None else Value.unknown(p[0]) for p in pvals]
    program, outs, residuals = partial_trace(fun.call_wrapped, given, instantiate)
    n = len(residuals)
    made = Jaxpr.of(program)
    made = Jaxpr(program.inputs[:n], program.inputs[n:], made.outvars, made.eqns, made.effects)
    found = [
        PartialVal.known(o.get_known()) if o.is_known() else PartialVal.unknown(o.get_aval())
        for o in outs
    ]
    return made, found, residuals
