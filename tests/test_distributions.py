"""What the packages say of themselves: versions, requirements, entry points, licences.

Invariant: each fact about a package stands in its own pyproject.toml; where it is repeated, a
test here compares the two.
"""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

from plait import ext
from plait._api import inventory
from plait._plugins import metadata

ROOT = Path(__file__).parents[1]
PLUGINS = (
    "numpy",
    "checks",
    "testing",
    "inspect",
    "autodiff",
    "batching",
    "sharding",
    "export",
    "state",
    "sparse",
)
OPTIONAL = tuple([p for p in PLUGINS if p != "numpy"])
"""The packages that are extras of the meta-distribution, which brings the array library itself."""
ON_NUMPY = {"checks", "testing", "sparse", "jax"}
"""Packages that are written with the array library, and require it."""
BUILT_ON_CORE = (*PLUGINS, "jax")
PACKAGES = ("core", *BUILT_ON_CORE)


@cache
def project(package: str) -> dict:
    """The `project` table of a package, or of the meta-distribution for an empty name."""
    folder = ROOT / "packages" / package if package else ROOT
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def points(package: str) -> list[tuple[str, str, str]]:
    """The entry points of a package: (group, name, value)."""
    groups = project(package)["entry-points"]
    return [(group, name, value) for group, rows in groups.items() for name, value in rows.items()]


EVERY_POINT = [(package, *point) for package in PACKAGES for point in points(package)]


AT_THE_ROOT = {
    ".gitignore", ".pre-commit-config.yaml", "ARCHITECTURE.md", "CHANGELOG.md", "CITATION.cff",
    "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md", "conftest.py",
    "hatch_build.py", "mkdocs.yml", "noxfile.py", "pyproject.toml", "releases.toml", "releasing.py",
}  # fmt: skip


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only a repository lists its files")
def test_no_file_was_left_at_the_root():
    """Programs of pages write files, and one was committed."""
    call = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True)
    assert {f for f in listed.stdout.splitlines() if "/" not in f} <= AT_THE_ROOT


def test_every_package_folder_is_known():
    found = {p.parent.name for p in ROOT.glob("packages/*/pyproject.toml")}
    assert found == {*PACKAGES}


def test_plugins_require_the_core_alone_or_with_the_array_library():
    for plugin in BUILT_ON_CORE:
        wanted = ["plait-core", "plait-numpy"] if plugin in ON_NUMPY else ["plait-core"]
        assert [row.partition(">")[0] for row in project(plugin)["dependencies"]] == wanted


@pytest.mark.parametrize("package", ("", *BUILT_ON_CORE))
def test_one_minor_of_core_is_admitted_while_it_is_0_x(package):
    """Below 1.0 a minor may take away, and so no range reaches over two."""
    row = project(package)["dependencies"][0]
    lower, upper = re.fullmatch(r"plait-core>=0\.(\d+)(?:\.\d+)?,<0\.(\d+)", row).groups()
    assert int(upper) == int(lower) + 1
    assert project("core")["version"].split(".")[:2] == ["0", lower]


def test_extras_have_the_range_of_the_release_they_belong_to():
    for plugin in OPTIONAL:
        name = "plait-batching[piles]" if plugin == "batching" else f"plait-{plugin}"
        assert project("")["optional-dependencies"][plugin] == [f"{name}{range_of(plugin)}"]
    assert project("")["dependencies"][1] == f"plait-numpy{range_of('numpy')}"


def test_siblings_are_required_by_the_range_of_their_release():
    for package in PACKAGES:
        extras = project(package).get("optional-dependencies", {}).values()
        for row in [*project(package)["dependencies"], *sum(extras, [])]:
            name = re.match(r"plait-(\w+)|", row)[1]
            assert name not in PLUGINS or keeps_range(row, name)


def keeps_range(row: str, name: str) -> bool:
    """Return whether a requirement admits one minor of a sibling, from a release of it on that is
    not later than the one at hand."""
    major, minor, patch = map(int, project(name)["version"].split("."))
    found = re.fullmatch(
        rf"plait-{name}(?:\[\w+\])?>={major}\.{minor}(?:\.(\d+))?,<{major}\.{minor + 1}", row
    )
    return found is not None and int(found[1] or 0) <= patch


@pytest.mark.parametrize(
    "bounds, kept",
    [
        (">=0.3,<0.4", True),
        (">=0.3.1,<0.4", True),
        (">=0.3.2,<0.4", False),
        (">=0.2,<0.4", False),
        (">=0.3.1", False),
        (">=0.3,<0.5", False),
    ],
)
def test_a_floor_may_be_raised_to_a_release_of_the_sibling(bounds, kept, monkeypatch):
    monkeypatch.setitem(globals(), "project", lambda name: {"version": "0.3.1"})
    assert keeps_range(f"plait-autodiff{bounds}", "autodiff") is kept


