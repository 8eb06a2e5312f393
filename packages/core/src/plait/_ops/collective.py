"""Collectives: operations along named axes.

Along several axes a collective is one operation if they are bound together (`Interpreter.joins`),
as axes of a mesh are.  Its `name` is then the tuple of their names; the first varies slowest.

Invariant: the name is a parameter.  The binder of the name gives the operation its meaning: a
transformation by its rules, an operation with programs by the lowerings that it provides
(`Emitter.bound`).  An unbound name is an error, at the latest when the program is compiled.  A
Program holds the names that its operations use (`Program.axes`).
"""

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from .._base.errors import ArgumentError, AxisError, ShapeError
from .._base.jaxlib_api import IrValue
from .._core.array import Literal, as_value
from .._core.axis_names import binder, is_complete, joined, positions
from .._core.interpreter import Value
from .._core.primitive import Primitive, primitive
from .._core.staging import Stage
from .._plugins.traits import AnyElement, Collective, Elementwise, Linear
from .._types.avals import INT32, Aval
from .._types.dims import product
from .._xla.lower import Emitter, lower_rules
from ..tree import map_tree
from ..typing import Array
from .composed import true_divide
from .dynamic_slicing import dynamic_index_in_dim
from .elementwise import eq, select
from .shape import broadcast_to, convert, expand_dims, fill, iota, moveaxis, normal_axis, reshape
from .static_arguments import fixed_each

__all__ = [
    "all_gather_", "all_to_all_", "axis_index_", "pmax_", "pmin_", "ppermute_", "psum_",
    "psum_scatter_", "pvary_", "varied",
]  # fmt: skip


T = TypeVar("T")
"""A tree of arrays."""

_many = dict(ambient=lambda p: p["axes"])
_one = dict(ambient=lambda p: p["name"] if p["name"].__class__ is tuple else (p["name"],))


def _resized(
    x: Aval, axis: int, times: int, over: int, what: str, name: str | tuple[str, ...]
) -> Aval:
    n = x.shape[axis] * times
    if over != 1 and n % over != 0:
        raise ShapeError(
            f"{what}: axis {axis} of {x!r} is not divisible by {over}, the size of {name!r}",
            fix="its size must be a multiple of the size of the named axis",
        )
    shape = [n // over if i == axis else d for i, d in enumerate(x.shape)]
    return x.with_shape(shape)


def _less(axes: frozenset, params: dict[str, Any]) -> frozenset:
    """Remove the reduced axes: a reduction over all positions of an axis is the same at each."""
    return axes if params.get("groups") else axes.difference(params["axes"])


@primitive("core.psum", traits=(Linear, Collective), vma=_less, **_many)
def psum_(x: Aval, *, axes: tuple, groups: tuple = ()) -> Aval:
    """Sum over the named axes, for all; or, of one axis, for all of a group."""
    return x


@primitive("core.pmax", traits=(Collective,), vma=_less, **_many)
def pmax_(x: Aval, *, axes: tuple, groups: tuple = ()) -> Aval:
    """Return the maximum over the named axes, for all; or, of one axis, for all of a group."""
    return x


@primitive("core.pmin", traits=(Collective,), vma=_less, **_many)
def pmin_(x: Aval, *, axes: tuple, groups: tuple = ()) -> Aval:
    """Return the minimum over the named axes, for all; or, of one axis, for all of a group."""
    return x


def _more(axes: frozenset, params: dict[str, Any]) -> frozenset:
    """Add the axes along which the result may vary."""
    return axes.union(params["axes"])


@primitive("core.pvary", traits=(Linear, Elementwise, AnyElement), vma=_more)
def pvary_(x: Aval, *, axes: tuple) -> Aval:
    """Return the operand, typed as varying along these axes of a mesh."""
    return x


Stage.vary_by(pvary_)


@lower_rules.rule(pvary_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], *, axes: tuple[str, ...]):
    return xs[0]


@primitive("core.axis_index", traits=(Collective,), **_one)
def axis_index_(*, name: str) -> Aval:
    """Return the index of this position along the named axis."""
    return Aval((), INT32)


