"""Loops: while_loop, fori_loop, scan, map.

Invariant: the carry of a loop keeps its structure and types from turn to turn.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from .._base.argument_names import names_of_arguments, names_of_value
from .._base.config import config
from .._base.errors import (
    ArgumentError,
    AxisError,
    ConcretizationError,
    OperandTypeError,
    ShapeError,
    TreeMismatch,
)
from .._base.source import defined_at
from .._base.tracebacks import border
from .._base.wrapping import name_of, wraps
from .._core.array import as_value
from .._core.elements import advice_for_elements
from .._core.interpreter import Tracer, Value, admitted_sizes, current, opened
from .._core.ir import Program
from .._core.lending import Lending, lending_rows
from .._core.same_parts import alike, as_one, parts_that_may_be_one
from .._core.staging import Apart, admitted_leaves
from .._jit.caches import kept as traces_of
from .._jit.found_programs import shared_program
from .._jit.tracing import Traced, trace
from .._ops.collective import varied
from .._ops.control_flow import scan as scan_p
from .._ops.control_flow import while_ as while_p
from .._ops.mapping import map_axes as map_p
from .._ops.mapping import row
from .._ops.shape import concatenate, convert, materialise_at_ground, normal_axis, slice_in_dim
from .._ops.static_arguments import fixed
from .._types.avals import BOOL, FLOATING, INTEGER, Aval, promote
from .._types.dims import Dim, decide_ge, is_symbolic, max_dim, min_dim
from ..tree import TreeDef, flatten, in_words, key_paths, spread
from ..typing import Array, ArrayLike
from . import stepping
from .agreement import Loop, fixed_first, passed_on, same_carry, steady
from .inspectable_stage import InspectableStage

Carry = TypeVar("Carry")
X = TypeVar("X")
Y = TypeVar("Y")


@overload
def while_loop(
    cond_fun: Callable[[Array], Any],
    body_fun: Callable[[Array], Any],
    init_val: complex,
    *,
    max_steps: int | None = ...,
) -> Array: ...
@overload
def while_loop(
    cond_fun: Callable[[Carry], Any],
    body_fun: Callable[[Carry], Carry],
    init_val: Carry,
    *,
    max_steps: int | None = ...,
) -> Carry: ...
@border
def while_loop(
    cond_fun: Callable[[Carry], Any],
    body_fun: Callable[[Carry], Carry],
    init_val: Carry,
    *,
    max_steps: int | None = None,
) -> Carry:
    """Apply `body_fun` to the carry while `cond_fun` returns true for it.

    Args:
      cond_fun: carry -> a boolean without axes.
      body_fun: carry -> carry, of the same structure, shapes and dtypes.
      init_val: a tree of arrays.
      max_steps: the loop ends after that many turns, even if `cond_fun` is still true (call it to
        check the result).  A loop with this bound supports reverse mode, which keeps few of the
        carries and recomputes the others.

    Raises TreeMismatch or TypeRule if the carry changes.

    >>> import plait
    >>> plait.lax.while_loop(lambda x: x < 100, lambda x: x * 2, 1)
    Array(128, dtype=int32, weak_type=True)
    """
    max_steps = _bound(max_steps, "while_loop")
    for f in (cond_fun, body_fun):
        expect_function(f, "while_loop")
    return _while(cond_fun, body_fun, init_val, max_steps, Loop("while_loop", body_fun))


def _while(
    cond_fun: Callable[..., Any],
    body_fun: Callable[..., Any],
    init_val: Any,
    max_steps: int | None,
    loop: Loop,
) -> Any:
    """Do as `while_loop`, for a `loop` that messages speak of."""
    if not config.jit:
        out = stepping.while_loop(cond_fun, body_fun, init_val, max_steps)
        if out is not NotImplemented:
            return out
    leaves, tree = flatten(init_val)
    carry = admitted_leaves(leaves, init_val, lambda: names_of_value("init_val"))
    body: Any = None
    one: Any = ()

    def step(values: list) -> tuple[Program, Sequence[Aval]]:
        nonlocal body, one
        args = (tree.unflatten(values),)
        keep = traces_of(body_fun)
        traced = trace(body_fun, args, {}, loop.does, keep)
        again = lambda: trace(body_fun, args, {}, loop.does, keep, same=False)  # noqa: E731
        body, one = _turn(traced, again, tree, values)
        same_carry(loop, tree, body.tree)
        return body.program, body.program.out_avals

    carry, program = steady(loop, carry, step, init_val)
    test = trace(
        cond_fun, (tree.unflatten(carry),), {}, loop.does, traces_of(cond_fun), same=bool(one)
    )
    outs = test.program.out_avals
    apart, around = outs[0].vma if outs else frozenset(), current()
    if apart and not (isinstance(around, Apart) and apart <= around.axes):
        init = tree.unflatten([varied(x, apart) for x in carry])
        with opened(Apart(apart, around)):  # the number of turns differs between devices
            return _while(cond_fun, body_fun, init, max_steps, loop)
    if len(outs) != 1 or outs[0].shape or outs[0].dtype != BOOL:
        raise ShapeError(
            f"cond_fun of while_loop must return one boolean without axes, not {outs}",
            fix="compare the counter, or reduce with .any() or .all()",
        )
    # Parts that the body returns unchanged are constants of the loop, whatever its predicate is.
    k, n = len(test.captured), len(body.captured)
    fixed = [i == n + j for j, i in enumerate(passed_on([program]))]
    if all(fixed):
        fixed = [False] * len(fixed)  # nothing changes: the loop ends at once, or never
    stay = [x for x, f in zip(carry, fixed) if f]
    asked = test.program
    if stay:
        asked, program = fixed_first(asked, k, fixed, False), fixed_first(program, n, fixed, True)
    results = iter(
        while_p.bind(
            *test.captured,
            *stay,
            *body.captured,
            *stay,
            *[x for x, f in zip(carry, fixed) if not f],
            cond=asked,
            body=program,
            cond_consts=k + len(stay),
            body_consts=n + len(stay),
            **({} if max_steps is None else {"max_steps": max_steps}),
        )
    )
    ends = [materialise_at_ground(x) if f else next(results) for x, f in zip(carry, fixed)]
    return tree.unflatten(as_one(tree, one, ends))


def _turn(
    traced: Traced, again: Callable[[], Traced], tree: TreeDef, carry: Sequence[Any]
) -> tuple[Traced, Any]:
    """Return a traced turn, and the parts of the carry that are one object and stay one.

    The turn takes one value for such parts, if it also returns one value for them; otherwise
    `again` traces it with a value for each.  The caller traces it first: loops in loops are deep,
    and Python's stack is not.
    """
    one = alike(tree, carry)
    ends = traced.program.outputs
    parts = zip(parts_that_may_be_one(tree), one)
    if len(ends) < len(carry) or any(ends[i] is not ends[j] for i, j in parts):
        one = ()
    if not one and alike(tree, carry):
        traced = again()
    return traced, one


def _bound(max_steps: Any, what: str) -> Any:
    """Return a bound of turns, or None; raise TypeRule if it is neither."""
    if max_steps is None or max_steps.__class__ is Dim:
        return max_steps
    if isinstance(max_steps, bool) or not hasattr(max_steps, "__index__"):
        raise OperandTypeError(
            f"max_steps of {what} is {max_steps!r}",
            fix="give a Python integer, or None for a loop without bound",
        )
    n = max_steps.__index__()
    if n < 0:
        raise ArgumentError(f"{what} cannot turn {n} times", fix="give a max_steps >= 0")
    return n


@overload
def scan(
    f: Callable[[Array, X], tuple[Any, Y]],
    init: complex,
    xs: X | None = ...,
    length: Any = ...,
    reverse: bool = ...,
    unroll: int | bool = ...,
) -> tuple[Array, Y]: ...
@overload
def scan(
    f: Callable[[Carry, X], tuple[Carry, Y]],
    init: Carry,
    xs: X | None = ...,
    length: Any = ...,
    reverse: bool = ...,
    unroll: int | bool = ...,
) -> tuple[Carry, Y]: ...
@border
def scan(
    f: Callable[[Carry, X], tuple[Carry, Y]],
    init: Carry,
    xs: X | None = None,
    length: Any = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Carry, Y]:
    """Apply `f(carry, x) -> (carry, y)` along the leading axis of xs.

    Args:
      f: the step; `y` may be any tree, also None.
      init: the first carry, a tree of arrays.
      xs: a tree of arrays with one size of leading axis; None if there is only `length`.  For a
        mutable reference (`new_ref`) the step gets a reference to its row.
      length: the number of steps; needed if `xs` has no arrays.
      reverse: go from the last row to the first; results stay in place.
      unroll: how many steps are written out in one turn of the compiled loop; True is all.

    Returns:
      (last carry, stacked ys).

    Raises AxisError, TreeMismatch or TypeRule if sizes differ or the carry changes.

    >>> import plait
    >>> plait.lax.scan(lambda c, x: (c + x, c), 0.0, plait.numpy.arange(3.0))
    (Array(3., dtype=float32), Array([0., 0., 1.], dtype=float32, weak_type=True))
    """
    expect_function(f, "scan")
    return _scan(f, init, xs, length, reverse, unroll, Loop("scan", f))


def _scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any,
    length: object,
    reverse: bool,
    unroll: int | bool,
    loop: Loop,
) -> Any:
    """Do as `scan`, for a `loop` that messages speak of."""
    leaves, tree = flatten(init)
    rows_flat, rows_tree = flatten(xs)
    lending = lending_rows(rows_flat, rows_tree)
    if lending is not None:
        return _scan_parts(lending, f, init, length, reverse, unroll)
    rows = admitted_leaves(rows_flat, xs, lambda: names_of_value("xs"))
    length = _length(rows, length, xs)
    if not config.jit:
        out = stepping.scan(f, init, xs, length, reverse)
        if out is not NotImplemented:
            return out
    carry = admitted_leaves(leaves, init, lambda: names_of_value("init"))
    n = len(carry)
    for i, r in enumerate(rows):
        said = r.aval.division
        if said is not None and said.entries(r.aval.ndim)[0]:
            raise AxisError(
                f"scan goes along the leading axis of xs{key_paths(xs)[i]}, of type {r.aval!r}, "
                "which is divided",
                fix="bring its rows together first, by plait.sharding.reshard(xs, P(None, ...)); "
                "vmap goes along an axis that is divided",
            )
    row_avals = [row(r.aval, 0) for r in rows]
    traced: Any = None
    one: Any = ()

    def step(values: list) -> tuple[Program, Sequence[Aval]]:
        nonlocal traced, one
        avals = (*(v.aval for v in values), *row_avals)
        args = tree.unflatten(values), rows_tree.unflatten(rows)
        keep = traces_of(f)
        turn = trace(f, args, {}, loop.does, keep, avals=avals)
        again = lambda: trace(f, args, {}, loop.does, keep, avals=avals, same=False)  # noqa: E731
        traced, one = _turn(turn, again, tree, values)
        _step_result(loop, traced.tree, tree)
        return traced.program, traced.program.out_avals[:n]

    carry, program = steady(loop, carry, step, init)
    turns = length if unroll is True and length.__class__ is int else int(unroll) or 1
    if not isinstance(turns, int) or turns < 1:
        raise OperandTypeError(f"unroll must be a positive integer or a boolean, not {unroll!r}")
    outs = scan_p.bind(
        *traced.captured,
        *carry,
        *rows,
        body=program,
        consts=len(traced.captured),
        carry=n,
        length=length,
        reverse=bool(reverse),
        unroll=turns,
    )
    return traced.tree.unflatten([*as_one(tree, one, outs[:n]), *outs[n:]])


def _scan_parts(lending: Lending, f: Callable[..., Any], init: Any, *how: Any) -> tuple[Any, Any]:
    """Scan over rows with handles among them: each step gets a handle for its row."""

    @wraps(f)
    def step(carry: Value | None, x: Value | dict[str, Any]) -> Any:
        x, parts = lending.lent(x)
        out = f(carry, x)
        ends = lending.returned(parts, out)
        # `scan` itself refuses a result that is not a pair.
        return (out[0], (out[1], ends)) if isinstance(out, tuple) and len(out) == 2 else out

    with lending:
        carry, (ys, ends) = scan(step, init, lending.plain, *how)
    lending.restore(ends)
    return carry, ys


def _length(rows: list, length: Any, xs: Any = None) -> Any:
    for r in rows:
        if not r.aval.ndim:
            raise AxisError(
                "scan: xs has a value without axes, which has no rows",
                fix="close over it, or carry it, instead",
            )
    sizes = [r.aval.shape[0] for r in rows]
    if length is not None:
        is_size = length.__class__ is Dim
        length = admitted_sizes(length) if is_size else fixed("scan", "length", length)
        sizes.append(length)
    if not sizes:
        raise AxisError("scan has neither xs nor length", fix="pass length=n")
    if any(s != sizes[0] for s in sizes):
        told = [f"xs{p} has {n}" for p, n in zip(key_paths(xs), sizes)]
        told += [f"length is {length!r}"] * (length is not None)
        raise AxisError(
            f"scan: the leading axes of xs (and length) differ: {', '.join(told)}",
            fix=advice_for_elements(xs)
            or "all xs must have one leading size, and length that size too",
        )
    return sizes[0]


def _step_result(loop: Loop, got: TreeDef, carry: TreeDef) -> None:
    out = got.unflatten([0] * got.num_leaves)
    if not isinstance(out, tuple) or len(out) != 2:
        raise TreeMismatch(
            f"the step of {loop.does}, `{name_of(loop.f)}`, must return a pair (carry, y), and "
            f"returned {in_words(got)}",
            where=defined_at(loop.f),
            fix="return (carry, y), with None for y if there is nothing to stack",
        )
    same_carry(loop, carry, flatten(out[0])[1])


def _floats_between(start: Value, stop: Value) -> int | None:
    """Return how many floats `start`, `start + 1`, ... are less than `stop`; None if that is
    unknown here."""
    try:
        low, high = (float((v.concrete() if isinstance(v, Tracer) else v).item())
                     for v in (start, stop))  # fmt: skip
    except ConcretizationError:
        return None
    return max(math.ceil(high - low), 0) if math.isfinite(high - low) else None


@overload
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, Array], Any],
    init_val: complex,
    *,
    unroll: int | bool | None = ...,
    max_steps: int | None = ...,
) -> Array: ...
@overload
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, Carry], Carry],
    init_val: Carry,
    *,
    unroll: int | bool | None = ...,
    max_steps: int | None = ...,
) -> Carry: ...
@border
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Any, Carry], Carry],
    init_val: Carry,
    *,
    unroll: int | bool | None = None,
    max_steps: int | None = None,
) -> Carry:
    """Compute `for i in range(lower, upper): x = body_fun(i, x)`, and return the last `x`.

    Bounds that are Python integers or symbolic sizes make a `scan`, which can be differentiated
    in reverse; others make a `while_loop`, which can be if it has `max_steps`.

    Args:
      lower, upper: integers without axes; or floats, counted up by one from the first while less
        than the last.
      body_fun: (i, carry) -> carry.
      init_val: a tree of arrays.
      unroll: as for `scan`; with static bounds only.
      max_steps: the most turns.

    Raises ArgumentError if `body_fun` does not take (i, carry), or changes the type of the carry,
    and TreeMismatch if it changes the structure.

    >>> import plait
    >>> plait.lax.fori_loop(0, 5, lambda i, x: x + i, 0)
    Array(10, dtype=int32, weak_type=True)
    """
    max_steps = _bound(max_steps, "fori_loop")
    static = all(
        b.__class__ is int or hasattr(b, "__index__") and not isinstance(b, Value | np.ndarray)
        for b in (lower, upper)
    )
    expect_function(body_fun, "fori_loop")

    def turn(ix: tuple[Any, ...], _: object) -> Any:
        i, x = ix
        return (i + 1, body_fun(i, x)), None

    turn.__wrapped__ = body_fun  # type: ignore[attr-defined]  # messages name the user's function
    if static:
        ends: tuple[Any, Any] = lower, upper
        lo, hi = (admitted_sizes(b) if b.__class__ is Dim else b.__index__() for b in ends)
        turns = max_dim(hi - lo, 0)
        turns = turns if max_steps is None else min_dim(turns, max_steps)

        first, loop = (as_value(lo), init_val), Loop("fori_loop", body_fun, _without_counter)
        (_, out), _ = _scan(turn, first, None, turns, False, unroll or 1, loop)
        return out
    if unroll not in (None, 1, False):
        raise OperandTypeError(
            "fori_loop unrolls static bounds only", fix="pass Python integers as bounds"
        )
    start, stop = as_value(lower), as_value(upper)
    for v in (start, stop):
        if v.aval.ndim or v.aval.category not in (INTEGER, FLOATING):
            raise OperandTypeError(
                f"fori_loop: a bound is {v.aval!r}", fix="give real numbers without axes as bounds"
            )
    dtype, weak = promote([start.aval, stop.aval])
    start, stop = (convert(b, dtype, weak and dtype.kind == "f") for b in (start, stop))
    turns = _floats_between(start, stop) if dtype.kind == "f" and max_steps is None else None
    if turns is not None:
        loop = Loop("fori_loop", body_fun, _without_counter)
        return _scan(turn, (start, init_val), None, turns, False, 1, loop)[0][1]

    def body(s: tuple[Any, ...]) -> Any:
        return s[0] + 1, s[1], body_fun(s[0], s[2])

    body.__wrapped__ = body_fun  # type: ignore[attr-defined]
    loop = Loop("fori_loop", body_fun, _without_bounds)
    _, _, out = _while(lambda s: s[0] < s[1], body, (start, stop, init_val), max_steps, loop)
    return out


def expect_function(f: object, does: str) -> None:
    """Raise ArgumentError if the step of a loop cannot be called.

    The other arguments may be wrong as well, and their errors would hide this one.
    """
    if not callable(f):
        raise ArgumentError(f"{does}: {f!r} is not a function", fix="pass what can be called")


def _without_counter(path: str) -> str:
    """Return the path in the user's carry, for one in (counter, carry)."""
    return path.removeprefix("[1]")


