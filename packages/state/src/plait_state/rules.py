"""References in branches and loops: written contents are results of every branch, or carried.

Invariant: a reference that is only read stays an operand, and is not carried.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from plait.ext.errors import MissingRule, user_line
from plait.ext.ir import Program, evaluate
from plait.ext.ops.control_flow import cond, scan, while_
from plait.ext.trace import Value, staged

from .discharge import Discharged, discharge_rules, discharged, expect_distinct, finished, held

__all__: list[str] = []


@discharge_rules.rule(cond)
def _cond(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Let every branch return what any of them writes: its own value, or the previous one."""
    branches = [discharged(b) for b in params["branches"]]
    written = sorted({i for b in branches for i in b.written})
    outs = cond.bind(
        *held(args), **{**params, "branches": tuple([_giving(b, written) for b in branches])}
    )
    return finished(args[1:], written, outs)


def _giving(branch: Discharged, written: Sequence[int]) -> Program:
    """Return a branch that returns all of these contents."""
    if list(branch.written) == list(written):
        return branch.program
    n = len(branch.written)

    def run(*xs: Any) -> list[Any]:
        outs = evaluate(branch.program, xs)
        new = dict(zip(branch.written, outs))
        return [*(new.get(i, xs[i]) for i in written), *outs[n:]]

    return staged(run, branch.program.in_avals, branch.program.name)


@discharge_rules.rule(scan)
def _scan(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Carry written contents in front of the other carries."""
    d, k = discharged(params["body"]), params["consts"]
    written, n = d.written, len(d.written)
    expect_distinct(args, written)
    kept = [i for i in range(k) if i not in written]

    def step(*xs: Any) -> list[Any]:
        own = dict(zip(kept, xs)) | dict(zip(written, xs[len(kept) :]))
        return evaluate(d.program, [*(own[i] for i in range(k)), *xs[k:]])

    types = d.program.in_avals
    order = [*kept, *written, *range(k, len(types))]
    body = staged(step, [types[i] for i in order], d.program.name)
    xs = held(args)
    new = {**params, "body": body, "consts": len(kept), "carry": params["carry"] + n}
    return finished(args, written, scan.bind(*[xs[i] for i in order], **new))


@discharge_rules.rule(while_)
def _while(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Carry the contents that the body writes in front; the predicate reads them there."""
    going, turn = discharged(params["cond"]), discharged(params["body"])
    a, b = params["cond_consts"], params["body_consts"]
    ours, theirs, init = args[:a], args[a : a + b], args[a + b :]
    if going.written:
        return _asked_in_turns(args, params)
    expect_distinct(theirs, turn.written)
    refs = [theirs[i] for i in turn.written]
    n = len(refs)
    carried = {id(r): i for i, r in enumerate(refs)}
    asked = [i for i, x in enumerate(ours) if id(x) not in carried]
    kept = [i for i in range(b) if i not in turn.written]

    def more(*xs: Any) -> list[Any]:
        new, own = xs[len(asked) :], dict(zip(asked, xs))
        front = [own[i] if i in own else new[carried[id(x)]] for i, x in enumerate(ours)]
        return evaluate(going.program, [*front, *new[n:]])

    def step(*xs: Any) -> list[Any]:
        own = dict(zip(kept, xs)) | dict(zip(turn.written, xs[len(kept) :]))
        return evaluate(turn.program, [*(own[i] for i in range(b)), *xs[len(kept) + n :]])

    of_cond, of_body = going.program.in_avals, turn.program.in_avals
    carry = [*(of_body[i] for i in turn.written), *of_body[b:]]
    outs = while_.bind(
        *held([ours[i] for i in asked]),
        *held([theirs[i] for i in kept]),
        *held(refs),
        *init,
        **{
            **params,
            "cond": staged(more, [*(of_cond[i] for i in asked), *carry], going.program.name),
            "body": staged(step, [*(of_body[i] for i in kept), *carry], turn.program.name),
            "cond_consts": len(asked),
            "body_consts": len(kept),
        },
    )
    return finished(theirs, turn.written, outs)


def _asked_in_turns(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """Apply a loop whose predicate writes.

    The predicate runs before the loop and at the end of each turn.  Its answer is carried in
    front, followed by the written contents.
    """
    going, turn = discharged(params["cond"]), discharged(params["body"])
    a, b = params["cond_consts"], params["body_consts"]
    ours, theirs, init = args[:a], args[a : a + b], args[a + b :]
    expect_distinct(ours, going.written)
    expect_distinct(theirs, turn.written)
    # With a bound, it would depend on the answer whether the predicate runs after the last turn.
    if "max_steps" in params:
        ref = ours[going.written[0]]
        raise MissingRule(
            f"the predicate of a loop with max_steps writes a reference, {ref!r}, made at "
            f"{user_line(ref.where)}",
            fix="write it in the body of the loop",
        )
    refs = {id(r): r for r in [*_at(ours, going.written), *_at(theirs, turn.written)]}
    n, fixed = len(refs), [x for x in (*ours, *theirs) if id(x) not in refs]

    def run(
        d: Discharged, operands: Sequence[Any], own: Iterator, now: dict, state: Sequence[Value]
    ) -> Any:
        """Return (results, contents of references afterwards)."""
        ins = [now[id(x)] if id(x) in refs else next(own) for x in operands]
        outs = evaluate(d.program, [*ins, *state])
        new = dict(zip([id(x) for x in _at(operands, d.written)], outs))
        return outs[len(d.written) :], now | new

    def asked(own: Iterator, now: dict, state: Sequence[Any]) -> list[Any]:
        (more,), now = run(going, ours, own, now, state)
        return [more, *(now[i] for i in refs), *state]

    def step(*xs: Any) -> list[Any]:
        k = len(fixed)
        now, state = dict(zip(refs, xs[k + 1 :])), xs[k + 1 + n :]
        split = sum(id(x) not in refs for x in ours)
        state, now = run(turn, theirs, iter(xs[split:k]), now, state)
        return asked(iter(xs[:split]), now, state)

    values = held(fixed)
    begin = asked(iter(values), {i: r.read() for i, r in refs.items()}, init)
    of_cond, of_body = going.program.in_avals, turn.program.in_avals
    types = [t for x, t in zip((*ours, *theirs), (*of_cond[:a], *of_body[:b])) if id(x) not in refs]
    carry = [*going.program.out_avals[-1:], *(r.content_type for r in refs.values()), *of_body[b:]]
    outs = while_.bind(
        *values,
        *begin,
        cond=staged(lambda more, *_: [more], carry, going.program.name),
        body=staged(step, [*types, *carry], turn.program.name),
        cond_consts=0,
        body_consts=len(fixed),
    )
    for ref, new in zip(refs.values(), outs[1:]):
        ref.write(new)
    return list(outs[1 + n :])


def _at(operands: Sequence[Any], places: Sequence[int]) -> list[Any]:
    return [operands[i] for i in places]