@primitive("core.all_gather", traits=(Linear, Collective, AnyElement), **_one)
def all_gather_(x: Aval, *, name: str, axis: int, size: int, groups: tuple = ()) -> Aval:
    """Join the `x` of all positions (of the group) along `axis`."""
    return _resized(x, axis, size, 1, "all_gather", name)


@primitive("core.psum_scatter", traits=(Linear, Collective), **_one)
def psum_scatter_(x: Aval, *, name: str, axis: int, size: int, groups: tuple = ()) -> Aval:
    """Return this position's piece, along `axis`, of the sum (over the group)."""
    return _resized(x, axis, 1, size, "psum_scatter", name)


@primitive("core.ppermute", traits=(Linear, Collective, AnyElement), **_one)
def ppermute_(x: Aval, *, name: str, perm: tuple, size: int) -> Aval:
    """Send along `perm`, pairs (from, to); positions that receive nothing get zero."""
    return x


@primitive("core.all_to_all", traits=(Linear, Collective, AnyElement), **_one)
def all_to_all_(
    x: Aval, *, name: str, split: int, concat: int, size: int, groups: tuple = ()
) -> Aval:
    """Send one piece along `split` to each position (of the group), and join the received pieces
    along `concat`."""
    pieces = _resized(x, split, 1, size, "all_to_all", name)
    return _resized(pieces, concat, size, 1, "all_to_all", name)


# ---- functions for users -------------------------------------------------------------------


def varied(x: Any, axes: frozenset[Any] | list[str]) -> Any:
    """Return `x` typed as varying along these axes too."""
    missing = frozenset(axes) - x.aval.vma
    if not missing:
        return x
    if x.__class__ is Literal:
        return Literal(x.value, x.aval.with_vma(x.aval.vma | missing))
    return pvary_.bind(x, axes=tuple(sorted(missing)))


def _own(x: Value, names: tuple) -> Any:
    """Return `x` as each position's own value: varying along those of these axes that types
    record."""
    return varied(x, [n for n in names if n in binder(n).typed_axes])


def _names(axis_name: object) -> tuple[Any, ...]:
    """Return the names as a tuple; raises AxisError if one is unbound or occurs twice."""
    names = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    if not names:
        raise AxisError("no axis is named", fix="name the axes that are bound outside")
    for n in names:
        positions(n)
    twice = [n for i, n in enumerate(names) if n in names[:i]]
    if twice:
        raise AxisError(
            f"axis {twice[0]!r} is named twice in {names}: after the first time nothing varies "
            "along it",
            fix="name each axis once",
        )
    return names


def _groups(what: str, axis_name: Any, given: Any, even: bool = False) -> dict[str, Any]:
    """Return the groups as parameters.

    Each position along the axes is in exactly one group; the first axis varies slowest.  The
    groups have one size if `even` is set.
    """
    if given is None:
        return {}
    if isinstance(axis_name, tuple | list):
        if len(joined(axis_name)) != 1:
            raise AxisError(
                f"{what}: axis_index_groups are of axes of one mesh, not of {tuple(axis_name)}",
                fix="name one axis, or leave the groups out",
            )
        axis_name = axis_name[0] if len(axis_name) == 1 else tuple(axis_name)
    size = positions(axis_name)
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
    """Return the exchanges to make one after the other, and the groups as parameters.

    An exchange is (name or joined names, number of positions); the first varies slowest.
    """
    how = _groups(what, names, groups, even=True)
    if how:
        return [(joined(names)[0], len(how["groups"][0]))], how
    return [(name, positions(name)) for name in joined(names)], how


def members(what: str, axis_name: Any, groups: Any) -> Any:
    """Return the number of positions that exchange data: along these axes together, or in a group.

    Raises AxisError for an unbound name, and for groups that do not divide the axis.
    """
    steps, _ = _steps(what, _names(axis_name), groups)
    return product(tuple([size for _, size in steps]))


