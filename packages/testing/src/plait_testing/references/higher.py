"""Operations with programs in Python: calls, branches, loops.

Invariant: programs are evaluated under the interpreter at work, one equation after the other.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from plait.ext import Array, Aval, Literal, evaluate, staged
from plait.ext.ir import Primitive, Program
from plait.ext.ops import elementwise as el
from plait.ext.trace import Value
from plait.ext.types import INT32
from plait.typing import ArrayLike

from ..samples import Reference, Sample, ordinary

__all__ = ["REFERENCES", "as_numpy"]


def as_numpy(x: ArrayLike) -> np.ndarray:
    """Return a value, or a numpy array, as a numpy array."""
    return x.numpy() if isinstance(x, Array | Literal) else np.asarray(x)


def _cond(index: np.ndarray, *xs: ArrayLike, branches: tuple) -> list:
    return evaluate(branches[int(index)], xs)


def _while(
    *xs: ArrayLike,
    cond: Program,
    body: Program,
    cond_consts: int,
    body_consts: int,
    max_steps: int | None = None,
) -> list:
    k, turns = cond_consts + body_consts, 0
    carry = list(xs[k:])
    while turns != max_steps and as_numpy(evaluate(cond, [*xs[:cond_consts], *carry])[0]):
        carry, turns = evaluate(body, [*xs[cond_consts:k], *carry]), turns + 1
    return carry


def _scan(
    *xs: Any, body: Any, consts: int, carry: int, length: int, reverse: bool, unroll: int
) -> list:
    k = consts + carry
    state, rows = list(xs[consts:k]), xs[k:]
    ys: list[Any] = [[None] * length for _ in body.outputs[carry:]]
    for i in reversed(range(length)) if reverse else range(length):
        out = [as_numpy(o) for o in evaluate(body, [*xs[:consts], *state, *(r[i] for r in rows)])]
        state = out[:carry]
        for y, o in zip(ys, out[carry:]):
            y[i] = o
    types = body.out_avals[carry:]
    stacks = [np.stack(y) if y else np.zeros((0, *t.shape), t.dtype) for y, t in zip(ys, types)]
    return [*state, *stacks]


# ---- samples -------------------------------------------------------------------------------

_ROW, _COUNT = Aval((3,), np.float32), Aval((), INT32)


def _double(x: Value, y: Value) -> list:
    return [el.add.bind(el.mul.bind(x, Literal(2.0, x.aval)), y)]


def _one(count: Value) -> Any:
    return Literal(1, count.aval)


def _called(prim: Primitive) -> Iterator[Sample]:
    x = ordinary("float32", (3,))
    yield Sample((x, x[::-1].copy()), {"program": staged(_double, [_ROW, _ROW], "double")})


def _branched(prim: Primitive) -> Iterator[Sample]:
    branches = (
        staged(_double, [_ROW, _ROW], "double"),
        staged(lambda x, y: [el.sub.bind(x, y)], [_ROW, _ROW], "less"),
        staged(lambda x, y: [Literal(7.0, y.aval)], [_ROW, _ROW], "seven"),
    )
    x = ordinary("float32", (3,))
    for i in (1, 0, 2):
        yield Sample((np.int32(i), x, -2 * x), {"branches": branches})
    yield Sample((np.int32(0), x, x), {"branches": branches[:1]})


def _looped(prim: Primitive) -> Iterator[Sample]:
    test = staged(lambda n, i, x: [el.lt.bind(i, n)], [_COUNT, _COUNT, _ROW], "test")
    turn = lambda y, i, x: [el.add.bind(i, _one(i)), *_double(x, y)]  # noqa: E731
    body = staged(turn, [_ROW, _COUNT, _ROW], "turn")
    how = {"cond": test, "body": body, "cond_consts": 1, "body_consts": 1, "max_steps": None}
    x = ordinary("float32", (3,))
    for n, most in ((3, None), (0, None), (5, 2)):
        yield Sample((np.int32(n), x, np.int32(0), -x), {**how, "max_steps": most})


def _scanned(prim: Primitive) -> Iterator[Sample]:
    def turn(k: Value, c: Value, x: Value) -> list:
        y = el.add.bind(el.mul.bind(c, k), x)
        return [y, el.neg.bind(y), k]

    body = staged(turn, [_ROW, _ROW, _ROW], "turn")
    x = ordinary("float32", (3,))
    for length, reverse, unroll in ((4, False, 1), (4, True, 3), (0, False, 1), (1, True, 1)):
        rows = ordinary("float32", (length, 3), 2)
        how = {"consts": 1, "carry": 1, "length": length, "reverse": reverse, "unroll": unroll}
        yield Sample((x, x[::-1].copy(), rows), {"body": body, **how})


REFERENCES = {
    "core.call": Reference(lambda *xs, program: evaluate(program, xs), _called, 2),
    "core.cond": Reference(_cond, _branched, 2),
    "core.while": Reference(_while, _looped, 4, whole=True),
    "core.scan": Reference(_scan, _scanned, 4, whole=True),
}
"""The Reference of each primitive of the family."""
