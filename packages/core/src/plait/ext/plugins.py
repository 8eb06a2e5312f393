"""Declarations of installed plugins: entry points, by their groups and names.

    for d in declared("plait.laws", "jvp"):
        law = load(d)

Invariant: nothing is defined here.
"""

from .._plugins.metadata import declared, library, load, names

__all__ = ["declared", "library", "load", "names"]
