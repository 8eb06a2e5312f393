"""Questions about sizes, with three answers, and exact division.

Invariant: True and False hold at all sizes that the scope admits; an unknown answer is None, or an
error that shows the question.
"""

import operator
from collections.abc import Iterator
from contextlib import contextmanager

from ..._base.errors import UndecidedDim
from . import polynomial as poly
from .expression import Dim, of_terms, terms_beside
from .scope import open_to


def decide_eq(a: "Dim | int", b: "Dim | int") -> bool | None:
    """Return True if two sizes are always equal, False if never, None if unknown.

    Example:
      >>> b, = symbolic_dims("b")
      >>> decide_eq(2 * b, 2 * b + 1), decide_eq(b * b, b) is None
      (False, True)
    """
    if a.__class__ is int and b.__class__ is int:
        return a == b
    if a is b:
        return True
    dim = a if isinstance(a, Dim) else b
    if not isinstance(dim, Dim):
        return operator.index(a) == operator.index(b)
    return dim.scope.is_zero(poly.subtract(terms_beside(dim, a), terms_beside(dim, b)))


def decide_ge(a: "Dim | int", b: "Dim | int") -> bool | None:
    """Return True if always a >= b, False if never, None if it depends or is unknown.

    Example:
      >>> a, b = symbolic_dims("a, b")
      >>> decide_ge(a * b, a), decide_ge(a, a + b), decide_ge(a, b)
      (True, False, None)
    """
    if a.__class__ is int and b.__class__ is int:
        return a >= b
    dim = a if isinstance(a, Dim) else b
    if not isinstance(dim, Dim):
        return operator.index(a) >= operator.index(b)
    return dim.scope.at_least_zero(poly.subtract(terms_beside(dim, a), terms_beside(dim, b)))


def require_eq(a: "Dim | int", b: "Dim | int") -> bool:
    """Return whether two sizes are equal, always or never; raise UndecidedDim if unknown."""
    answer = decide_eq(a, b)
    if answer is None:
        raise undecided_eq(a, b)
    return answer


def undecided_eq(a: "Dim | int", b: "Dim | int", about: str = "") -> UndecidedDim:
    """Return the error for two sizes, one of them a Dim, whose equality is undecided."""
    dim = a if isinstance(a, Dim) else b
    assert isinstance(dim, Dim)
    difference = poly.subtract(terms_beside(dim, a), terms_beside(dim, b))
    dim.scope.doubted = a, b
    return dim.scope.undecided(f"{a} == {b}", difference, "==", about)


def question_of(error: UndecidedDim) -> "tuple[Dim, str] | None":
    """Return the size that an error is about and its relation to 0, ">=" or "=="; None if the
    error is about no relation."""
    if error.asked is None:
        return None
    terms, relation, scope = error.asked
    return of_terms(terms, scope), relation


@contextmanager
def open_questions() -> "Iterator[dict[tuple[Dim, str], None]]":
    """Collect the questions that stay undecided in a block: sizes and their relation to 0.

    They are there after the block.  Blocks inside of it collect for it, too.

    Example:
      >>> b, = symbolic_dims("b")
      >>> with open_questions() as asked:
      ...     _ = decide_ge(b, 4)
      >>> list(asked)
      [(b - 4, '>=')]
    """
    collected: list = []
    found: dict[tuple[Dim, str], None] = {}
    around = open_to.get()
    token = open_to.set(collected)
    try:
        yield found
    finally:
        open_to.reset(token)
        if around is not None:
            around += collected
        for p, relation, scope in collected:
            d = of_terms(p, scope)
            if isinstance(d, Dim):
                found[d, relation] = None


def divide_exact(d: "Dim | int", k: "Dim | int") -> "Dim | int":
    """Return the quotient d / k of sizes, where k divides d at all sizes.

    Raises:
      UndecidedDim: k does not divide d at all sizes, or that cannot be shown.

    Example:
      >>> b, c = symbolic_dims("b, c", Scope(["mod(b, 8) == 0"]))
      >>> divide_exact(b * c * 3, 4 * c), divide_exact(12, 4)
      (6*floordiv(b, 8), 3)
    """
    if decide_eq(k, 0):
        raise UndecidedDim(f"the size {d} cannot be divided by 0")
    quotient = d // k
    answer = decide_eq(k * quotient, d)
    if answer is True:
        return quotient
    if answer is False:
        raise UndecidedDim(f"{d} is not a multiple of {k}: {k}*n is never {d}")
    dim = d if isinstance(d, Dim) else k
    assert isinstance(dim, Dim)
    rest = poly.subtract(terms_beside(dim, d), terms_beside(dim, k * quotient))
    raise dim.scope.undecided(f"mod({d}, {k}) == 0", rest, "==")
