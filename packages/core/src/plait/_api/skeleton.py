"""Skeletons of distributions, for authors of plugins.

The files are kept beside this module, as texts with ${name}s, which are filled in.

Invariant: nothing is written unless everything can be: the name and the folder are checked first,
and no file is overwritten.
"""

import keyword
import re
import sys
from collections.abc import Collection
from importlib.machinery import PathFinder
from pathlib import Path
from string import Template

from .._base.errors import ArgumentError
from .._plugins.metadata import API_GROUP, HINTS, PLUGIN_API, TABLES, core_version, names
from .._plugins.rules import tables
from .inventory import version_text

__all__ = ["write_transform"]

TEXTS = Path(__file__).parent / "skeletons" / "transform"
TRANSFORM = {
    "project.txt": "pyproject.toml",
    "readme.txt": "README.md",
    "module.txt": "src/{name}/__init__.py",
    "typed.txt": "src/{name}/py.typed",
    "tests.txt": "tests/test_{name}.py",
}
"""The files of a skeleton: the text, and its path."""


def write_transform(name: str, folder: Path, core_names: Collection[str] = ()) -> list[Path]:
    """Write a distribution with a transformation, which passes its own tests; return its files.

    Args:
      name: the name of its package, its table and the function `plait.<name>`.
      folder: its folder; made if it does not exist.
      core_names: the public names of core itself.

    Raises:
      ArgumentError: `name` is not a valid package name, or is in use; `folder` is not empty, or
        cannot be written.
    """
    _judge_name(name, core_names)
    _judge_folder(folder)
    words = {
        "name": name,
        "class_name": "".join([part.capitalize() for part in name.split("_")]),
        "distribution": name.replace("_", "-"),
        "group": API_GROUP,
        "api": version_text(PLUGIN_API),
        "requires": _core_range(core_version()),
    }
    made = {
        folder / place.format(name=name): Template(
            (TEXTS / source).read_text(encoding="utf-8")
        ).substitute(words)
        for source, place in TRANSFORM.items()
    }
    try:
        for path, text in made.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as e:
        raise ArgumentError(
            f"{e.filename} cannot be written: {e.strerror}",
            fix="name a folder that you may write to",
        ) from None
    return list(made)


def _judge_name(name: str, core_names: Collection[str]) -> None:
    """Raise ArgumentError unless a package and a public name can have this name."""
    if not re.fullmatch(r"[a-z]([a-z0-9_]*[a-z0-9])?", name) or keyword.iskeyword(name):
        raise ArgumentError(
            f"{name!r} is not the name of a package",
            fix="give small letters, digits and, between them, _, like my_transform",
        )
    if name in core_names or name in HINTS or name in names("plait.api"):
        raise ArgumentError(
            f"plait.{name} is there already", fix=f"give another name, like my_{name}"
        )
    if name in tables() or name in TABLES or name in names("plait.tables"):
        raise ArgumentError(
            f"there is a table {name!r} already", fix=f"give another name, like my_{name}"
        )
    if name in sys.stdlib_module_names or _importable(name):
        raise ArgumentError(
            f"there is a module {name!r} already, which `import {name}` finds",
            fix=f"give another name, like my_{name}",
        )


def _importable(name: str) -> bool:
    """Return whether a module of this name is installed; mere folders do not count."""
    found = PathFinder.find_spec(name)
    return found is not None and found.origin is not None


def _judge_folder(folder: Path) -> None:
    """Raise ArgumentError unless files can be written into a folder of their own."""
    fix = "name a folder that is new or empty"
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"{folder} is a file", fix=fix)
    if folder.is_dir() and any(folder.iterdir()):
        first = min(p.name for p in folder.iterdir())
        raise ArgumentError(f"{folder} is not empty: it holds {first}", fix=fix)


def _core_range(version: str) -> str:
    """Return the range of cores that a plugin written today admits: from this one, whose PLUGIN_API
    it declares, up to the next release that may break it.

    >>> _core_range("0.1.2"), _core_range("1.4.0")
    ('>=0.1.2,<0.2', '>=1.4,<2')
    """
    found = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version)
    if found is None:
        return ""
    major, minor, patch = map(int, found.groups(default="0"))
    least = f"{major}.{minor}.{patch}" if patch else f"{major}.{minor}"
    return f">={least},<{f'0.{minor + 1}' if major == 0 else major + 1}"
