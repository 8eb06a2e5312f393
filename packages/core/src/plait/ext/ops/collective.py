"""Operations along named axes.

Invariant: nothing is defined here.
"""

from ..._ops.collective import (
    all_gather_ as all_gather_,
)
from ..._ops.collective import (
    all_to_all_ as all_to_all_,
)
from ..._ops.collective import (
    axis_index_ as axis_index_,
)
from ..._ops.collective import (
    pmax as pmax,
)
from ..._ops.collective import (
    pmax_ as pmax_,
)
from ..._ops.collective import (
    pmin as pmin,
)
from ..._ops.collective import (
    pmin_ as pmin_,
)
from ..._ops.collective import (
    ppermute_ as ppermute_,
)
from ..._ops.collective import (
    psum_ as psum_,
)
from ..._ops.collective import (
    psum_scatter_ as psum_scatter_,
)

__all__ = [
    "all_gather_",
    "all_to_all_",
    "axis_index_",
    "pmax",
    "pmax_",
    "pmin",
    "pmin_",
    "ppermute_",
    "psum_",
    "psum_scatter_",
]
