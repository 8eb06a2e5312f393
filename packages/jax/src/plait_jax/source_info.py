"""Source locations of equations, as JAX code reads them (`eqn.source_info`).

Invariant: locations are those that Plait recorded; blocks that name operations are
`plait.named_scope`.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import plait
from plait.ext.errors import user_frames

__all__ = [
    "NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack",
    "new_name_stack", "new_source_info", "summarize", "user_context", "user_frame",
]  # fmt: skip


class NameStack(NamedTuple):
    """The names of the blocks around an operation, outermost first."""

    stack: tuple[str, ...] = ()

    def extend(self, name: str) -> "NameStack":
        """Return the names with one more inside."""
        return NameStack((*self.stack, name))

    def wrap_jvp(self) -> "NameStack":
        """Return the same names: they do not tell derivatives."""
        return self

    def __add__(self, other: Any) -> "NameStack":
        return NameStack((*self.stack, *other.stack))

    def __str__(self) -> str:
        return "/".join(self.stack)


class SourceInfo(NamedTuple):
    """A source location.

    Attributes:
      traceback: the recorded location, or None.
      name_stack: the names of blocks around the operation.
    """

    traceback: Any = None
    name_stack: NameStack = NameStack()

    @staticmethod
    def of(where: Any) -> "SourceInfo":
        """Return a location of Plait's equations as JAX's."""
        name = getattr(where, "name", None)
        if isinstance(name, str) and hasattr(where, "at"):
            return SourceInfo(where.at, NameStack(tuple(name.split("/"))))
        return SourceInfo(where)

    def replace(self, **changes: object) -> "SourceInfo":
        """Return a location with some attributes changed."""
        return self._replace(**changes)


def user_frame(traceback: object) -> Any:
    """Return the innermost frame of the user's code, with `file` and `line`; None without one."""
    frames = user_frames(getattr(traceback, "traceback", traceback), 1)
    return frames[0] if frames else None


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """Return a location as text: `file:line (function)`, a line per frame."""
    frames = user_frames(source_info.traceback, num_frames)
    return "\n".join(f"{f.file}:{f.line} ({f[2]})" for f in frames) or "unknown"


def new_name_stack(name: str = "") -> NameStack:
    """Return the names of no blocks, or of one."""
    return NameStack((name,) if name else ())


def new_source_info() -> SourceInfo:
    """Return an unknown location."""
    return SourceInfo()


current = new_source_info


def current_name_stack() -> NameStack:
    """Return the names of no blocks: Plait names operations when a block ends."""
    return NameStack()


def extend_name_stack(name: str) -> Any:
    """Return a block that names the operations in it."""
    return plait.named_scope(name) if name else nullcontext()


@contextmanager
def user_context(*args: object, **options: object) -> Iterator[None]:
    """Enter a block that has no effect: Plait records the user's line itself."""
    yield
