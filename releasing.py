"""What has been released, and what a release must be before it is written down.

`releases.toml` records each release with the commit that holds it; `nox -s release -- PACKAGE`
checks a package and adds its entry.

Invariant: nothing here needs more than Python, git and `packaging`, and an entry is only added.
"""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement  # nox brings it, and so does pytest
from packaging.version import Version

ROOT = Path(__file__).resolve().parent
RECORD = ROOT / "releases.toml"
CORE = "plait-core"
LIBRARY = "plait-numpy"
META = "plait"
"""The meta-distribution, whose files are at the root."""
META_FILES = ("CHANGELOG.md", "LICENSE", "README.md", "hatch_build.py", "pyproject.toml")
RANGE = re.compile(r"plait-\w+(?:\[\w+\])?>=(\d+)\.(\d+)(?:\.\d+)?,<(\d+)\.(\d+)")
SECTION = re.compile(r"^## \[([^]]+)\](?: - (\S+))?\s*$", re.M)


class NotReady(Exception):
    """What keeps a package from being released, in words for who releases it."""


class NotThere(Exception):
    """A commit that this clone does not have."""


class Release(NamedTuple):
    """A released version of a distribution, and the commit that holds it."""

    package: str
    version: str
    commit: str

    @property
    def tag(self) -> str:
        """The tag that whoever publishes gives the commit."""
        return f"{self.package}-v{self.version}"

    @property
    def folder(self) -> str:
        """Where the sources of the distribution are in that commit."""
        return folder_of(self.package)


def folder_of(package: str) -> str:
    """Where the sources of a distribution are, given its name with or without `plait-`."""
    return "." if package == META else "packages/" + package.removeprefix("plait-")


def released(package: str | None = None) -> list[Release]:
    """The releases of one distribution, or of all, the oldest first."""
    rows = tomllib.loads(RECORD.read_text(encoding="utf-8"))["release"]
    found = [Release(**row) for row in rows if package in (None, row["package"])]
    return sorted(found, key=lambda r: Version(r.version))


def record(release: Release) -> None:
    """Add an entry."""
    text = RECORD.read_text(encoding="utf-8").rstrip("\n")
    rows = "\n".join(f'{name} = "{value}"' for name, value in release._asdict().items())
    RECORD.write_text(f"{text}\n\n[[release]]\n{rows}\n", encoding="utf-8")


# Sources as a commit has them


def git(*args: str) -> str:
    """What git says, without the end of its line."""
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def epoch(commit: str) -> str:
    """When a commit was made: SOURCE_DATE_EPOCH of what is built of it."""
    return git("show", "--no-patch", "--format=%ct", commit)


def unpacked(commit: str, path: str, folder: Path) -> Path:
    """A folder of a commit, copied into an emptied folder: tracked files, and nothing else.

    Raises NotThere in a clone that lacks the commit, as a shallow one does.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archive = folder / "commit.tar"
    try:
        git("archive", "--output", str(archive), commit, path)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        raise NotThere(f"this clone has no {path} of {commit[:12]}: {said.strip()}") from error
    shutil.unpack_archive(archive, folder)
    archive.unlink()
    return folder / path


def project(source: Path) -> dict:
    """The `project` table of a source tree."""
    return tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]


# What is checked before anything is built


def candidate(package: str) -> Release:
    """The release that the commit at hand would be.

    Raises NotReady with all that is against it.
    """
    commit = git("rev-parse", "HEAD")
    source = ROOT / folder_of(package)
    table = project(source)
    name, version = table["name"], table["version"]
    earlier = [r.version for r in released(name)]
    changes = (source / "CHANGELOG.md").read_text(encoding="utf-8")
    ranges = [] if package == "core" else range_faults(*requirements(table))
    faults = [
        *version_faults(version, earlier),
        *changelog_faults(version, changes),
        *golden_faults(version, source),
        *(meta_faults(*requirements(table)) if package == META else ranges),
        *order_faults(name, *requirements(table)),
    ]
    files = META_FILES if package == META else (folder_of(package),)
    if changed := git("status", "--porcelain", "--", *files):
        faults.append(f"what is released is a commit, and these files differ from it:\n{changed}")
    if faults:
        raise NotReady(f"{name} {version} cannot be released:\n  " + "\n  ".join(faults))
    return Release(name, version, commit)


def order_faults(name: str, dependencies: Iterable[str], extras: Iterable[str] = ()) -> list[str]:
    """Return faults in the order of releases: no one could install a distribution that requires
    others of ours before these are released."""
    faults = []
    for row in dict.fromkeys([*ours(dependencies), *ours(extras)]):
        need = Requirement(row)
        if need.name == name or any(r.version in need.specifier for r in released(need.name)):
            continue
        faults.append(f"{row} is required, and no such version is released: release it first")
    return faults


def meta_faults(dependencies: Iterable[str], extras: Iterable[str]) -> list[str]:
    """Return faults in the requirements of the meta-distribution."""
    return [fault for row in (*ours(dependencies), *ours(extras)) for fault in range_fault(row)]


def version_faults(version: str, earlier: Iterable[str]) -> list[str]:
    """What is wrong with a version, given those that are out."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        return [f"the version {version} is not of the form X.Y.Z"]
    newest = max(map(Version, earlier), default=Version("0"))
    if Version(version) > newest:
        return []
    return [f"{newest} is released: set a higher version in pyproject.toml than {version}"]


