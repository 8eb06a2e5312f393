"""Collectives: operations along named axes.

Along several axes a collective is one operation for those that are bound together
(`Interpreter.joins`), as axes of a mesh are; its `name` is then the tuple of their names, the first
of which varies slowest.

Invariant: the name is a parameter.  Whoever binds the name gives the operation meaning: a
transformation by its rules, an operation with programs by the lowering of what it binds
(`Emitter.bound`).  A name that nobody binds is an error, at the latest when the program is
compiled; a Program knows the names it speaks of (`Program.axes`).
"""

from typing import Any

import numpy as np

from .._base.errors import ArgumentError, AxisError, ShapeError
from .._core.array import Literal, as_value
from .._core.axis_names import axis_size, binder, joined
from .._core.primitive import primitive
from .._core.staging import Stage
from .._plugins.traits import AnyElement, Collective, Elementwise, Linear
from .._types.avals import INT32, Aval
from .._types.dims import product
from .._xla.lower import lower_rules
from ..tree import map_tree
from .dynamic_slicing import dynamic_index_in_dim
from .elementwise import eq, select, true_divide
from .shape import convert, expand_dims, fill, moveaxis, normal_axis, reshape
from .static_arguments import fixed_each

_many = dict(ambient=lambda p: p["axes"])
_one = dict(ambient=lambda p: p["name"] if p["name"].__class__ is tuple else (p["name"],))


