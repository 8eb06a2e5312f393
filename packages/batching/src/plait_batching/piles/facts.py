"""Facts about the rows of examples: a lower bound, and a common divisor.

A pile may declare them.  For known lengths they are found on demand: a question about sizes that
the function asks is answered by the weakest fact that decides it.  So the program depends on what
the function asks and not on the lengths, and batches of other lengths share it.

Invariant: a fact holds for the rows of every example.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from plait.ext.sizes import Dim, Scope, decide_eq, decide_ge, symbolic_dims

from .capacities import Size
from .names import SCOPE, named

__all__ = ["Facts", "advice", "both", "deciding", "in_rows"]

_MOST = 1 << 12
"""Greatest common divisor that is looked for."""

_ANY = np.array([1 << 12, 720720])
"""Lengths with many divisors, for advice about lengths that are not known."""


class Facts(NamedTuple):
    """A lower bound of the rows of every example, and a number that divides them."""

    least: int = 0
    multiple: int = 1


def both(a: Facts, b: Facts) -> Facts:
    """Return the facts that follow from two; the lower bound is a multiple of the divisor."""
    multiple = int(np.lcm(a.multiple, b.multiple))
    return Facts(-(-max(a.least, b.least) // multiple) * multiple, multiple)


def deciding(
    question: tuple[Dim, str], sizes: Sequence[Size], lengths: Mapping[str, np.ndarray]
) -> dict[str, Facts] | None:
    """Return weak facts that hold for these lengths, by name, and decide a question.

    Returns None if none do.

    Args:
      question: a size and its relation to 0; see `question_of`.
      sizes: all named sizes, with the facts that were used so far.
      lengths: the known rows of examples, by name.
    """
    d, relation = question
    mine = [s for s in sizes if s.name in d.variables and lengths.get(s.name, np.zeros(0)).size]

    def decides(found: dict[str, Facts]) -> bool:
        e = d.substitute({s.name: _renamed(s, found[s.name]) for s in mine if s.name in found})
        answer = decide_ge(e, 0) if relation == ">=" else decide_eq(e, 0)
        return answer is not None

    for s in mine:
        for facts in _candidates(s, lengths[s.name]):
            if decides({s.name: facts}):
                return {s.name: _weakened(s, facts, lambda f, s=s: decides({s.name: f}))}
    strongest = {s.name: [*_candidates(s, lengths[s.name])][-1] for s in mine}
    return strongest if len(mine) > 1 and decides(strongest) else None


def _candidates(s: Size, n: np.ndarray) -> Iterator[Facts]:
    """Yield the greatest lower bound; then, for each common divisor, itself and with that bound;
    last, all that is known."""
    least, divisor = int(n.min()), int(np.gcd.reduce(n))
    yield Facts(least // s.multiple * s.multiple, s.multiple)
    for k in range(2 * s.multiple, min(divisor, _MOST) + 1, s.multiple):
        if divisor % k == 0:
            yield both(Facts(s.least, s.multiple), Facts(0, k))
            yield Facts(least // k * k, k)
    yield Facts(least // max(divisor, 1) * max(divisor, 1), max(divisor, 1))


def _weakened(s: Size, facts: Facts, decides: Any) -> Facts:
    """Return the smallest lower bound that decides, with the same divisor."""
    step = facts.multiple
    low, high = -(-s.least // step) - 1, facts.least // step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if decides(Facts(middle * step, step)) else (middle, high)
    return Facts(high * step, step)


def _renamed(s: Size, facts: Facts) -> Any:
    """Return the value of the name in terms of the name that these stronger facts give."""
    return s.part(facts.multiple * named(s.name) + facts.least)


def advice(question: tuple[Dim, str], sizes: Sequence[Size]) -> str | None:
    """Return the arguments of a constructor of piles that would decide a question.

    A fact by which the sizes always differ is left out."""
    d, relation = question
    for n in _ANY:
        found = deciding(question, sizes, {s.name: np.array([n]) for s in sizes})
        if found is not None and len(found) == 1:
            ((name, facts),) = found.items()
            size = next(s for s in sizes if s.name == name)
            if relation == "==" and not decide_eq(d.substitute({name: _renamed(size, facts)}), 0):
                continue
            told = [f"at_least={facts.least}"] * (facts.least > 0)
            told += [f"multiple_of={facts.multiple}"] * (facts.multiple > 1)
            return ", ".join(told)
    return None


def in_rows(d: Dim, sizes: Mapping[str, Size], names: Mapping[str, str]) -> Any:
    """Return a size in terms of the rows of examples, which nothing is known of.

    Args:
      d: a size in terms of the names of `sizes`.
      names: the names for the rows.
    """
    used = {k: s for k, s in sizes.items() if k in d.variables}
    if all((s.least, s.multiple) == (0, 1) for s in used.values()):
        return d.substitute({k: named(names[k]) for k in used})
    known = [f"mod({names[k]}, {s.multiple}) == 0" for k, s in used.items() if s.multiple > 1]
    scope = Scope(known, lower=0)  # where 2*floordiv(n, 2) is n
    own = {v: symbolic_dims(v, scope)[0] for v in d.variables if v not in used}
    for k, s in used.items():
        own[k] = s.part(symbolic_dims(names[k], scope)[0])
    found = d.substitute(own)
    return symbolic_dims(str(found), SCOPE)[0] if found.__class__ is Dim else found
