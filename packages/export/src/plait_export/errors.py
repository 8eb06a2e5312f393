"""Errors of exporting and of reading artifacts.

Invariant: whatever bytes are read, and whatever function is exported, the outcome is a result or
one of these (or another PlaitError, for wrong arguments): never a crash of the runtime.
"""

from plait.ext.errors import (
    PlaitError,
)


class ArtifactError(PlaitError, ValueError):
    """Bytes that are no artifact, are damaged, or are not for this reader."""


class NotExportable(PlaitError, ValueError):
    """A function, or a tree, that has no portable form."""
