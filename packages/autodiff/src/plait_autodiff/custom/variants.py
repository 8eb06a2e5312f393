"""Variants of a custom rule, one for each pattern of inputs that are symbolic zeros.

Invariant: a rule made for one pattern of symbolic zeros is never used for another.
"""

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

from plait.ext.errors import OperandTypeError
from plait.ext.ir import Thunk, evaluate
from plait.ext.trace import Deferred, Ends, lift_rule
from plait.ext.types import Aval

Present = tuple[bool, ...]
"""For each of the last inputs of a rule: True if it is given, False if it is a symbolic zero.  ()
means that all are given."""


class Variants:
    """A rule that is made for each pattern of symbolic zeros, when first needed.

    `on(key)` makes it; the last item of the key marks the last inputs that are `Present`.
    """

    symbolic = True
    __slots__ = ("make", "made", "lifted", "name", "__weakref__")

    def __init__(self, make: Callable[[tuple[Any, ...]], Thunk], name: str = "f"):
        self.make, self.name = make, name
        self.made: dict[tuple[Any, ...], Thunk] = {}
        # Weakly, since those hold this one: they live for as long as programs hold them.
        self.lifted: WeakValueDictionary[Any, Variants] = WeakValueDictionary()

    def __repr__(self) -> str:
        return "<rule>"

    def on(self, key: tuple[Any, ...]) -> Thunk:
        """Return the rule for one pattern."""
        hit = self.made.get(key)
        if hit is None:
            hit = self.made[key] = self.make(key)
        return hit

    def given(self, *first: tuple[Any, ...]) -> "Variants":
        """Return the variants whose keys begin with these items."""
        hit = self.lifted.get(first)
        if hit is None:
            hit = self.lifted[first] = Variants(lambda key: self.on((*first, *key)), self.name)
        return hit

    def lift(self, carrier: Any, ends: Ends, forms: list[Any], before: Any) -> "Variants":
        """Return the rule on the components of a transformation."""
        slots = (*ends.inputs, *ends.outputs)
        at = tuple([s if s is ... else forms[s] for s in slots])
        ambient = tuple([v.aval for v in carrier.ambient])
        key = carrier.key(), ambient, at, len(ends.inputs), before if ... in ends.inputs else None
        hit = self.lifted.get(key)
        if hit is None:
            hollow, kept = carrier.under(None, carrier.ambient), list(forms)

            def make(pattern: tuple) -> Thunk:
                inputs = present_of(ends.inputs, pattern[-1])
                new = ends._replace(rule=self.on(pattern), inputs=inputs)
                first = before.on((*pattern[:-1], ())) if ... in ends.inputs else None
                return lift_rule(hollow, new, kept, first)

            hit = self.lifted[key] = Variants(make, self.name)
        return hit


def present_of(xs: Sequence[Any], present: Present) -> tuple[Any, ...]:
    """Return the inputs that are given; the pattern is about the last ones."""
    n = len(xs) - len(present)
    return (*xs[:n], *(x for x, there in zip(xs[n:], present) if there))


def run(
    f: "Deferred | Thunk | Variants", args: Sequence[Any], key: tuple[Any, ...] | None = None
) -> list[Any]:
    """Run a rule, in Python if it is not staged yet, else as a program.

    A symbolic rule needs `key`.
    """
    if isinstance(f, Deferred):
        return f.f(*(key or ()), *args)
    if isinstance(f, Variants):
        assert key is not None
        f = f.on(key)
    return evaluate(f.get() if isinstance(f, Thunk) else f, args)


def as_function(who: str, want: Sequence[Aval], got: Sequence[Aval]) -> None:
    """Check that a rule first returns results like those of its function; raise TypeRule if not."""
    if len(want) != len(got) or not all(w.same_type(g) for w, g in zip(want, got)):
        raise OperandTypeError(
            f"{who} returned results of types {list(got)}, where the function itself returns "
            f"{list(want)}",
            fix="return what the function returns, of the same structure, shapes and dtypes",
        )
