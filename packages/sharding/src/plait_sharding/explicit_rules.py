"""Rules of the table `explicit`: the division of results of core's and this package's operations.

Most follow from traits.  An elementwise operation joins the divisions of its operands, a reduction
drops axes, and a cumulative operation must not cross a divided axis.  The others have a rule here.
If a rule would need communication that the user should choose, it is an error.  Examples are
contracted axes that are divided, and positions on a divided axis.

Invariant: only the table `explicit` loads this; rules see types alone.
"""

import math
from collections.abc import Sequence
from typing import Any

from plait.ext.ir import Primitive
from plait.ext.ops import collective
from plait.ext.ops import indexing as ix
from plait.ext.ops import random as keys
from plait.ext.ops import shape as sh
from plait.ext.ops.contraction import dot_general
from plait.ext.ops.convolution import conv_general
from plait.ext.ops.cumulative import recurrence
from plait.ext.ops.elementwise import bitcast_
from plait.ext.ops.fourier import fft_
from plait.ext.ops.opaque import unwrap_, wrap_
from plait.ext.ops.reduction import argmax_, argmin_
from plait.ext.ops.sorting import argsort_, sort_, top_k_
from plait.ext.ops.windows import select_and_scatter_add_
from plait.ext.rules import Cumulative, Elementwise, Reduction
from plait.ext.types import Aval

from .explicit_types import (
    Entries,
    entries_of,
    explicit_rules,
    joined,
    said_over,
    unclear,
    whole_along,
)
from .mesh import Names
from .placement import constraint, release, transfer

# ---- traits --------------------------------------------------------------------------------


@explicit_rules.rule(Elementwise)
def _(prim: Any, avals: Sequence[Aval], outs: Any, /, **params: object) -> Any:
    """Join the operands with as many axes as the result; scalars beside arrays do not count."""
    first = outs[0] if prim.many else outs
    found = joined(prim, [a for a in avals if a.ndim == first.ndim])
    return [found] * len(outs) if prim.many else found


@explicit_rules.rule(Reduction)
def _(
    prim: Primitive,
    avals: Sequence[Aval],
    outs: Aval,
    /,
    *,
    axes: tuple[int, ...],
    **params: object,
) -> Entries:
    return _without(entries_of(avals[0]), axes)


@explicit_rules.rule(Cumulative)
def _(
    prim: Primitive, avals: Sequence[Aval], outs: Aval, /, *, axis: int, **params: bool
) -> Entries:
    return whole_along(prim, avals, [axis])


@explicit_rules.rule(recurrence)
def _(avals: tuple[Aval, ...], outs: Aval, *, axis: int, reverse: bool):
    return whole_along(recurrence, avals, [axis])


def _without(entries: Entries, axes: tuple[int, ...]) -> Entries:
    return tuple([names for i, names in enumerate(entries) if i not in axes])


# ---- moving elements -----------------------------------------------------------------------


@explicit_rules.rule(sh.convert_)
def _(avals: tuple[Aval, ...], outs: Aval, *, dtype: object, weak: bool):
    return entries_of(avals[0])


@explicit_rules.rule(sh.barrier)
def _(avals: tuple[Aval, ...], outs: list[Aval]):
    return [entries_of(a) for a in avals]


@explicit_rules.rule(sh.rev)
def _(avals: tuple[Aval, ...], outs: Aval, *, axes: tuple[int, ...]):
    return entries_of(avals[0])


@explicit_rules.rule(sh.transpose_)
def _(avals: tuple[Aval, ...], outs: Aval, *, perm: tuple[int, ...]):
    entries = entries_of(avals[0])
    return tuple([entries[i] for i in perm])


@explicit_rules.rule(sh.squeeze_)
def _(avals: tuple[Aval, ...], outs: Aval, *, axes: tuple[Any, ...]):
    return _without(entries_of(avals[0]), axes)


@explicit_rules.rule(sh.broadcast_in_dim)
def _(avals: tuple[Aval, ...], outs: Aval, *, shape: tuple[int, ...], dims: tuple[int, ...]):
    out: list[Names] = [()] * len(shape)
    for i, names, n in zip(dims, entries_of(avals[0]), avals[0].shape):
        out[i] = names if n == shape[i] else ()
    return tuple(out)


@explicit_rules.rule(bitcast_)
def _(avals: tuple[Aval, ...], outs: Aval, *, dtype: object):
    """Keep the division; elements split or merge along the last axis, which must be whole then."""
    entries = entries_of(avals[0])
    if outs.ndim < avals[0].ndim:
        return whole_along(bitcast_, avals, [outs.ndim])[:-1]
    return (*entries, ()) if outs.ndim > avals[0].ndim else entries


