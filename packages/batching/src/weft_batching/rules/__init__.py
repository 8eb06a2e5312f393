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
    factorisation,
    foreign,
    fourier,
    host,
    indexing,
    keys,
    mapping,
    opaque,
    reduction,
    shape,
    sorting,
    windows,
)

__all__ = [
    "collective",
    "contraction",
    "control",
    "conversion",
    "convolution",
    "cumulative",
    "elementwise",
    "factorisation",
    "foreign",
    "fourier",
    "host",
    "indexing",
    "keys",
    "mapping",
    "opaque",
    "reduction",
    "shape",
    "sorting",
    "windows",
]
