"""Convolutions.

Invariant: nothing is defined here.
"""

from ..._ops.convolution import ConvDims, conv_general, dilated, moved_groups

__all__ = [
    "ConvDims",
    "conv_general",
    "dilated",
    "moved_groups",
]
