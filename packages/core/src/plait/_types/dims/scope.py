"""Scopes: the known facts about the sizes in symbolic dimensions.

Invariant: scopes with the same constraints are the same object, so that dims of equal scopes can be
mixed, and unpickling a dim gives an equal one.  Only scopes made `apart` differ from all others.
"""

import uuid
from collections.abc import Sequence
from contextvars import ContextVar
from threading import Lock
from typing import NamedTuple
from weakref import WeakValueDictionary

from ..._base.errors import DimMismatch, ProgramError, ShapeError, UndecidedDim
from . import polynomial as poly
from .canonical import PLAIN, Canonical, Multiple
from .decision import Prover
from .language import read_constraint
from .polynomial import ONE, Atom, Terms

_MOST_SHOWN = 6

_known: "WeakValueDictionary[object, Scope]" = WeakValueDictionary()
_lock = Lock()


open_to: "ContextVar[list | None]" = ContextVar("open_questions", default=None)
"""The list that collects (polynomial, relation to 0, scope) of undecided questions, if any does."""


def _leave_open(p: Terms, relation: str, scope: "Scope") -> None:
    collected = open_to.get()
    if collected is not None:
        collected.append((p, relation, scope))


class Fact(NamedTuple):
    """One relation of a constraint: `terms` is at least 0, or (`equal`) is 0."""

    constraint: str
    terms: Terms
    equal: bool

    @property
    def names(self) -> frozenset[str]:
        """The sizes that it is about."""
        return poly.names(self.terms)


class Scope:
    """Constraints on named sizes: the assumptions for comparing and dividing sizes.

    Each size is at least 1, unless a constraint that compares it alone with a number gives another
    bound: `"b >= 0"` admits empty arrays.

    Args:
      constraints: texts such as "b >= 4", "mod(b, 8) == 0", "a + b == 10", "1 <= a <= b".
      lower: the lower bound, 0 or 1, of sizes whose bound no constraint gives.

    Raises:
      ProgramError: a text that cannot be read.
      DimMismatch: constraints that no sizes satisfy.

    Example:
      >>> b, = symbolic_dims("b", Scope(["b >= 4", "mod(b, 8) == 0"]))
      >>> b >= 8, b % 4
      (True, 0)
    """

    __slots__ = (
        "__weakref__",
        "equates",
        "facts",
        "_prover",
        "canonical",
        "mark",
        "constraints",
        "doubted",
        "least",
        "names",
    )
    constraints: tuple[str, ...]
    least: int
    mark: str
    """A mark that distinguishes a scope made `apart` from all others; "" for the others."""
    facts: list[Fact]
    names: frozenset[str]
    """The sizes in the constraints."""
    canonical: Canonical
    equates: bool
    """True if a constraint may make sizes equal that are written in different ways."""
    doubted: tuple[object, object]
    """The last two sizes whose equality could not be decided."""

    def __new__(cls, constraints: Sequence[str] = (), *, lower: int = 1) -> "Scope":
        return cls._found(constraints, lower, "")

    @classmethod
    def apart(cls, constraints: Sequence[str] = (), *, lower: int = 1) -> "Scope":
        """Return a scope of its own, even if the constraints are the same.

        Its sizes cannot be mixed with those of any other scope.  A pickled one comes back equal."""
        return cls._found(constraints, lower, uuid.uuid4().hex)

    @classmethod
    def _found(cls, constraints: Sequence[str], lower: int, mark: str) -> "Scope":
        if isinstance(constraints, str):
            constraints = (constraints,)
        try:
            constraints = tuple(constraints)
        except TypeError:
            raise ProgramError(
                f"constraints are texts, and not {constraints!r}",
                fix='write constraints=["b >= 8", "mod(b, 8) == 0"]',
            ) from None
        if not isinstance(lower, int) or lower not in (0, 1):
            raise DimMismatch(f"a lower bound is 0 or 1, not {lower!r}")
        facts = tuple(dict.fromkeys(fact.constraint for c in constraints for fact in _read(c)))
        key = frozenset(facts), lower, mark
        found = _known.get(key)
        if found is None:
            made = cls._make(facts, lower, mark)
            with _lock:
                found = _known.setdefault(key, made)
        return found

    @classmethod
    def _make(cls, constraints: tuple[str, ...], least: int, mark: str) -> "Scope":
        self = object.__new__(cls)
        self.constraints, self.least, self.mark = constraints, least, mark
        self.doubted = 0, 0
        self.facts = [fact for c in constraints for fact in _read(c)]
        self.names = frozenset[str]().union(*(f.names for f in self.facts))
        rows = [f.terms for f in self.facts if not f.equal]
        equations = [f.terms for f in self.facts if f.equal]
        self._prover = Prover(_lower_bounds(self.facts), least, rows, equations)
        if not self._prover.consistent():
            raise DimMismatch(
                f"no sizes satisfy the constraints {', '.join(constraints)}",
                fix="sizes are at least 1 unless a constraint says otherwise, as 'b >= 0' does",
            )
        multiples = _multiples(equations)
        self.canonical = Canonical(self._prover, multiples)
        self.equates = len(multiples) < len(equations)
        return self

    def __repr__(self) -> str:
        args = [repr(list(self.constraints))] if self.constraints else []
        args += [f"lower={self.least}"] if self.least != 1 else []
        return f"Scope({', '.join(args)})"

    def __reduce__(self) -> tuple[object, ...]:
        more = (self.mark,) if self.mark else ()
        return _scope, (self.constraints, self.least, *more)

    def __copy__(self) -> "Scope":
        return self

    def __deepcopy__(self, memo: object) -> "Scope":
        return self

    # Questions about polynomials, for Dim

    def at_least_zero(self, p: Terms) -> bool | None:
        """Return whether p >= 0: always, never, or None if unknown."""
        answer = self._prover.at_least_zero(p)
        if answer is None:
            _leave_open(p, ">=", self)
        return answer

    def is_zero(self, p: Terms, *, matters: bool = True) -> bool | None:
        """Return whether p = 0: always, never, or None if unknown.

        `matters` is False if results are the same for both answers; see `open_questions`."""
        answer = self._prover.is_zero(p)
        if answer is None and matters:
            _leave_open(p, "==", self)
        return answer

    def facts_of(self, names: frozenset[str]) -> list[Fact]:
        """Return the lower bounds of these names, and the constraints about them only."""
        bounds = [(s, self._prover.lower_bound(s)) for s in sorted(names)]
        return [
            Fact(f"{s} >= {n}", poly.subtract(poly.symbol(s), poly.constant(n)), False)
            for s, n in bounds
        ] + [f for f in self.facts if f.names <= names]

    def undecided(
        self, question: str, p: Terms, relation: str = ">=", about: str = ""
    ) -> UndecidedDim:
        """Return the error for an undecided question, whether p is at least 0 (or equals it)."""
        known = self._what_is_known(poly.names(p))
        what = f"{about}is {question}? {self._examples(p, relation)}\n  known: {known}"
        texts = ", ".join(f'"{t}"' for t in (*self.constraints, question))
        lower = ", lower=0" if self.least == 0 else ""
        never = "; if it never does, say what excludes it" if relation == "==" else ""
        error = UndecidedDim(
            what,
            fix=f"if it always holds, say so where the sizes are named{never}:\n"
            f'symbolic_dims("...", Scope(constraints=[{texts}]{lower}))',
        )
        error.asked, error.question = (p, relation, self), question
        return error

    def _examples(self, p: Terms, relation: str) -> str:
        """Return sizes with the answer yes and with the answer no, if samples show both, in
        words."""
        found: dict[bool, str] = {}
        for sizes in self._prover.samples(poly.names(p)):
            try:
                n = poly.evaluate(p, sizes)
            except ZeroDivisionError:
                continue
            answer = n >= 0 if relation == ">=" else n == 0
            found.setdefault(answer, ", ".join(f"{s}={n}" for s, n in sizes.items()))
        if len(found) < 2:
            return "It could not be decided for all sizes."
        return f"It depends: yes for {found[True]}; no for {found[False]}."

    def _what_is_known(self, names: frozenset[str]) -> str:
        bounds = [f"{s} >= {self._prover.lower_bound(s)}" for s in sorted(names)]
        shown = [*dict.fromkeys([*bounds, *self.constraints])]
        more = ["..."] if len(shown) > _MOST_SHOWN else []
        return ", ".join(shown[:_MOST_SHOWN] + more)


