"""Plugins of the runtime (PJRT): shared libraries that drive accelerators, found without jax.

Wheels such as `jax-cuda13-pjrt` put a folder with a library into the namespace package
`jax_plugins`, or name another folder in the entry-point group of that name.  That group is read
only if the user names a platform, since reading it takes a tenth of the time to start.  The Python
code beside a library imports jax, so it is not run; `jaxlib_api.make_plugin_client` does its work.

Invariant: the only modules of a plugin that are imported here are C modules that do not import jax.
"""

import importlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .entry_points import distributions

GPUS = {"cuda": "CUDA", "rocm": "ROCM"}
"""The platforms that "gpu" names, with the runtime's names for them."""
_FIRST = (*GPUS, "tpu")
WHEELS = {
    "cuda": "jax-cuda13-plugin[with-cuda]",
    "rocm": "jax-rocm7-plugin",
    "tpu": "libtpu",
}
"""The wheel to install for each platform; its version is jaxlib's, except for libtpu."""


class Plugin(NamedTuple):
    """The library of a platform, and the package with its foreign functions, if there is one."""

    platform: str
    library: str
    extension: str | None


def plugins(asked: bool = False) -> list[Plugin]:
    """Return the installed plugins, one for each platform; those of known platforms come first.

    With `asked`, plugins that only an entry point names are included.
    """
    found: dict[str, Plugin] = {}
    for name, folder in (*_folders(), *(_named() if asked else ())):
        platform = re.sub(r"^xla_|\d+$", "", name)
        libraries = sorted(folder.glob("*.so"))
        if libraries and platform not in found:
            found[platform] = Plugin(platform, str(libraries[0]), _extension(name, platform))
    order = {name: i for i, name in enumerate(_FIRST)}
    return sorted(found.values(), key=lambda p: (order.get(p.platform, len(order)), p.platform))


def _folders() -> Iterator[tuple[str, Path]]:
    """Yield (name, folder) of folders that hold a library; of two for one platform, the later
    version comes first."""
    spec = importlib.util.find_spec("jax_plugins")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield from sorted(
            ((f.name, f) for f in Path(place).iterdir() if f.is_dir()), key=_version, reverse=True
        )
    spec = importlib.util.find_spec("libtpu")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield "tpu", Path(place)


def _named() -> Iterator[tuple[str, Path]]:
    """Yield (name, folder) for the folders that entry points name, which may be anywhere."""
    group = "jax_plugins"
    for point in [p for d in distributions(group)[0] for p in d.points if p.group == group]:
        top, *inner = point.module.split(".")
        spec = importlib.util.find_spec(top)  # finding an inner module would run the package
        for place in (spec.submodule_search_locations or ()) if spec else ():
            yield point.name, Path(place).joinpath(*inner)


def _extension(name: str, platform: str) -> str | None:
    """Return the package of foreign functions beside the plugin of a GPU."""
    package = f"jax_{name.removeprefix('xla_')}_plugin"
    if platform not in GPUS or importlib.util.find_spec(package) is None:
        return None
    there = importlib.util.find_spec(f"{package}.{platform}_plugin_extension")
    return None if there is None else package


def _version(item: tuple[str, Path]) -> tuple[int, str]:
    """Return (the number that a name ends with, the name)."""
    number = re.search(r"\d+$", item[0])
    return int(number[0]) if number else 0, item[0]


def extension_modules(package: str, platform: str) -> list[Any]:
    """Return the C modules with a platform's foreign functions: first the one that registers them,
    then the available modules of linear algebra."""
    names = (f"{platform}_plugin_extension", "_solver", "_linalg", "_prng", "_hybrid", "_sparse")
    there = [f"{package}.{n}" for n in names if importlib.util.find_spec(f"{package}.{n}")]
    return [importlib.import_module(name) for name in there]


def companions() -> list[str]:
    """Return NVIDIA's libraries in wheels, which the platform's library looks up by name."""
    spec = importlib.util.find_spec("nvidia")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return sorted(str(p) for place in places for p in Path(place).glob("*/lib/lib*.so.[0-9]*"))
