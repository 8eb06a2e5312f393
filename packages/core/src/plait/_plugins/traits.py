"""The closed vocabulary of traits.

Invariant: a trait is a promise about every primitive that has it, strong enough to derive a rule
from; the conformance kit checks the promise.
"""


class Trait:
    """A property that many primitives share, and for which one rule can be given."""

    __slots__ = ("name", "namespace", "promise")
    name: str
    namespace: str
    promise: str

    def __init__(self, name: str, promise: str):
        self.name, self.namespace, self.promise = name, name.rpartition(".")[0], promise

    def __repr__(self) -> str:
        return self.name


Elementwise = Trait("core.elementwise", "result[i] depends on the operands at i only.")
Linear = Trait("core.linear", "linear in all operands together.")
ZeroPreserving = Trait("core.zero_preserving", "zero wherever the first operand is zero.")
Increasing = Trait("core.increasing", "not decreasing in any operand.")
Decreasing = Trait("core.decreasing", "not increasing in any operand.")
Structural = Trait("core.structural", "moves elements and never computes with them.")
Reduction = Trait("core.reduction", "has a parameter `axes`, which it drops.")
Cumulative = Trait("core.cumulative", "has parameters `axis` and `reverse`; keeps the shape.")
Indexing = Trait("core.indexing", "reads or writes elements at places given by operands.")
Collective = Trait("core.collective", "speaks of a named axis bound somewhere outside.")
Discrete = Trait("core.discrete", "piecewise constant: its derivative is zero where it exists.")
AnyElement = Trait("core.any_element", "takes elements that are not numbers, too.")

ALL = tuple(t for t in list(globals().values()) if isinstance(t, Trait))
