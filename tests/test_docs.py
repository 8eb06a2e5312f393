"""The programs in the pages run, print what the comments beside them say, and name what there is.

    python tests/test_docs.py docs/quickstart.md    # one page

A page is one program: its Python blocks, one after the other, in a process of its own.  Comments
tell what a statement does:

    print(x)  # -> 3.0
    # -> a second line of what it prints; `...` stands for anything
    f(x)
    # !! TypeRule: what it raises, with `  at file.py:1` for the line it names, whichever it is

Invariant: what a comment tells is compared, and a statement without one may raise nothing.
"""

import ast
import io
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
PRINTED, RAISED = "->", "!!"


# ---- pages as programs ---------------------------------------------------------------------


class Statement(NamedTuple):
    """One statement of a page, and what the comments after it tell."""

    node: ast.stmt
    printed: str | None
    raised: str | None


def text(page: Path) -> str:
    """The source of a page."""
    return page.read_text(encoding="utf-8")


def program(page: Path) -> str:
    """The Python blocks of a page, on the lines where they are."""
    inside, lines = False, []
    for line in text(page).splitlines():
        if line.startswith("```"):
            inside = line == "```python"
            line = ""
        lines.append(line if inside else "")
    return "\n".join(lines)


def statements(code: str) -> Iterator[Statement]:
    """The statements of a program."""
    lines, body = code.splitlines(), ast.parse(code).body
    for node, following in zip(body, [*body[1:], None], strict=True):
        last = node.end_lineno or 0
        stop = len(lines) if following is None else first_line(following) - 1
        after = [re.sub(r"^.*(?=# (->|!!) )", "", lines[last - 1]), *lines[last:stop]]
        yield Statement(node, told(after, PRINTED), told(after, RAISED))


def first_line(node: ast.stmt) -> int:
    """Where a statement begins, with its decorators."""
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])


def told(lines: list[str], sign: str) -> str | None:
    """What comments with this sign say."""
    found = [line[len(sign) + 3 :] for line in lines if line.startswith(f"# {sign}")]
    return "\n".join(found) if found else None


def same(got: str, want: str) -> bool:
    """Whether a text is as told."""
    places = re.compile(r"^(\s+at )\S+:\d+", re.M)
    got, want = (places.sub(r"\1user.py:1", t).strip() for t in (got, want))
    pattern = re.escape(want).replace(re.escape("..."), ".*?")
    lines = [" ".join(line.split()) for line in got.splitlines()]
    wanted = [r"\s*".join(line.split()) for line in pattern.replace(r"\ ", " ").splitlines()]
    return re.fullmatch("\n".join(wanted), "\n".join(lines), re.S) is not None


def run_page(page: Path) -> int:
    """Run the program of a page; how many comments were compared."""
    names: dict[str, Any] = {"__name__": "page"}
    count = 0
    for s in statements(program(page)):
        out, raised = io.StringIO(), None
        code = compile(ast.Module([s.node], []), str(page), "exec")
        try:
            with redirect_stdout(out):
                exec(code, names)
        except Exception as e:
            if s.raised is None:
                raise
            raised = f"{type(e).__name__}: {e}"
        where = f"{page}:{s.node.lineno}"
        for want, got in ((s.printed, out.getvalue()), (s.raised, raised)):
            if want is not None:
                assert got is not None, f"{where}: nothing is raised"
                assert same(got, want), f"{where}: it says\n{want}\nand does\n{got}"
                count += 1
    return count


if __name__ == "__main__":
    warnings.simplefilter("error")
    for name in sys.argv[1:]:
        print(f"{name}: {run_page(Path(name))} comments compared")


# ---- tests ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "page", [p for p in PAGES if "```python" in text(p)], ids=lambda p: str(p.relative_to(DOCS))
)
def test_the_program_of_a_page_runs(page, tmp_path):
    settings = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
    r = subprocess.run(
        [sys.executable, __file__, page], cwd=tmp_path, env=settings, capture_output=True, text=True
    )
    assert r.returncode == 0, r.stderr