@explicit_rules.rule(sh.concatenate_)
def _(avals: tuple[Aval, ...], outs: Aval, *, axis: int):
    return joined(sh.concatenate_, avals)


@explicit_rules.rule(sh.pad_)
def _(
    avals: tuple[Aval, ...],
    outs: Aval,
    *,
    low: tuple[int, ...],
    high: tuple[int, ...],
    interior: tuple[int, ...],
):
    return entries_of(avals[0])


@explicit_rules.rule(sh.slice_)
def _(
    avals: tuple[Aval, ...],
    outs: Aval,
    *,
    starts: tuple[int, ...],
    limits: tuple[int, ...],
    strides: tuple[int, ...],
):
    return entries_of(avals[0])


@explicit_rules.rule(ix.dynamic_slice_)
def _(avals: tuple[Aval, ...], outs: Aval, *, sizes: tuple[int, ...]):
    return entries_of(avals[0])


@explicit_rules.rule(ix.dynamic_update_slice_)
def _(avals: tuple[Aval, ...], outs: Aval):
    return joined(ix.dynamic_update_slice_, avals[:2])


@explicit_rules.rule(sh.reshape_)
def _(avals: tuple[Aval, ...], outs: Aval, *, shape: tuple[int, ...]):
    """Follow the names through groups of axes that are split or merged; size-1 axes do not count.

    If one axis becomes several, its names go to the first of them that they divide.  If several
    become one and any is divided, the first must be.
    """
    (x,) = avals
    over: list[Names] = []
    for olds, news in _groups(x, entries_of(x), shape):
        divided = [names for _, names in olds if names]
        found = _within(x, outs, olds, news) if divided else [()] * len(news)
        if found is None:
            raise unclear(
                "reshape",
                avals,
                f"in the result of shape {outs.shape} it is not clear which axis is divided",
            )
        over += found
    places = iter(over)
    return tuple([() if n == 1 else next(places) for n in shape])


def _groups(x: Aval, entries: Entries, shape: Sequence[Any]) -> list[tuple[list, list]]:
    """Return the smallest groups of old and new axes with equally many elements, without size 1.

    Old axes come with the names that they are divided over.
    """
    olds = [(n, names) for n, names in zip(x.shape, entries) if n != 1]
    news = [n for n in shape if n != 1]
    if any(n.__class__ is not int or n == 0 for n in (*x.shape, *shape)):
        same = [n for n, _ in olds] == news
        return [([o], [n]) for o, n in zip(olds, news)] if same else [(olds, news)]
    groups = []
    while olds or news:
        before, after = [olds.pop(0)], [news.pop(0)]
        a, b = before[0][0], after[0]
        while a != b:
            if a < b:
                before.append(olds.pop(0))
                a *= before[-1][0]
            else:
                after.append(news.pop(0))
                b *= after[-1]
        groups.append((before, after))
    return groups


def _within(x: Aval, out: Aval, olds: list, news: list) -> list[Names] | None:
    """Return the names of the new axes of one group; None if they are not clear."""
    if len(news) == 1:
        names = tuple([n for _, some in olds for n in some])
        return [names] if len(olds) == 1 or olds[0][1] else None
    if len(olds) > 1:
        return None
    mesh: Any = x.division
    sizes, found = mesh.mesh.shape, []
    left = list(olds[0][1])
    for n in news:
        own: list[str] = []
        while left and n % math.prod([sizes[m] for m in (*own, left[0])]) == 0:
            own.append(left.pop(0))
        found.append(tuple(own))
        if left and n != math.prod([sizes[m] for m in own]):
            return None  # a piece would end within a row, which no entry expresses
    return found


# ---- sorting, choosing ---------------------------------------------------------------------


@explicit_rules.rule(argmax_, argmin_)
def _(avals: tuple[Aval, ...], outs: Aval, *, axis: int, index_dtype: object):
    return _without(entries_of(avals[0]), (axis,))


@explicit_rules.rule(sort_)
def _(avals: tuple[Aval, ...], outs: list[Aval], *, axis: int, num_keys: int, stable: bool):
    return [whole_along(sort_, avals, [axis])] * len(outs)


