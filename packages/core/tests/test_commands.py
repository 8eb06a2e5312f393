"""`python -m plait`: what it says of plugins that are installed, and what it writes.

Invariant: every distribution that is judged here lies in a folder of its own on the search path of
a process of its own; what else is installed is left out by the setting `plugins`.
"""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pytest

from plait.__main__ import core_names
from plait._api.commands import main
from plait._plugins.metadata import PLUGIN_API

API = "[plait.plugin_api]\n1.0 = good\n"
GOOD = """
from plait import ext

colour_rules = ext.RuleTable("colour", doc="rule() -> str")
shade = ext.Primitive("good.shade", lambda x: x, traits=(ext.Elementwise,))


@colour_rules.rule(shade)
def _(x):
    return "grey"


@colour_rules.rule(ext.Reduction)
def _(prim, x, **params):
    return "mixed"
"""
GOOD_POINTS = """
[plait.plugin_api]
1.0 = good
[plait.api]
shade = good:shade
[plait.lax]
shady = good:shade
[plait.tables]
colour = good:colour_rules
[plait.primitives]
good = good
[plait.rules.colour]
good = good
core = good
"""


def install(
    folder: Path, name: str, points: str, source: str = "", requires: tuple[str, ...] = ()
) -> Path:
    """Install a distribution, version 1.2.3, into a folder; return the folder."""
    info = folder / f"{name}-1.2.3.dist-info"
    info.mkdir()
    needs = "".join(f"Requires-Dist: {need}\n" for need in requires)
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2.3\n{needs}"
    (info / "METADATA").write_text(head)
    (info / "entry_points.txt").write_text(points)
    (folder / f"{name}.py").write_text(source)
    return folder


@pytest.fixture
def plugin(tmp_path):
    """`plugin(name, entry points, source, requires=())`: `install` in the folder of the test."""
    return partial(install, tmp_path)


JUDGED = "good,numpy,testing"
"""A plugin with what judges it."""


