"""Floor divisions and maxima in canonical form.

Polynomial parts are moved out of atoms.  Thus floordiv(2*b + 9, 4) becomes floordiv(b, 2) + 2, and
max(a + 1, b + 1) becomes max(a, b) + 1.  `mod(e, d)` is written as e - d*floordiv(e, d), and `min`
as a negated maximum of negated arguments.  So d*floordiv(e, d) + mod(e, d) is e, and max(a, b) +
min(a, b) is a + b, by arithmetic alone.  Rounding up by a number is rewritten as rounding down:
floordiv(b + 1, 2) is b - floordiv(b, 2).  A division of a maximum is the maximum of divisions.

Invariant: each result equals its original at all sizes that the judge admits and at which the
original is defined; reading the text of a result gives the same result.
"""

from collections.abc import Callable
from functools import reduce
from itertools import product
from math import gcd
from typing import NamedTuple, Protocol

from . import polynomial as poly
from .polynomial import ONE, Algebra, Atom, Monomial, Terms

_MOST_ARGUMENTS = 8
_MOST_REMEMBERED = 4096


class Judge(Protocol):
    """An object that decides which relations hold for all sizes."""

    def at_least_zero(self, p: Terms) -> bool | None:
        """Return True if p >= 0 at all sizes, False if at none, None if neither is known."""
        ...

    def example(self, p: Terms, d: Terms) -> int | None:
        """Return the floor of p / d at some sizes."""
        ...


class Ignorant:
    """A judge that assumes nothing about sizes, and decides numbers only."""

    def at_least_zero(self, p: Terms) -> bool | None:
        c = poly.as_constant(p)
        return None if c is None else c >= 0

    def example(self, p: Terms, d: Terms) -> int | None:
        return None


class Multiple(NamedTuple):
    """The fact that `whole`, a monomial, is `factor` times the atom `quotient`."""

    quotient: Atom
    factor: int
    whole: Monomial


