"""Weft: composable transformations of array programs, on numpy and jaxlib alone.

    import weft as wf

    @wf.jit
    def f(x):
        return wf.numpy.sin(x).sum()

What core has is here: `jit`, `numpy`, `lax`, `random`, `nn`, `tree`, ...  What installed plugins
add (derivatives, mapping, sharding, export) is found when it is first asked for; a missing name
says which distribution offers it.

Invariant: importing this imports no surface, no plugin and no compiler, and reads no metadata.
"""

import importlib as _importlib

from . import operators as _operators
from .calls import jit
from .config import config
from .control import map_axes
from .dims import Dim, Scope, symbolic_dims
from .errors import WeftError
from .hardware import (
    block_until_ready,
    clear_caches,
    default_backend,
    device_count,
    device_get,
    devices,
    local_device_count,
    local_devices,
)
from .ir import Program as _Program
from .ops.host import io_callback, pure_callback
from .plugins import core_version as _core_version
from .plugins import public_names as _public_names
from .plugins import resolve as _resolve
from .stepping import disable_jit
from .tracing import ShapeDtypeStruct, eval_shape, make_program
from .types import float0
from .values import Array

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
    ]
)

__all__ = [
    "Array",
    "Dim",
    "Scope",
    "ShapeDtypeStruct",
    "WeftError",
    "block_until_ready",
    "clear_caches",
    "config",
    "default_backend",
    "device_count",
    "device_get",
    "devices",
    "disable_jit",
    "eval_shape",
    "float0",
    "io_callback",
    "jit",
    "local_device_count",
    "local_devices",
    "make_jaxpr",
    "make_program",
    "map_axes",
    "pure_callback",
    "symbolic_dims",
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
    if name == "__version__":
        return _core_version()
    if name.startswith("__"):
        raise AttributeError(name)
    found = _resolve(name)
    globals()[name] = found
    return found


def __dir__():
    return sorted({*__all__, *_public_names()})