def command(line: str, folder: Path | None = None, plugins: str = "off") -> tuple[int, str, str]:
    """Status, output and errors of `python -m plait ...` where `folder` holds what is installed."""
    done = subprocess.run(
        [sys.executable, "-m", "plait", *shlex.split(line)],
        env={**os.environ, "PYTHONPATH": str(folder or ""), "PLAIT_PLUGINS": plugins},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def problems(printed: str) -> list[str]:
    """The faults that the doctor found, one text each, with the command for it; one command for
    several stands below the last."""
    found = re.split(r"^\d+\. ", printed, flags=re.M)[1:]
    for at in reversed(range(len(found) - 1)):
        if found[at].count("\n") == 1:
            found[at] += found[at + 1].partition("\n")[2]
    return found


# ---- doctor --------------------------------------------------------------------------------


def test_doctor_names_what_is_installed(plugin):
    status, out, _ = command("doctor", plugin("good", GOOD_POINTS, GOOD), "good")
    assert status == 0, out
    for package in ("plait-core", "jaxlib", "numpy"):
        assert re.search(rf"^{package} +{re.escape(version(package))}\b", out, re.M)
    assert re.search(r"^good +1\.2\.3 +plugin API 1\.0: fits$", out, re.M)
    assert re.search(r"^python +" + re.escape(sys.version.split()[0]), out, re.M)
    assert re.search(r"^devices +\d+ of cpu$", out, re.M)
    assert out.rstrip().endswith("nothing is wrong")


PROGRAMS = {
    "runs": ("def check():\n    pass\n", "its program ran", None),
    "fails": ("def check():\n    assert 1 == 2, 'wrong sum'\n", "its program failed", "wrong sum"),
    "breaks": ("import nowhere_at_all\n", "its program failed", "nowhere_at_all"),
    "lacks": ("", "its program failed", "check"),
    "none": (None, "brings no program to try", None),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", PROGRAMS)
def test_doctor_runs_the_program_that_a_plugin_brings(plugin, case):
    source, outcome, failure = PROGRAMS[case]
    folder = plugin("good", "[plait.plugin_api]\n1.0 = good\n")
    (folder / "good.py").unlink()
    (folder / "good").mkdir()
    (folder / "good" / "__init__.py").write_text("")
    if source is not None:
        (folder / "good" / "doctor.py").write_text(source)
    status, out, _ = command("doctor --check", folder, "good")
    assert re.search(rf"^good +1\.2\.3 +{outcome}$", out, re.M), out
    assert re.search(r"^plait-core +\S+ +its program ran$", out, re.M), out
    assert status == (0 if failure is None else 1) and (failure is None or failure in out)
    assert "its program" not in command("doctor", folder, "good")[1]


def test_doctor_loads_nothing_that_is_left_out(plugin):
    broken = f"{API}[plait.api]\nshade = good:shade\n"
    status, out, _ = command("doctor", plugin("good", broken, "print('imported')"))
    assert status == 0
    assert re.search(r"^good +1\.2\.3 .*left out by PLAIT_PLUGINS=off$", out, re.M)
    assert "imported" not in out


WRONG = {
    "another major": (
        dict(points="[plait.plugin_api]\n2.0 = good\n"),
        "good 1.2.3 was built for PLUGIN_API 2.0",
        "python -m pip install --upgrade plait-core",
    ),
    "a newer minor": (
        dict(points="[plait.plugin_api]\n1.99 = good\n"),
        "good 1.2.3 was built for PLUGIN_API 1.99",
        "python -m pip install --upgrade plait-core",
    ),
    "an older major": (
        dict(points="[plait.plugin_api]\n0.9 = good\n"),
        "good 1.2.3 was built for PLUGIN_API 0.9",
        "python -m pip install --upgrade good",
    ),
    "no version": (
        dict(points="[plait.primitives]\ngood = good\n"),
        "good 1.2.3 does not say which PLUGIN_API it was built for",
        "python -m pip install --upgrade good",
    ),
    "an import that fails": (
        dict(points=f"{API}[plait.api]\nshade = good:shade\n", source="import nowhere_to_be_found"),
        "(plait.api, 'shade') raised ModuleNotFoundError: No module named 'nowhere_to_be_found'",
        "python -m pip install --upgrade good   (or leave it out: PLAIT_PLUGINS without good)",
    ),
    "a name that is not there": (
        dict(points=f"{API}[plait.tables]\ncolour = good:colour_rules\n"),
        "AttributeError: module 'good' has no attribute 'colour_rules'",
        "python -m pip install --upgrade good",
    ),
    "a group that nobody reads": (
        dict(points=f"{API}[plait.rule.jvp]\ncore = good\n"),
        "good 1.2.3 declares entry points in the group 'plait.rule.jvp', which is not read",
        "plait.rules.<table>",
    ),
    "a newer core that is needed": (
        dict(points=API, requires=("plait-core>=99,<100",)),
        "good 1.2.3 needs plait-core>=99,<100, and",
        "python -m pip install --upgrade plait-core ",
    ),
    "an older numpy that is needed": (
        dict(points=API, requires=("numpy<1.5",)),
        "good 1.2.3 needs numpy<1.5, and",
        'python -m pip install --upgrade good "numpy<1.5"',
    ),
    "a package that is needed": (
        dict(points=API, requires=("nowhere-to-be-found>=1", 'nothing; extra == "more"')),
        "good 1.2.3 needs nowhere-to-be-found>=1, which is not installed",
        'python -m pip install --upgrade good "nowhere-to-be-found>=1"',
    ),
    "a name of the core": (
        dict(points=f"{API}[plait.api]\njit = good:jit\n", source="jit = 1"),
        "good 1.2.3 declares plait.jit, which core has itself",
        "if it is yours, give it another name",
    ),
}


def named(case: str) -> str:
    """The name of the distribution that is wrong in this way."""
    return f"good{list(WRONG).index(case)}"


@pytest.fixture(scope="module")
def of_all_wrong(tmp_path_factory):
    """The faults that the doctor finds where all wrong distributions are installed."""
    folder = tmp_path_factory.mktemp("wrong")
    for case, (installed, _, _) in WRONG.items():
        parts = {"source": "", "requires": (), **installed}
        texts = {k: parts[k].replace("good", named(case)) for k in ("points", "source")}
        install(folder, named(case), requires=parts["requires"], **texts)
    status, out, err = command("doctor", folder, ",".join(map(named, WRONG)))
    assert (status, err) == (1, "")
    assert "nothing is wrong" not in out
    return problems(out)


@pytest.mark.parametrize("case", WRONG)
def test_doctor_says_what_is_wrong_and_what_to_type(of_all_wrong, case):
    _, what, fix = WRONG[case]
    (told,) = [t for t in of_all_wrong if re.search(rf"\b{named(case)}\b", t.splitlines()[0])]
    first, *typed = told.splitlines()
    assert what.replace("good", named(case)) in first
    assert any(fix.replace("good", named(case)) in line for line in typed)


def test_doctor_finds_nothing_else(of_all_wrong):
    assert len(of_all_wrong) == len(WRONG)


def test_doctor_finds_what_two_plugins_both_bring(plugin):
    plugin("good", GOOD_POINTS, GOOD)
    points = API.replace("good", "rival") + "[plait.api]\nshade = rival:shade\n"
    points += "[plait.rules.colour]\ngood = rival\n"
    rule = "from good import colour_rules, shade\ncolour_rules.rule(shade)(lambda x: 'red')\n"
    status, out, _ = command("doctor", plugin("rival", points, rule), "good,rival")
    assert status == 1
    told = sorted(problems(out))
    assert len(told) == 2
    assert "plait.shade is declared by good 1.2.3 and by rival 1.2.3" in told[0]
    assert "python -m pip uninstall rival" in told[0]
    assert "two 'colour' rules for good.shade" in told[1].replace("Primitive ", "")
    assert "override=True" in told[1]


OLD = "cannot import name 'newer' from 'rival'"
SIBLINGS = {
    "no range": ((), [("good", OLD, "--upgrade good rival   (or leave it out: ")], "fits"),
    "a range": (
        ("rival>=1.3",),
        [("good", "needs rival>=1.3, and 1.2.3 is installed", "--upgrade plait-core good rival")],
        "does not fit",
    ),
    "the range of an extra": (
        ('rival<2,>=1.3; extra == "more"', 'absent; extra == "more"'),
        [("good", "with its extra more works with rival<2,>=1.3, and 1.2.3 is", "good rival")],
        "does not fit",
    ),
    "a range that is kept": (('rival>=1.2; extra == "more"',), [("good", OLD, "rival")], "fits"),
}


@pytest.mark.parametrize("case", SIBLINGS)
def test_doctor_finds_a_sibling_that_is_too_old(plugin, case):
    """The command names the sibling, and the failing import is not reported beside the range."""
    requires, told, state = SIBLINGS[case]
    plugin("rival", API.replace("good", "rival"))
    glue = f"{API}[plait.tables]\ncolour = good:colour_rules\n"
    folder = plugin("good", glue, "from rival import newer", requires=requires)
    status, out, _ = command("doctor", folder, "good,rival")
    found = problems(out)
    assert status == 1 and len(found) == len(told), out
    for text, (name, what, fix) in zip(found, told, strict=True):
        first, typed = text.splitlines()[:2]
        assert first.startswith(f"{name} ") or "the plugin good 1.2.3 cannot be loaded" in first
        assert what in first and fix in typed
    assert re.search(rf"^good +1\.2\.3 .*: {state}$", out, re.M), out
    assert re.search(r"^rival +1\.2\.3 .*: fits$", out, re.M), out


def test_doctor_reports_what_follows_from_a_range_once(plugin):
    """Plugins of older versions are named one by one, with one command; what fails to import from
    them is not reported as another fault."""
    plugin("rival", API.replace("good", "rival"), requires=("plait-core>=99",))
    plugin("third", API.replace("good", "third"), requires=("plait-core<0.1",))
    glue = f"{API}[plait.tables]\ncolour = good:colour_rules\n"
    folder = plugin("good", glue, "from rival import newer")
    status, out, _ = command("doctor", folder, "good,rival,third")
    assert status == 1
    first, second = problems(out)
    assert first.startswith("rival 1.2.3 needs plait-core>=99, and ")
    assert second.startswith("third 1.2.3 needs plait-core<0.1, and ")
    assert out.count("pip install") == 1
    assert second.split("\n")[1] == "   python -m pip install --upgrade plait-core good rival third"


def test_doctor_knows_the_names_that_are_admitted(plugin):
    folder = plugin("good", GOOD_POINTS, GOOD)
    status, out, _ = command("doctor", folder, "good, plait-core, nowhere, autodif")
    assert status == 1
    assert ["'nowhere'" in t or "'autodif'" in t for t in problems(out)] == [True, True]
    assert "python -m pip install nowhere " in out


# ---- plugins and coverage ------------------------------------------------------------------


def test_plugins_tells_what_a_plugin_brings(plugin):
    status, out, _ = command("plugins", plugin("good", GOOD_POINTS, GOOD), "good")
    assert status == 0
    lines = out[out.index("good 1.2.3") :].split("\n\n")[0].splitlines()
    assert [line.split(None, 1) for line in lines] == [
        ["good", "1.2.3, plugin API 1.0"],
        ["names", "plait.shade, plait.lax.shady"],
        ["tables", "colour"],
        ["primitives", "good.shade"],
        ["rules", "colour of core/good"],
    ]


def test_plugins_tells_of_a_plugin_that_can_not_be_loaded(plugin):
    points = f"{API}[plait.primitives]\ngood = good\n"
    status, out, _ = command("plugins", plugin("good", points, "1 / 0"), "good")
    assert status == 0
    assert "ZeroDivisionError" in " ".join(out.split())


def test_plugins_tells_of_those_left_out(plugin):
    status, out, _ = command("plugins", plugin("good", GOOD_POINTS, GOOD))
    assert status == 0
    assert "good 1.2.3, plugin API 1.0, left out by PLAIT_PLUGINS=off" in out


def test_coverage_of_one_table_is_what_its_rules_say(plugin):
    status, out, _ = command("coverage colour", plugin("good", GOOD_POINTS, GOOD), JUDGED)
    assert status == 0
    rows, _, summary = out.partition("\n\n")
    cells = dict(re.split(r"  +", row, maxsplit=1) for row in rows.splitlines())
    assert cells["good.shade"] == "own"
    for reduction in ("sum", "max", "and"):
        assert cells[f"core.reduce_{reduction}"] == "trait"
    assert cells["core.sin"] == "missing"
    head, missing = summary.splitlines()[:2]
    assert f"colour: {len(cells)} primitives" in head
    for cell in {*cells.values()}:
        assert f"{[*cells.values()].count(cell)} {cell}" in head
    assert missing.split()[1:] == [n for n, cell in cells.items() if cell == "missing"]


def test_coverage_of_all_tables_is_a_matrix(plugin):
    status, out, _ = command("coverage", plugin("good", GOOD_POINTS, GOOD), JUDGED)
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "| primitive | lower | colour |"
    assert "| `core.sin` | own | missing |" in lines
    assert "| `good.shade` | missing | own |" in lines
    assert any(line.startswith("lower: ") for line in lines)
    assert any(line.startswith("colour: ") for line in lines)


def test_who_reads_may_stop_reading():
    run = [sys.executable, "-m", "plait", "coverage"]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(120) == 1


# ---- usage ---------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["", "diagnose", "coverage lower upper", "new-transform mine"])
def test_wrong_usage_shows_the_help(capsys, line):
    try:
        status = main(line.split())
    except SystemExit as e:
        status = e.code
    told = capsys.readouterr()
    assert (status, told.out) == (2, "")
    assert "usage: python -m plait" in told.err


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as e:
        main(["--help"])
    assert e.value.code == 0
    told = capsys.readouterr().out
    for name in ("doctor", "plugins", "coverage", "new-transform"):
        assert re.search(rf"^ +{name}\b", told, re.M)


def refused(capsys, *argv: str) -> list[str]:
    """The three parts of an error of usage: what, where, what to type."""
    assert main(argv, core_names) == 2
    told = capsys.readouterr()
    assert told.out == ""
    what, where, fix = told.err.splitlines()
    assert where == f"  at python -m plait {shlex.join(argv)}"
    return [what, fix.strip()]


def test_an_unknown_table_is_refused(capsys):
    what, fix = refused(capsys, "coverage", "nowhere")
    assert what == "there is no table 'nowhere'"
    assert "lower" in fix


# ---- skeletons -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["", "3d", "my-shift", "Shift", "class", "a b", "ü", "../up", "_mine", "mine_"]
)
def test_a_name_that_is_none_is_refused(capsys, tmp_path, name):
    what, fix = refused(capsys, "new-transform", name, str(tmp_path / "new"))
    assert what == f"{name!r} is not the name of a package"
    assert "my_transform" in fix
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "name, why",
    [
        ("jit", "plait.jit is there already"),
        ("grad", "plait.grad is there already"),
        ("batching", "there is a table 'batching' already"),
        ("string", "there is a module 'string' already"),
        ("jaxlib", "there is a module 'jaxlib' already"),
    ],
)
def test_a_name_in_use_is_refused(capsys, tmp_path, name, why):
    what, fix = refused(capsys, "new-transform", name, str(tmp_path / "new"))
    assert what.startswith(why)
    assert f"my_{name}" in fix
    assert not (tmp_path / "new").exists()


