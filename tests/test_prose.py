"""Prose in the sources gets no worse: each file has at most the recorded number of places that are
hard to read, and a new file has none.

Invariant: the record only falls; `python -m tests.prose --write` lowers it after a clean-up.
"""

from . import prose


def test_no_file_gets_harder_to_read():
    allowed, worse = prose.recorded(), []
    for path in prose.sources():
        name = str(path.relative_to(prose.ROOT))
        found = [*prose.places(path.read_text(encoding="utf-8"))]
        if len(found) > allowed.get(name, 0):
            worse += [f"{name}:{line}: {kind}: {said}" for line, kind, said in found]
    assert not worse, "\n".join(worse)


WORDY: dict[str, int] = {
    "docs/export.md": 1,
    "docs/internals/piles.md": 1,
    "docs/internals/tracing-and-execution.md": 3,
    "docs/piles.md": 12,
    "docs/plugins.md": 7,
    "docs/reference/ext.md": 1,
    "docs/writing-a-primitive.md": 5,
    "docs/writing-a-propagation.md": 1,
    "docs/writing-a-transformation.md": 10,
    "docs/writing-an-array-library.md": 2,
}
"""Pages that still have such places, with their number, which may only fall."""


def test_no_page_gets_harder_to_read():
    worse = []
    for path in [prose.ROOT / "README.md", *sorted((prose.ROOT / "docs").rglob("*.md"))]:
        name = str(path.relative_to(prose.ROOT))
        found = [*prose.places_of_page(path.read_text(encoding="utf-8"))]
        if len(found) > WORDY.get(name, 0):
            worse += [f"{name}:{line}: {kind}: {said}" for line, kind, said in found]
    assert not worse, "\n".join(worse)


def test_constructions_of_pages_are_counted():
    page = (
        "# What is it\n\nIt is no list, `is no code`.\n\n```\nis no code\n```\n\n" + "a " * 31 + "."
    )
    found = [(line, kind) for line, kind, _ in prose.places_of_page(page)]
    assert found == [(3, "no-article"), (1, "what-clause"), (0, "long")]


def test_constructions_are_counted():
    text = '''"""What is said of it.

    It can not be told, and nobody shall know of which array.
    """
    # is no array
    '''.replace("\n    ", "\n")
    kinds = [kind for _, kind, _ in prose.places(text)]
    assert sorted(kinds) == [
        "can not", "no-article", "of-which", "opening", "shall", "somebody", "told", "told",
        "what-clause",
    ]  # fmt: skip


def test_plain_words_are_not_counted():
    text = '"""Return the sum. It is no longer used; `can not` in code is code."""\nx = "can not"\n'
    assert [kind for _, kind, _ in prose.places(text)] == ["can not"]
