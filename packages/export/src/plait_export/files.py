"""Files: read where they lie, and written whole.

Invariant: a file that is written is there wholly or not at all, and one that is read is not copied.
"""

import mmap
import os
from collections.abc import Callable
from typing import IO, Any

from .errors import ArtifactError


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
    except OSError as e:
        raise ArtifactError(
            f"{os.fsdecode(path)} can not be read: {e.strerror or e}",
            fix="name a file that Exported.save or Exported.serialize wrote",
        ) from None


def write(path: Any, fill: Callable[[IO[bytes]], None]) -> None:
    """Write a file by `fill(file)`, which may go back in it; where it is appears at the end.

    Raises OSError.
    """
    path = os.fsdecode(path)
    unfinished = f"{path}.{os.getpid()}-{os.urandom(4).hex()}.tmp"
    try:
        with open(unfinished, "xb+") as file:
            fill(file)
        os.replace(unfinished, path)
    except BaseException:
        if os.path.exists(unfinished):
            os.remove(unfinished)
        raise
