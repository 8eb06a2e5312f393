"""The tutorials: Python files whose cells run while the site is built, with prints and pictures.

    python docs/notebooks.py docs/tutorials/first-steps.py    # the page, as Markdown

A line `# %%` begins a cell of code, `# %% [markdown]` one of text in comments: the percent format
of jupytext, which editors show as notebooks.  The hook of mkdocs adds a page `tutorials/NAME.md`
for each file, with the output of each cell below it.  PLAIT_DOCS_RUN=0 in the environment leaves
the output out.

Invariant: a cell that raises, or an assertion in it that fails, ends the build.
"""

import io
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "tutorials"
LINK = re.compile(r"(\]\((?:\.\./)?(?:tutorials/)?[\w-]+)\.py\)")


def cells(source: str) -> Iterator[tuple[str, str]]:
    """Yield the cells of a file: ("text" or "code", contents)."""
    for cell in re.split(r"^# %%", source, flags=re.M)[1:]:
        head, _, body = cell.partition("\n")
        if "[markdown]" in head:
            yield "text", re.sub(r"^# ?", "", body, flags=re.M).strip()
        else:
            yield "code", body.strip()


def executed(path: Path, folder: Path) -> list[tuple[str, list[str]]]:
    """Run the cells of code of a file; return for each what it printed, and its pictures, which are
    written into a folder."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.show = lambda: None  # figures are kept until their cell ends
    names: dict[str, Any] = {"__name__": "__main__"}
    results = []
    code = [body for kind, body in cells(path.read_text(encoding="utf-8")) if kind == "code"]
    for number, body in enumerate(code):
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(body, f"{path.name}, cell {number + 1}", "exec"), names)
        pictures = []
        for n in pyplot.get_fignums():
            pictures.append(f"{path.stem}-{number + 1}-{n}.png")
            pyplot.figure(n).savefig(folder / pictures[-1], dpi=150, bbox_inches="tight")
        pyplot.close("all")
        results.append((printed.getvalue(), pictures))
    return results


def page(path: Path, results: list[tuple[str, list[str]]]) -> str:
    """Return a file as Markdown, with the results of its cells, if there are any."""
    lines, heading, left = [], path.stem, iter(results)
    for kind, body in cells(path.read_text(encoding="utf-8")):
        if kind == "text":
            heading = (re.findall(r"^#+ (.*)", body, re.M) or [heading])[-1]
            lines += [LINK.sub(r"\1.md)", body), ""]
            continue
        lines += ["```python", body, "```", ""]
        printed, pictures = next(left, ("", []))
        if printed:
            lines += ["```text", printed.rstrip(), "```", ""]
        lines += [f"![Picture: {heading}]({name})\n" for name in pictures]
    lines.append(f"This page is a Python file that you can run: [{path.name}]({path.name}).")
    return "\n".join(lines)


def run_apart(path: Path, folder: Path) -> list[tuple[str, list[str]]]:
    """Run a file in a process of its own, which makes its devices and settings."""
    settings = {k: v for k, v in os.environ.items() if not k.startswith("PLAIT_")}
    done = subprocess.run(
        [sys.executable, __file__, "--results", path, folder],
        env={**settings, "PLAIT_CACHE_DIR": ""},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{path} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


# ---- the hooks of mkdocs -------------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each tutorial, and its pictures."""
    from mkdocs.structure.files import File

    paths = sorted(FOLDER.glob("*.py"))
    folder = Path(tempfile.mkdtemp())
    results: list[Any] = [[]] * len(paths)
    if os.environ.get("PLAIT_DOCS_RUN") != "0":
        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(run_apart, paths, [folder] * len(paths)))
    for path, result in zip(paths, results):
        added = File.generated(config, f"tutorials/{path.stem}.md", content=page(path, result))
        added.edit_uri = f"tutorials/{path.name}"
        files.append(added)
    for picture in folder.iterdir():
        name = f"tutorials/{picture.name}"
        files.append(File.generated(config, name, content=picture.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links to the files lead to their pages."""
    return markdown if page.file.src_uri.startswith("tutorials/") else LINK.sub(r"\1.md)", markdown)


if __name__ == "__main__":
    warnings.simplefilter("error")
    if sys.argv[1] == "--results":
        print(json.dumps(executed(Path(sys.argv[2]), Path(sys.argv[3]))))
    else:
        name = Path(sys.argv[1])
        print(page(name, run_apart(name, Path(tempfile.mkdtemp()))))