def changelog_faults(version: str, text: str) -> list[str]:
    """What is wrong with a changelog as that of a version about to be released."""
    heads = [(m[1], m[2], m.end()) for m in SECTION.finditer(text)]
    ends = [*(m.start() for m in SECTION.finditer(text)), len(text)][1:]
    bodies = {h[0]: text[h[2] : end].strip() for h, end in zip(heads, ends, strict=True)}
    dates = {h[0]: h[1] for h in heads}
    faults = []
    if bodies.pop("Unreleased", ""):
        faults.append(f"CHANGELOG.md has changes under [Unreleased]: move them to [{version}]")
    if not bodies.get(version):
        return [*faults, f"CHANGELOG.md has no section [{version}] that tells of changes"]
    if next(iter(bodies)) != version:
        faults.append(f"the section [{version}] of CHANGELOG.md is not the newest one")
    if not is_date(dates[version]):
        faults.append(f"write its date into CHANGELOG.md: ## [{version}] - {date.today()}")
    return faults


def golden_faults(version: str, source: Path) -> list[str]:
    """Return a fault if later releases could not be tried with files that this one writes: a
    package with such files keeps those of each version."""
    kept = source / "tests" / "golden" / "releases"
    if not kept.is_dir() or (kept / version).is_dir():
        return []
    where = kept.parent.relative_to(ROOT).as_posix() if kept.is_relative_to(ROOT) else kept.parent
    return [f"no files of {version} are kept: python {where}/write.py {version}"]


def is_date(text: str | None) -> bool:
    """Whether a text is a day, as YYYY-MM-DD."""
    try:
        return bool(date.fromisoformat(text or ""))
    except ValueError:
        return False


def requirements(table: dict) -> tuple[list[str], list[str]]:
    """Return what a `project` table requires, and what its extras do."""
    extras = table.get("optional-dependencies", {}).values()
    return table.get("dependencies", []), [row for rows in extras for row in rows]


def range_faults(dependencies: Iterable[str], extras: Iterable[str] = ()) -> list[str]:
    """What is wrong with the requirements of a plugin.

    It requires plait-core, and of its siblings none but the array library, which extras may do.
    Each of ours is required by one range, as `>=A.B,<A.C` or `>=A.B.D,<A.C`, of one minor while A
    is 0, since any minor of 0.x may break.
    """
    required, of_extras = ours(dependencies), ours(extras)
    names = [Requirement(row).name for row in required]
    if names.count(CORE) != 1 or names.count(LIBRARY) > 1 or {*names} - {CORE, LIBRARY}:
        return [
            f"a plugin requires {CORE}, once, and no sibling but {LIBRARY}; it requires {required}"
        ]
    return [fault for row in (*required, *of_extras) for fault in range_fault(row)]


def ours(rows: Iterable[str]) -> list[str]:
    """The requirements that name a distribution of ours."""
    return [row for row in rows if Requirement(row).name.startswith("plait")]


def range_fault(row: str) -> list[str]:
    """What is wrong with the range in one requirement."""
    found = RANGE.fullmatch(row)
    if found is None:
        name = Requirement(row).name
        return [f"a range of {name} is written {name}>=A.B[.D],<A.C; found {row}"]
    major, minor, upper_major, upper_minor = map(int, found.groups())
    if (major, minor) >= (upper_major, upper_minor):
        return [f"{row} admits nothing"]
    if major == 0 and (upper_major, upper_minor) != (0, minor + 1):
        return [f"{row} reaches over minors of 0.x: write >=0.{minor},<0.{minor + 1}"]
    return []


def admits(dependencies: Iterable[str], core: str) -> bool:
    """Whether requirements admit a version of core."""
    needs = map(Requirement, dependencies)
    return all(core in need.specifier for need in needs if need.name == CORE)


def oldest(package: str) -> list[Release]:
    """The oldest release of each other distribution of ours that a package of this tree admits;
    none of one of which it admits what is not released yet."""
    found = []
    for row in ours(project(ROOT / folder_of(package))["dependencies"]):
        need = Requirement(row)
        found += [r for r in released(need.name) if r.version in need.specifier][:1]
    return found


def cores(package: str) -> list[Release]:
    """The oldest and the newest released core that a package of this tree admits."""
    needs = project(ROOT / "packages" / package)["dependencies"]
    found = [r for r in released(CORE) if admits(needs, r.version)]
    return [*dict.fromkeys([*found[:1], *found[-1:]])]


def changed_since(commit: str, folder: str) -> bool:
    """Return whether files of a folder, committed or not, differ from those of a commit."""
    differ = git("diff", "--name-only", commit, "--", folder)
    return bool(differ or git("ls-files", "--others", "--exclude-standard", "--", folder))
