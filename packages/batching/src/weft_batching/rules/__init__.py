"""Batching rules of core primitives, by family.

Invariant: importing this registers rules and does nothing else.
"""

from . import collective, control, elementwise, host, mapping, shape

__all__ = ["collective", "control", "elementwise", "host", "mapping", "shape"]
