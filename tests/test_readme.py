"""The programs in the READMEs run, and print what they say; what else these name is there.

Invariant: a comment at the end of a line that prints, or a block without a language after the block
that prints, is what is printed, and is compared.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("packages/*/README.md"))]
GUIDES = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]


def blocks(page: Path) -> list[tuple[str, str]]:
    """The Python blocks of a page, each with the text of the block right after it, if any."""
    fences = r"```python\n(.*?)```\n(?:\n```\n(.*?)```)?"
    return re.findall(fences, page.read_text(encoding="utf-8"), re.S)


def statements(code: str) -> list[str]:
    """The statements of a program, each with the comment at the end of its last line."""
    lines, body = code.splitlines(), ast.parse(code).body
    ends = [node.end_lineno or 0 for node in body]
    return ["\n".join(lines[i:j]) for i, j in zip([0, *ends[:-1]], ends, strict=True)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_programs_of_a_readme_run(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    names = {"__name__": "readme"}
    for code, output in blocks(page):
        printed = ""
        for statement in statements(code):
            exec(compile(statement, str(page), "exec"), names)
            printed = capsys.readouterr().out.strip()
            expected = re.search(r"^print\(.*\)  # (.*)$", statement, re.M)
            assert expected is None or printed == expected.group(1), statement
        assert not output or printed == output.strip()


@pytest.mark.parametrize("page", [*PAGES, *GUIDES], ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / target).exists(), target
    noxfile = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    sessions = {n.name.replace("_", "-") for n in noxfile.body if isinstance(n, ast.FunctionDef)}
    for named in re.findall(r"nox -s ([a-z -]+?)(?= -- | *[#`;]|$)", text, re.M):
        assert set(named.split()) <= sessions, named
    for folder in re.findall(r"\bpackages/\w+|\bexamples/[\w.]+", text):
        assert (ROOT / folder.rstrip(".")).exists(), folder