def _counted(x: Any) -> Any:
    """Convert booleans to 0 and 1, so that a sum counts them."""
    return convert(x, INT32) if x.aval.dtype == np.bool_ else x


_TREE = """  x: a tree of arrays.
  axis_name: a name, or a tuple of names, that is bound outside.
  axis_index_groups: a list of lists of positions along one axis, or along several of a mesh
    together, each position in one of them: those of a group do it among themselves.

Raises AxisError for a name that is not bound, and groups that do not divide the axis."""


class _Reduction(Protocol):
    """A reduction over named axes."""

    def __call__(
        self,
        x: T,
        axis_name: Hashable,
        *,
        axis_index_groups: Sequence[Sequence[int]] | None = None,
    ) -> T: ...


def _reduction(prim: Primitive) -> _Reduction:
    name = prim.name.rpartition(".")[2]

    def reduce(
        x: T,
        axis_name: Hashable,
        *,
        axis_index_groups: Sequence[Sequence[int]] | None = None,
    ) -> T:
        names = _names(axis_name)
        how = _groups(name, axis_name, axis_index_groups)
        sizes = {len(g) for g in how["groups"]} if how else {positions(names)}
        scale = prim is psum_ and len(sizes) == 1 and is_complete(names)

        def one(v: Value | float) -> Any:
            if scale and v.__class__ in (int, float, bool):
                return v * next(iter(sizes))
            v = _own(as_value(v), names)
            return prim(_counted(v) if prim is psum_ else v, axes=names, **how)

        return map_tree(one, x)

    reduce.__name__ = reduce.__qualname__ = name
    reduce.__doc__ = f"{prim.doc}\n\nArgs:\n{_TREE}"
    return reduce


psum, pmax, pmin = (_reduction(prim) for prim in (psum_, pmax_, pmin_))


def pmean(
    x: T, axis_name: Hashable, *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
) -> T:  # fmt: skip
    """Return the mean over named axes, for all; arguments as of `psum`.

    Raises UnboundAxisName for a name that is not bound where it is called.
    """
    add = lambda v: psum(v, axis_name, axis_index_groups=axis_index_groups)  # noqa: E731
    n = add(1)
    return map_tree(lambda v: true_divide(add(v), n), x)


def axis_index(axis_name: Hashable) -> Array:
    """Return the index of this position along the named axis: an i32, from 0.

    For a tuple of names it is the joint index, in which the first varies slowest.

    Raises AxisError for an unbound name.
    """
    if not isinstance(axis_name, tuple | list):
        positions(axis_name)
        return _own(axis_index_(name=axis_name), (axis_name,))
    at: Any = as_value(np.int32(0))
    for n in axis_name:
        at = at * positions(n) + axis_index(n)
    return at


def all_gather(
    x: T, axis_name: Hashable, *,
    axis_index_groups: Sequence[Sequence[int]] | None = None, axis: int = 0, tiled: bool = False,
    to: str = "varying",
) -> T:  # fmt: skip
    """Stack the `x` of all positions along a new axis (or, if `tiled`, join along an old one).

    Args:
      x: a tree of arrays.
      axis_name: a name, or a tuple of names, that is bound outside; the first varies slowest.
      axis_index_groups: as of `psum`, of one size.
      axis: the new axis of the result, or the old one.
      tiled: True to join along the old axis.
      to: "varying" or "reduced", which give the same result; or "invarying", for one whose type
        says that it is the same everywhere, so that its cotangent counts once.

    "invarying" adds up pieces beside zeros: it moves up to twice as many bytes, and -0.0 may come
    as 0.0.

    Raises AxisError for unbound names and axes out of range, ArgumentError for groups in a result
    that does not vary.
    """
    names = _names(axis_name)
    steps, how = _steps("all_gather", names, axis_index_groups)
    if to not in ("varying", "reduced", "invarying"):
        raise ArgumentError(f"all_gather to {to!r}", fix='leave it out, or write to="varying"')
    if to == "invarying" and axis_index_groups is not None:
        raise ArgumentError(
            'all_gather to "invarying" gives one result, and axis_index_groups one for each group',
            fix="leave one of them out",
        )

    def one(v: Value) -> Any:
        v = _own(as_value(v), names)
        at = normal_axis(axis, v.aval.ndim + (not tiled))
        y = v if tiled else expand_dims(v, at)
        for name, size in reversed(steps):  # the first varies slowest
            y = all_gather_(y, name=name, axis=at, size=size, **how)
        return y

    def added_up(v: Value) -> Any:
        v = _own(as_value(v), names)
        at = normal_axis(axis, v.aval.ndim + (not tiled))
        row = expand_dims(v, at)
        total = product(tuple([size for _, size in steps]))
        shape = tuple([total if i == at else n for i, n in enumerate(row.aval.shape)])
        mine = eq(iota(np.int32, shape, at), axis_index(axis_name))
        rows: Any = psum(select(mine, broadcast_to(row, shape), 0), axis_name)
        if tiled:
            sizes = [n * total if i == at else n for i, n in enumerate(v.aval.shape)]
            rows = reshape(rows, tuple(sizes))
        return convert(rows, v.aval.dtype)

    return map_tree(added_up if to == "invarying" else one, x)


