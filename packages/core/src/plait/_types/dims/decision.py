"""Decisions about polynomials of sizes: always, never, or unknown.

A question is first tried at sample sizes: two samples that disagree settle that it depends.
Otherwise bounds are tried.  Sums of maxima are compared as maxima of sums.  Then the opposite is
refuted by elimination, with one case for each argument of a maximum and the definition of every
floor division as rows.  Last, each size is split into its residues, which makes floor divisions by
numbers exact.

Invariant: True and False are proven for all sizes that the constraints admit and at which the
question is defined.  Work is bounded by counts, never by time, so that answers are the same
everywhere.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from math import lcm
from random import Random
from typing import Any

from . import polynomial as poly
from .canonical import PLAIN
from .elimination import contradictory
from .polynomial import ONE, Atom, Monomial, Terms

_MOST_REMEMBERED = 4096
_MOST_CASES = 32
_MOST_ALTERNATIVES = 64
_MOST_RESIDUES = 64
_MOST_SAMPLES = 16
_MOST_TRIES = 3000

Sizes = dict[str, int]

_UNASKED: Any = object()


class Prover:
    """A prover for sizes that are integers, each at least its lower bound, under constraints.

    Args:
      lower: the lower bound of each name; names not there are at least `least`.
      rows: polynomials that are at least 0.
      equations: polynomials that are 0.
    """

    def __init__(
        self,
        lower: Mapping[str, int],
        least: int,
        rows: Sequence[Terms] = (),
        equations: Sequence[Terms] = (),
    ):
        self._lower, self._least = lower, least
        self._rows, self._equations = list(rows), list(equations)
        self._samples: dict[frozenset[str], list[Sizes]] = {}
        self._answers: dict[object, bool | None] = {}

    # Questions

    def at_least_zero(self, p: Terms) -> bool | None:
        """Return True if p >= 0 at all sizes, False if at none, None if neither is known."""
        c = poly.as_constant(p)
        if c is not None:
            return c >= 0
        return self._answer((">=", frozenset(p.items())), lambda: self._decide_sign(p, 0))

    def is_zero(self, p: Terms) -> bool | None:
        """Return True if p = 0 at all sizes, False if at none, None if neither is known."""
        c = poly.as_constant(p)
        if c is not None:
            return c == 0
        return self._answer(("==", frozenset(p.items())), lambda: self._decide_zero(p))

    def consistent(self) -> bool:
        """Return False only if no sizes satisfy the constraints."""
        return not self._never(self._rows, self._equations, 0)

    def lower_bound(self, name: str) -> int:
        """Return the least value that a size may have by its own bound."""
        return self._lower.get(name, self._least)

    def example(self, p: Terms, d: Terms) -> int | None:
        """Return the floor of p / d at some sizes that the constraints admit; None without any."""
        for sizes in self.samples(poly.names(p) | poly.names(d)):
            try:
                return poly.evaluate(p, sizes) // poly.evaluate(d, sizes)
            except ZeroDivisionError:
                continue
        return None

    def _answer(self, key: object, decide: Callable[[], bool | None]) -> bool | None:
        found = self._answers.get(key, _UNASKED)
        if found is _UNASKED:
            if len(self._answers) >= _MOST_REMEMBERED:
                self._answers.clear()
            found = self._answers[key] = decide()
        return found

    # Decisions

    def _decide_sign(self, p: Terms, depth: int) -> bool | None:
        opposite = poly.subtract(poly.scale(p, -1), ONE)
        if self._is_bounded(p):
            return True
        if self._is_bounded(opposite):
            return False
        seen = {n >= 0 for n in self.values(p)}
        if len(seen) == 2:
            return None
        if False not in seen and (self._covered(p) or self._never([opposite], [], depth)):
            return True
        if True not in seen and self._never([p], [], depth):
            return False
        return None

    def _decide_zero(self, p: Terms) -> bool | None:
        seen = {n == 0 for n in self.values(p)}
        if len(seen) == 2:
            return None
        if True not in seen and self._never([], [p], 0):
            return False
        if False in seen:
            return None
        if self._covered(p) and self._covered(poly.scale(p, -1)):
            return True
        over = poly.subtract(p, ONE)
        under = poly.subtract(poly.scale(p, -1), ONE)
        if self._never([over], [], 0) and self._never([under], [], 0):
            return True
        return None

    def _covered(self, p: Terms) -> bool:
        """Return whether p >= 0 because each alternative that it subtracts is at most one that it
        adds.

        Two maxima of sums have a case for each pair of arguments, and these are too many to split.
        """
        added = _alternatives({m: c for m, c in p.items() if c > 0 or not _maximum(m)})
        taken = _alternatives({m: -c for m, c in p.items() if c < 0 and _maximum(m)})
        if not 1 < len(added) * len(taken) <= _MOST_ALTERNATIVES**2:
            return False
        return all(
            any(self._is_bounded(poly.subtract(x, y)) for x in added)
            or any(self.at_least_zero(poly.subtract(x, y)) for x in added)
            for y in taken
        )

    def _never(self, rows: list[Terms], equations: list[Terms], depth: int) -> bool:
        """Return whether no sizes satisfy both these and the constraints."""
        if self._refuted(rows, equations, depth):
            return True
        return depth == 0 and any(
            all(p._refuted(r, e, 1) for p, r, e in cases)
            for cases in self._residues(rows, equations)
        )

    def _refuted(self, rows: list[Terms], equations: list[Terms], depth: int) -> bool:
        rows, equations, seen = self._with_constraints(rows, equations)
        for s in sorted(seen):
            rows += self._axioms(s, depth)
        if contradictory(rows, equations):
            return True
        maxima = [s for s in sorted(seen) if isinstance(s, Atom) and s.op == "max"]
        return self._split(rows, equations, maxima, 1)

    def _split(self, rows: list, equations: list, maxima: list[Atom], cases: int) -> bool:
        """Return whether every choice of the greatest argument of each maximum is contradictory."""
        if not maxima or cases * len(maxima[0].args) > _MOST_CASES:
            return cases > 1 and contradictory(rows, equations)
        first, *rest = maxima
        return all(
            self._split(
                rows + [poly.subtract(x, y) for y in first.args if y is not x],
                [*equations, poly.subtract(poly.symbol(first), x)],
                rest,
                cases * len(first.args),
            )
            for x in first.args
        )

    def _with_constraints(self, rows: list, equations: list) -> tuple[list, list, dict]:
        """Return the rows and equations with the constraints that share a symbol, and all
        symbols."""
        rows, equations, seen = list(rows), list(equations), dict[str, None]()
        for p in rows + equations:
            poly.symbols(p, seen)
        todo = [(p, rows) for p in self._rows] + [(p, equations) for p in self._equations]
        while True:
            near, far = [], []
            for p, to in todo:
                apart = seen.keys().isdisjoint(poly.symbols(p))
                (far if apart else near).append((p, to))
            if not near:
                return rows, equations, seen
            for p, to in near:
                to.append(p)
                poly.symbols(p, seen)
            todo = far

    # Facts about a symbol

    def _axioms(self, s: str, depth: int) -> list[Terms]:
        """Return polynomials that are at least 0 by the definition of a symbol."""
        me = poly.symbol(s)
        if not isinstance(s, Atom):
            return [poly.subtract(me, poly.constant(self.lower_bound(s)))]
        if s.op == "max":
            return [poly.subtract(me, x) for x in s.args]
        e, d = s.args
        if not self._is_positive(d, depth):
            return []
        rest = poly.subtract(e, poly.multiply(d, me))
        rows = [rest, poly.subtract(poly.subtract(d, ONE), rest)]
        if poly.as_constant(d) is None:
            # No linear row expresses that a quotient lies between 0 and e, or between e and -1.
            below = poly.subtract(poly.scale(e, -1), ONE)
            if self._is_bounded(e):
                rows += [me, poly.subtract(e, me)]
            if self._is_bounded(below):
                rows += [poly.subtract(poly.scale(me, -1), ONE), poly.subtract(me, e)]
        return rows

    def _is_positive(self, d: Terms, depth: int) -> bool:
        below = poly.subtract(d, ONE)
        if self._is_bounded(below):
            return True
        return depth < 2 and self._decide_sign(below, depth + 1) is True

    def _is_bounded(self, p: Terms) -> bool:
        """Return whether bounds alone show that p >= 0."""
        low = self._bound(p)
        return low is not None and low >= 0

    def _bound(self, p: Terms) -> int | None:
        """Return a lower bound of p from the lower bounds of its symbols.

        Each symbol is counted from its own bound.  None if a symbol has no bound, or a coefficient
        is negative then.
        """
        lows = {s: self._symbol_bound(s) for m in p for s in m}
        for s, low in lows.items():
            if low is None:
                return None
            if low:
                p = poly.substitute(p, s, {(s,): 1, (): low})
        return p.get((), 0) if all(c > 0 for m, c in p.items() if m) else None

    def _symbol_bound(self, s: str) -> int | None:
        if not isinstance(s, Atom):
            return self.lower_bound(s)
        lows = [self._bound(x) for x in s.args]
        if s.op == "max":
            return max((n for n in lows if n is not None), default=None)
        low, least_divisor = lows
        if low is None or least_divisor is None or least_divisor < 1:
            return None
        d = poly.as_constant(s.args[1])
        if d is not None:
            return low // d
        return 0 if low >= 0 else None

    # Residues: for b = 6*c + r, floordiv(b, 2) and floordiv(b, 3) are polynomials of c

    def _residues(self, rows: list, equations: list) -> Iterator[Iterator]:
        """Yield the question split into one case for each residue of its sizes: a prover, rows and
        equations."""
        rows, equations, seen = self._with_constraints(rows, equations)
        divisors = [
            d for s in seen if isinstance(s, Atom) and s.op == "floordiv"
            if (d := poly.as_constant(s.args[1])) is not None
        ]  # fmt: skip
        sizes = [s for s in sorted(seen) if not isinstance(s, Atom)]
        n = reduce(lcm, divisors, 1)
        if n > 1 and n ** len(sizes) <= _MOST_RESIDUES:
            yield (
                self._residue(dict(zip(sizes, residues)), n, rows, equations)
                for residues in product(range(n), repeat=len(sizes))
            )

    def _residue(
        self, residue: Mapping[str, int], n: int, rows: list, equations: list
    ) -> tuple["Prover", list, list]:
        algebra = PLAIN._replace(variable=lambda s: poly.add({(s,): n}, poly.constant(residue[s])))
        lower = {s: -((r - self.lower_bound(s)) // n) for s, r in residue.items()}
        prover = Prover(lower, self._least)
        try:
            rows = [poly.fold(p, algebra) for p in rows]
            return prover, rows, [poly.fold(p, algebra) for p in equations]
        except ZeroDivisionError:  # the question has no meaning at these sizes
            return prover, [poly.constant(-1)], []

    # Samples

    def values(self, p: Terms) -> list[int]:
        """Return the values of p at the sample sizes, where it is defined."""
        found = []
        for sizes in self.samples(poly.names(p)):
            try:
                found.append(poly.evaluate(p, sizes))
            except ZeroDivisionError:
                continue
        return found

    def samples(self, names: frozenset[str]) -> list[Sizes]:
        """Return a few sizes for these names that the constraints admit, small ones first."""
        if names not in self._samples:
            if len(self._samples) >= _MOST_REMEMBERED:
                self._samples.clear()
            self._samples[names] = self._find_samples(names)
        return self._samples[names]

    def _find_samples(self, names: frozenset[str]) -> list[Sizes]:
        (_, *rows), equations, seen = self._with_constraints([{(s,): 1 for s in names}], [])
        relevant = [s for s in sorted(seen) if not isinstance(s, Atom)]
        if len(relevant) > len(names):
            return self.samples(frozenset(relevant))
        choices = [self._candidates(self.lower_bound(s)) for s in relevant]
        found, few = {}, Random(0)
        for i in range(_MOST_TRIES):
            if i < 3:
                values = tuple(c[i] for c in choices)
            else:
                values = tuple(few.choice(c) for c in choices)
            sizes = dict(zip(relevant, values))
            if values not in found and self._admits(rows, equations, sizes):
                found[values] = sizes
                if len(found) >= _MOST_SAMPLES:
                    break
            if i > 4 * _MOST_SAMPLES and not rows and not equations:
                break
        return list(found.values())

    def _candidates(self, low: int) -> list[int]:
        """Return values to try for a size: small ones, and those near numbers in constraints."""
        turns = {abs(c) for p in self._rows + self._equations for c in _numbers(p)}
        near = {low + n for n in (0, 1, 2, 3, 4, 6, 9, 16, 37)}
        near |= {n + i for n in turns for i in (-1, 0, 1)} | {2 * n for n in turns}
        return sorted(n for n in near if n >= low)

    @staticmethod
    def _admits(rows: list[Terms], equations: list[Terms], sizes: Sizes) -> bool:
        try:
            return all(poly.evaluate(p, sizes) == 0 for p in equations) and all(
                poly.evaluate(p, sizes) >= 0 for p in rows
            )
        except ZeroDivisionError:
            return False


def _maximum(m: Monomial) -> Atom | None:
    """Return the maximum that a monomial is alone; None if it is another one."""
    s = m[0] if len(m) == 1 else ""
    return s if isinstance(s, Atom) and s.op == "max" else None


def _alternatives(p: Terms) -> list[Terms]:
    """Return polynomials whose maximum is p, with its added maxima expanded; [p] if they are too
    many."""
    found = [{m: c for m, c in p.items() if c < 0 or not _maximum(m)}]
    for m, c in p.items():
        if c > 0 and (largest := _maximum(m)):
            args = [poly.scale(y, c) for x in largest.args for y in _alternatives(x)]
            if len(args) * len(found) > _MOST_ALTERNATIVES:
                return [p]
            found = [poly.add(x, y) for x in found for y in args]
    return list({frozenset(x.items()): x for x in found}.values())


def _numbers(p: Terms) -> Iterator[int]:
    """Yield the numbers in a polynomial and its atoms."""
    yield from p.values()
    for m in p:
        for s in m:
            if isinstance(s, Atom):
                for x in s.args:
                    yield from _numbers(x)