def test_a_folder_that_holds_something_is_refused(capsys, tmp_path):
    (tmp_path / "precious.txt").write_text("kept")
    what, fix = refused(capsys, "new-transform", "shift", str(tmp_path))
    assert what == f"{tmp_path} is not empty: it holds precious.txt"
    assert "new or empty" in fix
    assert [p.name for p in tmp_path.iterdir()] == ["precious.txt"]


def test_a_folder_that_can_not_be_made_is_refused(capsys, tmp_path):
    file = tmp_path / "file"
    file.write_text("kept")
    assert refused(capsys, "new-transform", "shift", str(file))[0] == f"{file} is a file"
    what, fix = refused(capsys, "new-transform", "shift", str(file / "below"))
    assert "cannot be written" in what
    assert "may write" in fix
    assert file.read_text() == "kept"


def test_a_skeleton_is_a_distribution(capsys, tmp_path):
    folder = tmp_path / "a folder"
    assert main(["new-transform", "my_shift", str(folder)], core_names) == 0
    told = capsys.readouterr().out
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    assert [str(p.relative_to(folder)) for p in files] == [
        "README.md",
        "pyproject.toml",
        "src/my_shift/__init__.py",
        "src/my_shift/py.typed",
        "tests/test_my_shift.py",
    ]
    assert all(f"wrote {p}\n" in told for p in files)
    assert f"python -m pip install -e '{folder}[test]'" in told
    assert not [p for p in files if "${" in p.read_text()]
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["name"] == "my-shift"
    assert project["dependencies"] == ["plait-core>=0.3,<0.4"]
    points = project["entry-points"]
    assert points["plait.plugin_api"] == {".".join(map(str, PLUGIN_API)): "my_shift"}
    assert points["plait.api"] == {"my_shift": "my_shift:my_shift"}
    made = (folder / "src/my_shift/__init__.py").read_text()
    assert "class MyShift(ext.Carrier)" in made and "\ndef my_shift(f)" in made
    assert points["plait.tables"] == {"my_shift": "my_shift:my_shift_rules"}
    assert points["plait.rules.my_shift"] == {"core": "my_shift"}