def psum_scatter(
    x: T, axis_name: Hashable, *, scatter_dimension: int = 0,
    axis_index_groups: Sequence[Sequence[int]] | None = None, tiled: bool = False,
) -> T:  # fmt: skip
    """Return this position's piece of the sum.

    The divided axis has the size of the named one and is removed; if `tiled`, it stays, divided.

    Args:
      x: a tree of arrays.
      axis_name: a name, or a tuple of names, that is bound outside; the first varies slowest.
      scatter_dimension: the axis that is divided.
      axis_index_groups: as of `psum`, of one size.
      tiled: True to keep the axis, divided.

    Raises AxisError for unbound names, axes out of range and other sizes.
    """
    names = _names(axis_name)
    steps, how = _steps("psum_scatter", names, axis_index_groups)
    total = product(tuple([size for _, size in steps]))

    def one(v: Value) -> Any:
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


def ppermute(x: T, axis_name: Hashable, perm: Sequence[tuple[int, int]]) -> T:
    """Send along `perm`, pairs (from, to); positions that receive nothing get zeros.

    Args:
      x: a tree of arrays.
      axis_name: a name, or a tuple of names, that is bound outside; of several, positions count
        the first slowest.
      perm: pairs of positions.

    Raises AxisError for an unbound name, and for pairs that leave the axis or name a source or a
    target twice.
    """
    names = _names(axis_name)
    size = positions(names)
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


