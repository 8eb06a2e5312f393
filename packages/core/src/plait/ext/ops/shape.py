"""Operations that move elements, conversion, constants.

Invariant: nothing is defined here.
"""

from ..._ops.shape import (
    barrier as barrier,
)
from ..._ops.shape import (
    broadcast_in_dim as broadcast_in_dim,
)
from ..._ops.shape import (
    concatenate as concatenate,
)
from ..._ops.shape import (
    concatenate_ as concatenate_,
)
from ..._ops.shape import (
    convert as convert,
)
from ..._ops.shape import (
    convert_ as convert_,
)
from ..._ops.shape import (
    convert_together as convert_together,
)
from ..._ops.shape import (
    expand_dims as expand_dims,
)
from ..._ops.shape import (
    fill as fill,
)
from ..._ops.shape import (
    iota as iota,
)
from ..._ops.shape import (
    iota_ as iota_,
)
from ..._ops.shape import (
    materialise_at_ground as materialise_at_ground,
)
from ..._ops.shape import (
    moveaxis as moveaxis,
)
from ..._ops.shape import (
    normal_axis as normal_axis,
)
from ..._ops.shape import (
    pad as pad,
)
from ..._ops.shape import (
    pad_ as pad_,
)
from ..._ops.shape import (
    reshape as reshape,
)
from ..._ops.shape import (
    reshape_ as reshape_,
)
from ..._ops.shape import (
    rev as rev,
)
from ..._ops.shape import (
    slice_ as slice_,
)
from ..._ops.shape import (
    slice_in_dim as slice_in_dim,
)
from ..._ops.shape import (
    squeeze_ as squeeze_,
)
from ..._ops.shape import (
    transpose as transpose,
)
from ..._ops.shape import (
    transpose_ as transpose_,
)
from ..._ops.sizes import (
    dim_ as dim_,
)
from ..._ops.sizes import (
    numbered as numbered,
)
from ..._ops.sizes import (
    size_value as size_value,
)

__all__ = [
    "barrier",
    "broadcast_in_dim",
    "concatenate",
    "concatenate_",
    "convert",
    "convert_",
    "convert_together",
    "dim_",
    "expand_dims",
    "fill",
    "iota",
    "iota_",
    "materialise_at_ground",
    "moveaxis",
    "normal_axis",
    "numbered",
    "pad",
    "pad_",
    "reshape",
    "reshape_",
    "rev",
    "size_value",
    "slice_",
    "slice_in_dim",
    "squeeze_",
    "transpose",
    "transpose_",
]
