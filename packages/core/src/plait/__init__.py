"""Plait: composable transformations of array programs, on numpy and jaxlib alone.

    import plait

    @plait.jit
    def f(x):
        return plait.numpy.sin(x).sum()

What core has is here: `jit`, `numpy`, `lax`, `random`, `nn`, `tree`, ...  What installed plugins
add (derivatives, mapping, sharding, export) is found when it is first asked for; a missing name
says which distribution offers it.

Invariant: importing this imports no surface, no plugin and no compiler, and reads no metadata.
"""

import importlib as _importlib
import sys as _sys

from . import operators as _operators
from .aliases import TABLE as _ALIASES
from .calls import jit
from .config import config
from .control import map_axes
from .dims import Dim, Scope, symbolic_dims
from .errors import PlaitError
from .hardware import (
    Device,
    block_until_ready,
    clear_caches,
    copy_to_host_async,
    default_backend,
    device_count,
    device_get,
    devices,
    effects_barrier,
    host_count,
    host_id,
    host_ids,
    live_arrays,
    local_device_count,
    local_devices,
    print_environment_info,
    process_count,
    process_index,
    process_indices,
)
from .ir import Program as _Program
from .listing import make_program
from .ops.host import io_callback, pure_callback
from .plugins import core_version as _core_version
from .plugins import public_names as _public_names
from .plugins import resolve as _resolve
from .stepping import disable_jit
from .tracing import ShapeDtypeStruct, eval_shape, typeof
from .types import float0
from .typing import Array

_MODULES = frozenset(
    [
        "numpy",
        "lax",
        "random",
        "nn",
        "scipy",
        "tree",
        "tree_util",
        "debug",
        "dtypes",
        "events",
        "ext",
        "testing",
        "errors",
        "ffi",
        "flatten_util",
        "image",
        "typing",
        "text",
        "stages",
    ]
)

_LATER = {
    "scopes": ("named_call", "named_scope"),
    "blocks": (
        "check_tracer_leaks",
        "checking_leaks",
        "debug_infs",
        "debug_key_reuse",
        "debug_nans",
        "default_device",
        "default_matmul_precision",
        "default_prng_impl",
        "enable_checks",
        "enable_x64",
        "ensure_compile_time_eval",
        "explain_cache_misses",
        "log_compiles",
        "numpy_dtype_promotion",
        "numpy_rank_promotion",
    ),
}
"""Modules, and what of them is here: they are imported when one of these is asked for."""
_HOME = {name: module for module, names in _LATER.items() for name in names}

__all__ = [
    "Array",
    "Device",
    "Dim",
    "Scope",
    "ShapeDtypeStruct",
    "PlaitError",
    "block_until_ready",
    "clear_caches",
    "config",
    "copy_to_host_async",
    "default_backend",
    "device_count",
    "device_get",
    "devices",
    "disable_jit",
    "effects_barrier",
    "eval_shape",
    "float0",
    "host_count",
    "host_id",
    "host_ids",
    "io_callback",
    "jit",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "make_jaxpr",
    "make_program",
    "map_axes",
    "print_environment_info",
    "process_count",
    "process_index",
    "process_indices",
    "pure_callback",
    "symbolic_dims",
    "typeof",
    *sorted(_HOME),
    *sorted(_MODULES),
]

make_jaxpr = make_program


def _shown(program: _Program) -> str:
    """The text of a program; what writes it is imported when the first is printed."""
    return _importlib.import_module(".text", __name__).show(program)


_Program.__str__ = _shown  # type: ignore[method-assign]


def __getattr__(name: str):
    if name in _MODULES:
        return _importlib.import_module("." + name, __name__)
    if name in _HOME:
        found = getattr(_importlib.import_module("." + _HOME[name], __name__), name)
        globals()[name] = found
        return found
    if name == "__version__":
        return _core_version()
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _ALIASES and _ALIASES[name] != "*":
        return _sys.modules[f"{__name__}.{name}"]
    found = _resolve(name)
    globals()[name] = found
    return found


def __dir__():
    return sorted({*__all__, *_public_names()})
