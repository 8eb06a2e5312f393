"""Operations along named axes.

Invariant: nothing is defined here.
"""

from ..._ops.collective import (
    all_gather_,
    all_to_all_,
    axis_index_,
    pmax_,
    pmin_,
    ppermute_,
    psum_,
    psum_scatter_,
    pvary_,
    varied,
)

__all__ = [
    "all_gather_",
    "all_to_all_",
    "axis_index_",
    "pmax_",
    "pmin_",
    "ppermute_",
    "psum_",
    "psum_scatter_",
    "pvary_",
    "varied",
]
