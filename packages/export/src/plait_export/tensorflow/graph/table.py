"""The table of rules that map each operation of StableHLO to operations of TensorFlow.

    @graphs("stablehlo.add")
    def _(walk, op, xs):        # xs: tensors
        return tf.add(*xs)      # a tensor, or a list of them if the operation has many results

Rules of elementwise operations broadcast, because regions, which are scalar functions, are applied
to whole arrays.

Invariant: an operation has one rule, or is refused by name with a reason.
"""

from collections.abc import Callable
from typing import Any

GRAPHS: dict[str, Callable[..., Any]] = {}
"""By name of the operation: rule(walk, op, xs) -> tensor, or list of tensors."""

REFUSED: dict[str, str] = {}
"""By name of an operation without a counterpart in TensorFlow: the reason."""

OF_ELEMENTS: set[str] = {"stablehlo.constant", "func.call"}
"""Elementwise operations, which regions may consist of."""


def graphs(*names: str, elements: bool = False) -> Callable[[Callable], Callable]:
    """Register a rule for operations; `elements` marks them as elementwise."""

    def register(rule: Callable) -> Callable:
        for name in names:
            assert name not in GRAPHS, name
            GRAPHS[name] = rule
            if elements:
                OF_ELEMENTS.add(name)
        return rule

    return register


def refuses(why: str, *names: str) -> None:
    """Register operations as refused, with a reason."""
    REFUSED.update(dict.fromkeys(names, why))
