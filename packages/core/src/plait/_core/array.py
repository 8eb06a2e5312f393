"""Concrete values: Array, what users hold, and Literal, a scalar standing for a whole array.

Invariant: an Array's buffer never escapes, and arrays are immutable.  Array has no `__init__`:
`wrap` is the constructor, and the hottest paths inline it.  A donated or deleted array has lost
its `_buf`, so every use of it falls into a slow path, where the error is raised.
"""

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any, SupportsIndex

import numpy as np

from .._base import jaxlib_api
from .._base.config import config
from .._base.errors import (
    CopyError,
    DeletedArrayError,
    NotAnArrayError,
    OperandTypeError,
    OutOfBounds,
    PlaitError,
    RuntimeFailure,
    RuntimeRefusal,
    ShapeError,
    TypeRule,
)
from .._base.lazy import later
from .._base.tracebacks import border, leaving
from .._plugins.metadata import resolve
from .._types.avals import (
    NOTHING,
    OPAQUE,
    WEAK,
    Aval,
    Placed,
    canonical,
    category,
    dtype_of,
    float0,
    no_number,
    scalar_aval,
)
from .buffers import begin_get, devices, first, get, is_here, local, move, platform, put
from .interpreter import Tracer, Value, missing_attribute
from .processes import await_ready, explained, member_here

__all__ = ["Array", "Literal", "as_value", "asarray", "is_tracer", "wrap"]


