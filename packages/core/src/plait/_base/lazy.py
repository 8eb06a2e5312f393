"""Modules of Plait that are imported when they are first needed.

Surfaces such as `plait.numpy` and `plait.text` would make `import plait` slow.  They lie above
modules that occasionally need one of them: the method `x.std()` is the function of `plait.numpy`,
and `plait.text` writes the text of a program.

Invariant: besides the loader of plugins, this is the only place that imports a module by a name.
"""

from functools import cache
from importlib import import_module
from types import ModuleType

__all__ = ["later"]


@cache
def later(name: str) -> ModuleType:
    """Return the module `plait.<name>`; import it if needed."""
    return import_module(f"plait.{name}")
