"""The names of JAX, as `plait_jax` knows them.

    python tests/libraries/names_of_jax.py            # say whether names.txt is JAX's
    python tests/libraries/names_of_jax.py --write    # write it

It runs where the version of jax that `plait_jax` speaks for is installed.

Invariant: names are read from the modules themselves; a line of the file is a module and its names.
"""

import importlib
import pkgutil
import sys
import types
import warnings
from pathlib import Path

import jax

FILE = Path(__file__).parents[2] / "packages" / "jax" / "src" / "plait_jax" / "names.txt"

INNER = """
api_util core ad_util checkify compiler config custom_derivatives dispatch distributed dtypes earray
flatten_util interpreters interpreters.pxla lax linear_util literals numpy prng random state
state.types traceback_util tree_util typing util xla_bridge
"""
"""Modules of `jax._src` that libraries look into."""

LEFT_OUT = (
    "jax.extend.mlir.dialects.",
    "jax.experimental.jax2tf",
    "jax.experimental.mosaic",
    "jax.experimental.pallas",
    "jax.experimental.roofline",
    "jax.experimental.slab",
    "jax.experimental.source_mapper",
    "jax.tools",
)
"""Modules that need more than jax, or that nobody imports for a library's sake."""


def modules() -> list[str]:
    """The public modules of jax, and those inner ones."""
    found = ["jax", "jax._src", *(f"jax._src.{name}" for name in INNER.split())]
    for info in pkgutil.walk_packages(jax.__path__, "jax.", onerror=lambda name: None):
        public = not info.name.startswith("jax._") or info.name.startswith("jax._src.lib")
        if public and "._" not in info.name and not info.name.startswith(LEFT_OUT):
            found.append(info.name)
    return sorted({*found})


def names(full: str) -> list[str] | None:
    """The names of a module; None if it can not be imported."""
    try:
        module = importlib.import_module(full)
    except Exception:  # whatever an optional module needs
        return None
    inner = full.startswith("jax._src")
    found = []
    for name in dir(module):
        if name.startswith("__") or (name[0] == "_" and not inner):
            continue
        try:
            value = getattr(module, name)
        except Exception:  # a name that was taken away says so when it is asked for
            continue
        foreign = isinstance(value, types.ModuleType) and value.__name__ != f"{full}.{name}"
        if not foreign or full in ("jax", "jax._src") or full.startswith("jax.extend"):
            found.append(name)
    return found


def text() -> str:
    """The contents of the file."""
    lines = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for full in modules():
            found = names(full)
            if found is not None:
                lines.append(" ".join([full, *found]))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv:
        FILE.write_text(text(), encoding="utf-8")
    else:
        sys.exit(FILE.read_text(encoding="utf-8") != text())
