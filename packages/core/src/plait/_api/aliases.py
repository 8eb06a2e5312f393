"""Modules that hold names of other modules, where programs written for JAX look for them.

A module is a line of the table: its names are names of `plait`, or are written `name=path` after
what they are here, and are found when they are first asked for.

Invariant: nothing is defined here, and making the modules imports nothing.
"""

import sys
from types import ModuleType
from typing import Any

from .._base.errors import MissingPlugin, PluginError

TABLE = {
    "ad_checkpoint": "checkpoint checkpoint_name checkpoint_policies print_saved_residuals remat",
    "core": (
        "ShapedArray=_types.avals.Aval Tracer=_core.interpreter.Tracer Literal=_core.array.Literal "
        "ensure_compile_time_eval"
    ),
    "custom_batching": "custom_vmap",
    "custom_derivatives": (
        "closure_convert custom_gradient custom_jvp custom_vjp CustomVJPPrimal=CustomPrimal "
        "SymbolicZero"
    ),
    "dlpack": "from_dlpack=numpy.from_dlpack",
    "experimental": "io_callback enable_x64",
    "experimental.jet": "jet",
    "experimental.mesh_utils": "create_device_mesh=sharding.create_device_mesh",
    "experimental.pjit": "pjit=jit",
    "experimental.shard_map": "shard_map",
    "export": "*",
    "sharding": "*",
    "test_util": "check_grads",
}
"""Module -> its names; a star stands for those of what `plait` has under the module's own name."""


class Alias(ModuleType):
    """A module of names of others."""

    def __getattr__(self, name: str) -> Any:
        short = self.__name__.partition(".")[2]
        path = _paths(TABLE[short]).get(name)
        if name.startswith("__") or (path is None and TABLE[short] != "*"):
            if "." not in short and f"{short}.{name}" in TABLE:
                return sys.modules[f"{self.__name__}.{name}"]
            if name.startswith("__"):
                raise AttributeError(name)
            raise MissingPlugin(
                f"{self.__name__} has no {name!r}",
                fix=f"it has {', '.join(dir(self))}; docs/differences.md lists what there is not",
            )
        x: Any = _root[0]
        try:
            for part in (path or f"{short}.{name}").split("."):
                x = getattr(x, part)
        except MissingPlugin as e:  # an ImportError, or `from ... import` would lose its text
            raise PluginError(e.what, fix=e.fix) from None
        self.__dict__[name] = x
        return x

    def __dir__(self) -> list[str]:
        short = self.__name__.partition(".")[2]
        if TABLE[short] == "*":
            return dir(getattr(_root[0], short))
        return sorted(_paths(TABLE[short]))


def _paths(names: str) -> dict[str, str]:
    """Name -> where it is in `plait`."""
    pairs = [entry.partition("=") for entry in names.split() if entry != "*"]
    return {name: path or name for name, _, path in pairs}


_root: list[ModuleType] = []


def make(root: ModuleType) -> None:
    """Make the modules of the table, as submodules of `root`, which has what they name."""
    _root[:] = [root]
    for short in TABLE:
        made = sys.modules[f"{root.__name__}.{short}"] = Alias(f"{root.__name__}.{short}")
        made.__doc__ = f"Names that are at home elsewhere in `plait`: {TABLE[short]}."
        made.__path__ = []
