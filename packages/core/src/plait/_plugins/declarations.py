"""The declarations of installed distributions, read with little of Python's machinery.

`importlib.metadata` parses the description of a distribution whenever its name or version is read,
and takes longer to import than a first operation.  Ordinary folders are therefore read directly;
it reads the rest (zip files, and finders of other packages), and is imported for them alone.

Invariant: reading never raises.  A nonsensical declaration fails when it is loaded, where
the error can name its distribution.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import reduce
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Any, NamedTuple

PREFIX = "plait."
"""The prefix of the names of our groups of entry points."""
_REFERENCE = re.compile(r"([\w.]+)\s*(?::\s*([\w.]+)\s*)?(?:\[.*\]\s*)?")


class EntryPoint(NamedTuple):
    """A declaration of a distribution: the name of an object under a name in a group."""

    group: str
    name: str
    value: str

    @property
    def module(self) -> str:
        """The module that holds the object; "" if the value does not name one."""
        found = _REFERENCE.fullmatch(self.value)
        return found[1] if found else ""

    @property
    def attr(self) -> str:
        """The path of the object inside of its module; "" for the module itself."""
        found = _REFERENCE.fullmatch(self.value)
        return (found[2] or "") if found else ""

    def load(self) -> Any:
        """Import the module and return the object."""
        if not self.module:
            raise ValueError(f"expected module:object, got {self.value!r}")
        return reduce(getattr, filter(None, self.attr.split(".")), import_module(self.module))


class Distribution(NamedTuple):
    """An installed distribution with entry points in our groups."""

    name: str
    version: str
    points: tuple[EntryPoint, ...]


def distributions() -> Iterator[Distribution]:
    """Yield the distributions with entry points for Plait, in the order of `sys.path`.

    Of two with one name the first is yielded, which is also the one that is imported.
    """
    seen: set[str] = set()
    for found in _found():
        if found.name not in seen:
            seen.add(found.name)
            yield found


def _found() -> Iterator[Distribution]:
    for finder in list(sys.meta_path):
        if finder is PathFinder and hasattr(finder, "find_distributions"):
            for place in sys.path:
                yield from _of_place(str(place))
        elif hasattr(finder, "find_distributions"):
            yield from _otherwise(finder)


def _of_place(place: str) -> Iterator[Distribution]:
    """Yield the distributions of one entry of `sys.path`."""
    try:
        inside = os.listdir(place or ".")
    except NotADirectoryError:  # a zip file, or a folder inside of one
        yield from _otherwise(PathFinder, path=[place])
        return
    except (OSError, ValueError):  # ValueError: a path with a null character
        return
    egg = place.lower().endswith(".egg")
    for entry in inside:
        low = entry.lower()
        if low.endswith((".dist-info", ".egg-info")) or (egg and low == "egg-info"):
            found = _of_folder(os.path.join(place, entry))
            if found is not None:
                yield found


def _of_folder(folder: str) -> Distribution | None:
    """Read the distribution whose metadata is in a folder; None if it declares nothing for us."""
    points = entry_points(_text(folder, "entry_points.txt"))
    if not points:
        return None
    about = _text(folder, "METADATA") or _text(folder, "PKG-INFO")
    return _named(about, os.path.basename(folder), points)


def _otherwise(finder: Any, **context: Any) -> Iterator[Distribution]:
    """Yield the distributions that a finder gives to `importlib.metadata`."""
    from importlib.metadata import DistributionFinder  # 20 ms that ordinary folders need not take

    try:
        found = list(finder.find_distributions(DistributionFinder.Context(**context)))
    except Exception:
        return
    for dist in found:
        try:
            points = entry_points(dist.read_text("entry_points.txt") or "")
            about = (
                (dist.read_text("METADATA") or dist.read_text("PKG-INFO") or "") if points else ""
            )
        except Exception:
            continue
        if points:
            yield _named(about, os.path.basename(str(getattr(dist, "_path", ""))), points)


def _named(about: str, folder: str, points: tuple[EntryPoint, ...]) -> Distribution:
    """Return the distribution that a METADATA file is about.

    A file that is lost, as after an interrupted removal, leaves the name of its folder.
    """
    said = _headers(about.splitlines())
    name, _, version = os.path.splitext(folder)[0].partition("-")
    name = re.sub(r"[-_.]+", "-", said.get("name") or name).lower()
    return Distribution(name, said.get("version") or version or "unknown", points)


def _headers(lines: Iterable[str]) -> dict[str, str]:
    """Return the name and version of a METADATA file, whose headers end at its first empty line."""
    found: dict[str, str] = {}
    for line in lines:
        if not line or len(found) == 2:
            break
        key, _, value = line.partition(":")
        if key.lower() in ("name", "version"):
            found.setdefault(key.lower(), value.strip())
    return found


def entry_points(text: str) -> tuple[EntryPoint, ...]:
    """Return the entry points in our groups of an entry_points.txt file."""
    if f"[{PREFIX}" not in text:
        return ()
    points, group = [], ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1]
        elif line and not line.startswith("#") and group.startswith(PREFIX):
            name, _, value = line.partition("=")
            points.append(EntryPoint(group, name.strip(), value.strip()))
    return tuple(points)


def _text(folder: str, name: str) -> str:
    """Return a file's text; "" if it cannot be read."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
