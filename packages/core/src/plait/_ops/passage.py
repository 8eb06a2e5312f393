"""Pass through operations with programs, with further operands and further results.

Transformations that lift values pass by an operation's wiring.  Others observe what programs do:
they count, collect findings, or decide some values.  A rule of the table `runs` states how often an
operation runs each program; a `Passage` supplies the programs with further inputs and outputs.

Invariant: results of the operation are what its programs return.  Further inputs and outputs are
in front of a program's own.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from .._core.higher_order import Wiring
from .._core.interpreter import Operation
from .._core.ir import Program, evaluate
from .._core.staging import staged
from .._plugins.rules import RuleTable, variable
from .._types.avals import NOWHERE, Aval
from .control_flow import cond, scan, while_
from .mapping import map_axes

__all__ = ["Loop", "Passage", "Watched", "pass_through"]

runs_rules = RuleTable(
    "runs",
    owns=("core",),
    signature="(passage, args, params)",
    programs="(passage, args, params)",
    doc="the results of an operation with programs.  The rule applies it over programs of "
    "`passage`: `once` for one run, `choice` for alternatives, `turns` for runs in turn, "
    "`examples` for runs at once.",
)


class Watched(NamedTuple):
    """A program of an operation, with the further inputs and outputs of a passage in front."""

    program: Program
    operands: tuple[Any, ...] = ()
    """Values of its first inputs."""
    rows: tuple[Any, ...] = ()
    """Values of the inputs after them, with a leading axis: one row for each run."""
    width: int = 0
    """The number of further outputs."""
    note: Any = None
    """Static data of the passage about them."""


class Loop(NamedTuple):
    """The program of a loop: [*operands, *state, *rows, *inputs] -> [*state, *seen, *outputs]."""

    program: Program
    operands: tuple[Any, ...] = ()
    state: tuple[Any, ...] = ()
    """The values that the first turn starts from."""
    rows: tuple[Any, ...] = ()
    width: int = 0
    """The number of outputs `seen`, which are stacked."""
    note: Any = None


class Passage(Protocol):
    """A transformation that goes through an operation with programs.

    Rules of the table `runs` take each program from `once`, `choice`, `turns` or `examples`.  They
    give the results to `taken`, `taken_turns` or `taken_examples`, which return the operation's
    own.
    """

    picks: bool
    """True if it takes the further outputs of one run only: the first that `finds` is true for.
    Operations that run a program on several devices then agree on it, and call `taken_one`."""
    smooth: bool
    """True if further outputs are differentiated: an operation whose derivative rule leaves them
    out must compute them beside it."""

    def once(self, program: Program) -> Watched:
        """Return a program that runs once."""
        ...

    def choice(self, programs: Sequence[Program]) -> list[Watched]:
        """Return alternatives, whose operands and further outputs are alike: one of them runs."""
        ...

    def taken(self, watched: Watched, outs: Sequence[Any]) -> list[Any]:
        """Take the further outputs of one run."""
        ...

    def turns(self, program: Program, length: Any) -> Loop:
        """Return a program that runs `length` times in turn; None: any number of times."""
        ...

    def taken_turns(self, loop: Loop, state: Sequence[Any], seen: Sequence[Any]) -> None:
        """Take the last state of a loop, and its stacked outputs."""
        ...

    def examples(self, program: Program, count: Any, along: frozenset[str] = NOWHERE) -> Watched:
        """Return a program that runs `count` times, in any order; `along` are the axes of a mesh
        along which its rows vary."""
        ...

    def taken_examples(
        self,
        watched: Watched,
        outs: Sequence[Any],
        words: Callable[[int], str] | None = None,
        there: Any = None,
    ) -> list[Any]:
        """Take further outputs with an axis of runs in front; `words(number)` names a run.

        `there`, bool[runs], marks the runs that count; the further outputs of others are zeros.
        None: all count."""
        ...

    def finds(self, outs: Sequence[Any]) -> Any:
        """Return a bool, a value: whether a run has further outputs to take."""
        ...

    def taken_one(
        self, watched: Watched, at: Any, outs: Sequence[Any], words: Callable[[int], str]
    ) -> list[Any]:
        """Take the further outputs of run number `at`, the first that `finds` is true for; those of
        any run if there is none."""
        ...

    def sees(self, program: Program) -> bool:
        """Return whether there is anything to observe in a program."""
        ...

    def bare(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return parameters for programs that run without being observed."""
        ...

    def custom(self, prim: Operation, args: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        """Apply an operation with a custom rule."""
        ...

    def unruled(
        self, prim: Operation, args: Sequence[Any], params: dict[str, Any], fix: str
    ) -> Sequence[Any]:
        """Apply an operation that the table has no rule for, or raise MissingRule with the fix."""
        ...


def pass_through(
    passage: Passage, prim: Any, args: Sequence[Any], params: dict[str, Any]
) -> Sequence[Any]:
    """Apply an operation with programs under the current interpreter; return its results.

    The passage decides what to do if the table `runs` has no rule for it.
    """
    rule = runs_rules.find(prim)
    if rule is not None:
        return rule(passage, args, params)
    higher = prim.higher
    assert higher is not None
    if type(higher) is Wiring:
        inner = passage.once(params["program"])
        outs = prim.bind(*inner.operands, *args, **{**params, "program": inner.program})
        return passage.taken(inner, outs)
    if higher.custom:
        return passage.custom(prim, args, params)
    return passage.unruled(prim, args, params, f"@runs_rules.rule({variable(prim)})")


# ---- the rules of core -----------------------------------------------------------------------


@runs_rules.rule(cond)
def _(passage: Passage, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    forms = passage.choice(params["branches"])
    programs = tuple([b.program for b in forms])
    outs = cond.bind(args[0], *forms[0].operands, *args[1:], branches=programs)
    return passage.taken(forms[0], outs)


@runs_rules.rule(scan)
def _(passage: Passage, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    consts, carry = params["consts"], params["carry"]
    turn = passage.turns(params["body"], params["length"])
    k, s = consts + carry, len(turn.state)
    groups = [turn.operands, turn.state, turn.rows, args[:consts], args[consts:k], args[k:]]
    operands = [x for i in (0, 3, 1, 4, 2, 5) for x in groups[i]]
    p = turn.program
    ends = [s, s + turn.width, s + turn.width + carry, len(p.outputs)]
    body = Program(
        _rearranged(p.inputs, [len(g) for g in groups], (0, 3, 1, 4, 2, 5)),
        p.eqns,
        _rearranged(p.outputs, [s, turn.width, carry, ends[3] - ends[2]], (0, 2, 1, 3)),
        p.name,
        p.consts,
    )
    counts = {"consts": len(turn.operands) + consts, "carry": s + carry}
    outs = scan.bind(*operands, **{**params, "body": body, **counts})
    last = s + carry
    passage.taken_turns(turn, outs[:s], outs[last : last + turn.width])
    return [*outs[s:last], *outs[last + turn.width :]]


def _rearranged(items: Sequence[Any], widths: Sequence[int], order: Sequence[int]) -> list[Any]:
    """Return the items with their consecutive groups, of these widths, in another order."""
    starts = [sum(widths[:i]) for i in range(len(widths))]
    return [x for i in order for x in items[starts[i] : starts[i] + widths[i]]]


@runs_rules.rule(while_)
def _(passage: Passage, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Observe the body; a predicate with something to observe becomes a part of it."""
    a, b = params["cond_consts"], params["body_consts"]
    ours, theirs, init = list(args[:a]), list(args[a : a + b]), list(args[a + b :])
    asked, body = params["cond"], params["body"]
    asks = passage.sees(asked)
    if asks:
        first = passage.once(asked)
        going = passage.taken(first, evaluate(first.program, [*first.operands, *ours, *init]))
        body = _then_asked(asked, body, a, b)
        theirs, init, ours, a, b = [*ours, *theirs], [*going, *init], [], 0, a + b
    turn = passage.turns(body, None)
    k, s = len(turn.operands), len(turn.state)

    def more(*xs: Any) -> list[Any]:
        held = xs[a + s :]
        return [held[0]] if asks else evaluate(asked, [*xs[:a], *held])

    widths = [k, s, b, len(init)]
    p = turn.program
    inputs = _rearranged(p.inputs, widths, (0, 2, 1, 3))
    types = [x.aval for x in (*ours, *turn.state, *init)]
    outs = while_.bind(
        *(*ours, *turn.operands, *theirs, *turn.state, *init),
        **{
            **params,
            "cond": staged(more, types, asked.name),
            "body": Program(inputs, p.eqns, p.outputs, p.name, p.consts),
            "cond_consts": a,
            "body_consts": k + b,
        },
    )
    passage.taken_turns(turn, outs[:s], ())
    return list(outs[s + asks :])


def _then_asked(asked: Program, body: Program, a: int, b: int) -> Program:
    """Return the program of a turn, and of the predicate after it: constants of the predicate,
    those of the body, the predicate's last result, and the carry."""

    def run(*xs: Any) -> list[Any]:
        carry = evaluate(body, [*xs[a : a + b], *xs[a + b + 1 :]])
        return [*evaluate(asked, [*xs[:a], *carry]), *carry]

    types: list[Aval] = body.in_avals
    return staged(run, [*asked.in_avals[:a], *types[:b], *asked.out_avals, *types[b:]], body.name)


@runs_rules.rule(map_axes)
def _(passage: Passage, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    row = passage.examples(params["program"], params["size"])
    new = {
        **params,
        "program": row.program,
        "in_axes": (*(None for _ in row.operands), *(0 for _ in row.rows), *params["in_axes"]),
        "out_axes": (*(0,) * row.width, *params["out_axes"]),
    }
    return passage.taken_examples(row, map_axes.bind(*row.operands, *row.rows, *args, **new))