def _scope(constraints: tuple[str, ...], least: int, mark: str = "") -> Scope:
    return Scope._found(constraints, least, mark)


def same_scope(a: Scope, b: Scope) -> Scope:
    """Return the scope that both are; raise ShapeError if they differ."""
    if a is not b:
        raise ShapeError(
            f"sizes of two scopes are mixed: {a!r} and {b!r}",
            fix="name all sizes of a computation in one scope: "
            "scope = Scope(constraints=[...]); symbolic_dims('a, b', scope)",
        )
    return a


def _read(constraint: str) -> list[Fact]:
    """Return the relations of a constraint, each written in one way only."""
    found = []
    for left, relation, right in read_constraint(constraint, PLAIN):
        difference = poly.subtract(left, right)
        if relation in ("<", "<="):
            difference = poly.scale(difference, -1)
        if relation in ("<", ">"):
            difference = poly.subtract(difference, ONE)
        written = f"{poly.text(left)} {relation} {poly.text(right)}"
        found.append(Fact(written, difference, relation == "=="))
    return found


def _lower_bounds(facts: list[Fact]) -> dict[str, int]:
    """Return the lower bounds from constraints that compare one name with a number."""
    found: dict[str, int] = {}
    for _, p, equal in facts:
        if equal and p and p[poly.leading(p)] < 0:
            p = poly.scale(p, -1)
        (m, c), *more = [(m, c) for m, c in p.items() if m] or [((), 0)]
        if c > 0 and len(m) == 1 and not more and not isinstance(m[0], Atom):
            found[m[0]] = max(-(p.get((), 0) // c), found.get(m[0], 0))
    return found


def _multiples(equations: list[Terms]) -> tuple[Multiple, ...]:
    """Return the constraints of the form mod(m, k) == 0; for one monomial m only the largest k."""
    found: dict[poly.Monomial, Multiple] = {}
    for p in equations:
        for s in (m[0] for m in p if len(m) == 1):
            if not isinstance(s, Atom) or s.op != "floordiv":
                continue
            whole, k = s.args[0], poly.as_constant(s.args[1])
            if k and len(whole) == 1 and set(whole.values()) == {1}:
                m = next(iter(whole))
                same = poly.subtract(whole, {(s,): k})
                if p in (same, poly.scale(same, -1)) and not _overlaps(m, found, k):
                    found[m] = Multiple(s, k, m)
    return tuple(found.values())


def _overlaps(m: poly.Monomial, found: dict[poly.Monomial, Multiple], k: int) -> bool:
    """Return whether rewriting m would interfere with a rewriting that exists already.

    A rewriting of m itself by a smaller k is removed first.
    """
    if m in found and found[m].factor < k:
        del found[m]
    return any(set(m) & set(n) for n in found)
