"""Integer polynomials over symbols, as plain dictionaries.

A symbol is the name of a size, or an `Atom`: a floor division or a maximum, which no polynomial can
express.  A monomial is a sorted tuple of symbols, `()` being 1; a polynomial maps monomials to
their coefficients.

Invariant: no coefficient is 0, so that equal polynomials are equal dictionaries; a dictionary is
never changed after it has been returned.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import reduce
from math import gcd
from typing import Any, NamedTuple

Monomial = tuple[str, ...]
Terms = dict[Monomial, int]

ONE: Terms = {(): 1}


class Atom(str):
    """A symbol that stands for `op` of polynomials; as a string it is its own text.

    The text can be read back, so atoms with the same text mean the same; comparison, hashing and
    order are those of strings.  `op` is "floordiv" or "max"; "mod" and "min" are for display.
    """

    __slots__ = ("args", "op", "twin")
    op: str
    args: tuple[Terms, ...]
    twin: "Atom | None"  # the mod or min of the same arguments, made when first needed

    def __new__(cls, op: str, args: tuple[Terms, ...]) -> "Atom":
        self = super().__new__(cls, f"{op}({', '.join(map(text, args))})")
        self.op, self.args, self.twin = op, args, None
        return self


class Algebra(NamedTuple):
    """An interpretation of sizes: one function for each kind of part that a size can have."""

    constant: Callable[[int], Any]
    variable: Callable[[str], Any]
    add: Callable[[Any, Any], Any]
    mul: Callable[[Any, Any], Any]
    floordiv: Callable[[Any, Any], Any]
    mod: Callable[[Any, Any], Any]
    maximum: Callable[[Any, Any], Any]
    minimum: Callable[[Any, Any], Any]


# Arithmetic


def constant(n: int) -> Terms:
    """Return the polynomial of one number."""
    return {(): n} if n else {}


def symbol(s: str) -> Terms:
    """Return the polynomial of one symbol."""
    return {(s,): 1}


def add(p: Terms, q: Terms) -> Terms:
    """Return p + q."""
    out = p.copy()
    for m, c in q.items():
        c += out.get(m, 0)
        if c:
            out[m] = c
        else:
            del out[m]
    return out


def scale(p: Terms, n: int) -> Terms:
    """Return p * n."""
    return {m: c * n for m, c in p.items()} if n else {}


def subtract(p: Terms, q: Terms) -> Terms:
    """Return p - q."""
    return add(p, scale(q, -1))


def join(m: Monomial, n: Monomial) -> Monomial:
    """Return the product of two monomials."""
    if not m:
        return n
    if not n:
        return m
    return tuple(sorted(m + n))


def multiply(p: Terms, q: Terms) -> Terms:
    """Return p * q."""
    out: Terms = {}
    for m, c in p.items():
        for n, d in q.items():
            mn = join(m, n)
            out[mn] = out.get(mn, 0) + c * d
    return {m: c for m, c in out.items() if c}


def as_constant(p: Terms) -> int | None:
    """Return the number that p is; None if p is not constant."""
    if not p:
        return 0
    return p[()] if len(p) == 1 and () in p else None


def content(p: Terms) -> int:
    """Return the greatest common divisor of the coefficients without the constant term; 0 for
    none."""
    return gcd(*(c for m, c in p.items() if m))


def without(m: Monomial, n: Monomial) -> Monomial | None:
    """Return the monomial m / n; None if n does not divide m."""
    if not n:
        return m
    rest = list(m)
    for s in n:
        if s not in rest:
            return None
        rest.remove(s)
    return tuple(rest)


def monomial_gcd(monomials: list[Monomial]) -> Monomial:
    """Return the greatest monomial that divides them all."""
    common = Counter(monomials[0])
    for m in monomials[1:]:
        common &= Counter(m)
    return tuple(sorted(common.elements()))


def order(m: Monomial) -> tuple[int, Monomial]:
    """Return the key of a monomial order: by degree, then by symbols (sorted, so products respect
    it)."""
    return len(m), m


def leading(p: Terms) -> Monomial:
    """Return the greatest monomial of p."""
    return max(p, key=order)


def divide(p: Terms, d: Terms) -> tuple[Terms, Terms]:
    """Return polynomials q, r with p = d*q + r, where the leading term of d divides no term of r.

    Coefficients are divided with floor.  The answer is unique, since this is the division by a
    Groebner basis of one element.
    """
    if (k := as_constant(d)) is not None:
        return (
            {m: c // k for m, c in p.items() if c // k},
            {m: c % k for m, c in p.items() if c % k},
        )
    top = leading(d)
    quotient, rest, work = {}, {}, p
    while work:
        m = leading(work)
        n = without(m, top)
        factor = {n: work[m] // d[top]} if n is not None and work[m] // d[top] else {}
        quotient = add(quotient, factor)
        work = subtract(work, multiply(factor, d))
        if m in work:
            rest[m] = work[m]
            work = {n: c for n, c in work.items() if n != m}
    return quotient, rest


def substitute(p: Terms, s: str, value: Terms) -> Terms:
    """Return p with a polynomial in place of a symbol; arguments of atoms are not changed."""
    out: Terms = {}
    for m, c in p.items():
        if s not in m:
            part = {m: c}
        else:
            part = {tuple(t for t in m if t != s): c}
            for _ in range(m.count(s)):
                part = multiply(part, value)
        out = add(out, part)
    return out


# Structure


def symbols(p: Terms, into: dict[str, None] | None = None) -> dict[str, None]:
    """Return the symbols of p and of its atoms' arguments, as the keys of an ordered dictionary."""
    found: dict[str, None] = {} if into is None else into
    for m in p:
        for s in m:
            if s not in found:
                if isinstance(s, Atom):
                    for arg in s.args:
                        symbols(arg, found)
                found[s] = None
    return found


