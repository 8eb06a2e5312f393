"""Batching rules of core primitives, by family.

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
    factorisation,
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
    "factorisation",
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
