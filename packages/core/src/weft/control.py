"""Control flow as users say it: cond, switch, while_loop, fori_loop, scan, map.

Invariant: user functions are staged on the types of their arguments and kept as long as they
live; what they close over becomes operands; what a loop carries has one type from turn to turn.
"""

from collections.abc import Callable, Sequence
from typing import Any

from . import stepping
from .config import config
from .dims import Dim, max_dim, min_dim
from .errors import AxisError, TreeMismatch, TypeRule
from .interpreter import GROUND, Value
from .ir import Program, Var, evaluate
from .ops.elementwise import clamp, ne
from .ops.higher import cond as cond_p
from .ops.higher import scan as scan_p
from .ops.higher import while_ as while_p
from .ops.mapping import map_axes as map_p
from .ops.mapping import row
from .ops.shape import (
    concatenate,
    convert,
    fit,
    materialise_at_ground,
    moveaxis,
    normal_axis,
    slice_in_dim,
    stack,
)
from .staging import staged
from .tracing import kept as traces_of
from .tracing import trace
from .tree import TreeDef, children, difference, flatten, spread
from .types import BOOL, INT32, Aval, promote
from .values import Literal, as_value

# ---- branches ------------------------------------------------------------------------------


def switch(index: Any, branches: Sequence[Callable], *operands: Any) -> Any:
    """`branches[index](*operands)`, the index clamped to the number of branches.

    Args:
      index: an integer without axes.
      branches: functions that return the same structure and shapes; dtypes are promoted.
      operands: trees of arrays.

    Raises TreeMismatch or TypeRule if the branches disagree.

    >>> import weft as wf
    >>> wf.lax.switch(1, [lambda x: x, lambda x: x * 10], 2.0)
    Array(20., dtype=float32, weak_type=True)
    """
    if not branches:
        raise TypeRule("switch has no branches", fix="give at least one function")
    i = as_value(index)
    if i.aval.ndim or i.aval.dtype.kind not in "iub":
        raise TypeRule(
            f"the index of switch must be an integer without axes, not {i.aval!r}",
            fix="map over the elements to switch for each",
        )
    if i.aval.dtype.itemsize < 4:  # too narrow, perhaps, for the number of branches
        i = convert(i, INT32)
    if not config.jit:
        out = stepping.switch(i, branches, operands)
        if out is not NotImplemented:
            return out
    i = clamp.bind(Literal(0, i.aval), i, Literal(len(branches) - 1, i.aval))
    return _branches("switch", convert(i, INT32), branches, operands)


def cond(pred: Any, true_fun: Callable, false_fun: Callable, *operands: Any) -> Any:
    """`true_fun(*operands)` if `pred`, else `false_fun(*operands)`; only one of them is run.

    Args:
      pred: a boolean (or number, true if not zero) without axes.
      true_fun, false_fun: functions that return the same structure and shapes.
      operands: trees of arrays.

    Raises TreeMismatch or TypeRule if the branches disagree.

    >>> import weft as wf
    >>> wf.lax.cond(True, lambda x: x + 1, lambda x: x - 1, 1.0)
    Array(2., dtype=float32, weak_type=True)
    """
    for f in (true_fun, false_fun):
        if not callable(f):
            raise TypeRule(
                f"cond: {f!r} is no function",
                fix="write cond(pred, true_fun, false_fun, *operands)",
            )
    p = as_value(pred)
    if p.aval.ndim:
        raise TypeRule(
            f"the predicate of cond must have no axes, and is {p.aval!r}",
            fix="reduce it with .any() or .all(), or use weft.numpy.where",
        )
    if p.aval.dtype != BOOL:
        p = ne(p, 0)
    if not config.jit:
        out = stepping.switch(p, [false_fun, true_fun], operands)
        if out is not NotImplemented:
            return out
    return _branches("cond", convert(p, INT32), [false_fun, true_fun], operands)


