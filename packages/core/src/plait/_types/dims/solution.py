"""Named sizes from the sizes that arrays have.

Equations are solved as a linear system in their monomials, by elimination with integers only. Each
name found simplifies the other equations, until nothing changes.

Invariant: a solution satisfies every pair and every constraint, and is the only one.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..._base.errors import DimMismatch, UndecidedDim
from . import polynomial as poly
from .canonical import PLAIN
from .expression import ARITHMETIC, Dim, symbolic_dims
from .polynomial import Monomial, Terms
from .questions import decide_eq, decide_ge, divide_exact, require_eq
from .scope import Fact, Scope, same_scope

Sizes = dict[str, "Dim | int"]


class _Inconsistent(Exception):
    """Equations that no whole numbers satisfy."""


class _Equation(NamedTuple):
    """`left`, a polynomial of unknowns without a constant term, is `right`."""

    left: Terms
    right: "Dim | int"


def solve_dims(pairs: "Sequence[tuple[Dim | int, int]]") -> dict[str, int]:
    """Return the sizes that names must have for each dim to be the size beside it.

    Names are those in `pairs`, and those that equations among the constraints determine by them.
    Sums of several names, products, floor divisions and equations among the constraints are used
    together, as far as they leave one solution.  The size beside a dim may itself be symbolic, in
    another scope; then so are the sizes found.

    Args:
      pairs: (size in terms of names, actual size).

    Raises:
      DimMismatch: a size that does not fit, with the pair or the constraint that it breaks.
      UndecidedDim: sizes that leave a name undetermined, with its name.

    Example:
      >>> a, b = symbolic_dims("a, b")
      >>> solve_dims([(a + b, 7), (a + 2 * b, 9), (3, 3)])
      {'a': 5, 'b': 2}
    """
    for expected, actual in pairs:
        if not isinstance(expected, Dim) and not require_eq(expected, actual):
            raise DimMismatch(f"a size is {actual} where {expected} is expected")
    symbolic = [(d, n) for d, n in pairs if isinstance(d, Dim)]
    if not symbolic:
        return {}
    scope = symbolic[0][0].scope
    for d, _ in symbolic:
        same_scope(scope, d.scope)
    wanted = sorted(frozenset[str]().union(*(d.variables for d, _ in symbolic)))
    known = _solve_with_constraints(symbolic, scope, wanted)
    _check(symbolic, scope, known)
    return dict(sorted(known.items()))  # type: ignore[arg-type]


def measure_dims(
    dims: "Sequence[Dim]", roots: "dict[str, Dim] | None" = None
) -> "dict[str, Dim | int]":
    """Return expressions that compute names from the sizes of the dims.

    Args:
      dims: sizes in terms of names, of one scope.
      roots: receives {name: size} for the names `r0`, `r1`, ... in expressions; each is the square
        root of its size, so that `a` is found from `a*a`.  They are in an order in which they can
        be computed.  If None, no roots are used.

    Returns:
      For each name in `dims`, an expression of `s0`, `s1`, ..., the sizes of the dims in their
      order.  Other names that equations among the constraints determine by these have one, too.
      The expressions are right if some values of the names give all dims these sizes.

    Raises:
      UndecidedDim: the sizes do not determine a name.

    Example:
      >>> a, b = symbolic_dims("a, b")
      >>> measure_dims([a + b, a + 2 * b])
      {'a': 2*s0 - s1, 'b': s1 - s0}
    """
    if not dims:
        return {}
    places = ", ".join(f"s{i}" for i in range(len(dims)))
    sizes = symbolic_dims(places, Scope(lower=0))
    equations = [_equation(d.terms, n) for d, n in zip(dims, sizes)]
    wanted = sorted(frozenset[str]().union(*(d.variables for d in dims)))
    known = _solve(equations, trusting=True)
    scope = dims[0].scope
    if not known.keys() >= scope.names.union(wanted):
        more = [_equation(f.terms, 0) for f in scope.facts if f.equal]
        short = not known.keys() >= set(wanted)
        known = _solve(equations + more, trusting=True, roots=roots if short else None)
    unknown = [s for s in wanted if s not in known]
    if unknown:
        raise _undetermined(unknown, ", ".join(map(str, dict.fromkeys(dims))))
    return dict(sorted(known.items()))


def _solve_with_constraints(pairs: "list[tuple[Dim, int]]", scope: Scope, wanted: list) -> Sizes:
    """Return the sizes that the pairs determine; constraints are used if the pairs do not
    suffice."""
    equations = [_equation(d.terms, n) for d, n in pairs]
    try:
        known = _solve(equations)
        if not known.keys() >= scope.names.union(wanted):
            more = [_equation(f.terms, 0) for f in scope.facts if f.equal]
            known = _solve(equations + more)
    except _Inconsistent:
        raise _mismatch(pairs, scope) from None
    unknown = [s for s in wanted if s not in known]
    if unknown:
        raise _undetermined(unknown, ", ".join(f"{d} == {n}" for d, n in pairs))
    return known


def _equation(p: Terms, right: "Dim | int") -> _Equation:
    return _Equation({m: c for m, c in p.items() if m}, right - p.get((), 0))


def _solve(
    equations: list[_Equation], trusting: bool = False, roots: "dict[str, Dim] | None" = None
) -> Sizes:
    """Return the names that the equations determine.

    With `trusting`, the equations are known to have a solution.  With `roots`, square roots are
    used where nothing else determines a name.
    """
    known: Sizes = {}
    while True:
        equations = [e for e in (_simplified(e, known, trusting) for e in equations) if e.left]
        equations = _reduced_rows(equations, trusting)
        before = len(known)
        for e in equations:
            known.update(_single(e, known, trusting))
        if len(known) == before and roots is not None:
            known.update(_square_root(equations, roots))
        if len(known) == before:
            return known


def _simplified(e: _Equation, known: Sizes, trusting: bool) -> _Equation:
    """Return the equation with known names substituted."""
    numbers = {s: n for s, n in known.items() if not isinstance(n, Dim)}
    left, right = _put(e.left, numbers), e.right
    for m, c in list(left.items()):
        if poly.names({m: c}) <= known.keys():
            value = _value({m: c}, known)
            left, right = poly.subtract(left, {m: c}), right - value
    if not left and not trusting and not require_eq(right, 0):
        raise _Inconsistent
    return _Equation(left, right)


def _put(p: Terms, numbers: Mapping[str, int]) -> Terms:
    """Return p with numbers in place of names, and its atoms simplified accordingly."""
    if poly.names(p).isdisjoint(numbers):
        return p

    def variable(s: str) -> Terms:
        return poly.constant(numbers[s]) if s in numbers else poly.symbol(s)

    try:
        return poly.fold(p, PLAIN._replace(variable=variable))
    except ZeroDivisionError:
        raise _Inconsistent from None


def _value(p: Terms, known: Sizes) -> "Dim | int":
    """Return the value of p; all its names are known."""
    try:
        return poly.fold(p, ARITHMETIC._replace(variable=known.__getitem__))
    except ZeroDivisionError:
        raise _Inconsistent from None


def _reduced_rows(equations: list[_Equation], trusting: bool) -> list[_Equation]:
    """Return the reduced echelon form, with integer coefficients; each monomial is an unknown."""
    done: list[tuple[Monomial, _Equation]] = []
    todo = list(equations)
    while todo:
        e = todo.pop(0)
        for m, other in done:
            e = _cancel(e, other, m)
        if not e.left:
            if not trusting and not require_eq(e.right, 0):
                raise _Inconsistent
            continue
        pivot = min(e.left, key=lambda m: (len(m), m))
        done = [(m, _cancel(other, e, pivot)) for m, other in done] + [(pivot, e)]
    return [e for _, e in done]


def _cancel(e: _Equation, other: _Equation, m: Monomial) -> _Equation:
    """Return the equation minus the multiple of the other that cancels the monomial."""
    if m not in e.left:
        return e
    a, b = other.left[m], e.left[m]
    left = poly.subtract(poly.scale(e.left, a), poly.scale(other.left, b))
    return _Equation(left, e.right * a - other.right * b)


def _single(e: _Equation, known: Sizes, trusting: bool) -> Sizes:
    """Return the one unknown of an equation and its value; empty if there are more, or its value is
    not determined."""
    unknown = poly.names(e.left) - known.keys()
    if len(unknown) != 1:
        return {}
    (s,) = unknown
    if all(set(m) == {s} for m in e.left):
        return _root(e, s, trusting)
    (m, c), *more = e.left.items()
    if more or m.count(s) != 1 or any(t not in known for t in m if t != s):
        return {}
    factor: Dim | int = c
    for t in m:
        if t != s:
            factor = factor * known[t]
    return {s: _quotient(e.right, factor, trusting)}


def _quotient(right: "Dim | int", factor: "Dim | int", trusting: bool) -> "Dim | int":
    if trusting:
        return right // factor
    if isinstance(right, Dim) or isinstance(factor, Dim):
        return divide_exact(right, factor)
    if right % factor:
        raise _Inconsistent
    return right // factor


def _root(e: _Equation, s: str, trusting: bool) -> Sizes:
    """Return the value of a name at which a polynomial of it alone has the value on the right."""
    if len(e.left) == 1 and (s,) in e.left:
        return {s: _quotient(e.right, e.left[s,], trusting)}
    if isinstance(e.right, Dim) or len({c > 0 for c in e.left.values()}) > 1:
        return {}
    sign = 1 if next(iter(e.left.values())) > 0 else -1
    left, right = poly.scale(e.left, sign), e.right * sign
    # The polynomial grows with s, which is at least 0, so bisection finds the value.
    low, high = 0, 1
    while poly.evaluate(left, {s: high}) < right:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if poly.evaluate(left, {s: middle}) < right:
            low = middle + 1
        else:
            high = middle
    if poly.evaluate(left, {s: low}) != right:
        raise _Inconsistent
    return {s: low}


def _square_root(equations: list[_Equation], roots: "dict[str, Dim]") -> Sizes:
    """Return a name whose square is determined, as the name of a new root."""
    for left, right in equations:
        ((m, c), *more) = left.items()
        square = not more and len(m) == 2 and m[0] == m[1] and not isinstance(m[0], poly.Atom)
        if square and isinstance(right, Dim):
            root, of = f"r{len(roots)}", right // c
            (found,) = symbolic_dims(root, right.scope)
            if isinstance(of, Dim) and isinstance(found, Dim):
                roots[root] = of
                return {m[0]: found}
    return {}


# Errors


def _undetermined(unknown: list[str], sizes: str) -> UndecidedDim:
    name = " and ".join(unknown)
    return UndecidedDim(
        f"sizes do not determine {name}: {sizes}",
        fix=f"give an argument with an axis of size {unknown[0]}, as an array of shape "
        f"(0, {unknown[0]}), or an equation among the constraints",
    )


def _mismatch(pairs: "list[tuple[Dim, int]]", scope: Scope) -> DimMismatch:
    """Return the error for the first pair that contradicts those before it."""
    known: Sizes = {}
    for i in range(len(pairs)):
        try:
            known = _solve([_equation(d.terms, n) for d, n in pairs[: i + 1]])
        except _Inconsistent:
            return _no_fit(*pairs[i], known)
    texts = ", ".join(f"{d} == {n}" for d, n in pairs)
    return DimMismatch(f"sizes {texts} do not satisfy the constraints {scope!r}")


def _no_fit(d: Dim, actual: "Dim | int", known: Sizes) -> DimMismatch:
    """Return the error for a dim that cannot have its size, given the other sizes."""
    what = f"a size is {actual} where {d} is expected"
    found = _at(known, d.variables) if str(d) not in d.variables else ""
    if d.variables <= known.keys():
        try:
            size = f"is {_value(d.terms, known)}"
        except _Inconsistent:
            size = "divides by 0"
        return DimMismatch(f"{what}, which {f'{size} {found}'.rstrip()} by the other sizes")
    return DimMismatch(f"{what}, and no whole numbers make {d} == {actual} {found}".rstrip())


def _check(pairs: "list[tuple[Dim, int]]", scope: Scope, known: Sizes) -> None:
    """Raise if a pair or a constraint is not satisfied."""
    for d, actual in pairs:
        try:
            fits = require_eq(_value(d.terms, known), actual)
        except _Inconsistent:
            fits = False
        if not fits:
            raise _no_fit(d, actual, known)
    for fact in scope.facts_of(frozenset(known)):
        if not _satisfied(fact, known):
            found = _at(known, fact.names)
            raise DimMismatch(
                f"sizes do not satisfy the constraint {fact.constraint} {found}",
                fix="a size of 0 is admitted by a constraint such as 'b >= 0'"
                if 0 in known.values()
                else None,
            )


def _satisfied(fact: Fact, known: Sizes) -> bool:
    try:
        value = _value(fact.terms, known)
    except _Inconsistent:
        return False
    answer = decide_eq(value, 0) if fact.equal else decide_ge(value, 0)
    if answer is None and isinstance(value, Dim):
        relation = "==" if fact.equal else ">="
        about = f"{fact.constraint} must hold {_at(known, fact.names)}: "
        raise value.scope.undecided(f"{value} {relation} 0", value.terms, relation, about)
    return answer is True


def _at(known: Sizes, names: frozenset[str]) -> str:
    """Return the sizes found for these names, in words."""
    found = ", ".join(f"{s} = {known[s]}" for s in sorted(names & known.keys()))
    return f"with {found}" if found else ""
