"""Errors of exporting and of reading artifacts.

Invariant: exporting any function, or reading any bytes in a separate process (`isolation`), gives a
result or one of these errors.  Wrong arguments give another PlaitError.  Bytes that are read in
this process are checked against checksums, sizes and signatures; bytes crafted to break jaxlib's
reader of StableHLO may still do so.
"""

from typing import Any

from plait.ext.errors import DimMismatch, PlaitError, UndecidedDim

AGAIN = "save it again with Exported.serialize(), and copy the file as bytes, unchanged"

AS_IT_IS = (
    "call the artifact as it is; derivatives are saved with it by Exported.serialize(vjp_order=1), "
    "where it is exported"
)


class ArtifactError(PlaitError, ValueError):
    """Bytes that are not an artifact, are damaged, or need another reader."""

    def __init__(self, what: str, *, where: Any = None, fix: str | None = AGAIN):
        super().__init__(what, where=where, fix=fix)


class expecting:
    """A context manager that turns any exception but a PlaitError into an ArtifactError.

    It surrounds code that reads untrusted bytes, where the runtime, Python (RecursionError) or
    Plait's own readers may raise anything.

    Args:
      what: the first words of the message.
    """

    def __init__(self, what: str):
        self.what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, e: BaseException | None, trace: object) -> None:
        if isinstance(e, Exception) and not isinstance(e, PlaitError):
            said = str(e).strip().splitlines()
            said = f"{type(e).__name__}: {said[0]}" if said else type(e).__name__
            raise ArtifactError(f"{self.what}: {said}") from e


class NotWritable(PlaitError, OSError):
    """A file that cannot be written."""


class NotExportable(PlaitError, ValueError):
    """A function, or a tree, that has no portable form."""


class UndecidedCall(UndecidedDim, DimMismatch):
    """A call with symbolic sizes that fit at some values and not at others."""


class NotReadable(PlaitError, ValueError):
    """A portable module, or an operation of it, that cannot be read back as a Program."""

    def __init__(self, what: str, *, where: Any = None, fix: str | None = AS_IT_IS):
        super().__init__(what, where=where, fix=fix)
