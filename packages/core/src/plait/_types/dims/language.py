"""The language of sizes and constraints, by examples.

    b, 2*b + 1, floordiv(b, 3), b // 3, mod(b, 8), b % 8, max(a, b), min(a, b, 4), b**2
    b >= 4, mod(b, 8) == 0, 1 <= a < b

Invariant: reading a text calls the functions of an algebra and nothing else; text that cannot be
read is an error that points at it.
"""

import re
from collections.abc import Callable
from functools import reduce
from typing import Any

from ..._base.errors import ProgramError
from .polynomial import Algebra, Atom, Monomial, Terms

_TOKEN = re.compile(r"\s*(\d+|[A-Za-z_]\w*|\*\*|//|[<>=]=|\S)", re.ASCII)
_RELATIONS = (">=", "<=", "==", ">", "<")
_PRECEDENCE = (("+", "-"), ("*", "//", "%"))
_FUNCTIONS = {"floordiv": "floordiv", "mod": "mod", "max": "maximum", "min": "minimum"}
_HIGHEST_POWER = 16
_DEEPEST = 60
"""The most parentheses, functions and signs inside each other."""
_LONGEST = 80
"""The most digits of a number."""
_MOST_TERMS, _LONGEST_ATOM, _HIGHEST_DEGREE, _GREATEST = 1000, 300, 64, 2**512
"""Limits of the polynomials that a text may describe.  Larger ones take minutes to compare."""

_FIX = (
    "sizes are written as in symbolic_dims('b, 2*b + 1, floordiv(b, 3), mod(b, 8), max(a, b), 4')\n"
    "and constraints as in Scope(constraints=['b >= 4', 'mod(b, 8) == 0'])"
)


def read_sizes(text: str, algebra: Algebra) -> list[Any]:
    """Return the sizes of a shape, separated by commas, with or without enclosing parentheses."""
    reader = _Reader(text, algebra)
    closing = reader.outer()
    sizes = []
    while reader.next not in ("", closing):
        sizes.append(reader.expression())
        if reader.next in ("", closing):
            break
        reader.take(",")
    if closing:
        reader.take(closing)
    reader.end()
    return sizes


def read_constraint(text: str, algebra: Algebra) -> list[tuple[Any, str, Any]]:
    """Return the relations of a constraint: one, or several for a chain such as 1 <= a < b."""
    reader = _Reader(text, algebra)
    left, found = reader.expression(), []
    while reader.next in _RELATIONS:
        relation = reader.take()
        right = reader.expression()
        found.append((left, relation, right))
        left = right
    if not found:
        raise reader.error("one of " + " ".join(_RELATIONS))
    reader.end()
    return found


def _is_number(token: str) -> bool:
    return token.isdigit() and token.isascii()


def _are_few(found: Terms) -> bool:
    """Return whether a polynomial is within the limits of texts."""
    return len(found) <= _MOST_TERMS and all(_is_small(m, c) for m, c in found.items())


def _is_small(m: Monomial, c: int) -> bool:
    """Return whether sizes with this monomial and coefficient are compared in reasonable time."""
    short = all(len(s) <= _LONGEST_ATOM for s in m if isinstance(s, Atom))
    return short and len(m) <= _HIGHEST_DEGREE and abs(c) < _GREATEST


