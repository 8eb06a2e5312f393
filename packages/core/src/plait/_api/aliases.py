"""Modules that hold names of other modules, where programs written for JAX look for them.

Core's modules are lines of a table.  Their names are names of `plait`, or are written `name=path`,
where `path` is the name here.  Plugins declare theirs as entry points in the group `plait.modules`:
`custom_derivatives.custom_jvp` puts a name into `plait.custom_derivatives`.  A public name that is
itself a module, such as `plait.export`, can be imported as one.

Invariant: no public name is defined here, and core names no plugin.  Such a module is made at its
first use, and metadata is read then.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

from .._base.errors import MissingPlugin, PluginError
from .._base.lazy import later
from .._plugins.metadata import HINTS, MODULES, declared, names, resolve

TABLE = {
    "core": (
        "ShapedArray=_types.avals.Aval Tracer=_core.interpreter.Tracer Literal=_core.array.Literal "
        "ensure_compile_time_eval max_dim=_types.dims.max_dim min_dim=_types.dims.min_dim"
    ),
    "dlpack": "from_dlpack=numpy.from_dlpack",
    "experimental": "io_callback enable_x64",
    "experimental.pjit": "pjit=jit",
}
"""Core's modules -> their names."""

GROUP = "plait.modules"
"""Entry points with which plugins add names to such modules: `module.name = "where:it_is"`."""


class Alias(ModuleType):
    """A module that holds names of other modules."""

    def __getattr__(self, name: str) -> Any:
        short = self.__name__.partition(".")[2]
        if name == "__all__" and _is_public(short):  # for `from plait.export import *`
            return resolve(short).__all__
        if name.startswith("__"):
            raise AttributeError(name)
        full, path = f"{short}.{name}", _paths(short).get(name)
        try:
            if path is not None:
                x: Any = _root[0]
                for part in path.split("."):
                    x = getattr(x, part)
            elif declared(GROUP, full):
                x = resolve(full, GROUP)
            elif is_module(full):
                x = later(full)
            elif _is_public(short):
                x = getattr(resolve(short), name)
            else:
                raise MissingPlugin(
                    f"{self.__name__} has no {name!r}",
                    fix=f"it has {', '.join(dir(self))}; docs/differences.md lists what there is "
                    "not",
                )
        except PluginError as e:
            raise MissingPlugin(e.what, fix=e.fix) from None
        self.__dict__[name] = x
        return x

    def __dir__(self) -> list[str]:
        short = self.__name__.partition(".")[2]
        if _is_public(short):
            return dir(resolve(short))
        below = [n[len(short) + 1 :] for n in _declared() if n.startswith(short + ".")]
        return sorted({*_paths(short), *(n for n in below if "." not in n)})


class AliasFinder:
    """The finder of modules without files; it comes after all other finders.

    It does not derive from `importlib.abc`, whose import takes longer than that of core itself.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        head, _, short = fullname.partition(".")
        if not _root or head != _root[0].__name__ or not short:
            return None
        if is_module(short):
            loader = cast(Any, self)  # a Loader by its methods
            return ModuleSpec(fullname, loader, is_package=True)
        if short in MODULES or (short in HINTS and not declared("plait.api", short)):
            try:
                resolve(short)
            except MissingPlugin as e:  # an ImportError, or `import` would lose its text
                raise PluginError(e.what, fix=e.fix) from None
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Alias(spec.name, "Names that are at home elsewhere in `plait`.")

    def exec_module(self, module: ModuleType) -> None:
        pass


def is_module(short: str) -> bool:
    """Return whether `plait.<short>` is an alias module."""
    return (
        short in TABLE
        or any(n.startswith(short + ".") for n in (*TABLE, *_declared()))
        or _is_public(short)
    )


def _is_public(short: str) -> bool:
    """Return whether a plugin offers a module of its own as the public name `short`."""
    return any(not d.point.attr for d in declared("plait.api", short))


def _declared() -> list[str]:
    """Return the names that plugins declare, as `module.name`."""
    return names(GROUP)


def _paths(short: str) -> dict[str, str]:
    """Return core's names of a module, with their paths in `plait`."""
    pairs = [entry.partition("=") for entry in TABLE.get(short, "").split()]
    return {name: path or name for name, _, path in pairs}


_root: list[ModuleType] = []


def make(root: ModuleType) -> None:
    """Let such modules be found, as submodules of `root`, which has the names of core's table."""
    _root[:] = [root]
    if not any(isinstance(f, AliasFinder) for f in sys.meta_path):
        sys.meta_path.append(AliasFinder())
