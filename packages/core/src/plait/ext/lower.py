"""Lowering: from Programs to StableHLO, modules and executables.

Invariant: nothing is defined here.
"""

from .._base.jaxlib_api import (
    JAXLIB_VERSION,
    IrValue,
    RuntimeFailure,
    load_portable_artifact,
    lock,
    portable_artifact,
    refine_shapes,
    stablehlo_version,
)
from .._ops.platforms import ASKED, index_of, known_platforms, read
from .._xla import mlir
from .._xla.disk_cache import circumstances
from .._xla.executables import executable_again, load, loaded_again, serialized
from .._xla.inspection import ask
from .._xla.library_kernels import LETTERS, SOLVERS, STABLE
from .._xla.lower import I32, OPERATION, Emitter, Unit, simple
from .._xla.mlir import (
    array_of,
    attr,
    bindings,
    boolean,
    i64,
    i64s,
    indices,
    matrix,
    string,
    type_of,
)
from .._xla.module import Module, measured, module_of

__all__ = [
    "array_of", "ask", "ASKED", "attr", "bindings", "boolean", "circumstances", "Emitter",
    "executable_again", "I32", "i64", "i64s", "index_of", "indices", "IrValue", "JAXLIB_VERSION",
    "known_platforms", "LETTERS", "load", "load_portable_artifact", "loaded_again", "lock",
    "matrix", "measured", "mlir", "Module", "module_of", "OPERATION", "portable_artifact", "read",
    "refine_shapes", "RuntimeFailure", "serialized", "simple", "SOLVERS", "STABLE",
    "stablehlo_version", "string", "type_of", "Unit",
]  # fmt: skip
