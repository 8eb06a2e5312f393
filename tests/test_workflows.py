"""The files by which other tools run ours: workflows, hooks, the quick session.

Invariant: what they name is compared with where it is defined: sessions with the noxfile, Pythons
and packages with the metadata, shell steps by running them.
"""

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
HOOKS = ROOT / ".pre-commit-config.yaml"
NOXFILE = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))


def loaded(path: Path) -> dict:
    """A file of YAML; the key `on` of workflows, which YAML reads as true, by its name."""
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {"on" if key is True else key: value for key, value in found.items()}


def workflow(name: str) -> dict:
    return loaded(ROOT / ".github" / "workflows" / f"{name}.yml")


def project(folder: Path) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def constant(name: str) -> list[str]:
    """The texts of a tuple at the top of the noxfile."""
    (value,) = [
        node.value
        for node in NOXFILE.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
    ]
    return [e.value for e in value.elts if isinstance(e, ast.Constant)]


PACKAGES = ("core", *constant("PLUGINS"), "jax")


def steps(path: Path) -> list[tuple[dict, dict]]:
    """Every step of a workflow, with its job."""
    return [(job, step) for job in loaded(path)["jobs"].values() for step in job["steps"]]


def test_jobs_that_run_releases_have_the_whole_history():
    """A shallow clone has no commit of a release, and its tests would be skipped."""
    found = 0
    for path in WORKFLOWS:
        for job in loaded(path)["jobs"].values():
            commands = " ".join(step.get("run", "") for step in job["steps"])
            sessions = job.get("strategy", {}).get("matrix", {}).get("session", ())
            run = re.search(r"nox -s [^\n]*\b(?:full|releases|release)\b", commands)
            if run or "floors" in sessions:
                (checkout,) = [s for s in job["steps"] if "checkout" in s.get("uses", "")]
                assert checkout["with"]["fetch-depth"] == 0, path.name
                found += 1
    assert found >= 3


def test_there_are_workflows():
    assert [p.stem for p in WORKFLOWS] == ["docs", "nightly", "release", "tests", "weekly"]


def named(function: ast.FunctionDef) -> str:
    """The name of a session: what its decorator gives, or that of the function."""
    keywords = [k for d in function.decorator_list if isinstance(d, ast.Call) for k in d.keywords]
    given = [ast.literal_eval(k.value) for k in keywords if k.arg == "name"]
    return given[0] if given else function.name.replace("_", "-")


SESSIONS = {named(n) for n in NOXFILE.body if isinstance(n, ast.FunctionDef)}


def pinned(line: str) -> tuple[str, str, str] | None:
    """The action, digest and version of a line of a workflow that uses one."""
    found = re.fullmatch(r"\s*(?:- )?uses: ([\w./-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)", line)
    return None if found is None else (found[1], found[2], found[3])


def test_actions_are_pinned_by_digests():
    """Their tags can be moved to other code; the version beside each digest is what raises it."""
    lines = [line for path in WORKFLOWS for line in path.read_text(encoding="utf-8").splitlines()]
    used = {line: pinned(line) for line in lines if re.match(r"\s*(- )?uses:", line)}
    assert {line.strip() for line in used if used[line] is None} == set()
    named = {step["uses"] for path in WORKFLOWS for _, step in steps(path) if "uses" in step}
    assert named == {f"{action}@{digest}" for action, digest, _ in used.values()}
    # one version of each action, and one digest of each version
    assert len({*used.values()}) == len({action for action, *_ in used.values()})


def test_a_version_is_not_a_digest():
    digest = "0123456789" * 4
    assert pinned(f"      - uses: some/action@{digest} # v1.2.3") == (
        "some/action",
        digest,
        "v1.2.3",
    )
    for text in ("some/action@v1.2.3", f"some/action@{digest}", f"some/action@{digest} # v1"):
        assert pinned(f"      - uses: {text}") is None


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_checkouts_keep_no_credentials(path):
    used = [step for _, step in steps(path) if "uses" in step]
    for step in used:
        if step["uses"].startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
    for _, step in steps(path):  # a value of the event in a shell script could be a script
        assert "${{" not in step.get("run", "")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_workflows_run_sessions_that_there_are(path):
    run = [step["run"] for _, step in steps(path) if "run" in step]
    named = [re.search(r"nox -s ([a-z -]+?)(?= --|$)", text) for text in run]
    asked = {name for found in named if found for name in found.group(1).split()}
    for job in loaded(path)["jobs"].values():  # `nox -s "$SESSION"`
        asked.update(job.get("strategy", {}).get("matrix", {}).get("session", ()))
    assert asked and asked <= SESSIONS


