"""Rules of piles for the primitives of core, by family.

Invariant: importing this package registers all of them.
"""

from . import (
    attention,
    callbacks,
    collective,
    contraction,
    control,
    convolution,
    cumulative,
    elementwise,
    fourier,
    indexing,
    linalg,
    moving,
    nested,
    overrides,
    reduction,
    shape,
    sorting,
)

__all__ = [
    "attention",
    "callbacks",
    "collective",
    "contraction",
    "control",
    "convolution",
    "cumulative",
    "elementwise",
    "fourier",
    "indexing",
    "linalg",
    "moving",
    "nested",
    "overrides",
    "reduction",
    "shape",
    "sorting",
]
