"""Derivative rules of the primitives of `core`, by family.

Invariant: importing this package registers rules and does nothing else.
"""

from . import (
    accuracy,
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
    opaque,
    reduction,
    rng,
    scattering,
    shape,
    sorting,
    windows,
)

__all__ = [
    "accuracy",
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
    "opaque",
    "reduction",
    "rng",
    "scattering",
    "shape",
    "sorting",
    "windows",
]
