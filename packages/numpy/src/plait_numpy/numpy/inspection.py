"""Properties of arrays that do not depend on their values.

Invariant: results are Python values and numpy's dtypes; nothing is traced or computed.
"""

from typing import Any

import numpy as np

from plait import local_devices
from plait.dtypes import isdtype
from plait.ext import Value
from plait.ext.devices import devices
from plait.ext.ops.shape import normal_axes, normal_shape
from plait.ext.surface import value
from plait.ext.types import COMPLEX, FLOATING, INTEGER, default_dtype
from plait.ext.types import broadcast_shapes as _broadcast_shapes
from plait.ext.values import canonical
from plait.typing import Array as _AnyArray
from plait.typing import ArrayLike, Axis

ndarray = _AnyArray


class _Info:
    """The inspection interface of the array API standard."""

    def capabilities(self) -> dict[str, Any]:
        """Return the capabilities of arrays; traced shapes do not depend on values."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """Return the device on which arrays are created."""
        return local_devices()[0]

    def devices(self) -> list:
        """Return all devices."""
        return devices()

    def default_dtypes(self, *, device: object = None) -> dict[str, Any]:
        """Return the dtypes of arrays that are made of numbers."""
        kinds = {"real floating": FLOATING, "complex floating": COMPLEX, "integral": INTEGER}
        found = {name: default_dtype(kind) for name, kind in kinds.items()}
        return {**found, "indexing": found["integral"]}

    def dtypes(
        self, *, device: object = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, Any]:
        """Return the dtypes of the standard, by name: all, or those of a kind (see `isdtype`)."""
        found = {n: np.dtype(n) for n in _STANDARD}
        chosen = found if kind is None else {n: d for n, d in found.items() if isdtype(d, kind)}
        return {n: d for n, d in chosen.items() if canonical(d) == d}


_STANDARD = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip


def __array_namespace_info__() -> _Info:  # noqa: N807
    """Return the array API standard's description of this namespace: devices, dtypes, capabilities.

    >>> import plait
    >>> plait.numpy.__array_namespace_info__().default_dtypes()["real floating"]
    dtype('float32')
    """
    return _Info()


def shape(a: ArrayLike) -> tuple[Any, ...]:
    """Return the sizes of the axes.

    a: an array, or an object that converts to one.  As numpy.shape.

    Raises NotAnArrayError if `a` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.shape(np.ones((2, 3)))
    (2, 3)
    """
    found = getattr(a, "shape", None)
    return found if isinstance(found, tuple) else _known(a).shape


def ndim(a: ArrayLike) -> int:
    """Return the number of axes.

    a: an array, or an object that converts to one.  As numpy.ndim.

    Raises NotAnArrayError if `a` is not an array.

    >>> import numpy as np, plait
    >>> plait.numpy.ndim(np.ones((2, 3)))
    2
    """
    return len(shape(a))


def size(a: ArrayLike, axis: Axis | None = None) -> int:
    """Return the number of elements, altogether or along axes.  As numpy.size.

    Raises NotAnArrayError if `a` is not an array, and AxisError if it has no such axis.

    >>> import numpy as np, plait
    >>> plait.numpy.size(np.ones((2, 3))), plait.numpy.size(np.ones((2, 3)), 0)
    (6, 2)
    """
    sizes = shape(a)
    n = 1
    for i in normal_axes(axis, len(sizes)):
        n = n * sizes[i]
    return n


def _known(a: object) -> Any:
    return np.asarray(a) if isinstance(a, list | tuple) else value(a).aval


def broadcast_shapes(*shapes: object) -> tuple[Any, ...]:
    """Return the shape that arrays of these shapes broadcast to.

    Raises DimMismatch for sizes that are neither equal nor 1.  As numpy.broadcast_shapes.

    >>> import plait
    >>> plait.numpy.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return _broadcast_shapes([normal_shape(s) for s in shapes])


def can_cast(from_: object, to: object, casting: str = "safe") -> bool:
    """Return whether a dtype converts to another under numpy's casting rule.  As numpy.can_cast.

    Raises TypeRule if a dtype or `casting` is not known.

    >>> import plait
    >>> plait.numpy.can_cast("int32", "int64"), plait.numpy.can_cast("int64", "int32")
    (True, False)
    """
    return np.can_cast(np.dtype(from_), np.dtype(to), casting)  # type: ignore[arg-type]


def iterable(y: Any) -> bool:
    """Return whether `y` can be iterated over.  As numpy.iterable.

    >>> import plait
    >>> plait.numpy.iterable([1]), plait.numpy.iterable(1)
    (True, False)
    """
    if isinstance(y, Value):  # also one whose size is known by name only
        return y.aval.ndim > 0
    try:
        iter(y)
    except TypeError:
        return False
    return True


def array_repr(
    arr: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """Return the text of `repr`, with numpy's options.  As numpy.array_repr.

    >>> import numpy as np, plait
    >>> plait.numpy.array_repr(np.array([1.5]))
    'array([1.5])'
    """
    return np.array_repr(np.asarray(arr), max_line_width, precision, suppress_small)


def array_str(
    a: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """Return the text of `str`, with numpy's options.  As numpy.array_str.

    >>> import numpy as np, plait
    >>> plait.numpy.array_str(np.array([1.5]))
    '[1.5]'
    """
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)
