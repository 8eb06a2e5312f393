"""Gathering, scattering, slicing at computed places, subscripts.

Invariant: nothing is defined here.
"""

from ..._ops.dynamic_slicing import (
    dynamic_slice_ as dynamic_slice_,
)
from ..._ops.dynamic_slicing import (
    dynamic_update_slice_ as dynamic_update_slice_,
)
from ..._ops.indexing import (
    CLIP as CLIP,
)
from ..._ops.indexing import (
    GatherDimensionNumbers as GatherDimensionNumbers,
)
from ..._ops.indexing import (
    gather_ as gather_,
)
from ..._ops.indexing import (
    taken as taken,
)
from ..._ops.scattering import (
    ScatterDimensionNumbers as ScatterDimensionNumbers,
)
from ..._ops.scattering import (
    as_gather as as_gather,
)
from ..._ops.scattering import (
    as_scatter as as_scatter,
)
from ..._ops.scattering import (
    scatter_ as scatter_,
)
from ..._ops.scattering import (
    scatter_add_ as scatter_add_,
)
from ..._ops.scattering import (
    scatter_max_ as scatter_max_,
)
from ..._ops.scattering import (
    scatter_min_ as scatter_min_,
)
from ..._ops.scattering import (
    scatter_mul_ as scatter_mul_,
)
from ..._ops.scattering import (
    window_sizes as window_sizes,
)
from ..._ops.subscript import (
    getitem as getitem,
)

__all__ = [
    "CLIP",
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
