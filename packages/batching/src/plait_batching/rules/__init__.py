"""Batching rules of the primitives of `core`, by family.

Invariant: importing this registers rules and does nothing else.
"""

from . import (
    callbacks,
    collective,
    contraction,
    control,
    convolution,
    cumulative,
    dynamic_slicing,
    elementwise,
    fourier,
    indexing,
    keys,
    opaque,
    reduction,
    shape,
    sorting,
    windows,
)

__all__ = [
    "callbacks", "collective", "contraction", "control", "convolution", "cumulative",
    "dynamic_slicing", "elementwise", "fourier", "indexing", "keys", "opaque", "reduction",
    "shape", "sorting", "windows",
]  # fmt: skip
