"""Pictures of grids of cells: as text for terminals, as SVG for notebooks and files.

Invariant: this module does not use meshes or shardings; dots mark the places where a picture omits
cells.
"""

import colorsys
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

__all__ = ["MOST", "Cell", "Colour", "Panel", "Picture", "folded", "numbers"]

Colour = Callable[[float], Sequence[float]]
"""Map a number between 0 and 1 to red, green, blue between 0 and 1; further values are dropped."""
MOST = 64
"""The largest number of cells drawn of one grid."""


@dataclass(frozen=True)
class Cell:
    """One place of a grid: its lines of text, and its shade, a number between 0 and 1."""

    lines: tuple[str, ...]
    shade: float


@dataclass(frozen=True)
class Panel:
    """Rows of cells under a title; None stands for omitted cells."""

    title: str
    rows: tuple[tuple[Cell | None, ...], ...]


@dataclass(frozen=True)
class Picture:
    """Panels, one below the other; `str` is text, `svg()` an SVG document, and notebooks draw it.

    Attributes:
      title: a line above all panels.
      down, across: names of the rows and columns of all panels.
    """

    title: str
    panels: tuple[Panel, ...]
    down: str = ""
    across: str = ""

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def text(
        self,
        colour: Colour | None = None,
        *,
        scale: float = 1.0,
        min_width: int = 9,
        max_width: int = 80,
    ) -> str:
        """Return the picture as lines of characters.

        Args:
          colour: fills cells by ANSI codes; without it cells are not filled.
          scale: the size of the cells, as a multiple of the least size.
          min_width: the least number of characters across a cell.
          max_width: the largest width of the picture; columns that do not fit are left out.
        """
        head = [line for line in (self.title, self._axes) if line]
        for panel in self.panels:
            head += [panel.title] if panel.title else []
            if panel.rows:
                head += _panel_text(panel.rows, colour, scale, min_width, max_width)
        return "\n".join(head)

    @property
    def _axes(self) -> str:
        """The names of rows and columns, as one line."""
        named = (("down", self.down), ("across", self.across))
        return "; ".join([f"{way}: {axis}" for way, axis in named if axis])

    def svg(self, colour: Colour | None = None) -> str:
        """Return the picture as an SVG document."""
        return _svg(self, colour or hues)

    def _repr_html_(self) -> str:
        return self.svg()


# ---- contents ----------------------------------------------------------------------------------


def numbers(each: Iterable[int], most: int = 16) -> str:
    """Return numbers as text, `0,1,4-7`; if that exceeds `most` characters, only the ends."""
    found = sorted(each)
    runs: list[list[int]] = []
    for n in found:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    said = [f"{r[0]}-{r[-1]}" if len(r) > 2 else ",".join(map(str, r)) for r in runs]
    text = ",".join(said)
    return text if len(text) <= most else f"{found[0]},{found[1]},…,{found[-1]}"


def folded(counts: Sequence[int]) -> list[list[int | None]]:
    """Return the indices to draw along each axis of a grid, so that at most MOST cells are drawn.

    None stands for the omitted indices.
    """
    most = list(counts)
    while math.prod(most) > MOST and max(most) > 3:
        most[most.index(max(most))] -= 1
    return [
        [*range(n)] if n == k else [*range(k - 2), None, n - 1]
        for n, k in zip(counts, most, strict=True)
    ]


def hues(shade: float) -> tuple[float, float, float]:
    """Return a light colour; `shade` runs once around the circle of hues."""
    return colorsys.hls_to_rgb(shade, 0.82, 0.65)


def _bytes(colour: Colour, shade: float) -> tuple[int, int, int]:
    red, green, blue = [round(255 * min(max(v, 0.0), 1.0)) for v in list(colour(shade))[:3]]
    return red, green, blue


# ---- text --------------------------------------------------------------------------------------


def _panel_text(
    rows: Sequence[Sequence[Cell | None]],
    colour: Colour | None,
    scale: float,
    min_width: int,
    max_width: int,
) -> list[str]:
    lines = [line for row in rows for c in row if c for line in c.lines]
    wide = max(math.ceil(scale * (max(map(len, lines)) + 2)), min_width)
    high = max(math.ceil(scale * max(len(c.lines) for row in rows for c in row if c)), 1)
    rows = _fitting(rows, wide, max_width)
    widths = [wide if any(row[k] for row in rows) else 3 for k in range(len(rows[0]))]
    rule = lambda a, b, c: a + b.join(["─" * w for w in widths]) + c  # noqa: E731
    out = [rule("┌", "┬", "┐")]
    for i, row in enumerate(rows):
        out += [rule("├", "┼", "┤")] if i else []
        tall = high if any(row) else 1
        for k in range(tall):
            parts = [_line(c, k, tall, w, colour) for c, w in zip(row, widths)]
            out.append("│" + "│".join(parts) + "│")
    return [*out, rule("└", "┴", "┘")]


