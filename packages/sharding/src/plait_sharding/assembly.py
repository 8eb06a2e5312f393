"""Sharded arrays assembled from pieces: make_array_from_callback and its kin.

Invariant: the pieces of an array are those of its sharding, each with its own slice of the whole.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.errors import UnexpectedTracerError
from plait.ext import Tracer
from plait.ext.devices import Device, Placed, assemble
from plait.ext.errors import ArgumentError, AxisError, OperandTypeError
from plait.ext.ops.opaque import unwrap
from plait.ext.ops.opaque import wrap as wrap_elements
from plait.ext.tree import flatten, map_tree, spread
from plait.ext.types import Aval, Opaque
from plait.ext.values import Array, as_value, asarray, canonical, wrap
from plait.lax import convert_element_type
from plait.typing import ArrayLike

from .mesh import PartitionSpec
from .placement import Sharding, SingleDeviceSharding, from_host

__all__ = [
    "make_array_from_callback", "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
]  # fmt: skip


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding,
    data_callback: Callable[[tuple[slice, ...]], Any],
    dtype: object = None,
) -> Array:
    """Return an array whose pieces are the results of `data_callback(index)`.

    `index`, a tuple of slices, is the position of a piece in the whole.

    Args:
      shape: the shape of the whole.
      sharding: the sharding of the array; also a device, or a PartitionSpec over the mesh in
        context.
      data_callback: returns a numpy array of the shape of that slice; called once per slice.
      dtype: the dtype of the array; by default that of the first piece.

    Raises AxisError if a piece has another shape, or if the shape cannot be divided so.

    >>> import numpy as np, plait
    >>> where = plait.SingleDeviceSharding(plait.devices()[0])
    >>> plait.make_array_from_callback((2,), where, lambda index: np.ones(2, np.float32)[index])
    Array([1., 1.], dtype=float32)
    """
    sharding = _placed(sharding)
    pieces = _Pieces(shape, data_callback, dtype)
    if dtype is None:  # the first piece decides
        sharding.check(Aval(pieces.whole, np.float32))
        here = list(sharding.addressable_devices_indices_map(pieces.whole).values())
        pieces.element = pieces.piece(here[0]).dtype if here else None
    if isinstance(pieces.element, Opaque):
        return from_host(pieces, sharding, Aval(pieces.whole, pieces.element))
    return from_host(pieces, sharding)


class _Pieces:
    """A stand-in for an array, whose slices are a callback's results, each computed once.

    Like memory, it has the numbers that stand for elements that are not numbers, such as keys.
    """

    def __init__(self, shape: Sequence[int], give: Callable[[tuple[slice, ...]], Any], dtype: Any):
        self.whole = tuple([int(n) for n in shape])
        self.element = None if dtype is None else _element(dtype)
        self._give, self._given = give, dict[tuple, Array]()

    @property
    def shape(self) -> tuple[int, ...]:
        return self.whole + (self.element.shape if isinstance(self.element, Opaque) else ())

    @property
    def dtype(self) -> Any:
        return self.element.words if isinstance(self.element, Opaque) else self.element

    def astype(self, dtype: np.dtype, copy: bool = False) -> "_Pieces":
        """Convert later slices to this dtype; return the object itself."""
        self.element = dtype
        return self

    def piece(self, index: tuple[slice, ...]) -> Array:
        """Return the callback's result for this slice, as an array of the shape of the slice."""
        key = _key(index)
        piece = self._given.get(key)
        if piece is None:
            given = self._give(index)
            if isinstance(given, Tracer):
                raise UnexpectedTracerError(
                    f"make_array_from_callback: the piece at {index} is {given!r}, which is traced "
                    "and lies on no device",
                    fix="call it outside of the transformed function, with arrays; inside, "
                    "plait.lax.with_sharding_constraint lays values out",
                )
            piece = asarray(given)
            want = tuple([s.stop - s.start for s in index])
            if piece.shape != want:
                raise AxisError(
                    f"make_array_from_callback: the piece at {index} has shape {piece.shape}, and "
                    f"{want} is needed",
                    fix="return the slice of the whole that the index names",
                )
            self._given[key] = piece
        return piece

    def __getitem__(self, index: tuple[slice, ...]) -> np.ndarray:
        piece = self.piece(index[: len(self.whole)])
        if isinstance(self.element, Opaque):
            if piece.dtype != self.element:
                raise OperandTypeError(
                    f"make_array_from_callback: the piece at {index} has elements {piece.dtype}, "
                    f"and {self.element} are needed",
                    fix="return pieces of that dtype, such as slices of an array of keys",
                )
            return unwrap(piece).numpy()
        numbers = piece.numpy()
        return numbers if self.element is None else numbers.astype(self.dtype, copy=False)