class Array(Value):
    """An array on a device, or in pieces on several: immutable, with a shape and a dtype.

    Functions of `plait.numpy` make arrays.  Operators and methods are those of numpy's arrays, but
    none writes: `x.at[i].set(v)` is a new array.  Reading one waits for its computation.  After it
    was donated or deleted every use raises DeletedArrayError.

    >>> import plait
    >>> x = plait.numpy.asarray([[1, 2], [3, 4]])
    >>> x.shape, x.dtype, x[0].tolist(), (x + x.T).sum().item()
    ((2, 2), dtype('int32'), [1, 2], 20)
    """

    __slots__ = ("_buf", "aval", "key", "__weakref__")
    _buf: Any
    key: Aval | Placed  # executables are found by it; in the default place it is the aval
    __hash__ = None  # type: ignore[assignment]

    def buffer(self) -> Any:
        """Return the runtime's buffer, for the layer that runs programs only.

        Raises DeletedArrayError if the array was donated or deleted.
        """
        try:
            return self._buf
        except AttributeError:
            raise DeletedArrayError(
                f"this array, {self.aval!r}, was donated or deleted: its memory is gone",
                fix="keep the result of the function it was donated to, or do not donate it",
            ) from None

    # `numpy`, `__array__` and `block_until_ready` contain the code of the decorator
    # `plait._base.tracebacks.border`: the innermost loops of programs call them, and the decorator
    # would add a Python call.
    def numpy(self) -> np.ndarray:
        """Wait for the elements, and return them as a read-only numpy array of the same shape and
        dtype. It shares their memory if the device is the host.

        Raises TypeRule for keys, which are not numbers, DeletedArrayError, and RuntimeFailure if
        the computation of the array failed.
        """
        try:
            return _elements(self)
        except BaseException as e:
            leaving(e)
            raise

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        try:
            x = _elements(self)
            if dtype is not None and x.dtype != dtype:
                if copy is False:
                    raise CopyError(
                        f"{self.aval!r} cannot become a numpy array of {np.dtype(dtype)} without "
                        "a copy",
                        fix="leave out copy=False",
                    )
                return x.astype(dtype)
            return np.array(x) if copy else x
        except BaseException as e:
            leaving(e)
            raise

    @property
    def __array_struct__(self) -> object:
        """The interface by which numpy reads elements in place; dtypes that numpy lacks have none.

        Without it numpy looks twice for a missing attribute before `__array__`, which takes longer
        than to read the elements."""
        if self.aval.dtype.isbuiltin != 1 or self.aval.category in _NOT_NUMBERS:
            raise AttributeError("__array_struct__")
        try:
            return _viewed(self).__array_struct__
        except BaseException as e:
            leaving(e)
            raise

    def __buffer__(self, flags: int) -> memoryview:
        # Since Python 3.12 numpy reads elements by this, before it looks for `__array_struct__`.
        try:
            return memoryview(_viewed(self))  # type: ignore[arg-type]
        except BaseException as e:
            leaving(e)
            raise

    def concrete(self) -> "Array":
        """Return the array itself: its elements are known, unlike those of a traced value."""
        return self

    def item(self, *index: SupportsIndex) -> Any:
        """Return the only element, or the one at `index`, as a Python scalar.

        `index` is one int, which counts all elements, or one for each axis.

        Raises ShapeError without an index, unless there is one element.

        >>> import plait
        >>> plait.numpy.asarray([[1, 2], [3, 4]]).item(1, 0)
        3
        """
        if not index and self.aval.size != 1:
            raise ShapeError(
                f"item() takes an array of one element, not {self.aval!r}",
                fix="give its index, x.item(i), or use .tolist()",
            )
        return self.numpy().item(*index)

    def tolist(self) -> Any:
        """Return the elements as Python scalars in nested lists; without axes, as a scalar."""
        return self.numpy().tolist()

    def block_until_ready(self) -> "Array":
        """Wait until the elements are computed, and return the array itself.

        Calls return before their results are computed.  Raises RuntimeFailure if the computation
        failed.
        """
        try:
            try:
                if member_here:
                    await_ready(self.buffer())
                self._buf.block_until_ready()
            except AttributeError:
                self.buffer()  # raises DeletedArrayError if the array was deleted
                raise
            except jaxlib_api.RuntimeFailure as e:
                raise failure(e, [self._buf]) from None
            return self
        except BaseException as e:
            leaving(e)
            raise

    def is_deleted(self) -> bool:
        """Return whether the memory was donated or deleted, so that nothing can be read."""
        try:
            return self._buf.is_deleted()
        except AttributeError:
            return True

    def is_ready(self) -> bool:
        """Return whether the elements are computed, so that reading them need not wait."""
        return self.buffer().is_ready()

    def copy_to_host_async(self) -> None:
        """Begin to copy the elements to the host, so that reading them later waits for less.

        On a CPU, where they are on the host already, it does nothing.
        """
        begin_get(self.buffer())

    def delete(self) -> None:
        """Free the memory now: every later use but another `delete` raises DeletedArrayError."""
        if not self.is_deleted():
            self._buf._npy_value = False
            self._buf.delete()
            del self._buf

    def unsafe_buffer_pointer(self) -> int:
        """Return the address of the memory, to see whether two arrays share theirs.

        It is good only while the array lives.  Raises a RuntimeError for an array in pieces.
        """
        return self.buffer().unsafe_buffer_pointer()

    @property
    def sharding(self) -> Any:
        """The sharding: which device holds which piece.  Needs plait-sharding."""
        return resolve("sharding").sharding_of(self)

    @property
    def addressable_shards(self) -> list[Any]:
        """The pieces of this process, as a list of Shards.  Each has its device, its `index` in the
        whole array, and its `data`, an array on that device."""
        return resolve("sharding").shards_of(self)

    def devices(self) -> set[Any]:
        """Return the set of devices that have a piece of the array."""
        return self.sharding.device_set

    @property
    def is_fully_addressable(self) -> bool:
        """True if all pieces belong to this process."""
        return not member_here or is_here(self.buffer())

    @property
    def is_fully_replicated(self) -> bool:
        """True if every device that has a piece has the whole array."""
        return self.key.placement is None or self.sharding.is_fully_replicated

    @property
    def global_shards(self) -> list[Any]:
        """The pieces of all processes; those of others have no data.  See `addressable_shards`."""
        return resolve("sharding").shards_of(self, everywhere=True)

    def addressable_data(self, index: int) -> "Array":
        """Return the data of the piece with this number: an array on one device."""
        return self if self.key.placement is None and index == 0 else self.device_buffers[index]

    def on_device_size_in_bytes(self) -> int:
        """Return how many bytes of memory the array takes, on all devices together."""
        return self.buffer().on_device_size_in_bytes()

    def tobytes(self, order: str = "C") -> bytes:
        """Return the bytes of the elements, one after the other, as numpy.ndarray.tobytes.

        `order`: "C" for the last axis fastest, "F" for the first one.
        """
        return self.numpy().tobytes(order)  # type: ignore[arg-type]

    @property
    def committed(self) -> bool:
        """True if the user chose where the array lies; other arrays are moved to the other
        operands."""
        return self.key.placement is not None

    @property
    def device_buffers(self) -> list[Any]:
        """The pieces, as a list of arrays on one device each."""
        return [shard.data for shard in self.addressable_shards]

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: object = None,
        dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:
        """Return a DLPack capsule of the memory, which the consumer may read but not write to.

        Other libraries call this in their `from_dlpack(x)`.  With `copy` the capsule has memory of
        its own. Raises CopyError for an array in several pieces, and if the array is not on
        `dl_device`.
        """
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise CopyError(
                f"an array on the device {self.__dlpack_device__()} was asked for on "
                f"{tuple(dl_device)}",
                fix="bring it there with plait.device_put first",
            )
        source = asarray(np.array(self.numpy())) if copy else self
        buf = source.buffer()
        if source.key.placement is not None and len(source.devices()) > 1:
            raise CopyError(
                f"{self.aval!r} lies on {len(source.devices())} devices, not in one memory",
                fix="bring it to one device with plait.device_put first",
            )
        options = {} if stream is None else {"stream": stream}
        return jaxlib_api.dlpack_capsule(buf, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's number of the kind of device (1 for CPU, 2 for CUDA), and the device's
        number.

        Raises CopyError for devices that DLPack has no number for.
        """
        where = platform()
        if where == "cpu":
            return 1, 0
        for kind, name in _ACCELERATORS.items():
            if name == where:
                placement = self.key.placement
                return kind, local().index(placement.place.devices[0] if placement else first())
        raise CopyError(
            f"DLPack has no name for the memory of {where}", fix="bring it to the host first"
        )

    @border
    def __bool__(self) -> bool:
        return bool(self.numpy())

    @border
    def __float__(self) -> float:
        return float(self._scalar())

    @border
    def __int__(self) -> int:
        return int(self._scalar())

    @border
    def __complex__(self) -> complex:
        return complex(self._scalar())

    @border
    def __index__(self) -> int:
        return self.numpy().__index__()

    def _scalar(self) -> np.ndarray:
        if self.aval.ndim:
            raise ShapeError(
                f"only an array without axes converts to a Python scalar, not {self.aval!r}",
                fix="take one element first, or use .tolist()",
            )
        return self.numpy()

    def __format__(self, spec: str) -> str:
        if not self.aval.ndim:
            return format(self.item() if spec else str(self), spec)
        try:
            return format(str(self), spec)  # a width, or an alignment
        except ValueError:
            raise OperandTypeError(
                f"the format {spec!r} is one of a number, and this is {self.aval!r}",
                fix=f"write numpy.array2string(x), or [format(y, {spec!r}) for y in x.ravel()]",
            ) from None

    def __str__(self) -> str:
        elsewhere = not self.is_deleted() and not self.is_fully_addressable
        whole = not elsewhere or self.is_fully_replicated
        return str(self.numpy()) if whole and self.aval.category != OPAQUE else repr(self)

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"Array(<deleted>, {self.aval!r})"
        if self.aval.category == OPAQUE:
            over = "\n" if self.aval.ndim else " "
            return f"Array({self.aval.shape}, dtype={self.aval.dtype.name}) over{over}{laid(self)}"
        if not self.is_fully_addressable and not self.is_fully_replicated:
            return f"Array({self.aval!r} over {self.sharding!r})"
        text = np.array2string(self.numpy(), separator=", ", prefix="Array(")
        shape = "" if self.aval.size or self.aval.shape == (0,) else f"shape={self.aval.shape}, "
        weak = ", weak_type=True" if self.aval.weak_type else ""
        dtype = self.aval.dtype.name if self.aval.category != NOTHING else "float0"
        return f"Array({text}, {shape}dtype={dtype}{weak})"

    def __reduce__(self) -> tuple[object, ...]:
        if self.aval.category == OPAQUE:
            return standing_for, (np.array(laid(self).numpy()), self.aval)
        return _weakly if self.aval.weak_type else asarray, (np.array(self.numpy()),)

    def __getattr__(self, name: str) -> Any:
        return missing_attribute(self, name)

    def __copy__(self) -> "Array":
        return self

    def __deepcopy__(self, memo: dict[Any, Any]) -> "Array":
        return wrap(move(self.buffer(), self.key), self.key)


class Literal(Value):
    """A Python scalar that stands for an array of type `aval` filled with that scalar.

    Programs have literals as operands: no equation makes the 1 of `x + 1`, or zeros of derivatives.
    Attributes:
      value: the scalar.
      aval: the type of the array.
    """

    __slots__ = ("value", "aval", "__weakref__")
    value: bool | int | float | complex
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any, aval: Aval):
        self.value, self.aval = value, aval

    def __repr__(self) -> str:
        return f"{self.value!r}:{self.aval!r}"

    def numpy(self) -> np.ndarray:
        """Return the array that it stands for, read-only; TypeRule for keys."""
        if self.aval.category == NOTHING:
            return np.zeros(self.aval.shape, float0)
        if self.aval.category == OPAQUE:
            raise no_number("numpy.asarray", self.aval)
        return np.broadcast_to(np.asarray(self.value).astype(self.aval.dtype), self.aval.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def concrete(self) -> "Literal":
        """Return the literal itself, whose elements are known."""
        return self

    def __bool__(self) -> bool:
        return bool(self.numpy())

    def __float__(self) -> float:
        return float(self.value.real)

    def __complex__(self) -> complex:
        return complex(self.value)

    def __int__(self) -> int:
        return int(self.value.real)

    def __index__(self) -> int:
        return self.numpy().__index__()

    def __format__(self, spec: str) -> str:
        return format(self.numpy().item() if spec else str(self), spec)

    def item(self, *index: SupportsIndex) -> Any:
        """Return the only element, or that at `index`, as a Python scalar."""
        return self.numpy().item(*index)

    def tolist(self) -> Any:
        """Return the elements as Python scalars in nested lists."""
        return self.numpy().tolist()

    def tobytes(self, order: str = "C") -> bytes:
        """Return the bytes of the elements, one after the other, as numpy.ndarray.tobytes."""
        return self.numpy().tobytes(order)  # type: ignore[arg-type]


def is_literal_zero(x: Any) -> bool:
    """Return whether a value is a literal zero; arrays are not read."""
    return x.__class__ is Literal and x.value == 0


def wrap(buf: object, key: Aval | Placed) -> Array:
    """Return the Array that owns a buffer with this dispatch key."""
    r = Array()
    r._buf = buf
    r.aval = key.aval
    r.key = key
    return r


_NOT_NUMBERS = OPAQUE, NOTHING


def _elements(x: Array) -> np.ndarray:
    """Wait for the elements, and return them as users see them."""
    kind = x.aval.category
    if kind == OPAQUE:
        raise no_number("numpy.asarray", x.aval)
    if config.guarded:
        later("_core.transfers").crossing("device_to_host", x.aval)
    try:
        host = get(x._buf)
    except AttributeError:
        x.buffer()  # raises DeletedArrayError if the array was deleted
        raise
    except (jaxlib_api.RuntimeFailure, BufferError) as e:
        raise failure(e, [x._buf]) from None
    # float0, which the runtime lacks, is stored as booleans
    return host if kind != NOTHING else np.zeros(x.aval.shape, float0)


def _viewed(x: Array) -> np.ndarray:
    """Do as `_elements`; from the second time on, return a view that the buffer keeps.

    `True` in place of the view marks the first time.  While there is a view, no program can write
    to the memory, so a call that donates a buffer sets `_npy_value` to False before.
    """
    if config.guarded or member_here or x.aval.category in _NOT_NUMBERS:
        return _elements(x)
    try:
        buf = x._buf
        kept = buf._npy_value
        if kept.__class__ is np.ndarray:
            return kept if not buf.is_deleted() else _elements(x)
        if kept is not True:
            view = np.asarray(memoryview(buf))  # as in `get`, without the call
            if jaxlib_api.HAS_NEW_VIEWS:
                buf._npy_value = True
            return view
        view, copied = buf._single_device_array_to_np_array_did_copy()
        if not copied:
            view.flags.writeable = False
            buf._npy_value = view
        return view
    except Exception:  # it is elsewhere, in pieces, deleted or failed
        return _elements(x)


def laid(x: Array) -> Array:
    """Return an array of opaque elements as an array of numbers in the same memory."""
    physical, placement = x.aval.physical, x.key.placement
    return wrap(x.buffer(), physical if placement is None else Placed(physical, placement))


def standing_for(x: np.ndarray | Value, aval: Aval) -> Array:
    """Return an array of numbers as one of opaque elements; an Array keeps its memory."""
    v = as_value(x)
    placement = v.key.placement
    return wrap(v.buffer(), aval if placement is None else Placed(aval, placement))


def _weakly(x: np.ndarray) -> Array:
    """Return the unpickled array with a weak dtype, as Python's numbers have."""
    strong = from_numpy(x)
    return wrap(strong.buffer(), Aval(strong.aval.shape, strong.aval.dtype, True))


def is_tracer(x: object) -> bool:
    """Return whether `x` is a traced value."""
    return isinstance(x, Tracer)


DONATED_TWICE = "the memory of one array is donated, and another argument uses it too"


def donated_twice() -> PlaitError:
    """Return the error for a call that donates memory which another argument uses."""
    return RuntimeRefusal(DONATED_TWICE, fix="give the array once, or a copy of it: x.copy()")


def failure(e: Exception, bufs: Iterable[Any] = ()) -> PlaitError | KeyboardInterrupt:
    """Return Plait's error for a failure of the runtime on these buffers.

    Often one of them was deleted, which the runtime's own text does not mention.  The error of a
    Python callback keeps its text, and an interrupt as Python enters one is an interrupt.  Where
    several processes compute together, one that has ended may be the cause: of a program that took
    its operands by donation, too.
    """
    found = explained(e)
    if found is not None:
        return found
    if any(b.is_deleted() for b in bufs):
        return DeletedArrayError(f"an array whose memory was donated or deleted was used: {e}")
    if "same buffer twice" in str(e) or "previously donated in the same call" in str(e):
        return donated_twice()
    if str(e).rstrip().rpartition("\n")[2].startswith(KeyboardInterrupt.__name__):
        return KeyboardInterrupt()
    fix = _OF_MEMORY if "RESOURCE_EXHAUSTED" in str(e) else None
    return RuntimeFailure(f"the computation failed: {e}", fix=fix)


_OF_MEMORY = (
    "take smaller arrays or batches, compute in pieces (vmap's chunk=, lax.map's batch_size=), "
    "keep fewer residuals (plait.checkpoint), or donate arguments (jit's donate_argnums)"
)


def run_on(run: Callable[..., Any], bufs: list[Any], handlers: list[Any]) -> list[Any]:
    """Run an executable; return the buffers of its results.

    The shortest calls repeat these lines, since one more Python call would slow them measurably.
    These are `eager.apply` of one operand, a jitted function of plain arrays, and the code that
    `call_forms` writes.
    """
    try:
        return run(bufs).consume_with_handlers(handlers)
    except jaxlib_api.RuntimeFailure as e:
        raise failure(e, bufs) from None


# ---- values from what users have -----------------------------------------------------------


def shared(x: np.ndarray) -> Array:
    """Return `x` on the default device.

    It shares the memory of `x` if that is contiguous and aligned for the device, and the dtype
    needs no conversion; otherwise it is a copy.
    """
    unmasked(x)
    if canonical(x.dtype) is not x.dtype:
        return from_numpy(x)
    category(x.dtype)
    aval = Aval(x.shape, x.dtype)
    if config.guarded:
        later("_core.transfers").crossing("host_to_device", aval)
    return wrap(put(x, aval, share=True), aval)


_ACCELERATORS = {2: "cuda", 10: "rocm"}
"""Platforms by the numbers that DLPack gives kinds of devices."""


def on_accelerator(x: object) -> Array | None:
    """Return the array in the memory of `x`, an object with the DLPack protocol; None if that
    memory is not an accelerator's.

    Memory of an accelerator other than the first is copied.  Raises CopyError if this process does
    not drive the accelerator.
    """
    ask = getattr(x, "__dlpack_device__", None)
    kind, number = (1, 0) if ask is None else ask()
    if kind not in _ACCELERATORS:
        return None
    device = devices()[local()[number]] if number < len(local()) else None
    if _ACCELERATORS[kind] != platform() or device is None:
        raise CopyError(
            f"this {type(x).__name__} lies in memory of {_ACCELERATORS[kind]}:{number}, and this "
            f"process computes on {len(local())} of {platform()}",
            fix="bring it to the host first",
        )
    buf = jaxlib_api.dlpack_import(x, device)
    aval = Aval(buf.shape, np.dtype(buf.dtype))
    return wrap(buf, aval) if number == 0 else from_numpy(get(buf))


def unmasked(x: object) -> Any:
    """Return `x`; refuse numpy's masked arrays, since arrays here cannot keep a mask."""
    if x.__class__ is not np.ndarray and isinstance(x, np.ndarray):
        masked = sys.modules.get("numpy.ma")
        if masked is not None and isinstance(x, masked.MaskedArray):
            raise OperandTypeError(
                "a masked array would lose its mask: arrays have none here",
                fix="give x.filled(value), or x.data and numpy.ma.getmaskarray(x) by itself, for "
                "instance as `where=~mask`",
            )
    return x


def from_numpy(x: np.ndarray) -> Array:
    """Return a copy of `x` on the default device."""
    if x.__class__ is not np.ndarray:
        unmasked(x)
    dtype = canonical(x.dtype)
    aval = Aval(x.shape, dtype)
    if config.guarded:
        later("_core.transfers").crossing("host_to_device", aval)
    if dtype == float0:  # the shape is all its content
        return solid(Literal(False, aval))
    return wrap(put(x if dtype is x.dtype else x.astype(dtype), aval), aval)


def as_value(x: Any) -> Any:
    """Return the value that primitives take for a value, a numpy array or a Python scalar.

    Objects with `__plait_array__`, `__jax_array__` or `__array__` are converted by that method.
    Lists are refused, since converting one silently would be slow.  Raises TypeRule.
    """
    if isinstance(x, Value):
        return x
    weak = WEAK.get(x.__class__)
    if weak is not None:
        if x.__class__ is int and not -(2**31) <= x < 2**31:
            fits(x, weak.dtype)
        return Literal(x, weak)
    if isinstance(x, np.ndarray):
        if category(x.dtype) == NOTHING:  # float0: the shape is all its content
            return Literal(False, Aval(x.shape, float0))
        return from_numpy(x)
    if isinstance(x, np.generic):
        if x.dtype.kind in "biufc":
            return Literal(x.item(), scalar_aval(x))
        return as_value(np.asarray(x))
    for name in ("__plait_array__", "__jax_array__"):
        convert = getattr(x, name, None)
        if convert is not None:
            return as_value(convert())
    for kind in _NUMBERS:
        if isinstance(x, kind):  # an instance of a subclass, such as a member of an IntEnum
            return as_value(kind(x))
    if hasattr(x, "__array__") and not isinstance(x, type):
        return as_value(np.asarray(x))
    raise not_an_array(x)


_NUMBERS: tuple[Any, ...] = (bool, int, float, complex)


@functools.cache
def integer_bounds(dtype: np.dtype) -> tuple[int, int]:
    """Return the least and the greatest integer of a dtype."""
    low, high = jaxlib_api.limits(dtype)
    return int(low), int(high)


def fits(x: int, dtype: np.dtype) -> int:
    """Return `x`; raise OutOfBounds, as numpy does, if the integer dtype cannot hold it."""
    low, high = integer_bounds(dtype)
    if not low <= x <= high:
        raise OutOfBounds(
            f"the integer {x} does not fit in {dtype.name}",
            fix="give it a wider dtype, for instance plait.numpy.int64(x), or set default_int",
        )
    return x


def not_an_array(x: object, what: str = "Argument") -> TypeRule:
    """Return the error for an object that is not an array; `what` begins the sentence."""
    text = repr(x)
    text = text if len(text) < 60 else text[:57] + "..."
    said = f"{what} {text} of type {type(x).__name__} is not an array"
    if what != "Argument":
        return NotAnArrayError(said, fix="return arrays, numpy arrays or Python scalars")
    if isinstance(x, list | tuple):
        fix = "plait.numpy.asarray makes an array of a list"
    else:
        fix = f"pass arrays, numpy arrays or Python scalars{_besides(x)}"
    return NotAnArrayError(said, fix=fix).given(x)


def _besides(x: object) -> str:
    """Return what else to write for an object that is not an array."""
    if isinstance(x, str | bytes):
        return "; let the function close over text"
    if hasattr(x, "__dataclass_fields__") and not isinstance(x, type):
        return f"; plait.tree.register_dataclass({type(x).__name__}) makes a tree of its fields"
    return ""


def asarray(x: Any, dtype: np.dtype | None = None) -> Any:
    """Return an Array of scalars, numpy arrays or nested lists of them; values stay as they are."""
    if isinstance(x, Value) and dtype is None and not isinstance(x, Literal):
        return x
    if isinstance(x, Value):
        host = x.numpy() if isinstance(x, Array | Literal) else None
        if host is None:
            raise not_an_array(x)
        return from_numpy(host if dtype is None else host.astype(dtype_of(dtype)))
    unmasked(x)
    if dtype is not None:
        return from_numpy(np.asarray(x, dtype_of(dtype)))
    if x.__class__ in WEAK:
        aval = WEAK[x.__class__]
        fits(x, aval.dtype) if aval.dtype.kind == "i" else None
        return wrap(put(np.asarray(x, aval.dtype), aval.strong()), aval.strong())
    plain = hasattr(x, "__array__") or hasattr(x, "__plait_array__")
    host = np.asarray(x.__plait_array__() if hasattr(x, "__plait_array__") else x)
    if not plain and host.dtype.kind in "if":  # Python numbers in lists take the default dtypes
        wide = host
        host = host.astype(WEAK[int if host.dtype.kind == "i" else float].dtype)
        if host.dtype.kind == "i" and (host != wide).any():
            fits(int(wide[host != wide][0]), host.dtype)
    category(host.dtype)
    return from_numpy(host)


def solid(x: Any) -> Any:
    """Return an Array for a Literal, and other values unchanged."""
    if x.__class__ is Literal:
        p = x.aval.physical
        host = x if p is x.aval else Literal(x.value, p)
        return wrap(put(np.asarray(host.numpy(), order="C"), x.aval), x.aval)
    return x
