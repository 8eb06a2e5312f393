"""Derivatives of scatter: adding, replacing, extremes and products.

Adding and reading are each other's transposes; so are replacing and reading if no position occurs
twice.

Invariant: the value and its tangent come from the same update, also where several updates have one
position.  Updates outside drop their tangents and get zero cotangents.
"""

from typing import Any

import numpy as np

import plait
from plait.ext.ir import Primitive
from plait.ext.ops import indexing as ix
from plait.ext.ops import shape as sh
from plait.ext.ops.elementwise import add, div, eq, mul, once, select
from plait.ext.ops.sorting import sort_
from plait.ext.sizes import Dim
from plait.ext.trace import Value
from plait.ext.types import Aval
from plait.ext.values import Literal

from ..forward import ZERO, Zero, instantiate, jvp_rules
from ..transpose import Linear, is_linear, transpose_rules

INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)

# ---- adding ----------------------------------------------------------------------------------


@jvp_rules.rule(ix.scatter_add_)
def _(xs: list[Value], ts: list[Any], **how: object):
    x, indices, updates = xs
    t, u = instantiate(ts[0], x), instantiate(ts[2], updates)
    return ix.scatter_add_.bind(*xs, **how), ix.scatter_add_.bind(t, indices, u, **how)


@transpose_rules.rule(ix.scatter_add_)
def _(ct: Value, x: Value, indices: Value, updates: Linear, **how):
    du = _read(ct, indices, updates, **how) if is_linear(updates) else None
    return ct if is_linear(x) else None, None, du


def _read(
    x: Value,
    indices: Value,
    updates: Value | Linear,
    *,
    dimension_numbers: ix.ScatterDimensionNumbers,
    mode: str,
    indices_are_sorted: bool,
    unique_indices: bool,
    outside: int = 0,
):
    """Read `x` at the windows that a scatter writes; `outside` for those that it skips."""
    return ix.gather_.bind(
        x,
        indices,
        dimension_numbers=ix.as_gather(dimension_numbers),
        slice_sizes=ix.window_sizes(x.aval, updates.aval, dimension_numbers),
        mode=mode,
        fill_value=outside,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
    )


# ---- replacing -------------------------------------------------------------------------------


@jvp_rules.rule(ix.scatter_)
def _(xs: list[Value], ts: list[Any], **how):
    """Select the same update for the value and for its tangent.

    If a position occurs twice, only one update takes effect.  Scattering the numbers of the
    updates shows which one.
    """
    x, indices, updates = xs
    t, u = instantiate(ts[0], x), instantiate(ts[2], updates)
    if how["unique_indices"]:
        return ix.scatter_.bind(*xs, **how), ix.scatter_.bind(t, indices, u, **how)
    ids = _ids(updates.aval, how["dimension_numbers"])
    marks = Aval(x.aval.shape, ids.aval.dtype)
    winner = ix.scatter_.bind(Literal(0, marks), indices, ids, **how)
    kept = eq.bind(winner, Literal(0, marks))
    counts = eq.bind(_read(winner, indices, updates, **how), ids)

    def merged(old: Value, new: Value) -> Any:
        old = select.bind(kept, old, Literal(0, old.aval))
        new = select.bind(counts, new, Literal(0, new.aval))
        return ix.scatter_add_.bind(old, indices, new, **how)

    return merged(x, updates), merged(t, u)


def _ids(updates: Aval, n: ix.ScatterDimensionNumbers) -> Any:
    """Return 1, 2, 3, ...: one number for each window."""
    axes = tuple([i for i in range(updates.ndim) if i not in n.update_window_dims])
    shape = tuple([updates.shape[i] for i in axes])
    count = sh.numbered(shape, INT32)
    count = add.bind(count, Literal(1, count.aval))
    if count.__class__ is Literal:
        return Literal(count.value, count.aval.with_shape(updates.shape))
    return sh.broadcast_in_dim.bind(count, shape=updates.shape, dims=axes)


@transpose_rules.rule(ix.scatter_)
def _(ct: Value, x, indices, updates, **how):
    """Transpose for distinct positions; linear programs contain no other `scatter`."""
    dx = ix.scatter_.bind(ct, indices, Literal(0, updates.aval), **how) if is_linear(x) else None
    du = _read(ct, indices, updates, **how) if is_linear(updates) else None
    return dx, None, du


# ---- extremes --------------------------------------------------------------------------------


def _extreme(prim: Primitive) -> None:
    @jvp_rules.rule(prim)
    def _(xs: list[Value], ts: list[Value | Zero], **how):
        """Share the derivative equally among all that tie."""
        indices = xs[1]
        x, updates = once.bind(xs[0]), once.bind(xs[2])
        out = prim.bind(x, indices, updates, **how)
        own = eq.bind(x, out)
        theirs = eq.bind(updates, _read(out, indices, updates, **how))

        def total(a: Value, b: Value) -> Any:
            return ix.scatter_add_.bind(a, indices, b, **how)

        count = total(sh.convert(own, x.aval.dtype), sh.convert(theirs, x.aval.dtype))
        t = select.bind(own, instantiate(ts[0], x), Literal(0, x.aval))
        u = select.bind(theirs, instantiate(ts[2], updates), Literal(0, updates.aval))
        return out, div.bind(total(t, u), count)


