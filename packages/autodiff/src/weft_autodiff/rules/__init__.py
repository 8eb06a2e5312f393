"""Derivative rules of core primitives, by family.

Invariant: importing this registers rules and does nothing else.
"""

from .. import custom, remat
from . import collective, control, elementwise, host, indexing, rng, shape

__all__ = [
    "collective",
    "control",
    "custom",
    "elementwise",
    "host",
    "indexing",
    "remat",
    "rng",
    "shape",
]
