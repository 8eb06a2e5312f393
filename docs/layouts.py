"""The picture of how piles lie in memory, for `explanation/pile-layouts.md`.

    python docs/layouts.py --write     # docs/assets/pile-layouts.svg

Invariant: the picture follows from the lengths below alone, so that it can be made again.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

PICTURE = Path(__file__).parent / "assets" / "pile-layouts.svg"
LENGTHS = {"a": 3, "b": 1, "c": 2}
COLOURS = {"a": "#4e79a7", "b": "#f28e2b", "c": "#59a14f", "": "none"}
CELL, GAP, LEFT, TOP = 22, 14, 250, 24
ROOM, TILE, LONGEST = 8, 4, 4
Rows = list[list[str]]


def flat() -> list[Rows]:
    """Return the blocks of rows, one after the other, up to a capacity."""
    row = [name for name, n in LENGTHS.items() for _ in range(n)]
    return [[row + [""] * (ROOM - len(row))]]


def tiles() -> list[Rows]:
    """Return one tile for each example, and one that is spare."""
    own = [
        [[name if i < n and j < n else "" for j in range(TILE)] for i in range(TILE)]
        for name, n in LENGTHS.items()
    ]
    return [*own, [[""] * TILE for _ in range(TILE)]]


def padded() -> list[Rows]:
    """Return one row for each example, as long as the longest may be."""
    return [[[name] * n + [""] * (LONGEST - n) for name, n in LENGTHS.items()]]


def stacked() -> list[Rows]:
    """Return one number for each example."""
    return [[[name] for name in LENGTHS]]


LAYOUTS = {
    "x: f32[n]   flat": flat,
    "s: f32[n, n]   tiles": tiles,
    "x: f32[n]   padded": padded,
    "h: f32[]   stacked": stacked,
}


def cell(x: int, y: int, name: str) -> str:
    """Return a square; empty ones are memory without rows."""
    dashes = "" if name else ' stroke-dasharray="2 2"'
    text = (
        f'<text x="{x + CELL // 2}" y="{y + 15}" text-anchor="middle" fill="white">{name}</text>'
        if name
        else ""
    )
    fill = COLOURS[name]
    return (
        f'<rect x="{x}" y="{y}" width="{CELL - 2}" height="{CELL - 2}" fill="{fill}" '
        f'stroke="#888"{dashes}/>{text}'
    )


def drawn() -> Iterator[str]:
    """Yield the lines of the picture."""
    y = TOP
    for told, make in LAYOUTS.items():
        blocks = make()
        yield f'<text x="8" y="{y + 15}" fill="#888">{told}</text>'
        x = LEFT
        for block in blocks:
            for i, row in enumerate(block):
                for j, name in enumerate(row):
                    yield cell(x + j * CELL, y + i * CELL, name)
            x += len(block[0]) * CELL + GAP
        y += max(map(len, blocks)) * CELL + GAP
    yield f'<text x="8" y="{y + 12}" fill="#888">dashed: memory without rows</text>'


def picture() -> str:
    """Return the picture as the text of an SVG file."""
    lines = "\n".join(drawn())
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 344" role="img" '
        'font-family="monospace" font-size="13">\n'
        "<title>Layouts of three examples of 3, 1 and 2 rows</title>\n"
        f"{lines}\n</svg>\n"
    )


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PICTURE.write_text(picture(), encoding="utf-8")
    else:
        print(picture())
