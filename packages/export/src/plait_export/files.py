"""Files: mapped into memory to read, and replaced whole to write.

Invariant: a written file appears complete or not at all, and `mapped` makes no copy; devices and
pipes are written into, and never replaced.
"""

import io
import mmap
import os
from collections.abc import Callable
from typing import IO

from plait.ext.errors import ArgumentError, PlaitError

from .errors import ArtifactError, NotWritable


def mapped(path: object, what: str = "an artifact") -> memoryview:
    """Map a file into memory and return its bytes, which the system reads on access.

    Raises ArtifactError if it cannot be read.
    """
    if not isinstance(path, str | os.PathLike):
        raise ArtifactError(
            f"{what} is in a file, and {type(path).__name__} is the name of none",
            fix="give the path of the file",
        )
    try:
        with open(path, "rb") as file:
            if not os.fstat(file.fileno()).st_size:  # an empty file cannot be mapped
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as e:  # ValueError: the name holds a zero byte
        raise ArtifactError(
            f"{os.fsdecode(path)} cannot be read: {_why(e)}",
            fix="name a file that Exported.save or Exported.serialize wrote",
        ) from None


def _why(e: Exception) -> str:
    return getattr(e, "strerror", None) or str(e)


def contents(path: str, what: str) -> bytes:
    """Return the bytes of a file that holds `what`; raise ArgumentError if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as e:
        raise ArgumentError(
            f"{path!r}, which is to hold {what}, cannot be read: {_why(e)}",
            fix="give the name of a file that is there, and that you may read",
        ) from None


def write(path: object, fill: Callable[[IO[bytes]], object]) -> None:
    """Write a file by `fill(file)`, which may seek; it replaces `path` only once it is complete.

    Raises ArgumentError if `path` is not a path, and NotWritable if the file cannot be written.
    """
    if not isinstance(path, str | bytes | os.PathLike):
        raise ArgumentError(
            f"a file is to be written, and {type(path).__name__} is the name of none",
            fix="give the path of the file",
        )
    path = os.fsdecode(path)
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        return _into(path, fill)
    unfinished = f"{path}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    try:
        with open(unfinished, "xb+") as file:
            fill(file)
        os.replace(unfinished, path)
    except BaseException as e:
        _removed(unfinished)
        if isinstance(e, OSError | ValueError) and not isinstance(e, PlaitError):
            raise _unwritable(path, e) from None
        raise


def _into(path: str, fill: Callable[[IO[bytes]], object]) -> None:
    """Write into a device or a pipe, which a file must not replace."""
    made = io.BytesIO()
    fill(made)
    try:
        with open(path, "wb") as file:
            file.write(made.getbuffer())
    except OSError as e:
        raise _unwritable(path, e) from None


def _unwritable(path: str, e: Exception) -> NotWritable:
    return NotWritable(
        f"{path!r} cannot be written: {_why(e)}",
        fix="give the name of a file in a folder that is there, in which you may write",
    )


def _removed(path: str) -> None:
    try:
        os.remove(path)
    except (OSError, ValueError):  # it was not made
        pass
