"""Programs as people write them, judged by pyright and by mypy.

Each checker must find a mistake in the lines that end with the comment `wrong`, and in no other
line.  The comment of a line with `reveal_type` is its type.

Invariant: the expected types and mistakes are written in the programs, and never read from the
stubs.
"""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))


def remarks(program: Path) -> dict[int, str]:
    """Return the comments that end the lines of a program, by line."""
    lines = program.read_text(encoding="utf-8").splitlines()
    return {i: line.split("  # ")[1] for i, line in enumerate(lines, 1) if "  # " in line}


def needed(checker: str) -> None:
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed: the nox session `types` runs this")


@pytest.fixture(scope="module")
def by_pyright() -> dict[str, dict[int, tuple[str, str]]]:
    """Return the messages of pyright, by file and line."""
    needed("pyright")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(
        [*command, *map(str, PROGRAMS)], capture_output=True, text=True, cwd=PROGRAMS[0].parent
    )
    found: dict[str, dict[int, tuple[str, str]]] = {p.name: {} for p in PROGRAMS}
    for message in json.loads(done.stdout)["generalDiagnostics"]:
        at = message["range"]["start"]["line"] + 1
        of = found[Path(message["file"]).name]
        if of.get(at, ("",))[0] != "error":
            of[at] = message["severity"], message["message"]
    return found


@pytest.fixture(scope="module")
def by_mypy(tmp_path_factory) -> dict[str, dict[int, tuple[str, str]]]:
    """Return the messages of mypy, by file and line."""
    needed("mypy")
    cache = tmp_path_factory.mktemp("mypy")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(cache), "--no-color-output"]
    done = subprocess.run(
        [*command, *[p.name for p in PROGRAMS]],
        capture_output=True,
        text=True,
        cwd=PROGRAMS[0].parent,
    )
    found: dict[str, dict[int, tuple[str, str]]] = {p.name: {} for p in PROGRAMS}
    for name, at, severity, text in re.findall(r"^(\S+):(\d+): (\w+): (.*)$", done.stdout, re.M):
        if found[name].get(int(at), ("",))[0] != "error":
            found[name][int(at)] = severity, text
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
@pytest.mark.parametrize("checker", ["pyright", "mypy"])
def test_checkers_find_the_mistakes_and_no_others(checker, program, request):
    found = request.getfixturevalue(f"by_{checker}")[program.name]
    mistakes = {at: text for at, (severity, text) in found.items() if severity == "error"}
    assert mistakes.keys() == {at for at, said in remarks(program).items() if said == "wrong"}, (
        mistakes
    )


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_checkers_reveal_the_types(program, by_pyright):
    revealed = {
        at: text.partition(" is ")[2].strip('"')
        for at, (severity, text) in by_pyright[program.name].items()
        if severity == "information"
    }
    assert revealed == {at: said for at, said in remarks(program).items() if said != "wrong"}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_mypy_reveals_arrays(program, by_mypy):
    lines = program.read_text(encoding="utf-8").splitlines()
    for at, said in remarks(program).items():
        if said == "Array" and "lambda" not in lines[at - 1]:  # mypy gives up on overloads of these
            text = by_mypy[program.name][at][1]
            assert re.search(r"array_type\.Array\"?$", text), (at, text)
