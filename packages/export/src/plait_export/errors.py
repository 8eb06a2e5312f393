"""Errors of exporting and of reading artifacts.

Invariant: whatever function is exported, and whatever bytes are read in a process of their own
(`isolation`), the outcome is a result or one of these (or another PlaitError, for wrong arguments).
Bytes that are read in this process are held against checksums, sizes and signatures, and what is
made to break jaxlib's reader of StableHLO may still do so.
"""

from typing import Any

from plait.ext.errors import PlaitError

AGAIN = "save it again with Exported.serialize(), and copy the file as bytes, unchanged"

AS_IT_IS = (
    "call the artifact as it is; derivatives are saved with it by Exported.serialize(vjp_order=1), "
    "where it is exported"
)


class ArtifactError(PlaitError, ValueError):
    """Bytes that are no artifact, are damaged, or are not for this reader."""

    def __init__(self, what: str, *, where: Any = None, fix: str | None = AGAIN):
        super().__init__(what, where=where, fix=fix)


class expecting:
    """A block in which what strangers wrote is read: what is raised there, by the runtime, by
    Python where it is too deep, or by our own readers, is told in our words.

    Args:
      what: what is said to have happened.
    """

    def __init__(self, what: str):
        self.what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, e: BaseException | None, trace: Any) -> None:
        if isinstance(e, Exception) and not isinstance(e, PlaitError):
            said = str(e).strip().splitlines()
            said = f"{type(e).__name__}: {said[0]}" if said else type(e).__name__
            raise ArtifactError(f"{self.what}: {said}") from e


class NotWritable(PlaitError, OSError):
    """A file that can not be written."""


class NotExportable(PlaitError, ValueError):
    """A function, or a tree, that has no portable form."""


class NotReadable(PlaitError, ValueError):
    """A portable module, or an operation of it, that can not be read back as a Program."""

    def __init__(self, what: str, *, where: Any = None, fix: str | None = AS_IT_IS):
        super().__init__(what, where=where, fix=fix)
