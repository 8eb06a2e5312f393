"""Modules of Plait that are imported when they are first needed.

Surfaces such as `plait.numpy` and `plait.text` would make `import plait` slow.  They lie above
modules that occasionally need one of them: the method `x.std()` is the function of `plait.numpy`,
and `plait.text` writes the text of a program.

Invariant: besides the loader of plugins, this is the only place that imports a module by a name.
"""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

__all__ = ["later", "later_names"]


@cache
def later(name: str) -> ModuleType:
    """Return the module `plait.<name>`; import it if needed."""
    return import_module(f"plait.{name}")


def later_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package that imports its modules at their first use.

    The use of one name of a plugin then does not import all of its modules.  Its functions explain
    calls that do not fit their signature.

    Args:
      package: the package, its `__name__`.
      homes: {module of the package: its names that the package offers, separated by spaces}.

    Example:
      >>> get, names = later_names("json", {"decoder": "JSONDecoder JSONDecodeError"})
      >>> names(), get("JSONDecoder").__module__
      (['JSONDecodeError', 'JSONDecoder'], 'json.decoder')
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def __getattr__(name: str) -> Any:
        if name not in home:
            raise _unknown(package, name, list(home))
        found = getattr(import_module(f"{package}.{home[name]}"), name)
        found = later("_base.tracebacks").explained_call(found, package, name)
        setattr(sys.modules[package], name, found)
        return found

    def __dir__() -> list[str]:
        return sorted(home)

    return __getattr__, __dir__


def advise(module: str, namespace: dict[str, Any]) -> None:
    """Make the error for an unknown name of a module give the names that are like it.

    It is done at run time, since checkers of types accept any name of a module with a function
    `__getattr__`.  The function that a module has already comes first.

    Args:
      module: the name under which users find the module.
      namespace: its `globals()`.
    """
    own = namespace.get("__getattr__", _no_name)

    def find(name: str) -> Any:
        try:
            return own(name)
        except AttributeError:
            known = namespace.get("__all__") or list(namespace)
        raise _unknown(module, name, known)

    namespace["__getattr__"] = find


def _no_name(name: str) -> Any:
    raise AttributeError(name)


def _unknown(module: str, name: str, known: list[str]) -> AttributeError:
    """Return the error for a name that a module lacks."""
    if name.startswith("_"):
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    return later("_base.spelling").no_name(module, name, lambda: known)
