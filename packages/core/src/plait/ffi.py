"""Functions in other languages: XLA's foreign function interface.

A compiled function is loaded, registered and called.  It may be written in C++ (with the headers in
`include_dir()`), or in any language that makes such a symbol:

    library = ctypes.CDLL("librms.so")
    plait.ffi.register_ffi_target("rms", plait.ffi.pycapsule(library.Rms))
    y = plait.ffi.ffi_call("rms", plait.ShapeDtypeStruct(x.shape, x.dtype))(x, eps=1e-6)

Derivatives and other rules are given to it as to any function: by `custom_jvp`, `custom_vmap`.

Invariant: a name is registered once for a platform, in the whole process.
"""

from ._base import jaxlib_api
from ._base.lazy import advise as _advise
from ._base.tracebacks import explained_calls as _explained_calls
from ._ops.foreign_calls import ffi_call

__all__ = ["ffi_call", "include_dir", "pycapsule", "register_ffi_target"]


def register_ffi_target(name: str, fn: object, platform: str = "cpu", api_version: int = 1) -> None:
    """Register a compiled function with the runtime.

    Args:
      name: the name by which programs call it.
      fn: a capsule of its address, see `pycapsule`; or a dict of capsules for the stages
        "instantiate", "prepare", "initialize" and "execute".
      platform: "cpu", "cuda" or "rocm".
      api_version: 1 for typed functions (those of the headers); 0 for untyped ones.
    """
    jaxlib_api.register_target(name, fn, platform, api_version)


def pycapsule(symbol: object) -> object:
    """Return the address of a function of a `ctypes` library, for `register_ffi_target`."""
    return jaxlib_api.capsule(symbol)


def include_dir() -> str:
    """Return the path of the folder with the C++ headers for foreign functions."""
    return jaxlib_api.headers()


_explained_calls(globals())
_advise("plait.ffi", globals())
