"""Refutation of systems of polynomial inequalities and equations over the integers.

Equations are solved in integers and substituted, as in Pugh's Omega test.  The remaining rows are
refuted by Fourier-Motzkin elimination, in which every monomial is a variable of its own and every
row is tightened to integers.  A linear method cannot relate products to their factors.  So products
of rows are added, where all their monomials exist already.

Invariant: `contradictory` returns True only if the system has no solution; False claims nothing.
"""

from itertools import combinations, count, product
from math import gcd

from . import polynomial as poly
from .polynomial import Monomial, Terms

_MOST_ROWS = 300
_MOST_PAIRS = 20_000
_MOST_TERMS = 60
_MOST_SUBSTITUTIONS = 40
_MOST_FACTORS = 24

Row = frozenset[tuple[Monomial, int]]


class _Contradiction(Exception):
    """The system has no solution."""


class _TooMuch(Exception):
    """The search exceeds its bounds on work."""


def contradictory(rows: list[Terms], equations: list[Terms]) -> bool:
    """Return whether no integers make every row at least 0 and every equation 0.

    False may also mean that the search gave up.
    """
    try:
        rows = _solve_equations(rows, equations)
        rows = _shift(rows)
        rows = _tightened(rows + _products(rows))
        _eliminate(rows)
    except _Contradiction:
        return True
    except _TooMuch:
        pass
    return False


