"""Convolutions.

Invariant: nothing is defined here.
"""

from ..._ops.convolution import (
    ConvDims as ConvDims,
)
from ..._ops.convolution import (
    conv_general as conv_general,
)
from ..._ops.convolution import (
    dilated as dilated,
)

__all__ = [
    "ConvDims",
    "conv_general",
    "dilated",
]
