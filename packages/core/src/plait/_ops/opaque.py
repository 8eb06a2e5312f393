"""Opaque elements: made from numbers, taken apart, and moved as numbers in memory.

    money = Opaque("money<cents>", (), "int64")
    xs = wrap(cents, money)        # an array that is sliced, stacked, mapped over, and not added

Invariant: axes in parameters name axes of the user's value, which come first in its memory.  The
axes of an element come last and are moved, whole, with it.
"""

from collections.abc import Sequence
from typing import Any

from .._base.errors import ArgumentError, ShapeError
from .._core.array import Array, Literal, as_value, laid, standing_for
from .._core.interpreter import Value
from .._core.primitive import primitive
from .._plugins.traits import AnyElement
from .._types.avals import BOOL, OPAQUE, Aval, Opaque
from .._xla.lower import eager_rules, lower_rules
from .._xla.physical import physical_rules
from ..typing import Array as AnyArray
from ..typing import ArrayLike
from . import elementwise as el
from . import shape as sh
from .collective import all_gather_, all_to_all_, ppermute_, pvary_
from .dynamic_slicing import dynamic_slice_, dynamic_update_slice_
from .indexing import GatherDimensionNumbers, gather_
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
def _(tail: tuple[int, ...], xs: list[Value], dtype: Opaque):
    return xs[0]


@physical_rules.rule(unwrap_)
def _(tail: tuple[int, ...], xs: list[Value]):
    return xs[0]


lower_rules.rule(wrap_, unwrap_)(lambda e, xs, ins, outs, **_: xs[0])


@eager_rules.rule(wrap_)
def _(args: tuple[Value, ...], params: dict[str, Any]):
    x = args[0]
    return standing_for(x, wrap_.infer((x.aval,), params)) if x.__class__ is Array else None


@eager_rules.rule(unwrap_)
def _(args, params):
    x = args[0]
    return laid(x) if x.__class__ is Array and unwrap_.infer((x.aval,), params) else None


def wrap(x: ArrayLike, dtype: Opaque) -> Any:
    """Return the opaque elements that numbers stand for; see `Opaque`."""
    return wrap_(x, dtype=dtype)


def unwrap(x: object) -> Any:
    """Return the numbers that stand for opaque elements; those of one lie along the last axes."""
    return unwrap_(as_value(x))


# ---- moving elements -----------------------------------------------------------------------


def _ends(ndim: int, tail: tuple) -> tuple[int, ...]:
    """Return the last axes of a memory whose value has `ndim` axes."""
    return tuple(range(ndim, ndim + len(tail)))


@physical_rules.rule(sh.reshape_)
def _(tail: tuple[int, ...], xs: list[Value], shape: tuple[Any, ...]):
    return sh.reshape_.bind(*xs, shape=(*shape, *tail))


@physical_rules.rule(sh.broadcast_in_dim)
def _(tail: tuple[int, ...], xs: list[Value], shape: tuple[int, ...], dims: tuple[int, ...]):
    at = (*dims, *_ends(len(shape), tail))
    return sh.broadcast_in_dim.bind(*xs, shape=(*shape, *tail), dims=at)


@physical_rules.rule(sh.squeeze_)
def _(tail: tuple[int, ...], xs: list[Value], axes: tuple[int, ...]):
    return sh.squeeze_.bind(*xs, axes=axes)


@physical_rules.rule(sh.transpose_)
def _(tail: tuple[int, ...], xs: list[Value], perm: tuple[int, ...]):
    return sh.transpose_.bind(*xs, perm=(*perm, *_ends(len(perm), tail)))


@physical_rules.rule(sh.rev)
def _(tail: tuple[int, ...], xs: list[Value], axes):
    return sh.rev.bind(*xs, axes=axes)


