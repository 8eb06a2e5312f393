"""Plugins of the runtime (PJRT): shared libraries that drive accelerators, found without jax.

Wheels such as `jax-cuda13-pjrt` put a folder with a library into the namespace package
`jax_plugins`, or name another one in the entry-point group of that name.  That group is read where
a platform is asked for by name, since it takes a tenth of the time to start.  The Python beside a
library imports jax, so it is not run: what it does is done by `jaxlib_api.make_plugin_client`.

Invariant: of a plugin nothing is imported here but modules of C, none of which imports jax.
"""

import importlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

GPUS = {"cuda": "CUDA", "rocm": "ROCM"}
"""Platforms of GPUs, which "gpu" names, and what the runtime calls them."""
_FIRST = (*GPUS, "tpu")
WHEELS = {
    "cuda": "jax-cuda13-plugin[with-cuda]",
    "rocm": "jax-rocm7-plugin",
    "tpu": "libtpu",
}
"""What to install for a platform; the version is that of jaxlib, but for libtpu."""


class Plugin(NamedTuple):
    """The library of a platform, and the package with its foreign functions, if there is one."""

    platform: str
    library: str
    extension: str | None


def plugins(asked: bool = False) -> list[Plugin]:
    """The plugins that are installed, one for each platform; those we know of come first.  `asked`:
    those too that only an entry point names."""
    found: dict[str, Plugin] = {}
    for name, folder in (*_folders(), *(_named() if asked else ())):
        platform = re.sub(r"^xla_|\d+$", "", name)
        libraries = sorted(folder.glob("*.so"))
        if libraries and platform not in found:
            found[platform] = Plugin(platform, str(libraries[0]), _extension(name, platform))
    order = {name: i for i, name in enumerate(_FIRST)}
    return sorted(found.values(), key=lambda p: (order.get(p.platform, len(order)), p.platform))


def _folders() -> Iterator[tuple[str, Path]]:
    """The folders that hold a library, by name; of two for one platform the later version first."""
    spec = importlib.util.find_spec("jax_plugins")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield from sorted(
            ((f.name, f) for f in Path(place).iterdir() if f.is_dir()), key=_version, reverse=True
        )
    spec = importlib.util.find_spec("libtpu")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        yield "tpu", Path(place)


def _named() -> Iterator[tuple[str, Path]]:
    """The folders that entry points name, which may be anywhere."""
    from importlib.metadata import entry_points  # 35 ms, of which most processes have no need

    for point in entry_points(group="jax_plugins"):
        top, *inner = point.module.split(".")
        spec = importlib.util.find_spec(top)  # of what is inside it would run the package
        for place in (spec.submodule_search_locations or ()) if spec else ():
            yield point.name, Path(place).joinpath(*inner)


def _extension(name: str, platform: str) -> str | None:
    """The package of foreign functions beside the plugin of a GPU."""
    package = f"jax_{name.removeprefix('xla_')}_plugin"
    if platform not in GPUS or importlib.util.find_spec(package) is None:
        return None
    there = importlib.util.find_spec(f"{package}.{platform}_plugin_extension")
    return None if there is None else package


def _version(item: tuple[str, Path]) -> tuple[int, str]:
    """The number that a name ends with, and the name."""
    number = re.search(r"\d+$", item[0])
    return int(number[0]) if number else 0, item[0]


def extension_modules(package: str, platform: str) -> list[Any]:
    """The modules of C with a platform's foreign functions: first the one that registers them, then
    those of linear algebra that there are."""
    names = (f"{platform}_plugin_extension", "_solver", "_linalg", "_prng", "_hybrid", "_sparse")
    there = [f"{package}.{n}" for n in names if importlib.util.find_spec(f"{package}.{n}")]
    return [importlib.import_module(name) for name in there]


def companions() -> list[str]:
    """Libraries of NVIDIA's wheels, which the library of the platform looks for by their names."""
    spec = importlib.util.find_spec("nvidia")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return sorted(str(p) for place in places for p in Path(place).glob("*/lib/lib*.so.[0-9]*"))
