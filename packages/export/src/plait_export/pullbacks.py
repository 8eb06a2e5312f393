"""An artifact as a function with derivatives: with those that were saved, or by reading it back.

Invariant: a derivative that was saved is used; rules that a module does not hold are never dropped
without leave.
"""

from collections.abc import Callable, Sequence
from typing import Any

import plait
from plait.ext.ops.control_flow import call

from .artifact import Exported


def by_reading(artifact: Exported) -> Callable[..., list]:
    """The function of flat values, as one operation with the program that was read back."""

    def apply(*xs: Any) -> list:
        return call.bind(*xs, program=artifact.read_for([x.aval for x in xs]))

    apply.__name__ = artifact.fun_name
    return apply


def with_pullback(artifact: Exported, apply: Callable[..., list]) -> Any:
    """A way to do it, with the derivative that was saved as its own."""

    def pullback(xs: Sequence[Any], cts: Sequence[Any]) -> tuple:
        return artifact.vjp().call(*xs, *cts)

    function = plait.custom_vjp(apply)
    function.defvjp(lambda *xs: (apply(*xs), xs), pullback)
    return function


def without_rules(artifact: Exported, apply: Callable[..., list]) -> Any:
    """A way to do it that refuses to be differentiated, if rules would be lost by that."""
    function = plait.custom_jvp(apply)

    @function.defjvp
    def _(xs: Any, ts: Any) -> Any:
        artifact.expect_rules("differentiated")
        return plait.jvp(apply, xs, ts)

    return function
