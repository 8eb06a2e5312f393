"""Derivatives of reshape, transpose, broadcast, slice, concatenate, pad and conversion.

Invariant: these operations are linear, so the forward rule is the primitive itself (trait Linear),
and only transposition needs rules of its own.
"""

from typing import Any

from plait.ext.ops import shape as sh
from plait.ext.ops.elementwise import sub
from plait.ext.ops.reduction import reduce_sum
from plait.ext.sizes import Dim
from plait.ext.trace import Value
from plait.ext.types import Aval
from plait.ext.values import Literal

from ..forward import ZERO, instantiate, jvp_rules
from ..transpose import Linear, is_linear, transpose_rules


@jvp_rules.rule(sh.convert_)
def _(xs: list[Value], ts: list[Value], *, dtype: object, weak: bool):
    out = sh.convert_.bind(*xs, dtype=dtype, weak=weak)
    if ts[0] is ZERO or not out.aval.inexact:
        return out, ZERO
    return out, sh.convert_.bind(*ts, dtype=dtype, weak=weak)


@jvp_rules.rule(sh.iota_)
def _(xs: list[Value], ts: object, /, **params: object):
    return sh.iota_.bind(**params), ZERO


@jvp_rules.rule(sh.concatenate_)
def _(xs: list[Value], ts: list[Any], *, axis: int):
    moved = [instantiate(t, x) for t, x in zip(ts, xs)]
    return sh.concatenate_.bind(*xs, axis=axis), sh.concatenate_.bind(*moved, axis=axis)


@jvp_rules.rule(sh.pad_)
def _(xs: list[Value], ts: list[Any], /, **params: tuple[Any, ...]):
    moved = [instantiate(t, x) for t, x in zip(ts, xs)]
    return sh.pad_.bind(*xs, **params), sh.pad_.bind(*moved, **params)


@jvp_rules.rule(sh.barrier)
def _(xs: list[Value], ts: list[Value]):
    """Pass tangents through a separate barrier, so that primals and tangents stay apart."""
    moving = [t for t in ts if t is not ZERO]
    moved = iter(sh.barrier.bind(*moving) if moving else [])
    return sh.barrier.bind(*xs), [t if t is ZERO else next(moved) for t in ts]


def spread_back(x: Any, shape: tuple[Any, ...], axes: tuple[Any, ...]) -> Any:
    """Return a reduced value repeated along `axes`, which the reduction removed."""
    if x.__class__ is Literal:
        return Literal(x.value, x.aval.with_shape(shape))
    dims = tuple([i for i in range(len(shape)) if i not in axes])
    return sh.broadcast_in_dim.bind(x, shape=tuple(shape), dims=dims)


@transpose_rules.rule(sh.convert_)
def _(ct: Value, x: Linear, *, dtype: object, weak: bool):
    return (sh.convert_.bind(ct, dtype=x.aval.dtype, weak=False),)


@transpose_rules.rule(sh.reshape_)
def _(ct: Value, x: Linear, *, shape: tuple[int | Dim, ...]):
    return (sh.reshape_.bind(ct, shape=x.aval.shape),)


@transpose_rules.rule(sh.squeeze_)
def _(ct: Value, x: Linear, *, axes: tuple[int, ...]):
    return (sh.reshape_.bind(ct, shape=x.aval.shape),)


@transpose_rules.rule(sh.rev)
def _(ct: Value, x: Linear, *, axes: tuple[int, ...]):
    return (sh.rev.bind(ct, axes=axes),)


@transpose_rules.rule(sh.transpose_)
def _(ct: Value, x: Linear, *, perm: tuple[int, ...]):
    back = tuple(sorted(range(len(perm)), key=perm.__getitem__))
    return (sh.transpose_.bind(ct, perm=back),)


