"""Selection of elements from several arrays, and values without derivatives.

Invariant: as in `elementwise`: operands have one dtype, and only arrays without axes are broadcast.
"""

from typing import Any

from plait.typing import Array, ArrayLike

from .._api.strict_functions import agree
from .._api.surfaces import value
from .._base.errors import ArgumentError, OperandTypeError, ShapeError
from .._ops import elementwise as el
from .._ops.shape import fit, materialise_at_ground
from .._types.avals import BOOL, INTEGER, Aval
from ..tree import map_tree


def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Return `on_true` where `pred`, else `on_false`.

    Args:
      pred: booleans of the same shape, or one without axes.
      on_true, on_false: one dtype and shape.

    Raises TypeRule if they do not agree.

    >>> import plait
    >>> first = plait.numpy.array([True, False])
    >>> plait.lax.select(first, plait.numpy.arange(2), plait.numpy.ones(2, int))
    Array([0, 1], dtype=int32)
    """
    x, y = agree("select", (on_true, on_false))
    return el.select.bind(_predicate(pred, x.aval.shape), x, y)


def _predicate(pred: object, shape: tuple) -> Any:
    p = value(pred)
    if p.aval.dtype != BOOL or (p.aval.ndim and p.aval.shape != shape):
        raise ShapeError(
            f"lax.select: the predicate is {p.aval!r}, for operands of shape {shape}",
            fix="give booleans of that shape, or without axes, or use plait.numpy.where",
        )
    return fit(p, Aval(shape, BOOL))


def select_n(which: ArrayLike, *cases: object) -> Array:
    """Return `cases[which]`, element by element.

    Args:
      which: booleans (for up to two cases) or i32, of the same shape or without axes.
      cases: one dtype and shape.

    Raises TypeRule if they do not agree.

    >>> import plait
    >>> plait.lax.select_n(2, 10, 20, 30).item()
    30
    """
    if not cases:
        raise ArgumentError("select_n needs a case", fix="give at least one")
    xs = list(agree("select_n", cases))
    if len(xs) == 1:
        return materialise_at_ground(xs[0])
    w = value(which)
    if w.aval.dtype == BOOL:
        if len(xs) > 2:
            raise OperandTypeError(
                f"select_n: booleans cannot tell {len(xs)} cases", fix="give i32"
            )
        return select(w, xs[1], xs[0])
    if w.aval.category != INTEGER:
        raise OperandTypeError(
            f"select_n: {w.aval!r} are not numbers of cases", fix="give booleans or i32"
        )
    out = xs[0]
    for i, x in enumerate(xs[1:], 1):
        at = el.ge(w, i) if i == len(xs) - 1 else el.eq(w, i)
        out = select(at, x, out)
    return out


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """Clamp `x` to [min, max]; the bounds may be without axes.

    Raises TypeRule for different dtypes, and bounds of other shapes.

    >>> import plait
    >>> plait.lax.clamp(0, plait.numpy.array([-1, 5]), 3).tolist()
    [0, 3]
    """
    low, v, high = value(min), value(x), value(max)
    if any(b.aval.ndim and b.aval.shape != v.aval.shape for b in (low, high)):
        raise ShapeError(
            f"lax.clamp of {v.aval!r} into [{low.aval!r}, {high.aval!r}]",
            fix="give bounds without axes, or of the same shape",
        )
    return el.clamp.bind(*agree("clamp", (low, v, high)))


def stop_gradient(x: ArrayLike) -> Array:
    """Return the tree `x` with derivative zero.

    >>> import plait
    >>> plait.lax.stop_gradient(2.0).item()
    2.0
    """
    return map_tree(_stopped, x)


def _stopped(x: object) -> Any:
    v = value(x)
    return el.stop.bind(v) if v.aval.inexact else x