def _without_bounds(path: str) -> str:
    """Return the path in the user's carry, for one in (counter, bound, carry)."""
    return path.removeprefix("[2]")


@border
def map_(f: Callable[[X], Y], xs: X, *, batch_size: int | None = None) -> Y:
    """Apply `f` to every row of the tree xs, one after the other, and stack the results.

    Args:
      f: row -> a tree of arrays.
      xs: a tree of arrays, or references, with one size of leading axis.
      batch_size: the number of rows that run at once, if an installed plugin supports it; the
        remaining rows run together at the end.  0: all rows run at once.

    Raises AxisError if sizes differ, TypeRule for a negative batch_size.

    >>> import plait
    >>> plait.lax.map(lambda x: x * 2, plait.numpy.arange(3), batch_size=2).tolist()
    [0, 2, 4]
    """
    if not callable(f):
        raise ArgumentError(f"map: {f!r} is not a function", fix="pass what can be called")
    if batch_size is None:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    count = _count("map", "batch_size", batch_size)
    leaves, tree = flatten(xs)
    lending = lending_rows(leaves, tree)
    if lending is not None:
        return _map_parts(lending, f, batch_size)
    rows = admitted_leaves(leaves, xs, lambda: names_of_value("xs"))
    n = _length(rows, None, xs)
    if not count or decide_ge(count, n):
        return map_axes(f, parallel=True)(xs)
    number = n // count
    full = number * count
    blocks = [slice_in_dim(x, 0, full) for x in rows]
    blocks = [x.reshape((number, count, *x.aval.shape[1:])) for x in blocks]
    together = map_axes(f, parallel=True)
    out = scan(lambda _, x: (None, together(x)), None, tree.unflatten(blocks))[1]
    done, outs = flatten(out)
    done = [y.reshape((full, *y.shape[2:])) for y in map(as_value, done)]
    if is_symbolic((n,)) or full != n:
        rest = flatten(together(tree.unflatten([slice_in_dim(x, full, n) for x in rows])))[0]
        done = [concatenate([y, r], 0) for y, r in zip(done, rest)]
    return outs.unflatten(done)


