"""Partial upgrades: releases of the packages beside each other and beside this tree.

A plugin and a core fit if the plugin's range admits the core.  Where they fit, all of the plugin
works; where they do not, pip refuses, and where they were forced together the plugin is refused by
name when it is used, and nothing else is.  A plugin that was built for an earlier PLUGIN_API of the
same major version is not refused then: it works, with the array library beside it.

Invariant: every pair of a plugin and a core is tried, and what its metadata says decides which of
the two is expected.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROBE = ROOT / "tests" / "install" / "probe.py"
PLUGINS = ("autodiff", "batching", "sharding", "export", "state")
WORK = {"autodiff": 1.0, "batching": [3], "sharding": [4], "export": 1.0, "state": 3.0}
LIBRARY = ("numpy", "checks", "testing")
"""Packages that were part of core before 0.3; plugins' tests are written with them."""
QUICK = {
    "autodiff": ("test_functions.py", "test_reduction.py", "test_custom.py"),
    "batching": ("test_reduction.py", "test_indexing.py", "test_keys.py"),
    "sharding": ("test_mesh.py", "test_placement.py"),
    "export": ("test_calling.py", "test_container.py"),
    "state": ("test_references.py",),
}
"""Of each plugin, tests that take seconds and need nothing but numpy."""

pytestmark = pytest.mark.skipif(
    "PLAIT_TEST_RELEASES" not in os.environ, reason="run by `nox -s releases`"
)


def versions(package: str) -> list[str]:
    """The released versions of a package, and "tree"."""
    rows = tomllib.loads((ROOT / "releases.toml").read_text(encoding="utf-8"))["release"]
    return [*(r["version"] for r in rows if r["package"] == f"plait-{package}"), "tree"]


PAIRS = [(p, mine, core) for p in PLUGINS for mine in versions(p) for core in versions("core")]
OLD = versions("core")[0]


@pytest.fixture
def fits(built, releasing):
    """`fits(plugin, version, core)`: whether the plugin's range admits this core."""

    def ask(plugin: str, version: str, core: str) -> bool:
        needs = releasing.project(built(plugin, version).source)["dependencies"]
        have = releasing.project(built("core", core).source)["version"]
        return releasing.admits(needs, have)

    return ask


@pytest.fixture
def loads(built, releasing, fits):
    """`loads(plugin, version, core)`: whether the core loads the plugin, if they are forced
    together."""

    def ask(plugin: str, version: str, core: str) -> bool:
        if core == OLD:  # it compares ranges
            return fits(plugin, version, core)
        have = [*map(int, api_of(built("core", core).source).split("."))]
        mine = api_of_plugin(releasing.project(built(plugin, version).source))
        split = [[*map(int, version.split("."))] for version in mine]
        return any(major == have[0] and minor <= have[1] for major, minor in split)

    return ask


@pytest.fixture
def refusal(built, releasing):
    """`refusal(plugin, version, core)`: what the error says of a plugin that the core refuses."""

    def words(plugin: str, version: str, core: str) -> list[str]:
        mine = releasing.project(built(plugin, version).source)
        have = releasing.project(built("core", core).source)
        if core == OLD:  # it compares ranges: later cores compare versions of the plugin API
            bounds = mine["dependencies"][0].removeprefix("plait-core").split(",")
            said = [*bounds, have["version"]]
        else:
            said = ["PLUGIN_API", api_of(built("core", core).source), *api_of_plugin(mine)]
        name = f"plait-{plugin}"
        older = "plait-core" if core != OLD and said[2:] > said[1:2] else name
        return [f"{name} {mine['version']}", *said, f"pip install --upgrade {older}"]

    return words


def api_of(source: Path) -> str:
    """The version of `plait.ext` that a core has, as its source says it."""
    text = (source / "src" / "plait" / "_plugins" / "metadata.py").read_text(encoding="utf-8")
    (line,) = [row for row in text.splitlines() if row.startswith("PLUGIN_API = ")]
    return line.partition("= ")[2].strip("()").replace(", ", ".")


def api_of_plugin(table: dict) -> list[str]:
    """The version that a plugin declares to be built for, if it declares one."""
    return [*table["entry-points"].get("plait.plugin_api", {})]


@pytest.fixture(scope="module")
def probed(python):
    """`probed(**versions)`: the report of a Python that has these versions."""
    made = {}

    def probe(**chosen: str) -> dict:
        key = tuple(sorted(chosen.items()))
        if key not in made:
            done = python(chosen, str(PROBE))
            assert done.returncode == 0, done.stderr
            made[key] = json.loads(done.stdout)
        return made[key]

    return probe


def assert_refused(found: dict, said: list[str]) -> None:
    """A PluginError of three parts, with what it must say."""
    assert "PluginError" in found["kinds"], found
    assert not [words for words in said if words not in found["error"]], (found["error"], said)
    assert "probe.py:" in found["error"] and "pip install --upgrade" in found["error"]


