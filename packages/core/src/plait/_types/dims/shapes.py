"""Shapes with symbolic dimensions: broadcasting, products, equality.

Invariant: for shapes of ints only, these functions agree with numpy, and use no symbolic code.
"""

from collections.abc import Iterable, Sequence
from math import prod

from ..._base.errors import DimMismatch
from .expression import Dim
from .questions import decide_eq, require_eq, undecided_eq

Shape = tuple["Dim | int", ...]


def is_symbolic(shape: "Iterable[Dim | int]") -> bool:
    """Return whether a size of the shape is not a number."""
    for d in shape:
        if d.__class__ is Dim:
            return True
    return False


def product(shape: "Iterable[Dim | int]") -> "Dim | int":
    """Return the number of elements of an array of this shape; 1 for ()."""
    return prod(shape)  # type: ignore[arg-type, return-value]


def same_dims(a: "Sequence[Dim | int]", b: "Sequence[Dim | int]") -> bool:
    """Return whether two shapes are equal, always or never.

    `a == b` of tuples is faster, and compares only how they are written.

    Raises:
      UndecidedDim: the answer is unknown.
    """
    if len(a) != len(b):
        return False
    answers = [x == y or decide_eq(x, y) for x, y in zip(a, b)]
    if False in answers:
        return False
    return all(known or require_eq(x, y) for known, x, y in zip(answers, a, b))


def broadcast_dims(shapes: "Sequence[Shape]") -> Shape:
    """Return the shape of arrays of these shapes broadcast together, as numpy does: equal sizes, or
    1.

    Raises:
      DimMismatch: sizes that are never equal.
      UndecidedDim: sizes that may or may not be equal.

    Example:
      >>> b, = symbolic_dims("b")
      >>> broadcast_dims([(b, 1), (1, 3), (3,)])
      (b, 3)
    """
    first = shapes[0] if shapes else ()
    if all(s == first for s in shapes):
        return tuple(first)
    rank = max(map(len, shapes))
    out: list[Dim | int] = [1] * rank
    for shape in shapes:
        for i, d in enumerate(shape, rank - len(shape)):
            if d.__class__ is int and d == 1:
                continue
            if out[i] != d:
                out[i] = _broadcast(out[i], d, shapes)
    return tuple(out)


def _to_broadcast(shapes: "Sequence[Shape]") -> str:
    """Return what to write for shapes that do not broadcast."""
    rule = "sizes of an axis must be equal, or 1"
    big, small = sorted(shapes, key=len, reverse=True)[:2]
    if len(shapes) == 2 and 0 < len(small) < len(big) and small == big[: len(small)]:
        nones = ", None" * (len(big) - len(small))
        return (
            f"{rule}: write y[...{nones}] for the array of shape {small}, whose axes are the first"
        )
    return rule


def _broadcast(a: "Dim | int", b: "Dim | int", shapes: "Sequence[Shape]") -> "Dim | int":
    """Return the size of an axis with two sizes that are not written alike."""
    if a == 1:
        return b
    if b == 1:
        return a
    equal = decide_eq(a, b)
    if equal:
        return b if b.__class__ is int else a
    text = " and ".join(map(str, shapes))
    if equal is False:
        raise DimMismatch(
            f"shapes {text} do not broadcast: an axis has sizes {a} and {b}",
            fix=_to_broadcast(shapes),
        )
    raise undecided_eq(a, b, about=f"do shapes {text} broadcast: ")