@explicit_rules.rule(argsort_)
def _(
    avals: tuple[Aval, ...],
    outs: Aval,
    *,
    axis: int,
    stable: bool,
    descending: bool,
    index_dtype: object,
):
    return whole_along(argsort_, avals, [axis])


@explicit_rules.rule(top_k_)
def _(avals: tuple[Aval, ...], outs: list[Aval], *, k: int):
    return [whole_along(top_k_, avals, [avals[0].ndim - 1])] * len(outs)


# ---- indexing ------------------------------------------------------------------------------


@explicit_rules.rule(ix.gather_)
def _(avals: Sequence[Aval], outs, /, *, dimension_numbers, slice_sizes: Sequence[int], **params):
    """Divide batch axes of the result as those of the indices, and window axes as the operand's."""
    x, indices = avals
    d, entries, batch = dimension_numbers, entries_of(x), list(entries_of(indices)[:-1])
    for i, (names, n, k) in enumerate(zip(entries, x.shape, slice_sizes, strict=True)):
        if names and n != k and i not in d.operand_batching_dims:
            raise unclear(
                "gather",
                avals,
                f"positions are read on axis {i}, which is divided over {said_over(names)}",
            )
    for i, k in zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True):
        (batch[k],) = joined("gather", avals, [(entries[i],), (batch[k],)])
    dropped = (*d.collapsed_slice_dims, *d.operand_batching_dims)
    window, rows = iter(_without(entries, dropped)), iter(batch)
    return tuple([next(window if i in d.offset_dims else rows) for i in range(outs.ndim)])


@explicit_rules.rule(
    ix.scatter_, ix.scatter_add_, ix.scatter_max_, ix.scatter_min_, ix.scatter_mul_
)
def _(avals: tuple[Aval, ...], outs: Aval, /, **params: object):
    """Keep the division of the array; updates are moved to it."""
    return entries_of(avals[0])


# ---- contractions --------------------------------------------------------------------------


@explicit_rules.rule(dot_general)
def _(
    avals: tuple[Aval, ...],
    outs: Aval,
    *,
    contract: tuple[tuple[Any, ...], ...],
    shared: tuple[tuple[Any, ...], ...],
    precision: str,
    out_dtype: object,
):
    x, y = (entries_of(a) for a in avals)
    for i, k in zip(*contract):
        _contracted("dot_general", avals, x[i], y[k])
    batch = joined(
        "dot_general", avals, [tuple([x[i] for i in shared[0]]), tuple([y[i] for i in shared[1]])]
    )
    used = [(*contract[n], *shared[n]) for n in (0, 1)]
    return (*batch, *_without(x, used[0]), *_without(y, used[1]))


def _contracted(what: str, avals: Sequence[Aval], a: Names, b: Names) -> None:
    """Raise ShardingTypeError if both contracted axes are divided.

    The user must choose the place of the sums: on all devices, or in pieces.
    """
    if a and b:
        one, other = said_over(a), said_over(b)
        same = f"over {one}" if a == b else f"over {one} in one and over {other} in the other"
        raise unclear(
            what, avals, f"both are divided along the axis that is summed over, {same}, and how "
            "the sums shall lie is not clear",
        )  # fmt: skip


@explicit_rules.rule(conv_general)
def _(
    avals: tuple[Aval, ...],
    outs: Aval,
    /,
    *,
    dims,
    feature_group_count: int,
    batch_group_count: int,
    **params: object,
):
    """Allow a division of examples, of output features and of the input's spatial axes."""
    x, y = (entries_of(a) for a in avals)
    (batch, feature, *space), (to, summed, *kernel) = dims.lhs_spec, dims.rhs_spec
    grouped = feature_group_count != 1 or batch_group_count != 1
    across = [
        x[feature],
        y[summed],
        *[y[i] for i in kernel],
        *([x[batch], y[to]] if grouped else []),
    ]
    for names in across:
        if names:
            raise unclear(
                "conv_general_dilated",
                avals,
                f"it sums along an axis, or goes by groups of one, divided over {said_over(names)}",
            )
    out: list[Names] = [()] * outs.ndim
    for i, names in zip(dims.out_spec, (x[batch], y[to], *[x[i] for i in space]), strict=True):
        out[i] = names
    return tuple(out)


@explicit_rules.rule(select_and_scatter_add_)
def _(
    avals: tuple[Aval, ...],
    outs: Aval,
    *,
    select: str,
    window: tuple[int, ...],
    strides: tuple[int, ...],
    padding: tuple[tuple[Any, ...], ...],
):
    x = avals[1]
    return whole_along(select_and_scatter_add_, [x], [i for i, n in enumerate(window) if n != 1])


