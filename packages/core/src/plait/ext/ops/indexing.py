"""Gathering, scattering, slicing at computed places, subscripts.

Invariant: nothing is defined here.
"""

from ..._ops.dynamic_slicing import dynamic_slice_, dynamic_update_slice_
from ..._ops.indexing import CLIP, FILL, GatherDimensionNumbers, gather_, taken
from ..._ops.scattering import (
    ScatterDimensionNumbers,
    as_gather,
    as_scatter,
    scatter_,
    scatter_add_,
    scatter_max_,
    scatter_min_,
    scatter_mul_,
    window_sizes,
)
from ..._ops.subscript import getitem

__all__ = [
    "CLIP",
    "FILL",
    "GatherDimensionNumbers",
    "ScatterDimensionNumbers",
    "as_gather",
    "as_scatter",
    "dynamic_slice_",
    "dynamic_update_slice_",
    "gather_",
    "getitem",
    "scatter_",
    "scatter_add_",
    "scatter_max_",
    "scatter_min_",
    "scatter_mul_",
    "taken",
    "window_sizes",
]
