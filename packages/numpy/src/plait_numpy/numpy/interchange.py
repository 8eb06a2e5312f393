"""Exchange with other libraries, bytes and files, and placement of new arrays.

Invariant: foreign memory is shared only on request (`from_dlpack`) and never written to; files are
in numpy's format.
"""

import functools
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any, TypeVar

import numpy as np

from plait import config, ext
from plait.errors import ArgumentError, ConcretizationError, CopyError, OperandTypeError
from plait.ext import Array, Tracer, Value
from plait.ext.devices import first as first_device
from plait.ext.ops import elementwise as el
from plait.ext.rules import resolve
from plait.ext.surface import all_free, offering, placed_by_default
from plait.ext.surface import placed as laid
from plait.ext.types import asked_dtype, ml_dtypes
from plait.ext.values import from_numpy, on_accelerator, shared, unmasked
from plait.typing import Array as AnyArray
from plait.typing import ArrayLike, DTypeLike

R = TypeVar("R")


def placed(x: Any, device: object) -> Any:
    """Place `x` (an array, or a tuple of them) on a device or by a sharding; None does nothing."""
    if device is None:
        return x
    if isinstance(x, tuple):
        return tuple([placed(v, device) for v in x])
    first = (
        x.__class__ is Array
        and x.key.placement is None
        and getattr(device, "id", None) == first_device()
    )
    return x if first else resolve("device_put")(x, device)


_PLACES = {
    "device": "`device` is a device or a sharding; if it is None, that of all arrays.",
    "out_sharding": "`out_sharding` is\na sharding, also where the function is traced.",
}


def placeable(f: Callable[..., R]) -> Callable[..., R]:
    """Add an argument `device` to a function that makes arrays (a decorator)."""

    @functools.wraps(f)
    def made(
        *args: object, device: object = None, out_sharding: object = None, **options: object
    ) -> Any:
        if out_sharding is not None:
            if device is not None:
                raise ArgumentError(
                    f"{f.__name__} was given device and out_sharding", fix="give one of them"
                )
            return laid(f(*all_free(args, out_sharding), **options), out_sharding)
        x = f(*args, **options)
        if device is None:
            return x if args and x is args[0] else placed_by_default(x)
        return placed(x, device)

    return offering(made, f, _PLACES)


def known(x: Any) -> Any:
    """Return the array that a traced value stands for, if its elements are known; else `x`.

    They are known under transformations that run at once, if each example has the same.
    """
    if isinstance(x, Tracer):
        try:
            return x.concrete()
        except ConcretizationError:
            return x
    return x


def computed(host: np.ndarray) -> Any:
    """Return an array that a function has computed from numbers.

    Its elements are a constant of the program and not the user's data, so guards of transfers count
    the copy to the device as explicit.
    """
    # The module of transfers is loaded only where there are guards.
    with ext.transfers.explicit() if config.guarded else nullcontext():
        return from_numpy(host)


# ---- memory --------------------------------------------------------------------------------


def from_dlpack(x: ArrayLike, /, *, device: object = None, copy: bool | None = None) -> AnyArray:
    """Make an array from one with the DLPack protocol, sharing its memory where possible.

    Args:
      x: an array of any library, in memory of the host or of a device of this process.
      device: the target device; by default that of `x`.
      copy: True: the result owns its memory; False: it shares it; None: it is copied if needed.

    Memory is shared if it is contiguous and aligned to 64 bytes; then the caller should not write
    to `x` any more.  Raises CopyError if a copy is needed and forbidden.  As numpy.from_dlpack.

    Raises TypeRule if `x` lacks the protocol.

    >>> import numpy as np, plait
    >>> plait.numpy.from_dlpack(np.arange(3, dtype="float32")).tolist()
    [0.0, 1.0, 2.0]
    """
    if isinstance(x, Value):
        return placed(el.copied(x) if copy else x, device)
    if (there := on_accelerator(x)) is not None:
        return placed(el.copied(there) if copy else there, device)
    host = np.from_dlpack(unmasked(x))
    if copy:
        return placed(from_numpy(host), device)
    out = shared(host)
    if copy is False and (host.size and out.unsafe_buffer_pointer() != host.ctypes.data):
        raise CopyError(
            f"this {type(x).__name__} cannot be used without a copy",
            fix="leave out copy=False; or make it contiguous, aligned to 64 bytes and of a dtype "
            "that arrays have here",
        )
    return placed(out, device)


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> AnyArray:
    """Make a vector from the bytes of an object.  As numpy.frombuffer.

    Raises TypeRule if `buffer` is not bytes-like or does not hold whole elements.

    >>> import plait
    >>> plait.numpy.frombuffer(bytes([1, 2]), "uint8").tolist()
    [1, 2]
    """
    return from_numpy(np.frombuffer(buffer, asked_dtype(dtype), count, offset))