@physical_rules.rule(sh.slice_)
def _(
    tail: tuple[int, ...],
    xs: list[Value],
    starts: tuple[int, ...],
    limits: tuple[int, ...],
    strides: tuple[int, ...],
):
    none, ones = (0,) * len(tail), (1,) * len(tail)
    return sh.slice_.bind(
        *xs, starts=(*starts, *none), limits=(*limits, *tail), strides=(*strides, *ones)
    )


@physical_rules.rule(sh.concatenate_)
def _(tail: tuple[int, ...], xs: list[Value], axis: int):
    return sh.concatenate_.bind(*xs, axis=axis)


@physical_rules.rule(sh.convert_)
def _(tail: tuple[int, ...], xs: list[Value], dtype: object, weak: object):
    return xs[0]


@physical_rules.rule(sh.barrier)
def _(tail: tuple[int, ...], xs: list[Value]):
    return sh.barrier.bind(*xs)


@physical_rules.rule(sh.pad_)
def _(tail, xs: list[AnyArray], low, high, interior):
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
def _(tail: Sequence[int], xs: list[AnyArray]):
    p, x, y = xs
    dims = tuple(range(p.aval.ndim))
    return el.select.bind(sh.broadcast_in_dim.bind(p, shape=x.aval.shape, dims=dims), x, y)


@physical_rules.rule(el.eq)
def _(tail: tuple[int, ...], xs: list[Value]):
    same = el.eq.bind(*xs)
    axes = _ends(same.aval.ndim - len(tail), tail)
    return reduce_and.bind(same, axes=axes) if axes else same


@physical_rules.rule(el.ne)
def _(tail: tuple[int, ...], xs: list[Value]):
    return el.not_.bind(physical_rules[el.eq](tail, xs))


# ---- indexing ------------------------------------------------------------------------------


def _first(starts: Sequence[Value], tail: tuple) -> list[Any]:
    """Return positions of 0 along all axes of an element."""
    return [Literal(0, starts[0].aval) if starts else Literal(0, Aval((), "int32")) for _ in tail]


@physical_rules.rule(dynamic_slice_)
def _(tail: tuple[int, ...], xs: list[Value], sizes: tuple[int, ...]):
    x, *starts = xs
    return dynamic_slice_.bind(x, *starts, *_first(starts, tail), sizes=(*sizes, *tail))


@physical_rules.rule(dynamic_update_slice_)
def _(tail: tuple[int, ...], xs: list[Value]):
    x, box, *starts = xs
    return dynamic_update_slice_.bind(x, box, *starts, *_first(starts, tail))


@physical_rules.rule(gather_)
def _(
    tail: tuple[int, ...],
    xs: list[AnyArray],
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: tuple[int, ...],
    **how: object,
):
    n = dimension_numbers
    ndim = xs[1].aval.ndim - 1 + len(n.offset_dims)
    return gather_.bind(
        *xs,
        dimension_numbers=n._replace(offset_dims=(*n.offset_dims, *_ends(ndim, tail))),
        slice_sizes=(*slice_sizes, *tail),
        **how,
    )


@physical_rules.rule(scatter_)
def _(tail, xs: list[AnyArray], dimension_numbers, **how: object):
    n = dimension_numbers
    ndim = xs[2].aval.ndim - len(tail)
    window = (*n.update_window_dims, *_ends(ndim, tail))
    return scatter_.bind(*xs, dimension_numbers=n._replace(update_window_dims=window), **how)


# ---- between devices -----------------------------------------------------------------------


@physical_rules.rule(all_gather_)
def _(tail: tuple[int, ...], xs: list[Value], /, **params: object):
    return all_gather_.bind(*xs, **params)


@physical_rules.rule(pvary_)
def _(tail: tuple[int, ...], xs: list[Value], axes):
    return pvary_.bind(*xs, axes=axes)


@physical_rules.rule(ppermute_)
def _(tail: tuple[int, ...], xs: list[Value], /, **params: object):
    return ppermute_.bind(*xs, **params)


@physical_rules.rule(all_to_all_)
def _(tail: tuple[int, ...], xs: list[Value], /, **params: object):
    return all_to_all_.bind(*xs, **params)
