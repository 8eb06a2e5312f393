"""The programs in the pages run, print what the comments beside them say, and name what there is.

    python tests/test_docs.py docs/quickstart.md    # one page

A page is one program: its Python blocks, one after the other, in a process of its own.  Comments
tell what a statement does:

    print(x)  # -> 3.0
    # -> a second line of what it prints; `...` stands for anything
    f(x)
    # !! TypeRule: what it raises, with `  at file.py:1` for the line it names, whichever it is

A table whose last column is headed `Plait` says what to write instead of something else.  The code
in that column runs with the names of the page.

Invariant: what a comment tells is compared, and a statement without one may raise nothing.
"""

import ast
import importlib
import importlib.util
import inspect
import io
import itertools
import linecache
import os
import re
import shutil
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import plait
from plait._plugins import metadata
from plait._plugins.traits import ALL

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
TUTORIALS = sorted(DOCS.glob("tutorials/*.py"))
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


def files(page: Path) -> dict[str, str]:
    """The files that a page writes: its blocks with a title, by their paths; blocks with one title
    are the parts of one file."""
    found: dict[str, str] = {}
    for name, block in re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', text(page), re.M | re.S):
        found[name] = found[name] + "\n\n" + block if name in found else block
    return found


def is_compiled(page: Path) -> bool:
    """Return True if the package of a page must be built before its module can be run."""
    return any(name.endswith(".cc") for name in files(page))


def program(page: Path) -> str:
    """The Python blocks of a page, on the lines where they are: those without a title, and those of
    a module in plain Python."""
    inside, lines = False, []
    module = "```none" if is_compiled(page) else '```python title="src/'
    for line in text(page).splitlines():
        if line.startswith("```"):
            inside = line == "```python" or line.startswith(module)
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


def table_code(page: Path) -> Iterator[str]:
    """Yield the code in the last column of tables that are headed `Plait`."""
    inside = False
    for line in text(page).splitlines():
        inside = inside and line.startswith("|") or line.endswith("| Plait |")
        if inside:
            yield from re.findall(r"`([^`]+)`", line.rpartition(" | ")[2])


def run_tables(page: Path, names: dict[str, Any]) -> int:
    """Run the code in the tables of a page with the names of its program; return how many ran."""
    codes = [c for c in table_code(page) if not c.startswith("optax.")]
    for code in codes:
        try:
            exec(code, dict(names))
        except Exception as e:
            e.add_note(f"in a table of {page}: {code}")
            raise
    return len(codes)


def run_page(page: Path) -> int:
    """Run the program of a page; how many comments were compared."""
    names: dict[str, Any] = {"__name__": "page"}
    count = 0
    text = program(page)
    # Messages read the user's source, which the program alone is.
    linecache.cache[str(page)] = len(text), None, text.splitlines(keepends=True), str(page)
    for s in statements(text):
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
    return count + run_tables(page, names)


# ---- tests ---------------------------------------------------------------------------------


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    "page", [p for p in PAGES if program(p).strip()], ids=lambda p: str(p.relative_to(DOCS))
)
def test_the_program_of_a_page_runs(page, tmp_path):
    settings = {k: v for k, v in os.environ.items() if not k.startswith("PLAIT_")}
    settings["PLAIT_CACHE_DIR"] = ""
    r = subprocess.run(
        [sys.executable, __file__, page], cwd=tmp_path, env=settings, capture_output=True, text=True
    )
    assert r.returncode == 0, r.stderr


# ---- packages in pages ---------------------------------------------------------------------


SHIPPED = [p for p in PAGES if "pyproject.toml" in files(p)]


def test_there_are_pages_with_packages():
    names = [p.name for p in SHIPPED]
    assert names == ["writing-a-primitive-in-c.md", "writing-a-transformation.md"]


@pytest.mark.wide
@pytest.mark.parametrize("page", SHIPPED, ids=lambda p: p.stem)
def test_the_package_of_a_page_is_built_installed_and_tested(page, tmp_path):
    """From its wheel alone: the sources are elsewhere when its tests run."""
    if is_compiled(page) and shutil.which("c++") is None:
        pytest.skip("needs a C++ compiler")
    folder, site = tmp_path / "package", tmp_path / "site"
    for name, content in files(page).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")

    def run(*args: Any, cwd: Path) -> str:
        env = {**os.environ, "PYTHONPATH": str(site), "PLAIT_CHECKS": "1"}
        command = [sys.executable, "-m", *map(str, args)]
        done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=folder)
    (wheel,) = tmp_path.glob("*.whl")
    assert ("none-any" in wheel.name) == (not is_compiled(page))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    shutil.move(folder / "tests", tmp_path / "tests")
    shutil.rmtree(folder)
    told = run("pytest", "-q", "-p", "no:cacheprovider", tmp_path / "tests", cwd=tmp_path)
    assert re.search(r"^\d+ passed", told, re.M), told


# ---- what pages must say -------------------------------------------------------------------


