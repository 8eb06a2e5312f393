"""Lowering: from Programs to StableHLO, modules and executables.

Invariant: nothing is defined here.
"""

from .._base.jaxlib_api import (
    JAXLIB_VERSION as JAXLIB_VERSION,
)
from .._base.jaxlib_api import (
    RuntimeFailure as RuntimeFailure,
)
from .._base.jaxlib_api import (
    load_portable_artifact as load_portable_artifact,
)
from .._base.jaxlib_api import (
    lock as lock,
)
from .._base.jaxlib_api import (
    portable_artifact as portable_artifact,
)
from .._base.jaxlib_api import (
    refine_shapes as refine_shapes,
)
from .._base.jaxlib_api import (
    stablehlo_version as stablehlo_version,
)
from .._ops.linalg_kernels import (
    STABLE as STABLE,
)
from .._ops.platforms import (
    ASKED as ASKED,
)
from .._ops.platforms import (
    index_of as index_of,
)
from .._ops.platforms import (
    read as read,
)
from .._xla import (
    mlir as mlir,
)
from .._xla.executables import (
    load as load,
)
from .._xla.lower import (
    I32 as I32,
)
from .._xla.lower import (
    Emitter as Emitter,
)
from .._xla.lower import (
    Unit as Unit,
)
from .._xla.mlir import (
    attr as attr,
)
from .._xla.mlir import (
    bindings as bindings,
)
from .._xla.mlir import (
    i64 as i64,
)
from .._xla.mlir import (
    i64s as i64s,
)
from .._xla.mlir import (
    matrix as matrix,
)
from .._xla.mlir import (
    type_of as type_of,
)
from .._xla.module import (
    Module as Module,
)
from .._xla.module import (
    measured as measured,
)
from .._xla.module import (
    module_of as module_of,
)

__all__ = [
    "ASKED",
    "Emitter",
    "I32",
    "JAXLIB_VERSION",
    "Module",
    "RuntimeFailure",
    "STABLE",
    "Unit",
    "attr",
    "bindings",
    "i64",
    "i64s",
    "index_of",
    "load",
    "load_portable_artifact",
    "lock",
    "matrix",
    "measured",
    "mlir",
    "module_of",
    "portable_artifact",
    "read",
    "refine_shapes",
    "stablehlo_version",
    "type_of",
]
