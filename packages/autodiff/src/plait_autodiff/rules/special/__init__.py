"""Derivative rules of the primitives of `special`, by family.

Invariant: importing this package registers rules and does nothing else.
"""

from . import functions, sampling

__all__ = ["functions", "sampling"]
