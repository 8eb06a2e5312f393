"""Count constructions that make prose hard to read, in docstrings, comments and messages.

    python -m tests.prose                # the counts of each kind and package
    python -m tests.prose PATH ...       # each place in these files or folders, with its line
    python -m tests.prose --write        # lower the recorded counts to today's

Invariant: a place is counted once for each construction in it; code is never counted.
"""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).with_name("prose-counts.txt")

CONSTRUCTIONS = {
    "no-article": r"\b(?:is|are|was|were) no (?!longer\b|more\b|fewer\b|less\b|other\b)[a-z]",
    "can not": r"\bcan not\b",
    "what-clause": r"\b[Ww]hat (?:is|are|it|was|were|they|has|have)\b(?![^.\n]*\?)",
    "of-which": r"\bof (?:which|whom|whose)\b",
    "somebody": r"\b(?:[Ee]very|[Nn]o|[Ss]ome)body\b|\b[Ww]ho(?:m)?ever\b",
    "told": r"\b(?:is|are|was|were|be|being) (?:told|asked|said|heard)\b",
    "shall": r"\bshall\b",
}
OPENINGS = re.compile(r"(?:What|Whom?|Whose|Whether|How|Of|With|Without|That)\b")
HIDDEN = frozenset(("CHANGELOG.md", "RESULTS.md", ".venv", ".nox", "build", "dist"))
"""Files and folders that hold no pages: a changelog keeps the words of its day, and the results of
benchmarks are written by a program."""
LONGEST = 30
"""Words in a sentence."""


def places(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield (line, construction, excerpt) for each place in a file's text that a rule counts."""
    for line, said, is_docstring in passages(text):
        if is_docstring and OPENINGS.match(said.strip()):
            yield line, "opening", said.strip()[:60]
        for name, pattern in CONSTRUCTIONS.items():
            for found in re.finditer(pattern, said):
                at = said.count("\n", 0, found.start())
                yield line + at, name, said[max(0, found.start() - 20) : found.end() + 20]
        for sentence in sentences(said):
            if len(sentence.split()) > LONGEST:
                yield line, "long", sentence[:60]


def places_of_page(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the same for a page of Markdown; sentences in tables have any length."""
    blank = lambda found: "\n" * found[0].count("\n") or "X"  # noqa: E731
    said = re.sub(r"```.*?```|`[^`]*`", blank, text, flags=re.S)
    for name, pattern in CONSTRUCTIONS.items():
        for found in re.finditer(pattern, said):
            at = said.count("\n", 0, found.start()) + 1
            yield at, name, said[max(0, found.start() - 20) : found.end() + 20]
    prose = re.sub(r"^(\||:::).*$", "", said, flags=re.M)
    for paragraph in re.split(r"\n\s*\n|\n(?=\* |\d\. |#)", prose):
        for sentence in sentences(paragraph):
            if len(sentence.split()) > LONGEST:
                yield said[: said.find(sentence)].count("\n") + 1, "long", sentence[:60]


def passages(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield (line, prose, whether it is a docstring) for docstrings, comments, and other texts of
    more than two words."""
    tree = ast.parse(text)
    docstrings = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                docstrings.add(statement.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node in docstrings or len(node.value.split()) > 2:
                yield node.lineno, node.value, node in docstrings
    block: list[str] = []
    first = last = -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row = token.start[0]
            if row != last + 1 and block:
                yield first, " ".join(block), False
                block = []
            first = first if block else row
            block.append(token.string.lstrip("# "))
            last = row
    if block:
        yield first, " ".join(block), False


def sentences(said: str) -> list[str]:
    """Split prose into sentences; indented lines are code, and list items are separate."""
    kept = [line for line in said.split("\n") if not re.match(r"\s*(>>>|\.\.\. |\|)", line)]
    paragraphs = re.split(r"\n\s*\n|\n\s*(?:[-*] |[\w, *]+: )", "\n".join(kept))
    return [s for p in paragraphs for s in re.split(r"(?<=[.:;?!])\s+", p)]


def sources() -> list[Path]:
    """Return the source files of all packages."""
    return sorted(ROOT.glob("packages/*/src/**/*.py"))


def pages() -> list[Path]:
    """Return the pages of the documentation, and every package's first page."""
    folders = ("docs", "packages", "examples", "benchmarks")
    found = [*ROOT.glob("*.md"), *(p for f in folders for p in (ROOT / f).rglob("*.md"))]
    return sorted(p for p in found if not HIDDEN & {*p.parts})


def places_of_file(path: Path) -> list[tuple[int, str, str]]:
    """Return the places of a page or a source file."""
    read = places_of_page if path.suffix == ".md" else places
    return [*read(path.read_text(encoding="utf-8"))]


def files_of(path: Path) -> list[Path]:
    """Return the pages and source files of a folder, or the one file."""
    if not path.is_dir():
        return [path]
    return sorted(p for kind in ("*.md", "*.py") for p in path.rglob(kind))


def count(path: Path) -> int:
    """Return how many places of a file the rules count."""
    return len(places_of_file(path))


def recorded() -> dict[str, int]:
    """Return the recorded counts by path; a file without one has none left."""
    rows = [line.rsplit(" ", 1) for line in RECORD.read_text(encoding="utf-8").splitlines()]
    return {path: int(n) for path, n in rows}


def main(*args: str) -> None:
    """Print or record counts."""
    if args == ("--write",):
        counts = {str(p.relative_to(ROOT)): count(p) for p in sources()}
        RECORD.write_text("".join(f"{p} {n}\n" for p, n in counts.items() if n), encoding="utf-8")
        return
    for name in args:
        for path in files_of(Path(name)):
            for line, kind, said in sorted(places_of_file(path)):
                print(f"{path}:{line}: {kind}: {' '.join(said.split())}")
    if not args:
        found = {p: Counter(k for _, k, _ in places(p.read_text("utf-8"))) for p in sources()}
        packages = sorted({p.relative_to(ROOT).parts[1] for p in found})
        for package in packages:
            total = sum(
                (c for p, c in found.items() if p.relative_to(ROOT).parts[1] == package), Counter()
            )
            print(f"{package}: {sum(total.values())}", dict(total.most_common()))


if __name__ == "__main__":
    main(*sys.argv[1:])