def _resized(x: Aval, axis: int, times: Any, over: Any, what: str, name: Any) -> Aval:
    n = x.shape[axis] * times
    if over != 1 and n % over != 0:
        raise ShapeError(
            f"{what}: axis {axis} of {x!r} is not divisible by {over}, the size of {name!r}",
            fix="its size must be a multiple of the size of the named axis",
        )
    shape = [n // over if i == axis else d for i, d in enumerate(x.shape)]
    return x.with_shape(shape)


def _less(axes: frozenset, params: dict[str, Any]) -> frozenset:
    """What is reduced over all positions of an axis is the same at each."""
    return axes if params.get("groups") else axes.difference(params["axes"])


@primitive("core.psum", traits=(Linear, Collective), vma=_less, **_many)
def psum_(x: Aval, *, axes: tuple, groups: tuple = ()) -> Aval:
    """Sum over the named axes, for all; or, of one axis, for all of a group."""
    return x


@primitive("core.pmax", traits=(Collective,), vma=_less, **_many)
def pmax_(x: Aval, *, axes: tuple, groups: tuple = ()) -> Aval:
    """Maximum over the named axes, for all; or, of one axis, for all of a group."""
    return x


@primitive("core.pmin", traits=(Collective,), vma=_less, **_many)
def pmin_(x: Aval, *, axes: tuple, groups: tuple = ()) -> Aval:
    """Minimum over the named axes, for all; or, of one axis, for all of a group."""
    return x


def _more(axes: frozenset, params: dict[str, Any]) -> frozenset:
    """What is said to vary does."""
    return axes.union(params["axes"])


@primitive("core.pvary", traits=(Linear, Elementwise, AnyElement), vma=_more)
def pvary_(x: Aval, *, axes: tuple) -> Aval:
    """The operand, with a type that says that it may differ along these axes of a mesh."""
    return x


Stage.vary_by(pvary_)


@lower_rules.rule(pvary_)
def _(e, xs, ins, outs, *, axes):
    return xs[0]


@primitive("core.axis_index", traits=(Collective,), **_one)
def axis_index_(*, name: str) -> Aval:
    """Where we are along the named axis."""
    return Aval((), INT32)


@primitive("core.all_gather", traits=(Linear, Collective, AnyElement), **_one)
def all_gather_(x: Aval, *, name: str, axis: int, size: int, groups: tuple = ()) -> Aval:
    """Everybody's `x` (of our group), one after the other along `axis`."""
    return _resized(x, axis, size, 1, "all_gather", name)


@primitive("core.psum_scatter", traits=(Linear, Collective), **_one)
def psum_scatter_(x: Aval, *, name: str, axis: int, size: int, groups: tuple = ()) -> Aval:
    """Our piece, along `axis`, of the sum (over our group)."""
    return _resized(x, axis, 1, size, "psum_scatter", name)


@primitive("core.ppermute", traits=(Linear, Collective, AnyElement), **_one)
def ppermute_(x: Aval, *, name: str, perm: tuple, size: int) -> Aval:
    """Send to whom `perm`, pairs (from, to), says; zero for those who get nothing."""
    return x


@primitive("core.all_to_all", traits=(Linear, Collective, AnyElement), **_one)
def all_to_all_(
    x: Aval, *, name: str, split: int, concat: int, size: int, groups: tuple = ()
) -> Aval:
    """Pieces along `split` to each (of our group); what comes, one after the other along
    `concat`."""
    pieces = _resized(x, split, 1, size, "all_to_all", name)
    return _resized(pieces, concat, size, 1, "all_to_all", name)


# ---- as users say it -----------------------------------------------------------------------


def varied(x: Any, axes: Any) -> Any:
    """`x` in the type that varies along these axes, too."""
    missing = frozenset(axes) - x.aval.vma
    if not missing:
        return x
    if x.__class__ is Literal:
        return Literal(x.value, x.aval.with_vma(x.aval.vma | missing))
    return pvary_.bind(x, axes=tuple(sorted(missing)))


def _own(x: Any, names: tuple) -> Any:
    """`x` as each position's own: it varies along those of these axes that types speak of."""
    return varied(x, [n for n in names if n in binder(n).typed_axes])


def _names(axis_name: Any) -> tuple[Any, ...]:
    """The names as a tuple, every one bound, and none twice."""
    names = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    if not names:
        raise AxisError("no axis is named", fix="name the axes that are bound outside")
    for n in names:
        axis_size(n)
    twice = [n for i, n in enumerate(names) if n in names[:i]]
    if twice:
        raise AxisError(
            f"axis {twice[0]!r} is named twice in {names}: after the first time nothing varies "
            "along it",
            fix="name each axis once",
        )
    return names


def _groups(what: str, axis_name: Any, given: Any, even: bool = False) -> dict[str, Any]:
    """Who is with whom, as parameters: each position of one axis is in one group; of one size, if
    `even`."""
    if given is None:
        return {}
    if isinstance(axis_name, tuple | list):
        if len(axis_name) != 1:
            raise AxisError(
                f"{what}: axis_index_groups are of one axis, not of {tuple(axis_name)}",
                fix="name one axis, or leave the groups out",
            )
        (axis_name,) = axis_name
    size = axis_size(axis_name)
    try:
        groups = tuple([tuple([i.__index__() for i in g]) for g in given])
    except (AttributeError, TypeError):
        groups = ((-1,),)
    if sorted(i for g in groups for i in g) != list(range(size)) or not all(groups):
        raise AxisError(
            f"{what}: axis_index_groups {given!r} do not divide the positions of axis "
            f"{axis_name!r}, of size {size}",
            fix=f"put each of 0 to {size - 1} into one group: [[0, 1], [2, 3], ...]",
        )
    if even and len({len(g) for g in groups}) > 1:
        raise AxisError(
            f"{what}: axis_index_groups {given!r} are of different sizes",
            fix="make them equally large: what every position gets must have one shape",
        )
    return {} if groups in ((), (tuple(range(size)),)) else {"groups": groups}


def _steps(what: str, names: tuple, groups: Any) -> tuple[list[tuple], dict[str, Any]]:
    """What is done one after the other, the first slowest: along an axis, or several that are bound
    together, and how many exchange something; and the groups as parameters."""
    how = _groups(what, names, groups, even=True)
    if how:
        return [(names[0], len(how["groups"][0]))], how
    return [(name, axis_size(name)) for name in joined(names)], how


def members(what: str, axis_name: Any, groups: Any) -> Any:
    """How many exchange something: along the axes of these names together, or in a group.

    Raises AxisError for a name that nobody binds, and groups that do not divide the axis.
    """
    steps, _ = _steps(what, _names(axis_name), groups)
    return product(tuple([size for _, size in steps]))


def _counted(x: Any) -> Any:
    """`x`, booleans as 0 and 1: a sum counts them."""
    return convert(x, INT32) if x.aval.dtype == np.bool_ else x


_TREE = """  x: a tree of arrays.
  axis_name: a name, or a tuple of names, that is bound outside.
  axis_index_groups: a list of lists of positions along one axis, each position in one of them:
    those of a group do it among themselves.

Raises AxisError for a name that nobody binds, and groups that do not divide the axis."""


def _reduction(prim: Any):
    name = prim.name.rpartition(".")[2]

    def reduce(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
        names = _names(axis_name)
        how = _groups(name, axis_name, axis_index_groups)
        sizes = {len(g) for g in how["groups"]} if how else {axis_size(names)}
        scale = prim is psum_ and len(sizes) == 1

        def one(v: Any) -> Any:
            if scale and v.__class__ in (int, float, bool):
                return v * next(iter(sizes))
            v = _own(as_value(v), names)
            return prim(_counted(v) if prim is psum_ else v, axes=names, **how)

        return map_tree(one, x)

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"{prim.doc}\n\nArgs:\n{_TREE}"
    return reduce


psum, pmax, pmin = (_reduction(prim) for prim in (psum_, pmax_, pmin_))


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Mean over named axes, for all; arguments as of `psum`."""
    add = lambda v: psum(v, axis_name, axis_index_groups=axis_index_groups)  # noqa: E731
    n = add(1)
    return map_tree(lambda v: true_divide(add(v), n), x)


def axis_index(axis_name: Any) -> Any:
    """Where we are along the named axis: an i32, from 0; of several names, a tuple, the first
    varies slowest.

    Raises AxisError for a name that nobody binds.
    """
    if not isinstance(axis_name, tuple | list):
        axis_size(axis_name)
        return _own(axis_index_(name=axis_name), (axis_name,))
    at: Any = as_value(np.int32(0))
    for n in axis_name:
        at = at * axis_size(n) + axis_index(n)
    return at


def all_gather(
    x: Any, axis_name: Any, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False,
    to: str = "varying",
) -> Any:  # fmt: skip
    """Everybody's `x`, stacked along a new axis (or, if `tiled`, joined along an old one).

    Args:
      x: a tree of arrays.
      axis_name: a name, or a tuple of names, that is bound outside; the first varies slowest.
      axis_index_groups: as of `psum`, of one size.
      axis: the new axis of the result, or the old one.
      tiled: which of both.
      to: "varying" or "reduced"; whether the result differs is found out, and need not be said.

    Raises AxisError for names that nobody binds and axes that are not there.
    """
    names = _names(axis_name)
    steps, how = _steps("all_gather", names, axis_index_groups)
    if to not in ("varying", "reduced"):
        raise ArgumentError(f"all_gather to {to!r}", fix='leave it out, or write to="varying"')

    def one(v: Any) -> Any:
        v = _own(as_value(v), names)
        at = normal_axis(axis, v.aval.ndim + (not tiled))
        y = v if tiled else expand_dims(v, at)
        for name, size in reversed(steps):  # the first varies slowest
            y = all_gather_(y, name=name, axis=at, size=size, **how)
        return y

    return map_tree(one, x)


def psum_scatter(
    x: Any, axis_name: Any, *, scatter_dimension: int = 0, axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:  # fmt: skip
    """Our piece of the sum: without the axis, whose size is that of the named one, or, if
    `tiled`, our part of it.

    Args:
      x: a tree of arrays.
      axis_name: a name, or a tuple of names, that is bound outside; the first varies slowest.
      scatter_dimension: the axis that is divided.
      axis_index_groups: as of `psum`, of one size.
      tiled: whether the axis stays, divided.

    Raises AxisError for names that nobody binds, axes that are not there and other sizes.
    """
    names = _names(axis_name)
    steps, how = _steps("psum_scatter", names, axis_index_groups)
    total = product(tuple([size for _, size in steps]))

    def one(v: Any) -> Any:
        v = _counted(_own(as_value(v), names))
        at = normal_axis(scatter_dimension, v.aval.ndim, "scatter_dimension")
        if not tiled and v.aval.shape[at] != total:
            raise AxisError(
                f"psum_scatter: axis {at} of {v.aval!r} does not have size {total}, that of "
                f"{axis_name!r}",
                fix="pass tiled=True to divide a larger axis",
            )
        y = v
        for name, size in steps:
            y = psum_scatter_(y, name=name, axis=at, size=size, **how)
        if tiled:
            return y
        return reshape(y, tuple([n for i, n in enumerate(y.aval.shape) if i != at]))

    return map_tree(one, x)


def ppermute(x: Any, axis_name: Any, perm: Any) -> Any:
    """Send to whom `perm`, pairs (from, to), says; those who get nothing have zero.

    Args:
      x: a tree of arrays.
      axis_name: a name, or a tuple of names, that is bound outside; of several, positions count
        the first slowest.
      perm: pairs of positions.

    Raises AxisError for a name that nobody binds, and pairs that leave the axis or name a position
    twice.
    """
    names = _names(axis_name)
    size = axis_size(names)
    try:
        pairs = tuple([(a.__index__(), b.__index__()) for a, b in perm])
    except (AttributeError, TypeError, ValueError):
        raise AxisError(
            f"ppermute: perm must be pairs of positions, not {perm!r}",
            fix="write for instance [(0, 1), (1, 0)]",
        ) from None
    sources, targets = [a for a, _ in pairs], [b for _, b in pairs]
    if len(set(sources)) < len(pairs) or len(set(targets)) < len(pairs):
        raise AxisError(
            f"ppermute: perm {pairs} names a source or a target twice", fix="name each once"
        )
    if any(not 0 <= i < size for i in (*sources, *targets)):
        raise AxisError(
            f"ppermute: perm {pairs} leaves the axis {axis_name!r} of size {size}",
            fix=f"positions are 0 to {size - 1}",
        )
    return map_tree(lambda v: _sent(_own(as_value(v), names), joined(names), pairs), x)


def _sent(x: Any, names: tuple, pairs: tuple) -> Any:
    """`x`, sent along axes, some of which are tuples of axes that are bound together.

    Along the last one is sent in turns: in one, everybody who is sent from one place of that axis
    to another makes the same moves along the axes before it."""
    *before, last = names
    n = axis_size(last)
    if not before:
        return ppermute_(x, name=last, perm=pairs, size=n)
    moves: dict[tuple, list] = {}
    for a, b in pairs:
        moves.setdefault((a % n, b % n), []).append((a // n, b // n))
    turns: dict[tuple, list] = {}
    for (source, target), along in moves.items():
        kept = turns.setdefault(tuple(sorted(along)), [{}])
        turn = next((t for t in kept if source not in t and target not in t.values()), None)
        if turn is None:
            kept.append(turn := {})
        turn[source] = target
    out: Any = None
    for along, kept in turns.items():
        still = all(a == b for a, b in along) and len(along) == axis_size(tuple(before))
        moved = x if still else _sent(x, tuple(before), along)
        for turn in kept:
            got = ppermute_(moved, name=last, perm=tuple(turn.items()), size=n)
            if out is None:
                out = got
                continue
            table = np.zeros(axis_size(names), bool)
            table[[b * n + target for _, b in along for target in turn.values()]] = True
            ours = dynamic_index_in_dim(table, axis_index(names), keepdims=False)
            out = select(ours, got, out)
    return fill(0, as_value(x).aval) if out is None else out


def pshuffle(x: Any, axis_name: Any, perm: Any) -> Any:
    """`ppermute` by a permutation: position i of the axis gets what position `perm[i]` has."""
    size = axis_size(axis_name)
    perm = fixed_each("pshuffle", "perm", perm)
    if sorted(perm) != list(range(size)):
        raise AxisError(
            f"pshuffle: {perm!r} is no permutation of the {size} positions of axis {axis_name!r}",
            fix="use ppermute, which lets positions be left out",
        )
    return ppermute(x, axis_name, [(source, i) for i, source in enumerate(perm)])


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """What position `source` of the named axis has, for all; `x` is a tree of arrays.

    Raises AxisError for a name that nobody binds, and a position that is not there.
    """
    at = normal_axis(source, axis_size(axis_name), "source")

    def one(v: Any) -> Any:
        v = as_value(v)
        here = eq(axis_index(axis_name), at)
        sent = psum(select(here, v, fill(0, v.aval)), axis_name)
        return sent if sent.aval.dtype == v.aval.dtype else convert(sent, v.aval.dtype)

    return map_tree(one, x)


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """The tree itself, as what may differ along named axes: in reverse mode, each device has a
    cotangent of its own of it, and what it was before has their sum.

    Nobody needs to say it: an operation whose operands vary along different axes takes each as if
    it varied along all of them.

    Args:
      x: a tree of arrays.
      axis_name: a name, or a tuple of names, that is bound outside.
      to: "varying"; a value that differs can not be said to be the same ("reduced").

    Raises AxisError for a name that nobody binds, TypeRule for another `to`.
    """
    names = _names(axis_name)
    if to != "varying":
        raise ArgumentError(
            f"pcast to {to!r}",
            fix='write to="varying"; reduce with psum or pmean what shall be the same',
        )
    return map_tree(lambda v: _own(as_value(v), names), x)


def all_to_all(
    x: Any, axis_name: Any, split_axis: int, concat_axis: int, *, axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:  # fmt: skip
    """Pieces along `split_axis` to each, put together along `concat_axis`.

    Not `tiled`, the split axis has the size of the named one and vanishes, and the results are
    stacked along a new axis.  Of several names, a tuple, the first varies slowest.

    axis_index_groups: as of `psum`, of one size.  Raises AxisError for names that nobody binds,
    axes that are not there and other sizes.
    """
    steps, how = _steps("all_to_all", _names(axis_name), axis_index_groups)
    if len(steps) > 1:
        return map_tree(lambda v: _to_all(v, steps, split_axis, concat_axis, tiled), x)
    ((axis_name, size),) = steps

    def one(v: Any) -> Any:
        v = as_value(v)
        split = normal_axis(split_axis, v.aval.ndim, "split_axis")
        concat = normal_axis(concat_axis, v.aval.ndim, "concat_axis")
        if tiled:
            return all_to_all_(v, name=axis_name, split=split, concat=concat, size=size, **how)
        if v.aval.shape[split] != size:
            raise AxisError(
                f"all_to_all: axis {split} of {v.aval!r} does not have size {size}, that of "
                f"{axis_name!r}",
                fix="pass tiled=True to divide a larger axis",
            )
        # the split axis becomes size 1 and goes; the new one is where `concat` says, after that
        new = concat + (concat >= split)
        y = expand_dims(v, new)
        old = split + (split >= new)
        y = all_to_all_(y, name=axis_name, split=old, concat=new, size=size, **how)
        return reshape(y, tuple([n for i, n in enumerate(y.aval.shape) if i != old]))

    return map_tree(one, x)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """An axis of the tree's arrays, of the named axis's size, and the named axis swapped.

    Arguments and errors are those of `all_to_all`.
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def _to_all(x: Any, steps: list, split_axis: int, concat_axis: int, tiled: bool) -> Any:
    """all_to_all over several axes: over one after the other, each along an axis of its own that
    the split axis has been cut into; what they bring lies where these axes are."""
    x = as_value(x)
    split = normal_axis(split_axis, x.aval.ndim, "split_axis")
    concat = normal_axis(concat_axis, x.aval.ndim, "concat_axis")
    sizes = [size for _, size in steps]
    total, shape = product(tuple(sizes)), x.aval.shape
    n = shape[split]
    if n % total != 0 or not (tiled or n == total):
        raise AxisError(
            f"all_to_all: axis {split} of {x.aval!r} does not have size {total}",
            fix="pass tiled=True to divide a larger axis, a multiple of this",
        )
    rest = (n // total,) if tiled else ()
    y = reshape(x, (*shape[:split], *sizes, *rest, *shape[split + 1 :]))
    for k, (name, size) in enumerate(steps):
        y = all_to_all_(y, name=name, split=split + k, concat=split + k, size=size)
    y = moveaxis(reshape(y, (*shape[:split], total, *rest, *shape[split + 1 :])), split, concat)
    if not tiled:
        return y
    at = y.aval.shape
    return reshape(y, (*at[:concat], total * at[concat + 1], *at[concat + 2 :]))