def _element(dtype: Any) -> Any:
    return dtype if isinstance(dtype, Opaque) else np.dtype(dtype)


def _stored(dtype: Any) -> Any:
    return dtype if isinstance(dtype, Opaque) else canonical(dtype)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Array], *, dtype: Any = None
) -> Array:
    """Return an array whose pieces are these arrays, each on a device of the sharding.

    Nothing is copied: the whole and its pieces share memory.  If one of them is deleted or donated,
    so are the others.

    Args:
      shape: the shape of the whole.
      sharding: the sharding of the whole.
      arrays: one for each device of this process, in any order.
      dtype: the dtype of all of them; needed if there are none.

    Raises TypeRule if a device has no array or two, or if dtypes differ; AxisError for pieces of
    the wrong shape.

    >>> import plait
    >>> d = plait.devices()[0]
    >>> x = plait.device_put(plait.numpy.ones(2), d)
    >>> plait.make_array_from_single_device_arrays((2,), plait.SingleDeviceSharding(d), [x])
    Array([1., 1.], dtype=float32)
    """
    sharding = _placed(sharding)
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
    boxes = sharding.addressable_devices_indices_map(tuple(shape))
    missing = [d for d in boxes if (d,) not in held]
    if missing or len(held) != len(boxes):
        raise ArgumentError(
            f"make_array_from_single_device_arrays: {len(held)} pieces for the {len(boxes)} "
            f"devices of {sharding!r} that this process drives; {missing or 'others'} have none",
            fix="give one array for each device: plait.device_put(piece, device)",
        )
    kind = _element(arrays[0].dtype if dtype is None else dtype)
    key = Placed(Aval(tuple(shape), _stored(kind)), sharding.closed())
    pieces = []
    for device, index in boxes.items():
        x, want = held[(device,)], tuple([s.stop - s.start for s in index])
        if x.shape != want:
            raise AxisError(
                f"make_array_from_single_device_arrays: the piece on {device!r} has shape "
                f"{x.shape}, and {want} is needed",
                fix="give each device the slice that sharding.devices_indices_map(shape) names",
            )
        pieces.append(as_value(x if x.dtype == kind else convert_element_type(x, kind)).buffer())
    if not key.aval.size:  # the runtime takes all empty pieces for one and the same
        laid = key.aval.physical
        return from_host(np.empty(laid.shape, laid.dtype), sharding, key.aval)
    return wrap(assemble(pieces, key), key)


def make_array_from_process_local_data(
    sharding: Sharding, local_data: object, global_shape: Any = None
) -> Any:
    """Return arrays from the part of each process; a single process provides all.

    Args:
      sharding: the sharding of the arrays; also a device, or a PartitionSpec over the mesh in
        context.
      local_data: a numpy array, or a tree of them.  Along each axis it holds the parts of the whole
        on the devices of this process, in order and without copies; or all of the axis.
      global_shape: the shape of the whole, with None for sizes to infer, or a tree of shapes.  By
        default, the sizes of axes that are divided over processes are multiplied accordingly.

    Every process calls it.  Nothing is sent: each puts its part on its own devices.

    Raises AxisError for data of a shape that does not fit.

    >>> import numpy as np, plait
    >>> where = plait.SingleDeviceSharding(plait.devices()[0])
    >>> plait.make_array_from_process_local_data(where, np.ones(2, np.float32))
    Array([1., 1.], dtype=float32)
    """
    sharding = _placed(sharding)
    if global_shape is None or _is_shape(global_shape):
        return map_tree(lambda x: _of_part(x, sharding, global_shape), local_data)
    leaves, tree = flatten(local_data)
    shapes = spread(global_shape, local_data, "global_shape", _is_shape, "a shape")
    return tree.unflatten([_of_part(x, sharding, s) for x, s in zip(leaves, shapes, strict=True)])


