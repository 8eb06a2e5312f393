"""Reductions over axes, and running reductions.

Invariant: dtypes are kept: sums of narrow integers stay narrow.  Functions given as computations
must be associative and elementwise; if one equals a known primitive, that is applied.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from plait.typing import Array, ArrayLike, Axis, DTypeLike

from .._api.surfaces import value
from .._base.errors import ArgumentError, ShapeError, TreeMismatch
from .._core.array import Literal
from .._core.interpreter import Value
from .._core.ir import Program
from .._core.primitive import Primitive
from .._jit.tracing import trace
from .._ops import argreduction, cumulative, reduction
from .._ops import elementwise as el
from .._ops import shape as sh
from .._ops.layout import all_free, free, placed
from .._ops.static_arguments import fixed_each, flag
from .._plugins.traits import Elementwise, Structural
from .._types.avals import Aval, asked_dtype
from ..tree import difference, flatten, in_words
from .operands import in_dtype_of

__all__ = [
    "argmax", "argmin", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "reduce",
    "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod", "reduce_sum",
    "reduce_xor",
]  # fmt: skip

T = TypeVar("T")

# ---- over axes -----------------------------------------------------------------------------


class _Over(Protocol):
    """A reduction over axes."""

    def __call__(self, operand: ArrayLike, axes: Axis, *, out_sharding: Any = None) -> Array: ...


def _over(prim: Primitive, shows: str) -> _Over:
    name = prim.name.rpartition(".")[2]

    def reduce(operand: ArrayLike, axes: Axis, *, out_sharding: Any = None) -> Array:
        x = free(value(operand), out_sharding)
        at = sh.normal_axes(fixed_each(name, "axes", axes), x.aval.ndim, "axes")
        if not at:
            prim.infer((x.aval,), {"axes": ()})  # infer refuses an operand that does not fit
        out = prim.bind(x, axes=tuple(sorted(at))) if at else sh.materialise_at_ground(x)
        return placed(out, out_sharding)

    reduce.__name__ = reduce.__qualname__ = name
    given, result = shows.split(" -> ")
    reduce.__doc__ = (
        f"{prim.doc}\n\nThe axes, a tuple, go; the dtype stays.  out_sharding: how the result "
        "lies on devices.\n\nRaises AxisError for axes that are not there.\n\n"
        f">>> import plait\n>>> plait.lax.{name}(plait.numpy.array({given}), (0,)).item()\n{result}"
    )
    return reduce


reduce_sum = _over(reduction.reduce_sum, "[2, 3] -> 5")
reduce_prod = _over(reduction.reduce_prod, "[2, 3] -> 6")
reduce_max = _over(reduction.reduce_max, "[2, 3] -> 3")
reduce_min = _over(reduction.reduce_min, "[2, 3] -> 2")
reduce_and = _over(reduction.reduce_and, "[True, False] -> False")
reduce_or = _over(reduction.reduce_or, "[True, False] -> True")
reduce_xor = _over(reduction.reduce_xor, "[True, True] -> False")


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Return the position of the (first) greatest element along an axis; nan is greatest.

    operand: numbers or booleans; the axis is removed.  index_dtype: integer dtype of the result.
    Raises AxisError for an axis that is missing or empty, TypeRule for other dtypes.

    >>> import plait
    >>> plait.lax.argmax(plait.numpy.array([1, 5, 2]), 0, "int32").item()
    1
    """
    x = value(operand)
    at = sh.normal_axis(axis, x.aval.ndim)
    return argreduction.argmax_.bind(x, axis=at, index_dtype=asked_dtype(index_dtype))


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """Return the position of the least element along an axis; arguments and errors as in `argmax`.

    Raises AxisError for an axis that the operand lacks.

    >>> import plait
    >>> plait.lax.argmin(plait.numpy.array([4, 1, 2]), 0, "int32").item()
    1
    """
    x = value(operand)
    at = sh.normal_axis(axis, x.aval.ndim)
    return argreduction.argmin_.bind(x, axis=at, index_dtype=asked_dtype(index_dtype))