@pytest.mark.parametrize("plugin, version, core", PAIRS)
def test_one_plugin_on_one_core(plugin, version, core, fits, loads, refusal, probed):
    report = probed(core=core, **{plugin: version})
    assert report["compiled"] == 2.0
    assert report["imported by computing"] == []
    if fits(plugin, version, core):
        assert report["work"][plugin] == {"value": WORK[plugin]}
    elif loads(plugin, version, core):
        beside = probed(core=core, numpy="tree", **{plugin: version})
        assert beside["work"][plugin] == {"value": WORK[plugin]}
    else:
        assert_refused(report["work"][plugin], refusal(plugin, version, core))
        assert report["imported in the end"] == []
    for other in {*PLUGINS} - {plugin}:
        assert "MissingPlugin" in report["work"][other]["kinds"]


@pytest.mark.parametrize("core, older", [("tree", OLD), (OLD, "tree")])
@pytest.mark.parametrize("odd", [p for p in PLUGINS if OLD in versions(p)])
def test_one_plugin_of_another_release_among_siblings(odd, core, older, fits, refusal, probed):
    """The others work whole, and the odd one is refused; some are younger than that release."""
    chosen = {p: older if p == odd else core for p in PLUGINS}
    chosen = {p: version for p, version in chosen.items() if version in versions(p)}
    report = probed(core=core, **chosen)
    assert report["compiled"] == 2.0
    for plugin in PLUGINS:
        found = report["work"][plugin]
        if plugin not in chosen:
            assert "MissingPlugin" in found["kinds"]
        elif fits(plugin, chosen[plugin], core):
            assert found == {"value": WORK[plugin]}
        else:
            assert_refused(found, refusal(plugin, chosen[plugin], core))
    assert report["imported in the end"] == sorted(
        f"plait_{p}" for p in chosen if fits(p, chosen[p], core)
    )


MIXED = [(p, mine, core) for p, mine, core in PAIRS if mine != core]


@pytest.mark.parametrize("plugin, version, core", MIXED)
def test_pip_installs_what_fits_and_refuses_the_rest(plugin, version, core, built, fits):
    wheels = [str(built("core", core).wheel), str(built(plugin, version).wheel)]
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", *wheels]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=240)
    if fits(plugin, version, core):
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode != 0
        assert f"plait-{plugin}" in done.stderr and "conflict" in done.stderr


