"""A diagnosis of the installation: its distributions, and a command to type for each fault.

Invariant: a fault of a plugin is reported, and never raised; a plugin that the setting `plugins`
leaves out is named, and not loaded.  An entry point may serve a distribution that is absent.
"""

import re
import sys
import warnings
from collections.abc import Container, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from typing import NamedTuple

import numpy as np

from .._base import jaxlib_api
from .._base.config import config
from .._base.errors import DuplicateRule, MissingPlugin, PlaitError
from .._core.primitive import primitives
from .._plugins.metadata import (
    API_GROUP,
    CORE,
    DISTRIBUTION_OF,
    PLUGIN_API,
    Declared,
    core_version,
    extra_of,
    install_command,
    installed,
    lacking,
    unread,
)
from .._plugins.rules import tables
from .hardware import default_backend, device_count
from .inventory import (
    KNOWN_GROUPS,
    MODULES,
    RULES,
    Installed,
    broken,
    columns,
    distributions,
    no_plugin,
    one_line,
    version_text,
)
from .trials import Trial, tried

__all__ = ["Diagnosis", "Problem", "diagnosis"]


class Problem(NamedTuple):
    """A fault, and the command that repairs it."""

    what: str
    fix: str

    @staticmethod
    def of(error: PlaitError) -> "Problem":
        """Return the problem that an error describes."""
        return Problem(error.what, error.fix or "")


class Diagnosis(NamedTuple):
    """The installed distributions, as text, and their faults."""

    text: str
    problems: tuple[Problem, ...]

    def __str__(self) -> str:
        lines = [self.text, ""]
        following = [problem.fix for problem in self.problems[1:]]
        for number, problem in enumerate(self.problems, 1):
            lines.append(f"{number}. {one_line(problem.what)}")
            if problem.fix not in following[number - 1 : number]:  # else the next one prints it
                lines += ["   " + line.strip() for line in problem.fix.splitlines()]
        lines += [] if self.problems else ["nothing is wrong"]
        return "\n".join(lines)


def diagnosis(core_names: frozenset[str] = frozenset(), check: bool = False) -> Diagnosis:
    """Examine everything that is installed.

    Every entry point that something installed uses is loaded, and every table is searched for rules
    of every primitive.

    Args:
      core_names: the public names that core has itself, which no plugin can add again.
      check: whether to run the program of each distribution, too.

    >>> diagnosis().text.splitlines()[0].startswith("plait-core")
    True
    """
    found = distributions()
    plugins = [i for i in found if i.name != CORE]
    misfits = _misfits([i for i in found if i.takes_part])
    problems = [*_unread(), *misfits.values(), *_unmet_others(found), *_unknown_admitted(found)]
    devices, failure = _devices()
    problems += failure
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the report replaces the warnings of loading plugins
        working = [i for i in found if i.takes_part and i.name not in misfits]
        problems += _wrong_entries(working, misfits)
        problems += _twice(working, core_names)
        tries = list(tried(working)) if check else []
    problems += [_failed(t) for t in tries if t.failure is not None]
    rows = [
        (CORE, core_version(), f"plugin API {version_text(PLUGIN_API)}"),
        ("jaxlib", jaxlib_api.JAXLIB_VERSION, ""),
        ("numpy", np.__version__, ""),
        ("python", sys.version.split()[0], sys.executable),
        ("devices", devices, ""),
        ("PLAIT_PLUGINS", config.plugins, ""),
        *((i.name, i.version, f"{i.api}: {_state(i, misfits)}") for i in plugins),
        *((t.of.name, t.of.version, t.outcome) for t in tries),
    ]
    lines = columns(rows)
    if not plugins:
        lines.append(no_plugin())
    return Diagnosis("\n".join(lines), tuple(dict.fromkeys(problems)))


def _failed(trial: Trial) -> Problem:
    """Return the problem of a distribution whose program failed."""
    others = "" if trial.of.name == CORE else f" {trial.of.name}"
    return Problem(
        f"the program of {trial.of} fails with jaxlib {jaxlib_api.JAXLIB_VERSION}: {trial.failure}",
        f"python -m pip install --upgrade {CORE}{others} jaxlib",
    )


