"""Lowering of JAX's primitives, by traced functions or by rules that write MLIR themselves.

Invariant: the rule registered last is used; a rule for a platform is used only if programs are
lowered for that platform here.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from plait.ext import Aval, lower_rules
from plait.ext.devices import platform as default_platform
from plait.ext.lower import Emitter, type_of
from plait.ext.trace import as_list, staged

from .primitives import Primitive, expand_with, free
from .requests import missing

__all__ = ["LoweringRuleContext", "aval_to_ir_type", "lower_fun", "register_lowering"]


class LoweringRuleContext(NamedTuple):
    """The context of a rule: primitive, types of operands and results, and the emitter."""

    primitive: Any
    avals_in: Sequence[Aval]
    avals_out: Sequence[Aval]
    emitter: Emitter


class Traced:
    """A function of arrays as a lowering rule."""

    def __init__(self, fun: Callable[..., Any], multiple_results: bool):
        self.fun, self.multiple_results = fun, multiple_results

    def __call__(self, ctx: LoweringRuleContext, /, *xs: Any, **params: object) -> list[Any]:
        """Emit the function's operations, inside of another rule."""
        program = staged(
            lambda *vs: (
                as_list(self.fun(*vs, **params))
                if not self.multiple_results
                else list(self.fun(*vs, **params))
            ),
            ctx.avals_in,
            "lower_fun",
        )
        return ctx.emitter.program(program, xs)


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Traced:
    """Return a lowering rule that expresses a primitive by the primitives of a function."""
    return Traced(fun, multiple_results)


def register_lowering(
    prim: Any, rule: Any, platform: str | None = None, inline: bool = True, **options: Any
) -> Any:
    """Register a lowering rule of a primitive: `lower_fun(f)`, or `rule(ctx, *values, **params)`.

    The latter makes MLIR with jaxlib's bindings.  Raises MissingName for Plait's own primitives,
    which have rules already.
    """
    if not isinstance(prim, Primitive):
        raise missing("jax.interpreters.mlir.register_lowering", f"{prim} is Plait's own primitive")
    if platform is not None and platform != default_platform():
        return rule
    if isinstance(rule, Traced):
        expand_with(prim, rule.fun)
        return rule

    def lower(e: Emitter, xs: Any, ins: Any, outs: Any, /, **params: Any) -> Any:
        ctx = LoweringRuleContext(prim, ins, outs, e)
        with e.ip, e.where:  # type: ignore[union-attr]
            got = rule(ctx, *xs, **free(params))
        values = [v for x in got for v in (x if isinstance(x, list | tuple) else [x])]
        return values if prim.multiple_results else values[0]

    prim.once_made(lambda: lower_rules.rule(prim.operation, override=True)(lower) and None)
    return rule


def aval_to_ir_type(aval: Aval) -> Any:
    """Return the MLIR type of values of a type."""
    return type_of(aval)
