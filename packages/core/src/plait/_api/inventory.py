"""The inventory: the installed distributions of Plait and its plugins, and their contents.

Invariant: all of it is read from the metadata of installed distributions.  The declarations of a
plugin are shown unchanged, even if the setting `plugins` leaves it out.
"""

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import NamedTuple

from .._base.config import config
from .._base.errors import PlaitError
from .._core.primitive import primitives
from .._plugins.metadata import (
    API_GROUP,
    CORE,
    DISTRIBUTION_OF,
    EXTENSIONS,
    FORMER_NAMES,
    GUARDS,
    PAGES,
    PLUGIN_API,
    Declared,
    admitted,
    declared_api,
    install_command,
    installed,
    load,
    misfit,
)
from .._plugins.metadata import scan as scanned

__all__ = [
    "KNOWN_GROUPS", "MODULES", "RULES", "Installed", "broken", "columns", "distributions",
    "inventory_text", "no_plugin", "one_line", "version_text",
]  # fmt: skip

MODULES = {"plait.api": "plait", "plait.lax": "plait.lax", "plait.debug": "plait.debug"}
"""The groups that declare public names, and the modules that have these names."""
RULES = "plait.rules."
"""The prefix of groups of rules; the name of the table follows."""
KNOWN_GROUPS = frozenset(
    (
        *MODULES,
        API_GROUP,
        EXTENSIONS,
        GUARDS,
        FORMER_NAMES,
        "plait.modules",
        "plait.tables",
        "plait.primitives",
        "plait.laws",
        PAGES,
        "plait.sections",
    )
)
"""The other groups of entry points that Plait reads."""

WIDTH = 100


class Installed(NamedTuple):
    """A distribution with entry points in groups of Plait."""

    name: str
    version: str
    points: tuple[Declared, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def takes_part(self) -> bool:
        """True if the setting `plugins` admits it."""
        return admitted(self.name)

    @property
    def api(self) -> str:
        """The PLUGIN_API that it was built for, in words."""
        built = PLUGIN_API if self.name == CORE else declared_api(self.name)
        return "declares no plugin API" if built is None else f"plugin API {version_text(built)}"

    @property
    def wrong(self) -> PlaitError | None:
        """The error of a distribution that does not fit this core, else None."""
        return misfit(self.points[0])

    def of(self, group: str) -> list[str]:
        """Return the names that it declares in a group."""
        return sorted({d.point.name for d in self.points if d.point.group == group})


def version_text(version: tuple[int, int]) -> str:
    """Return a version of the plugin API as text.

    >>> version_text((1, 0))
    '1.0'
    """
    return ".".join(map(str, version))


def distributions() -> list[Installed]:
    """Return core, if it is installed as a distribution, and every installed plugin, by name."""
    found: dict[str, list[Declared]] = {}
    for group, name in scanned():
        for d in installed(group, name):
            found.setdefault(d.distribution, []).append(d)
    each = [Installed(name, ds[0].version, tuple(ds)) for name, ds in found.items()]
    return sorted(each, key=lambda i: (i.name != CORE, i.name))


def broken(points: Iterable[Declared]) -> list[tuple[Declared, PlaitError]]:
    """Return the entry points that cannot be loaded, with their errors."""
    found = []
    for d in points:
        try:
            load(d)
        except PlaitError as e:
            found.append((d, e))
    return found


def columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return rows of texts with their columns aligned.

    >>> columns([("a", "1"), ("long", "2")])
    ['a     1', 'long  2']
    """
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(t.ljust(w) for t, w in zip(row, widths)).rstrip() for row in rows]


def inventory_text() -> str:
    """Return the installed plugins as text: versions, tables, primitives, rules, public names."""
    plugins = [i for i in distributions() if i.name != CORE]
    if not plugins:
        return no_plugin()
    return "\n\n".join("\n".join(_described(plugin)) for plugin in plugins)


def no_plugin() -> str:
    """Return the line of a report on an installation without plugins."""
    return f"no plugin is installed; for those of the project:  {install_command(*DISTRIBUTION_OF)}"


def _described(plugin: Installed) -> list[str]:
    head = f"{plugin}, {plugin.api}"
    if not plugin.takes_part:
        return [f"{head}, left out by PLAIT_PLUGINS={config.plugins}"]
    if plugin.wrong is not None:
        return [head, f"  does not fit: {one_line(plugin.wrong.what)}"]
    rows = [
        ("names", [f"{m}.{n}" for group, m in MODULES.items() for n in plugin.of(group)]),
        ("tables", plugin.of("plait.tables")),
        ("primitives", _primitives(plugin)),
        ("rules", _rules(plugin)),
        ("laws", plugin.of("plait.laws")),
    ]
    lines = [head]
    for label, told in rows:
        if told:
            start = f"  {label:<12}"
            lines += wrap(", ".join(told), WIDTH, initial_indent=start, subsequent_indent=" " * 14)
    return lines


def _rules(plugin: Installed) -> list[str]:
    """Return the tables that it has rules for, each with the namespaces of the primitives."""
    groups = sorted({d.point.group for d in plugin.points if d.point.group.startswith(RULES)})
    return [f"{g.removeprefix(RULES)} of {'/'.join(plugin.of(g))}" for g in groups]


def _primitives(plugin: Installed) -> list[str]:
    """Return the primitives of its namespaces, and the errors of modules that cannot be loaded."""
    points = [d for d in plugin.points if d.point.group == "plait.primitives"]
    failed = [f"{d.point.name} ({one_line(e.what)})" for d, e in broken(points)]
    spaces = {d.point.name for d in points}
    return sorted(p.name for p in primitives().values() if p.namespace in spaces) + failed


def one_line(text: str) -> str:
    """Return a text in one line."""
    return " ".join(text.split())
