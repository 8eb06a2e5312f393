"""Collectives: operations along named axes.

Invariant: the name is a parameter.  Whoever binds the name gives the operation meaning: a
transformation by its rules, an operation with programs by the lowering of what it binds
(`Emitter.bound`).  A name that nobody binds is an error, at the latest when the program is
compiled; a Program knows the names it speaks of (`Program.axes`).
"""

from typing import Any

from ..dims import product
from ..errors import AxisError, TypeRule
from ..interpreter import axis_size
from ..primitive import primitive
from ..traits import AnyElement, Collective, Linear
from ..tree import map_tree
from ..types import INT32, Aval
from ..values import as_value
from .elementwise import true_divide
from .shape import expand_dims, moveaxis, normal_axis, reshape

_many = dict(ambient=lambda p: p["axes"])
_one = dict(ambient=lambda p: (p["name"],))


def _resized(x: Aval, axis: int, times: Any, over: Any, what: str) -> Aval:
    n = x.shape[axis] * times
    if over != 1 and n % over != 0:
        raise TypeRule(
            f"{what}: axis {axis} of {x!r} is not divisible by {over}",
            fix="its size must be a multiple of the size of the named axis",
        )
    shape = [n // over if i == axis else d for i, d in enumerate(x.shape)]
    return x.with_shape(shape)


@primitive("core.psum", traits=(Linear, Collective), **_many)
def psum_(x: Aval, *, axes: tuple) -> Aval:
    """Sum over the named axes, for all."""
    return x


@primitive("core.pmax", traits=(Collective,), **_many)
def pmax_(x: Aval, *, axes: tuple) -> Aval:
    """Maximum over the named axes, for all."""
    return x


@primitive("core.pmin", traits=(Collective,), **_many)
def pmin_(x: Aval, *, axes: tuple) -> Aval:
    """Minimum over the named axes, for all."""
    return x


@primitive("core.axis_index", traits=(Collective,), **_one)
def axis_index_(*, name: str) -> Aval:
    """Where we are along the named axis."""
    return Aval((), INT32)


@primitive("core.all_gather", traits=(Linear, Collective, AnyElement), **_one)
def all_gather_(x: Aval, *, name: str, axis: int, size: int) -> Aval:
    """Everybody's `x`, one after the other along `axis`."""
    return _resized(x, axis, size, 1, "all_gather")


@primitive("core.psum_scatter", traits=(Linear, Collective), **_one)
def psum_scatter_(x: Aval, *, name: str, axis: int, size: int) -> Aval:
    """Our piece, along `axis`, of the sum."""
    return _resized(x, axis, 1, size, "psum_scatter")


@primitive("core.ppermute", traits=(Linear, Collective, AnyElement), **_one)
def ppermute_(x: Aval, *, name: str, perm: tuple, size: int) -> Aval:
    """Send to whom `perm`, pairs (from, to), says; zero for those who get nothing."""
    return x


@primitive("core.all_to_all", traits=(Linear, Collective, AnyElement), **_one)
def all_to_all_(x: Aval, *, name: str, split: int, concat: int, size: int) -> Aval:
    """Pieces along `split` to each; what comes, one after the other along `concat`."""
    return _resized(_resized(x, split, 1, size, "all_to_all"), concat, size, 1, "all_to_all")


# ---- as users say it -----------------------------------------------------------------------


def _names(axis_name: Any) -> tuple:
    """The names as a tuple, every one bound."""
    names = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    for n in names:
        axis_size(n)
    return names


def _reduction(prim: Any, scale: Any = None):
    def reduce(x: Any, axis_name: Any) -> Any:
        names = _names(axis_name)

        def one(v: Any) -> Any:
            if scale is not None and v.__class__ in (int, float, bool):
                for n in names:
                    v = v * axis_size(n)
                return v
            return prim(v, axes=names)

        return map_tree(one, x)

    reduce.__name__ = prim.name.rpartition(".")[2]
    reduce.__doc__ = (
        f"{prim.doc}\n\nArgs:\n  x: a tree of arrays.\n  axis_name: a name, or a tuple of names, "
        "that is bound outside.\n\nRaises AxisError for a name that nobody binds."
    )
    return reduce


psum = _reduction(psum_, scale=True)
pmax = _reduction(pmax_)
pmin = _reduction(pmin_)


def pmean(x: Any, axis_name: Any) -> Any:
    """Mean over named axes, for all; `x` is a tree of arrays."""
    n = psum(1, axis_name)
    return map_tree(lambda v: true_divide(psum(v, axis_name), n), x)


def axis_index(axis_name: Any) -> Any:
    """Where we are along the named axis: an i32, from 0."""
    _names(axis_name)
    return axis_index_(name=axis_name)


def all_gather(x: Any, axis_name: Any, *, axis: int = 0, tiled: bool = False) -> Any:
    """Everybody's `x`, stacked along a new axis (or, if `tiled`, joined along an old one)."""
    size = axis_size(axis_name)

    def one(v: Any) -> Any:
        v = as_value(v)
        at = normal_axis(axis, v.aval.ndim + (not tiled))
        return all_gather_(v if tiled else expand_dims(v, at), name=axis_name, axis=at, size=size)

    return map_tree(one, x)


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, tiled: bool = False
) -> Any:
    """Our piece of the sum: without the axis, whose size is that of the named one, or, if
    `tiled`, our part of it."""
    size = axis_size(axis_name)

    def one(v: Any) -> Any:
        v = as_value(v)
        at = normal_axis(scatter_dimension, v.aval.ndim, "scatter_dimension")
        if not tiled and v.aval.shape[at] != size:
            raise AxisError(
                f"psum_scatter: axis {at} of {v.aval!r} does not have size {size}",
                fix="pass tiled=True to divide a larger axis",
            )
        y = psum_scatter_(v, name=axis_name, axis=at, size=size)
        if tiled:
            return y
        return reshape(y, tuple([n for i, n in enumerate(y.aval.shape) if i != at]))

    return map_tree(one, x)


