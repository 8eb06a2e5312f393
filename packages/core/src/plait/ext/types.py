"""Types of values and of their elements.

Invariant: nothing is defined here.
"""

from .._base.jaxlib_api import (
    EXTRA_DTYPES as EXTRA_DTYPES,
)
from .._jit.tracing import (
    ShapeDtypeStruct as ShapeDtypeStruct,
)
from .._types.avals import (
    BOOL as BOOL,
)
from .._types.avals import (
    COMPLEX as COMPLEX,
)
from .._types.avals import (
    FLOAT32 as FLOAT32,
)
from .._types.avals import (
    FLOATING as FLOATING,
)
from .._types.avals import (
    INT32 as INT32,
)
from .._types.avals import (
    UINT32 as UINT32,
)
from .._types.avals import (
    Aval as Aval,
)
from .._types.avals import (
    Opaque as Opaque,
)
from .._types.avals import (
    category as category,
)
from .._types.avals import (
    float0 as float0,
)
from .._types.avals import (
    short_name as short_name,
)

__all__ = [
    "Aval",
    "BOOL",
    "COMPLEX",
    "EXTRA_DTYPES",
    "FLOAT32",
    "FLOATING",
    "INT32",
    "Opaque",
    "ShapeDtypeStruct",
    "UINT32",
    "category",
    "float0",
    "short_name",
]