def range_of(package: str) -> str:
    """The versions of a package that others of its age require."""
    minor = int(project(package)["version"].split(".")[1])
    return f">=0.{minor},<0.{minor + 1}"


@pytest.mark.parametrize("plugin", BUILT_ON_CORE)
def test_every_plugin_declares_the_api_it_was_built_for(plugin):
    major, minor = ext.PLUGIN_API
    declared = project(plugin)["entry-points"]["plait.plugin_api"]
    assert [*declared.values()] == [f"plait_{plugin}"]
    ((built_major, built_minor),) = (map(int, name.split(".")) for name in declared)
    assert built_major == major and built_minor <= minor


def test_the_page_on_support_has_the_bounds_that_are_declared():
    """Those of the core, which is the only package that requires numpy or jaxlib."""
    page = (ROOT / "docs" / "support.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (Python|jaxlib|numpy) \| ([^|]+?) \|", page, re.M))
    table = project("core")
    bounds = {row.partition(">")[0]: re.findall(r"[\d.]+", row) for row in table["dependencies"]}
    after = lambda bound: f"0.{int(bound.split('.')[1]) - 1}"
    low, high = bounds["jaxlib"]
    assert rows["jaxlib"] == f"{low} to {after(high)}"
    assert rows["numpy"] == f"from {bounds['numpy'][0]}"
    low, high = re.fullmatch(r">=(3\.\d+),<3\.(\d+)", table["requires-python"]).groups()
    assert rows["Python"] == f"{low} to 3.{int(high) - 1}"
    others = [r for p in BUILT_ON_CORE for r in sum(rows_of(p), [])]
    assert not [row for row in others if re.match(r"(numpy|jaxlib)\b", row)]


def rows_of(package: str) -> list[list[str]]:
    """The requirements of a package, and of each of its extras."""
    table = project(package)
    return [table["dependencies"], *table.get("optional-dependencies", {}).values()]


def test_no_requirement_is_pinned():
    for package in ("", *PACKAGES):
        extras = project(package).get("optional-dependencies", {})
        rows = [*project(package)["dependencies"], *(r for rows in extras.values() for r in rows)]
        assert not [row for row in rows if "==" in row]


def test_the_meta_distribution_offers_every_plugin():
    extras = project("")["optional-dependencies"]
    assert extras["all"] == [row for plugin in OPTIONAL for row in extras[plugin]]
    names = [re.match(r"[\w-]+", row)[0] for row in extras["all"]]
    assert names == [f"plait-{p}" for p in OPTIONAL]


def test_all_ask_for_the_same_pythons():
    assert len({project(package)["requires-python"] for package in ("", *PACKAGES)}) == 1


@pytest.mark.parametrize("package", [p for p in PACKAGES if p != "core"])
def test_each_package_brings_a_program_for_the_doctor(package):
    importlib.import_module(f"plait_{package}.doctor").check()


HOME = "https://plait.example/source/"


@pytest.mark.parametrize("package", ("", *PACKAGES))
def test_every_distribution_says_where_it_comes_from(package):
    table = project(package)
    folder = f"packages/{package}/" if package else ""
    start = HOME
    assert table["authors"] and table["keywords"]
    assert table["urls"]["Source"] + "/" == start
    assert table["urls"]["Changelog"] == f"{start}blob/main/{folder}CHANGELOG.md"
    assert (ROOT / folder / "CHANGELOG.md").is_file()


@pytest.mark.parametrize("package", ("", *PACKAGES))
def test_links_of_a_readme_hold_where_an_index_shows_it(package):
    """They are absolute, and lead to files of this tree; `hatch_build.py` makes those of the root
    so."""
    page = ROOT / "packages" / package / "README.md" if package else ROOT / "README.md"
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        if not package and not target.startswith(("https://", "#")):
            assert (ROOT / target.partition("#")[0]).exists(), target
            continue
        assert target.startswith(("https://", "#")), target
        within = re.fullmatch(re.escape(HOME) + r"(blob|tree)/main/([^#]+)(#.*)?", target)
        if within:
            there = ROOT / within[2]
            assert there.is_dir() if within[1] == "tree" else there.is_file(), target


INDEX_NAMES = {"typing_extensions": "typing-extensions", "ml_dtypes": "ml-dtypes"}


