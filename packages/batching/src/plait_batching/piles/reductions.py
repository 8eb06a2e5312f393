"""Reductions of a pile of arrays over axes, as if it were one array.

A reduction over the elements is one reduction of all rows, where places without rows are left out
by the argument `where` of numpy's functions.  So options (`initial`, `ddof`, `dtype`) mean what
they mean there, and numbers are rounded as they are in one array.

Invariant: undefined values beyond the last row reach no result and no derivative.
"""

from typing import Any

import numpy as np

import plait.numpy as pnp
from plait.ext.errors import AxisError, ShapeError
from plait.ext.ops.shape import normal_axis
from plait.ext.trace import Tracer
from plait.ext.types import Aval
from plait.ext.values import as_value

from .axis import PileAxis
from .layouts import along
from .operation import FLAT, PADDED, place
from .row_access import chosen, shaped

__all__ = ["reduced"]


def reduced(name: str, p: Any, axis: Any, options: dict[str, Any]) -> Any:
    """Return numpy's reduction `name` of a pile whose elements are arrays.

    Axis 0 is that of the elements; None stands for all axes, `plait.pile_axis` for those in which
    elements differ."""
    ((_, t),) = p._columns()
    ragged = [a + 1 for a in p._axes(t)]
    if axis is None:
        axes = list(range(t.ndim + 1))
    elif isinstance(axis, PileAxis):
        axes = ragged
    else:
        given = axis if isinstance(axis, tuple | list) else (axis,)
        axes = [normal_axis(a, t.ndim + 1, name) for a in given]
    inner = tuple([a - 1 for a in axes if a])
    where = options.pop("where", None)
    if 0 not in axes:
        f = lambda x, *m: getattr(pnp, name)(x, axis=inner, **_where(*m), **options)  # noqa: E731
        return p._mapped(f) if where is None else p._mapped(f, where)
    if set(ragged) - set(axes):
        raise AxisError(
            f"{name} over the elements of {p!r}, whose sizes differ",
            fix="reduce over the axis in which they differ, too: axis=(0, 1)",
        )
    if options.get("keepdims"):
        raise ShapeError(
            f"{name} over elements with keepdims=True", fix="leave keepdims out, and reshape"
        )
    return _of_all(name, p, t, inner, where, options)


def _where(*mask: Any) -> dict[str, Any]:
    return {"where": mask[0]} if mask else {}


def _of_all(name: str, p: Any, t: Aval, inner: tuple[int, ...], where: Any, options: dict) -> Any:
    """Reduce over the elements, and over the axes `inner` of each."""
    if p._count == 0 or (name in ("max", "min") and _is_empty(p, t)):
        shape = [0 if i in p._axes(t) else n for i, n in enumerate(t.shape)]
        rows, axes = pnp.zeros((p._count, *shape), t.dtype), (0, *[a + 1 for a in inner])
        return getattr(pnp, name)(rows, axis=axes, **options)
    rows, there, axes = _rows(p, t, inner)
    if where is not None:
        chosen_by = p._mapped(lambda x, m: pnp.broadcast_to(m, x.shape), where)
        mask = _rows(chosen_by, t.with_dtype(bool), inner)[0]
        there = mask if there is None else there & mask
    if there is not None and name in ("max", "min") and "initial" not in options:
        options["initial"] = _extreme(name, t.dtype)
    return getattr(pnp, name)(
        rows, axis=axes, **({} if there is None else _where(there)), **options
    )


def _rows(p: Any, t: Aval, inner: tuple[int, ...]) -> tuple[Any, Any, tuple[int, ...]]:
    """Return (rows of all elements, where there are rows, the axes to reduce).

    Values in places without rows are zero."""
    ((x, _),) = p._columns()
    r = p._ragged()
    x = as_value(x)
    if not r.axes(t):
        return x, None, (0, *[a + 1 for a in inner])
    how = place(t, r.caps, False)
    if how == FLAT:
        (a,) = r.axes(t)
        there = r.rows(t.shape[a]).there
        return chosen(there, (a,), x, 0), along(there, a, x.ndim), inner
    y = r.coerce(t, (x,), (how, 0), (PADDED, 0))[0]
    inside: Any = True
    for a in r.axes(t):
        own = r.rows(t.shape[a]).inside
        count, n = own.aval.shape
        inside = inside & shaped(own, (count, *(1,) * a, n, *(1,) * (t.ndim - 1 - a)))
    return r.masked(y, t, r.axes(t), 0), inside, (0, *[a + 1 for a in inner])


def _is_empty(p: Any, t: Aval) -> bool:
    """Return whether it is known that no element has a row."""
    ragged = [t.shape[a] for a in p._axes(t)]
    lengths = [p._ragged().lengths(d) for d in ragged]
    return any(not isinstance(n, Tracer) and not np.asarray(n).any() for n in lengths)


def _extreme(name: str, dtype: Any) -> Any:
    """Return the value that every other one replaces; elements may be empty."""
    if dtype.kind == "b":
        return name == "min"
    if dtype.kind in "iu":
        info = pnp.iinfo(dtype)
        return info.min if name == "max" else info.max
    return -np.inf if name == "max" else np.inf
