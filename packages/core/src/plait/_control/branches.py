"""Branches: cond and switch.

Invariant: all branches take the same operands, including the values that any of them closes over,
and return the same types.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from .._base.config import config
from .._base.errors import ArgumentError, ShapeError, TreeMismatch
from .._base.tracebacks import border
from .._core.array import Literal, as_value
from .._core.fitting import joined
from .._core.handles import Handle
from .._core.interpreter import Value, current, opened
from .._core.staging import Apart
from .._jit.caches import kept as traces_of
from .._jit.tracing import trace
from .._ops.collective import varied
from .._ops.control_flow import cond as cond_p
from .._ops.elementwise import clamp, ne
from .._ops.shape import convert, materialise_at_ground
from .._types.avals import BOOL, INT32
from ..tree import difference, in_words, map_tree
from ..typing import ArrayLike
from . import stepping
from .agreement import Branches, agreed_type, aligned, passed_on, recast, returning, without_results

Y = TypeVar("Y")

_NONE_GIVEN: Any = object()


def _operands(does: str, operands: tuple, operand: object) -> tuple:
    """Return the operands of a call, given by position, or a single one by name."""
    if operand is _NONE_GIVEN:
        return operands
    if operands:
        raise ArgumentError(
            f"{does} was given operands by position and by name",
            fix="give all of them by position",
        )
    return (operand,)


@border
def switch(
    index: ArrayLike,
    branches: Sequence[Callable[..., Y]],
    *operands: object,
    operand: object = _NONE_GIVEN,
) -> Y:
    """Return `branches[index](*operands)`, with the index clamped to the number of branches.

    Args:
      index: an integer without axes.
      branches: functions that return the same structure, shapes and dtypes; where one returns an
        array, Python numbers of others take its dtype, unless their kind is wider.
      operands: trees of arrays; operand= is another way to write a single one.

    Raises TreeMismatch or TypeRule if the branches disagree.

    >>> import plait
    >>> plait.lax.switch(1, [lambda x: x, lambda x: x * 10], 2.0)
    Array(20., dtype=float32, weak_type=True)
    """
    operands = _operands("switch", operands, operand)
    branches = tuple(branches) if isinstance(branches, Iterable) else ()
    if not branches:
        raise ArgumentError("switch has no branches", fix="give at least one function")
    for f in branches:
        if not callable(f):
            raise ArgumentError(
                f"switch: the branch {f!r} is not a function",
                fix="write switch(index, [f, g, ...], *operands)",
            )
    i = as_value(index)
    if i.aval.ndim or i.aval.dtype.kind not in "iub":
        raise ShapeError(
            f"the index of switch must be an integer without axes, not {i.aval!r}",
            fix="map over the elements to switch for each",
        )
    if i.aval.dtype.itemsize < 4:  # the number of branches may not fit in a narrower dtype
        i = convert(i, INT32)
    if not config.jit:
        out = stepping.switch(i, branches, operands)
        if out is not NotImplemented:
            return out
    i = clamp.bind(Literal(0, i.aval), i, Literal(len(branches) - 1, i.aval))
    return branched("switch", convert(i, INT32), branches, operands)


@border
def cond(
    pred: ArrayLike,
    true_fun: Callable[..., Y],
    false_fun: Callable[..., Y],
    *operands: object,
    operand: object = _NONE_GIVEN,
) -> Y:
    """Return `true_fun(*operands)` if `pred`, else `false_fun(*operands)`; only one of them runs.

    Args:
      pred: a boolean (or number, true if not zero) without axes.
      true_fun, false_fun: functions that return the same structure, shapes and dtypes; where one
        returns an array, a Python number of the other takes its dtype, unless its kind is wider.
      operands: trees of arrays; operand= is another way to write a single one.

    `cond(pred, x, true_fun, y, false_fun)` gives each function an operand of its own.

    Raises TreeMismatch or TypeRule if the branches disagree.

    >>> import plait
    >>> plait.lax.cond(True, lambda x: x + 1, lambda x: x - 1, 1.0)
    Array(2., dtype=float32, weak_type=True)
    """
    if operand is _NONE_GIVEN and len(operands) == 2 and not callable(true_fun):
        given, of_true, of_false = true_fun, false_fun, operands[1]
        if callable(of_true) and callable(of_false):
            return cond(pred, lambda x, _: of_true(x), lambda _, y: of_false(y), given, operands[0])
    operands = _operands("cond", operands, operand)
    for f in (true_fun, false_fun):
        if not callable(f):
            raise ArgumentError(
                f"cond: {f!r} is not a function",
                fix="write cond(pred, true_fun, false_fun, *operands)",
            )
    p = as_value(pred)
    if p.aval.ndim:
        raise ShapeError(
            f"the predicate of cond must have no axes, and is {p.aval!r}",
            fix="reduce it with .any() or .all(), or use plait.numpy.where",
        )
    if p.aval.dtype != BOOL:
        p = ne(p, 0)
    if not config.jit:
        out = stepping.switch(p, [false_fun, true_fun], operands)
        if out is not NotImplemented:
            return out
    return branched("cond", convert(p, INT32), [false_fun, true_fun], operands)


def branched(
    does: str, index: Value, functions: Sequence[Callable], operands: tuple, always: bool = False
) -> Any:
    """Return `functions[index](*operands)`, for an i32 in range.

    `always`: keep the choice even if all functions return their operands, since a choice may be
    refused.
    """
    axes = index.aval.vma
    if axes:
        operands = map_tree(lambda x: _varied(x, axes), operands)
        with opened(Apart(axes, current())):
            traced = [trace(f, operands, {}, does, traces_of(f)) for f in functions]
    else:
        traced = [trace(f, operands, {}, does, traces_of(f)) for f in functions]
    tree = traced[0].tree
    if any(t.tree != tree for t in traced):
        want = joined([t.tree for t in traced])
        if want is not None:
            tree, traced = want, [returning(t, want) for t in traced]
    told = Branches(does, functions, _labels(does, len(functions)), tree)
    for t in traced[1:]:
        if t.tree != tree:
            a, b = (t.tree.unflatten([0] * t.tree.num_leaves) for t in (traced[0], t))
            names, n = told.names(), traced.index(t)
            raise TreeMismatch(
                f"the branches of {does} return different structures: "
                f"{difference(a, b, 'the result')}, of {names[0]} and {names[n]}",
                fix=f"make all of them return {in_words(tree)}",
            )
    programs, captured = aligned([(t.program, t.captured) for t in traced])
    given = [*captured, *traced[0].values]
    types = zip(*[p.out_avals for p in programs])
    want = [agreed_type(told, i, outs) for i, outs in enumerate(types)]
    programs = [recast(p, want) for p in programs]
    # If every branch returns an operand unchanged, the operand itself is the result.  So it is
    # neither mapped nor differentiated when only the predicate is.
    passed = [None] * len(want) if always else passed_on(programs)
    if any(i is not None for i in passed):
        programs = [without_results(p, passed) for p in programs]
    outs: Any = iter(())
    if programs[0].outputs or any(p.effects for p in programs) or not passed:
        outs = iter(cond_p.bind(index, *given, branches=tuple(programs)))
    return tree.unflatten(
        [next(outs) if i is None else materialise_at_ground(given[i]) for i in passed]
    )


def _labels(does: str, n: int) -> list[str]:
    return ["false_fun", "true_fun"] if does == "cond" else [f"branch {i}" for i in range(n)]


def _varied(x: Value, axes: frozenset[str]) -> Any:
    """Return an operand that varies along these axes; return a handle, or a leaf that is not a
    value yet, unchanged."""
    return varied(x, axes) if isinstance(x, Value) and not isinstance(x, Handle) else x