def test_what_tests_leaves_out_is_run_before_a_change_lands():
    """By the script of continuous integration, and by the workflow on every push."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    asked = [name for line in re.findall(r"nox -s ([a-z -]+)", script) for name in line.split()]
    assert asked[:2] == ["tests", "full"] and {*asked} <= SESSIONS
    run = [step.get("run", "") for step in workflow("tests")["jobs"]["tests"]["steps"]]
    assert "python -m nox -s tests full" in run


class Case:
    """A case of a test, as pytest collects it."""

    def __init__(self, nodeid: str, **marks: int):
        self.nodeid, self.marks, self.wide = nodeid, marks, False

    def get_closest_marker(self, name):
        return SimpleNamespace(args=(self.marks[name],)) if name in self.marks else None

    def add_marker(self, name):
        self.wide = name == "wide"


def left_to_tests(cases: list[Case]) -> set[str]:
    """The names of those that the session `tests` runs."""
    spec = importlib.util.spec_from_file_location("of_all_tests", ROOT / "conftest.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.mark_wide(cases)
    return {case.nodeid for case in cases if not case.wide}


@pytest.mark.parametrize("n", [2, 3, 5])
def test_of_a_sampled_test_one_case_in_some_is_run(n):
    """Of each value of each parameter, and the same ones when others are added."""
    names = [f"test_law.py::test[{a}-{b}]" for a in range(20) for b in range(30)]
    run = left_to_tests([Case(name, sampled=n) for name in names])
    assert names[0] in run and 0.7 < len(run) * n / len(names) < 1.4
    for value in range(20):
        assert any(f"[{value}-" in name for name in run)
        assert any(f"-{value}]" in name for name in run)
    more = [f"test_law.py::test[new-{b}]" for b in range(30)]
    assert run == left_to_tests([Case(name, sampled=n) for name in (*names, *more)]) & {*names}
    assert left_to_tests([Case(name) for name in names]) == {*names}


def test_wide_cases_run_as_always_where_others_run_again(tmp_path):
    """One in some of the others runs, and none that compiles at the full tier in every session. If
    the names choose none, the first runs."""
    (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text(encoding="utf-8"))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  sampled\n  wide\n  full_tier\n")
    (tmp_path / "test_some.py").write_text(
        "import pytest\n"
        "some = pytest.mark.parametrize('i', range(200))\n"
        "@some\ndef test_others(i): pass\n"
        "@pytest.mark.wide\n@some\ndef test_wide(i): pass\n"
        "@pytest.mark.full_tier\n@some\ndef test_full(i): pass\n"
    )

    def run(*options: str) -> Counter[str]:
        command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]
        done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True)
        return Counter(re.findall(r"::test_(\w+)\[", done.stdout))

    assert run() == {"others": 200, "wide": 200, "full": 200}
    again = run("--again=4")
    assert 25 < again.pop("others") < 100
    assert again == {"wide": 200}
    none = run("--again=1000000007", "test_some.py::test_others")  # a divisor that few names have
    assert none == {"others": 1}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_workflows_may_do_what_they_must_only(path):
    assert loaded(path)["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in loaded(path)["jobs"].values())
    for job, step in steps(path):
        assert ("uses" in step) != ("run" in step)
        assert "id-token" not in job.get("permissions", {}) or "run" not in step


def test_every_supported_python_is_tested():
    tested = workflow("tests")["jobs"]["tests"]["strategy"]["matrix"]["python"]
    start = "Programming Language :: Python :: 3."
    supported = [c[len(start) - 2 :] for c in project(ROOT)["classifiers"] if c.startswith(start)]
    assert tested == supported
    assert {"lint", "docs"} <= workflow("tests")["jobs"].keys()


def test_every_package_is_released_by_its_tag():
    patterns = workflow("release")["on"]["push"]["tags"]
    assert patterns[0].startswith("plait-v")  # the meta-distribution
    assert [p.partition("-v")[0] for p in patterns[1:]] == [f"plait-{p}" for p in PACKAGES]
    for package, pattern in zip(PACKAGES, patterns[1:], strict=True):
        version = project(ROOT / "packages" / package)["version"]
        expression = pattern.replace(".", r"\.").replace(r"]+\.", r"]+\.")
        assert re.fullmatch(expression, f"plait-{package}-v{version}")


def test_who_publishes_is_trusted_and_builds_nothing():
    jobs = workflow("release")["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write", "attestations": "write"}
    assert jobs["publish"]["environment"]
    assert jobs["publish"]["needs"] == ["build", "test"] and jobs["test"]["needs"] == "build"
    assert not [step for step in jobs["publish"]["steps"] if "run" in step]
    assert "permissions" not in jobs["build"] and "permissions" not in jobs["test"]


@pytest.mark.parametrize("package", ["", *PACKAGES])
def test_a_tag_of_another_version_is_refused(package, tmp_path):
    (step,) = [s for _, s in steps(ROOT / ".github/workflows/release.yml") if s.get("id") == "tag"]
    folder = ROOT / "packages" / package if package else ROOT
    version, told = project(folder)["version"], tmp_path / "told"
    name = f"plait-{package}" if package else "plait"

    def status(tag: str) -> int:
        env = {**os.environ, "TAG": tag, "GITHUB_OUTPUT": str(told)}
        return subprocess.run(["bash", "-e", "-c", step["run"]], cwd=ROOT, env=env).returncode

    assert status(f"{name}-v{version}0") != 0
    assert not told.exists()
    assert status(f"{name}-v{version}") == 0
    assert told.read_text() == f"package={package or name}\n"


@pytest.mark.parametrize(
    "skipped, ci, status", [(59, "true", 1), (59, "", 0), (10, "true", 0)], ids=str
)
def test_a_run_that_skips_most_tests_fails_in_ci(skipped, ci, status, tmp_path):
    (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text(encoding="utf-8"))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n  sampled\n  wide\n  full_tier\n")
    (tmp_path / "test_some.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('i', range(60))\n"
        f"def test(i):\n    i < {skipped} and pytest.skip()\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "CI": ci}, capture_output=True, text=True
    )
    assert done.returncode == status, done.stdout
    assert ("tests were skipped" in done.stdout) == bool(status)


def test_hooks_check_style_as_the_session_does():
    repositories = loaded(HOOKS)["repos"]
    assert all(re.fullmatch(r"v\d+\.\d+\.\d+", found["rev"]) for found in repositories)
    hooks = [hook["id"] for found in repositories for hook in found["hooks"]]
    assert hooks[:4] == ["ruff-check", "ruff-format", "codespell", "zizmor"]
    (style,) = [node for node in NOXFILE.body if getattr(node, "name", "") == "style"]
    runs = [node.args[0] for node in ast.walk(style) if ast.unparse(node).startswith("session.run(")
            and isinstance(node, ast.Call)]  # fmt: skip
    assert [*dict.fromkeys(ast.literal_eval(run) for run in runs)] == constant("STYLE")
    assert [*dict.fromkeys(hook.partition("-")[0] for hook in hooks[:4])] == constant("STYLE")


def test_texts_end_as_the_hooks_want():
    """Hooks would change such a file in the first commit that touches it."""
    (config,) = [h for r in loaded(HOOKS)["repos"] for h in r["hooks"]
                 if h["id"] == "trailing-whitespace"]  # fmt: skip
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("only a repository lists its files")
    wrong = []
    for name in listed.stdout.split("\0")[:-1]:
        try:
            text = (ROOT / name).read_bytes().decode("utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # binary, or deleted and not committed yet
        blank = re.search(r"[ \t\r]+$", text, re.M) and not re.search(config["exclude"], name)
        if blank or (text and not re.search(r"[^\n]\n\Z", text)):
            wrong.append(name)
    assert not wrong


def test_the_quick_session_is_a_cross_section():
    chosen = constant("QUICK")
    assert not [f for f in chosen if not (ROOT / f).is_file()]
    assert len({*chosen}) == len(chosen)
    assert "tests/test_architecture.py" in chosen
    for package in PACKAGES:
        assert any(f.startswith(f"packages/{package}/tests/") for f in chosen)


def test_the_guide_names_them():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for path in (*WORKFLOWS, HOOKS, ROOT / "SECURITY.md"):
        assert f"]({path.relative_to(ROOT)})" in guide
