"""Products of sparse arrays with dense and with sparse ones: `dot_general` and `matmul`.

A product with a dense array gathers its rows, multiplies them by the values, and adds them at the
rows of the result.  So its derivatives are products of the same kind.

Invariant: values of two bytes are accumulated in float32; padding adds nothing.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import plait.numpy as pnp
from plait import lax
from plait.ext.errors import ArgumentError, ShapeError
from plait.ext.trace import Value
from plait.typing import Array

from .conversion import densified, extracted, flat_entries, laid_out
from .entries import Entries, accumulator, clean, columns, compiled, computed, inside, rebuilt
from .ordering import merged

if TYPE_CHECKING:
    from .bcoo import BCOO

__all__ = ["dot_general", "matmul", "sampled"]

Numbers = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


class Axes(NamedTuple):
    """Roles of the axes of a product: contracted and shared axes of both operands, and the others.

    The result has the shared axes, the other axes of the left operand, and those of the right one.
    """

    contract: tuple[tuple[int, ...], tuple[int, ...]]
    shared: tuple[tuple[int, ...], tuple[int, ...]]
    left: tuple[int, ...]
    right: tuple[int, ...]

    @property
    def swapped(self) -> "Axes":
        """The roles with the operands exchanged."""
        (a, b), (c, d) = self.contract, self.shared
        return Axes((b, a), (d, c), self.right, self.left)


def axes_of(x: Any, y: Any, numbers: Numbers) -> Axes:
    """Return the roles of the axes.

    Raises ShapeError for sizes that differ.
    """
    (a, b), (c, d) = [(tuple(map(int, p)), tuple(map(int, q))) for p, q in numbers]
    if len(a) != len(b) or len(c) != len(d):
        raise ArgumentError(
            f"expected dimension_numbers with pairs of axes, got {numbers}",
            fix="write ((contracted of lhs, of rhs), (batch of lhs, of rhs))",
        )
    for name, v, axes in (("lhs", x, (*a, *c)), ("rhs", y, (*b, *d))):
        if any(not 0 <= k < v.ndim for k in axes) or len(set(axes)) < len(axes):
            raise ArgumentError(
                f"expected axes of `{name}` from 0 to below {v.ndim}, each once, got {axes}",
                fix="correct dimension_numbers",
            )
    for i, j in zip((*a, *c), (*b, *d), strict=True):
        if x.shape[i] != y.shape[j]:
            raise ShapeError(
                f"expected equal sizes, got {x.shape[i]} along axis {i} of lhs {tuple(x.shape)} "
                f"and {y.shape[j]} along axis {j} of rhs {tuple(y.shape)}",
                fix="correct dimension_numbers, or transpose an operand",
            )
    left = tuple(k for k in range(x.ndim) if k not in (*a, *c))
    right = tuple(k for k in range(y.ndim) if k not in (*b, *d))
    return Axes((a, b), (c, d), left, right)


def dot_general(
    x: "Array | BCOO", y: Any, numbers: Numbers, precision: str | None = None, dtype: Any = None
) -> Any:
    """Return the product of two arrays; one or both are sparse."""
    roles = axes_of(x, y, numbers)
    dtype = np.dtype(pnp.promote_types(x.dtype, y.dtype) if dtype is None else dtype)
    if isinstance(x, Entries) and isinstance(y, Entries):
        return _both_sparse(x, y, roles, dtype)
    if isinstance(x, Entries):
        return _left_sparse(x, pnp.asarray(y), roles, precision, dtype)
    out = _left_sparse(y, pnp.asarray(x), roles.swapped, precision, dtype)
    shared, left = len(roles.shared[0]), len(roles.left)
    mine = tuple(range(out.ndim - left, out.ndim))
    return out.transpose((*range(shared), *mine, *range(shared, out.ndim - left)))


@compiled("roles", "precision", "dtype")
def _left_sparse(x: Entries, y: Array, roles: Axes, precision: str | None, dtype: np.dtype) -> Any:
    """Return the product of a sparse array with a dense one, which is dense."""
    x = flat_entries(x)
    paired = dict(zip((*roles.contract[0], *roles.shared[0]),
                      (*roles.contract[1], *roles.shared[1]), strict=True))  # fmt: skip
    gathered = [k for k in range(x.n_sparse) if k in paired]
    wide = accumulator(dtype)
    if not gathered or not x.n_sparse:
        out = lax.dot_general(
            densified(x), y, (roles.contract, roles.shared), precision=precision,
            preferred_element_type=wide,
        )  # fmt: skip
        return computed(out, dtype)
    cols = columns(x)
    rest = [k for k in range(y.ndim) if k not in [paired[g] for g in gathered]]
    y = y.transpose((*(paired[g] for g in gathered), *rest))
    rows = y.at[tuple(cols[g] for g in gathered)].get(mode="fill", fill_value=0)
    dense = list(range(x.n_sparse, x.ndim))
    mates = {paired[k]: k for k in dense if k in paired}
    named = [mates.get(k, x.ndim + k) for k in rest]  # labels: axes of x, then those of y
    kept = [k for k in dense if k not in roles.contract[0]]
    free = [x.ndim + k for k in roles.right]
    parts = _per_entry(x.data.astype(wide), dense, rows.astype(wide), named, kept + free, precision)
    own = [k for k in (*roles.shared[0], *roles.left) if k < x.n_sparse]
    lead = [x.shape[k] for k in own]
    if own:
        zeros = pnp.zeros((*lead, *parts.shape[1:]), wide)
        in_rows = x.indices_sorted and own == list(range(len(own)))
        out = zeros.at[tuple(cols[k] for k in own)].add(
            parts, mode="drop", indices_are_sorted=in_rows
        )
    else:
        out = parts.sum(0)
    have = [*own, *kept, *free]
    want = [*roles.shared[0], *roles.left, *free]
    return computed(out.transpose([have.index(k) for k in want]), dtype)


def _per_entry(
    data: Value,
    dense: list[int],
    rows: Array,
    named: list[int],
    out: list[int],
    precision: str | None,
) -> Any:
    """Return the product of the values and the row of each entry, by labels of axes."""
    if not dense:  # the compiler fuses a product with the gather, but no dot
        return data.reshape((-1, *(1,) * len(named))) * rows
    label = {k: chr(ord("a") + i) for i, k in enumerate(sorted({*dense, *named}))}
    x, y, z = ("".join(label[k] for k in axes) for axes in (dense, named, out))
    return pnp.einsum(f"Z{x},Z{y}->Z{z}", data, rows, precision=precision)


@compiled("roles", "dtype")
def _both_sparse(x: Entries, y: Entries, roles: Axes, dtype: np.dtype) -> Any:
    """Return the product of two sparse arrays, which is sparse.

    Each entry of one meets each entry of the other; pairs whose indices differ become padding.
    """
    x, y = _aligned(x, y, roles)
    left, right = _spread(x, np.s_[..., :, None]), _spread(y, np.s_[..., None, :])
    meets = inside(x)[..., :, None] & inside(y)[..., None, :]
    for i, j in zip(*roles.contract, strict=True):
        meets = meets & (left[i] == right[j])
    wide = accumulator(dtype)
    data = x.data.astype(wide)[..., :, None] * y.data.astype(wide)[..., None, :]
    lead, count = x.batch_shape, x.nse * y.nse
    data = pnp.where(meets, data, np.zeros((), wide)).reshape((*lead, count))
    if not (roles.left or roles.right):
        return computed(data.sum(-1), dtype)
    cols = [*(left[k] for k in roles.left), *(right[k] for k in roles.right)]
    sizes = (*(x.shape[k] for k in roles.left), *(y.shape[k] for k in roles.right))
    grid = pnp.stack([pnp.broadcast_to(c, meets.shape) for c in cols], -1)
    limits = np.array(sizes, grid.dtype)
    indices = pnp.where(meets[..., None], grid, limits).reshape((*lead, count, len(sizes)))
    out = rebuilt(x, data, indices, sparse_shape=sizes, is_sorted=False, unique=False)
    out = merged(out, math.prod(sizes)) if math.prod(sizes) < count else out
    return rebuilt(out, computed(out.data, dtype))


def _aligned(x: Entries, y: Entries, roles: Axes) -> tuple[Any, Any]:
    """Return both operands, clean, with the shared axes as batch axes and all others sparse."""
    many = len(roles.shared[0])
    for name, axes in (("lhs", roles.shared[0]), ("rhs", roles.shared[1])):
        if tuple(axes) != tuple(range(many)):
            raise ArgumentError(
                f"a product of two sparse arrays expected the first axes of `{name}` as its batch "
                f"axes, got {axes}",
                fix="transpose the operand, or make one of the operands dense by .todense()",
            )
    return clean(laid_out(x, many, 0)), clean(laid_out(y, many, 0))


def _spread(x: Entries, at: tuple[Any, ...]) -> dict[int, Any]:
    """Return the indices along each sparse axis, spread over the pairs of entries."""
    return {x.n_batch + k: x.indices[..., k][at] for k in range(x.n_sparse)}


def sampled(a: Array, b: Array, indices: Array, numbers: Numbers) -> Any:
    """Return the elements at `indices` of the product of two dense arrays."""
    roles = axes_of(a, b, numbers)
    many, left = len(roles.shared[0]), len(roles.left)
    ndim = many + left + len(roles.right)
    wide = accumulator(pnp.promote_types(a.dtype, b.dtype))
    dtype = pnp.promote_types(a.dtype, b.dtype)
    if indices.ndim != 2 or indices.shape[-1] != ndim:  # batch or dense axes
        out = lax.dot_general(a, b, numbers)
        sizes = out.shape[indices.ndim - 2 :][: indices.shape[-1]]
        return extracted(Entries.made(out, indices, sizes, False, False), out)
    cols = [indices[:, k] for k in range(ndim)]
    a = a.transpose((*roles.shared[0], *roles.left, *roles.contract[0]))
    b = b.transpose((*roles.shared[1], *roles.right, *roles.contract[1]))
    rows = _rows(a, cols[: many + left], wide), _rows(b, [*cols[:many], *cols[many + left :]], wide)
    out = rows[0] * rows[1]
    return computed(out.sum(tuple(range(1, out.ndim))), dtype)


def _rows(x: Any, cols: Sequence[Any], dtype: np.dtype) -> Any:
    """Return the rows of a dense array at indices along its first axes; zeros out of bounds."""
    return x.at[tuple(cols)].get(mode="fill", fill_value=0).astype(dtype)


def matmul(x: Any, y: Any) -> Any:
    """Return `x @ y`, as numpy.matmul, where one or both are sparse."""
    x, y = [v if isinstance(v, Entries) else pnp.asarray(v) for v in (x, y)]
    if not x.ndim or not y.ndim:
        raise ShapeError(
            f"matmul expected arrays with axes, got shapes {tuple(x.shape)} and {tuple(y.shape)}",
            fix="multiply by a scalar with *",
        )
    inner = max(y.ndim - 2, 0)
    if x.shape[-1] != y.shape[inner]:
        raise ShapeError(
            f"matmul expected equal sizes, got {x.shape[-1]} along the last axis of "
            f"{tuple(x.shape)} and {y.shape[inner]} along axis {inner} of {tuple(y.shape)}",
            fix="transpose an operand",
        )
    lead = min(max(x.ndim - 2, 0), max(y.ndim - 2, 0))
    more_x, more_y = max(x.ndim - 2, 0) - lead, max(y.ndim - 2, 0) - lead
    if tuple(x.shape[more_x : more_x + lead]) != tuple(y.shape[more_y : more_y + lead]):
        raise ShapeError(
            f"matmul of sparse arrays expected equal batch axes, got shapes {tuple(x.shape)} and "
            f"{tuple(y.shape)}",
            fix="broadcast an operand to the batch axes of the other first",
        )
    shared = tuple(range(more_x, more_x + lead)), tuple(range(more_y, more_y + lead))
    out = dot_general(x, y, (((x.ndim - 1,), (inner,)), shared))
    if not (more_x or more_y) or not lead and not (y.ndim > 2 and x.ndim > 1):
        return out
    return _numpy_order(x, y, out, lead, more_x, more_y)


def _numpy_order(x: Any, y: Any, out: Value, lead: int, more_x: int, more_y: int) -> Any:
    """Return a product with its batch axes before its rows and columns."""
    if isinstance(out, Entries):
        raise ShapeError(
            "matmul of two sparse arrays expected as many batch axes in both, got shapes "
            f"{tuple(x.shape)} and {tuple(y.shape)}",
            fix="use plait.sparse.bcoo_dot_general, or make one of them dense by .todense()",
        )
    rows, cols = min(x.ndim - 1, 1), min(y.ndim - 1, 1)
    own = list(range(lead, lead + more_x))
    row = list(range(lead + more_x, lead + more_x + rows))
    start = lead + more_x + rows
    other = list(range(start, start + more_y))
    col = list(range(start + more_y, start + more_y + cols))
    return out.transpose([*own, *other, *range(lead), *row, *col])