def _branches(does: str, index: Any, functions: Sequence[Callable], operands: tuple) -> Any:
    traced = [trace(f, operands, {}, does, traces_of(f)) for f in functions]
    tree = traced[0].tree
    for t in traced[1:]:
        if t.tree != tree:
            a, b = (t.tree.unflatten([0] * t.tree.num_leaves) for t in (traced[0], t))
            raise TreeMismatch(
                f"the branches of {does} return different structures: {difference(a, b)}",
                fix=f"make all of them return {tree}",
            )
    programs, captured = _aligned([(t.program, t.captured) for t in traced])
    want = [_common(does, outs) for outs in zip(*[p.out_avals for p in programs])]
    programs = [_recast(p, want) for p in programs]
    outs = cond_p.bind(index, *captured, *traced[0].values, branches=tuple(programs))
    return tree.unflatten(outs)


def _common(does: str, avals: Sequence[Aval]) -> Aval:
    """The type that results of all branches are brought to."""
    if len({a.shape for a in avals}) > 1:
        raise TypeRule(
            f"the branches of {does} return different shapes: {list(avals)}",
            fix="make them return arrays of one shape",
        )
    dtype, weak = promote(avals)
    return Aval(avals[0].shape, dtype, weak and all(a.weak_type for a in avals))


def _recast(program: Program, want: Sequence[Aval]) -> Program:
    """The program with its results brought to these types."""
    if all(o is w for o, w in zip(program.out_avals, want)):
        return program
    return staged(
        lambda *xs: [fit(o, w) for o, w in zip(evaluate(program, xs), want)],
        program.in_avals,
        program.name,
    )


def _aligned(parts: Sequence[tuple[Program, list]]) -> tuple[list[Program], list]:
    """Programs that capture different values, made to take all of them."""
    every = {id(c): c for _, captured in parts for c in captured}
    out: list[Program] = []
    for program, captured in parts:
        if list(every) == [id(c) for c in captured]:
            out.append(program)
            continue
        mine = dict(zip(map(id, captured), program.inputs))
        front = [mine[k] if k in mine else _unused(c.aval) for k, c in every.items()]
        out.append(program.with_inputs([*front, *program.inputs[len(captured) :]]))
    return out, list(every.values())


def _unused(aval: Aval) -> Var:
    v = Var()
    v.by, v.aval, v.where = GROUND, aval, None
    return v


# ---- loops ---------------------------------------------------------------------------------


def _steady(
    does: str, carry: list, step: Callable[[list], tuple[Program, Sequence[Aval]]], paths: Any
) -> tuple[list, Program]:
    """(carry, program): what is carried has the type that the step returns.

    A weak carry (a Python number) takes the dtype that the step gives it; that needs another
    trace only if the dtype, not mere weakness, differs.  Other results are brought to the type
    of the carry if that loses nothing.
    """
    rounds = 0
    while True:
        program, outs = step(carry)
        new = [_settled(x, o) for x, o in zip(carry, outs, strict=True)]
        rounds += 1
        if rounds == 4 or all(n.aval.dtype == x.aval.dtype for n, x in zip(new, carry)):
            break
        carry = new
    want = [x.aval if o.same_type(x.aval) else x.aval.strong() for x, o in zip(new, outs)]
    for i, (o, w) in enumerate(zip(outs, want)):
        loses = o.category > w.category or not (o.weak_type or o.dtype == w.dtype)
        if o.shape != w.shape or (o.dtype != w.dtype and loses):
            raise TypeRule(
                f"what {does} carries must keep its type: {paths()[i] or 'the carry'} comes in as "
                f"{carry[i].aval!r} and goes out as {o!r}",
                fix=f"start with that type, or convert in the step: .astype({w.dtype.name!r})",
            )
    rest = program.out_avals[len(want) :]
    keep = [o if o.same_type(w) else w for o, w in zip(outs, want)]
    return carry, _recast(program, [*keep, *rest])


def _settled(x: Any, out: Aval) -> Any:
    a = x.aval
    if a.weak_type and a.shape == out.shape and a.dtype != out.dtype:
        if out.category >= a.category and not (out.weak_type and out.category == a.category):
            return fit(x, Aval(a.shape, out.dtype, out.weak_type))
    return x


