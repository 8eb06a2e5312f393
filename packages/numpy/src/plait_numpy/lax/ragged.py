"""Products of matrices whose rows belong to groups of different sizes.

Invariant: a row is multiplied by its own group's matrix only: infinities and nans of other groups
do not reach it.
"""

from typing import Any, NamedTuple

import numpy as np

from plait.errors import ArgumentError, OperandTypeError, ShapeError
from plait.ext import Aval, Literal
from plait.ext.control import scan
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.contraction import axis_pairs, contracted, normal_precision, product_operands
from plait.ext.ops.contraction import dot_general as dot_general_p
from plait.ext.ops.cumulative import cumsum_
from plait.ext.ops.indexing import dynamic_slice_in_dim
from plait.ext.surface import free, fused, placed, value
from plait.ext.trace import Value
from plait.ext.types import INTEGER
from plait.typing import Array, ArrayLike, DTypeLike


def ragged_dot(
    lhs: ArrayLike, rhs: ArrayLike, group_sizes: ArrayLike, precision: Any = None,
    preferred_element_type: DTypeLike | None = None, group_offset: ArrayLike | None = None,
    out_sharding: Any = None,
) -> Array:  # fmt: skip
    """Multiply rows by the matrices of their groups, as in mixtures of experts.

    Args:
      lhs: (m, k); the rows of a group are neighbours, and groups are in order.
      rhs: (g, k, n), one matrix for each group.
      group_sizes: integers (g,); rows beyond their sum become 0.
      precision, preferred_element_type: as in `dot_general`.
      group_offset: an integer array (1,): `rhs` has the matrices from this group on, and rows of
        other groups become 0; `group_sizes` may then be longer than `rhs`.
      out_sharding: sharding of the result.

    Returns (m, n).  Groups are multiplied one after the other, so that only the result is held in
    memory.  Raises TypeRule for other shapes.

    >>> import numpy as np, plait
    >>> x, w = np.ones((3, 2), np.float32), np.float32([[[1.0], [1.0]], [[5.0], [5.0]]])
    >>> plait.lax.ragged_dot(x, w, np.array([2, 1])).tolist()
    [[2.0], [2.0], [10.0]]
    """
    x, w, sizes = (free(value(v), out_sharding) for v in (lhs, rhs, group_sizes))
    fits = x.aval.ndim == 2 and w.aval.ndim == 3 and x.aval.shape[1] == w.aval.shape[1]
    if not fits or sizes.aval.ndim != 1 or sizes.aval.category != INTEGER:
        raise OperandTypeError(
            f"ragged_dot of {x.aval!r} and {w.aval!r} by groups {sizes.aval!r}",
            fix="give (m, k) rows, (g, k, n) matrices and g integers",
        )
    if group_offset is None and sizes.aval.shape[0] != w.aval.shape[0]:
        raise ShapeError(
            f"ragged_dot: {sizes.aval.shape[0]} groups and {w.aval.shape[0]} matrices",
            fix="give a size for each matrix, or say by group_offset which groups they are of",
        )
    ends = cumsum_.bind(sh.convert(sizes, np.int32), axis=0, reverse=False)
    starts = el.sub(ends, sh.convert(sizes, np.int32))
    if group_offset is not None:
        first = sh.convert(value(group_offset), np.int32).reshape(())
        starts, ends = (dynamic_slice_in_dim(v, first, w.aval.shape[0]) for v in (starts, ends))
    x, w, dtype = product_operands(x, w, preferred_element_type)
    out = _in_turn(x, w, starts, ends, precision=normal_precision(precision), dtype=np.dtype(dtype))
    return placed(out, out_sharding)


@fused
def _in_turn(x: Value, w: Any, starts: Any, ends: Any, *, precision: str, dtype: np.dtype) -> Any:
    number = sh.iota(np.dtype(np.int32), (x.aval.shape[0],))
    shape = x.aval.shape[0], w.aval.shape[2]

    def step(total: Any, group: Any) -> tuple:
        matrix, start, end = group
        mine = sh.expand_dims(el.and_(number >= start, el.lt(number, end)), 1)
        out = contracted(x, matrix, ((1,), (0,)), precision=precision, preferred_element_type=dtype)
        return el.select(sh.broadcast_to(mine, shape), out, total), None

    start = sh.broadcast_to(Literal(0, Aval((), dtype)), shape)
    return scan(step, start, (w, starts, ends))[0]


