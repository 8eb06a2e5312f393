"""Each subset of the plugins, installed from wheels.

`nox -s subsets` installs the wheel of each package into a folder of its own, and names the parent
of these folders in PLAIT_TEST_SITE; a subset is a search path made of some of them.

Invariant: what a program finds depends on what is installed and on nothing else, and what it does
not find says what to install.
"""

import json
import os
import subprocess
import sys
import tomllib
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = os.environ.get("PLAIT_TEST_SITE")
PLUGINS = ("autodiff", "batching", "sharding", "export", "state")
SUBSETS = [c for n in range(len(PLUGINS) + 1) for c in combinations(PLUGINS, n)]
WORK = {"autodiff": 1.0, "batching": [3], "sharding": [4], "export": 1.0, "state": 3.0}

pytestmark = pytest.mark.skipif(SITE is None, reason="run by `nox -s subsets`")


@cache
def offers() -> dict[str, str]:
    """The public names that plugins offer, each with the plugin."""
    found = {}
    for plugin in PLUGINS:
        declared = (ROOT / "packages" / plugin / "pyproject.toml").read_text(encoding="utf-8")
        points = tomllib.loads(declared)["project"]["entry-points"]
        found.update(dict.fromkeys(points["plait.api"], plugin))
    return found


@cache
def probe(subset: tuple[str, ...]) -> dict:
    """The report of a Python that has the core and a subset of the plugins."""
    path = os.pathsep.join(str(Path(SITE or "") / package) for package in ("core", *subset))
    done = subprocess.run(
        [sys.executable, "-P", str(Path(__file__).with_name("probe.py")), *offers()],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def called(subset: tuple[str, ...]) -> str:
    """The name of a subset in the list of tests."""
    return "+".join(subset) or "core only"


def assert_says_what_to_install(found: dict, plugin: str) -> None:
    """An error of a name that is not there: an AttributeError with the command that mends it."""
    assert "AttributeError" in found["kinds"]
    assert f"pip install plait-{plugin}" in found["error"]


each_subset = pytest.mark.parametrize("subset", SUBSETS, ids=called)


@each_subset
def test_importing_and_computing_import_no_plugin(subset):
    report = probe(subset)
    assert report["compiled"] == 2.0
    assert report["imported"] == []
    assert report["imported by computing"] == []


@each_subset
def test_names_of_what_is_installed_resolve(subset):
    report = probe(subset)
    there = {name for name, plugin in offers().items() if plugin in subset}
    assert {name for name, found in report["names"].items() if found.get("value")} == there
    assert {name for name, has in report["has"].items() if has} == there
    assert {*report["listed"]} == there


@each_subset
def test_names_of_what_is_missing_say_what_to_install(subset):
    report = probe(subset)
    for name, plugin in offers().items():
        if plugin not in subset:
            assert_says_what_to_install(report["names"][name], plugin)
            assert f"plait.{name}" in report["names"][name]["error"]


@each_subset
def test_what_is_installed_works_without_the_rest(subset):
    for plugin, found in probe(subset)["work"].items():
        if plugin in subset:
            assert found == {"value": WORK[plugin]}
        else:
            assert_says_what_to_install(found, plugin)


@each_subset
def test_what_is_installed_works_together(subset):
    found = probe(subset)["together"]
    missing = [plugin for plugin in ("batching", "autodiff") if plugin not in subset]
    if missing:
        assert_says_what_to_install(found, missing[0])
    else:
        assert found == {"value": [1.0, 1.0]}


@each_subset
def test_only_what_is_installed_was_imported(subset):
    assert probe(subset)["imported in the end"] == sorted(f"plait_{plugin}" for plugin in subset)
