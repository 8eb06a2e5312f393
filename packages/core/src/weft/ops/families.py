"""Every family of primitives: for whoever must know all of them by name.

Texts of programs are read with it, and the matrix of primitives and tables is made of it; nothing
else should need it, since a family is imported where it is used.

Invariant: importing this defines every primitive of core.
"""

from . import (
    collective,
    contraction,
    conversion,
    convolution,
    cumulative,
    elementwise,
    foreign,
    higher,
    host,
    indexing,
    mapping,
    places,
    reduction,
    rng,
    selection,
    shape,
    sorting,
    subscript,
)

__all__ = [
    "collective",
    "contraction",
    "conversion",
    "convolution",
    "cumulative",
    "elementwise",
    "foreign",
    "higher",
    "host",
    "indexing",
    "mapping",
    "places",
    "reduction",
    "rng",
    "selection",
    "shape",
    "sorting",
    "subscript",
]
