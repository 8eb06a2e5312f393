"""Elements at positions along several axes, and functions of windows.

Invariant: positions outside are clamped, dropped or filled according to `mode`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from plait.typing import Array, ArrayLike

from .._api.surfaces import value
from .._base.errors import OperandTypeError, ShapeError
from .._control import fori_loop
from .._ops import elementwise as el
from .._ops import reduction
from .._ops.indexing import GatherDimensionNumbers, gather
from .._ops.scattering import ScatterDimensionNumbers, scatter_add
from .._ops.shape import concatenate, convert, expand_dims, fill, normal_axes, normal_shape
from .._ops.sizes import from_front, integers
from .._ops.static_arguments import fixed_each
from .._types.avals import INT32, Aval
from .structure import stage


def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """Return the elements of `src` at positions along several axes, merged into one leading axis.

    Args:
      src: an array.
      idxs: a vector of integers for each of `axes`, all equally long; negative ones count from the
        end, and positions outside are clamped.
      axes: the axes, each once.

    Raises AxisError for axes that `src` lacks, TypeRule for other numbers and shapes of positions.

    >>> import numpy as np, plait
    >>> x = np.arange(12).reshape(3, 4)
    >>> plait.lax.index_take(x, (np.array([0, -1]), np.array([1, 2])), (0, 1)).tolist()
    [1, 10]
    """
    if not isinstance(idxs, tuple | list):
        raise OperandTypeError(f"index_take at {idxs!r}", fix="give a tuple of vectors of integers")
    x, places = value(src), [integers(i, "idxs") for i in idxs]
    at = normal_axes(fixed_each("index_take", "axes", axes), x.aval.ndim, "axes")
    same = {i.aval.shape for i in places}
    if len(places) != len(at) or not at or len(same) != 1 or places[0].aval.ndim != 1:
        raise ShapeError(
            f"index_take of {x.aval!r} at {[i.aval for i in places]} along axes {at}",
            fix="give a vector of integers for each axis, all equally long",
        )
    columns = [
        expand_dims(convert(from_front(i, x.aval.shape[a]), INT32), 1) for i, a in zip(places, at)
    ]
    rest = x.aval.ndim - len(at)
    numbers = GatherDimensionNumbers(tuple(range(1, 1 + rest)), tuple(sorted(at)), at)
    sizes = tuple([1 if a in at else n for a, n in enumerate(x.aval.shape)])
    return gather(x, concatenate(columns, 1), numbers, sizes, mode="clip")


def scatter_apply(
    operand: ArrayLike, scatter_indices: ArrayLike, func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers, *, update_shape: Any = (),
    indices_are_sorted: bool = False, unique_indices: bool = False, mode: object = None,
) -> Array:  # fmt: skip
    """Apply `func` to the elements of `operand` in windows, once for each window an element is in.

    Args:
      operand: an array.
      scatter_indices, dimension_numbers, indices_are_sorted, unique_indices, mode: as in `scatter`.
      func: elementwise function of an array of the operand's shape and dtype.
      update_shape: the shape that updates would have.

    Raises TypeRule if axes or sizes do not fit, or `func` changes the type.

    >>> import numpy as np, plait
    >>> numbers = plait.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> at = np.array([[1], [1]])
    >>> x = np.arange(3)
    >>> plait.lax.scatter_apply(x, at, lambda v: v * 10, numbers, update_shape=(2,)).tolist()
    [0, 100, 2]
    """
    x = stage(operand)
    ones = fill(1, Aval(normal_shape(update_shape), INT32))
    times = scatter_add(
        fill(0, Aval(x.aval.shape, INT32)), scatter_indices, ones, dimension_numbers,
        indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode,
    )  # fmt: skip

    def turn(done: ArrayLike, v: Array) -> Any:
        new = value(func(v))
        if not new.aval.same_type(v.aval):
            raise OperandTypeError(
                f"scatter_apply: the function returns {new.aval!r} for {v.aval!r}",
                fix="return an array of the same shape and dtype",
            )
        return el.select.bind(el.gt(times, done), new, v)

    if unique_indices or not times.aval.size:
        return turn(0, x)
    most = reduction.reduce_max.bind(times, axes=tuple(range(x.aval.ndim)))
    return fori_loop(0, most, turn, x)
