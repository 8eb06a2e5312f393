"""Every primitive of core, by family, with the helper functions that plugins may use.

    from plait.ext.ops.elementwise import mul, sin
    from plait.ext.ops.shape import reshape

A name is the primitive itself if users call the primitive directly.  If users call a function that
prepares the operands, the primitive's name ends with an underscore.

Packages add families of their own: entry points in the group `plait.ext`, such as `ops.linalg`.

Invariant: nothing is defined here; a family is imported at its first use.
"""

from types import ModuleType

from ..._base.lazy import later
from ..._plugins.metadata import MODULES as OFFERED_BY
from ..._plugins.metadata import names, resolve

FAMILIES = (
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
    "opaque",
    "platforms",
    "random",
    "reduction",
    "shape",
    "sliding",
    "sorting",
    "taking",
    "windows",
)

__all__ = [*FAMILIES]


def __getattr__(name: str) -> ModuleType:
    if name in FAMILIES or f"ops.{name}" in names("plait.ext"):
        return later(f"ext.ops.{name}")
    if f"ext.ops.{name}" in OFFERED_BY:  # by a plugin that is not installed
        return resolve(f"ext.ops.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    offered = [n.removeprefix("ops.") for n in names("plait.ext") if n.startswith("ops.")]
    return sorted([*FAMILIES, *offered])