_KNOWN = {
    el.add: (reduction.reduce_sum, 0),
    el.mul: (reduction.reduce_prod, 1),
    el.maximum: (reduction.reduce_max, None),
    el.minimum: (reduction.reduce_min, None),
    el.and_: (reduction.reduce_and, None),
    el.or_: (reduction.reduce_or, None),
    el.xor: (reduction.reduce_xor, None),
}


def elementwise(
    name: str, computation: Callable, avals: Sequence[Aval], tree: Any, same: bool = False
) -> Program:
    """Return the computation on two elements (trees of them).  Refuse it unless it is
    elementwise, and returns as many elements, or the `same` structure."""
    cells = [Literal(0, a.with_shape(()).strong()) for a in avals]
    trees = [tree.unflatten(cells)] * 2
    traced = trace(computation, trees, {}, name, avals=tuple([c.aval for c in cells * 2]))
    program = traced.program
    if same and traced.tree != tree:
        raise TreeMismatch(
            f"{name}: the computation returns another structure than it takes: "
            f"{difference(trees[0], traced.tree.unflatten(cells[:1] * traced.tree.num_leaves))}",
            fix=f"return a tree like {in_words(tree)}",
        )
    for e in program.eqns:
        if not {Elementwise, Structural} & set(e.prim.traits):
            raise ArgumentError(
                f"{name}: the computation applies {e.prim}, which is not elementwise",
                fix="combine two elements with arithmetic, comparison and selection only",
            )
    alike = [a.same_type(c.aval) for a, c in zip(program.out_avals, cells)]
    if len(program.outputs) != len(cells) or not all(alike):
        raise ArgumentError(
            f"{name}: the computation returns {program.out_avals} for {[c.aval for c in cells]}",
            fix="return results of the types of its operands",
        )
    return program


def monoid(program: Program) -> Any:
    """Return the primitive that the computation equals, if it is a known one."""
    if len(program.eqns) != 1 or len(program.outputs) != 1:
        return None
    (e,) = program.eqns
    same = program.outputs[0] is e.outputs[0] and set(e.inputs) == set(program.inputs)
    return e.prim if same and e.prim in _KNOWN else None


def reduce(
    operands: T, init_values: object, computation: Callable, dimensions: Axis,
    out_sharding: object = None,
) -> T:  # fmt: skip
    """Combine elements along axes by a function.

    Args:
      operands: a tree of arrays of one shape.
      init_values: a tree of the same structure: initial values, without axes.
      computation: (tree, tree) -> tree of elements; associative and elementwise.
      dimensions: the axes, which are removed.
      out_sharding: sharding of the results.

    Raises TypeRule if the computation is not elementwise, or shapes differ; AxisError for axes that
    operands lack.

    >>> import numpy as np, plait
    >>> plait.lax.reduce(np.arange(5), 0, plait.lax.max, (0,)).item()
    4
    """
    operands = all_free(operands, out_sharding)
    tree, xs, start = together("reduce", operands, init_values)
    given = fixed_each("reduce", "dimensions", dimensions)
    axes = tuple(sorted(sh.normal_axes(given, xs[0].aval.ndim, "dimensions")))
    program = elementwise("reduce", computation, [x.aval for x in xs], tree)
    prim = monoid(program)
    if prim is not None:
        out = _KNOWN[prim][0].bind(xs[0], axes=axes) if axes else xs[0]
        out = sh.materialise_at_ground(_with_start(prim, start[0], out))
        return placed(tree.unflatten([out]), out_sharding)
    combine = combining(computation, tree)
    outs = combine(start, _folded(combine, [_axes_first(x, axes) for x in xs], start))
    return placed(tree.unflatten([sh.materialise_at_ground(o) for o in outs]), out_sharding)


