"""Constraints on the sizes of a mask: texts such as "n > 1", "mod(n, 8) == 0", "n >= m".

Invariant: sizes that break a constraint are refused, before the call if they are known and when the
program runs if they are traced.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

import plait.numpy as pnp
from plait.ext.errors import ArgumentError, ShapeError
from plait.ext.sizes import read_constraint
from plait.ext.trace import Tracer
from plait.ext.values import as_value

from .length_checks import hold_flag

__all__ = ["expect_constraints", "hold_constraints", "renamed"]


def expect_constraints(constraints: Any) -> tuple[str, ...]:
    """Return the constraints as a tuple; raise ArgumentError unless they are texts."""
    given = (constraints,) if isinstance(constraints, str) else constraints
    if not isinstance(given, Sequence) or not all(isinstance(c, str) for c in given):
        raise ArgumentError(
            f"mask: constraints must be texts, got {constraints!r}",
            fix='write constraints=["n > 1", "mod(n, 8) == 0"]',
        )
    return tuple(given)


def renamed(constraint: str, name_of: Callable[[str], str]) -> str:
    """Return a constraint with other names of sizes."""
    texts: Any = SimpleNamespace(
        constant=lambda c: str(c),
        variable=name_of,
        add=lambda a, b: f"({a} + {b})",
        mul=lambda a, b: f"{a}*{b}",
        floordiv=lambda a, b: f"floordiv({a}, {b})",
        mod=lambda a, b: f"mod({a}, {b})",
        maximum=lambda a, b: f"max({a}, {b})",
        minimum=lambda a, b: f"min({a}, {b})",
    )
    (first, relation, second), *more = read_constraint(constraint, texts)
    return " ".join([first, relation, second, *[f"{r} {q}" for _, r, q in more]])


_RELATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


def hold_constraints(constraints: Sequence[str], sizes: Mapping[str, Any]) -> None:
    """Refuse sizes, numbers by name, that break a constraint."""
    if not constraints:
        return
    known = {k: int(np.asarray(n)) for k, n in sizes.items() if not isinstance(n, Tracer)}
    values = {k: as_value(n) for k, n in sizes.items()}
    for c in constraints:
        used: list[str] = []
        renamed(c, lambda name, used=used: used.append(name) or name)
        names = dict.fromkeys(used)
        if all(name in known for name in names):
            if not _holds(c, known, max, min):
                told = ", ".join(f"{name} is {known[name]}" for name in names)
                raise ShapeError(
                    f"mask: constraints say {c!r}, and {told}",
                    fix="give sizes that satisfy the constraints",
                )
            continue
        flag = _holds(c, values, pnp.maximum, pnp.minimum)
        hold_flag(flag, [values[name] for name in names], _teller(c, list(names)))


def _teller(constraint: str, names: list[str]) -> Callable[..., str]:
    def told(*numbers: Any) -> str:
        each = ", ".join(f"{name} is {n}" for name, n in zip(names, numbers, strict=True))
        return f"mask: constraints say {constraint!r}, and {each}"

    return told


def _holds(constraint: str, sizes: Mapping[str, Any], most: Callable, least: Callable) -> Any:
    numbers: Any = SimpleNamespace(
        constant=int,
        variable=sizes.__getitem__,
        add=operator.add,
        mul=operator.mul,
        floordiv=operator.floordiv,
        mod=operator.mod,
        maximum=most,
        minimum=least,
    )
    found: Any = True
    for left, relation, right in read_constraint(constraint, numbers):
        found = _RELATIONS[relation](left, right) & found
    return found
