"""Operations that change shapes or combine elements, for random expressions, and bounds of sums.

The order in which a compiler adds is its own.  So a sum is compared to the bit where it is exact in
each order: its terms are multiples of one number, and few enough of it.  Elsewhere it must lie in
the interval that the terms allow, and be infinite or nan only where some order makes it so.

Invariant: a bound follows from the operands' values alone, in more digits than they have.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import plait
import plait.numpy as pnp
from plait import lax

Shape = tuple[int, ...]
SIZE, ROWS, COLUMNS = 40, 4, 10
VECTOR, MATRIX, TALL, SQUARE = (SIZE,), (ROWS, COLUMNS), (COLUMNS, ROWS), (ROWS, ROWS)
BEGINNINGS: tuple[Shape, ...] = (VECTOR, VECTOR, VECTOR, MATRIX, MATRIX, TALL)
_OF_ONE_AXIS = [VECTOR, MATRIX, TALL, SQUARE, (ROWS,), (COLUMNS,)]
_WIDE = np.longdouble


class ArrayOperation(NamedTuple):
    """An operation on whole arrays.

    Attributes:
      apply: what it does.
      shapes: for each shape of the first operand, those of the others, and that of the result.
      kinds: letters of the kinds of dtypes that it takes.
      dtype: that of the result if it is not that of the operands.
      terms: for a sum, the numbers that are added along the last axis, from operands in many
        digits.
      divided: whether the sum is divided by the number of its terms.
    """

    apply: Callable[..., Any]
    shapes: dict[Shape, tuple[tuple[Shape, ...], Shape]]
    kinds: str = "fiuc"
    dtype: str | None = None
    terms: Callable[..., np.ndarray] | None = None
    divided: bool = False


def _alone(shapes: dict[Shape, Shape]) -> dict[Shape, tuple[tuple[Shape, ...], Shape]]:
    return {s: ((), to) for s, to in shapes.items()}


def _same(*shapes: Shape) -> dict[Shape, tuple[tuple[Shape, ...], Shape]]:
    return _alone({s: s for s in shapes})


def _reduced(axis: int) -> dict[Shape, tuple[tuple[Shape, ...], Shape]]:
    some = _OF_ONE_AXIS if axis else [MATRIX, TALL, SQUARE]
    return _alone({s: s[1:] if axis == 0 else s[:-1] for s in some})


def _along(f: Callable[..., Any], axis: int) -> Callable[[Any], Any]:
    return lambda x: f(x, (axis % x.ndim,))


def _last(x: np.ndarray, axis: int) -> np.ndarray:
    return np.moveaxis(x, axis, -1)


def _prefixes(x: np.ndarray, axis: int, reverse: bool = False) -> np.ndarray:
    """Return for each element those before it along an axis, with zeros beside them."""
    x = _last(x, axis)
    n = x.shape[-1]
    kept = np.tri(n, dtype=bool)
    kept = kept.T if reverse else kept
    terms = np.where(kept, x[..., None, :], x.dtype.type(0))
    return np.moveaxis(terms, -2, axis if axis >= 0 else axis - 1)


def _mean(x: Any) -> Any:
    return lax.div(lax.reduce_sum(x, (x.ndim - 1,)), pnp.full(x.shape[:-1], x.shape[-1], x.dtype))


def _any(x: Any) -> Any:
    return lax.reduce_or(x, (x.ndim - 1,))


def _whole(x: Any) -> Any:
    """Return the numbers rounded to whole ones of at most 2, which are added exactly."""
    kept = lax.clamp(x.dtype.type(0 if x.dtype.kind == "u" else -2), x, x.dtype.type(2))
    if not _floating(x):
        return kept
    kept = lax.round(kept, lax.RoundingMethod.TO_NEAREST_EVEN)
    return lax.select(lax.eq(x, x), kept, pnp.zeros_like(x))


def _floating(x: Any) -> bool:
    """Return whether an array holds real numbers with fractions."""
    return bool(plait.dtypes.issubdtype(x.dtype, np.floating))


def _pieces(x: Any) -> Any:
    return pnp.concatenate([x[1:], x[:1]], axis=0)


ARRAY_OPERATIONS: dict[str, ArrayOperation] = {
    "whole": ArrayOperation(_whole, _same(*_OF_ONE_AXIS, ()), "fiu"),
    "sum_0": ArrayOperation(
        _along(lax.reduce_sum, 0), _reduced(0), terms=lambda x: _last(x, 0)),
    "sum_1": ArrayOperation(
        _along(lax.reduce_sum, -1), _reduced(-1), terms=lambda x: x),
    "sum_all": ArrayOperation(
        lambda x: lax.reduce_sum(x, (0, 1)), _alone({MATRIX: (), TALL: (), SQUARE: ()}),
        terms=lambda x: x.reshape(-1)),
    "mean": ArrayOperation(_mean, _reduced(-1), "f", terms=lambda x: x, divided=True),
    "prod": ArrayOperation(
        lambda x: lax.reduce_prod(_whole(x), (x.ndim - 1,)), _reduced(-1), "fiu"),
    "max_0": ArrayOperation(_along(lax.reduce_max, 0), _reduced(0), "fiu"),
    "max_1": ArrayOperation(_along(lax.reduce_max, -1), _reduced(-1), "fiu"),
    "min_1": ArrayOperation(_along(lax.reduce_min, -1), _reduced(-1), "fiu"),
    "any": ArrayOperation(_any, _reduced(-1), "b"),
    "all": ArrayOperation(_along(lax.reduce_and, 0), _reduced(0), "b"),
    "cumsum_0": ArrayOperation(
        lambda x: lax.cumsum(x, 0), _same(*_OF_ONE_AXIS), terms=lambda x: _prefixes(x, 0)),
    "cumsum_back": ArrayOperation(
        lambda x: lax.cumsum(x, x.ndim - 1, reverse=True), _same(*_OF_ONE_AXIS),
        terms=lambda x: _prefixes(x, -1, True)),
    "cummax": ArrayOperation(lambda x: lax.cummax(x, 0), _same(*_OF_ONE_AXIS), "fiu"),
    "cumprod": ArrayOperation(
        lambda x: lax.cumprod(_whole(x), x.ndim - 1), _same(MATRIX, TALL, SQUARE), "fiu"),
    "sort": ArrayOperation(lambda x: lax.sort(x, dimension=0), _same(*_OF_ONE_AXIS), "fiu"),
    "argmax": ArrayOperation(
        lambda x: lax.argmax(x, x.ndim - 1, np.int32), _reduced(-1), "fiu", "int32"),
    "argmin": ArrayOperation(lambda x: lax.argmin(x, 0, np.int32), _reduced(0), "fiu", "int32"),
    "to_matrix": ArrayOperation(
        lambda x: lax.reshape(x, MATRIX), _alone({VECTOR: MATRIX}), "fiucb"),
    "to_vector": ArrayOperation(
        lambda x: lax.reshape(x, VECTOR), _alone({MATRIX: VECTOR, TALL: VECTOR}), "fiucb"),
    "transpose": ArrayOperation(
        lambda x: lax.transpose(x, (1, 0)),
        _alone({MATRIX: TALL, TALL: MATRIX, SQUARE: SQUARE}), "fiucb"),
    "to_columns": ArrayOperation(
        lambda x: lax.broadcast_in_dim(x, MATRIX, (0,) if x.ndim else ()),
        _alone({(ROWS,): MATRIX, (): MATRIX}), "fiucb"),
    "to_rows": ArrayOperation(
        lambda x: lax.broadcast_in_dim(x, MATRIX, (1,)), _alone({(COLUMNS,): MATRIX}), "fiucb"),
    "first_column": ArrayOperation(
        lambda x: pnp.broadcast_to(x[:, :1], x.shape), _same(MATRIX, TALL), "fiucb"),
    "first_row": ArrayOperation(
        lambda x: pnp.broadcast_to(x[0], x.shape), _same(MATRIX, TALL), "fiucb"),
    "greatest": ArrayOperation(
        lambda x: pnp.broadcast_to(lax.reduce_max(x, (1,))[:, None], x.shape),
        _same(MATRIX, TALL), "fiu"),
    "pieces": ArrayOperation(_pieces, _same(*_OF_ONE_AXIS), "fiucb"),
    "one_row": ArrayOperation(
        lambda x: lax.reshape(x[1:2], x.shape[1:]), _alone({MATRIX: (COLUMNS,), SQUARE: (ROWS,)}),
        "fiucb"),
    "sum_of_one": ArrayOperation(
        lambda x: lax.reduce_sum(lax.reshape(x, (*x.shape, 1)), (x.ndim,)), _same(*_OF_ONE_AXIS)),
    "dot": ArrayOperation(
        lax.dot, {MATRIX: (((COLUMNS,),), (ROWS,)), (COLUMNS,): ((TALL,), (ROWS,)),
                  TALL: (((ROWS,),), (COLUMNS,)), VECTOR: ((VECTOR,), ())}, "fiu",
        terms=lambda x, y: _products(x, y)),
    "matmul": ArrayOperation(
        lax.dot, {MATRIX: ((TALL,), SQUARE), SQUARE: ((MATRIX,), MATRIX)}, "fiu",
        terms=lambda x, y: _products(x, y)),
}  # fmt: skip


def _part_of_broadcast(x: Any) -> Any:
    wide = lax.broadcast_in_dim(x, (*x.shape, 3), tuple(range(x.ndim)))
    return wide[..., 1]


def _dot_of_one(x: Any) -> Any:
    return lax.reshape(lax.dot(lax.reshape(x, (x.size, 1)), pnp.ones((1, 1), x.dtype)), x.shape)


_UNCHANGED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "chosen_itself": (lambda x: lax.select(lax.eq(x, x), x, x), "fiucb"),
    "greater_itself": (lambda x: lax.max(x, x), "fiu"),
    "bounded_by_itself": (lambda x: lax.clamp(x, x, x), "fiu"),
    "times_one": (lambda x: lax.mul(x, pnp.ones_like(x)), "fiu"),
    "by_one": (lambda x: lax.div(x, pnp.ones_like(x)), "fiu"),
    "twice_negated": (lambda x: lax.neg(lax.neg(x)), "fic"),
    "max_of_one": (
        lambda x: lax.reduce_max(lax.reshape(x, (*x.shape, 1)), (x.ndim,)), "fiu"),
    "dot_of_one": (_dot_of_one, "fiu"),
    "part_of_broadcast": (_part_of_broadcast, "fiucb"),
    "inner_function": (lambda x: plait.jit(lambda y: y)(x), "fiucb"),
    "one_turn": (lambda x: lax.fori_loop(0, 1, lambda i, y: y, x), "fiucb"),
}  # fmt: skip
"""Operations that the compiler drops, after which their neighbours meet."""
ARRAY_OPERATIONS |= {
    name: ArrayOperation(f, _same(*_OF_ONE_AXIS), kinds) for name, (f, kinds) in _UNCHANGED.items()
}


def _products(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the products that a product of matrices adds, along the last axis."""
    if y.ndim == 1:
        return x * y
    return x[..., None, :] * np.swapaxes(y, -1, -2)


