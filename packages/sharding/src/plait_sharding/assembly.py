"""Sharded arrays assembled of pieces: make_array_from_callback and its kin.

Invariant: the pieces of an array are those of its sharding, each with its own slice of the whole.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.ext.devices import (
    Placed,
    assemble,
)
from plait.ext.errors import (
    ArgumentError,
    AxisError,
    OperandTypeError,
)
from plait.ext.tree import (
    flatten,
    map_tree,
)
from plait.ext.types import (
    Aval,
)
from plait.ext.values import (
    Array,
    as_value,
    asarray,
    canonical,
    wrap,
)
from plait.lax import convert_element_type

from .placement import Sharding, from_host

__all__ = [
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
]


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding,
    data_callback: Callable[[tuple[slice, ...]], Any],
    dtype: Any = None,
) -> Array:
    """An array whose pieces are what `data_callback(index)` returns, for the index (a tuple of
    slices) of each piece in the whole.

    Args:
      shape: of the whole.
      sharding: how it is divided.
      data_callback: returns a numpy array of the shape of that slice; called once per slice.
      dtype: of the array; by default that of the first piece.

    Raises AxisError if a piece has another shape, or the shape can not be divided so.

    >>> import numpy as np, plait
    >>> where = plait.SingleDeviceSharding(plait.devices()[0])
    >>> plait.make_array_from_callback((2,), where, lambda index: np.ones(2, np.float32)[index])
    Array([1., 1.], dtype=float32)
    """
    _expect(sharding)
    pieces = _Pieces(shape, data_callback, dtype)
    if dtype is None:  # that of the first piece
        sharding.check(Aval(pieces.shape, np.float32))
        first = next(iter(sharding.devices_indices_map(pieces.shape).values()))
        pieces.dtype = pieces[first].dtype
    return from_host(pieces, sharding)


class _Pieces:
    """What a callback gives for slices of an array that there is not: each is asked for once."""

    def __init__(self, shape: Sequence[int], give: Callable[[tuple[slice, ...]], Any], dtype: Any):
        self.shape = tuple([int(n) for n in shape])
        self.dtype = None if dtype is None else np.dtype(dtype)
        self._give, self._given = give, dict[tuple, np.ndarray]()

    def astype(self, dtype: np.dtype, copy: bool = False) -> "_Pieces":
        """The same, of pieces of this dtype."""
        self.dtype = dtype
        return self

    def __getitem__(self, index: tuple[slice, ...]) -> np.ndarray:
        key = _key(index)
        piece = self._given.get(key)
        if piece is None:
            piece = asarray(self._give(index)).numpy()
            want = tuple([s.stop - s.start for s in index])
            if piece.shape != want:
                raise AxisError(
                    f"make_array_from_callback: the piece at {index} has shape {piece.shape}, and "
                    f"{want} is needed",
                    fix="return the slice of the whole that the index names",
                )
            self._given[key] = piece
        return piece if self.dtype is None else piece.astype(self.dtype, copy=False)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Array], *, dtype: Any = None
) -> Array:
    """An array whose pieces are these arrays, each of which is on a device of the sharding.

    Nothing is copied: the whole and its pieces share their memory, and if one of them is deleted or
    donated, so are the others.

    Args:
      shape: of the whole.
      sharding: how it is divided.
      arrays: one for each device, in any order.
      dtype: of all of them; needed where there are none.

    Raises TypeRule if a device has no array or two, or dtypes differ, AxisError for pieces of wrong
    shape.

    >>> import plait
    >>> d = plait.devices()[0]
    >>> x = plait.device_put(plait.numpy.ones(2), d)
    >>> plait.make_array_from_single_device_arrays((2,), plait.SingleDeviceSharding(d), [x])
    Array([1., 1.], dtype=float32)
    """
    _expect(sharding)
    for x in arrays:
        if not isinstance(x, Array):
            raise OperandTypeError(
                f"make_array_from_single_device_arrays is of arrays on devices, not of {x!r}",
                fix="give arrays that plait.device_put made; of a value that is traced use "
                "plait.lax.with_sharding_constraint",
            )
    kinds = {x.dtype: x for x in arrays}
    if len(kinds) > 1:
        raise OperandTypeError(
            "make_array_from_single_device_arrays: the pieces of one array have one dtype, not "
            f"{' and '.join(map(str, kinds))}",
            fix="convert them first, with .astype",
        )
    held = {tuple(x.devices()): x for x in arrays}
    if len(held) < len(arrays):
        each = [tuple(x.devices()) for x in arrays]
        twice = next(d for i, d in enumerate(each) if d in each[:i])
        raise ArgumentError(
            f"make_array_from_single_device_arrays: two pieces are on {twice[0]!r}",
            fix="give one array for each device: plait.device_put(piece, device)",
        )
    boxes = sharding.devices_indices_map(tuple(shape))
    missing = [d for d in boxes if (d,) not in held]
    if missing or len(held) != len(boxes):
        raise ArgumentError(
            f"make_array_from_single_device_arrays: {len(held)} pieces for the {len(boxes)} "
            f"devices of {sharding!r}; {missing or 'others'} have none",
            fix="give one array for each device: plait.device_put(piece, device)",
        )
    kind = np.dtype(arrays[0].dtype if dtype is None else dtype)
    key = Placed(Aval(tuple(shape), canonical(kind)), sharding.closed())
    pieces = []
    for device, index in boxes.items():
        x, want = held[(device,)], tuple([s.stop - s.start for s in index])
        if x.shape != want:
            raise AxisError(
                f"make_array_from_single_device_arrays: the piece on {device!r} has shape "
                f"{x.shape}, and {want} is needed",
                fix="give each device the slice that sharding.devices_indices_map(shape) names",
            )
        pieces.append(as_value(convert_element_type(x, kind)).buffer())
    if not key.aval.size:  # the runtime takes pieces of nothing for one and the same
        return from_host(np.empty(key.aval.shape, kind), sharding)
    return wrap(assemble(pieces, key), key)


def make_array_from_process_local_data(
    sharding: Sharding, local_data: Any, global_shape: Any = None
) -> Any:
    """Arrays of what this process has of them, which is all: there is one process.

    Args:
      sharding: how they are divided.
      local_data: a numpy array, or a tree of them.
      global_shape: the shape, or a tree of shapes; it is that of the data.

    Raises AxisError for another shape.

    >>> import numpy as np, plait
    >>> where = plait.SingleDeviceSharding(plait.devices()[0])
    >>> plait.make_array_from_process_local_data(where, np.ones(2, np.float32))
    Array([1., 1.], dtype=float32)
    """
    _expect(sharding)
    leaves, _ = flatten(local_data)
    if len(leaves) == 1 and global_shape is not None:
        want = tuple(global_shape)
        if any(n not in (None, m) for n, m in zip(want, np.shape(leaves[0]), strict=True)):
            raise AxisError(
                f"make_array_from_process_local_data: data of shape {np.shape(leaves[0])} for an "
                f"array of shape {want}",
                fix="this process is the only one: give all of the array",
            )
    return map_tree(lambda x: from_host(asarray(x).numpy(), sharding), local_data)


def _key(index: tuple[slice, ...]) -> tuple:
    return tuple([(s.start, s.stop, s.step) for s in index])


def _expect(sharding: Any) -> None:
    if not isinstance(sharding, Sharding):
        raise ArgumentError(
            f"a sharding is needed, not {sharding!r}",
            fix="write NamedSharding(mesh, P(...)) or SingleDeviceSharding(device)",
        )