_extreme(ix.scatter_min_)
_extreme(ix.scatter_max_)

# ---- products --------------------------------------------------------------------------------


@jvp_rules.rule(ix.scatter_mul_)
def _(xs: list[Value], ts, **how):
    x, indices, updates = xs
    t, u = ts[0], ts[2]
    out = ix.scatter_mul_.bind(*xs, **how)
    dot = ZERO if t is ZERO else ix.scatter_mul_.bind(t, indices, updates, **how)
    if u is ZERO:
        return out, dot
    slope = _read(x, indices, updates, **how)
    if not how["unique_indices"]:
        slope = mul.bind(slope, _others(x, indices, updates, **how))
    base = Literal(0, x.aval) if dot is ZERO else dot
    return out, ix.scatter_add_.bind(base, indices, mul.bind(u, slope), **how)


@transpose_rules.rule(ix.scatter_mul_)
def _(ct: Value, x: object, indices, updates, **how: object):
    return ix.scatter_mul_.bind(ct, indices, updates, **how), None, None


def _others(x: Value, indices: Value, updates: Value, **how: Any) -> Any:
    """Return, for each update, the product of all other updates of the same element.

    Updates are sorted by their element.  Products of those before and of those after each are
    computed in a logarithmic number of steps (W. Hillis, G. Steele: Data parallel algorithms,
    1986, within runs of equal elements), or by a scan if their number is symbolic.  Nothing is
    divided, so zeros are safe.
    """
    size, count = x.aval.size, updates.aval.size
    position = sh.numbered(x.aval.shape, INT32 if size.__class__ is Dim or size < 2**31 else INT64)
    position = sh.reshape(_read(position, indices, updates, **how, outside=-1), (count,))
    flat = sh.reshape(updates, (count,))
    number = sh.iota_.bind(shape=(count,), axis=0, dtype=INT32)
    position, order = sort_.bind(position, number, axis=0, num_keys=1, stable=True)
    row = sh.expand_dims(order, 1)
    taken = ix.gather_.bind(
        flat,
        row,
        dimension_numbers=ix.GatherDimensionNumbers((), (0,), (0,)),
        slice_sizes=(1,),
        mode="promise_in_bounds",
        fill_value=None,
        indices_are_sorted=False,
        unique_indices=True,
    )
    before = _in_turn if count.__class__ is Dim else _before
    product = mul.bind(before(taken, position, 1), before(taken, position, -1))
    back = ix.scatter_.bind(
        Literal(0, flat.aval),
        row,
        product,
        dimension_numbers=ix.ScatterDimensionNumbers((), (0,), (0,)),
        mode="promise_in_bounds",
        indices_are_sorted=False,
        unique_indices=True,
    )
    return sh.reshape(back, updates.aval.shape)


def _before(v: Value, position: Value, side: int) -> Any:
    """Return products of the elements before each one (after it, if `side` is -1) in its run."""
    (n,) = v.aval.shape
    v = _moved(v, 1, side, 1)
    same = eq.bind(position, _moved(position, 1, side, -2))
    v = select.bind(same, v, Literal(1, v.aval))
    step = 1
    while step < n:
        same = eq.bind(position, _moved(position, step, side, -2))
        v = mul.bind(v, select.bind(same, _moved(v, step, side, 1), Literal(1, v.aval)))
        step *= 2
    return v


def _in_turn(v: Value, position: Any, side: int) -> Any:
    """Return the same, by a scan."""
    one, nowhere = Literal(1, Aval((), v.aval.dtype)), Literal(-2, Aval((), position.aval.dtype))

    def turn(carry: Any, row: Any) -> tuple:
        (product, last), (x, p) = carry, row
        product = select.bind(eq.bind(p, last), product, one)
        return (mul.bind(product, x), p), product

    return plait.lax.scan(turn, (one, nowhere), (v, position), reverse=side == -1)[1]


def _moved(v: Value, step: int, side: int, new: int) -> Any:
    """Move elements `step` positions on (back, if `side` is -1), and fill in `new`."""
    (n,) = v.aval.shape
    k = min(step, n)
    fill = Literal(new, Aval((), v.aval.dtype, v.aval.weak_type))
    start, low = (0, k) if side == 1 else (k, 0)
    part = sh.slice_.bind(v, starts=(start,), limits=(start + n - k,), strides=(1,))
    return sh.pad_.bind(part, fill, low=(low,), high=(k - low,), interior=(0,))
