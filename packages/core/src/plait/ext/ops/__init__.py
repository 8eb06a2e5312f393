"""Every primitive of core, by family, with the helper functions that plugins may use.

    from plait.ext.ops.elementwise import mul, sin
    from plait.ext.ops.shape import reshape

A name is the primitive itself if users call the primitive directly.  If users call a function that
prepares the operands, the primitive's name ends with an underscore.

Invariant: nothing is defined here; a family is imported at its first use.
"""

from types import ModuleType

from ..._base.lazy import later

FAMILIES = (
    "attention",
    "callbacks",
    "checks",
    "collective",
    "contraction",
    "control_flow",
    "convolution",
    "cumulative",
    "elementwise",
    "fourier",
    "indexing",
    "linalg",
    "opaque",
    "platforms",
    "random",
    "reduction",
    "shape",
    "sorting",
    "special",
    "windows",
)

__all__ = [*FAMILIES]


def __getattr__(name: str) -> ModuleType:
    if name in FAMILIES:
        return later(f"ext.ops.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*FAMILIES]