# ---- files and iterators -------------------------------------------------------------------


def fromfile(
    file: Any, dtype: DTypeLike = float, count: int = -1, sep: str = "", offset: int = 0
) -> AnyArray:
    """Read a vector of numbers from a file, binary or (with `sep`) text.  As numpy.fromfile.

    Raises OSError if the file cannot be opened.

    >>> import tempfile, plait
    >>> with tempfile.TemporaryFile() as f:
    ...     _ = f.write(bytes([1, 2])), f.seek(0)
    ...     plait.numpy.fromfile(f, "uint8").tolist()
    [1, 2]
    """
    return from_numpy(np.fromfile(file, asked_dtype(dtype), count, sep, offset))


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> AnyArray:
    """Read a vector of numbers from a text, separated by `sep`.  As numpy.fromstring.

    Raises TypeRule if `string` cannot be read to its end.

    >>> import plait
    >>> plait.numpy.fromstring("1 2 3", sep=" ").tolist()
    [1.0, 2.0, 3.0]
    """
    return from_numpy(np.fromstring(string, asked_dtype(dtype), count, sep=sep))


def fromiter(iter: Iterable, dtype: DTypeLike, count: int = -1) -> AnyArray:
    """Make a vector of the numbers that an iterator yields.  As numpy.fromiter.

    Raises TypeRule if `iter` is not iterable, is too short, or yields anything but numbers.

    >>> import plait
    >>> plait.numpy.fromiter(range(3), int).tolist()
    [0, 1, 2]
    """
    return from_numpy(np.fromiter(iter, asked_dtype(dtype), count))


def load(file: Any, *args: Any, **kwargs: object) -> AnyArray | dict[str, AnyArray]:
    """Load a file of `save` or numpy.save as an array, and one of savez as arrays by name.

    Arguments are those of numpy.load.

    Raises OSError if the file cannot be opened.

    >>> import io, plait
    >>> f = io.BytesIO()
    >>> plait.numpy.savez(f, x=plait.numpy.arange(3))
    >>> _ = f.seek(0)
    >>> plait.numpy.load(f)["x"].tolist()
    [0, 1, 2]
    """
    found = np.load(file, *args, **kwargs)
    if isinstance(found, np.ndarray):
        return from_numpy(_known(found))
    if hasattr(found, "files"):
        return {name: from_numpy(_known(found[name])) for name in found.files}
    raise OperandTypeError(f"{file!r} holds no array", fix="read it with numpy.load")


def _known(x: np.ndarray) -> np.ndarray:
    # The format has no name for bfloat16: such elements are written as two bytes without a meaning.
    return x.view(ml_dtypes.bfloat16) if x.dtype == np.dtype("V2") else x


def save(file: Any, arr: ArrayLike, allow_pickle: bool = True) -> None:
    """Write an array to a file in numpy's format.

    file: a path or a writable object; arr: any shape and dtype; allow_pickle: accepted for
    compatibility; no array here needs it.  As numpy.save.

    >>> import io, plait
    >>> plait.numpy.save(io.BytesIO(), plait.numpy.arange(3))
    """
    np.save(file, np.asarray(arr), allow_pickle=False)


def savez(file: Any, *args: object, allow_pickle: bool = True, **kwds: object) -> None:
    """Write arrays to one file, by name.

    file, allow_pickle: as in `save`; args: are named arr_0, arr_1, ...; kwds: arrays by name.  As
    numpy.savez.

    >>> import io, plait
    >>> plait.numpy.savez(io.BytesIO(), x=plait.numpy.arange(3))
    """
    named: dict[str, Any] = {k: np.asarray(v) for k, v in kwds.items()}
    np.savez(file, *[np.asarray(a) for a in args], **named)
