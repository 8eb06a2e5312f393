"""The sizes of one call over piles: their names, capacities and facts.

Invariant: each lengths vector has one name, numbered by its position among the arguments, so equal
calls have equal programs.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from plait import debug, lax
from plait.ext.errors import ShapeError, UndecidedDim
from plait.ext.sizes import Dim, max_dim, question_of
from plait.ext.trace import Tracer, Value
from plait.ext.values import Array, as_value
from plait.typing import ArrayLike

from .capacities import Size, examples_in, presence
from .facts import Facts, advice, both, deciding
from .lengths import are_examples

__all__ = ["Sizes"]

CHOOSE = (
    "or choose by numbers, pnp.where(pnp.asarray(x.shape[0]) > 1, ...); or map where lengths are "
    "known, outside of jit"
)


class Sizes:
    """The named sizes of one call, one for each vector of lengths.

    Args:
      depth: the number of enclosing calls over piles, whose sizes have other names.
      alike: {name: name of the vector that it is assumed equal to}.
      learned: facts about known lengths that decide questions of the function, by name.
    """

    def __init__(self, depth: int, alike: dict[str, str], learned: dict[str, Facts]):
        self.depth, self.alike, self.learned = depth, alike, learned
        self.declared: dict[str, Facts] = {}
        self.questions: Sequence[tuple[Dim, str]] = ()
        """The questions about sizes that were left open when the function was staged."""
        self.vectors: dict[str, Any] = {}
        self.sizes: dict[str, Size] = {}
        self.paths: dict[str, str] = {}

    def name_of(self, lengths: Value, size: Size, path: str) -> str:
        """Return the name of these lengths.  The same vector has one name, and so do known vectors
        that are equal."""
        name = next(
            (k for k, v in self.vectors.items() if v is lengths or _equal(v, lengths)), None
        )
        if name is None:
            name = f"n{self.depth}_{len(self.vectors)}"
            self.vectors[name], self.paths[name] = lengths, path
        name = self.alike.get(name, name)
        old = self.sizes.get(name, size)
        counts: Any = [max_dim(p, q) for p, q in zip(old.counts, size.counts, strict=True)]
        declared = both(self.declared.get(name, Facts()), Facts(size.least, size.multiple))
        self.declared[name] = declared
        facts = both(declared, self.learned.get(name, Facts()))
        rows, longest, squares = counts
        spare = old.spare or size.spare
        self.sizes[name] = Size(name, rows, longest, squares, "", *facts, spare)
        return name

    @property
    def table(self) -> tuple[Size, ...]:
        return tuple(self.sizes.values())

    @property
    def known(self) -> dict[str, np.ndarray]:
        """The lengths of examples that are known."""
        table = [s for s in self.table if _is_known(self.vectors[s.name])]
        count = examples_in(table, self.vectors)
        return {s.name: np.asarray(self.vectors[s.name])[:count] for s in table}

    def learn(self, e: UndecidedDim) -> bool:
        """Learn facts that answer the question of an error; return whether there are any."""
        question = question_of(e)
        found = None if question is None else deciding(question, self.table, self.known)
        for name, facts in (found or {}).items():
            self.learned[name] = both(self.learned.get(name, Facts()), facts)
        return found is not None

    def advice(self, e: UndecidedDim) -> str | None:
        """Return how to declare the fact that would answer the question of an error."""
        question = question_of(e)
        told = None if question is None else advice(question, self.table)
        return told and (
            f"if that holds for every example, declare it where the pile is made: "
            f"Pile(rows, lengths, {told}); {CHOOSE}"
        )

    @property
    def operands_by_name(self) -> dict[str, Any]:
        """The lengths of each size."""
        return {name: self.vectors[name] for name in self.sizes}

    @property
    def operands(self) -> list[Any]:
        return [as_value(self.vectors[name]) for name in self.sizes]

    @property
    def lacks_elements(self) -> bool:
        """True if elements of the batch may be missing: a capacity has room for more."""
        return any(s.spare for s in self.table)

    def marked(self) -> tuple[tuple[Size, ...], list[Any]]:
        """Return the table and the lengths, with an entry that marks the examples if elements may
        be missing."""
        if not self.lacks_elements:
            return self.table, self.operands
        return (*self.table, presence()), [*self.operands, self._presence()]

    def _presence(self) -> Any:
        """Return 1 for each example, and 0 for the empty elements behind the last one."""
        spare = {s.name: self.vectors[s.name] for s in self.table if s.spare}
        if all(map(_is_known, spare.values())):
            count = examples_in(self.table, spare)
            (size,) = {n.shape[0] for n in spare.values()}
            return as_value((np.arange(size) < count).astype(np.int32))
        return are_examples(list(spare.values())).astype("int32")

    def unify(self, names: tuple[str, str] | None) -> bool:
        """Treat two sizes as one, if one of their lengths is traced; return whether that was done.

        Raises ShapeError if both are known, since they differ."""
        if names is None or any(n not in self.sizes for n in names):
            return False
        first, second = sorted(names)
        a, b = self.vectors[first], self.vectors[second]
        if not isinstance(a, Tracer) and not isinstance(b, Tracer) or a.shape != b.shape:
            raise ShapeError(
                f"vmap: sizes of {self.paths[first]} and of {self.paths[second]} must be equal in "
                f"every example, and are {_told(a)} and {_told(b)}",
                fix="make the piles of the same lengths, or use each for itself",
            )
        self.alike[second] = first
        return True

    def check(self) -> None:
        """Check at run time that lengths assumed to be equal are equal."""
        for second, first in self.alike.items():
            a, b = as_value(self.vectors[first]), as_value(self.vectors[second])
            refuse = _Refusal(self.paths[first], self.paths[second])
            if self.depth:  # a cond with effects has no rule in an outer map, so the host compares
                debug.callback(refuse.unless_equal, a, b)
            else:
                lax.cond((a != b).any(), partial(debug.callback, refuse, a, b), lambda: None)


class _Refusal:
    """Callback for lengths that were assumed equal."""

    def __init__(self, first: str, second: str):
        self.first, self.second = first, second

    def unless_equal(self, a: Any, b: Any) -> None:
        if not np.array_equal(a, b):
            self(a, b)

    def __call__(self, a: Any, b: Any) -> None:
        raise ShapeError(
            f"vmap: sizes of {self.first} and of {self.second} must be equal in every example, and "
            f"are {_told(a)} and {_told(b)}",
            fix="make the piles of the same lengths, or use each for itself",
        )


def _told(lengths: ArrayLike) -> str:
    if isinstance(lengths, Tracer):
        return "traced"
    with np.printoptions(threshold=8):
        return str(np.asarray(lengths))


def _is_known(lengths: Value) -> bool:
    return isinstance(lengths, Array)


def _equal(a: Value, b: Value) -> bool:
    known = _is_known(a) and _is_known(b) and a.shape == b.shape
    return known and bool((np.asarray(a) == np.asarray(b)).all())
