"""Interpreters that observe operations, and go through those with programs.

A carrier replaces values.  An observer leaves them as they are, or decides some of them: it counts
operations, collects named values, draws samples.  It starts from a tree of values, and ends with a
tree of findings.  Core takes both through every operation with programs, as further operands and
further results (`plait._ops.passage`).

Invariant: an observer of a program is another object than that of the operation around it, and
they share no value of an interpreter.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from .._base.errors import ArgumentError, MissingRule, RuleLost
from .._base.source import warn
from .._core.array import as_value
from .._core.interpreter import Interpreter, Operation, current, open_under, opened, use
from .._core.ir import Eqn, Program, evaluate, programs_in
from .._core.staging import staged
from .._types.avals import NOWHERE
from ..tree import difference, flatten
from .passage import Loop, Watched, pass_through

__all__ = ["Observer", "Run"]


class Run(NamedTuple):
    """The way an operation runs one of its programs."""

    kind: str
    """"once", "choice" (one of several programs runs), "turns", or "examples" (in any order)."""
    count: Any
    """The number of runs; None where it depends on values."""


class Observer(Interpreter):
    """An interpreter that observes operations, also inside operations with programs.

    Subclasses define `see`, and the structure of their findings: `nothing`, `join`.  The values
    that they need are leaves of `given`, and findings are leaves of `found`.  Observers of programs
    are copies: other attributes are shared, so that a list collects entries of all programs.

    Args:
      given: a tree of values that observing needs: keys, values by name.
      of: the function being observed, for messages.

    Example:
      >>> import plait.numpy as pnp
      >>> from plait import ext, lax
      >>> class Count(ext.observers.Observer):
      ...     folds = True
      ...     def nothing(self):
      ...         return pnp.int32(0)
      ...     def join(self, found, more):
      ...         return found + more
      ...     def see(self, prim, args, params):
      ...         self.found = self.found + 1
      ...         return prim.bind(*args, **params)
      >>> with ext.opened(Count()) as count:
      ...     y = lax.while_loop(lambda x: x < 100.0, lambda x: x * 2.0 + 1.0, pnp.float32(1.0))
      >>> print(y, count.found)
      127.0 19
    """

    given: Any
    found: Any

    does = "observe"
    folds: bool = False
    """True if loops carry `found` from turn to turn.  Otherwise the trees of the turns are stacked,
    where their number is known."""
    picks = False
    smooth = True
    runs: tuple[Run, ...] = ()
    """The runs of the operations around the program under observation, the outermost first."""

    def __init__(self, given: Any = None, of: Callable[..., Any] | None = None):
        open_under(self, current())
        self.given, self.of = given, of
        self.found = self.nothing()

    # -- methods for subclasses ------------------------------------------------------------

    def see(self, prim: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply an operation without programs, or without anything to observe in them, under the
        parent; return its results as `prim.bind` does."""
        return prim.bind(*args, **params)

    def looks_at(self, prim: Operation, params: dict[str, Any]) -> bool:
        """Return whether to observe an operation without programs.  Operations whose programs have
        none of these are applied as they are."""
        return True

    def nothing(self) -> Any:
        """Return the tree of findings before anything is observed."""
        return {}

    def join(self, found: Any, more: Any) -> Any:
        """Return earlier findings together with those of a later part.

        Raises ArgumentError if both have a name.
        """
        for name in found.keys() & more.keys():
            raise ArgumentError(
                f"{self.does}: two values are named {name!r}", fix="give each a name of its own"
            )
        return {**found, **more}

    def stacked(self, found: Any, count: object) -> Any:
        """Return the findings of `count` runs, given their trees stacked along a leading axis."""
        return found

    def rows(self, given: object, program: Program, count: object) -> Any:
        """Return a tree with a leading axis, whose rows `count` runs of a program are given; None:
        each run is given the same.

        A loop of unknown length has no rows, and calls it with None: raise an error there if the
        runs need a row each.
        """
        return None

    def next(self, given: Any) -> tuple[Any, Any]:
        """Return (the tree for a turn of a loop, the tree for the turns after it), where their
        number is not known."""
        return given, given

    def enter(self, given: Any, run: Run) -> "Observer":
        """Return the observer of a program."""
        inner = copy.copy(self)
        open_under(inner, current())
        inner.given, inner.runs, inner.closed = given, (*self.runs, run), False
        inner.found = inner.nothing()
        return inner

    @property
    def times(self) -> int | None:
        """The number of times that the program under observation runs; None if it depends on
        values."""
        counts = [r.count for r in self.runs if r.kind != "choice"]
        total = 1
        for n in counts:
            if n is None:
                return None
            total = total * n
        return total

    # -- the interpreter -------------------------------------------------------------------

    def apply(self, prim: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Observe an operation."""
        assert self.parent is not None
        if prim.higher is None:
            if not self.looks_at(prim, params):
                return self.parent.apply(prim, args, params)
            with use(self.parent):
                return self.see(prim, args, params)
        if prim.higher.pending(params):
            args, params = prim.higher.settle(params, args)
        if not any(self.sees(p) for p in programs_in(params)):
            return self.parent.apply(prim, args, params)
        with use(self.parent):
            return pass_through(self, prim, args, params)

    def observed_equations(self, program: Program) -> Iterator[Eqn]:
        """Yield the equations of a program, and of those inside, that are observed."""
        for e in program.eqns:
            if e.prim.higher is not None:
                for inner in programs_in(e.params):
                    yield from self.observed_equations(inner)
            elif self.looks_at(e.prim, e.params):
                yield e

    def sees(self, program: Program) -> bool:
        """Return whether there is an operation to observe in a program."""
        return next(self.observed_equations(program), None) is not None

    # -- the passage -----------------------------------------------------------------------

    def once(self, program: Program) -> Watched:
        """Return the program with its given values and its findings."""
        return self._alone(program, Run("once", 1))

    def choice(self, programs: Sequence[Program]) -> list[Watched]:
        """Return programs that find trees of one structure.  Raises ArgumentError for others."""
        made = [self._alone(p, Run("choice", 1)) for p in programs]
        for b in made[1:]:
            self._alike(made[0].note, b.note, "one branch", "another")
        return made

    def taken(self, watched: Watched, outs: Sequence[Any]) -> list[Any]:
        """Join the findings of one run."""
        tree, _ = watched.note
        self.found = self.join(self.found, tree.unflatten(outs[: watched.width]))
        return list(outs[watched.width :])

    def examples(self, program: Program, count: Any, along: frozenset[str] = NOWHERE) -> Watched:
        """Return the program of one of several runs."""
        rows = self.rows(self.given, program, count)
        return self._alone(program, Run("examples", count), rows, along)

    def taken_examples(
        self,
        watched: Watched,
        outs: Sequence[Any],
        words: Callable[[int], str] | None = None,
        there: object = None,
    ) -> list[Any]:
        """Join the findings of several runs; those that do not count found zeros."""
        tree, count = watched.note
        found = tree.unflatten(outs[: watched.width])
        self.found = self.join(self.found, self.stacked(found, count))
        return list(outs[watched.width :])

    def finds(self, outs: Sequence[Any]) -> Any:
        """Return a bool, a value: whether a run has findings."""
        return as_value(True)

    def taken_one(
        self, watched: Watched, at: object, outs: Sequence[Any], words: Callable[[int], str]
    ) -> list[Any]:
        """Join the findings of one of several runs."""
        return self.taken(watched, outs)

    def turns(self, program: Program, length: Any) -> Loop:
        """Return the program of a turn."""
        run = Run("turns", length)
        if length is not None and not self.folds:
            w = self._alone(program, run, self.rows(self.given, program, length))
            return Loop(w.program, w.operands, (), w.rows, w.width, w.note)
        return self._folded(program, run)

    def taken_turns(self, loop: Loop, state: Sequence[Any], seen: Sequence[Any]) -> None:
        """Join findings that were carried or stacked."""
        tree, count = loop.note
        if count is None or self.folds:
            self.found = tree.unflatten(state)[1]
        else:
            found = tree.unflatten(seen)
            self.found = self.join(self.found, self.stacked(found, count))

    def bare(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters: their operations are applied unobserved."""
        return params

    def custom(self, prim: Any, args: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        """Apply an operation without its custom rule, which serves the original function only."""
        higher = prim.higher
        if not higher.hint:
            name = getattr(params.get("program"), "name", prim.name)
            warn(
                f"{self.does} lost the {higher.custom} rule of {name} ({prim})\n"
                f"  use the rule inside: {self.does} the function that the rule was used for",
                RuleLost,
            )
        prim, params = higher.erase(prim, params)
        return pass_through(self, prim, args, params)

    def unruled(
        self, prim: Operation, args: Sequence[Any], params: dict[str, Any], fix: str
    ) -> Sequence[Any]:
        """Raise MissingRule: the table `runs` has no rule for an operation."""
        raise MissingRule(
            f"{self.does}: the table 'runs' has no rule for {prim}, in which there is something to "
            "observe",
            fix=f"add one:  {fix}",
        )

    def _inside(self, program: Program, given: Any, run: Run, args: Sequence[Any]) -> Any:
        """Run a program under an observer of its own; return (its findings, its results)."""
        with opened(self.enter(given, run)) as inner:
            outs = evaluate(program, args)
        return inner.found, outs  # type: ignore[attr-defined]

    def _alone(
        self, program: Program, run: Run, rows: Any = None, along: frozenset[str] = NOWHERE
    ) -> Watched:
        """Return a program that takes values, or rows of them, and returns its findings."""
        given, kind = flatten(self.given if rows is None else rows)
        given = [as_value(x) for x in given]
        types = [x.aval for x in given]
        if rows is not None:
            types = [a.with_shape(a.shape[1:]).with_vma(a.vma | along) for a in types]
        trees: list[Any] = []
        n = len(given)

        def watched(*args: Any) -> list[Any]:
            found, outs = self._inside(program, kind.unflatten(args[:n]), run, args[n:])
            leaves, tree = flatten(found)
            values = [as_value(x) for x in leaves]
            trees.append((tree, values))
            return [*values, *outs]

        made = staged(watched, [*types, *program.in_avals], program.name)
        ((tree, values),) = trees
        some = tuple(given)
        note = tree, run.count
        operands, rows = (some, ()) if rows is None else ((), some)
        return Watched(made, operands, rows, len(values), note)

    def _folded(self, program: Program, run: Run) -> Loop:
        """Return the program of a turn that passes on `given` and `found`."""
        if run.count is None:
            self.rows(self.given, program, None)
        start, kind = flatten((self.given, self.found))
        start = [as_value(x) for x in start]
        types = [x.aval for x in start]
        s = len(start)

        def turn(*args: Any) -> list[Any]:
            given, found = kind.unflatten(args[:s])
            now, later = self.next(given)
            more, outs = self._inside(program, now, run, args[s:])
            leaves, tree = flatten((later, self.join(found, more)))
            self._alike((kind, None), (tree, None), "a loop at the start", "a turn")
            values = [as_value(x) for x in leaves]
            for x, t in zip(values, types, strict=True):
                if not x.aval.same_type(t):
                    raise ArgumentError(
                        f"{self.does}: a turn of a loop makes {x.aval!r} of {t!r}",
                        fix="return values of one type from nothing(), join() and next()",
                    )
            return [*values, *outs]

        made = staged(turn, [*types, *program.in_avals], program.name)
        return Loop(made, (), tuple(start), (), 0, (kind, run.count))

    def _alike(self, one: Any, other: Any, what: str, against: str) -> None:
        """Raise ArgumentError unless two structures are equal."""
        if one[0] != other[0]:
            a, b = (t.unflatten([0] * t.num_leaves) for t in (one[0], other[0]))
            raise ArgumentError(
                f"{self.does}: {what} and {against} find trees of different structure: "
                f"{difference(a, b)}",
                fix="let all find the same, or observe outside of them",
            )