def _state(plugin: Installed, misfits: Container[str | None]) -> str:
    if not plugin.takes_part:
        return f"left out by PLAIT_PLUGINS={config.plugins}"
    return "does not fit" if plugin.name in misfits else "fits"


def _devices() -> tuple[str, list[Problem]]:
    """Return the devices in words, and a problem if they cannot be started."""
    try:
        return f"{device_count()} of {default_backend()}", []
    except Exception as e:  # any error of the runtime: the report must go on
        told = Problem(
            f"no device can be started: {type(e).__name__}: {e}",
            "python -m pip install --upgrade --force-reinstall jaxlib",
        )
        return "none", [told]


def _unread() -> Iterator[Problem]:
    """Yield distributions that cannot be read, as after an interrupted installation."""
    for name, why in unread():
        yield Problem(f"{name} cannot be read: {why}", "install it again, or remove its folder")


# ---- versions ------------------------------------------------------------------------------


def _misfits(found: Sequence[Installed]) -> dict[str | None, Problem]:
    """Return what keeps distributions from working with the others of `found`, by their names: a
    range of versions that one of them is not in, or another plugin API.

    One command repairs all ranges.  It names every distribution, since an installer may break what
    is not named: from several commands the later ones could undo what the earlier ones did.
    """
    fix = f"python -m pip install --upgrade {' '.join(i.name for i in found)}"
    names = {i.name for i in found}
    misfits: dict[str | None, Problem] = {}
    for i in found:
        wrong = None if i.name == CORE else i.wrong
        unmet = [what for name, _, what in _unmet(i) if name in names]
        if unmet:
            misfits[i.name] = Problem(unmet[0], fix)
        elif wrong is not None:
            misfits[i.name] = Problem.of(wrong)
    return misfits


def _unmet_others(found: Sequence[Installed]) -> Iterator[Problem]:
    """Yield requirements of absent distributions, and of other versions of libraries."""
    names = {i.name for i in found if i.takes_part}
    for i in found:
        if i.takes_part:
            for name, need, what in _unmet(i):
                if name not in names:
                    yield Problem(what, f'python -m pip install --upgrade {i.name} "{need}"')


def _unmet(i: Installed) -> Iterator[tuple[str, str, str]]:
    """Yield requirements of a distribution that the installation does not meet: the name, the
    requirement, and the fault in words.

    What an extra requires may be absent; if it is installed, it must be of a version that the extra
    admits.  So a distribution states with which versions of a sibling it works.
    """
    for text in requires(i.name) or ():
        need, _, marker = text.partition(";")
        need = need.strip()
        extra = re.fullmatch(r"extra *== *[\"']([\w.-]+)[\"']", marker.strip())
        found = re.match(r"[\w.-]+", need)
        if found is None or marker.strip() and extra is None:  # the installer decides on platforms
            continue
        name, verb = found[0], f"with its extra {extra[1]} works with" if extra else "needs"
        try:
            have = version(name)
        except PackageNotFoundError:
            if extra is None:
                yield name, need, f"{i} needs {need}, which is not installed"
            continue
        if not _meets(have, need[len(name) :]):
            yield name, need, f"{i} {verb} {need}, and {have} is installed"


def _meets(have: str, bounds: str) -> bool:
    """Return whether a version keeps the bounds >= and < of a requirement; others are ignored."""
    for sign, bound in re.findall(r"(>=|<(?!=))\s*([\d.]+)", bounds):
        mine, theirs = _numbers(have), _numbers(bound)
        size = max(len(mine), len(theirs))
        mine, theirs = (v + (0,) * (size - len(v)) for v in (mine, theirs))
        if (mine < theirs) == (sign == ">="):
            return False
    return True


def _numbers(text: str) -> tuple[int, ...]:
    """Return the numbers at the start of a version."""
    found = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, found.group().split("."))) if found else ()


def _unknown_admitted(found: list[Installed]) -> Iterator[Problem]:
    """Yield names in PLAIT_PLUGINS that no installed distribution has."""
    if config.plugins in ("all", "off"):
        return
    here = {i.name.removeprefix("plait-") for i in found}
    for told in filter(None, (n.strip() for n in config.plugins.split(","))):
        short = told.removeprefix("plait-")
        if short not in here:
            whole = f"plait-{short}" if f"plait-{short}" in DISTRIBUTION_OF else told
            yield Problem(
                f"PLAIT_PLUGINS={config.plugins} names {told!r}, which is not installed",
                f"{install_command(whole)}   (or leave it out of PLAIT_PLUGINS)",
            )