def imported(package: str) -> set[str]:
    """The distributions of others that the sources of a package import, and those of ours."""
    name = "plait" if package == "core" else f"plait_{package}"
    found = set()
    for path in (ROOT / "packages" / package / "src" / name).rglob("*.py"):
        if "skeletons" in path.parts:  # texts of a new plugin
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            found.update(n.partition(".")[0] for n in names)
    found -= {*sys.stdlib_module_names, name, "__future__"}
    return {n for n in found if n != "plait" and not n.startswith("plait_")}


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_imported_is_required(package):
    """By the package, by an extra of it, or by the core, which each package requires."""
    extras = project(package).get("optional-dependencies", {}).values()
    rows = [*project(package)["dependencies"], *sum(extras, []), *project("core")["dependencies"]]
    required = {re.match(r"[\w.-]+", row)[0] for row in rows}
    assert {INDEX_NAMES.get(n, n) for n in imported(package)} <= required


@pytest.mark.parametrize("package", PACKAGES)
def test_the_changelog_tells_of_the_version(package):
    text = (ROOT / "packages" / package / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased = re.search(r"^## \[Unreleased\]\n\n[^#]*### ", text, re.M)
    assert f"## [{project(package)['version']}]" in text or unreleased


def test_every_distribution_carries_the_licence():
    texts = {(ROOT / "packages" / p / "LICENSE").read_text(encoding="utf-8") for p in PACKAGES}
    assert texts == {(ROOT / "LICENSE").read_text(encoding="utf-8")}


@pytest.mark.parametrize("package, group, name, value", EVERY_POINT)
def test_every_entry_point_leads_somewhere(package, group, name, value):
    module, _, attribute = value.partition(":")
    found = importlib.import_module(module)
    assert not attribute or getattr(found, attribute) is not None


OFFERED = ("plait.api", "plait.lax", "plait.debug", "plait.ext")
"""The groups of entry points that put names, and modules, into `plait` and its modules."""
MODULES = [
    (f"{group.removesuffix('.api')}.{name}", value)
    for _, group, name, value in EVERY_POINT
    if group in OFFERED and ":" not in value
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("public, home", MODULES)
def test_every_module_is_imported_by_its_public_name(public, home):
    """In a process that used nothing before: an attribute that was read would hide a failure."""
    code = f"import {public}, sys; print(sys.modules[{public!r}].__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == (home, "")


@pytest.mark.parametrize("group", sorted({group for _, group, _, _ in EVERY_POINT}))
def test_every_group_that_we_declare_in_is_one_that_the_doctor_accepts(group):
    assert group in inventory.KNOWN_GROUPS or group.startswith(inventory.RULES)


@pytest.mark.parametrize("one, other", [*combinations(PLUGINS, 2)])
def test_no_public_name_is_declared_twice(one, other):
    offered = [{n for group, n, _ in points(p) if group == "plait.api"} for p in (one, other)]
    assert not offered[0] & offered[1]


def test_the_install_hints_are_what_the_packages_offer():
    rows = [row for row in EVERY_POINT if row[1] in metadata.SURFACES and row[0] != "core"]
    assert {name: f"plait-{package}" for package, _, name, _ in rows} == metadata.HINTS
    rows = [row for row in EVERY_POINT if row[1] == "plait.tables" and row[0] != "core"]
    assert {name: f"plait-{package}" for package, _, name, _ in rows} == metadata.TABLES


def test_the_modules_of_names_have_hints_too():
    rows = [row for row in EVERY_POINT if row[1] == "plait.modules"]
    found = {name.rpartition(".")[0]: f"plait-{package}" for package, _, name, _ in rows}
    rows = [row for row in EVERY_POINT if row[1] == "plait.ext"]
    found |= {f"ext.{name}": f"plait-{package}" for package, _, name, _ in rows}
    inner = [row for row in EVERY_POINT if row[1] in ("plait.lax", "plait.debug")]
    found |= {
        f"{group.removeprefix('plait.')}.{name}": f"plait-{package}"
        for package, group, name, value in inner
        if ":" not in value
    }
    assert found == metadata.MODULES


def test_every_rule_module_is_declared_for_a_known_table():
    tables = {
        "lower",
        "eager",
        "expand",
        "notes",
        "parallel",
        "runs",
        "cpu_forms",
        "reuse",
        *metadata.TABLES,
    }
    groups = {group for _, group, _, _ in EVERY_POINT if group.startswith("plait.rules.")}
    assert {group.removeprefix("plait.rules.") for group in groups} <= tables


@pytest.mark.parametrize("plugin", BUILT_ON_CORE)
def test_sources_are_where_the_wheel_looks(plugin):
    source = ROOT / "packages" / plugin / "src" / f"plait_{plugin}"
    assert ast.parse((source / "__init__.py").read_text(encoding="utf-8"))
    assert (source / "py.typed").exists()
