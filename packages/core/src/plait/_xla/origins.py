"""Origins of values: the operations that a value may come from, as the compiler sees it.

The compiler drops selections of equal values, products with 1, moves of elements, and whatever it
computes itself.  So a value may turn out to come from several operations.

Invariant: a mark holds every kind of operation that an equal value could be made by.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple


class Mark(NamedTuple):
    """The operations that may have made a value, once the compiler has simplified those between.

    Attributes:
      kinds: these operations: "number" alone for a constant, "late" beside others for a value that
        may turn out to be one.
      number: the constant operation that it is, or was made with.
      spread: whether one element may stand in many places.
    """

    kinds: frozenset[str]
    number: Any = None
    spread: bool = False

    @property
    def written(self) -> bool:
        """True if the value is a constant now."""
        return self.kinds == NUMBER


class Kind(NamedTuple):
    """The category of an element type ("f", "c", "i" of signed integers, "b", else ""), and its
    number of bits if it is an integer."""

    category: str
    bits: int


NUMBER = frozenset(["number"])
CONSTANT = frozenset(["number", "late", "unknown"])
UNKNOWN = Mark(frozenset(["unknown"]))
ANYTHING = Mark(frozenset(["unknown"]), None, True)
"""The mark of an argument that may be any value, also one whose elements are equal."""
NOTHING = Mark(frozenset())

LATE, MASK, PRODUCT, SCALED, QUOTIENT, SHIFTED, SUM, EXPONENTIAL, JOINED, CUT = (
    frozenset([k])
    for k in (
        *("late", "mask", "product", "scaled", "divide", "shifted", "sum", "exponential"),
        *("joined", "cut"),  # values beside constants, and elements of such
    )
)
CONVERTED = CONSTANT | MASK
POWERS = frozenset(["power", "product", "divide", "sqrt", "rsqrt"])
MASKS = {"mask", "unknown"}
DIVIDED = {"divide", "mask", "composed", "unknown"}
DIVISORS = {"divide", "power", "sqrt", "rsqrt", "exponential", "composed", "unknown"}
FACTORS = {"scaled", "sqrt", "rsqrt", "mask", "composed", "unknown"}
BESIDE_FACTORS = {"number", "late", *FACTORS}
SUMS = {"sum", "shifted", "unknown"}
TERMS = {"shifted", "unknown"}
NEVER_NEGATIVE = {"product", "scaled", "abs", "chosen", "power", "sqrt", "rsqrt", "exponential",
                   "composed", "unknown"}  # fmt: skip
UNDONE = {"product", "scaled", "divide", "power", "sqrt", "rsqrt", "exponential", "composed",
          "unknown"}  # fmt: skip


def kind_of(t: Any) -> Kind:
    """Return the kind of the elements of a type."""
    text = str(t.element_type) if hasattr(t, "element_type") else ""
    if text.startswith("complex"):
        return Kind("c", 0)
    if text[:1] == "f" or text == "bf16":
        return Kind("f", 0)
    if text == "i1":
        return Kind("b", 1)
    signed = text[:1] == "i" and text[1:].isdigit()
    return Kind("i", int(text[1:])) if signed else Kind("", 0)


def value_of(m: Mark) -> float | None:
    """Return the number that fills a constant; None if there are several or it is complex."""
    if m.number is None:
        return None
    try:  # the bindings have no attribute for some types of elements
        value = m.number.attributes["value"]
        return float(value.get_splat_value().value) if value.is_splat else None
    except (AttributeError, TypeError, ValueError, OverflowError):
        return None


def any_of(marks: Sequence[Mark]) -> Mark:
    """Return the mark of a value that is one of several; it is a constant if each is."""
    spread = any(m.spread for m in marks)
    if all(m.written for m in marks):
        return Mark(NUMBER, None, spread)
    kinds = frozenset(k for m in marks for k in m.kinds)
    if kinds & NUMBER:
        kinds = kinds - NUMBER | LATE
    numbers = {m.number for m in marks if m.kinds}
    return Mark(kinds, numbers.pop() if len(numbers) == 1 else None, spread)


def same_scale(a: Mark, b: Mark) -> bool:
    """Return whether the compiler might turn x c + y c into (x + y) c, which may be infinite; it
    does so for powers of 2."""
    if not (a.kinds & SCALED and b.kinds & SCALED):
        return False
    value = value_of(a)
    return (
        value is None
        or value_of(b) is None
        or (value == value_of(b) and abs(math.frexp(value)[0]) == 0.5)
    )