def script(name: str) -> Any:
    """A module of the docs folder, whose scripts make parts of pages."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_can_be_reached():
    reached = re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    made = [p.with_suffix(".md") for p in TUTORIALS]
    assert sorted(reached) == sorted(str(p.relative_to(DOCS)) for p in [*PAGES, *made])


@pytest.mark.parametrize("page", [*PAGES, *TUTORIALS], ids=lambda p: str(p.relative_to(DOCS)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]*)?\)", text(page)):
        assert (page.parent / target).exists(), target


def test_one_page_says_how_to_install():
    """The commands of the README are those of the page; none names an index as their source."""
    block = re.compile(r"^```\n(python -m pip install packages/core.*?)```", re.M | re.S)
    (command,) = block.findall(text(DOCS / "install.md"))
    assert block.findall(text(ROOT / "README.md")) == [command]
    named = {w.partition("[")[0].strip('"') for w in command.split() if "packages/" in w}
    assert named == {f"packages/{p.parent.name}" for p in ROOT.glob("packages/*/pyproject.toml")}
    readmes = [ROOT / "README.md", *ROOT.glob("packages/*/README.md")]
    for page in [*PAGES, *readmes]:
        wrong = re.search(r"pip install [^\n]*(plait\[|plait\b(?!-))", text(page))
        assert not wrong, f"{page}: {wrong[0] if wrong else ''}"


def attributes(code: str) -> Iterator[str]:
    """Yield the dotted names in a program that begin with `plait`, and those of its imports."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute):
            found = ast.unparse(node)
            if re.fullmatch(r"(plait|pnp|nn|random|lax|ext)(\.\w+)+", found):
                yield re.sub(r"^pnp\b", "plait.numpy", found)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("plait"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda p: p.stem)
def test_a_tutorial_is_a_page_of_names_that_exist(page):
    """Cells of code run in the session `docs`, which fails if one raises."""
    cells = list(script("notebooks").cells(text(page)))
    kinds = [kind for kind, _ in cells]
    assert kinds[0] == "text" and cells[0][1].startswith("# ") and {*kinds} == {"text", "code"}
    assert "assert " in text(page), "nothing that it computes is checked"
    names = {*attributes("\n".join(body for kind, body in cells if kind == "code"))}
    assert "plait.jit" in names
    for name in names:
        first, *rest = re.sub(r"^(?!plait\b)", "plait.", name).split(".")
        found = importlib.import_module(first)
        for part in rest:
            found = getattr(found, part)


def test_the_search_finds_what_people_type():
    """By the sources of the pages; the session `docs` takes the index of the site."""
    searches, cells = script("searches"), script("notebooks").cells
    pages = {str(p.relative_to(DOCS).with_suffix("")): text(p) for p in PAGES}
    for page in TUTORIALS:
        pages[f"tutorials/{page.stem}"] = "\n".join(body for _, body in cells(text(page)))
    assert len(searches.QUERIES) >= 60
    assert not searches.missed(pages)
    assert searches.missed({**pages, "how-to/nan": "", "debugging": ""})


def test_the_promotion_table_is_that_of_the_code():
    page = text(DOCS / "dtypes.md")
    assert script("tables").up_to_date(page) == page, "run: python docs/tables.py --write"


def test_promotion_as_numpy_has_it():
    """Among booleans, integers and the floats that numpy has, where kinds agree."""
    rows = script("tables").promotion().splitlines()
    heads = [h.strip() for h in rows[0].split("|")[2:-1]]
    names = {f"{k}{8 * n}": f"{k}{n}" for k, n in itertools.product("iufc", (1, 2, 4, 8, 16))}
    for row in rows[2:]:
        head, *cells = [c.strip(" *") for c in row.split("|")[1:-1]]
        for other, cell in zip(heads, cells, strict=True):
            if head[0] == other[0] and {head, other, cell} <= names.keys():
                found = np.promote_types(names[head], names[other])
                assert np.dtype(names[cell]) == found, (head, other)


def test_the_matrix_is_put_into_its_page():
    page = script("tables").on_page_markdown(text(DOCS / "matrix.md"))
    assert re.search(r"^\| `core.sin` \| own \|", page, re.M)
    page = script("tables").on_page_markdown(text(DOCS / "edges.md"))
    assert re.search(r"^\| `digamma` at 0 \| nan \|", page, re.M)


def test_the_reference_has_every_public_name():
    names = script("names")
    found, modules = set(), set()
    for page in (DOCS / "reference").glob("*.md"):
        for module, chosen in names.ASKED.findall(text(page)):
            modules |= {module, module.rpartition(".")[0]}
            described = names.described(module, chosen or None)
            assert described, f"{page.name}: {module}"
            torn = re.search(r"^\* `[^`]*`(?!:).*", described, re.M)
            assert torn is None, f"{page.name}: a name that ends within code: {torn and torn[0]}"
            found |= set(chosen.split() or names.public(importlib.import_module(module)))
    apart = ("P", "sharding", "distributed", "checkpoint_policies")
    ours = {p.parent.name for p in ROOT.glob("packages/*/pyproject.toml")}
    said = {
        n
        for n in metadata.names("plait.api")
        if n not in apart
        and any(
            d.distribution.removeprefix("plait-") in ours for d in metadata.declared("plait.api", n)
        )
    }
    said |= {n for n in plait.__all__ if not inspect.ismodule(getattr(plait, n))}
    explained = {"config", "float0", "PlaitError"}
    whole = {n for n in said if inspect.ismodule(getattr(plait, n))}
    assert {f"plait.{n}" for n in whole - {"export"}} <= modules
    assert not said - whole - found - explained
    page = text(DOCS / "reference" / "plait.md")
    assert not [n for n in explained - {"PlaitError"} if f"plait.{n}`" not in page]


def test_pages_name_every_setting_error_and_trait():
    settings = [line.split(" = ")[0] for line in repr(plait.config).splitlines()]
    kinds = [
        n for n, x in vars(plait.errors).items() if inspect.isclass(x) and n in plait.errors.__all__
    ]
    kept = {
        "reference/plait.md": settings,
        "errors.md": kinds,
        "writing-a-primitive.md": [t.name.rpartition(".")[2].title().replace("_", "") for t in ALL],
    }
    for page, words in kept.items():
        assert not [w for w in words if f"`{w}`" not in text(DOCS / page)], page


if __name__ == "__main__":
    warnings.simplefilter("error")
    for name in sys.argv[1:]:
        print(f"{name}: {run_page(Path(name))} comments compared")
