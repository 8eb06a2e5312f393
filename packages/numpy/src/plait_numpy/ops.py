"""Reductions over segments, under JAX's module name.

Invariant: nothing is defined here.
"""

from plait.ext.surface import advise as _advise

from .primitives.segments import segment_max, segment_min, segment_prod, segment_sum

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]

_advise("plait.ops", globals())
