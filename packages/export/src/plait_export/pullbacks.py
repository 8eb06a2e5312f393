"""Artifacts as differentiable functions, by saved derivatives or by reading the module back.

Invariant: a saved derivative is used if there is one; custom rules that a module does not hold are
dropped only with the user's permission.
"""

from collections.abc import Callable, Sequence
from typing import Any

import plait
from plait.ext.ops.control_flow import call

from .artifact import Exported


def by_reading(artifact: Exported) -> Callable[..., list[Any]]:
    """Return the function of flat values as one call of the program that was read back."""

    def apply(*xs: Any) -> list:
        return call.bind(*xs, program=artifact.read_for([x.aval for x in xs]))

    apply.__name__ = artifact.fun_name
    return apply


def with_pullback(artifact: Exported, apply: Callable[..., list[Any]]) -> Any:
    """Return `apply` with the saved derivative as its custom rule."""

    def pullback(xs: Sequence[Any], cts: Sequence[Any]) -> tuple:
        return artifact.vjp().call(*xs, *cts)

    function = plait.custom_vjp(apply)
    function.defvjp(lambda *xs: (apply(*xs), xs), pullback)
    return function


def without_rules(artifact: Exported, apply: Callable[..., list[Any]]) -> Any:
    """Return `apply` with a rule that refuses differentiation if that would lose custom rules."""
    function = plait.custom_jvp(apply)

    @function.defjvp
    def _(xs: Sequence[Any], ts: Any) -> Any:
        artifact.expect_rules("differentiated")
        return plait.jvp(apply, xs, ts)

    return function
