"""Opaque elements: made from numbers, taken apart, and moved as numbers in memory.

    money = Opaque("money<cents>", (), "int64")
    xs = wrap(cents, money)        # an array that is sliced, stacked, mapped over, and not added

Invariant: axes in parameters name axes of the user's value, which come first in its memory.  The
axes of an element come last and are moved, whole, with it.
"""

from typing import Any

from .._base.errors import ArgumentError, ShapeError
from .._core.array import Array, Literal, as_value, laid, standing_for
from .._core.primitive import primitive
from .._plugins.traits import AnyElement
from .._types.avals import BOOL, OPAQUE, Aval, Opaque
from .._xla.lower import eager_rules, lower_rules
from .._xla.physical import physical_rules
from . import elementwise as el
from . import shape as sh
from .collective import all_gather_, all_to_all_, ppermute_, pvary_
from .dynamic_slicing import dynamic_slice_, dynamic_update_slice_
from .indexing import gather_
from .reduction import reduce_and
from .scattering import scatter_

__all__ = ["unwrap", "unwrap_", "wrap", "wrap_"]

# ---- wrapping and unwrapping ---------------------------------------------------------------


@primitive("core.wrap", traits=(AnyElement,))
def wrap_(x: Aval, *, dtype: Opaque) -> Aval:
    """Return the opaque elements that the last axes of `x` stand for."""
    n = x.ndim - len(dtype.shape)
    if x.dtype != dtype.words or n < 0 or x.shape[n:] != dtype.shape:
        last = f" with last axes {dtype.shape}" if dtype.shape else ""
        raise ArgumentError(f"{x!r} are no {dtype.name}", fix=f"give {dtype.words}{last}")
    return Aval(x.shape[:n], dtype)


@primitive("core.unwrap", traits=(AnyElement,))
def unwrap_(x: Aval) -> Aval:
    """Return the numbers that stand for opaque elements; those of one lie along the last axes."""
    if x.category != OPAQUE:
        raise ShapeError(f"{x!r} has no opaque elements", fix="it is made of numbers already")
    return x.physical


@physical_rules.rule(wrap_)
def _(tail, xs, dtype):
    return xs[0]


@physical_rules.rule(unwrap_)
def _(tail, xs):
    return xs[0]


lower_rules.rule(wrap_, unwrap_)(lambda e, xs, ins, outs, **_: xs[0])


@eager_rules.rule(wrap_)
def _(args, params):
    x = args[0]
    return standing_for(x, wrap_.infer((x.aval,), params)) if x.__class__ is Array else None


@eager_rules.rule(unwrap_)
def _(args, params):
    x = args[0]
    return laid(x) if x.__class__ is Array and unwrap_.infer((x.aval,), params) else None


def wrap(x: Any, dtype: Opaque) -> Any:
    """Return the opaque elements that numbers stand for; see `Opaque`."""
    return wrap_(x, dtype=dtype)


def unwrap(x: Any) -> Any:
    """Return the numbers that stand for opaque elements; those of one lie along the last axes."""
    return unwrap_(as_value(x))


# ---- moving elements -----------------------------------------------------------------------


def _ends(ndim: int, tail: tuple) -> tuple[int, ...]:
    """Return the last axes of a memory whose value has `ndim` axes."""
    return tuple(range(ndim, ndim + len(tail)))


@physical_rules.rule(sh.reshape_)
def _(tail, xs, shape):
    return sh.reshape_.bind(*xs, shape=(*shape, *tail))


@physical_rules.rule(sh.broadcast_in_dim)
def _(tail, xs, shape, dims):
    at = (*dims, *_ends(len(shape), tail))
    return sh.broadcast_in_dim.bind(*xs, shape=(*shape, *tail), dims=at)


@physical_rules.rule(sh.squeeze_)
def _(tail, xs, axes):
    return sh.squeeze_.bind(*xs, axes=axes)


@physical_rules.rule(sh.transpose_)
def _(tail, xs, perm):
    return sh.transpose_.bind(*xs, perm=(*perm, *_ends(len(perm), tail)))


@physical_rules.rule(sh.rev)
def _(tail, xs, axes):
    return sh.rev.bind(*xs, axes=axes)


