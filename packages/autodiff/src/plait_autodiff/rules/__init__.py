"""Derivative rules of the primitives of `core`, by family.

Invariant: importing this package registers rules and does nothing else.
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
    opaque,
    reduction,
    scattering,
    shape,
    sorting,
    windows,
)

__all__ = [
    "callbacks", "collective", "contraction", "control", "convolution", "cumulative",
    "elementwise", "fourier", "indexing", "opaque", "reduction", "scattering", "shape",
    "sorting", "windows",
]  # fmt: skip