def ppermute(x: Any, axis_name: Any, perm: Any) -> Any:
    """Send to whom `perm`, pairs (from, to), says; those who get nothing have zero."""
    size = axis_size(axis_name)
    pairs = tuple([(int(a), int(b)) for a, b in perm])
    sources, targets = [a for a, _ in pairs], [b for _, b in pairs]
    if len(set(sources)) < len(pairs) or len(set(targets)) < len(pairs):
        raise AxisError("ppermute: perm names a source or a target twice", fix="name each once")
    if any(not 0 <= i < size for i in (*sources, *targets)):
        raise AxisError(f"ppermute: perm {pairs} leaves the axis of size {size}")
    return map_tree(lambda v: ppermute_(v, name=axis_name, perm=pairs, size=size), x)


def all_to_all(
    x: Any, axis_name: Any, split_axis: int, concat_axis: int, *, tiled: bool = False
) -> Any:
    """Pieces along `split_axis` to each, put together along `concat_axis`.

    Not `tiled`, the split axis has the size of the named one and vanishes, and the results are
    stacked along a new axis.  Of several names, a tuple, the first varies slowest.
    """
    if isinstance(axis_name, tuple | list):
        names = _names(axis_name)
        return map_tree(lambda v: _to_all(v, names, split_axis, concat_axis, tiled), x)
    size = axis_size(axis_name)

    def one(v: Any) -> Any:
        v = as_value(v)
        split = normal_axis(split_axis, v.aval.ndim, "split_axis")
        concat = normal_axis(concat_axis, v.aval.ndim, "concat_axis")
        if tiled:
            return all_to_all_(v, name=axis_name, split=split, concat=concat, size=size)
        if v.aval.shape[split] != size:
            raise AxisError(
                f"all_to_all: axis {split} of {v.aval!r} does not have size {size}",
                fix="pass tiled=True to divide a larger axis",
            )
        # the split axis becomes size 1 and goes; the new one is where `concat` says, after that
        new = concat + (concat >= split)
        y = expand_dims(v, new)
        old = split + (split >= new)
        y = all_to_all_(y, name=axis_name, split=old, concat=new, size=size)
        return reshape(y, tuple([n for i, n in enumerate(y.aval.shape) if i != old]))

    return map_tree(one, x)


def _to_all(x: Any, names: tuple, split_axis: int, concat_axis: int, tiled: bool) -> Any:
    """all_to_all over several axes: over one after the other, each along an axis of its own that
    the split axis has been cut into; what they bring lies where these axes are."""
    x = as_value(x)
    split = normal_axis(split_axis, x.aval.ndim, "split_axis")
    concat = normal_axis(concat_axis, x.aval.ndim, "concat_axis")
    sizes = [axis_size(n) for n in names]
    total, shape = product(tuple(sizes)), x.aval.shape
    n = shape[split]
    if n % total != 0 or not (tiled or n == total):
        raise AxisError(
            f"all_to_all: axis {split} of {x.aval!r} does not have size {total}",
            fix="pass tiled=True to divide a larger axis, a multiple of this",
        )
    rest = (n // total,) if tiled else ()
    y = reshape(x, (*shape[:split], *sizes, *rest, *shape[split + 1 :]))
    for k, name in enumerate(names):
        y = all_to_all_(y, name=name, split=split + k, concat=split + k, size=sizes[k])
    y = moveaxis(reshape(y, (*shape[:split], total, *rest, *shape[split + 1 :])), split, concat)
    if not tiled:
        return y
    at = y.aval.shape
    return reshape(y, (*at[:concat], total * at[concat + 1], *at[concat + 2 :]))