def while_loop(
    cond_fun: Callable, body_fun: Callable, init_val: Any, *, max_steps: int | None = None
) -> Any:
    """Apply `body_fun` to the carry while `cond_fun` of it is true.

    Args:
      cond_fun: carry -> a boolean without axes.
      body_fun: carry -> carry, of the same structure, shapes and dtypes.
      init_val: a tree of arrays.
      max_steps: the loop ends after that many turns, whatever `cond_fun` says then (ask it
        whether the result is final).  A loop with such a bound has a reverse mode, which keeps
        few of the carries and computes the others again.

    Raises TreeMismatch or TypeRule if the carry changes.

    >>> import weft as wf
    >>> wf.lax.while_loop(lambda x: x < 100, lambda x: x * 2, 1)
    Array(128, dtype=int32, weak_type=True)
    """
    if not config.jit:
        out = stepping.while_loop(cond_fun, body_fun, init_val, max_steps)
        if out is not NotImplemented:
            return out
    leaves, tree = flatten(init_val)
    carry = [as_value(x) for x in leaves]
    body: Any = None

    def step(values: list) -> tuple[Program, Sequence[Aval]]:
        nonlocal body
        body = trace(body_fun, (tree.unflatten(values),), {}, "while_loop", traces_of(body_fun))
        _same_carry("while_loop", tree, body.tree)
        return body.program, body.program.out_avals

    carry, program = _steady("while_loop", carry, step, lambda: _paths(init_val))
    test = trace(cond_fun, (tree.unflatten(carry),), {}, "while_loop", traces_of(cond_fun))
    outs = test.program.out_avals
    if len(outs) != 1 or outs[0].shape or outs[0].dtype != BOOL:
        raise TypeRule(
            f"cond_fun of while_loop must return one boolean without axes, not {outs}",
            fix="compare the counter, or reduce with .any() or .all()",
        )
    results = while_p.bind(
        *test.captured,
        *body.captured,
        *carry,
        cond=test.program,
        body=program,
        cond_consts=len(test.captured),
        body_consts=len(body.captured),
        **({} if max_steps is None else {"max_steps": max_steps.__index__()}),
    )
    return tree.unflatten(results)


def _same_carry(does: str, want: TreeDef, got: TreeDef) -> None:
    if want != got:
        a, b = (t.unflatten([0] * t.num_leaves) for t in (want, got))
        raise TreeMismatch(
            f"{does}: the step returns another structure than it is given: {difference(a, b)}",
            fix=f"return a carry like {want}",
        )


def _paths(tree_: Any) -> list[str]:
    from_root = []

    def walk(node: Any, path: str) -> None:
        kids = children(node)
        if kids is None:
            from_root.append(path)
        for key, kid in kids or ():
            walk(kid, path + key)

    walk(tree_, "carry")
    return from_root


