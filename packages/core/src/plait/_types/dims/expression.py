"""Symbolic dimensions: sizes that are known only by name.

Invariant: a `Dim` is immutable, canonical and never constant (a constant one is an `int`), so that
`==` and `hash` can be trusted.  An order that cannot be decided is an error, never False.
"""

import operator
from collections.abc import Callable, Mapping
from numbers import Integral
from sys import _getframe
from typing import Any, ClassVar, NoReturn, final

import numpy as np

from ..._base.errors import ArgumentError, ShapeError, UndecidedDim
from ..._base.source import asked_by_us
from . import polynomial as poly
from .language import read_sizes
from .owners import Owner, Owners, refuse_ended
from .polynomial import ONE, Algebra, Terms
from .scope import Scope, same_scope

_new = object.__new__
_EVERYWHERE = Scope()


@final
class Dim:
    """A size that is an expression of named integers, such as 2*b + 1 or floordiv(b, 3).

    Made by `symbolic_dims`. `+ - * // % **` with ints and dims of the same scope give dims, or an
    int if the result is constant.  With floats, and divided by `/`, they are numbers of a program,
    as arrays are.  `== < <= > >=` and `bool` hold for all sizes or for none, or raise UndecidedDim;
    `int` always raises it.  Plait's own code sorts sizes into tables, so `==` does not raise there.
    True then means that the sizes are always equal, and False that this is unknown (see
    `decide_eq`).

    Example:
      >>> a, b = symbolic_dims("a, b")
      >>> (a + b) * 2 - b, a * b // b, a + b > a, 2 * a == a
      (2*a + b, a, True, False)
    """

    __slots__ = ("_hash", "_names", "_owners", "_scope", "_terms", "_text")
    _terms: Terms
    _scope: Scope
    _hash: int
    _text: str
    _names: frozenset[str] | None
    _owners: "Owners"
    """The map in which a user read the size; see `owners`.  Equal sizes may have others."""

    __array_ufunc__ = None  # numpy's numbers leave arithmetic to this class
    _number: ClassVar[Any]

    @classmethod
    def count_with(cls, number: Callable[[Any], Any]) -> None:
        """Make `number(size)` the value of a size among arrays.

        Operations, which are defined in terms of sizes, call this.
        """
        cls._number = staticmethod(number)

    def __plait_array__(self) -> Any:
        return type(self)._number(self)

    def __new__(cls, *_: object, **__: object) -> NoReturn:
        raise ArgumentError("a Dim is not made by calling Dim", fix='write b, = symbolic_dims("b")')

    @property
    def scope(self) -> Scope:
        """The scope that the names belong to."""
        return self._scope

    @property
    def variables(self) -> frozenset[str]:
        """The names of the sizes that this one depends on."""
        if self._names is None:  # memoised, since types and carriers read it often
            self._names = poly.names(self._terms)
        return self._names

    @property
    def terms(self) -> Terms:
        """The canonical polynomial, {sorted symbols: coefficient}; do not modify it."""
        return self._terms

    # Arithmetic

    def __add__(self, other: "Dim | int") -> Any:
        terms = _operand(self, other)
        if terms is None:
            return _among_numbers(operator.add, self, other)
        return _beside(self, other, poly.add(self._terms, terms))

    __radd__ = __add__

    def __neg__(self) -> "Dim | int":
        return _beside(self, None, poly.scale(self._terms, -1))

    def __pos__(self) -> "Dim":
        return self

    def __sub__(self, other: Any) -> Any:
        terms = _operand(self, other)
        if terms is None:
            return _among_numbers(operator.sub, self, other)
        return _beside(self, other, poly.subtract(self._terms, terms))

    def __rsub__(self, other: "Dim | int") -> Any:
        terms = _operand(self, other)
        if terms is None:
            return _among_numbers(operator.sub, other, self)
        return _beside(self, other, poly.subtract(terms, self._terms))

    def __mul__(self, other: "Dim | int") -> Any:
        terms = _operand(self, other)
        if terms is None:
            return _among_numbers(operator.mul, self, other)
        return _beside(self, other, poly.multiply(self._terms, terms))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return _among_numbers(operator.truediv, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _among_numbers(operator.truediv, other, self)

    def __pow__(self, exponent: Any) -> Any:
        if not isinstance(exponent, Integral) or exponent < 0:
            return _among_numbers(operator.pow, self, exponent)
        out: Any = 1
        for _ in range(int(exponent)):
            out = out * self
        return out

    def __floordiv__(self, other: "Dim | int") -> Any:
        terms = _operand(self, other)
        if terms is None:
            return _among_numbers(operator.floordiv, self, other)
        return _beside(self, other, self._scope.canonical.floordiv(self._terms, terms))

    def __rfloordiv__(self, other: Any) -> Any:
        terms = _operand(self, other)
        if terms is None:
            return _among_numbers(operator.floordiv, other, self)
        return _beside(self, other, self._scope.canonical.floordiv(terms, self._terms))

    def __mod__(self, other: Any) -> Any:
        terms = _operand(self, other)
        if terms is None:
            return _among_numbers(operator.mod, self, other)
        return _beside(self, other, self._scope.canonical.mod(self._terms, terms))

    def __rmod__(self, other: Any) -> Any:
        terms = _operand(self, other)
        if terms is None:
            return _among_numbers(operator.mod, other, self)
        return _beside(self, other, self._scope.canonical.mod(terms, self._terms))

    def __divmod__(self, other: Any) -> Any:
        if _operand(self, other) is None:
            return NotImplemented
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        if _operand(self, other) is None:
            return NotImplemented
        return other // self, other % self

    # Comparison

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other.__class__ is Dim:
            if self._owners and other._owners and self._owners != other._owners:  # type: ignore
                if not asked_by_us(_getframe(1)):  # tables of jitted functions keep sizes
                    _refuse_mixed(self, other)  # type: ignore
            if self._terms == other._terms and self._scope is other._scope:  # type: ignore
                return True
        elif other.__class__ is not int and not isinstance(other, Integral):
            return NotImplemented  # arrays define == themselves
        if asked_by_us(_getframe(1)):
            # Broadcasting compares every size with 1, and has one result for both answers.
            if _equal(self, other, other.__class__ is Dim or other != 1) is True:
                return True
            self._scope.doubted = self, other
            return False
        answer = _equal(self, other)
        if answer is None:
            refuse_ended(self, self._owners)
            self._scope.doubted = self, other
            difference = poly.subtract(self._terms, terms_beside(self, other))
            raise self._scope.undecided(f"{self} == {other}", difference, "==")
        return answer

    def __hash__(self) -> int:
        if self._hash == -1:
            scope = self._scope  # equal sizes have one hash, however they are written
            self._hash = hash(scope) if scope.equates else hash(frozenset(self._terms.items()))
        return self._hash

    def __ge__(self, other: "Dim | int") -> bool:
        return _ordered(self, ">=", other)

    def __gt__(self, other: "Dim | int") -> bool:
        return _ordered(self, ">", other)

    def __le__(self, other: "Dim | int") -> bool:
        return _ordered(self, "<=", other)

    def __lt__(self, other: "Dim | int") -> bool:
        return _ordered(self, "<", other)

    def __bool__(self) -> bool:
        zero = self._scope.is_zero(self._terms)
        if zero is None:
            refuse_ended(self, self._owners)
            raise self._scope.undecided(f"{self} >= 1", poly.subtract(self._terms, ONE))
        return not zero

    def __index__(self) -> NoReturn:
        refuse_ended(self, self._owners)
        raise UndecidedDim(
            f"the size {self} is not known here",
            fix="compute with the size as it is, or leave it out of what needs a number "
            "(range, int, indexing, shapes of numpy arrays)",
        )

    __int__ = __index__

    # Structure

    @property
    def owners(self) -> "Owners":
        """The maps in which a user read it; none if Plait's code did."""
        return self._owners

    def owned(self, *owners: "Owner") -> "Dim":
        """Return the same size with these owners."""
        self = of_terms(self._terms, self._scope)
        self._owners = owners
        return self

    def substitute(self, sizes: "Mapping[str, int | Dim]") -> "int | Dim":
        """Return the size with ints or dims in place of names; names that are not given stay.

        Raises:
          ZeroDivisionError: a division by 0 at these sizes.
          TypeRule: some names stay, and the given dims are of another scope.
        """
        if all(sizes.get(s).__class__ is int for s in self.variables):
            return poly.evaluate(self._terms, sizes)  # type: ignore[arg-type]

        def variable(name: str) -> "int | Dim":
            return sizes[name] if name in sizes else of_terms(poly.symbol(name), self._scope)

        return poly.fold(self._terms, ARITHMETIC._replace(variable=variable))

    def fold(
        self,
        constant: Callable[[int], Any],
        variable: Callable[[str], Any],
        add: Callable[[Any, Any], Any],
        mul: Callable[[Any, Any], Any],
        floordiv: Callable[[Any, Any], Any],
        mod: Callable[[Any, Any], Any],
        maximum: Callable[[Any, Any], Any],
        minimum: Callable[[Any, Any], Any],
    ) -> Any:
        """Return the size rebuilt by these functions; `floordiv` and `mod` round to minus infinity.

        Within one call each variable, division and maximum is built once and then shared.
        """
        algebra = Algebra(constant, variable, add, mul, floordiv, mod, maximum, minimum)
        return poly.fold(self._terms, algebra)

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        refuse_ended(self, self._owners)
        raise UndecidedDim(
            f"the format {spec!r} needs a number, and the size {self} is not known here",
            fix="leave the format out, which shows the expression; plait.debug.print shows the "
            "number while the program runs",
        )

    def __repr__(self) -> str:
        if not self._text:  # memoised, since tables of sizes read it often
            self._text = poly.text(self._terms)
        return self._text

    def __reduce__(self) -> tuple[object, ...]:
        return _read_one, (repr(self), self._scope)

    def __copy__(self) -> "Dim":
        return self

    def __deepcopy__(self, memo: dict[Any, Any]) -> "Dim":
        return self


def of_terms(terms: Terms, scope: Scope) -> Any:
    """Return the size of these terms: a Dim, or an int if they are constant."""
    if scope.canonical.has_facts:
        terms = scope.canonical.reduced(terms)
    n = len(terms)
    if n == 0:
        return 0
    if n == 1 and () in terms:
        return terms[()]
    self = _new(Dim)
    self._terms, self._scope, self._hash, self._text, self._names = terms, scope, -1, "", None
    self._owners = ()
    return self


def _beside(self: Dim, other: Any, terms: Terms) -> Any:
    """Return the size of these terms, with the owners of the size and of the other operand."""
    out = of_terms(terms, self._scope)
    owners = self._owners
    if other.__class__ is Dim and other._owners != owners:
        owners = tuple(dict.fromkeys(owners + other._owners))
    if owners and out.__class__ is Dim:
        out._owners = owners
    return out


def _refuse_mixed(self: Dim, other: Dim) -> None:
    """Raise UnexpectedTracerError if one of two compared sizes belongs to a map that has ended, and
    the other does not."""
    for a, b in ((self, other), (other, self)):
        if not any(by.closed for by, _ in a._owners):
            refuse_ended(b, b._owners)


def _operand(self: Dim, other: Any) -> Terms | None:
    """Return the terms of the other operand; None if it is not a size."""
    kind = other.__class__
    if kind is int:
        return {(): other} if other else {}
    if kind is Dim:
        if other._scope is not self._scope:
            same_scope(self._scope, other._scope)
        return other._terms
    return poly.constant(int(other)) if isinstance(other, Integral) else None


def _among_numbers(f: Callable[[Any, Any], Any], left: object, right: object) -> Any:
    """Apply an operation to a size and a number that is not a size; the size becomes a number."""
    numbers = (Dim, int, float, complex, np.generic, np.ndarray)
    if not (isinstance(left, numbers) and isinstance(right, numbers)):
        return NotImplemented
    if f is operator.pow and isinstance(right, Integral):
        return NotImplemented  # a negative power of an integer
    return f(*[v.__plait_array__() if isinstance(v, Dim) else v for v in (left, right)])


def _equal(self: Dim, other: Any, matters: bool = True) -> bool | None:
    """Return whether two sizes are equal: always, never, or None."""
    if other.__class__ is Dim and other._scope is not self._scope:
        return False
    difference = poly.subtract(self._terms, terms_beside(self, other))
    return self._scope.is_zero(difference, matters=matters)


_DIFFERENCES: dict[str, Callable[[Terms, Terms], Terms]] = {
    ">=": poly.subtract,
    ">": lambda p, q: poly.subtract(poly.subtract(p, q), ONE),
    "<=": lambda p, q: poly.subtract(q, p),
    "<": lambda p, q: poly.subtract(poly.subtract(q, p), ONE),
}
"""For each relation of p and q, the polynomial that is at least 0 exactly if it holds."""


def _ordered(self: Dim, relation: str, other: Any) -> bool:
    terms = _operand(self, other)
    if terms is None:
        return NotImplemented
    if other.__class__ is Dim and self._owners and other._owners and self._owners != other._owners:
        _refuse_mixed(self, other)
    difference = _DIFFERENCES[relation](self._terms, terms)
    answer = self._scope.at_least_zero(difference)
    if answer is None:
        refuse_ended(self, self._owners)
        raise self._scope.undecided(f"{self} {relation} {other}", difference)
    return answer


# Functions of ints and dims


def symbolic_dims(text: str, scope: Scope | None = None) -> "tuple[Dim | int, ...]":
    """Return the sizes that a text describes, separated by commas.

    Args:
      text: such as "b, 2*b + 1, floordiv(b, 3), mod(b, 8), max(a, b), 4"; `//`, `%` and `**` too.
      scope: constraints on the names; by default, names are sizes of at least 1.

    Raises:
      ProgramError: a text that cannot be read.

    Example:
      >>> symbolic_dims("b, b*4 // 2, (a + b) % 8")
      (b, 2*b, mod(a + b, 8))
    """
    scope = _EVERYWHERE if scope is None else scope
    return tuple(of_terms(p, scope) for p in read_sizes(text, scope.canonical.algebra))


def _read_one(text: str, scope: Scope) -> "Dim | int":
    return symbolic_dims(text, scope)[0]


def max_dim(first: "Dim | int", *others: "Dim | int") -> "Dim | int":
    """Return the largest of several sizes, as a size; Python's `max` would have to decide it."""
    return _extreme(first, others, max, lambda c: c.maximum)


def min_dim(first: "Dim | int", *others: "Dim | int") -> "Dim | int":
    """Return the smallest of several sizes, as a size; Python's `min` would have to decide it."""
    return _extreme(first, others, min, lambda c: c.minimum)


def _extreme(first: Any, others: tuple, of_ints: Callable, method: Callable) -> Any:
    sizes = (first, *others)
    dims = [d for d in sizes if d.__class__ is Dim]
    if not dims:
        return of_ints(operator.index(d) for d in sizes)
    scope = dims[0]._scope
    out = of_terms(method(scope.canonical)([terms_beside(dims[0], d) for d in sizes]), scope)
    owners = tuple(dict.fromkeys([o for d in dims for o in d._owners]))
    return out.owned(*owners) if owners and out.__class__ is Dim else out


def terms_beside(self: Dim, other: Any) -> Terms:
    """Return the terms of a size that is used together with a Dim, in its scope."""
    terms = _operand(self, other)
    if terms is None:
        raise ShapeError(f"{other!r} is not a size", fix="sizes are ints and Dims")
    return terms


ARITHMETIC = Algebra(
    constant=int,
    variable=str,
    add=operator.add,
    mul=operator.mul,
    floordiv=operator.floordiv,
    mod=operator.mod,
    maximum=max_dim,
    minimum=min_dim,
)
"""Sizes as ints and dims."""
