"""Entry points of installed distributions, of which some may be broken.

Python's own functions raise at the first distribution that they cannot read.  An installation that
was interrupted, or one with a single bad line, would then take every plugin with it.

Invariant: a distribution, or a line of its entry points, that cannot be read is reported and left
out; all others are found.
"""

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint


class Found(NamedTuple):
    """An entry point, with the name and the version of its distribution."""

    point: "EntryPoint"
    distribution: str
    version: str


class Unread(NamedTuple):
    """A distribution that cannot be read, by name or folder, or a line of it; and why."""

    distribution: str
    why: str


def found(wanted: Callable[[str], bool], mark: str) -> tuple[list[Found], list[Unread]]:
    """Return the entry points of the groups that are `wanted`, and what could not be read.

    Only files that contain `mark` are read; parsing those of every distribution would take most of
    the first operation.
    """
    from importlib.metadata import EntryPoint, distributions  # 20 ms that imports need not take

    points: list[Found] = []
    unread: list[Unread] = []
    seen: set[str] = set()
    for dist in distributions():
        try:
            text = dist.read_text("entry_points.txt") or ""
            if mark not in text:
                continue
            name, version = _identity(dist)
        except Exception as e:  # of any kind: the files may hold anything
            unread.append(Unread(_folder(dist), f"{type(e).__name__}: {e}"))
            continue
        if name in seen:  # an earlier folder of sys.path wins, as it does for imports
            continue
        seen.add(name)
        for group, line in _lines(text):
            if wanted(group):
                key, equals, value = line.partition("=")
                if _MODULE.match(value.strip()) and equals:
                    points.append(
                        Found(EntryPoint(key.strip(), value.strip(), group), name, version)
                    )
                else:
                    unread.append(Unread(name, f"{line!r} of [{group}] is not an entry point"))
    return points, unread


_MODULE = re.compile(r"[\w.]+\s*(:|\[|$)")


def _identity(dist: "Distribution") -> tuple[str, str]:
    """Return the name and the version of a distribution; ValueError if it has no name."""
    told = dist.read_text("METADATA") or dist.read_text("PKG-INFO") or ""
    head = told.partition("\n\n")[0]
    name = re.search(r"^name\s*:\s*(\S+)\s*$", head, re.IGNORECASE | re.MULTILINE)
    version = re.search(r"^version\s*:\s*(\S+)\s*$", head, re.IGNORECASE | re.MULTILINE)
    if name is None:
        raise ValueError("its METADATA is missing, or has no name")
    return re.sub(r"[-_.]+", "-", name[1]).lower(), version[1] if version else "of no version"


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield (group, line) of a file of entry points."""
    group = ""
    for row in text.splitlines():
        line = row.strip()
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif line and not line.startswith(("#", ";")):
            yield group, line


def _folder(dist: "Distribution") -> str:
    return str(getattr(dist, "_path", "a distribution"))
