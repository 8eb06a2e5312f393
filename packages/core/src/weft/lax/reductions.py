"""Reductions over axes and windows, running ones, sorting, and contractions.

Invariant: dtypes are kept: sums of narrow integers stay narrow.  Computations given as functions
are associative and elementwise; what they are found to be decides which primitive does it.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import TypeRule
from ..ir import Program
from ..ops import cumulative, reduction, sorting
from ..ops import elementwise as el
from ..ops.contraction import contracted
from ..ops.convolution import dilated, explicit_padding, windows
from ..ops.shape import (
    broadcast_to,
    concatenate,
    convert,
    materialise_at_ground,
    normal_axes,
    normal_axis,
    pad,
    reshape,
    slice_in_dim,
    transpose,
)
from ..primitive import Primitive
from ..surface import value
from ..tracing import trace
from ..traits import Elementwise, Structural
from ..tree import flatten
from ..types import Aval, dtype_of
from ..values import Literal

# ---- over axes -----------------------------------------------------------------------------


def _over(prim: Primitive) -> Callable[[Any, Any], Any]:
    def reduce(operand: Any, axes: Any) -> Any:
        x = value(operand)
        at = tuple(sorted(normal_axes(tuple(axes), x.aval.ndim, "axes")))
        return prim.bind(x, axes=at) if at else materialise_at_ground(x)

    reduce.__name__ = reduce.__qualname__ = prim.name.rpartition(".")[2]
    reduce.__doc__ = (
        f"{prim.doc}\n\nThe axes go; the dtype stays.  Raises AxisError for axes that are not "
        "there."
    )
    return reduce


reduce_sum, reduce_prod = _over(reduction.reduce_sum), _over(reduction.reduce_prod)
reduce_max, reduce_min = _over(reduction.reduce_max), _over(reduction.reduce_min)
reduce_and, reduce_or = _over(reduction.reduce_and), _over(reduction.reduce_or)
reduce_xor = _over(reduction.reduce_xor)


def argmax(operand: Any, axis: int, index_dtype: Any) -> Any:
    """Where along an axis the greatest element is: the first if there are several; nan counts.

    Raises AxisError for an axis that is not there or empty.
    """
    x = value(operand)
    at = normal_axis(axis, x.aval.ndim)
    return reduction.argmax_.bind(x, axis=at, index_dtype=dtype_of(index_dtype))


def argmin(operand: Any, axis: int, index_dtype: Any) -> Any:
    """Where along an axis the least element is; see `argmax`."""
    x = value(operand)
    at = normal_axis(axis, x.aval.ndim)
    return reduction.argmin_.bind(x, axis=at, index_dtype=dtype_of(index_dtype))


_KNOWN = {
    el.add: (reduction.reduce_sum, 0),
    el.mul: (reduction.reduce_prod, 1),
    el.maximum: (reduction.reduce_max, None),
    el.minimum: (reduction.reduce_min, None),
    el.and_: (reduction.reduce_and, None),
    el.or_: (reduction.reduce_or, None),
    el.xor: (reduction.reduce_xor, None),
}


def _program(name: str, computation: Callable, avals: Sequence[Aval], tree: Any) -> Program:
    """The computation on two elements (trees of them), checked to be elementwise."""
    cells = [Literal(0, a.with_shape(()).strong()) for a in avals]
    trees = [tree.unflatten(cells)] * 2
    traced = trace(computation, trees, {}, name, avals=tuple([c.aval for c in cells * 2]))
    program = traced.program
    for e in program.eqns:
        if not {Elementwise, Structural} & set(e.prim.traits):
            raise TypeRule(
                f"{name}: the computation applies {e.prim}, which is not elementwise",
                fix="combine two elements with arithmetic, comparison and selection only",
            )
    if not all(a.same_type(c.aval) for a, c in zip(program.out_avals, cells)):
        raise TypeRule(
            f"{name}: the computation returns {program.out_avals} for {[c.aval for c in cells]}",
            fix="it must return what it takes",
        )
    return program


def _monoid(program: Program) -> Any:
    """The primitive that the computation is, if it is one of the known ones."""
    if len(program.eqns) != 1 or len(program.outputs) != 1:
        return None
    (e,) = program.eqns
    same = program.outputs[0] is e.outputs[0] and set(e.inputs) == set(program.inputs)
    return e.prim if same and e.prim in _KNOWN else None


def reduce(operands: Any, init_values: Any, computation: Callable, dimensions: Any) -> Any:
    """Elements along axes combined by a function.

    Args:
      operands: a tree of arrays of one shape.
      init_values: a tree of the same structure: what to start from, without axes.
      computation: (tree, tree) -> tree of elements; associative and elementwise.
      dimensions: the axes, which go.

    Raises TypeRule if the computation is not elementwise.

    >>> import numpy as np, weft as wf
    >>> wf.lax.reduce(np.arange(5), 0, wf.lax.max, (0,)).item()
    4
    """
    leaves, tree = flatten(operands)
    xs = [value(x) for x in leaves]
    start = [_start("reduce", v, x) for v, x in zip(tree.flatten_up_to(init_values), xs)]
    axes = tuple(sorted(normal_axes(tuple(dimensions), xs[0].aval.ndim, "dimensions")))
    program = _program("reduce", computation, [x.aval for x in xs], tree)
    prim = _monoid(program)
    if prim is not None:
        out = _KNOWN[prim][0].bind(xs[0], axes=axes) if axes else xs[0]
        return tree.unflatten([materialise_at_ground(_with_start(prim, start[0], out))])
    combine = _combine(computation, tree)
    outs = combine(start, _folded(combine, [_axes_first(x, axes) for x in xs], start))
    return tree.unflatten([materialise_at_ground(o) for o in outs])


def _start(name: str, v: Any, x: Any) -> Any:
    v = value(v)
    if v.aval.ndim or (v.aval.dtype != x.aval.dtype and not v.aval.weak_type):
        raise TypeRule(
            f"{name}: {v.aval!r} to start from, for {x.aval!r}",
            fix="give a number without axes, of the same dtype",
        )
    return convert(v, x.aval.dtype)


def _with_start(prim: Primitive, start: Any, out: Any) -> Any:
    neutral = _KNOWN[prim][1]
    if start.__class__ is Literal and neutral is not None and start.value == neutral:
        return out
    return prim(start, out)


def _combine(computation: Callable, tree: Any) -> Callable:
    return lambda a, b: [
        value(v) for v in flatten(computation(tree.unflatten(a), tree.unflatten(b)))[0]
    ]


def _axes_first(x: Any, axes: tuple) -> Any:
    rest = [i for i in range(x.aval.ndim) if i not in axes]
    n = 1
    for i in axes:
        n = n * x.aval.shape[i]
    return reshape(transpose(x, (*axes, *rest)), (n, *[x.aval.shape[i] for i in rest]))


def _folded(combine: Callable, xs: list, start: list) -> list:
    """Along the first axis: neighbours are combined until one is left."""
    n = xs[0].aval.shape[0]
    if n == 0:
        return [broadcast_to(s, x.aval.shape[1:]) for s, x in zip(start, xs)]
    while n > 1:
        even = [slice_in_dim(x, 0, n - 1, 2) for x in xs]
        odd = [slice_in_dim(x, 1, n, 2) for x in xs]
        both = combine(even, odd)
        if n % 2:
            rest = [slice_in_dim(x, n - 1, n) for x in xs]
            both = [concatenate([b, r], 0) for b, r in zip(both, rest)]
        xs, n = both, (n + 1) // 2
    return [reshape(x, x.aval.shape[1:]) for x in xs]


# ---- over windows --------------------------------------------------------------------------


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable,
    window_dimensions: Any,
    window_strides: Any = None,
    padding: Any = "VALID",
    base_dilation: Any = None,
    window_dilation: Any = None,
) -> Any:
    """Elements of every window combined by a function: pooling.

    Args:
      operand: a tree of arrays of one shape.
      init_value: a tree of the same structure: what to start from, and what surrounds the arrays.
      computation: (tree, tree) -> tree of elements; associative and elementwise.
      window_dimensions: the size of the window along each axis.
      window_strides: the distance of windows; 1 if not given.
      padding: "VALID", "SAME", "SAME_LOWER", or a pair (before, after) for each axis.
      base_dilation, window_dilation: the distance of elements of the arrays, of the window.

    Windows are combined along one axis after the other, so that the work grows with the sum of
    their sizes, not with the product.

    >>> import numpy as np, weft as wf
    >>> wf.lax.reduce_window(np.array([1, 5, 2, 4]), 0, wf.lax.max, (2,), (2,)).tolist()
    [5, 4]
    """
    leaves, tree = flatten(operand)
    xs = [value(x) for x in leaves]
    start = [_start("reduce_window", v, x) for v, x in zip(tree.flatten_up_to(init_value), xs)]
    _program("reduce_window", computation, [x.aval for x in xs], tree)
    n = xs[0].aval.ndim
    ones = (1,) * n
    given = (window_dimensions, window_strides, base_dilation, window_dilation)
    steps = [tuple(v) if v is not None else ones for v in given]
    if any(len(v) != n for v in steps):
        raise TypeRule(
            f"reduce_window of {xs[0].aval!r} by windows {tuple(window_dimensions)}",
            fix=f"give {n} sizes, strides and dilations, one for each axis",
        )
    sizes, strides, base, spread = steps
    extent = [dilated(k, d) for k, d in zip(sizes, spread)]
    inside = [dilated(d, b) for d, b in zip(xs[0].aval.shape, base)]
    pads = explicit_padding(padding, inside, extent, strides)
    config = [(low, high, b - 1) for (low, high), b in zip(pads, base)]
    xs = [pad(x, s, config) if any(map(any, config)) else x for x, s in zip(xs, start)]
    combine = _combine(computation, tree)
    for axis in range(n):
        if sizes[axis] != 1 or strides[axis] != 1:
            xs = _along(combine, xs, axis, sizes[axis], strides[axis], spread[axis])
    outs = combine([broadcast_to(s, x.aval.shape) for s, x in zip(start, xs)], xs)
    return tree.unflatten([materialise_at_ground(o) for o in outs])


_WRITTEN_OUT = 8
"""Windows of up to so many elements are combined from as many slices."""


def _along(combine: Callable, xs: list, axis: int, size: int, stride: int, spread: int) -> list:
    """Windows along one axis: of slices, or of windows half as long."""
    n = xs[0].aval.shape[axis]
    count = windows(n, dilated(size, spread), stride)
    if size < 1 or count.__class__ is int and count == 0:
        empty = [slice_in_dim(x, 0, 0, axis=axis) for x in xs]
        return empty
    if size <= _WRITTEN_OUT or spread != 1:
        take = lambda k: [slice_in_dim(x, k * spread, k * spread + (count - 1) * stride + 1,
                                       stride, axis) for x in xs]  # noqa: E731  # fmt: skip
        out = take(0)
        for k in range(1, size):
            out = combine(out, take(k))
        return out
    whole = _doubled(combine, xs, axis, size)
    return [slice_in_dim(x, 0, (count - 1) * stride + 1, stride, axis) for x in whole]


def _doubled(combine: Callable, xs: list, axis: int, size: int) -> list:
    """Windows of every place: of the powers of two that the size is the sum of, in order."""
    out: list | None = None
    done, width, power = 0, 1, xs
    n = xs[0].aval.shape[axis]
    count = n - size + 1
    while size:
        if size & 1:
            part = [slice_in_dim(p, done, done + count, axis=axis) for p in power]
            out = part if out is None else combine(out, part)
            done += width
        size >>= 1
        if size:
            have = power[0].aval.shape[axis]
            left = [slice_in_dim(p, 0, have - width, axis=axis) for p in power]
            power = combine(left, [slice_in_dim(p, width, have, axis=axis) for p in power])
            width *= 2
    assert out is not None
    return out


# ---- running -------------------------------------------------------------------------------


def _running(prim: Primitive) -> Callable:
    def cumulate(operand: Any, axis: int = 0, reverse: bool = False) -> Any:
        x = value(operand)
        return prim.bind(x, axis=normal_axis(axis, x.aval.ndim), reverse=bool(reverse))

    cumulate.__name__ = cumulate.__qualname__ = prim.name.rpartition(".")[2]
    cumulate.__doc__ = (
        f"{prim.doc}\n\nAlong an axis, from its end if `reverse`; the dtype stays.  Raises "
        "AxisError for an axis that is not there."
    )
    return cumulate


cumsum, cumprod = _running(cumulative.cumsum_), _running(cumulative.cumprod_)
cummax, cummin = _running(cumulative.cummax_), _running(cumulative.cummin_)
cumlogsumexp = _running(cumulative.cumlogsumexp_)


# ---- sorting -------------------------------------------------------------------------------


def sort(
    operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Any:
    """Sorted along an axis, nans last; several arrays in the order of the first `num_keys`.

    Returns an array for an array, a tuple for a sequence.
    """
    if isinstance(operand, tuple | list):
        return tuple(sorting.sort_together(operand, dimension, num_keys, is_stable))
    return sorting.sort(operand, dimension, stable=is_stable)


def sort_key_val(
    keys: Any, values: Any, dimension: int = -1, is_stable: bool = True
) -> tuple[Any, Any]:
    """(keys sorted along an axis, values in their order)."""
    k, v = sorting.sort_together([keys, values], dimension, 1, is_stable)
    return k, v


def top_k(operand: Any, k: int, *, axis: int = -1) -> list:
    """[the k greatest elements along an axis, their indices as i32], the greatest first."""
    return sorting.top_k(operand, k, axis)


# ---- contractions --------------------------------------------------------------------------


def dot_general(
    lhs: Any, rhs: Any, dimension_numbers: Any, precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:  # fmt: skip
    """Products of elements, summed over axes.

    Args:
      lhs, rhs: arrays.
      dimension_numbers: ((axes of lhs, axes of rhs) that are summed over, (axes of lhs, axes of
        rhs) along which elements meet).
      precision: None, "default", "high", "highest" or `Precision`, for accelerators.
      preferred_element_type: dtype of the result.

    Returns the axes along which elements meet, the rest of lhs's, the rest of rhs's.  Raises
    TypeRule if sizes disagree.
    """
    contract, shared = dimension_numbers
    return contracted(
        lhs, rhs, contract, shared, precision=precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def dot(
    lhs: Any, rhs: Any, *, dimension_numbers: Any = None, precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:  # fmt: skip
    """Products of vectors and matrices; or, with `dimension_numbers`, `dot_general`.

    Raises TypeRule for more axes, and if sizes disagree.
    """
    x, y = value(lhs), value(rhs)
    if dimension_numbers is None:
        if not 1 <= x.aval.ndim <= 2 or not 1 <= y.aval.ndim <= 2:
            raise TypeRule(
                f"lax.dot of {x.aval!r} and {y.aval!r}", fix="use weft.numpy.dot or dot_general"
            )
        dimension_numbers = (((x.aval.ndim - 1,), (0,)), ((), ()))
    return dot_general(x, y, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Any:
    """Products of stacks of matrices: all but the last two axes are shared.

    Raises TypeRule if sizes disagree.
    """
    x, y = value(lhs), value(rhs)
    n = x.aval.ndim
    if n < 2 or y.aval.ndim != n:
        raise TypeRule(f"batch_matmul of {x.aval!r} and {y.aval!r}", fix="use weft.numpy.matmul")
    stack = tuple(range(n - 2))
    return dot_general(x, y, (((n - 1,), (n - 2,)), (stack, stack)), precision)
