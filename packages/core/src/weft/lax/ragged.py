"""Products of matrices whose rows belong to groups of different sizes.

Invariant: a row meets the matrix of its group only: infinities and nans of other groups do not
reach it.
"""

from typing import Any

import numpy as np

from ..control import scan
from ..errors import TypeRule
from ..ops import elementwise as el
from ..ops.contraction import contracted, normal_precision, operands
from ..ops.cumulative import cumsum_
from ..ops.indexing import dynamic_slice_in_dim
from ..ops.shape import broadcast_to, convert, expand_dims, iota
from ..surface import fused, value
from ..types import INTEGER, Aval
from ..values import Literal


def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
) -> Any:
    """Rows times the matrices of their groups, as in mixtures of experts.

    Args:
      lhs: (m, k); the rows of a group are neighbours, and groups are in order.
      rhs: (g, k, n), one matrix for each group.
      group_sizes: integers (g,); rows beyond their sum become 0.
      precision, preferred_element_type: as of `dot_general`.
      group_offset: an integer array (1,): `rhs` has the matrices from this group on, and rows of
        others become 0; `group_sizes` may then be longer than `rhs`.

    Returns (m, n).  One group is multiplied after the other, so that no more than the result is
    held.  Raises TypeRule for other shapes.

    >>> import numpy as np, weft as wf
    >>> x, w = np.ones((3, 2), np.float32), np.float32([[[1.0], [1.0]], [[5.0], [5.0]]])
    >>> wf.lax.ragged_dot(x, w, np.array([2, 1])).tolist()
    [[2.0], [2.0], [10.0]]
    """
    x, w, sizes = value(lhs), value(rhs), value(group_sizes)
    fits = x.aval.ndim == 2 and w.aval.ndim == 3 and x.aval.shape[1] == w.aval.shape[1]
    if not fits or sizes.aval.ndim != 1 or sizes.aval.category != INTEGER:
        raise TypeRule(
            f"ragged_dot of {x.aval!r} and {w.aval!r} by groups {sizes.aval!r}",
            fix="give (m, k) rows, (g, k, n) matrices and g integers",
        )
    if group_offset is None and sizes.aval.shape[0] != w.aval.shape[0]:
        raise TypeRule(
            f"ragged_dot: {sizes.aval.shape[0]} groups and {w.aval.shape[0]} matrices",
            fix="give a size for each matrix, or say by group_offset which groups they are of",
        )
    ends = cumsum_.bind(convert(sizes, np.int32), axis=0, reverse=False)
    starts = el.sub(ends, convert(sizes, np.int32))
    if group_offset is not None:
        first = convert(value(group_offset), np.int32).reshape(())
        starts, ends = (dynamic_slice_in_dim(v, first, w.aval.shape[0]) for v in (starts, ends))
    x, w, dtype = operands(x, w, preferred_element_type)
    return _in_turn(
        x, w, starts, ends, precision=normal_precision(precision), dtype=np.dtype(dtype)
    )


@fused
def _in_turn(x: Any, w: Any, starts: Any, ends: Any, *, precision: Any, dtype: np.dtype) -> Any:
    number = iota(np.dtype(np.int32), (x.aval.shape[0],))
    shape = x.aval.shape[0], w.aval.shape[2]

    def step(total: Any, group: Any) -> tuple:
        matrix, start, end = group
        mine = expand_dims(el.and_(number >= start, el.lt(number, end)), 1)
        out = contracted(
            x, matrix, ((1,), (0,)), precision=precision, preferred_element_type=dtype
        )
        return el.select(broadcast_to(mine, shape), out, total), None

    start = broadcast_to(Literal(0, Aval((), dtype)), shape)
    return scan(step, start, (w, starts, ends))[0]