def _tighten(p: Terms) -> Terms | None:
    """Return the row p >= 0 over integers; None if it always holds."""
    g = poly.content(p)
    c = p.get((), 0)
    if g == 0:
        if c < 0:
            raise _Contradiction
        return None
    if g == 1:
        return p
    return {m: k // g for m, k in p.items() if k // g}


def _tightened(rows: list[Terms]) -> list[Terms]:
    """Return the rows over integers; of rows with the same left side, only the strongest."""
    strongest: dict[Row, int] = {}
    for p in rows:
        row = _tighten(p)
        if row is not None:
            c = row.get((), 0)
            left = frozenset((m, k) for m, k in row.items() if m)
            strongest[left] = min(c, strongest.get(left, c))
    return [_row(left, c) for left, c in strongest.items()]


def _row(left: Row, c: int) -> Terms:
    row = dict(left)
    if c:
        row[()] = c
    return row


# Equations


def _solve_equations(rows: list[Terms], equations: list[Terms]) -> list[Terms]:
    """Return the rows with every equation that can be solved for a symbol substituted into them.

    Two rows that express p >= 0 and p <= 0 are an equation too.
    """
    todo, stuck, fresh = list(equations), set(), count()
    for _ in range(_MOST_SUBSTITUTIONS):
        if not todo:
            rows = _tightened(rows)
            todo = [p for p in _opposites(rows) if frozenset(p.items()) not in stuck]
            if not todo:
                return rows
        p = _whole_equation(todo.pop())
        if not p:
            continue
        s = _pivot(p)
        if s is None:
            stuck |= {frozenset(p.items()), frozenset(poly.scale(p, -1).items())}
            rows = [*rows, p, poly.scale(p, -1)]
            continue
        value, rest = _solve(p, s, f"%{next(fresh)}")
        rows = [_put(q, s, value) for q in rows]
        todo = [_put(q, s, value) for q in todo] + rest
    raise _TooMuch


def _whole_equation(p: Terms) -> Terms:
    """Return p = 0 divided by its greatest common factor; {} if it always holds."""
    g, c = poly.content(p), p.get((), 0)
    if g == 0:
        if c:
            raise _Contradiction
        return {}
    if c % g:
        raise _Contradiction
    return {m: k // g for m, k in p.items()}


def _opposites(rows: list[Terms]) -> list[Terms]:
    """Return the rows whose negation is a row as well; raise if the two leave no room."""
    bounds = {frozenset((m, k) for m, k in p.items() if m): p.get((), 0) for p in rows}
    found: dict[Row, Terms] = {}
    for left, c in bounds.items():
        other = frozenset((m, -k) for m, k in left)
        room = c + bounds[other] if other in bounds else 1
        if room < 0:
            raise _Contradiction
        if room == 0 and other not in found:
            found[left] = _row(left, c)
    return list(found.values())


def _pivot(p: Terms) -> str | None:
    """Return the symbol to solve p = 0 for: it occurs alone, with the smallest coefficient."""
    crowded = {s for m in p if len(m) > 1 for s in m}
    alone = [m[0] for m in p if len(m) == 1 and m[0] not in crowded]
    if not alone:
        return None
    s = min(alone, key=lambda s: (abs(p[(s,)]), s))
    least = min(abs(c) for m, c in p.items() if m)
    return s if abs(p[(s,)]) <= max(least, 1) else None


def _solve(p: Terms, s: str, fresh: str) -> tuple[Terms, list[Terms]]:
    """Return (a value of s by p = 0, the equations left of p).

    With a coefficient c other than 1 the value contains a fresh integer t = s + (the rest // c).
    An equation with smaller coefficients beside t is left: Euclid's algorithm, one step at a time.
    """
    if p[(s,)] < 0:
        p = poly.scale(p, -1)
    c = p[(s,)]
    quotient, _ = poly.divide({m: k for m, k in p.items() if m != (s,)}, {(): c})
    if c == 1:
        return poly.scale(quotient, -1), []
    value = poly.subtract(poly.symbol(fresh), quotient)
    return value, [_put(p, s, value)]


def _put(p: Terms, s: str, value: Terms) -> Terms:
    if not any(s in m for m in p):
        return p
    out = poly.substitute(p, s, value)
    if len(out) > _MOST_TERMS:
        raise _TooMuch
    return out


# Products


def _shift(rows: list[Terms]) -> list[Terms]:
    """Return the rows with every symbol that has a least value counted from that value."""
    for p in _tightened(rows):
        (m, k), *more = [(m, k) for m, k in p.items() if m]
        c = p.get((), 0)
        if c and k == 1 and len(m) == 1 and not more:
            rows = [_put(q, m[0], {m: 1, (): -c}) for q in rows]
    return rows


def _products(rows: list[Terms]) -> list[Terms]:
    """Return rows that follow by multiplication, and contain only monomials that rows have."""
    there = dict.fromkeys(sorted(m for p in rows for m in p if len(m) > 1))
    if not there:
        return []
    wanted = {s for m in there for s in m}
    signed = {m[0] for p in rows if len(p) == 1 for m, c in p.items() if len(m) == 1 and c > 0}
    out: list[Terms] = [{m: 1} for m in there if all(s in signed or m.count(s) % 2 == 0 for s in m)]
    factors = [p for p in rows if any(s in wanted for m in p if len(m) == 1 for s in m)]
    factors = [p for p in factors if all(len(m) < 2 for m in p)][:_MOST_FACTORS]
    pairs: list[tuple[Terms, Terms]] = [
        *product([poly.symbol(s) for s in sorted(signed & wanted)], rows)
    ]
    pairs += [*combinations(factors, 2), *zip(factors, factors)]
    for s, t in combinations(sorted(wanted), 2):
        difference: Terms = {(s,): 1, (t,): -1}
        pairs.append((difference, difference))
    for p, q in pairs:
        row = poly.multiply(p, q)
        if row and all(len(m) < 2 or m in there for m in row):
            out.append(row)
    return out[:_MOST_ROWS]


# Fourier-Motzkin


def _eliminate(rows: list[Terms]) -> None:
    """Eliminate one monomial after another; raise _Contradiction if one is met."""
    pairs = 0
    while rows:
        if len(rows) > _MOST_ROWS:
            raise _TooMuch
        m = _cheapest(rows)
        positive = [p for p in rows if p.get(m, 0) > 0]
        negative = [p for p in rows if p.get(m, 0) < 0]
        pairs += len(positive) * len(negative)
        if pairs > _MOST_PAIRS:
            raise _TooMuch
        rows = [p for p in rows if m not in p]
        rows = _tightened(rows + [_cross(p, q, m) for p in positive for q in negative])


def _cheapest(rows: list[Terms]) -> Monomial:
    """Return the monomial whose elimination adds the fewest rows."""
    counts: dict[Monomial, list[int]] = {}
    for p in rows:
        for m, c in p.items():
            if m:
                counts.setdefault(m, [0, 0])[c > 0] += 1
    return min(counts, key=lambda m: (counts[m][0] * counts[m][1] - sum(counts[m]), m))


def _cross(p: Terms, q: Terms, m: Monomial) -> Terms:
    """Return the sum of multiples of p and q in which m cancels."""
    a, b = p[m], -q[m]
    g = gcd(a, b)
    return poly.add(poly.scale(p, b // g), poly.scale(q, a // g))