# ---- bounds ----------------------------------------------------------------------------------


def in_parts(x: Any) -> list[np.ndarray]:
    """Return an array of numbers with many digits: the array, or its real and imaginary part."""
    x = np.asarray(x)
    if x.dtype.kind == "c":
        return [x.real.astype(_WIDE), x.imag.astype(_WIDE)]
    return [x.astype(np.float64).astype(_WIDE)]


def terms_of(operation: ArrayOperation, operands: list[Any]) -> list[np.ndarray]:
    """Return the terms of a sum: of its real part, and of its imaginary part if it has one."""
    assert operation.terms is not None
    wide = [in_parts(x) for x in operands]
    with np.errstate(all="ignore"):
        return [operation.terms(*some) for some in zip(*wide, strict=True)]


def is_exact(terms: list[np.ndarray], dtype: Any) -> bool:
    """Return whether sums have one value in any order: whole numbers, and not many of them."""
    info = plait.numpy.finfo(dtype)
    for t in terms:
        if not np.isfinite(t).all() or (t != np.rint(t)).any():
            return False
        if t.size and np.abs(t).sum(-1).max() > 1 / float(info.eps):
            return False
        if (
            np.signbit(t) & (t == 0)
        ).any():  # the sign of a sum of zeros depends on where it begins
            return False
    return True


