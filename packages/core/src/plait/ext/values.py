"""Values: arrays, literals, and what users pass made into them.

Invariant: nothing is defined here.
"""

from .._core.array import (
    Array as Array,
)
from .._core.array import (
    Literal as Literal,
)
from .._core.array import (
    as_value as as_value,
)
from .._core.array import (
    asarray as asarray,
)
from .._core.array import (
    canonical as canonical,
)
from .._core.array import (
    from_numpy as from_numpy,
)
from .._core.array import (
    is_tracer as is_tracer,
)
from .._core.array import (
    solid as solid,
)
from .._core.array import (
    wrap as wrap,
)
from .._xla.operands import (
    as_argument as as_argument,
)

__all__ = [
    "Array",
    "Literal",
    "as_argument",
    "as_value",
    "asarray",
    "canonical",
    "from_numpy",
    "is_tracer",
    "solid",
    "wrap",
]