def together(name: str, operands: object, starts: object) -> tuple[Any, list[Any], list[Any]]:
    """Return (tree, arrays of one shape, an initial value for each)."""
    leaves, tree = flatten(operands)
    xs = [value(x) for x in leaves]
    if not xs or any(x.aval.shape != xs[0].aval.shape for x in xs):
        raise ShapeError(
            f"{name}: operands must be arrays of one shape, not {[x.aval for x in xs]}",
            fix="broadcast them first",
        )
    try:
        given = tree.flatten_up_to(starts)
    except ValueError:
        raise TreeMismatch(
            f"{name}: what to start from is {flatten(starts)[1]}, and operands are {tree}",
            fix="give a number for each operand, in the same structure",
        ) from None
    return tree, xs, [in_dtype_of(x, v, name) for v, x in zip(given, xs)]


def _with_start(prim: Primitive, start: Any, out: Value) -> Any:
    neutral = _KNOWN[prim][1]
    if start.__class__ is Literal and neutral is not None and start.value == neutral:
        return out
    return prim(start, out)


def combining(computation: Callable, tree: Any) -> Callable:
    """Return the computation on lists of leaves."""
    return lambda a, b: [
        value(v) for v in flatten(computation(tree.unflatten(a), tree.unflatten(b)))[0]
    ]


def _axes_first(x: Value, axes: tuple) -> Any:
    rest = [i for i in range(x.aval.ndim) if i not in axes]
    n = 1
    for i in axes:
        n = n * x.aval.shape[i]
    return sh.reshape(sh.transpose(x, (*axes, *rest)), (n, *[x.aval.shape[i] for i in rest]))


def _folded(combine: Callable, xs: list, start: list) -> list:
    """Fold the first axis: combine neighbours until one element is left."""
    n = xs[0].aval.shape[0]
    if n == 0:
        return [sh.broadcast_to(s, x.aval.shape[1:]) for s, x in zip(start, xs)]
    while n > 1:
        even = [sh.slice_in_dim(x, 0, n - 1, 2) for x in xs]
        odd = [sh.slice_in_dim(x, 1, n, 2) for x in xs]
        both = combine(even, odd)
        if n % 2:
            rest = [sh.slice_in_dim(x, n - 1, n) for x in xs]
            both = [sh.concatenate([b, r], 0) for b, r in zip(both, rest)]
        xs, n = both, (n + 1) // 2
    return [sh.reshape(x, x.aval.shape[1:]) for x in xs]


# ---- running -------------------------------------------------------------------------------


class _Running(Protocol):
    """A running reduction along an axis."""

    def __call__(self, operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array: ...


def _running(prim: Primitive, shows: str) -> _Running:
    name = prim.name.rpartition(".")[2]

    def cumulate(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
        x = value(operand)
        back = flag(name, "reverse", reverse)
        return prim.bind(x, axis=sh.normal_axis(axis, x.aval.ndim), reverse=back)

    cumulate.__name__ = cumulate.__qualname__ = name
    given, result = shows.split(" -> ")
    cumulate.__doc__ = (
        f"{prim.doc}\n\nAlong an axis, from its end if `reverse`; shape and dtype stay.  Raises "
        "AxisError for an axis that is not there.\n\n>>> import plait\n"
        f">>> plait.lax.{name}(plait.numpy.array({given})).tolist()\n{result}"
    )
    return cumulate


cumsum = _running(cumulative.cumsum_, "[1, 2, 3] -> [1, 3, 6]")
cumprod = _running(cumulative.cumprod_, "[1, 2, 3] -> [1, 2, 6]")
cummax = _running(cumulative.cummax_, "[1, 3, 2] -> [1, 3, 3]")
cummin = _running(cumulative.cummin_, "[3, 1, 2] -> [3, 1, 1]")
cumlogsumexp = _running(cumulative.cumlogsumexp_, "[-float('inf'), 0.0] -> [-inf, 0.0]")
