"""Batching rules of core primitives, by family.

Invariant: importing this registers rules and does nothing else.
"""

from . import (
    collective,
    contraction,
    control,
    conversion,
    convolution,
    cumulative,
    elementwise,
    foreign,
    host,
    indexing,
    mapping,
    reduction,
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
    "elementwise",
    "foreign",
    "host",
    "indexing",
    "mapping",
    "reduction",
    "shape",
    "sorting",
]
