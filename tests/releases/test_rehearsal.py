"""A release of each distribution, rehearsed from a shallow clone: refused, then built.

Invariant: the clone has one commit, as a maintainer's or a workflow's may have, and nothing of this
tree changes.
"""

import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("core", "numpy", "checks", "testing", "inspect", "autodiff", "batching", "sharding",
            "export", "state", "sparse", "jax", "plait")  # fmt: skip
"""In an order in which they can be released."""


def git(folder: Path, *args: str) -> str:
    named = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *named, *args], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A clone of the newest commit alone, and its module `releasing`."""
    folder = tmp_path_factory.mktemp("rehearsal") / "plait"
    git(ROOT, "clone", "-q", "--depth", "1", f"file://{ROOT}", str(folder))
    spec = importlib.util.spec_from_file_location("rehearsed", folder / "releasing.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["rehearsed"] = module
    spec.loader.exec_module(module)
    assert git(folder, "rev-list", "--count", "HEAD") == "1"
    return folder, module


def dated(folder: Path, releasing, package: str) -> None:
    """Turn [Unreleased] into the section of the version, and commit it."""
    source = folder / releasing.folder_of(package)
    path, version = source / "CHANGELOG.md", releasing.project(source)["version"]
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("## [Unreleased]", f"## [Unreleased]\n\n## [{version}] - 2026-12-01", 1),
        encoding="utf-8",
    )
    git(folder, "commit", "-qam", f"Release {package} {version}")


def wheel_of(folder: Path, releasing, found, target: Path) -> Path:
    """Build the wheel of a commit."""
    source = releasing.unpacked(found.commit, found.folder, target / "source")
    env = {**os.environ, "SOURCE_DATE_EPOCH": releasing.epoch(found.commit)}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    subprocess.run(command, cwd=source, env=env, check=True, capture_output=True)
    (wheel,) = target.glob("*.whl")
    return wheel


def test_each_is_refused_until_what_it_needs_is_released(clone, tmp_path):
    folder, releasing = clone
    assert {*PACKAGES} == {p.parent.name for p in folder.glob("packages/*/pyproject.toml")} | {
        "plait"
    }
    fresh = [p for p in PACKAGES if is_new(folder, releasing, p)]
    assert fresh, "every version of this tree is released: nothing to rehearse"
    for package in fresh:
        with pytest.raises(releasing.NotReady, match="CHANGELOG.md has"):
            releasing.candidate(package)
        dated(folder, releasing, package)
    for package in fresh:
        needs = sum(
            releasing.requirements(releasing.project(folder / releasing.folder_of(package))), []
        )
        waits = [p for p in fresh if p != package and f"plait-{p}>" in " ".join(needs)]
        if waits and waits[0] in unreleased(releasing, fresh):
            with pytest.raises(releasing.NotReady, match="release it first"):
                releasing.candidate(package)
    for package in fresh:
        found = releasing.candidate(package)
        one = wheel_of(folder, releasing, found, tmp_path / package / "one")
        assert one.name.split("-")[1] == found.version
        if package in ("state", "plait"):
            again = wheel_of(folder, releasing, found, tmp_path / package / "two")
            assert one.read_bytes() == again.read_bytes()
        with zipfile.ZipFile(one) as archive:
            (metadata,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
            said = archive.read(metadata).decode()
        assert f"Version: {found.version}" in said and "Project-URL: Source" in said
        links = re.findall(r"\]\(([^)]+)\)", said)
        assert all(link.startswith(("https://", "#")) for link in links), links
        assert links or package != "plait"
        releasing.record(found)
        git(folder, "commit", "-qam", f"Record {found.tag}")
        with pytest.raises(releasing.NotReady, match="is released: set a higher version"):
            releasing.candidate(package)


def is_new(folder: Path, releasing, package: str) -> bool:
    """Return whether the version of the tree is not released yet."""
    table = releasing.project(folder / releasing.folder_of(package))
    return table["version"] not in {r.version for r in releasing.released(table["name"])}


def unreleased(releasing, fresh: list[str]) -> list[str]:
    return [
        p for p in fresh if not any(r.package in (p, f"plait-{p}") for r in releasing.released())
    ]


def test_a_change_that_is_not_committed_is_refused(clone):
    folder, releasing = clone
    path = folder / "packages" / "state" / "README.md"
    before = path.read_text(encoding="utf-8")
    path.write_text(before + "\nMore.\n", encoding="utf-8")
    try:
        with pytest.raises(releasing.NotReady, match="these files differ from it"):
            releasing.candidate("state")
    finally:
        path.write_text(before, encoding="utf-8")


def test_earlier_releases_are_told_to_be_absent(clone, tmp_path):
    """The session `release` needs them to test a plugin against."""
    folder, releasing = clone
    first = releasing.released("plait-core")[0]
    with pytest.raises(releasing.NotThere, match="this clone has no packages/core"):
        releasing.unpacked(first.commit, first.folder, tmp_path / "out")
