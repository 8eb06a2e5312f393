"""The derivative and transpose rules of JAX's primitives, for Plait's tables.

Invariant: only the tables of plait_autodiff load this module.
"""

from typing import Any

from plait.ext import Aval, as_value
from plait.ext.trace import as_list
from plait_autodiff.ext import ZERO, is_linear, jvp_rules, transpose_rules

from .primitives import (
    Primitive,
    UndefinedPrimal,
    Zero,
    free,
    primitive_jvps,
    primitive_transposes,
    tell,
)


def _give(prim: Primitive) -> None:
    """Register rules in both tables that look up the registries when they run."""

    def jvp(xs: Any, ts: Any, /, **params: object) -> tuple[Any, Any]:
        rule = primitive_jvps.get(prim)
        if rule is None:
            raise jvp_rules.missing(prim.operation)
        given = [Zero(x.aval.tangent_type) if t is ZERO else t for x, t in zip(xs, ts)]
        out, dot = rule(list(xs), given, **free(params))
        if prim.multiple_results:
            return list(map(as_value, out)), list(map(_tangent, dot))
        return as_value(out), _tangent(dot)

    def transpose(ct: Any, /, *xs: Any, **params: object) -> list[Any]:
        rule = primitive_transposes.get(prim)
        if rule is None:
            raise transpose_rules.missing(prim.operation)
        args = [UndefinedPrimal(x.aval) if is_linear(x) else x for x in xs]
        outs: list[Aval] = as_list(prim.operation.infer(tuple([x.aval for x in xs]), params))
        cts = [Zero(a) if c is None else c for c, a in zip(as_list(ct), outs)]
        got = rule(cts if prim.multiple_results else cts[0], *args, **free(params))
        if got is Zero or got is None:
            got = [None] * len(xs)
        return [None if c is None or isinstance(c, Zero) else as_value(c) for c in got]

    jvp_rules.rule(prim.operation)(jvp)
    transpose_rules.rule(prim.operation)(transpose)


def _tangent(t: Any) -> Any:
    """Return a tangent in the form that Plait's rules use."""
    return ZERO if t is None or t is Zero or isinstance(t, Zero) else as_value(t)


tell(_give)