@pytest.mark.parametrize("plugin, version, core", MIXED)
def test_what_fits_passes_its_own_tests(plugin, version, core, built, fits, python):
    """A release beside this tree, in either role."""
    if not fits(plugin, version, core):
        return  # `test_one_plugin_on_one_core` has it refused
    folder = built(plugin, version).source / "tests"
    files = [str(folder / name) for name in QUICK[plugin] if (folder / name).exists()]
    assert files
    options = ("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder.parent), "-q")
    quiet = ("-p", "no:cacheprovider", "--import-mode=importlib")
    written_with = {p: "tree" for p in LIBRARY if fits(p, "tree", core)}
    chosen = {"core": core, **written_with, plugin: version}
    done = python(chosen, "-m", "pytest", *options, *quiet, *files)
    assert done.returncode == 0, done.stdout[-4000:]


# ---- what the doctor says of mixtures ---------------------------------------------------------

ALL = (*LIBRARY, "inspect", *PLUGINS, "sparse", "jax")


def newest_that_does_not_fit(package: str, releasing, fits) -> str | None:
    """Return the newest release of a package whose range does not admit this tree's core."""
    found = [v for v in versions(package) if v != "tree" and not fits(package, v, "tree")]
    return max(found, key=releasing.Version, default=None)


def diagnosis(python, chosen: dict[str, str]) -> tuple[int, str]:
    """Return the exit status of the doctor and its report, for chosen versions."""
    done = python(chosen, "-m", "plait", "doctor", PLAIT_CACHE_DIR="")
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


def stale(odd: str, releasing, fits) -> dict[str, str]:
    """Return versions after an upgrade that left one package behind, or all that can be."""
    older = {p: newest_that_does_not_fit(p, releasing, fits) for p in (*PLUGINS, "jax")}
    if odd == "all":
        return {"core": "tree", **{p: v for p, v in older.items() if v}}
    return {p: older[p] if p == odd else "tree" for p in ("core", *ALL)}


@pytest.mark.parametrize("odd", ["all", "autodiff", "batching", "sharding", "export", "jax"])
def test_the_command_of_the_doctor_repairs_a_partial_upgrade(odd, built, fits, releasing, python):
    """One command for all that does not fit, after which everything does, and no package is older
    than before."""
    chosen = stale(odd, releasing, fits)
    status, report = diagnosis(python, chosen)
    assert status == 1
    for package in chosen:
        row = re.search(rf"^plait-{package} .*$", report, re.M)
        assert row is not None
        if package != "core":
            assert row[0].endswith(": fits" if chosen[package] == "tree" else ": does not fit")
    behind = {p for p, version in chosen.items() if version != "tree"}
    assert {*re.findall(r"^\d+\. plait-(\w+)", report, re.M)} == behind, report
    (typed,) = re.findall(r"^ +python -m (pip install .*)$", report, re.M)
    links = {
        str(built(p, v).wheel.parent) for p in ("core", *ALL) for v in ("tree", chosen.get(p)) if v
    }
    given = [part for link in sorted(links) for part in ("--find-links", link)]
    asked = ("--dry-run", "--quiet", "--no-index", "--report", "-", *given)
    done = python(chosen, "-m", *shlex.split(typed), *asked)
    assert done.returncode == 0, done.stderr
    rows = [row["metadata"] for row in json.loads(done.stdout)["install"]]
    after = {row["name"].removeprefix("plait-"): row["version"] for row in rows}
    assert {*after} >= behind
    for package, version in after.items():
        assert version == releasing.project(built(package, "tree").source)["version"]
    status, report = diagnosis(python, {**chosen, **dict.fromkeys(after, "tree")})
    assert (status, report.splitlines()[-1]) == (0, "nothing is wrong")


RELEASED = [(p, v) for p in ALL for v in versions(p) if v != "tree"]


@pytest.mark.parametrize("odd, version", RELEASED)
def test_a_release_that_fits_works_among_siblings_of_this_tree(odd, version, fits, python, probed):
    """Every entry point loads, or an extra of the sibling says which versions it works with: then
    the doctor names the range."""
    if not fits(odd, version, "tree"):
        return  # `test_the_command_of_the_doctor_repairs_a_partial_upgrade` has it reported
    chosen = {"core": "tree", **dict.fromkeys(ALL, "tree"), odd: version}
    status, report = diagnosis(python, chosen)
    if status:
        faults = re.findall(r"^\d+\. (.*)$", report, re.M)
        assert all(f"works with plait-{odd}" in fault for fault in faults), report
    else:
        found = probed(**chosen)["work"]
        assert {p: found[p] for p in PLUGINS} == {p: {"value": WORK[p]} for p in PLUGINS}


# ---- import jax ------------------------------------------------------------------------------

BRIDGE = """
import plait_jax
plait_jax.install()
import jax, jax.numpy as jnp, jax.lax, jax.tree_util, jax.nn, jax.random, jax.scipy.special
print(float(jnp.sin(0.0)), float(jax.jit(lambda x: x * 2)(1.0)))
"""


@pytest.mark.parametrize("version", versions("jax"))
@pytest.mark.parametrize("core", versions("core"))
def test_import_jax_on_one_core(version, core, built, fits, python):
    """A plait-jax works on each core that its range admits, and pip refuses it on the others."""
    beside = {"numpy": "tree"} if fits("numpy", "tree", core) else {}
    chosen = {"core": core, **beside, "jax": version}
    wheels = pip_would_install(*[built(*item) for item in chosen.items()])
    if not fits("jax", version, core):
        assert wheels.returncode != 0 and "plait-jax" in wheels.stderr
        return
    assert wheels.returncode == 0, wheels.stderr
    done = python(chosen, "-c", BRIDGE)
    assert done.stdout == "0.0 2.0\n", done.stderr


# ---- the array library, which was in the core before 0.3 -----------------------------------

BEFORE = [v for v in versions("core") if v != "tree"]


def test_the_core_alone_says_what_brings_the_array_library(probed, python):
    found = probed(core="tree")["work"]["numpy"]
    assert "MissingPlugin" in found["kinds"] and "pip install plait-numpy" in found["error"]
    done = python({"core": "tree"}, "-c", "import plait.numpy as pnp\npnp.zeros(3)")
    assert done.returncode == 1
    assert "plait.numpy belongs to plait-numpy, which is not installed" in done.stderr
    assert "python -m pip install plait-numpy" in done.stderr


def test_the_core_beside_the_array_library_is_what_it_was(probed):
    assert probed(core="tree", numpy="tree")["work"]["numpy"] == {"value": 0.0}


@pytest.mark.parametrize("core", BEFORE)
def test_earlier_cores_have_an_array_library_of_their_own(core, probed):
    """Also beside the new one, which pip refuses to install there."""
    assert probed(core=core)["work"]["numpy"] == {"value": 0.0}
    report = probed(core=core, numpy="tree")
    assert report["work"]["numpy"] == {"value": 0.0}
    assert report["imported in the end"] == []


@pytest.mark.parametrize("core", BEFORE)
@pytest.mark.parametrize("package", LIBRARY)
def test_pip_refuses_the_array_library_beside_an_earlier_core(package, core, built):
    done = pip_would_install(built("core", core), built("numpy", "tree"), built(package, "tree"))
    assert done.returncode != 0
    assert "conflict" in done.stderr and "plait-core" in done.stderr


def pip_would_install(*distributions):
    """Return how pip resolves some wheels together, and no others."""
    wheels = [str(one.wheel) for one in dict.fromkeys(distributions)]
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", *wheels]
    return subprocess.run(pip, capture_output=True, text=True, timeout=240)


def test_the_meta_distribution_brings_the_array_library(built):
    core, numpy, meta = built("core", "tree"), built("numpy", "tree"), built("", "tree")
    done = pip_would_install(core, numpy, meta)
    assert done.returncode == 0, done.stderr
    assert "plait-numpy" in done.stdout
    done = pip_would_install(core, meta)
    assert done.returncode != 0 and "plait-numpy" in done.stderr
