"""The table of rules: for each operation of StableHLO, how it is said with those of TensorFlow.

    @graphs("stablehlo.add")
    def _(walk, op, xs):        # xs: tensors
        return tf.add(*xs)      # a tensor, or a list of them if the operation has many results

Rules broadcast where the operation is one of elements: regions, functions of elements, are applied
to arrays of them.

Invariant: an operation has one rule, or is refused by name with what is to be done instead.
"""

from collections.abc import Callable

GRAPHS: dict[str, Callable] = {}
"""By name of the operation: rule(walk, op, xs) -> tensor, or list of tensors."""

REFUSED: dict[str, str] = {}
"""By name of an operation that has no words in TensorFlow: why."""

OF_ELEMENTS: set[str] = {"stablehlo.constant", "func.call"}
"""Operations of one element at a time, which regions may be made of."""


def graphs(*names: str, elements: bool = False) -> Callable[[Callable], Callable]:
    """A rule for operations; `elements`: of one element at a time."""

    def register(rule: Callable) -> Callable:
        for name in names:
            assert name not in GRAPHS, name
            GRAPHS[name] = rule
            if elements:
                OF_ELEMENTS.add(name)
        return rule

    return register


def refuses(why: str, *names: str) -> None:
    """Operations that are refused."""
    REFUSED.update(dict.fromkeys(names, why))
