"""The record of releases, and what a package must be before it is added to it.

Invariant: nothing is built here; `tests/releases` does that.
"""

import importlib.util
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def load():
    """The module `releasing` at the root, which is no part of any package."""
    spec = importlib.util.spec_from_file_location("releasing", ROOT / "releasing.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["releasing"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


releasing = load()
RELEASES = releasing.released()


def absent(reason: str) -> None:
    """Skip a test whose commit a shallow clone lacks; fail it where CI is set."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason}; clone with the whole history (fetch-depth: 0)")
    pytest.skip(reason)


def of_commit(release, file: str) -> str:
    """A file of a released package, as its commit has it."""
    name = f"{release.commit}:{release.folder}/{file}"
    done = subprocess.run(["git", "show", name], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        absent(f"this clone does not have the commit {release.commit}: {done.stderr.strip()}")
    return done.stdout


def test_there_are_releases():
    released = {r.package for r in RELEASES}
    there = {f"plait-{p.name}" for p in (ROOT / "packages").iterdir()}
    assert released <= there
    for package in there - released:  # one that never was has its first version
        table = releasing.project(ROOT / "packages" / package.removeprefix("plait-"))
        assert table["version"] == "0.1.0"
    assert len({(r.package, r.version) for r in RELEASES}) == len(RELEASES)


@pytest.mark.parametrize("release", RELEASES, ids=lambda r: r.tag)
def test_the_commit_holds_what_the_entry_says(release):
    assert len(release.commit) == 40
    table = tomllib.loads(of_commit(release, "pyproject.toml"))["project"]
    assert (table["name"], table["version"]) == (release.package, release.version)
    assert not releasing.changelog_faults(release.version, of_commit(release, "CHANGELOG.md"))
    if release.package != "plait-core":
        assert not releasing.range_faults(*releasing.requirements(table))


@pytest.mark.parametrize("release", RELEASES, ids=lambda r: r.tag)
def test_this_tree_is_of_no_earlier_version(release):
    version = releasing.project(ROOT / release.folder)["version"]
    assert releasing.Version(version) >= releasing.Version(release.version)


NEWEST = {r.package: r for r in RELEASES}  # the oldest first, so that the newest stays


@pytest.mark.parametrize("release", NEWEST.values(), ids=lambda r: r.tag)
def test_other_contents_have_another_number(release):
    """A package whose files are not those of its newest release has a higher version."""
    of_commit(release, "pyproject.toml")
    version = releasing.project(ROOT / release.folder)["version"]
    if releasing.changed_since(release.commit, release.folder):
        assert releasing.Version(version) > releasing.Version(release.version), (
            f"{release.folder} is not what {release.tag} holds: give it another version"
        )


def test_a_change_is_seen_in_the_tree_and_beside_it(tmp_path, monkeypatch):
    monkeypatch.setattr(releasing, "ROOT", tmp_path)
    changed_since = releasing.changed_since

    def git(*args):
        named = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(["git", *named, *args], cwd=tmp_path, capture_output=True, check=True)
        return done.stdout.decode().strip()

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("first")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "first")
    first = git("rev-parse", "HEAD")
    assert not changed_since(first, "one")
    (tmp_path / "one" / "more").write_text("new")
    assert changed_since(first, "one") and not changed_since(first, "two")
    (tmp_path / "two" / "file").write_text("second")
    assert changed_since(first, "two")
    git("add", "-A")
    git("commit", "-qm", "second")
    assert changed_since(first, "one") and changed_since(first, "two")


@pytest.mark.parametrize(
    "requires, fault",
    [
        (["plait-core>=0.2,<0.3", "numpy>=2"], None),
        (["plait-core>=0.2.1,<0.3"], None),
        (["plait-core>=1.4,<3.0"], None),
        (["plait-core>=0.2.1,<0.2.3"], "is written"),
        (["plait-core==0.2.0"], "is written"),
        (["plait-core>=0.2"], "is written"),
        (["plait-core>=0.2,<0.4"], "reaches over"),
        (["plait-core>=0.2,<1.0"], "reaches over"),
        (["plait-core>=0.3,<0.3"], "admits nothing"),
        (["numpy>=2"], "once"),
        (["plait-core>=0.2,<0.3", "plait-core>=0.2,<0.3"], "once"),
        (["plait-core>=0.2,<0.3", "plait-batching>=0.2,<0.3"], "no sibling"),
        (["plait-core>=0.3,<0.4", "plait-numpy>=0.1,<0.2"], None),
        (["plait-numpy>=0.1,<0.2"], "once"),
        (["plait-core>=0.3,<0.4", "plait-numpy"], "plait-numpy is written"),
        (["plait-core>=0.3,<0.4", "plait-numpy>=0.1,<0.3"], "reaches over"),
    ],
)
def test_ranges(requires, fault):
    found = releasing.range_faults(requires)
    assert [fault in text for text in found] == ([] if fault is None else [True])


@pytest.mark.parametrize(
    "extra, fault",
    [
        (["plait-numpy>=0.1,<0.2", "plait-checks>=0.1,<0.2"], None),
        (["tensorflow>=2.18"], None),
        (["plait-checks>=0.1"], "plait-checks is written"),
        (["plait-checks>=0.1,<0.3"], "reaches over"),
    ],
)
def test_ranges_of_extras(extra, fault):
    table = {"dependencies": ["plait-core>=0.3,<0.4"], "optional-dependencies": {"more": extra}}
    found = releasing.range_faults(*releasing.requirements(table))
    assert [fault in text for text in found] == ([] if fault is None else [True])


@pytest.mark.parametrize("package", [p.name for p in (ROOT / "packages").iterdir()])
def test_ranges_of_this_tree(package):
    table = releasing.project(ROOT / "packages" / package)
    assert package == "core" or not releasing.range_faults(*releasing.requirements(table))


@pytest.mark.parametrize(
    "version, earlier, fault",
    [
        ("0.2.0", ["0.1.0"], None),
        ("0.10.0", ["0.9.0", "0.1.0"], None),
        ("0.1.0", [], None),
        ("0.2.0", ["0.2.0"], "0.2.0 is released"),
        ("0.9.1", ["0.10.0"], "0.10.0 is released"),
        ("0.2", [], "of the form"),
        ("0.2.0rc1", ["0.1.0"], "of the form"),
    ],
)
def test_versions(version, earlier, fault):
    found = releasing.version_faults(version, earlier)
    assert [fault in text for text in found] == ([] if fault is None else [True])


HEAD = "# Changelog\n\n## [Unreleased]\n\n"
EARLIER = "\n## [0.1.0] - 2026-11-22\n\n- `f`.\n"


@pytest.mark.parametrize(
    "section, fault",
    [
        ("## [0.2.0] - 2026-12-24\n\n- `g`.\n", None),
        ("## [0.2.0]\n\n- `g`.\n", "its date"),
        ("## [0.2.0] - 2026-13-01\n\n- `g`.\n", "its date"),
        ("## [0.2.0] - 2026-12-24\n\n", "tells of changes"),
        ("- `g`.\n", "no section"),
        ("- `h`.\n\n## [0.2.0] - 2026-12-24\n\n- `g`.\n", "under [Unreleased]"),
        ("## [0.3.0] - 2026-12-24\n\n- h\n\n## [0.2.0] - 2026-12-24\n\n- g\n", "newest"),
    ],
)
def test_changelogs(section, fault):
    found = releasing.changelog_faults("0.2.0", HEAD + section + EARLIER)
    assert any(fault in text for text in found) if fault else found == []


def test_files_that_later_releases_read_are_kept_before_a_release(tmp_path, monkeypatch):
    """They are written by the version that is released, so that they cannot be added later."""
    kept = tmp_path / "tests" / "golden" / "releases"
    assert releasing.golden_faults("0.4.0", tmp_path) == []
    (kept / "0.3.0").mkdir(parents=True)
    assert releasing.golden_faults("0.3.0", tmp_path) == []
    (fault,) = releasing.golden_faults("0.4.0", tmp_path)
    assert fault.startswith("no files of 0.4.0 are kept: python ")
    export = ROOT / "packages" / "export"
    version = releasing.project(export)["version"]
    assert releasing.golden_faults(version, export) == []
    monkeypatch.setattr(
        releasing, "project", lambda source: {"name": "plait-export", "version": "99.0.0"}
    )
    with pytest.raises(
        releasing.NotReady, match=r"python packages/export/tests/golden/write\.py 99"
    ):
        releasing.candidate("export")


@pytest.mark.parametrize(
    "requires, fault",
    [
        (["plait-core>=0.2,<0.3"], None),
        (["plait-core>=0.2.1,<0.3"], "plait-core>=0.2.1,<0.3 is required, and no such version"),
        (["plait-core>=0.2,<0.3", "plait-state>=0.1,<0.2"], "plait-state>=0.1,<0.2 is required"),
        (["numpy>=2.0"], None),
    ],
)
def test_what_is_required_is_released_before(requires, fault, monkeypatch):
    """Nobody could install a package that needs a core which is not out."""
    made = [releasing.Release("plait-core", v, "0" * 40) for v in ("0.1.0", "0.2.0")]
    monkeypatch.setattr(releasing, "released", lambda name: [r for r in made if r.package == name])
    for place in ((requires, []), (["plait-core>=0.1,<0.2"], requires)):
        found = releasing.order_faults("plait-export", *place)
        assert [fault in text for text in found] == ([] if fault is None else [True])


def test_the_meta_distribution_is_a_candidate_like_the_others(monkeypatch):
    """It is refused for what is unreleased, and for nothing else once that is out and dated."""
    with pytest.raises(releasing.NotReady, match=r"plait-numpy>=0\.1,<0\.2 is required"):
        releasing.candidate(releasing.META)
    table = releasing.project(ROOT)
    needs = {releasing.Requirement(row).name for row in sum(releasing.requirements(table), [])}
    here = lambda name: releasing.project(ROOT / releasing.folder_of(name))["version"]
    out = [releasing.Release(name, here(name), "0" * 40) for name in needs]
    monkeypatch.setattr(releasing, "released", lambda name: [r for r in out if r.package == name])
    monkeypatch.setattr(releasing, "changelog_faults", lambda version, text: [])
    git = releasing.git
    monkeypatch.setattr(releasing, "git", lambda *a: "" if a[0] == "status" else git(*a))
    made = releasing.candidate(releasing.META)
    assert (made.tag, made.folder) == (f"plait-v{table['version']}", ".")


def test_an_entry_is_added_and_nothing_else_changes(tmp_path, monkeypatch):
    before = releasing.RECORD.read_text(encoding="utf-8")
    monkeypatch.setattr(releasing, "RECORD", tmp_path / "releases.toml")
    releasing.RECORD.write_text(before, encoding="utf-8")
    new = releasing.Release("plait-core", "99.0.0", "0" * 40)
    releasing.record(new)
    assert releasing.RECORD.read_text(encoding="utf-8").startswith(before.rstrip("\n"))
    assert releasing.released("plait-core")[-1] == new
    assert len(releasing.released()) == len(RELEASES) + 1


def test_cores_are_the_oldest_and_newest_that_are_admitted(monkeypatch):
    versions = ["0.1.0", "0.2.0", "0.2.1", "0.2.10", "0.2.9", "0.3.0"]
    made = [releasing.Release("plait-core", v, "0" * 40) for v in versions]
    made.sort(key=lambda r: releasing.Version(r.version))
    monkeypatch.setattr(releasing, "released", lambda package=None: made)
    monkeypatch.setattr(
        releasing, "project", lambda source: {"dependencies": ["plait-core>=0.2,<0.3"]}
    )
    assert [r.version for r in releasing.cores("autodiff")] == ["0.2.0", "0.2.10"]


def test_floors_are_the_oldest_of_each_that_is_admitted(monkeypatch):
    """Compare with the requirements among our packages that are released."""
    made = [
        releasing.Release(name, v, "0" * 40)
        for name in ("plait-core", "plait-numpy")
        for v in ("0.1.0", "0.2.0", "0.2.1", "0.3.0")
    ]
    monkeypatch.setattr(
        releasing, "released", lambda package=None: [r for r in made if r.package == package]
    )
    needs = ["plait-core>=0.2,<0.3", "plait-numpy>=0.2.1,<0.3", "plait-state>=0.1,<0.2", "scipy"]
    monkeypatch.setattr(releasing, "project", lambda source: {"dependencies": needs})
    found = [(r.package, r.version) for r in releasing.oldest("testing")]
    assert found == [("plait-core", "0.2.0"), ("plait-numpy", "0.2.1")]


@pytest.mark.parametrize("ci", [None, "true"])
def test_a_missing_commit_fails_where_ci_is_set(ci, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    if ci:
        monkeypatch.setenv("CI", ci)
    nowhere = releasing.Release("plait-core", "0.1.0", "0" * 40)
    with pytest.raises(pytest.fail.Exception if ci else pytest.skip.Exception, match="0{40}"):
        of_commit(nowhere, "pyproject.toml")


def test_a_commit_that_is_not_there_is_told(tmp_path):
    with pytest.raises(releasing.NotThere, match="this clone has no packages/core of 000000000000"):
        releasing.unpacked("0" * 40, "packages/core", tmp_path / "out")
