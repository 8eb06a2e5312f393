"""Lowering: from Programs to StableHLO, modules and executables.

Invariant: nothing is defined here.
"""

from .._base.jaxlib_api import (
    JAXLIB_VERSION,
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
from .._xla.library_kernels import STABLE
from .._xla.lower import I32, OPERATION, Emitter, Unit
from .._xla.mlir import attr, bindings, i64, i64s, matrix, type_of
from .._xla.module import Module, measured, module_of

__all__ = [
    "ASKED",
    "Emitter",
    "I32",
    "JAXLIB_VERSION",
    "Module",
    "OPERATION",
    "RuntimeFailure",
    "STABLE",
    "Unit",
    "ask",
    "attr",
    "bindings",
    "circumstances",
    "executable_again",
    "i64",
    "i64s",
    "index_of",
    "known_platforms",
    "load",
    "load_portable_artifact",
    "loaded_again",
    "lock",
    "matrix",
    "measured",
    "mlir",
    "module_of",
    "portable_artifact",
    "read",
    "refine_shapes",
    "serialized",
    "stablehlo_version",
    "type_of",
]
