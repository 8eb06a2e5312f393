"""The programs in the READMEs run, and print what the comments beside them say.

Invariant: a comment at the end of a line that prints is what the line prints, and is compared.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("packages/*/README.md"))]


def program(page: Path) -> str:
    """The Python blocks of a page, one after the other."""
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S))


def statements(code: str) -> list[str]:
    """The statements of a program, each with the comment at the end of its last line."""
    lines, body = code.splitlines(), ast.parse(code).body
    ends = [node.end_lineno or 0 for node in body]
    return ["\n".join(lines[i:j]) for i, j in zip([0, *ends[:-1]], ends, strict=True)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_programs_of_a_readme_run(page, capsys):
    names = {"__name__": "readme"}
    for statement in statements(program(page)):
        exec(compile(statement, str(page), "exec"), names)
        printed = capsys.readouterr().out.strip()
        expected = re.search(r"^print\(.*\)  # (.*)$", statement, re.M)
        assert expected is None or printed == expected.group(1), statement
