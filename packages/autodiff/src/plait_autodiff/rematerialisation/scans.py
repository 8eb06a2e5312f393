"""checkpoint_scan: scans that keep few of their carries.

Plain reverse mode keeps values of each of the n turns; if the step is a checkpoint, it keeps the
carry of each.  Here turns are grouped in segments that are checkpoints.  Reverse mode keeps the
carry of each segment and recomputes one segment at a time.  With about sqrt(n) turns in each, some
2 sqrt(n) carries are kept at once.  With repeated halving, one carry is kept for each of log2(n)
levels, and each turn is recomputed that often.  Source: Griewank, "Achieving logarithmic growth of
temporal and spatial complexity in reverse automatic differentiation", 1992.

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
from plait.ext.trace import Value, kept
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
    """Scan as `lax.scan` does, but keep few carries for reverse mode and recompute the others.

    Args:
      f, init, xs, length, reverse, unroll: as for `lax.scan`.
      schedule: how many of the n carries are kept.
        "sqrt": about 2 sqrt(n); each step is computed two more times.
        "log": about 2 log2(n); each step is computed log2(n) more times.
        A number k: every k-th, and k more while a segment is recomputed.  1 keeps all carries and
        no other values of the steps.
      policy: which values of a step are kept while it is recomputed, as for `checkpoint`.

    Returns:
      (last carry, stacked ys).  The `xs` that `f` reads and the values that it closes over are
      kept whole.

    Raises TypeRule if the schedule is invalid, or if it needs a length that is not known.

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
    # The function itself holds its traces, so that the next call reuses them and their compilation.
    made = kept(f) if f.__class__ is FunctionType else {}
    key = "schedule", gathers and (schedule, n, tree), policy, reverse, unroll
    run = made.get(key)
    if run is None:
        step = checkpoint(f, policy=policy, prevent_cse=False)  # a loop prevents merging

        def turns(k: int) -> _Run:
            return lambda carry, rows: plait.lax.scan(
                step, carry, tree.unflatten(rows), k, reverse, unroll
            )

        run = made[key] = _gathered(turns, n, schedule, reverse) if gathers else step
    if gathers:
        return run(init, rows)
    # If the lengths do not agree, `lax.scan` raises the error.
    return plait.lax.scan(run, init, xs, length, reverse, unroll)


_Run = Callable[[Any, list], tuple[Any, Any]]
"""(carry, rows) -> (last carry, ys), for some number of rows."""


def _gathers(schedule: Any, n: Any) -> bool:
    """Return whether the schedule groups turns; raise TypeRule if it is invalid."""
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
    """Return a run of `n` turns: segments of equal length, then the remaining turns."""
    if schedule == "log":
        k = n // 2
        inner = _gathered(turns, k, schedule, reverse) if k > 1 else turns(k)
    else:
        k = min(n, math.isqrt(n - 1) + 1 if schedule == "sqrt" else schedule)
        inner = turns(k)
    count, left = divmod(n, k)
    # The scan of a single segment is not a loop, so it does not prevent merging.
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


def _rows(x: Value, start: int, stop: int) -> Any:
    return x if stop - start == x.aval.shape[0] else slice_in_dim(x, start, stop, axis=0)


def _each(f: Callable[..., Any], first: Value | tuple[Any, ...] | None, *others: Any) -> Any:
    """Map `f` over the leaves of trees of one structure."""
    leaves, tree = flatten(first)
    return tree.unflatten([f(*vs) for vs in zip(leaves, *(flatten(o)[0] for o in others))])