@transpose_rules.rule(sh.broadcast_in_dim)
def _(ct: Value, x: Linear, *, shape: tuple[int | Dim, ...], dims: tuple[int, ...]):
    have = x.aval.shape
    repeated = [i for i in range(len(shape)) if i not in dims or have[dims.index(i)] != shape[i]]
    ct = reduce_sum.bind(ct, axes=tuple(repeated)) if repeated else ct
    kept = [d for d in dims if d not in repeated]
    if kept != sorted(kept):  # axes of x in the order in which they stand in ct
        order = sorted(range(len(kept)), key=lambda k: kept[k])
        ct = sh.transpose_.bind(ct, perm=tuple(sorted(range(len(kept)), key=order.__getitem__)))
    return (sh.reshape_.bind(ct, shape=have) if ct.aval.shape != have else ct,)


@transpose_rules.rule(sh.slice_)
def _(
    ct: Value,
    x: Linear,
    *,
    starts: tuple[int, ...],
    limits: tuple[int, ...],
    strides: tuple[int, ...],
):
    zero = Literal(0, Aval((), ct.aval.dtype))
    inner = tuple([s - 1 for s in strides])
    reach = _spread(ct.aval, inner)
    high = tuple([d - a - n for d, a, n in zip(x.aval.shape, starts, reach)])
    return (sh.pad_.bind(ct, zero, low=tuple(starts), high=high, interior=inner),)


def _spread(aval: Aval, interior: tuple) -> tuple:
    """Return the shape with padding between elements, computed by the primitive's own rule."""
    none, cell = (0,) * aval.ndim, Aval((), aval.dtype)
    return sh.pad_.infer((aval, cell), dict(low=none, high=none, interior=interior)).shape


@transpose_rules.rule(sh.pad_)
def _(
    ct: Value,
    x: Value | Linear,
    value: Value | Linear,
    *,
    low: tuple[int, ...],
    high: tuple[int, ...],
    interior: tuple[int, ...],
):
    if any(lo.__class__ is int and lo < 0 for lo in (*low, *high)):
        return _cut_back(ct, x, value, low, high, interior)
    steps = tuple([i + 1 for i in interior])
    limits = tuple([lo + n for lo, n in zip(low, _spread(x.aval, interior))])
    dx = sh.slice_.bind(ct, starts=tuple(low), limits=limits, strides=steps)
    if not is_linear(value):
        return dx, None
    return dx if is_linear(x) else None, _rest(ct, dx)


def _rest(ct: Value, inside: Value) -> Any:
    total = reduce_sum.bind(ct, axes=tuple(range(ct.aval.ndim)))
    return sub.bind(total, reduce_sum.bind(inside, axes=tuple(range(inside.aval.ndim))))


def _cut_back(
    ct: Value, x: Value | Linear, value: Value | Linear, low: tuple, high: tuple, interior: tuple
) -> tuple:
    """Transpose padding that cut elements off: pad zeros for those, then remove the padding."""
    zero = Literal(0, Aval((), ct.aval.dtype))
    back = [max(0, -lo) for lo in low], [max(0, -hi) for hi in high]
    whole = sh.pad_.bind(
        ct, zero, low=tuple(back[0]), high=tuple(back[1]), interior=(0,) * ct.aval.ndim
    )
    starts = tuple([max(lo, 0) for lo in low])
    limits = tuple([n - max(hi, 0) for n, hi in zip(whole.aval.shape, high)])
    dx = sh.slice_.bind(
        whole, starts=starts, limits=limits, strides=tuple([i + 1 for i in interior])
    )
    return dx if is_linear(x) else None, _rest(ct, dx) if is_linear(value) else None


@transpose_rules.rule(sh.concatenate_)
def _(ct: Value, *xs: Value | Linear, axis: int):
    out, at = [], 0
    n = ct.aval.ndim
    for x in xs:
        size = x.aval.shape[axis]
        if is_linear(x):
            starts = tuple([at if i == axis else 0 for i in range(n)])
            limits = tuple([at + size if i == axis else d for i, d in enumerate(ct.aval.shape)])
            out.append(sh.slice_.bind(ct, starts=starts, limits=limits, strides=(1,) * n))
        else:
            out.append(None)
        at = at + size
    return out


@transpose_rules.rule(sh.barrier)
def _(cts: list[Value], *xs: Linear):
    given = [c for c in cts if c is not None]
    moved = iter(sh.barrier.bind(*given) if given else [])
    return [None if c is None else next(moved) for c in cts]
