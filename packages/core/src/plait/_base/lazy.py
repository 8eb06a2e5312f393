"""Modules of our own that are imported when somebody first needs them.

Surfaces such as `plait.numpy` and `plait.text` would make `import plait` slow, and lie above what
now and then needs one of them: the method `x.std()` is the function of `plait.numpy`, the text of a
program is written by `plait.text`.

Invariant: besides the loader of plugins, this is the only place that imports a module by a name.
"""

from functools import cache
from importlib import import_module
from types import ModuleType

__all__ = ["later"]


@cache
def later(name: str) -> ModuleType:
    """Return the module `plait.<name>`; import it first if nobody has."""
    return import_module(f"plait.{name}")