def scan(
    f: Callable,
    init: Any,
    xs: Any = None,
    length: Any = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """`f(carry, x) -> (carry, y)` along the leading axis of xs.

    Args:
      f: the step; `y` may be any tree, also None.
      init: the first carry, a tree of arrays.
      xs: a tree of arrays with one size of leading axis; None if there is only `length`.
      length: the number of steps, if `xs` does not tell.
      reverse: go from the last row to the first; results stay in place.
      unroll: how many steps are written out in one turn of the compiled loop; True is all.

    Returns:
      (last carry, stacked ys).

    Raises AxisError, TreeMismatch or TypeRule if sizes differ or the carry changes.

    >>> import weft as wf
    >>> wf.lax.scan(lambda c, x: (c + x, c), 0.0, wf.numpy.arange(3.0))
    (Array(3., dtype=float32), Array([0., 0., 1.], dtype=float32))
    """
    leaves, tree = flatten(init)
    rows_flat, rows_tree = flatten(xs)
    rows = [as_value(x) for x in rows_flat]
    length = _length(rows, length)
    if not config.jit:
        out = stepping.scan(f, init, xs, length, reverse)
        if out is not NotImplemented:
            return out
    carry = [as_value(x) for x in leaves]
    n = len(carry)
    row_avals = [row(r.aval, 0) for r in rows]
    traced: Any = None

    def step(values: list) -> tuple[Program, Sequence[Aval]]:
        nonlocal traced
        avals = (*(v.aval for v in values), *row_avals)
        args = tree.unflatten(values), rows_tree.unflatten(rows)
        traced = trace(f, args, {}, "scan", traces_of(f), avals=avals)
        _step_result(traced.tree, tree)
        return traced.program, traced.program.out_avals[:n]

    carry, program = _steady("scan", carry, step, lambda: _paths(init))
    turns = length if unroll is True and length.__class__ is int else int(unroll) or 1
    if not isinstance(turns, int) or turns < 1:
        raise TypeRule(f"unroll must be a positive integer or a boolean, not {unroll!r}")
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
    return traced.tree.unflatten(outs)


def _length(rows: list, length: Any) -> Any:
    for r in rows:
        if not r.aval.ndim:
            raise AxisError(
                "scan: xs has a value without axes, which has no rows",
                fix="close over it, or carry it, instead",
            )
    sizes = [r.aval.shape[0] for r in rows]
    if length is not None:
        length = length if length.__class__ is Dim else length.__index__()
        sizes.append(length)
    if not sizes:
        raise AxisError("scan has neither xs nor length", fix="pass length=n")
    if any(s != sizes[0] for s in sizes):
        raise AxisError(
            f"scan: the leading axes of xs (and length) differ: {sizes}",
            fix="all xs must have one leading size, and length that size too",
        )
    return sizes[0]


def _step_result(got: TreeDef, carry: TreeDef) -> None:
    out = got.unflatten([0] * got.num_leaves)
    if not isinstance(out, tuple) or len(out) != 2:
        raise TreeMismatch(
            f"the step of scan must return a pair (carry, y), not {got}",
            fix="return (carry, None) if there is nothing to stack",
        )
    _same_carry("scan", carry, flatten(out[0])[1])


def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable,
    init_val: Any,
    *,
    unroll: Any = None,
    max_steps: int | None = None,
) -> Any:
    """`for i in range(lower, upper): x = body_fun(i, x)`.

    Bounds that are Python integers or symbolic sizes make a `scan`, which can be differentiated
    in reverse; others make a `while_loop`, which can be if it has `max_steps`.

    Args:
      lower, upper: integers without axes.
      body_fun: (i, carry) -> carry.
      init_val: a tree of arrays.
      unroll: as for `scan`; with static bounds only.
      max_steps: there are no more turns than that.

    >>> import weft as wf
    >>> wf.lax.fori_loop(0, 5, lambda i, x: x + i, 0)
    Array(10, dtype=int32, weak_type=True)
    """
    static = all(b.__class__ is int or hasattr(b, "__index__") and not isinstance(b, Value)
                 for b in (lower, upper))  # fmt: skip
    if static:
        lo, hi = (b if b.__class__ is Dim else b.__index__() for b in (lower, upper))
        turns = max_dim(hi - lo, 0)
        turns = turns if max_steps is None else min_dim(turns, max_steps)

        def step(ix: Any, _: Any) -> Any:
            i, x = ix
            return (i + 1, body_fun(i, x)), None

        (_, out), _ = scan(step, (as_value(lo), init_val), None, turns, unroll=unroll or 1)
        return out
    if unroll not in (None, 1, False):
        raise TypeRule("fori_loop unrolls static bounds only", fix="pass Python integers as bounds")
    start, stop = as_value(lower), as_value(upper)
    dtype, _ = promote([start.aval, stop.aval])
    start, stop = (convert(b, dtype) for b in (start, stop))
    _, _, out = while_loop(
        lambda s: s[0] < s[1],
        lambda s: (s[0] + 1, s[1], body_fun(s[0], s[2])),
        (start, stop, init_val),
        max_steps=max_steps,
    )
    return out


def map_(f: Callable, xs: Any) -> Any:
    """`f` on every row of the tree xs, one after the other; results are stacked."""
    return scan(lambda _, x: (None, f(x)), None, xs)[1]