class Canonical:
    """A factory of the canonical forms that a judge and facts of divisibility allow."""

    def __init__(self, judge: Judge, multiples: tuple[Multiple, ...] = ()):
        self._judge, self._multiples = judge, multiples
        self.has_facts: bool = bool(multiples)
        self._made: dict[object, Terms] = {}

    @property
    def algebra(self) -> Algebra:
        """Its functions; made anew, since an object that held its own methods would be a cycle."""
        return Algebra(
            constant=poly.constant,
            variable=poly.symbol,
            add=poly.add,
            mul=lambda p, q: self.reduced(poly.multiply(p, q)),
            floordiv=self.floordiv,
            mod=self.mod,
            maximum=lambda p, q: self.maximum([p, q]),
            minimum=lambda p, q: self.minimum([p, q]),
        )

    # Facts of divisibility: 8*floordiv(b, 8) is b. Results are written with b, the shorter form
    # (`reduced`). Operations work on the form with floordiv(b, 8) (`expanded`), which is unique.

    def reduced(self, p: Terms) -> Terms:
        """Return p with `whole` in place of `factor` times `quotient`, as far as no sign
        changes."""
        p = self._expanded(p)
        for fact in self._multiples:
            p = _reduce(p, fact)
        return p

    def _expanded(self, p: Terms) -> Terms:
        for quotient, factor, whole in self._multiples:
            todo, p = p, {}
            while todo:
                m, c = next(iter(todo.items()))
                todo = {n: todo[n] for n in todo if n != m}
                rest = poly.without(m, whole)
                if rest is None:
                    p = poly.add(p, {m: c})
                else:
                    todo = poly.add(todo, {poly.join(rest, (quotient,)): c * factor})
        return p

    def _atom(self, op: str, args: list[Terms]) -> Atom:
        return Atom(op, tuple(map(self.reduced, args)))

    def _remember(self, key: object, make: Callable[[], Terms]) -> Terms:
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= _MOST_REMEMBERED:
                self._made.clear()
            found = self._made[key] = self.reduced(make())
        return found

    def _is_positive(self, d: Terms) -> bool:
        return self._judge.at_least_zero(poly.subtract(d, ONE)) is True

    def _is_negative(self, d: Terms) -> bool:
        """Return whether a divisor is always below 0; if its sign is unknown, whether it looks
        so."""
        opposite = poly.scale(d, -1)
        if self._is_positive(d) or self._is_positive(opposite):
            return self._is_positive(opposite)
        return d[poly.leading(d)] < 0

    # Floor division

    def floordiv(self, e: Terms, d: Terms) -> Terms:
        """Return the floor of e / d, wherever d is not 0; ZeroDivisionError if d is always 0."""
        if not d:
            raise ZeroDivisionError("division of a size by 0")
        key = ("floordiv", frozenset(e.items()), frozenset(d.items()))
        return self._remember(key, lambda: self._floordiv(self._expanded(e), self._expanded(d)))

    def mod(self, e: Terms, d: Terms) -> Terms:
        """Return e - d * floordiv(e, d)."""
        return self.reduced(poly.subtract(e, poly.multiply(d, self.floordiv(e, d))))

    def _floordiv(self, e: Terms, d: Terms) -> Terms:
        if self._is_negative(d):
            e, d = poly.scale(e, -1), poly.scale(d, -1)
        quotient, rest = poly.divide(e, d)
        if not rest or (poly.as_constant(d) and poly.as_constant(rest) is not None):
            return quotient
        if distributed := self._distributed(e, d):
            return distributed
        if simpler := self._flattened(e, d):
            return self._floordiv(*map(self._expanded, simpler))
        if simpler := self._cancelled(rest, d) or self._flattened(rest, d):
            return poly.add(quotient, self._floordiv(*map(self._expanded, simpler)))
        known = self._known_quotient(rest, d)
        if known is not None:
            return poly.add(quotient, poly.constant(known))
        if (k := poly.as_constant(d)) is not None:
            # floor(e/k) is -floor((k - 1 - e)/k), and the form with the lesser remainder is used.
            back, other = poly.divide(poly.subtract(poly.constant(k - 1), rest), d)
            if _remainders(other) < _remainders(rest):
                known = self._known_quotient(other, d)
                atom = poly.symbol(self._atom("floordiv", [other, d]))
                other = atom if known is None else poly.constant(known)
                return poly.subtract(quotient, poly.add(back, other))
        return poly.add(quotient, poly.symbol(self._atom("floordiv", [rest, d])))

    def _distributed(self, e: Terms, d: Terms) -> Terms | None:
        """Return a maximum or minimum of divisions if e is one and d a number above 0; else
        None."""
        k = poly.as_constant(d)
        inner = [
            c for m, c in e.items() for s in m if isinstance(s, Atom) and s.op == "max"
        ]  # fmt: skip
        if k is None or k < 1 or len(inner) != 1:
            return None
        sign = 1 if inner[0] > 0 else -1
        whole = self._alternatives(poly.scale(e, sign))
        if len(whole) == 1:
            return None
        each = [self.floordiv(poly.scale(x, sign), d) for x in whole]
        return self._expanded(self.maximum(each) if sign > 0 else self.minimum(each))

    def _cancelled(self, e: Terms, d: Terms) -> tuple[Terms, Terms] | None:
        """Return (e, d) without their common factors; None if they have none."""
        shared = poly.monomial_gcd([*e, *d])
        g = gcd(poly.content(e), poly.content(d), d.get((), 0))
        if e.get((), 0) % g and not self._is_positive(d):
            # A constant may be rounded down inside only if the divisor is positive.
            g = gcd(g, e[()])
        if g == 1 and not shared:
            return None
        return _over(e, shared, g), _over(d, shared, g)

    def _flattened(self, e: Terms, d: Terms) -> tuple[Terms, Terms] | None:
        """Return the numerator and denominator of floordiv(x, n) + s over d as one division, if e
        is such a sum and d > 0; else None.

        They are x + n*s and n*d.  For s - floordiv(x, n), with a number n, they are n*s - x + n - 1
        and n*d.
        """
        facts = {fact.quotient for fact in self._multiples}
        inner = sorted(
            (s, c) for m, c in e.items() if c in (1, -1) and len(m) == 1
            for s in m if isinstance(s, Atom) and s.op == "floordiv" and s not in facts
        )  # fmt: skip
        for q, c in inner:
            x, n = map(self._expanded, q.args)
            s = poly.subtract(e, {(q,): c})
            k = poly.as_constant(n)
            simple = k is not None or (not s and c == 1)
            if simple and self._is_positive(d):
                up = poly.constant(k - 1) if c < 0 and k is not None else {}
                x = poly.add(poly.scale(x, c), up)
                return poly.add(x, poly.multiply(n, s)), poly.multiply(n, d)
        return None

    def _known_quotient(self, e: Terms, d: Terms) -> int | None:
        """Return the floor of e / d, if it is one number at all sizes; else None."""
        n = self._judge.example(e, d)
        if n is None or not self._is_positive(d):
            return None
        rest = poly.subtract(e, poly.scale(d, n))
        at_least_zero = self._judge.at_least_zero
        below = poly.subtract(poly.subtract(d, ONE), rest)
        return n if at_least_zero(rest) and at_least_zero(below) else None

    # Maximum and minimum

    def maximum(self, args: list[Terms]) -> Terms:
        """Return the largest of one polynomial or more."""
        key = frozenset(frozenset(x.items()) for x in args)
        return self._remember(key, lambda: self._maximum([self._expanded(x) for x in args]))

    def minimum(self, args: list[Terms]) -> Terms:
        """Return the smallest of one polynomial or more."""
        return poly.scale(self.maximum([poly.scale(x, -1) for x in args]), -1)

    def _maximum(self, args: list[Terms]) -> Terms:
        shared: Terms = {}
        while True:
            inside = [y for x in args for y in self._alternatives(x)]
            found = self._undominated(inside)
            every = dict.fromkeys(m for x in found for m in x)
            least = {m: min(x.get(m, 0) for x in found) for m in every}
            least = {m: c for m, c in least.items() if c}
            shared = poly.add(shared, least)
            args = [poly.subtract(x, least) for x in found]
            # A subtracted part may have been a maximum, so other arguments may now be maxima.
            if len(inside) == len(found) and not least:
                break
        if len(args) == 1:
            return shared
        g = gcd(*(c for x in args for c in x.values()))
        args = sorted(({m: c // g for m, c in x.items()} for x in args), key=poly.text_order)
        return poly.add(shared, {(self._atom("max", args),): g})

    def _alternatives(self, p: Terms) -> list[Terms]:
        """Return polynomials whose maximum is p, by expanding its maxima with positive
        coefficients."""
        inner = [
            (s, c) for m, c in p.items() if c > 0 and len(m) == 1
            for s in m if isinstance(s, Atom) and s.op == "max"
        ]  # fmt: skip
        if reduce(lambda n, sc: n * len(sc[0].args), inner, 1) > _MOST_ARGUMENTS:
            return [p]
        rest = reduce(lambda p, sc: poly.subtract(p, {(sc[0],): sc[1]}), inner, p)
        choices = product(*([poly.scale(self._expanded(x), c) for x in s.args] for s, c in inner))
        return [reduce(poly.add, choice, rest) for choice in choices]

    def _undominated(self, args: list[Terms]) -> list[Terms]:
        """Return the polynomials that no other one always equals or exceeds; one of equal ones."""
        left = list({frozenset(x.items()): x for x in args}.values())
        for x in list(left):
            others = [y for y in left if y is not x]
            if any(self._judge.at_least_zero(poly.subtract(y, x)) for y in others):
                left = others
        return left


def _remainders(p: Terms) -> list[int]:
    """Return the coefficients, the constant term last, by which two forms of a division compare."""
    return [p[m] for m in sorted(p, key=poly.order, reverse=True) if m] + [p.get((), 0)]


def _over(p: Terms, m: Monomial, g: int) -> Terms:
    """Return p / (g * m); only the constant term may leave a remainder, and is rounded down."""
    out = {poly.without(n, m): c // g for n, c in p.items()}
    return {n: c for n, c in out.items() if n is not None and c}


def _reduce(p: Terms, fact: Multiple) -> Terms:
    """Return p, which is expanded, with coefficients of powers of the quotient in base `factor`."""
    quotient, factor, whole = fact
    out: Terms = {}
    for m, c in p.items():
        power, left = m.count(quotient), abs(c)
        rest = tuple(s for s in m if s != quotient)
        for i in range(power, -1, -1):
            digit, left = divmod(left, factor**i)
            if digit:
                n = poly.join(rest, tuple(sorted(whole * i + (quotient,) * (power - i))))
                out = poly.add(out, {n: digit if c > 0 else -digit})
    return out


PLAIN = Canonical(Ignorant()).algebra
"""Canonical forms that assume nothing about sizes."""