class RaggedDotDimensionNumbers(NamedTuple):
    """The roles of axes in `ragged_dot_general`.

    Attributes:
      dot_dimension_numbers: as in `dot_general`, for one group.
      lhs_ragged_dimensions: the axis of lhs that groups divide: one.
      rhs_group_dimensions: the axis of rhs that indexes groups: one if rows are divided, else none.
    """

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Any
    rhs_group_dimensions: Any


class _Roles(NamedTuple):
    """The axes of a ragged product, counted from the front."""

    contract: tuple
    shared: tuple
    ragged: int
    group: int | None  # of rhs
    outer: tuple  # axes of lhs along which the group sizes differ


def _roles(x: Value, w: Value, given: Any) -> _Roles:
    try:
        numbers, ragged, groups = given
        (r,) = ragged
    except (TypeError, ValueError):
        raise ArgumentError(
            f"ragged_dot_general: {given!r} do not name one ragged axis",
            fix="pass RaggedDotDimensionNumbers(dot_dimension_numbers, [axis of lhs], [...])",
        ) from None
    n, m = x.aval.ndim, w.aval.ndim
    (cx, cy), (bx, by) = axis_pairs("ragged_dot_general", numbers)
    contract = sh.normal_axes(cx, n), sh.normal_axes(cy, m)
    shared = sh.normal_axes(bx, n), sh.normal_axes(by, m)
    r, groups = sh.normal_axis(r, n), sh.normal_axes(tuple(groups), m)
    free = tuple([i for i in range(n) if i not in contract[0] and i not in shared[0]])
    if len(groups) != (r in free) or set(groups) & {*contract[1], *shared[1]}:
        raise ArgumentError(
            f"ragged_dot_general: rhs_group_dimensions is {groups}, for {w.aval!r}",
            fix="name the axis of the groups' matrices if rows are divided, and none otherwise",
        )
    if r in shared[0]:
        return _Roles(contract, shared, r, None, shared[0][: shared[0].index(r)])
    if r in free:
        return _Roles(contract, shared, r, groups[0], shared[0] + free[: free.index(r)])
    return _Roles(contract, shared, r, None, shared[0] + contract[0][: contract[0].index(r)])


def ragged_dot_general(
    lhs: ArrayLike, rhs: ArrayLike, group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, precision: Any = None,
    preferred_element_type: DTypeLike | None = None, group_offset: ArrayLike | None = None,
    out_sharding: Any = None,
) -> Array:  # fmt: skip
    """Apply `dot_general` to groups of neighbours along an axis of the left operand.

    Args:
      lhs, rhs: arrays.
      group_sizes: integers (g,), or (..., g) if groups differ along other axes: then with an axis
        for each shared axis, and for each axis of the ragged one's kind in front of it.
      ragged_dot_dimension_numbers: the roles of axes.  Groups may divide rows: each group has its
        part of rhs, and rows of no group become 0.  They may divide a contracted axis: the result
        has one part for each group, in front.  If they divide a shared axis, they have no effect.
      precision, preferred_element_type: as in `dot_general`.
      group_offset: an integer array (1,), if rows are divided: `rhs` has the parts from this group
        on, and rows of other groups become 0.
      out_sharding: sharding of the result.

    Groups are multiplied one after the other.  Raises TypeRule if sizes disagree or an
    axis has several roles, AxisError for axes that an operand lacks.

    >>> import numpy as np, plait
    >>> numbers = plait.lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
    >>> x, y = np.ones((3, 1)), np.ones((3, 1))
    >>> plait.lax.ragged_dot_general(x, y, np.array([1, 2]), numbers).tolist()
    [[[1.0]], [[2.0]]]
    """
    x, w, sizes = value(lhs), value(rhs), value(group_sizes)
    at = _roles(x, w, ragged_dot_dimension_numbers)
    if sizes.aval.category != INTEGER or not sizes.aval.ndim:
        raise ShapeError(
            f"ragged_dot_general: groups of sizes {sizes.aval!r}", fix="give integers (g,)"
        )
    prefix = tuple([x.aval.shape[a] for a in at.outer])
    if sizes.aval.ndim == 1:
        sizes = sh.broadcast_to(sizes, (*prefix, sizes.aval.shape[0]))
    if sizes.aval.shape[:-1] != prefix:
        raise ShapeError(
            f"ragged_dot_general: groups of sizes {sizes.aval!r}, for {x.aval!r}",
            fix=f"give integers (g,), or ({', '.join(map(str, prefix))}, g)",
        )
    last = sizes.aval.ndim - 1
    ends = cumsum_.bind(sh.convert(sizes, np.int32), axis=last, reverse=False)
    starts = el.sub(ends, sh.convert(sizes, np.int32))
    if group_offset is not None:
        if at.group is None:
            raise ShapeError(
                "ragged_dot_general: group_offset is for divided rows", fix="leave it out"
            )
        first = sh.convert(value(group_offset), np.int32).reshape(())
        count = w.aval.shape[at.group]
        starts, ends = (dynamic_slice_in_dim(v, first, count, last) for v in (starts, ends))
    if at.group is not None and starts.aval.shape[-1] != w.aval.shape[at.group]:
        raise ArgumentError(
            f"ragged_dot_general: {starts.aval.shape[-1]} groups, and {w.aval!r}",
            fix=f"give a size for each of {w.aval.shape[at.group]} groups",
        )
    x, w, dtype = product_operands(x, w, preferred_element_type)
    how = dict(precision=normal_precision(precision), preferred_element_type=np.dtype(dtype))
    if at.ragged in at.shared[0]:
        return placed(contracted(x, w, at.contract, at.shared, **how), out_sharding)
    parts = _rows_divided if at.group is not None else _sums_divided
    out = parts(x, w, sh.moveaxis(starts, last, 0), sh.moveaxis(ends, last, 0), at=at, how=how)
    return placed(out, out_sharding)


