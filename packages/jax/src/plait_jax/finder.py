"""The import of `jax`: a finder of its modules, and of the metadata of the distribution jax.

Invariant: while installed, it comes before all other finders, and finds only `jax` and the modules
below it.  It imports Plait only when jax is imported.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["VERSION", "JaxFinder", "install", "installed", "part", "uninstall"]

VERSION = "0.10.2"
"""The version of JAX whose names Plait provides."""


def part(name: str) -> ModuleType:
    """Return a module of this package; the first call imports it, and Plait with it."""
    return import_module(f"plait_jax.{name}")


class JaxDistribution(Distribution):
    """The distribution metadata of jax, for `importlib.metadata`."""

    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: jax\nVersion: {VERSION}\n"
        return "jax\n" if filename == "top_level.txt" else None

    def locate_file(self, path: Any) -> Any:
        return Path(__file__).parent / path


class Module(ModuleType):
    """A module of JAX whose attributes are looked up on first access."""

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":  # what `from module import *` asks for
            return part("names").exported(self.__name__)
        found = part("names").found(self.__name__, name)
        self.__dict__[name] = found
        return found

    def __reduce__(self) -> tuple:
        return _imported, (self.__name__,)

    def __dir__(self) -> list[str]:
        own = [name for name in self.__dict__ if not name.startswith("_")]
        return sorted({*own, *part("names").public(self.__name__)})


class JaxFinder(MetaPathFinder, Loader):
    """Finds `jax` and the modules below it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "jax":
            return None
        if fullname not in part("names").NAMES:
            return None
        return ModuleSpec(fullname, self, origin=__file__, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = Module(spec.name, f"`{spec.name}` of JAX {VERSION}, by Plait.")
        module.__file__ = __file__
        return module

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ == "jax":
            part("names").begin()

    def find_distributions(self, context: object = None) -> Iterable[Distribution]:  # pyright: ignore
        name = getattr(context or DistributionFinder.Context(), "name", None)
        return [JaxDistribution()] if name in (None, "jax") else []


def _imported(name: str) -> ModuleType:
    """Return a module of JAX that was pickled by its name, perhaps in another process."""
    install()
    return import_module(name)


def installed() -> bool:
    """Return whether `import jax` imports Plait's modules."""
    return any(isinstance(f, JaxFinder) for f in sys.meta_path)


def install() -> None:
    """Make `import jax`, and imports below it, return Plait's modules from now on.

    JAX_ENABLE_X64 selects whether Python numbers have 64 bits, as it does for jax; without it they
    have 32.

    Raises PlaitError if jax itself is imported already: code that holds its functions would mix
    arrays of two kinds.

    >>> install()
    >>> import jax
    >>> jax.__version__
    '0.10.2'
    """
    if installed():
        return
    if "jax" in sys.modules:
        raise part("requests").PlaitError(
            f"jax itself is imported in this process (from {_origin(sys.modules['jax'])})",
            fix="call plait_jax.install() before the first `import jax`, or start Python as "
            "`python -m plait_jax script.py`",
        )
    sys.meta_path.insert(0, JaxFinder())


def uninstall() -> None:
    """Remove the finder, and the modules of `jax` that it made; for tests.

    >>> uninstall()
    """
    sys.meta_path[:] = [f for f in sys.meta_path if not isinstance(f, JaxFinder)]
    for name in [n for n, m in sys.modules.items() if isinstance(m, Module)]:
        del sys.modules[name]


def _origin(module: ModuleType) -> str:
    """Return the folder that a module comes from, in words."""
    file = getattr(module, "__file__", None)
    return os.path.dirname(file) if file else "an unknown place"