# ---- entry points --------------------------------------------------------------------------


def _wrong_entries(working: list[Installed], misfits: Container[str | None]) -> Iterator[Problem]:
    """Yield entry points that lead nowhere, unknown groups, and cells with two rules.

    An entry point that fails in a distribution which does not fit is a consequence of that.
    """
    for group in ("plait.primitives", "plait.tables"):  # loaded first: tables look up primitives
        broken(_points(working, group))
    # The tables import the modules of rules first.  Otherwise two rules for a cell would be
    # reported as a module that cannot be imported.
    clashes = list(_clashes())
    for i in working:
        known = [d for d in i.points if d.point.group in KNOWN_GROUPS or _of_rules(d)]
        for group in sorted({d.point.group for d in i.points} - {d.point.group for d in known}):
            yield Problem(
                f"{i} declares entry points in the group {group!r}, which is not read",
                f"spell it like one of {', '.join(sorted(KNOWN_GROUPS))}, {RULES}<table>",
            )
        known.sort(key=lambda d: d.point.group == API_GROUP)
        told = set()  # a module may be declared often, but its import error is reported once
        for d, error in broken([d for d in known if not _waits(d)]):
            if _of_extra(d, error) or lacking(error.__cause__) in misfits:
                continue
            why = d.point.module, repr(error.__cause__ or error)
            if why not in told:
                told.add(why)
                yield Problem.of(error)
    yield from clashes


def _points(working: list[Installed], group: str) -> list[Declared]:
    return [d for i in working for d in i.points if d.point.group == group]


def _of_rules(d: Declared) -> bool:
    return d.point.group.startswith(RULES)


def _waits(d: Declared) -> bool:
    """Return whether an entry point serves a distribution that is not here: the owner of the table
    or of the primitives that it has rules for, or the package that tries laws."""
    if d.point.group == "plait.laws":
        return not installed("plait.api", "testing")
    if not _of_rules(d):
        return False
    owned = {p.namespace for p in primitives().values()}
    owned |= {name.rpartition(".")[0] for p in primitives().values() for name in p.formerly}
    return d.point.group.removeprefix(RULES) not in tables() or d.point.name not in owned


def _of_extra(d: Declared, error: PlaitError) -> bool:
    """Return whether an entry point needs what an extra brings, of its own distribution or of the
    owner of the table that it has rules for."""
    missing = error if isinstance(error, MissingPlugin) else error.__context__
    if not isinstance(missing, MissingPlugin):
        return False
    owners = installed("plait.tables", d.point.group.removeprefix(RULES))
    return any(extra_of(o.distribution, missing.distribution) is not None for o in (d, *owners))


def _clashes() -> Iterator[Problem]:
    """Yield cells of tables for which two modules have a rule."""
    for table in tables().values():
        for prim in primitives().values():
            try:
                table.find(prim)
            except DuplicateRule as e:
                yield Problem.of(e)
            except PlaitError:
                pass  # a module that cannot be loaded is reported with its entry point


def _twice(working: list[Installed], core_names: frozenset[str]) -> Iterator[Problem]:
    """Yield public names that two distributions declare."""
    for group, module in MODULES.items():
        owners: dict[str, list[Installed]] = {}
        for i in working:
            for name in i.of(group):
                owners.setdefault(name, []).append(i)
        for name, ds in owners.items():
            if len(ds) > 1:
                yield Problem(
                    f"{module}.{name} is declared by {' and by '.join(map(str, ds))}",
                    f"python -m pip uninstall {ds[-1].name}   "
                    "(or name only the others in PLAIT_PLUGINS)",
                )
            if module == "plait" and name in core_names:
                yield Problem(
                    f"{ds[0]} declares {module}.{name}, which core has itself",
                    f"python -m pip install --upgrade {ds[0].name}   "
                    "(if it is yours, give it another name)",
                )