def _map_parts(lending: Lending, f: Callable[..., Any], batch_size: Any) -> Any:
    """Do as `map_` for rows with handles among them."""

    @wraps(f)
    def step(x: Any) -> Any:
        x, parts = lending.lent(x)
        out = f(x)
        return out, lending.returned(parts, out)

    with lending:
        ys, ends = map_(step, lending.plain, batch_size=batch_size)
    lending.restore(ends)
    return ys


def _count(does: str, name: str, given: int) -> int:
    n = fixed(does, name, given)
    if n < 0:
        raise OperandTypeError(
            f"{does}: {name} must be an integer from 0, not {given!r}", fix=f"write {name}=1"
        )
    return n


@border
def map_axes(
    f: Callable[..., Any], in_axes: object = 0, out_axes: object = 0, *, parallel: bool = False
) -> Callable[..., Any]:
    """Return a function that applies `f` to every row along `in_axes`, one after the other.

    `in_axes` is a tree prefix; None stands for the whole array.  Unlike `map_`, it stays one
    operation under every transformation, which moves its axes along.  With `parallel`, all rows may
    run at once, if an installed plugin supports it.
    """

    def mapped(*args: ArrayLike) -> Any:
        leaves, tree = flatten(args)
        xs = admitted_leaves(leaves, args, lambda: names_of_arguments(f))
        is_axis = lambda a: a is None or isinstance(a, int)  # noqa: E731
        wanted = spread(in_axes, args, "in_axes", is_axis, "an axis or None")
        axes = [a if a is None else normal_axis(a, x.aval.ndim) for a, x in zip(wanted, xs)]
        sizes = {x.aval.shape[a] for a, x in zip(axes, xs) if a is not None}
        if len(sizes) != 1:
            raise AxisError(f"map_axes: the mapped axes have sizes {sorted(map(str, sizes))}")
        avals = tuple([row(x.aval, a) for x, a in zip(xs, axes)])
        # Python may read values that differ in no row.  A trace that depends on them is not kept.
        stage = InspectableStage(current(), "map_axes", f)
        keep = traces_of(f)
        traced = trace(f, args, {}, "map_axes", keep, stage, avals)
        if stage.looked:
            keep.clear()
        out = traced.tree.unflatten(traced.program.out_avals)
        wanted = spread(out_axes, out, "out_axes", lambda a: isinstance(a, int), "an axis")
        outs = [normal_axis(a, o.ndim + 1) for a, o in zip(wanted, traced.program.out_avals)]
        program, consts = (
            (traced.program, []) if current().staging else shared_program(traced.program)
        )
        given = [*consts, *traced.captured]
        return traced.tree.unflatten(
            map_p.bind(
                *given,
                *traced.values,
                program=program,
                in_axes=(*(None for _ in given), *axes),
                out_axes=tuple(outs),
                size=sizes.pop(),
                parallel=parallel,
            )
        )

    return mapped