def _fitting(
    rows: Sequence[Sequence[Cell | None]], wide: int, max_width: int
) -> Sequence[Sequence[Cell | None]]:
    """Return the rows with dots, before the last column, for the columns that do not fit."""
    there = [k for k in range(len(rows[0])) if any(row[k] for row in rows)]
    dots = 4 * (len(rows[0]) - len(there))
    if 1 + dots + len(there) * (wide + 1) <= max_width or len(there) < 3:
        return rows
    cells = max((max_width - 5) // (wide + 1), 2)
    return [[*[row[k] for k in there[: cells - 1]], None, row[there[-1]]] for row in rows]


def _line(cell: Cell | None, k: int, high: int, width: int, colour: Colour | None) -> str:
    """Return line `k` of a cell, or of the dots for omitted cells."""
    if cell is None:
        return ("…" if k == high // 2 else " ").center(width)
    above = (high - len(cell.lines)) // 2
    text = cell.lines[k - above] if 0 <= k - above < len(cell.lines) else ""
    text = text.center(width)
    if colour is None:
        return text
    red, green, blue = _bytes(colour, cell.shade)
    dark = 0.299 * red + 0.587 * green + 0.114 * blue < 128
    return f"\x1b[48;2;{red};{green};{blue}m\x1b[{97 if dark else 30}m{text}\x1b[0m"


# ---- SVG ---------------------------------------------------------------------------------------

_LINE, _LETTER, _GAP = 15, 7.3, 8


def _svg(picture: Picture, colour: Colour) -> str:
    cells = [c for p in picture.panels for row in p.rows for c in row if c]
    wide = 18 + _LETTER * max(len(line) for c in cells for line in c.lines)
    high = 16 + _LINE * max(len(c.lines) for c in cells)
    parts: list[str] = []
    y, right = float(_GAP), 0.0

    def write(text: str, how: str = "") -> None:
        nonlocal y, right
        y, right = y + _LINE, max(right, _GAP + _LETTER * len(text))
        parts.append(f'<text x="{_GAP}" y="{y:g}"{how}>{escape(text)}</text>')

    write(picture.title, ' font-weight="bold"')
    if picture._axes:
        write(picture._axes)
    for panel in picture.panels:
        y += _GAP
        if panel.title:
            write(panel.title)
            y += _GAP
        if not panel.rows:
            continue
        widths = [wide if any(r[k] for r in panel.rows) else 24 for k in range(len(panel.rows[0]))]
        xs = [_GAP + sum(widths[:k]) for k in range(len(widths) + 1)]
        for row in panel.rows:
            tall = high if any(row) else 22
            for cell, (x, after) in zip(row, pairwise(xs)):
                parts += _cell_svg(cell, x, y, after - x, tall, colour)
            y += tall
        right = max(right, xs[-1])
    size = f"{math.ceil(right + _GAP)} {math.ceil(y + _GAP)}"
    width, height = size.split()
    style = 'font-family="ui-monospace,Menlo,Consolas,monospace" font-size="12"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {size}" {style} fill="#111"><rect width="100%" height="100%" fill="#fff"/>'
        f"{''.join(parts)}</svg>"
    )


def _cell_svg(
    cell: Cell | None, x: float, y: float, wide: float, high: float, colour: Colour
) -> list[str]:
    """Return the SVG elements of a filled rectangle with lines of text, or of dots."""
    middle = f'x="{x + wide / 2:g}"'
    if cell is None:
        return [f'<text {middle} y="{y + high / 2 + 4:g}" text-anchor="middle">…</text>']
    fill = "#{:02x}{:02x}{:02x}".format(*_bytes(colour, cell.shade))
    box = f'x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}"'
    parts = [f'<rect {box} fill="{fill}" stroke="#555"/>']
    at = y + high / 2 - _LINE * len(cell.lines) / 2 + 11
    for k, line in enumerate(cell.lines):
        parts.append(
            f'<text {middle} y="{at + _LINE * k:g}" text-anchor="middle">{escape(line)}</text>'
        )
    return parts
