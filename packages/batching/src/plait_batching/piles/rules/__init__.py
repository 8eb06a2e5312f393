"""Rules of piles for the primitives of `core`, by family.

Invariant: importing this package registers all of them.
"""

from . import (
    callbacks,
    collective,
    contraction,
    control,
    convolution,
    cumulative,
    elementwise,
    fourier,
    indexing,
    moving,
    nested,
    overrides,
    reduction,
    shape,
    sorting,
)

__all__ = [
    "callbacks", "collective", "contraction", "control", "convolution", "cumulative",
    "elementwise", "fourier", "indexing", "moving", "nested", "overrides", "reduction", "shape",
    "sorting",
]  # fmt: skip
