# Written by docs/stubs.py from the members of values: do not edit.

import numpy as np
from collections.abc import Iterator
from collections.abc import Sequence
from plait._ops.subscript import At
from plait._types.avals import Aval
from plait._types.dims import Dim
from plait.typing import ArrayLike
from plait.typing import Axis
from plait.typing import DTypeLike
from plait.typing import Shape
from typing import Any
from typing import SupportsIndex

class Array:
    """The class whose instances are arrays and traced values, as type checkers see it."""

    aval: Aval
    @property
    def T(self) -> Array:
        """Return the array with its axes in reversed order."""
    def __abs__(self) -> Array: ...
    def __add__(self, other: ArrayLike) -> Array: ...
    def __and__(self, other: ArrayLike) -> Array: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray: ...
    def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
    def __bool__(self) -> bool: ...
    def __complex__(self) -> complex: ...
    def __contains__(self, item: ArrayLike) -> bool: ...
    def __delitem__(self, index: Any) -> None: ...
    def __divmod__(self, other: ArrayLike) -> tuple[Array, Array]: ...
    def __dlpack__(self, *, stream: Any = None, max_version: object = None, dl_device: Any = None, copy: bool | None = None) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __eq__(self, other: ArrayLike) -> Array: ...  # type: ignore[override]
    def __float__(self) -> float: ...
    def __floordiv__(self, other: ArrayLike) -> Array: ...
    def __ge__(self, other: ArrayLike) -> Array: ...
    def __getitem__(self, index: object) -> Array: ...
    def __gt__(self, other: ArrayLike) -> Array: ...
    def __index__(self) -> int: ...
    def __int__(self) -> int: ...
    def __invert__(self) -> Array: ...
    def __iter__(self) -> Iterator[Array]: ...
    def __le__(self, other: ArrayLike) -> Array: ...
    def __len__(self) -> int: ...
    def __lshift__(self, other: ArrayLike) -> Array: ...
    def __lt__(self, other: ArrayLike) -> Array: ...
    def __matmul__(self, other: ArrayLike) -> Array: ...
    def __mod__(self, other: ArrayLike) -> Array: ...
    def __mul__(self, other: ArrayLike) -> Array: ...
    def __ne__(self, other: ArrayLike) -> Array: ...  # type: ignore[override]
    def __neg__(self) -> Array: ...
    def __or__(self, other: ArrayLike) -> Array: ...
    def __pos__(self) -> Array: ...
    def __pow__(self, other: ArrayLike) -> Array: ...
    def __radd__(self, other: ArrayLike) -> Array: ...
    def __rand__(self, other: ArrayLike) -> Array: ...
    def __rdivmod__(self, other: ArrayLike) -> tuple[Array, Array]: ...
    def __rfloordiv__(self, other: ArrayLike) -> Array: ...
    def __rlshift__(self, other: ArrayLike) -> Array: ...
    def __rmatmul__(self, other: ArrayLike) -> Array: ...
    def __rmod__(self, other: ArrayLike) -> Array: ...
    def __rmul__(self, other: ArrayLike) -> Array: ...
    def __ror__(self, other: ArrayLike) -> Array: ...
    def __round__(self, ndigits: int | None = None) -> Array: ...
    def __rpow__(self, other: ArrayLike) -> Array: ...
    def __rrshift__(self, other: ArrayLike) -> Array: ...
    def __rshift__(self, other: ArrayLike) -> Array: ...
    def __rsub__(self, other: ArrayLike) -> Array: ...
    def __rtruediv__(self, other: ArrayLike) -> Array: ...
    def __rxor__(self, other: ArrayLike) -> Array: ...
    def __setitem__(self, index: object, value: object) -> None: ...
    def __sub__(self, other: ArrayLike) -> Array: ...
    def __truediv__(self, other: ArrayLike) -> Array: ...
    def __xor__(self, other: ArrayLike) -> Array: ...
    def addressable_data(self, index: int) -> Array:
        """Return the data of the piece with this number: an array on one device."""
    @property
    def addressable_shards(self) -> list[Any]:
        """The pieces of this process, as a list of Shards.  Each has its device, its `index` in
        the whole array, and its `data`, an array on that device."""
    def all(self, axis: Axis | None = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
        """Return whether no element over axes is zero; arguments are those of `sum`.  As
        numpy.all."""
    def any(self, axis: Axis | None = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
        """Return whether any element over axes is not zero; arguments are those of `sum`.  As
        numpy.any."""
    def argmax(self, axis: int | None = None, out: None = None, keepdims: bool = False) -> Array:
        """Return the position of the greatest element: the first if there are several; nan is
        greatest."""
    def argmin(self, axis: int | None = None, out: None = None, keepdims: bool = False) -> Array:
        """Return the position of the least element; arguments are those of `argmax`.  As
        numpy.argmin."""
    def argpartition(self, kth: int, axis: int = ...) -> Array:
        """Return the indices that make a `partition`, whose arguments it takes.  As
        numpy.argpartition."""
    def argsort(self, axis: int | None = ..., *, kind: object = None, order: None = None, stable: bool = True, descending: bool = False, dtype: DTypeLike | None = None) -> Array:
        """Return the indices that sort along an axis; arguments are those of `sort`."""
    def astype(self, dtype: DTypeLike | None, copy: bool = False) -> Array:
        """Convert the elements to another dtype, and return them as an array of the same
        shape."""
    @property
    def at(self) -> At:
        """Return an object that updates elements of a copy: `x.at[index].set(v)`, and `add`,
        `multiply`, `min`, `max`, `get`, ... instead of `set`."""
    def block_until_ready(self) -> Array:
        """Wait until the elements are computed, and return the array itself."""
    def byteswap(self, inplace: bool = False) -> Array:
        """Return every number with its bytes in the opposite order, complex ones part by
        part."""
    def choose(self, choices: Sequence[ArrayLike], out: None = None, mode: str = 'raise') -> Array:
        """Return element i of choice number `a[i]`."""
    def clip(self, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
        """Clip x to [min, max]; the result is max where min > max."""
    @property
    def committed(self) -> bool:
        """True if the user chose where the array lies; other arrays are moved to the other
        operands."""
    def compress(self, condition: ArrayLike, axis: SupportsIndex | None = None, **options: object) -> Array:
        """Return the slices along an axis where a condition holds; of elements, without an
        axis."""
    def concrete(self) -> Array:
        """Return the array itself: its elements are known, unlike those of a traced value."""
    def conj(self, /) -> Array:
        """Return the complex conjugate; real arrays are returned as they are."""
    def conjugate(self, /) -> Array:
        """Return the complex conjugate; real arrays are returned as they are."""
    def copy(self) -> Any:
        """Copy an array to memory of its own."""
    def copy_to_host_async(self) -> None:
        """Begin to copy the elements to the host, so that reading them later waits for less."""
    def cumprod(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Return running products; arguments are those of `cumsum`.  As numpy.cumprod."""
    def cumsum(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Return running sums along an axis; None flattens the array first."""
    def delete(self) -> None:
        """Free the memory now: every later use but another `delete` raises
        DeletedArrayError."""
    @property
    def device(self) -> Any:
        """Return the device of the array, or its sharding on several; None for a traced
        value."""
    @property
    def device_buffers(self) -> list[Any]:
        """The pieces, as a list of arrays on one device each."""
    def devices(self) -> set[Any]:
        """Return the set of devices that have a piece of the array."""
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """Return the diagonals of matrices."""
    def dot(self, b: ArrayLike, *, precision: object = None, preferred_element_type: DTypeLike | None = None) -> Array:
        """Contract the last axis of `a` with the last but one of `b` (or its only one)."""
    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements: a numpy dtype."""
    @property
    def flat(self) -> Array:
        """Return all elements as a vector, the last axis fastest."""
    def flatten(self, order: str = 'C', *, out_sharding: object = None) -> Array:
        """Return all elements as a vector, the last axis fastest ("F": the first one)."""
    @property
    def global_shards(self) -> list[Any]:
        """The pieces of all processes; those of others have no data.  See
        `addressable_shards`."""
    @property
    def imag(self) -> Array:
        """Return the imaginary part of each element; zeros for a real array."""
    def is_deleted(self) -> bool:
        """Return whether the memory was donated or deleted, so that nothing can be read."""
    @property
    def is_fully_addressable(self) -> bool:
        """True if all pieces belong to this process."""
    @property
    def is_fully_replicated(self) -> bool:
        """True if every device that has a piece has the whole array."""
    def is_ready(self) -> bool:
        """Return whether the elements are computed, so that reading them need not wait."""
    def item(self, *index: SupportsIndex) -> Any:
        """Return the only element, or the one at `index`, as a Python scalar."""
    @property
    def itemsize(self) -> int:
        """Return the number of bytes of one element."""
    @property
    def mT(self) -> Array:
        """Transpose the matrices in the last two axes; AxisError if there are fewer axes."""
    def max(self, axis: Axis | None = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
        """Return the greatest of the elements over axes; nan if there is one."""
    def mean(self, axis: Axis | None = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
        """Return the arithmetic mean over axes; nan of no elements."""
    def min(self, axis: Axis | None = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
        """Return the least of the elements over axes; arguments are those of `max`.  As
        numpy.min."""
    @property
    def nbytes(self) -> int:
        """Return the number of bytes of all elements: `size * itemsize`."""
    @property
    def ndim(self) -> int:
        """The number of axes."""
    def nonzero(self, *, size: int | None = None, fill_value: ArrayLike | None = None) -> tuple[Array, ...]:
        """Return the positions of nonzero elements: an array of indices for each axis."""
    def numpy(self) -> np.ndarray:
        """Wait for the elements, and return them as a read-only numpy array of the same shape
        and dtype. It shares their memory if the device is the host."""
    def on_device_size_in_bytes(self) -> int:
        """Return how many bytes of memory the array takes, on all devices together."""
    def prod(self, axis: Axis | None = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
        """Multiply the elements over axes; arguments are those of `sum`.  As numpy.prod."""
    def ptp(self, axis: Axis | None = None, out: None = None, keepdims: bool = False) -> Array:
        """Return the greatest less the least element over axes.  As numpy.ptp."""
    def ravel(self, order: str = 'C', *, out_sharding: object = None) -> Array:
        """Return all elements as a vector, the last axis fastest ("F": the first one)."""
    @property
    def real(self) -> Array:
        """Return the real part of each element; a real array is returned itself."""
    def repeat(self, repeats: ArrayLike, axis: int | None = None, *, total_repeat_length: int | None = None) -> Array:
        """Repeat each element."""
    def reshape(self, *sizes: SupportsIndex | Dim | Shape, order: str = 'C', out_sharding: object = None) -> Array:
        """Arrange the same elements in another shape, and return that array."""
    def round(self, decimals: int = 0, out: None = None) -> Array:
        """Round `a` to `decimals` digits after the point, ties to even."""
    def searchsorted(self, v: ArrayLike, side: str = 'left', sorter: object = None, *, method: str = 'default') -> Array:
        """Return the positions at which to insert elements into a sorted vector to keep it
        sorted."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes: a tuple of ints, or of symbolic sizes in exported programs."""
    @property
    def sharding(self) -> Any:
        """The sharding: which device holds which piece.  Needs plait-sharding."""
    @property
    def size(self) -> int:
        """The number of elements: the product of the sizes of the axes."""
    def sort(self, axis: int | None = ..., *, kind: object = None, order: None = None, stable: bool = True, descending: bool = False) -> Array:
        """Sort along an axis, nans last."""
    def squeeze(self, axis: Axis | None = None) -> Array:
        """Remove axes of size 1: all of them, or those named."""
    def std(self, axis: Axis | None = None, dtype: DTypeLike | None = None, out: None = None, ddof: ArrayLike = 0, keepdims: bool = False, *, where: ArrayLike | None = None, mean: object = None, correction: ArrayLike | None = None) -> Array:
        """Return the standard deviation over axes: the root of `var`, whose arguments it
        takes."""
    def sum(self, axis: Axis | None = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
        """Sum the elements over axes."""
    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """Swap two axes.  As numpy.swapaxes."""
    def take(self, indices: ArrayLike, axis: int | None = None, out: None = None, mode: str | None = None, unique_indices: bool = False, indices_are_sorted: bool = False, fill_value: ArrayLike | None = None) -> Array:
        """Return elements along an axis, by index."""
    def to_device(self, device: object, /, *, stream: object = None) -> Array:
        """Move the array to another device, or lay it out by a sharding, and return it."""
    def tobytes(self, order: str = 'C') -> bytes:
        """Return the bytes of the elements, one after the other, as numpy.ndarray.tobytes."""
    def tolist(self) -> Any:
        """Return the elements as Python scalars in nested lists; without axes, as a scalar."""
    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Return the sum of a diagonal; see `diagonal`; out: must be None.  As numpy.trace."""
    def transpose(self, *axes: Axis | None) -> Array:
        """Put the axes in another order, by default the reversed one, and return that array."""
    def unsafe_buffer_pointer(self) -> int:
        """Return the address of the memory, to see whether two arrays share theirs."""
    def var(self, axis: Axis | None = None, dtype: DTypeLike | None = None, out: None = None, ddof: ArrayLike = 0, keepdims: bool = False, *, where: ArrayLike | None = None, mean: object = None, correction: ArrayLike | None = None) -> Array:
        """Return the variance over axes: the mean of |a - mean| ** 2."""
    def view(self, dtype: DTypeLike | None = None, *sizes: Any) -> Array:
        """Read the same bits as elements of another dtype, and return that array."""
    @property
    def weak_type(self) -> bool:
        """True if the dtype adapts to that of other operands, as a Python number's does."""