@physical_rules.rule(sh.slice_)
def _(tail, xs, starts, limits, strides):
    none, ones = (0,) * len(tail), (1,) * len(tail)
    return sh.slice_.bind(
        *xs, starts=(*starts, *none), limits=(*limits, *tail), strides=(*strides, *ones)
    )


@physical_rules.rule(sh.concatenate_)
def _(tail, xs, axis):
    return sh.concatenate_.bind(*xs, axis=axis)


@physical_rules.rule(sh.convert_)
def _(tail, xs, dtype, weak):
    return xs[0]


@physical_rules.rule(sh.barrier)
def _(tail, xs):
    return sh.barrier.bind(*xs)


@physical_rules.rule(sh.pad_)
def _(tail, xs, low, high, interior):
    x, value = xs
    none = (0,) * len(tail)
    how = dict(low=(*low, *none), high=(*high, *none), interior=(*interior, *none))
    zero, no = Literal(0, Aval((), x.aval.dtype)), Literal(False, Aval((), BOOL))
    padded = sh.pad_.bind(x, zero, **how)
    inside = sh.pad_.bind(Literal(True, Aval(x.aval.shape, BOOL)), no, **how)
    shape = padded.aval.shape
    around = sh.broadcast_in_dim.bind(value, shape=shape, dims=_ends(len(low), tail))
    return el.select.bind(inside, padded, around)


# ---- choosing and comparing ----------------------------------------------------------------


@physical_rules.rule(el.select)
def _(tail, xs):
    p, x, y = xs
    dims = tuple(range(p.aval.ndim))
    return el.select.bind(sh.broadcast_in_dim.bind(p, shape=x.aval.shape, dims=dims), x, y)


@physical_rules.rule(el.eq)
def _(tail, xs):
    same = el.eq.bind(*xs)
    axes = _ends(same.aval.ndim - len(tail), tail)
    return reduce_and.bind(same, axes=axes) if axes else same


@physical_rules.rule(el.ne)
def _(tail, xs):
    return el.not_.bind(physical_rules[el.eq](tail, xs))


# ---- indexing ------------------------------------------------------------------------------


def _first(starts: Any, tail: tuple) -> list[Any]:
    """Return positions of 0 along all axes of an element."""
    return [Literal(0, starts[0].aval) if starts else Literal(0, Aval((), "int32")) for _ in tail]


@physical_rules.rule(dynamic_slice_)
def _(tail, xs, sizes):
    x, *starts = xs
    return dynamic_slice_.bind(x, *starts, *_first(starts, tail), sizes=(*sizes, *tail))


@physical_rules.rule(dynamic_update_slice_)
def _(tail, xs):
    x, box, *starts = xs
    return dynamic_update_slice_.bind(x, box, *starts, *_first(starts, tail))


@physical_rules.rule(gather_)
def _(tail, xs, dimension_numbers, slice_sizes, **how):
    n = dimension_numbers
    ndim = xs[1].aval.ndim - 1 + len(n.offset_dims)
    return gather_.bind(
        *xs,
        dimension_numbers=n._replace(offset_dims=(*n.offset_dims, *_ends(ndim, tail))),
        slice_sizes=(*slice_sizes, *tail),
        **how,
    )


@physical_rules.rule(scatter_)
def _(tail, xs, dimension_numbers, **how):
    n = dimension_numbers
    ndim = xs[2].aval.ndim - len(tail)
    window = (*n.update_window_dims, *_ends(ndim, tail))
    return scatter_.bind(*xs, dimension_numbers=n._replace(update_window_dims=window), **how)


# ---- between devices -----------------------------------------------------------------------


@physical_rules.rule(all_gather_)
def _(tail, xs, **params):
    return all_gather_.bind(*xs, **params)


@physical_rules.rule(pvary_)
def _(tail, xs, axes):
    return pvary_.bind(*xs, axes=axes)


@physical_rules.rule(ppermute_)
def _(tail, xs, **params):
    return ppermute_.bind(*xs, **params)


@physical_rules.rule(all_to_all_)
def _(tail, xs, **params):
    return all_to_all_.bind(*xs, **params)