class _Reader:
    """A reader of one text, from left to right."""

    def __init__(self, text: str, algebra: Algebra):
        if not isinstance(text, str):
            raise ProgramError(f"sizes are read from a text, not from {text!r}", fix=_FIX)
        self.text, self.algebra = text, algebra
        self.tokens = [(m[1], m.start(1)) for m in _TOKEN.finditer(text)] + [("", len(text))]
        self.at = self.depth = 0

    @property
    def next(self) -> str:
        return self.tokens[self.at][0]

    def take(self, token: str | None = None) -> str:
        """Take the next token, which must be the given one, and return it."""
        found = self.next
        if token is not None and found != token:
            raise self.error(repr(token))
        self.at += 1
        return found

    def end(self) -> None:
        if self.next:
            raise self.error("the end")

    def error(self, wanted: str) -> ProgramError:
        token, column = self.tokens[self.at]
        found = repr(token) if token else "the end"
        what = f"cannot read sizes: expected {wanted}, found {found}\n    {self.text}\n    "
        return ProgramError(what + " " * column + "^", fix=_FIX)

    def outer(self) -> str:
        """Take an opening parenthesis that closes at the end only; return the closing one, or
        ''."""
        if self.next not in ("(", "["):
            return ""
        depth = 0
        for i, (token, _) in enumerate(self.tokens):
            depth += (token in ("(", "[")) - (token in (")", "]"))
            if depth == 0:
                last = i == len(self.tokens) - 2
                return {"(": ")", "[": "]"}[self.take()] if last else ""
        return ""

    def expression(self, level: int = 0) -> Any:
        """Return a sum of products of powers; `level` is the precedence to start at."""
        if level == len(_PRECEDENCE):
            return self.deeper(self.signed)
        left = self.expression(level + 1)
        while self.next in _PRECEDENCE[level]:
            left = self.apply(self.take(), left, self.expression(level + 1))
        return left

    def apply(self, operator: str, left: Any, right: Any) -> Any:
        a = self.algebra
        if operator == "-":
            operator, right = "+", a.mul(a.constant(-1), right)
        f = {"+": a.add, "*": a.mul, "//": a.floordiv, "%": a.mod}[operator]
        return self.checked(f, left, right)

    def checked(self, f: Callable[..., Any], left: Any, right: Any) -> Any:
        """Return f(left, right).  Raises ProgramError for a division by 0 and a long result."""
        are_terms = left.__class__ is dict and right.__class__ is dict  # or operations of a module
        if are_terms and len(left) * len(right) > _MOST_TERMS * 10:
            raise self.error("a size of fewer terms")
        try:
            found = f(left, right)
        except ZeroDivisionError:
            raise self.error("a divisor other than 0") from None
        if are_terms and not _are_few(found):
            raise self.error("a size of fewer terms")
        return found

    def deeper(self, read: Callable[[], Any]) -> Any:
        """Return the result of a method, one level deeper.  Raises ProgramError if too deep."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error("fewer parentheses and signs")
        found = read()
        self.depth -= 1
        return found

    def signed(self) -> Any:
        if self.next == "-":
            self.take()
            return self.algebra.mul(self.algebra.constant(-1), self.deeper(self.signed))
        base = self.single()
        if self.next not in ("**", "^"):
            return base
        self.take()
        if not _is_number(self.next) or self.number() > _HIGHEST_POWER:
            raise self.error(f"an exponent of at most {_HIGHEST_POWER}")
        power = int(self.take())
        times = lambda x, y: self.checked(self.algebra.mul, x, y)  # noqa: E731
        return reduce(times, [base] * power, self.algebra.constant(1))

    def number(self) -> int:
        """Return the next token as a number."""
        if len(self.next) > _LONGEST:
            raise self.error(f"a number of at most {_LONGEST} digits")
        return int(self.next)

    def single(self) -> Any:
        token = self.next
        if _is_number(token):
            found = self.algebra.constant(self.number())
            self.take()
            return found
        if token in _FUNCTIONS:
            return self.call(self.take())
        if token.isidentifier() and token.isascii():
            return self.algebra.variable(self.take())
        if token != "(":
            raise self.error("a size")
        self.take()
        inside = self.expression()
        self.take(")")
        return inside

    def call(self, name: str) -> Any:
        f = getattr(self.algebra, _FUNCTIONS[name])
        self.take("(")
        args = [self.expression()]
        while self.next == "," and (name in ("max", "min") or len(args) < 2):
            self.take()
            args.append(self.expression())
        if len(args) < 2:
            raise self.error("','")
        self.take(")")
        return reduce(lambda x, y: self.checked(f, x, y), args)