def map_axes(
    f: Callable, in_axes: Any = 0, out_axes: Any = 0, *, parallel: bool = False
) -> Callable:
    """`f` on every row along `in_axes` (tree prefix; None: the whole), one after the other.

    Unlike `map_` it stays one operation under every transformation, which moves its axes along.
    With `parallel` all rows may be done at once, if an installed plugin knows how.
    """

    def mapped(*args: Any) -> Any:
        leaves, tree = flatten(args)
        xs = [as_value(x) for x in leaves]
        is_axis = lambda a: a is None or isinstance(a, int)  # noqa: E731
        wanted = spread(in_axes, args, "in_axes", is_axis, "an axis or None")
        axes = [a if a is None else normal_axis(a, x.aval.ndim) for a, x in zip(wanted, xs)]
        sizes = {x.aval.shape[a] for a, x in zip(axes, xs) if a is not None}
        if len(sizes) != 1:
            raise AxisError(f"map_axes: the mapped axes have sizes {sorted(map(str, sizes))}")
        avals = tuple([row(x.aval, a) for x, a in zip(xs, axes)])
        traced = trace(f, args, {}, "map_axes", traces_of(f), avals=avals)
        out = traced.tree.unflatten(traced.program.out_avals)
        wanted = spread(out_axes, out, "out_axes", lambda a: isinstance(a, int), "an axis")
        outs = [normal_axis(a, o.ndim + 1) for a, o in zip(wanted, traced.program.out_avals)]
        return traced.tree.unflatten(
            map_p.bind(
                *traced.captured,
                *traced.values,
                program=traced.program,
                in_axes=(*(None for _ in traced.captured), *axes),
                out_axes=tuple(outs),
                size=sizes.pop(),
                parallel=parallel,
            )
        )

    return mapped


def associative_scan(fn: Callable, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Prefix "sums" by an associative `fn`, in logarithmic depth and linear work.

    Neighbours are combined in pairs, the sequence of pairs is scanned, and the elements between
    are filled in (Blelloch, "Prefix sums and their applications", 1990).

    Args:
      fn: (a, b) -> a combined with b, for trees of arrays; associative, applied along stacks.
      elems: a tree of arrays with one size along `axis`.
      reverse: from the end.

    >>> import weft as wf
    >>> wf.lax.associative_scan(wf.numpy.add, wf.numpy.arange(4))
    Array([0, 1, 3, 6], dtype=int32)
    """
    leaves, tree = flatten(elems)
    xs = [as_value(x) for x in leaves]
    if not xs:
        return elems
    at = [normal_axis(axis, x.aval.ndim) for x in xs]
    sizes = {x.aval.shape[a] for x, a in zip(xs, at)}
    if len(sizes) > 1:
        raise AxisError(f"associative_scan: sizes along the axis differ: {sorted(sizes)}")
    xs = [moveaxis(x, a, 0) for x, a in zip(xs, at)]
    if reverse:
        xs = [x[::-1] for x in xs]

    def combine(a: list, b: list) -> list:
        both = (
            fn(tree.unflatten(b), tree.unflatten(a))
            if reverse
            else fn(tree.unflatten(a), tree.unflatten(b))
        )
        return flatten(both)[0]

    ys = _prefixes(combine, xs, sizes.pop())
    if reverse:
        ys = [y[::-1] for y in ys]
    ys = [materialise_at_ground(moveaxis(y, 0, a)) for y, a in zip(ys, at)]
    return tree.unflatten(ys)


def _prefixes(combine: Callable, xs: list, n: int) -> list:
    if n < 2:
        return xs
    every = lambda vs, start, stop: [slice_in_dim(v, start, stop, 2) for v in vs]  # noqa: E731
    pairs = combine(every(xs, 0, n - 1), every(xs, 1, n))
    odd = _prefixes(combine, pairs, n // 2)
    if n == 2:
        even: list = []
    else:
        before = [slice_in_dim(v, 0, (n - 1) // 2) for v in odd]
        even = combine(before, every(xs, 2, n))
    first = [slice_in_dim(x, 0, 1) for x in xs]
    even = [concatenate([f, e]) for f, e in zip(first, even)] if even else first
    return [_interleave(e, o, n) for e, o in zip(even, odd)]


def _interleave(even: Any, odd: Any, n: int) -> Any:
    """Elements 0, 2, 4, ... and 1, 3, 5, ... in one sequence of length n."""
    m = n // 2
    head = stack([slice_in_dim(even, 0, m), odd], 1).reshape((2 * m, *odd.aval.shape[1:]))
    return head if n == 2 * m else concatenate([head, slice_in_dim(even, m, m + 1)])
