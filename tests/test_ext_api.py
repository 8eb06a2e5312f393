"""What plugins build on, compared with its snapshot, and the snapshot with the last release's.

Invariant: a name, parameter or trait of `plait.ext` changes together with the snapshot, and
PLUGIN_API with what the change asks of plugins.
"""

import ast
import difflib
import importlib
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from plait import ext
from plait._core.primitive import primitives

ROOT = Path(__file__).parents[1]
CHANGELOG = ROOT / "packages" / "core" / "CHANGELOG.md"


def load(name: str):
    """A script in the docs folder."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


api = load("ext_api")


def recorded() -> str:
    """The snapshot."""
    return api.SNAPSHOT.read_text(encoding="utf-8")


@cache
def snapshot() -> str:
    """The snapshot of the code, in a process where no package has added to its classes."""
    command = [sys.executable, "-c", "import ext_api; print(ext_api.snapshot(), end='')"]
    docs = str(ROOT / "docs")
    done = subprocess.run(command, cwd=docs, capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": docs})  # fmt: skip
    return done.stdout


def released() -> str | None:
    """Return the snapshot of the last release of core; without its commit skip the test, or fail it
    where CI is set, since skipped tests would leave the job green."""
    try:
        return api.last_release()
    except LookupError as error:
        if os.environ.get("CI"):
            pytest.fail(f"{error}; clone with the whole history (fetch-depth: 0)")
        pytest.skip(str(error))


def needed(before: tuple[int, ...], step: int) -> tuple[int, int]:
    """The least PLUGIN_API after a step."""
    major, minor = before
    return {api.NONE: (major, minor), api.MINOR: (major, minor + 1), api.MAJOR: (major + 1, 0)}[
        step
    ]


def assert_stepped(before: str, now: str) -> None:
    """PLUGIN_API makes the step that the changes ask for; if not, the error lists them."""
    (old, rows), (new, others) = api.read(before), api.read(now)
    found = api.changes(rows, others)
    least = needed(old, max((c.step for c in found), default=api.NONE))
    listed = "\n".join(map(str, found))
    assert new >= least, (
        f"PLUGIN_API is {api.version(new)} and was {api.version(old)} in the last release. These "
        f"changes ask for {api.version(least)}:\n{listed}\nTake them back, or set PLUGIN_API = "
        f'{least} in plait/_plugins/metadata.py, say "PLUGIN_API {api.version(least)}" in '
        "packages/core/CHANGELOG.md, and run python docs/ext_api.py --write"
    )


def test_the_snapshot_is_that_of_the_code():
    have, want = snapshot().splitlines(), recorded().splitlines()
    lines = difflib.unified_diff(want, have, "packages/core/ext-api.txt", "plait.ext", "", "", 0)
    assert have == want, (
        "\n".join(lines) + "\nTake it back if no plugin should notice; else run\n"
        "  python docs/ext_api.py --write\nand step PLUGIN_API as the change asks for"
    )


def test_plugin_api_makes_the_steps_that_changes_ask_for():
    before = released()
    if before is None:  # 0.1.0 was released without a snapshot, with PLUGIN_API 0.1
        assert ext.PLUGIN_API >= (1, 0)
    else:
        assert_stepped(before, snapshot())


def used(source: str) -> set[str]:
    """Return the names of `plait.ext` that a module imports, or takes of `ext`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("plait.ext"):
            found |= {f"{node.module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Attribute) and (of := ast.unparse(node)).startswith("ext."):
            found.add(f"plait.{of}")
    return found


def later(names: set[str], snapshot: set[str]) -> list[str]:
    """Return the names that a snapshot does not have, without members of those that it has."""
    modules = {row[:at] for row in snapshot for at in range(len(row)) if row[at] == "."}
    known = {n for n in names if n in snapshot | modules or n.rpartition(".")[0] in snapshot}
    return sorted(
        n for n in names - known if not any(n.startswith(f"{k}.") for k in known & snapshot)
    )


@pytest.mark.parametrize(
    "source, found",
    [
        ("from plait.ext.ir import Program, newer", ["plait.ext.ir.newer"]),
        ("from plait.ext import ir\nfrom plait import ext\next.Aval", []),
        (
            "from plait import ext\next.ir.Program.inputs\next.newer.sub()",
            ["plait.ext.newer", "plait.ext.newer.sub"],
        ),
        ("from plait.ext.newer import x", ["plait.ext.newer.x"]),
        ("import next_one\nnext_one.ext.Aval", []),
    ],
)
def test_names_that_a_snapshot_does_not_have_are_found(source, found):
    rows = {"plait.ext.Aval", "plait.ext.ir.Program", "plait.ext.ir.Program.inputs"}
    assert later(used(source), rows) == found


DECLARING = [p.parent for p in sorted(ROOT.glob("*/*/pyproject.toml"))]


@pytest.mark.parametrize("folder", DECLARING, ids=lambda f: f.name)
def test_no_plugin_uses_names_later_than_the_api_it_declares(folder):
    """A core of the declared PLUGIN_API loads the plugin, and must have all that it imports."""
    table = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [*table.get("entry-points", {}).get("plait.plugin_api", {})]
    if declared in ([], [api.version(ext.PLUGIN_API)]):
        return
    before = released()
    assert before is not None
    of, rows = api.read(before)
    assert declared == [api.version(of)], "only the last release's names are known"
    names = {n for p in folder.glob("src/**/*.py") for n in used(p.read_text(encoding="utf-8"))}
    new = later(names, set(rows))
    assert not new, f"{folder.name} declares PLUGIN_API {declared[0]}, and uses {new}"


@pytest.mark.parametrize("ci", [None, "true"])
def test_a_missing_release_fails_where_ci_is_set(ci, monkeypatch):
    def absent():
        raise LookupError("no commit")

    monkeypatch.setattr(api, "last_release", absent)
    monkeypatch.delenv("CI", raising=False)
    if ci:
        monkeypatch.setenv("CI", ci)
    with pytest.raises(pytest.fail.Exception if ci else pytest.skip.Exception, match="no commit"):
        released()


def test_the_changelog_names_the_version():
    """Of what is unreleased, or of the newest release that changed it."""
    text = CHANGELOG.read_text(encoding="utf-8")
    named = re.findall(r"PLUGIN_API (\d+\.\d+)", text)
    assert named[:1] == [api.version(ext.PLUGIN_API)], (
        f"say in {CHANGELOG.relative_to(ROOT)} what plugin authors notice of PLUGIN_API "
        f"{api.version(ext.PLUGIN_API)}, by that name"
    )


def test_the_snapshot_is_sorted_and_has_every_primitive():
    head, blank, *rows = recorded().splitlines()
    assert head == f"PLUGIN_API {api.version(ext.PLUGIN_API)}" and blank == ""
    assert rows == sorted(rows) and len({r.partition(": ")[0] for r in rows}) == len(rows)
    api.public()  # loads all that there is
    spaces = ("core", "linalg", "special", "nn")
    shown = set(re.findall(rf": primitive ((?:{'|'.join(spaces)})\.\w+)", "\n".join(rows)))
    assert {n for n, p in primitives().items() if p.namespace in spaces} == shown


@pytest.mark.parametrize("family", [m for m in api.modules() if m.startswith("plait.ext.ops.")])
def test_a_missing_rule_names_the_primitive_as_its_module_does(family):
    """Also in modules that packages of their own offer."""
    module = importlib.import_module(family)
    offered = {name: getattr(module, name) for name in dir(module)}
    table = ext.RuleTable("colour")
    for prim in [v for v in offered.values() if isinstance(v, ext.Primitive)]:
        fix = table.missing(prim).fix
        (name,) = set(re.findall(r"rule\((\w+)\)", fix() if callable(fix) else fix))
        assert offered.get(name) is prim, fix


# ---- who uses it ---------------------------------------------------------------------------


CONTRACT = {"PLUGIN_API", "Run"}
"""What is offered to be looked at, not built with."""


def code(path: Path) -> str:
    """The Python of a module, or of a page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return text
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S))


def asked_for(path: Path) -> set[str]:
    """The full names of core that a source imports, or reaches through what it imports."""
    tree = ast.parse(code(path))
    names, found = {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level:
            names |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        elif isinstance(node, ast.Import):
            names |= {
                a.asname or top(a.name): a.name if a.asname else top(a.name) for a in node.names
            }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            head, dot, rest = ast.unparse(node).partition(".")
            found.add(f"{names.get(head, head)}{dot}{rest}")
    return found | {*names.values()}


def top(name: str) -> str:
    """The package at the top of a name."""
    return name.partition(".")[0]


def test_every_name_is_used_by_a_package_an_example_or_a_page():
    """Primitives and traits are offered whole; the rest is what somebody builds with."""
    sources = [*ROOT.glob("packages/*/src/plait_*/**/*.py"), *ROOT.glob("examples/**/*.py")]
    sources += (ROOT / "docs").rglob("*.md")
    used = set().union(*map(asked_for, sources))
    lines = dict(row.split(": ", 1) for row in snapshot().splitlines()[2:])
    homes = {}
    for name, line in lines.items():
        if line.startswith("is "):
            homes.setdefault(line.removeprefix("is "), []).append(name)
    idle = [
        name
        for name, line in lines.items()
        if line.split()[0] not in ("primitive", "trait", "is")
        and name.rpartition(".")[0] in {*api.modules()} - {f"plait.ext.{m}" for m in api.OFFERED}
        and not {name, *homes.get(name, ())} & used
    ]
    assert [name for name in idle if name.rpartition(".")[2] not in CONTRACT] == []


def test_the_reference_describes_every_name():
    """In the section of its module, as an entry or in a sentence."""
    page = (ROOT / "docs" / "reference" / "ext.md").read_text(encoding="utf-8")
    made = load("names").on_page_markdown(page)
    head, *parts = re.split(r"^## (plait\.ext\S*)$", made, flags=re.M)
    sections = {"plait.ext": head, **dict(zip(parts[::2], parts[1::2]))}
    for module in api.modules():
        for name in importlib.import_module(module).__all__:
            word = re.escape(name)
            told = re.search(rf"^### {word}(?: {{.*}})?$|`{word}[`(]", sections[module], re.M)
            assert told, f"docs/reference/ext.md says nothing of {module}.{name}"


# ---- the steps -----------------------------------------------------------------------------

OLD = {
    "f": "function(x, n, *, axis=None)",
    "p": "primitive core.p(x, /, *, axis) is linear elementwise",
    "c": "class(a)",
    "c.m": "method()",
    "c.t": "attribute",
    "v": "value",
}


@pytest.mark.parametrize(
    "new, step",
    [
        ({}, "NONE"),
        ({"g": "value"}, "MINOR"),
        ({"c.n": "method()"}, "MINOR"),
        ({"v": None}, "MAJOR"),
        ({"p": "primitive mine.p formerly core.p(x, /, *, axis) is linear elementwise"}, "MINOR"),
        ({"p": "primitive mine.p(x, /, *, axis) is linear elementwise"}, "MAJOR"),
        ({"p": "primitive core.p formerly mine.p(x, /, *, axis) is linear elementwise"}, "MINOR"),
        ({"c.m": None}, "MAJOR"),
        ({"c.m": "attribute"}, "MAJOR"),
        ({"v": "function()"}, "MAJOR"),
        ({"f": "function(x, n, *, axis=None, wide=False)"}, "MINOR"),
        ({"f": "function(x, n, m=1, *, axis=None)"}, "MINOR"),
        ({"f": "function(x, n=1, *, axis=None)"}, "MINOR"),
        ({"f": "function(x, n, axis=None)"}, "MINOR"),
        ({"f": "function(x, n, *, axis=None, **others)"}, "MINOR"),
        ({"f": "function(x, n, *, axis=None, wide)"}, "MAJOR"),
        ({"f": "function(x, n, m, *, axis=None)"}, "MAJOR"),
        ({"f": "function(n, x, *, axis=None)"}, "MAJOR"),
        ({"f": "function(x, n, *, axis=0)"}, "MAJOR"),
        ({"f": "function(x, n, *, axis)"}, "MAJOR"),
        ({"f": "function(x, n, *, dim=None)"}, "MAJOR"),
        ({"f": "function(x, n)"}, "MAJOR"),
        ({"f": "function(x, *, n, axis=None)"}, "MAJOR"),
        ({"p": "primitive core.p(y, /, *, axis) is linear elementwise"}, "MINOR"),
        ({"p": "primitive core.p(x, /, *, axis, wide=False) is linear elementwise"}, "MINOR"),
        ({"p": "primitive core.p(x, /, *, axis) is linear elementwise discrete"}, "MINOR"),
        ({"p": "primitive core.p(x, /, *, axis, wide) is linear elementwise"}, "MAJOR"),
        ({"p": "primitive core.p(x, y, /, *, axis) is linear elementwise"}, "MAJOR"),
        ({"p": "primitive core.p(x, /) is linear elementwise"}, "MAJOR"),
        ({"p": "primitive core.p(x, /, *, axis) is elementwise"}, "MAJOR"),
        ({"p": "primitive core.q(x, /, *, axis) is linear elementwise"}, "MAJOR"),
    ],
)
def test_steps(new, step):
    now = {name: line for name, line in {**OLD, **new}.items() if line is not None}
    assert max((c.step for c in api.changes(OLD, now)), default=0) == getattr(api, step)


@pytest.mark.parametrize(
    "before, now, least",
    [
        ("1.0\n\nf: value", "1.0\n\nf: value\ng: value", "1.1"),
        ("1.4\n\nf: value", "1.4\n\nf: value\ng: value", "1.5"),
        ("1.4\n\nf: value\ng: value", "1.5\n\nf: value", "2.0"),
        ("1.4\n\nf: value", "1.3\n\nf: value", "1.4"),
    ],
)
def test_a_step_that_is_missing_is_told(before, now, least):
    with pytest.raises(AssertionError) as error:
        assert_stepped(f"PLUGIN_API {before}", f"PLUGIN_API {now}")
    assert f"ask for {least}" in str(error.value) and "--write" in str(error.value)


@pytest.mark.parametrize(
    "before, now",
    [
        ("1.0\n\nf: value", "1.0\n\nf: value"),
        ("1.0\n\nf: value", "1.1\n\nf: value\ng: value"),
        ("1.4\n\nf: value\ng: value", "2.0\n\nf: value"),
    ],
)
def test_a_step_that_is_made_is_enough(before, now):
    assert_stepped(f"PLUGIN_API {before}", f"PLUGIN_API {now}")
