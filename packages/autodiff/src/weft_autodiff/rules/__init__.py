"""Derivative rules of core primitives, by family.

Invariant: importing this registers rules and does nothing else.
"""

from .. import custom, remat
from . import (
    collective,
    contraction,
    control,
    conversion,
    convolution,
    cumulative,
    elementwise,
    host,
    indexing,
    reduction,
    rng,
    shape,
    sorting,
)

__all__ = [
    "collective",
    "contraction",
    "control",
    "conversion",
    "convolution",
    "cumulative",
    "custom",
    "elementwise",
    "host",
    "indexing",
    "reduction",
    "remat",
    "rng",
    "shape",
    "sorting",
]
