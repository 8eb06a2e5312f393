"""Each subset of the plugins, installed from wheels, and some of them with the array library.

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
TRANSFORMATIONS = ("autodiff", "batching", "sharding", "export", "state")
LIBRARY = ("numpy", "checks", "testing", "sparse")
"""The array library, and what is written with it."""
ALL = (*LIBRARY, "inspect", *TRANSFORMATIONS)
SUBSETS = [
    *(c for n in range(len(TRANSFORMATIONS) + 1) for c in combinations(TRANSFORMATIONS, n)),
    ("numpy",),
    ("inspect",),
    *(("numpy", other) for other in (*LIBRARY[1:], *TRANSFORMATIONS)),
    ALL,
]
WORK = {
    "autodiff": 1.0,
    "batching": [3],
    "sharding": [4],
    "export": 1.0,
    "state": 3.0,
    "numpy": 0.0,
    "checks": True,
    "testing": 2.0,
    "inspect": 1.0,
    "sparse": [4.0, 0.0],
}

NEEDS = dict.fromkeys(("Pile", "Capacities", "mask", "pile_axis"), ("numpy", "checks"))
"""Names that need more than the distribution that offers them: that of its extra `piles`."""

pytestmark = pytest.mark.skipif(SITE is None, reason="run by `nox -s subsets`")


@cache
def declared() -> tuple[tuple[str, str, str], ...]:
    """The public names that plugins offer: (name, plugin, what the entry point names)."""
    found = []
    for plugin in ALL:
        text = (ROOT / "packages" / plugin / "pyproject.toml").read_text(encoding="utf-8")
        points = tomllib.loads(text)["project"]["entry-points"]
        for group, inside in {"api": "", "lax": "lax.", "debug": "debug.", "ext": "ext."}.items():
            rows = points.get(f"plait.{group}", {}).items()
            found += [(f"{inside}{name}", plugin, value) for name, value in rows]
    return tuple(found)


@cache
def offers() -> dict[str, str]:
    """The public names that plugins offer, each with the plugin."""
    return {name: plugin for name, plugin, _ in declared()}


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


def assert_says_what_to_install(found: dict, plugin: str, kind: str = "AttributeError") -> None:
    """An error of a name that is not there: it has the command that mends it."""
    assert kind in found["kinds"]
    assert f"pip install plait-{plugin}" in found["error"]


@pytest.fixture(scope="module", params=SUBSETS, ids=called)
def subset(request):
    """One after the other, so that what is tested of one is tested by one worker."""
    return request.param


def is_there(name: str, subset: tuple[str, ...]) -> bool:
    """Return whether a name, and all that it needs, is installed."""
    return {offers()[name], *NEEDS.get(name, ())} <= {*subset}


def test_importing_and_computing_import_no_plugin(subset):
    report = probe(subset)
    assert report["compiled"] == 2.0
    assert report["imported"] == []
    assert report["imported by computing"] == []


def test_transformations_import_themselves_and_no_array_library(subset):
    asked = sorted(f"plait_{plugin}" for plugin in subset if plugin in TRANSFORMATIONS)
    assert probe(subset)["imported by transformations"] == asked


def test_names_of_what_is_installed_resolve(subset):
    report = probe(subset)
    there = {name for name in offers() if is_there(name, subset)}
    assert {name for name, found in report["names"].items() if found.get("value")} == there
    assert {name for name, found in report["from"].items() if found.get("value")} == there
    assert {name for name, has in report["has"].items() if has} == there
    listed = {name for name, plugin in offers().items() if plugin in subset}
    assert {*report["listed"]} == listed


def test_modules_of_what_is_installed_are_imported_by_their_public_names(subset):
    found = probe(subset)["modules"]
    for name, plugin, value in declared():
        if plugin in subset and ":" not in value:
            assert found[name] == {"value": value}


def test_names_of_what_is_missing_say_what_to_install(subset):
    report = probe(subset)
    for name, plugin in offers().items():
        if plugin not in subset:
            assert_says_what_to_install(report["names"][name], plugin)
            assert f"plait.{name}" in report["names"][name]["error"]


def test_names_that_need_an_extra_say_which(subset):
    for name in NEEDS:
        if "batching" in subset and not is_there(name, subset):
            found = probe(subset)["names"][name]
            assert "AttributeError" in found["kinds"]
            assert 'python -m pip install "plait-batching[piles]"' in found["error"]


def test_imports_of_what_is_missing_say_what_to_install(subset):
    report = probe(subset)
    for name, plugin, value in declared():
        if plugin not in subset and ":" not in value:
            for way in ("modules", "from"):
                assert_says_what_to_install(report[way][name], plugin, "ImportError")
                assert f"plait.{name}" in report[way][name]["error"]


def test_what_is_installed_works_without_the_rest(subset):
    for plugin, found in probe(subset)["work"].items():
        if plugin in subset:
            assert found == {"value": WORK[plugin]}
        else:
            assert_says_what_to_install(found, plugin)


def test_methods_that_the_library_computes_say_what_to_install(subset):
    found = probe(subset)["methods"]
    assert found["sum"] == {"value": 0.0}
    if "numpy" in subset:
        assert found["std"] == {"value": 0.0}
    else:
        assert_says_what_to_install(found["std"], "numpy")


def test_what_is_installed_works_together(subset):
    found = probe(subset)["together"]
    missing = [plugin for plugin in ("batching", "autodiff") if plugin not in subset]
    if missing:
        assert_says_what_to_install(found, missing[0])
    else:
        assert found == {"value": [1.0] * 3}


def test_only_what_is_installed_was_imported(subset):
    assert probe(subset)["imported in the end"] == sorted(f"plait_{plugin}" for plugin in subset)


def test_doctor_finds_no_fault(subset):
    """Entry points for distributions that are not there are no faults."""
    assert probe(subset)["doctor"] == [0, "nothing is wrong"]