def _inside(x: Value, start: Value, end: Value, axis: int) -> Any:
    """Return which positions along the ragged axis are in a group: (..., size)."""
    places = sh.iota(np.dtype(np.int32), (*start.aval.shape, x.aval.shape[axis]), start.aval.ndim)
    wide = lambda v: sh.broadcast_to(sh.expand_dims(v, v.aval.ndim), places.aval.shape)  # noqa: E731
    return el.and_(el.ge(places, wide(start)), el.lt(places, wide(end)))


def _rows_divided(x: Value, w: Value, starts: Any, ends: Any, *, at: _Roles, how: dict) -> Any:
    group = at.group or 0
    less = lambda axes: tuple([a - (a > group) for a in axes])  # noqa: E731
    contract, shared = ((left, less(right)) for left, right in (at.contract, at.shared))

    def product(matrix: Value) -> Any:
        return contracted(x, matrix, contract, shared, **how)

    def step(total: Any, one: Any) -> tuple:
        matrix, start, end = one
        out, mine = product(matrix), _inside(x, start, end, at.ragged)
        rest = out.aval.ndim - mine.aval.ndim
        mine = sh.broadcast_to(sh.reshape(mine, (*mine.aval.shape, *(1,) * rest)), out.aval.shape)
        return el.select(mine, out, total), None

    first = sh.moveaxis(w, group, 0)
    kinds = x.aval.strong(), first.aval.with_shape(first.aval.shape[1:]).strong()
    like = dot_general_p.infer(
        kinds,
        dict(contract=contract, shared=shared, precision=how["precision"],
             out_dtype=how["preferred_element_type"]),
    )  # fmt: skip
    return scan(step, sh.fill(0, like), (first, starts, ends))[0]


def _sums_divided(x: Value, w: Value, starts: Any, ends: Any, *, at: _Roles, how: dict) -> Any:
    (cx, cy), (bx, by) = at.contract, at.shared
    theirs = dict(zip((*bx, *cx), (*by, *cy)))
    axes = (*at.outer, at.ragged)

    def only(v: Value, mine: Value, named: tuple) -> Any:
        order = sorted(range(len(named)), key=named.__getitem__)
        shape = [v.aval.shape[a] if a in named else 1 for a in range(v.aval.ndim)]
        mine = sh.broadcast_to(sh.reshape(sh.transpose(mine, tuple(order)), shape), v.aval.shape)
        return el.select(mine, v, sh.fill(0, v.aval))

    def step(_: Any, one: Any) -> tuple:
        start, end = one
        mine = _inside(x, start, end, at.ragged)
        parts = only(x, mine, axes), only(w, mine, tuple([theirs[a] for a in axes]))
        return None, contracted(*parts, at.contract, at.shared, **how)

    return scan(step, None, (starts, ends))[1]