# ---- operations on the last axes -----------------------------------------------------------


def of_last(prim: Any, avals: Sequence[Aval], outs: Any, counts: Sequence[int]) -> Any:
    """Return the entries for an operation on the last axes of each operand, `counts` of them.

    These must be whole.  The axes before them are batch axes, which results have in front, too.
    """
    fronts = []
    for a, n in zip(avals, counts, strict=True):
        entries = whole_along(prim, [a], range(a.ndim - n, a.ndim))
        fronts.append(entries[: a.ndim - n])
    lead = joined(prim, avals, fronts)
    every = outs if prim.many else [outs]
    found = [(*lead, *[()] * (o.ndim - len(lead))) for o in every]
    return found if prim.many else found[0]


@explicit_rules.rule(fft_)
def _(avals: tuple[Aval, ...], outs: Aval, *, kind: str, lengths: tuple[int, ...]):
    return of_last(fft_, avals, outs, [len(lengths)])


# ---- random numbers ------------------------------------------------------------------------


@explicit_rules.rule(keys.random_bits)
def _(avals: tuple[Aval, ...], outs: Aval, *, shape: tuple[int, ...], dtype: object):
    return (*entries_of(avals[0]), *[()] * len(shape))


@explicit_rules.rule(keys.random_split)
def _(avals: tuple[Aval, ...], outs: Aval, *, shape: tuple[int, ...]):
    return (*entries_of(avals[0]), *[()] * len(shape))


@explicit_rules.rule(keys.random_seed)
def _(avals: tuple[Aval, ...], outs: Aval, *, dtype: object):
    return entries_of(avals[0])


@explicit_rules.rule(keys.random_clone)
def _(avals: tuple[Aval, ...], outs: Aval):
    return entries_of(avals[0])


@explicit_rules.rule(keys.random_fold_in)
def _(avals: tuple[Aval, ...], outs: Aval):
    return joined(keys.random_fold_in, [a for a in avals if a.ndim == outs.ndim])


@explicit_rules.rule(keys.rng_bit_generator)
def _(
    avals: tuple[Aval, ...],
    outs: list[Aval],
    *,
    shape: tuple[int, ...],
    dtype: object,
    algorithm: str,
):
    whole_along(keys.rng_bit_generator, avals, range(avals[0].ndim))
    return [((),) * o.ndim for o in outs]


@explicit_rules.rule(wrap_)
def _(avals: tuple[Aval, ...], outs: Aval, *, dtype: object):
    return whole_along(wrap_, avals, range(outs.ndim, avals[0].ndim))[: outs.ndim]


@explicit_rules.rule(unwrap_)
def _(avals: tuple[Aval, ...], outs: Aval):
    return (*entries_of(avals[0]), *[()] * (outs.ndim - avals[0].ndim))


# ---- over devices --------------------------------------------------------------------------


@explicit_rules.rule(
    collective.psum_,
    collective.pmax_,
    collective.pmin_,
    collective.ppermute_,
    collective.all_gather_,
    collective.all_to_all_,
    collective.psum_scatter_,
)
def _(avals: tuple[Aval, ...], outs: Aval, /, **params: object):
    """Keep the entries, except along axes whose size the collective changes.

    They run along mesh axes that `shard_map` divides by hand, which types do not show.  An operand
    must be whole if the number of axes changes.
    """
    entries = entries_of(avals[0])
    if outs.ndim != avals[0].ndim:
        return (
            None if not any(entries) else whole_along("this collective", avals, range(len(entries)))
        )
    return tuple([e if n == m else () for e, n, m in zip(entries, avals[0].shape, outs.shape)])


@explicit_rules.rule(constraint)
def _(avals: tuple[Aval, ...], outs: Aval, *, sharding):
    """Keep the sharding's own type, and for axes left to the compiler the operand's entries."""
    if sharding.explicit is None or None not in sharding.spec.parts:
        return None
    said = sharding.spec.trimmed.full(outs.ndim)
    taken = {n for names in said for n in names or ()}
    old = [tuple([n for n in names if n not in taken]) for names in entries_of(avals[0])]
    return tuple([had if names is None else names for names, had in zip(said, old)])


@explicit_rules.rule(transfer)
def _(avals: tuple[Aval, ...], outs: Aval, *, sharding, source):
    return None


@explicit_rules.rule(release)
def _(avals: tuple[Aval, ...], outs: Aval):
    return None
