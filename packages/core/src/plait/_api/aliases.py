"""Modules that hold names of other modules, where programs written for JAX look for them.

Core's modules are lines of a table.  Their names are names of `plait`, or are written `name=path`,
where `path` is the name here.  Plugins declare theirs as entry points in the group `plait.modules`:
`custom_derivatives.custom_jvp` puts a name into `plait.custom_derivatives`.

A module that a plugin offers, such as `plait.numpy` or `plait.ext.ops.linalg`, and all modules in
it, are the plugin's own: `import plait.numpy.linalg` gives `plait_numpy.numpy.linalg`.

Invariant: no public name is defined here, and core names no plugin.  Such a module is made at its
first use, and metadata is read then.  No module of a plugin is loaded twice, under two names.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, cast

from .._base.errors import MissingPlugin, PluginError
from .._base.lazy import later
from .._plugins.metadata import EXTENSIONS, HINTS, MODULES, SURFACES, declared, names, resolve

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


OFFERING = (*SURFACES, EXTENSIONS)
"""Groups of entry points with which plugins add names to `plait` and to its modules."""


class Alias(ModuleType):
    """A module that holds names of other modules."""

    def __getattr__(self, name: str) -> Any:
        short = self.__name__.partition(".")[2]
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

    def __reduce__(self) -> tuple:
        return import_module, (self.__name__,)  # pickle has no other way for a module

    def __dir__(self) -> list[str]:
        short = self.__name__.partition(".")[2]
        below = [n[len(short) + 1 :] for n in _declared() if n.startswith(short + ".")]
        return sorted({*_paths(short), *(n for n in below if "." not in n)})


class _Loader:
    """The loader of modules without files, and of plugins' modules under their public names.

    It does not derive from `importlib.abc`, whose import takes longer than that of core itself.
    """

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if spec.origin is None:
            return Alias(spec.name, "Names that are at home elsewhere in `plait`.")
        module = import_module(spec.origin)
        _specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give a plugin's module its own specification back, which the import replaced."""
        spec = module.__spec__
        if spec is not None and spec.name in _specs:
            module.__spec__ = _specs.pop(spec.name)


def _spec(name: str, home: str | None = None) -> ModuleSpec:
    return ModuleSpec(name, cast(Any, _Loader()), origin=home, is_package=True)


class SubmoduleFinder:
    """The finder of modules inside plugins' modules, by their public names; it comes first.

    `plait.numpy` has the path of the plugin's package, where the finder of files would find
    `plait.numpy.linalg`, and load it a second time under that name.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None or not _root or not fullname.startswith(_root[0].__name__ + "."):
            return None
        above, _, leaf = fullname.rpartition(".")
        parent = sys.modules.get(above)
        if parent is None or parent.__name__ == above:
            return None
        home = f"{parent.__name__}.{leaf}"
        return None if find_spec(home) is None else _spec(fullname, home)


class AliasFinder:
    """The finder of alias modules, and of plugins' modules; it comes after all other finders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        head, _, short = fullname.partition(".")
        if not _root or head != _root[0].__name__ or not short:
            return None
        if (home := home_of(short)) is not None:
            return _spec(fullname, home)
        if is_module(short):
            return _spec(fullname)
        group, name = _group_of(short)
        name = name if group != "plait.api" else name.partition(".")[0]
        if short in MODULES or (name in HINTS and not declared(group, name)):
            try:
                resolve(*((short,) if short in MODULES else (name, group)))
            except MissingPlugin as e:  # an ImportError, or `import` would lose its text
                raise PluginError(e.what, fix=e.fix) from None
        return None


def is_module(short: str) -> bool:
    """Return whether `plait.<short>` is an alias module."""
    return short in TABLE or any(n.startswith(short + ".") for n in (*TABLE, *_declared()))


def home_of(short: str) -> str | None:
    """Return the name of the module that a plugin offers as `plait.<short>`; None without one.

    The plugin is loaded, by the one place that loads plugins.
    """
    group, name = _group_of(short)
    if any(not d.point.attr for d in declared(group, name)):
        return resolve(name, group).__name__
    return None


def _group_of(short: str) -> tuple[str, str]:
    """Return the group of entry points and the name in it that could offer `plait.<short>`."""
    head, _, rest = short.partition(".")
    return (f"plait.{head}", rest) if rest and f"plait.{head}" in OFFERING else ("plait.api", short)


def _declared() -> list[str]:
    """Return the names that plugins declare, as `module.name`."""
    return names(GROUP)


def _paths(short: str) -> dict[str, str]:
    """Return core's names of a module, with their paths in `plait`."""
    pairs = [entry.partition("=") for entry in TABLE.get(short, "").split()]
    return {name: path or name for name, _, path in pairs}


_root: list[ModuleType] = []
_specs: dict[str, ModuleSpec | None] = {}
"""The specifications of plugins' modules, while they are imported under their public names."""


def make(root: ModuleType) -> None:
    """Let such modules be found, as submodules of `root`, which has the names of core's table."""
    _root[:] = [root]
    if not any(isinstance(f, AliasFinder) for f in sys.meta_path):
        sys.meta_path.insert(0, SubmoduleFinder())
        sys.meta_path.append(AliasFinder())
