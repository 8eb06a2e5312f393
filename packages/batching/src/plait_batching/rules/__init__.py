"""Batching rules of core primitives, by family.

Invariant: importing this registers rules and does nothing else.
"""

from . import (
    boxes,
    collective,
    contraction,
    control,
    conversion,
    convolution,
    cumulative,
    elementwise,
    extremes,
    factorisation,
    foreign,
    fourier,
    host,
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
    "boxes",
    "collective",
    "contraction",
    "control",
    "conversion",
    "convolution",
    "cumulative",
    "elementwise",
    "extremes",
    "factorisation",
    "foreign",
    "fourier",
    "host",
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
