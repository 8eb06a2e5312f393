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


def test_no_page_has_words_that_are_hard_to_read():
    worse = [
        f"{path.relative_to(prose.ROOT)}:{line}: {kind}: {said}"
        for path in prose.pages()
        for line, kind, said in prose.places_of_file(path)
    ]
    assert not worse, "\n".join(worse)


def test_folders_are_read_whole(capsys):
    prose.main(str(prose.ROOT / "docs"))
    assert capsys.readouterr().out.count(".md:") == 0
    assert {"README.md", "docs/piles.md", "packages/core/README.md"} <= {
        str(p.relative_to(prose.ROOT)) for p in prose.pages()
    }


def test_constructions_of_pages_are_counted():
    page = (
        "# What is it\n\nIt is no list, `is no code`.\n\n```\nis no code\n```\n\n" + "a " * 31 + "."
    )
    found = [(line, kind) for line, kind, _ in prose.places_of_page(page)]
    assert found == [(3, "no-article"), (1, "what-clause"), (9, "long")]


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
