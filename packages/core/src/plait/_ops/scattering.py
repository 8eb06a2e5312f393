"""Scattering: writing windows at indices, and combining them with the elements there.

Invariant: positions outside are clamped or dropped as `mode` says, and a window is written as a
whole or not at all.  The primitives share one definition and differ in how they combine elements.
Many updates of floats narrower than float32 are added and multiplied in float32.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from .._base.errors import OperandTypeError, ShapeError
from .._base.jaxlib_api import IrValue
from .._core.array import as_value
from .._core.primitive import Ints, Primitive
from .._plugins.traits import Indexing
from .._types.avals import BOOL, FLOAT32, OPAQUE, Aval, is_narrow, no_number
from .._types.dims import is_symbolic, product
from .._xla.lower import Emitter, lower_rules
from .._xla.mlir import attr, boolean
from ..typing import Array, ArrayLike
from . import indexing as ix
from .elementwise import neg
from .empty_axes import make_room, take_back, together, with_room
from .shape import fitting, materialise_at_ground
from .sizes import integers
from .static_arguments import flag, record

__all__ = [
    "as_gather", "as_scatter", "scatter_", "scatter_add_", "scatter_max_", "scatter_min_",
    "scatter_mul_", "ScatterDimensionNumbers", "window_sizes",
]  # fmt: skip


class ScatterDimensionNumbers(NamedTuple):
    """The correspondence between axes of a scatter's operand, indices and updates.

    Attributes:
      update_window_dims: axes of the updates that are axes of the window.
      inserted_window_dims: axes of the operand along which the window has size 1, dropped.
      scatter_dims_to_operand_dims: the axis of the operand for each component of an index.
      operand_batching_dims, scatter_indices_batching_dims: axes paired one to one.
    """

    update_window_dims: Ints
    inserted_window_dims: Ints
    scatter_dims_to_operand_dims: Ints
    operand_batching_dims: Ints = ()
    scatter_indices_batching_dims: Ints = ()


# ---- primitives ----------------------------------------------------------------------------


def window_sizes(x: Aval, updates: Aval, numbers: ScatterDimensionNumbers) -> tuple:
    """Return the size of the window along each axis of the operand."""
    dropped = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    sizes = iter([updates.shape[a] for a in numbers.update_window_dims])
    return tuple([1 if i in dropped else next(sizes) for i in range(x.ndim)])


def _check_scatter(
    name: str, x: Aval, indices: Aval, updates: Aval, n: "ScatterDimensionNumbers"
) -> Aval:
    window, inserted, to, together, with_ = n
    ix.correspond(name, x, indices, window, inserted, to, together, with_)
    if updates.ndim != indices.ndim - 1 + len(window) or updates.dtype != x.dtype:
        raise OperandTypeError(
            f"{name}: updates {updates!r} for indices {indices!r} into {x!r}",
            fix=f"they need dtype {x.dtype} and {indices.ndim - 1 + len(window)} axes",
        )
    if tuple(sorted(set(window))) != window or any(a >= updates.ndim for a in window):
        raise ShapeError(f"{name}: {window} are not axes of {updates!r}, in order")
    rest = tuple([d for i, d in enumerate(updates.shape) if i not in window])
    if rest != indices.shape[:-1]:
        raise ShapeError(
            f"{name}: updates {updates!r} are not one window for each of the indices {indices!r}",
            fix=f"the axes that are not axes of the window must have sizes {indices.shape[:-1]}",
        )
    for i, (d, m) in enumerate(zip(x.shape, window_sizes(x, updates, n))):
        if d.__class__ is int and m.__class__ is int and m > d and not ix.no_index(indices):
            raise ShapeError(
                f"{name}: a window of size {m} does not fit axis {i} of {x!r}",
                fix=f"make it at most {d}",
            )
    return x.strong() if not updates.weak_type else x


def _whole_rows(e: Emitter, shape: Sequence[Any], batching: Ints, hlo: str | None) -> list[int]:
    """Return the axes of indices, of this shape, along which a scatter must not be divided.

    Where pieces are padded to equal sizes, XLA writes the padding too, unless it adds.  XLA also
    confuses pieces of rows with pieces of batching axes.
    """
    if not e.is_divided:
        return []
    devices = len(e.unit.place.devices)
    uneven = [i for i, n in enumerate(shape) if n.__class__ is not int or n % devices]
    rows = {*range(len(shape))}.difference(batching)
    if batching:
        return sorted({*uneven, *rows})
    return [] if hlo == "add" else uneven


def _scatter(verb: str, hlo: str | None, doc: str) -> Primitive:
    name = "scatter" + verb

    def rule(
        x: Aval,
        indices: Aval,
        updates: Aval,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        mode: str,
        indices_are_sorted: bool,
        unique_indices: bool,
    ) -> Aval:
        if hlo in ("minimum", "maximum") and x.dtype.kind == "c":
            raise OperandTypeError(
                f"{name}: complex numbers have no order", fix="use the real part"
            )
        if hlo is not None and x.category == OPAQUE:
            raise no_number(name, x)
        return _check_scatter(name, x, indices, updates, dimension_numbers)

    rule.__doc__ = doc
    p = Primitive("core." + name, rule, (Indexing,))

    @lower_rules.rule(p)
    def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], **how: object):
        if ix.no_index(ins[1]):
            return xs[0]
        if hlo in ("add", "multiply") and not how["unique_indices"] and _rounds_often(ins):
            types = [_single(ins[0]), ins[1], _single(ins[2])]
            wide = [e.op("stablehlo.convert", [xs[i]], types[i]) for i in (0, 2)]
            out = emit(e, [wide[0], xs[1], wide[1]], types, types[:1], **how)
            return e.op("stablehlo.convert", [out], outs[0])
        return emit(e, xs, ins, outs, **how)

    def emit(
        e: Emitter,
        xs: list[IrValue],
        ins: list[Aval],
        outs: list[Aval],
        dimension_numbers,
        mode,
        indices_are_sorted,
        unique_indices,
    ):
        n, (x, indices, updates) = dimension_numbers, xs
        sizes, wide = window_sizes(ins[0], ins[2], n), ins[0]
        if is_symbolic(ins[0].shape) or is_symbolic(sizes):
            wide = with_room(ins[0], sizes)
        if wide is not ins[0] and mode != ix.CLIP:
            indices = _fitting_only(e, indices, ins, n.scatter_dims_to_operand_dims, sizes)
        if mode == ix.CLIP and n.scatter_dims_to_operand_dims:
            high = ix.greatest_places(e, ins, n.scatter_dims_to_operand_dims, sizes)
            high = e.broadcast(high, [ins[1].ndim - 1], ins[1])
            low = e.constant(0, ins[1])
            indices = e.op("stablehlo.clamp", [low, indices, high], ins[1])
        cell = Aval((), ins[0].dtype)
        body = lambda r, ab: [r.op("stablehlo." + hlo, ab, cell)] if hlo else [ab[1]]  # noqa: E731
        text = (
            f"#stablehlo.scatter<update_window_dims = {list(n.update_window_dims)}, "
            f"inserted_window_dims = {list(n.inserted_window_dims)}, "
            f"input_batching_dims = {list(n.operand_batching_dims)}, "
            f"scatter_indices_batching_dims = {list(n.scatter_indices_batching_dims)}, "
            f"scatter_dims_to_operand_dims = {list(n.scatter_dims_to_operand_dims)}, "
            f"index_vector_dim = {ins[1].ndim - 1}>"
        )
        many, one = n.operand_batching_dims, n.scatter_indices_batching_dims
        others = [i for i in range(ins[2].ndim) if i not in n.update_window_dims]
        places = together(ins[1], ins[0], wide, one, many)
        rows = together(ins[2], ins[0], wide, [others[i] for i in one], many)
        x, indices = make_room(e, x, ins[0], wide), make_room(e, indices, ins[1], places)
        updates = make_room(e, updates, ins[2], rows)
        apart = _whole_rows(e, places.shape[:-1], one, hlo)
        pairs = [k for i, k in zip(one, many) if i in apart]
        x = e.whole_along(x, wide, pairs)
        indices = e.whole_along(indices, places, apart)
        updates = e.whole_along(updates, rows, [others[i] for i in apart])
        out = e.op(
            "stablehlo.scatter", [x, indices, updates], wide,
            regions=[((cell, cell), body)], scatter_dimension_numbers=attr(text),
            indices_are_sorted=boolean(indices_are_sorted), unique_indices=boolean(unique_indices),
        )  # fmt: skip
        return take_back(e, e.whole_along(out, wide, pairs), wide, outs[0])

    return p


_FEW = 8
"""The most updates that round seldom enough; these are written in place of a donated operand."""


def _rounds_often(ins: Sequence[Aval]) -> bool:
    """Return True if many updates may be combined at one position of an array of narrow floats.

    Each would be rounded: a sum of ones ends at 256 in bfloat16.
    """
    if not is_narrow(ins[0]):
        return False
    count = product(ins[1].shape[:-1])
    return count.__class__ is not int or count > _FEW


def _single(x: Aval) -> Aval:
    return x.with_dtype(FLOAT32)


def _fitting_only(e: Emitter, indices: Any, ins: list[Aval], axes: Ints, sizes: Any) -> Any:
    """Return the indices, moved outside where the axis is too short, so that nothing is written."""
    if all(sizes[a].__class__ is int and sizes[a] == 1 for a in axes):
        return indices  # Writes beyond an empty axis are cut off again.
    high = e.broadcast(ix.greatest_places(e, ins, axes, sizes), [ins[1].ndim - 1], ins[1])
    none = e.compare(high, e.constant(0, ins[1]), "LT", Aval(ins[1].shape, BOOL))
    return e.op("stablehlo.select", [none, e.constant(-1, ins[1]), indices], ins[1])


scatter_ = _scatter("", None, "`x` with the window at each index replaced by the update for it.")
scatter_add_ = _scatter("_add", "add", "`x` with updates added to the windows at the indices.")
scatter_mul_ = _scatter("_mul", "multiply", "`x` with windows multiplied by the updates.")
scatter_min_ = _scatter("_min", "minimum", "`x` with the lesser of windows and updates.")
scatter_max_ = _scatter("_max", "maximum", "`x` with the greater of windows and updates.")


def as_scatter(n: ix.GatherDimensionNumbers) -> ScatterDimensionNumbers:
    """Return the numbers of the scatter that writes where a gather reads."""
    return ScatterDimensionNumbers(*n)


def as_gather(n: ScatterDimensionNumbers) -> ix.GatherDimensionNumbers:
    """Return the numbers of the gather that reads where a scatter writes."""
    return ix.GatherDimensionNumbers(*n)


# ---- functions for users -------------------------------------------------------------------


class _Scatter(Protocol):
    """An operation that writes updates at indices."""

    def __call__(
        self,
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
    ) -> Array: ...


def _scattering(prim: Primitive, what: str, shows: str) -> _Scatter:
    name = prim.name.rpartition(".")[2]

    def scatter_with(
        operand: ArrayLike,
        scatter_indices: ArrayLike,
        updates: ArrayLike,
        dimension_numbers: ScatterDimensionNumbers,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Any = None,
    ) -> Array:
        x = materialise_at_ground(as_value(operand))
        return prim.bind(
            x,
            integers(scatter_indices, "indices"),
            fitting(name, updates, x),
            dimension_numbers=record(name, ScatterDimensionNumbers, dimension_numbers),
            mode=ix.normal_mode(mode),
            indices_are_sorted=flag(name, "indices_are_sorted", indices_are_sorted),
            unique_indices=flag(name, "unique_indices", unique_indices),
        )

    scatter_with.__name__ = scatter_with.__qualname__ = name
    scatter_with.__doc__ = f"""{what}

    Args:
      operand: an array.
      scatter_indices: integers; an index is along the last axis, and counts from the front.
      updates: a window for each index, of the operand's dtype.
      dimension_numbers: what axis is what, see `ScatterDimensionNumbers`.
      indices_are_sorted, unique_indices: promises, which make it faster.
      mode: "drop" (the default: windows that stick out are left out), "clip" (they are moved
        inside) or "promise_in_bounds".

    Raises TypeRule if axes or sizes do not fit.

    >>> import numpy as np, plait
    >>> numbers = plait.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> plait.lax.{name}(np.array([1, 2, 3]), np.array([[2]]), np.array([5]), numbers).tolist()
    {shows}
    """
    return scatter_with


scatter = _scattering(
    scatter_,
    "`operand` with windows replaced; of several for one position any one counts.",
    "[1, 2, 5]",
)
scatter_add = _scattering(scatter_add_, "`operand` with updates added to windows.", "[1, 2, 8]")
scatter_mul = _scattering(
    scatter_mul_, "`operand` with windows multiplied by updates.", "[1, 2, 15]"
)
scatter_min = _scattering(
    scatter_min_, "`operand` with the lesser of windows and updates.", "[1, 2, 3]"
)
scatter_max = _scattering(
    scatter_max_, "`operand` with the greater of windows and updates.", "[1, 2, 5]"
)


def scatter_sub(
    operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
    dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
    unique_indices: bool = False, mode: object = None,
) -> Array:  # fmt: skip
    """Return `operand` with updates subtracted from windows; arguments as of `scatter_add`.

    Raises OperandTypeError if the indices are not integers.

    >>> import numpy as np, plait
    >>> numbers = plait.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> plait.lax.scatter_sub(np.arange(3), np.array([[2]]), np.array([5]), numbers).tolist()
    [0, 1, -3]
    """
    return scatter_add(
        operand, scatter_indices, neg(updates), dimension_numbers, unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted, mode=mode,
    )  # fmt: skip
