"""Files: read where they lie, and written whole.

Invariant: a file that is written is there wholly or not at all, and one that is read is not copied;
devices and pipes are written into, and stay what they are.
"""

import io
import mmap
import os
from collections.abc import Callable
from typing import IO, Any

from plait.ext.errors import ArgumentError, PlaitError

from .errors import ArtifactError, NotWritable


def mapped(path: Any, what: str = "an artifact") -> memoryview:
    """The bytes of a file, which the system reads when they are looked at.

    Raises ArtifactError if it can not be read.
    """
    if not isinstance(path, str | os.PathLike):
        raise ArtifactError(
            f"{what} is in a file, and {type(path).__name__} is the name of none",
            fix="give the path of the file",
        )
    try:
        with open(path, "rb") as file:
            if not os.fstat(file.fileno()).st_size:  # which can not be mapped
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as e:  # ValueError: of names with a byte 0
        raise ArtifactError(
            f"{os.fsdecode(path)} can not be read: {_why(e)}",
            fix="name a file that Exported.save or Exported.serialize wrote",
        ) from None


def _why(e: Exception) -> str:
    return getattr(e, "strerror", None) or str(e)


def contents(path: str, what: str) -> bytes:
    """The bytes of a file that was named to hold something.  Raises ArgumentError if it can not be
    read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as e:
        raise ArgumentError(
            f"{path!r}, which is to hold {what}, can not be read: {_why(e)}",
            fix="give the name of a file that is there, and that you may read",
        ) from None


def write(path: Any, fill: Callable[[IO[bytes]], object]) -> None:
    """Write a file by `fill(file)`, which may go back in it; where it is appears at the end.

    Raises ArgumentError for what is no name of a file, and NotWritable if it can not be written.
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
    """Write into a device or a pipe, in whose place no file may be put."""
    made = io.BytesIO()
    fill(made)
    try:
        with open(path, "wb") as file:
            file.write(made.getbuffer())
    except OSError as e:
        raise _unwritable(path, e) from None


def _unwritable(path: str, e: Exception) -> NotWritable:
    return NotWritable(
        f"{path!r} can not be written: {_why(e)}",
        fix="give the name of a file in a folder that is there, in which you may write",
    )


def _removed(path: str) -> None:
    try:
        os.remove(path)
    except (OSError, ValueError):  # it was not made
        pass
