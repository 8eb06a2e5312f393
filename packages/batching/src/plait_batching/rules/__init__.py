"""Batching rules of the primitives of `core`, by family.

Invariant: importing this registers rules and does nothing else.
"""

from . import (
    argreduction,
    callbacks,
    collective,
    contraction,
    control,
    conversion,
    convolution,
    cumulative,
    dynamic_slicing,
    elementwise,
    foreign_calls,
    fourier,
    indexing,
    keys,
    mapping,
    opaque,
    reduction,
    scattering,
    shape,
    sorting,
    windows,
)

__all__ = [
    "argreduction",
    "callbacks",
    "collective",
    "contraction",
    "control",
    "conversion",
    "convolution",
    "cumulative",
    "dynamic_slicing",
    "elementwise",
    "foreign_calls",
    "fourier",
    "indexing",
    "keys",
    "mapping",
    "opaque",
    "reduction",
    "scattering",
    "shape",
    "sorting",
    "windows",
]
