"""Plait: composable transformations of array programs, on numpy and jaxlib alone.

    import plait

    @plait.jit
    def f(x):
        return plait.numpy.sin(x).sum()

Core's names are here: `jit`, `numpy`, `lax`, `random`, `nn`, `tree`, ...  The names of installed
plugins (derivatives, mapping, sharding, export) are resolved at their first use.  The error for a
missing name says which distribution offers it.

Invariant: importing this imports no surface, no plugin and no compiler, and reads no metadata.
"""

import sys as _sys

from ._api import aliases as _aliases
from ._base.config import config
from ._base.errors import MissingPlugin as _MissingPlugin
from ._base.errors import PlaitError
from ._base.lazy import later as _later
from ._base.tracebacks import border as _border
from ._base.tracebacks import explained_call as _explained_call
from ._base.tracebacks import explained_calls as _explained_calls
from ._jit import eager as _eager
from ._jit import plans as _plans
from ._jit.jittable import is_jittable, register_jittable, unregister_jittable
from ._jit.jitted import jit
from ._jit.shapes import ShapeDtypeStruct, typeof
from ._jit.tracing import eval_shape
from ._ops import operators as _operators
from ._ops.callbacks import io_callback, pure_callback
from ._plugins.metadata import core_version as _core_version
from ._plugins.metadata import public_names as _public_names
from ._plugins.metadata import resolve as _resolve
from ._types.avals import float0
from ._types.dims import Dim, Scope, symbolic_dims
from .typing import Array

_MODULES = frozenset(
    [
        "lax",
        "tree",
        "tree_util",
        "debug",
        "dtypes",
        "events",
        "ext",
        "errors",
        "ffi",
        "flatten_util",
        "typing",
        "text",
        "stages",
    ]
)

_LATER = {
    "_api.scopes": ("named_call", "named_scope"),
    "_api.hardware": (
        "Device",
        "block_until_ready",
        "clear_caches",
        "copy_to_host_async",
        "default_backend",
        "device_count",
        "device_get",
        "devices",
        "effects_barrier",
        "host_count",
        "host_id",
        "host_ids",
        "live_arrays",
        "local_device_count",
        "local_devices",
        "print_environment_info",
        "process_count",
        "process_index",
        "process_indices",
    ),
    "_control": ("map_axes",),
    "_control.stepping": ("disable_jit",),
    "_api.program_passes": ("reroll",),
    "_jit.programs": ("make_jaxpr", "make_program"),
    "_api.default_devices": ("default_device",),
    "_api.blocks": (
        "check_tracer_leaks",
        "checking_leaks",
        "debug_infs",
        "debug_key_reuse",
        "debug_nans",
        "default_matmul_precision",
        "default_prng_impl",
        "enable_checks",
        "enable_x64",
        "ensure_compile_time_eval",
        "explain_cache_misses",
        "log_compiles",
        "numpy_dtype_promotion",
        "numpy_rank_promotion",
        "transfer_guard",
        "transfer_guard_device_to_device",
        "transfer_guard_device_to_host",
        "transfer_guard_host_to_device",
    ),
}
"""Modules, with those of their names that belong here; each is imported at the first use of one."""
_HOME = {name: module for module, names in _LATER.items() for name in names}

__all__ = [
    "Array",
    "Dim",
    "Scope",
    "ShapeDtypeStruct",
    "PlaitError",
    "config",
    "eval_shape",
    "float0",
    "io_callback",
    "is_jittable",
    "jit",
    "pure_callback",
    "register_jittable",
    "symbolic_dims",
    "typeof",
    "unregister_jittable",
    *sorted(_HOME),
    *sorted(_MODULES),
]


@_border
def __getattr__(name: str):
    if name in _MODULES:
        return _later(name)
    if name in _HOME:
        found = _explained_call(getattr(_later(_HOME[name]), name), "plait", name)
        globals()[name] = found
        return found
    if name == "__version__":
        return _core_version()
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _aliases.TABLE:
        return _later(name)
    try:
        found = _resolve(name)
    except _MissingPlugin:
        if not _aliases.is_module(name):
            raise
        return _later(name)
    globals()[name] = found
    return found


def __dir__():
    return sorted({*__all__, *_public_names()})


_explained_calls(globals())
_aliases.make(_sys.modules[__name__])