def outside(got: np.ndarray, terms: np.ndarray, dtype: Any, slack: float) -> np.ndarray:
    """Return of which sums there is no order of their terms that gives them.

    Args:
      got: the sums.
      terms: their terms, along the last axis.
      dtype: the dtype in which they may be added.
      slack: by how many last places of its type a term may be wrong itself.
    """
    info = plait.numpy.finfo(dtype)
    high, eps, tiny = (_WIDE(float(v)) for v in (info.max, info.eps, info.tiny))
    n = terms.shape[-1]
    with np.errstate(all="ignore"):
        some = np.where(np.isfinite(terms), terms, 0)
        above, below = np.where(some > 0, some, 0).sum(-1), np.where(some < 0, -some, 0).sum(-1)
        room = (n + 2 + slack) * (eps * (above + below) + tiny)
        finite = np.abs(got.astype(_WIDE) - (above - below)) <= room
        nan = np.isnan(terms).any(-1)
        up, down = (terms == np.inf).any(-1), (terms == -np.inf).any(-1)
        over, under = above + room >= high, below + room >= high
        may_be_nan = nan | (up | over) & (down | under)
        allowed = np.where(np.isnan(got), may_be_nan, finite & ~up & ~down)
        allowed |= (got == np.inf) & (up | over) & ~down
        allowed |= (got == -np.inf) & (down | under) & ~up
    return ~np.where(nan | (up & down), np.isnan(got), allowed)
