"""Functions in other languages: XLA's foreign function interface.

A function in C++ (with the headers in `include_dir()`), or anything that makes such a symbol, is
loaded, registered and called:

    library = ctypes.CDLL("librms.so")
    plait.ffi.register_ffi_target("rms", plait.ffi.pycapsule(library.Rms))
    y = plait.ffi.ffi_call("rms", plait.ShapeDtypeStruct(x.shape, x.dtype))(x, eps=1e-6)

Derivatives and others' rules are given to it as to any function: by `custom_jvp`, `custom_vmap`.

Invariant: a name is registered once for a platform, in the whole process.
"""

from typing import Any

from ._base import jaxlib_api
from ._ops.foreign_calls import ffi_call

__all__ = ["ffi_call", "include_dir", "pycapsule", "register_ffi_target"]


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1) -> None:
    """Make a compiled function known to the runtime.

    Args:
      name: what programs call it.
      fn: a capsule of its address, see `pycapsule`; or a dict of capsules for the stages
        "instantiate", "prepare", "initialize" and "execute".
      platform: "cpu", "cuda" or "rocm".
      api_version: 1 for typed functions (those of the headers); 0 for untyped ones.
    """
    jaxlib_api.register_target(name, fn, platform, api_version)


def pycapsule(symbol: Any) -> Any:
    """The address of a function of a `ctypes` library, as `register_ffi_target` takes it."""
    return jaxlib_api.capsule(symbol)


def include_dir() -> str:
    """The folder with the C++ headers that foreign functions are written with."""
    return jaxlib_api.headers()