def divisors(p: Terms) -> list[Terms]:
    """Return the divisors of all floor divisions in p and in the arguments of its atoms."""
    return [s.args[1] for s in symbols(p) if isinstance(s, Atom) and s.op == "floordiv"]


def names(p: Terms) -> frozenset[str]:
    """Return the names of the sizes in p."""
    return frozenset([s for s in symbols(p) if s.__class__ is not Atom])


def evaluate(p: Terms, values: Mapping[str, int], made: dict[Atom, int] | None = None) -> int:
    """Return the value of p at these sizes; raise ZeroDivisionError for a division by 0.

    `made` holds the values of atoms, so that each is computed once.
    """
    total = 0
    for m, c in p.items():
        for s in m:
            if isinstance(s, Atom):
                made = {} if made is None else made
                if s not in made:
                    made[s] = _value(s, values, made)
                c *= made[s]
            else:
                c *= values[s]
        total += c
    return total


def _value(a: Atom, values: Mapping[str, int], made: dict[Atom, int]) -> int:
    args = [evaluate(arg, values, made) for arg in a.args]
    return args[0] // args[1] if a.op == "floordiv" else max(args)


def fold(p: Terms, algebra: Algebra) -> Any:
    """Return p rebuilt by the functions of an algebra; each atom is built once."""
    return _fold(p, algebra, {})


def _fold(p: Terms, algebra: Algebra, built: dict[str, Any]) -> Any:
    def build(s: str) -> Any:
        if s not in built:
            built[s] = apply(s) if isinstance(s, Atom) else algebra.variable(s)
        return built[s]

    def apply(a: Atom) -> Any:
        f = getattr(algebra, {"max": "maximum", "min": "minimum"}.get(a.op, a.op))
        return reduce(f, [_fold(arg, algebra, built) for arg in a.args])

    return _sum(p, algebra.constant, build, algebra.add, algebra.mul)


def _sum(p: Terms, constant: Callable, build: Callable, add: Callable, mul: Callable) -> Any:
    """Return p as a sum of products: positive terms first, high degrees before low ones."""
    shown = present(p)
    terms = []
    for m in sorted(shown, key=lambda m: (shown[m] < 0, -len(m), m)):
        factors = [constant(shown[m])] if shown[m] != 1 or not m else []
        terms.append(reduce(mul, factors + [build(s) for s in m]))
    return reduce(add, terms) if terms else constant(0)


# Display: mod and min are stored as floordiv and max, and recovered here


def present(p: Terms) -> Terms:
    """Return p with `mod` and `min` wherever they make it shorter."""
    for s in sorted({s for m in p for s in m if isinstance(s, Atom)}):
        other = _with_mod(p, s) if s.op == "floordiv" else _with_min(p, s)
        if other is not None and len(other) < len(p):
            p = other
    return p


def _with_mod(p: Terms, q: Atom) -> Terms | None:
    """Return p with n * mod(e, d) in place of n * (e - d*q); None if p has no such part."""
    e, d = q.args
    top = leading(d)
    n = -p.get(join(top, (q,)), 0) // d[top]
    if not n:
        return None
    q.twin = q.twin or Atom("mod", q.args)
    whole = subtract(e, multiply(d, symbol(q)))
    return add(subtract(p, scale(whole, n)), {(q.twin,): n})


def _with_min(p: Terms, largest: Atom) -> Terms | None:
    """Return p with n * min(total - x, ...) in place of n * (total - max(x, ...)); None if p has no
    such part."""
    n = -p.get((largest,), 0)
    if n <= 0:
        return None
    seen = dict.fromkeys(m for x in largest.args for m in x)
    top = {m: max(x.get(m, 0) for x in largest.args) for m in seen}
    total = {m: c for m, c in top.items() if c}
    others = sorted((subtract(total, x) for x in largest.args), key=text_order)
    largest.twin = largest.twin or Atom("min", tuple(others))
    whole = subtract(total, symbol(largest))
    return add(subtract(p, scale(whole, n)), {(largest.twin,): n})


def text(p: Terms) -> str:
    """Return p in the language of `symbolic_dims`; equal polynomials have equal texts."""
    return _sum(p, str, str, _add_text, lambda a, b: f"-{b}" if a == "-1" else f"{a}*{b}")


def text_order(p: Terms) -> tuple[bool, str]:
    """Return the key by which arguments are sorted: numbers last."""
    return as_constant(p) is not None, text(p)


def _add_text(a: str, b: str) -> str:
    return f"{a} - {b[1:]}" if b.startswith("-") else f"{a} + {b}"
