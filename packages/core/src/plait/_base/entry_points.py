"""Entry points of installed distributions, including broken ones.

`importlib.metadata` parses the description of a distribution whenever its name or version is read,
and takes longer to import than a first operation.  Ordinary folders are therefore read directly;
it reads the rest (zip files, and finders of other packages), and is imported for them alone.  It
also raises at the first distribution that it cannot read.  An installation that was interrupted, or
one with a single bad line, would then take every plugin with it.

Invariant: reading never raises.  A distribution, or a line of its entry points, that cannot be read
is reported and left out; all others are found.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import reduce
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Any, NamedTuple

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
    """An installed distribution with entry points in the groups that are looked for."""

    name: str
    version: str
    points: tuple[EntryPoint, ...]


class Unread(NamedTuple):
    """A distribution that cannot be read, by name or folder, or a line of it; and why."""

    distribution: str
    why: str


def distributions(prefix: str) -> tuple[list[Distribution], list[Unread]]:
    """Return the distributions with entry points in groups whose names begin with `prefix`, in the
    order of `sys.path`; and what could not be read.

    Of two with one name the first is returned, which is also the one that is imported.
    """
    found: dict[str, Distribution] = {}
    unread: list[Unread] = []
    for place, read in _folders():
        try:
            text = read("entry_points.txt")
            if f"[{prefix}" not in text:
                continue
            name, version = _identity(read("METADATA") or read("PKG-INFO"))
        except Exception as e:  # of any kind: the files may hold anything
            unread.append(Unread(place, f"{type(e).__name__}: {e}"))
            continue
        if name not in found:
            points, bad = _entry_points(text, prefix)
            found[name] = Distribution(name, version, tuple(points))
            unread += [Unread(name, line) for line in bad]
    return list(found.values()), unread


Read = Callable[[str], str]  # the name of a file of a distribution -> its text, "" if there is none


def _folders() -> Iterator[tuple[str, Read]]:
    """Yield, for each distribution, a name of its place and a reader of its files."""
    for finder in list(sys.meta_path):
        if finder is PathFinder and hasattr(finder, "find_distributions"):
            for place in sys.path:
                yield from _of_place(str(place))
        elif hasattr(finder, "find_distributions"):
            yield from _otherwise(finder)


def _of_place(place: str) -> Iterator[tuple[str, Read]]:
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
            folder = os.path.join(place, entry)
            yield folder, lambda name, folder=folder: _text(os.path.join(folder, name))


def _otherwise(finder: Any, **context: Any) -> Iterator[tuple[str, Read]]:
    """Yield the distributions that a finder gives to `importlib.metadata`."""
    from importlib.metadata import DistributionFinder  # 20 ms that ordinary folders need not take

    try:
        found = list(finder.find_distributions(DistributionFinder.Context(**context)))
    except Exception:
        return
    for dist in found:
        place = str(getattr(dist, "_path", "a distribution"))
        yield place, lambda name, dist=dist: dist.read_text(name) or ""


def _text(path: str) -> str:
    """Return a file's text; "" if there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):  # the metadata may be one file, not a folder
        return ""


def _identity(about: str) -> tuple[str, str]:
    """Return the name and the version of a distribution; ValueError if it has no name."""
    said: dict[str, str] = {}
    for line in about.splitlines():
        if not line or len(said) == 2:  # the headers end at the first empty line
            break
        key, _, value = line.partition(":")
        if key.strip().lower() in ("name", "version"):
            said.setdefault(key.strip().lower(), value.strip())
    if not said.get("name"):
        raise ValueError("its METADATA is missing, or has no name")
    return re.sub(r"[-_.]+", "-", said["name"]).lower(), said.get("version") or "unknown"


def _entry_points(text: str, prefix: str) -> tuple[list[EntryPoint], list[str]]:
    """Return the entry points in groups whose names begin with `prefix`, and bad lines of them."""
    points, bad, group = [], [], ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif line and not line.startswith(("#", ";")) and group.startswith(prefix):
            name, _, value = (part.strip() for part in line.partition("="))
            if _REFERENCE.fullmatch(value) and name:
                points.append(EntryPoint(group, name, value))
            else:
                bad.append(f"{line!r} of [{group}] is not an entry point")
    return points, bad
