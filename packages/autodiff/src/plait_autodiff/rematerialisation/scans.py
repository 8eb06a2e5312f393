"""checkpoint_scan: scans that keep few of their carries.

Plain reverse mode keeps something of each of n turns; a step that is a checkpoint keeps the carry
of each.  Turns gathered in segments that are checkpoints keep the carry of each segment, and do
one segment again at a time: with about sqrt(n) turns in each, some 2 sqrt(n) carries are kept at
once; with halves of halves, one for each of log2(n) levels, and each turn is done again that often
(Griewank, "Achieving logarithmic growth of temporal and spatial complexity in reverse automatic
differentiation", 1992).

Invariant: values and derivatives are those of the plain scan; the size of the program grows with
the number of levels, not with the number of turns.
"""

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

import plait
from plait.ext.errors import ArgumentError, ShapeError, border
from plait.ext.ops.shape import concatenate, reshape, slice_in_dim
from plait.ext.sizes import Dim
from plait.ext.trace import kept
from plait.ext.tree import flatten
from plait.ext.values import as_value

from .checkpointing import checkpoint

Step = Callable[[Any, Any], tuple[Any, Any]]


@border
def checkpoint_scan(
    f: Step,
    init: Any,
    xs: Any = None,
    length: Any = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    schedule: str | int = "sqrt",
    policy: Callable[..., Any] | None = None,
) -> tuple[Any, Any]:
    """`lax.scan`, of which reverse mode keeps few carries and computes the others again.

    Args:
      f, init, xs, length, reverse, unroll: as for `lax.scan`.
      schedule: how many of the n carries are kept.  "sqrt": about 2 sqrt(n), for which each step
        is done twice more; "log": about 2 log2(n), for which each step is done log2(n) times
        more; a number k: every k-th, and k more while a segment is done again; 1 keeps all
        carries, and nothing else of the steps.
      policy: what of a step is kept while it is done again, as for `checkpoint`.

    Returns:
      (last carry, stacked ys).  What `f` reads of `xs`, and what it closes over, is kept whole.

    Raises TypeRule if there is no such schedule, or it needs a length that is not known.

    >>> import plait
    >>> f = lambda c, x: (plait.lax.sin(c) * x, c)
    >>> xs = plait.numpy.ones(100)
    >>> plait.grad(lambda c: plait.checkpoint_scan(f, c, xs, schedule="log")[0])(0.0)
    Array(1., dtype=float32)
    """
    leaves, tree = flatten(xs)
    rows = [as_value(x) for x in leaves]
    n = rows[0].aval.shape[0] if rows and rows[0].ndim else length
    fits = all(r.ndim and r.aval.shape[0] == n for r in rows) and (length is None or length == n)
    gathers = _gathers(schedule, n) and fits and n > 1
    # a function holds what was made of it: the next call finds it, and what is compiled for it
    made = kept(f) if f.__class__ is FunctionType else {}
    key = "schedule", gathers and (schedule, n, tree), policy, reverse, unroll
    run = made.get(key)
    if run is None:
        step = checkpoint(f, policy=policy, prevent_cse=False)  # in a loop nothing is found

        def turns(k: int) -> _Run:
            return lambda carry, rows: plait.lax.scan(
                step, carry, tree.unflatten(rows), k, reverse, unroll
            )

        run = made[key] = _gathered(turns, n, schedule, reverse) if gathers else step
    if gathers:
        return run(init, rows)
    return plait.lax.scan(run, init, xs, length, reverse, unroll)  # which says what does not fit


_Run = Callable[[Any, list], tuple[Any, Any]]
"""(carry, rows) -> (last carry, ys), for some number of rows."""


def _gathers(schedule: Any, n: Any) -> bool:
    """Whether the schedule puts turns together; TypeRule if it is none."""
    if isinstance(schedule, bool) or not (
        schedule in ("sqrt", "log") or (isinstance(schedule, int) and schedule > 0)
    ):
        raise ArgumentError(
            f"checkpoint_scan has no schedule {schedule!r}",
            fix="use 'sqrt', 'log', or a positive number of steps",
        )
    if schedule == 1 or n is None:
        return False
    if n.__class__ is Dim:
        raise ShapeError(
            f"checkpoint_scan with schedule {schedule!r} needs a length that is a number, not {n}",
            fix="write schedule=1, which keeps the carry of each step",
        )
    return True


def _gathered(turns: Callable[[int], _Run], n: int, schedule: Any, reverse: bool) -> _Run:
    """The run of `n` turns in segments, and what is left of them."""
    if schedule == "log":
        k = n // 2
        inner = _gathered(turns, k, schedule, reverse) if k > 1 else turns(k)
    else:
        k = min(n, math.isqrt(n - 1) + 1 if schedule == "sqrt" else schedule)
        inner = turns(k)
    count, left = divmod(n, k)
    segment = checkpoint(inner, prevent_cse=count == 1)
    rest = checkpoint(turns(left))

    def run(carry: Any, rows: list) -> tuple[Any, Any]:
        cut = left if reverse else n - left
        parts = [(_rows(x, 0, cut), _rows(x, cut, n)) for x in rows]
        first = [p[reverse] for p in parts]
        first = [reshape(x, (count, k, *x.aval.shape[1:])) for x in first]
        carry, ys = plait.lax.scan(segment, carry, first, count, reverse)
        ys = _each(lambda y: reshape(y, (count * k, *y.aval.shape[2:])), ys)
        if not left:
            return carry, ys
        carry, more = rest(carry, [p[not reverse] for p in parts])
        ends = (more, ys) if reverse else (ys, more)
        return carry, _each(lambda a, b: concatenate([a, b], 0), *ends)

    return run


def _rows(x: Any, start: int, stop: int) -> Any:
    return x if stop - start == x.aval.shape[0] else slice_in_dim(x, start, stop, axis=0)


def _each(f: Callable[..., Any], first: Any, *others: Any) -> Any:
    """`f` of the leaves of trees of one structure."""
    leaves, tree = flatten(first)
    return tree.unflatten([f(*vs) for vs in zip(leaves, *(flatten(o)[0] for o in others))])