def _is_shape(x: Any) -> bool:
    return isinstance(x, tuple | list) and all(n is None or isinstance(n, int) for n in x)


def _of_part(x: ArrayLike, sharding: Sharding, global_shape: tuple[int, ...] | None) -> Array:
    """Return the array from this process's part `x`."""
    whole = asarray(x)
    element = whole.dtype
    host = (unwrap(whole) if isinstance(element, Opaque) else whole).numpy()
    want = (None,) * whole.ndim if global_shape is None else tuple(global_shape)
    if len(want) != whole.ndim:
        raise AxisError(
            f"make_array_from_process_local_data: data of shape {whole.shape} for an array of "
            f"shape {want}",
            fix="give as many sizes as the data has axes",
        )
    # Every division over these devices divides an axis of this size evenly.
    unit = (sharding.num_devices,) * whole.ndim
    parts = _parts_here(sharding, unit)
    shape = tuple([
        n if n is not None else m * unit[k] // sum(stop - start for start, stop in parts[k])
        for k, (n, m) in enumerate(zip(want, whole.shape))
    ])  # fmt: skip
    sharding.check(Aval(shape, _stored(element)))
    where: list[dict[int, int]] = []
    for k, (n, m, of) in enumerate(zip(shape, whole.shape, _parts_here(sharding, shape))):
        size = sum(stop - start for start, stop in of)
        if m not in (n, size):
            raise AxisError(
                f"make_array_from_process_local_data: axis {k} of the data has {m} elements, and "
                f"this process has {size} of the {n} of the whole",
                fix=f"give all of the array, {n} there"
                + ("" if size == n else f", or {size}, which are the parts {of}"),
            )
        starts = [start for start, _ in of]
        lengths = [0, *itertools.accumulate(stop - start for start, stop in of)]
        where.append(dict(zip(starts, starts if m == n else lengths)))

    def part(index: tuple[slice, ...]) -> Any:
        at = [w[s.start] for w, s in zip(where, index)]
        found = host[tuple([slice(a, a + s.stop - s.start) for a, s in zip(at, index)])]
        return wrap_elements(found, element) if isinstance(element, Opaque) else found

    return make_array_from_callback(shape, sharding, part, dtype=element)


def _parts_here(sharding: Sharding, shape: tuple[int, ...]) -> list[list[tuple[int, int]]]:
    """Return, for each axis, the parts (start, stop) that this process has, in order."""
    boxes = list(sharding.addressable_devices_indices_map(shape).values())
    if not boxes:
        raise ArgumentError(
            f"make_array_from_process_local_data: no device of {sharding!r} is of this process",
            fix="call it in the processes that the sharding has devices of",
        )
    return [sorted({(b[k].start, b[k].stop) for b in boxes}) for k in range(len(shape))]


def _key(index: tuple[slice, ...]) -> tuple:
    return tuple([(s.start, s.stop, s.step) for s in index])


def _placed(where: object) -> Sharding:
    """Return the sharding that a device stands for, or a PartitionSpec over the mesh in context."""
    if isinstance(where, PartitionSpec):
        return where.here()
    if isinstance(where, Device):
        return SingleDeviceSharding(where)
    if not isinstance(where, Sharding):
        raise ArgumentError(
            f"a sharding is needed, not {where!r}",
            fix="write NamedSharding(mesh, P(...)) or SingleDeviceSharding(device)",
        )
    return where