def _sent(x: Value, names: tuple, pairs: tuple) -> Any:
    """Send `x` along axes; some may be tuples of axes that are bound together.

    Sends along the last axis happen in turns.  In one turn, all pairs (source, target) of that axis
    make the same moves along the axes before it.
    """
    *before, last = names
    n = positions(last)
    if not before:
        return ppermute_(x, name=last, perm=pairs, size=n)
    moves: dict[tuple, list] = {}
    for a, b in pairs:
        moves.setdefault((a % n, b % n), []).append((a // n, b // n))
    # A turn names each position of the last axis at most once, as ppermute requires.
    turns: dict[tuple, list] = {}
    for (source, target), along in moves.items():
        kept = turns.setdefault(tuple(sorted(along)), [{}])
        turn = next((t for t in kept if source not in t and target not in t.values()), None)
        if turn is None:
            kept.append(turn := {})
        turn[source] = target
    out: Any = None
    for along, kept in turns.items():
        still = all(a == b for a, b in along) and len(along) == positions(tuple(before))
        moved = x if still else _sent(x, tuple(before), along)
        for turn in kept:
            got = ppermute_(moved, name=last, perm=tuple(turn.items()), size=n)
            if out is None:
                out = got
                continue
            table = np.zeros(positions(names), bool)
            table[[b * n + target for _, b in along for target in turn.values()]] = True
            ours = dynamic_index_in_dim(table, axis_index(names), keepdims=False)
            out = select(ours, got, out)
    return fill(0, as_value(x).aval) if out is None else out


def pshuffle(x: T, axis_name: Hashable, perm: Sequence[int]) -> T:
    """Permute along an axis: position i gets the value of position `perm[i]`.

    Raises UnboundAxisName for a name that is not bound where it is called.
    """
    size = positions(axis_name)
    perm = fixed_each("pshuffle", "perm", perm)
    if sorted(perm) != list(range(size)):
        raise AxisError(
            f"pshuffle: {perm!r} does not permute the {size} positions of axis {axis_name!r}",
            fix="use ppermute, which lets positions be left out",
        )
    return ppermute(x, axis_name, [(source, i) for i, source in enumerate(perm)])


def pbroadcast(x: T, axis_name: Hashable, source: int) -> T:
    """Return the value of position `source` of the named axis, for all; `x` is a tree of arrays.

    Raises AxisError for an unbound name, and for a position out of range.
    """
    at = normal_axis(source, positions(axis_name), "source")

    def one(v: Value) -> Any:
        v = as_value(v)
        here = eq(axis_index(axis_name), at)
        sent = psum(select(here, v, fill(0, v.aval)), axis_name)
        return sent if sent.aval.dtype == v.aval.dtype else convert(sent, v.aval.dtype)

    return map_tree(one, x)


def pcast(x: T, axis_name: Hashable, *, to: str) -> T:
    """Return the tree typed as varying along named axes.

    In reverse mode, each device has its own cotangent of the result, and the cotangent of `x` is
    their sum.  A call is rarely needed: an operation whose operands vary along different axes
    treats each as varying along all of them.

    Args:
      x: a tree of arrays.
      axis_name: a name, or a tuple of names, that is bound outside.
      to: "varying"; a value that varies cannot be declared equal on all devices ("reduced").

    Raises AxisError for an unbound name, TypeRule for another `to`.
    """
    names = _names(axis_name)
    if to != "varying":
        raise ArgumentError(
            f"pcast to {to!r}",
            fix='write to="varying"; reduce with psum or pmean to make values equal',
        )
    return map_tree(lambda v: _own(as_value(v), names), x)


def all_to_all(
    x: T, axis_name: Hashable, split_axis: int, concat_axis: int, *,
    axis_index_groups: Sequence[Sequence[int]] | None = None, tiled: bool = False,
) -> T:  # fmt: skip
    """Send pieces along `split_axis` to each position, and join them along `concat_axis`.

    If not `tiled`, the split axis has the size of the named one and is removed, and the results are
    stacked along a new axis.  Of several names, a tuple, the first varies slowest.

    axis_index_groups: as of `psum`, of one size.  Raises AxisError for unbound names, axes out of
    range and other sizes.
    """
    steps, how = _steps("all_to_all", _names(axis_name), axis_index_groups)
    if len(steps) > 1:
        return map_tree(lambda v: _to_all(v, steps, split_axis, concat_axis, tiled), x)
    ((axis_name, size),) = steps

    def one(v: Value) -> Any:
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
        # The split axis has size 1 afterwards and is removed; `concat` counts axes without it.
        new = concat + (concat >= split)
        y = expand_dims(v, new)
        old = split + (split >= new)
        y = all_to_all_(y, name=axis_name, split=old, concat=new, size=size, **how)
        return reshape(y, tuple([n for i, n in enumerate(y.aval.shape) if i != old]))

    return map_tree(one, x)


def pswapaxes(
    x: T, axis_name: Hashable, axis: int, *,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
) -> T:  # fmt: skip
    """Swap an axis of the tree's arrays with the named axis, which has the same size.

    Arguments and errors are those of `all_to_all`.

    Raises UnboundAxisName for a name that is not bound where it is called.
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def _to_all(x: Value, steps: list, split_axis: int, concat_axis: int, tiled: bool) -> Any:
    """Apply all_to_all over several axes, one after the other.

    The split axis is cut into one axis for each; the received pieces lie along these axes.
    """
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
