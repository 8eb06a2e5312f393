"""Programs as pages of HTML: sub-programs fold, and equations lead to the lines they come from.

A page is one element without scripts, images or fonts from elsewhere.

Invariant: what a program contains is text: it is escaped wherever it is written.
"""

import hashlib
import linecache
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from plait.ext.errors import user_frames
from plait.ext.ir import Eqn, Program, Var, programs_in
from plait.ext.text import Writer, effects_said

from .notes import Section, bytes_of, note_rules

__all__ = ["Column", "Page", "page_of"]


class Column(NamedTuple):
    """A program of a page, with its title, and the name of what made it of the one before."""

    title: str
    program: Program
    made_by: str = ""


class Page:
    """A page of HTML; a notebook shows it, and `save` writes it to a file."""

    def __init__(self, body: str, text: str):
        self.body, self._text = body, text

    @property
    def html(self) -> str:
        """The page, whole."""
        return f"<!doctype html><meta charset=utf-8><title>plait</title>{self.body}"

    def save(self, path: Any) -> None:
        """Write the page to a file, to be opened in a browser."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        return self.body

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


def page_of(columns: Sequence[Column], sections: Iterable[Section] = ()) -> Page:
    """Return the page of programs side by side, with tables below.

    Equations that the program to the left has, too, at the same line, are pale; the others have the
    colour of what made the program, or of the namespace of their operation.
    """
    parts, texts = [], []
    for i, column in enumerate(columns):
        before = columns[i - 1].program if i else None
        writer = _PageWriter(column.program, before, column.made_by)
        by = column.made_by
        told = f' <span class="by"{_colour(by)}>{escape(by)}</span>' if by else ""
        parts.append(f"<section><h4>{escape(column.title)}{told}</h4>{writer.page()}</section>")
        texts.append(str(column.program))
    tables = "".join(map(_table, sections))
    style = f"<style>{_style()}</style>"
    body = f'<div class="plait-page">{style}<div>{"".join(parts)}</div>{tables}</div>'
    return Page(body, "\n\n".join(texts))


@cache
def _style() -> str:
    """Return the style of pages, in one line."""
    text = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return text.replace("\n", "")


def _colour(name: str) -> str:
    """Return the colour of a namespace or package; the same one in every process."""
    if name in ("", "core"):
        return ""
    hue = int.from_bytes(hashlib.sha256(name.encode()).digest()[:2], "big") % 360
    return f' style="--c:hsl({hue} 65% 50%)"'


class _PageWriter:
    """A writer of one program as HTML."""

    def __init__(self, program: Program, before: Program | None, made_by: str):
        self.program, self.made_by = program, made_by
        self.known = None if before is None else _marks(before)
        numbers: dict[Program, int] = {}
        _number(program, numbers)
        self.numbers, self.shown = numbers, set[Program]()
        self.writer = Writer(program, False)
        self.writer.labels = numbers

    def page(self) -> str:
        head = self._head(self.program)
        return f'<div class="e">{head}</div>{self._body(self.program)}'

    def _head(self, p: Program) -> str:
        ins = ", ".join([f"%{i}: {self.writer.type(v.aval)}" for i, v in enumerate(p.inputs)])
        does = f"  does {' and '.join(effects_said(p))}" if p.effects else ""
        said = f"{does}  {sum(bytes_of(v.aval) for v in p.inputs):,} bytes in"
        return f'{escape(p.name)}({escape(ins)})<span class="t">{escape(said)}</span>'

    def _body(self, p: Program) -> str:
        names: dict[Any, str] = {}

        def define(v: Any) -> str:
            names[v] = name = f"%{len(names)}"
            return name

        def atom(a: Any) -> str:
            return names.get(a, "%?") if a.__class__ is Var else repr(a.value)

        for v in p.inputs:
            define(v)
        rows = [
            f'<div class="e t">const {define(v)}: {escape(self.writer.type(v.aval))}</div>'
            for v, _ in p.consts
        ]
        for e in p.eqns:
            operands = ", ".join([atom(a) for a in e.inputs])
            outs = ", ".join([f"{define(v)}: {self.writer.type(v.aval)}" for v in e.outputs])
            rows.append(self._equation(e, operands, outs))
        results = ", ".join([atom(a) for a in p.outputs])
        rows.append(f'<div class="e">return {escape(results)}</div>')
        return "".join(rows)

    def _equation(self, e: Eqn, operands: str, outs: str) -> str:
        space, _, _ = e.prim.name.partition(".")
        same = self.known is not None and _mark(e) in self.known
        colour = _colour(space) or ("" if same or self.known is None else _colour(self.made_by))
        inner = programs_in(e.params)
        params = self.writer.params(e, "")
        said = f"{e.prim.name}({operands}{'; ' if operands and params else ''}{params})"
        text = escape(f"{outs}{' = ' if outs else ''}{said}")
        text += f"{self._note(e)}  {_link(e)}"
        if not inner:
            return f'<div class="e{" same" if same else ""}"{colour}>{text}</div>'
        bodies = "".join([self._inner(p) for p in inner])
        return f"<details{colour}><summary>{text}</summary>{bodies}</details>"

    def _inner(self, p: Program) -> str:
        number = self.numbers[p]
        if p in self.shown:
            return f'<div class="e t">@{number}, as above</div>'
        self.shown.add(p)
        return f"<details><summary>@{number} = {self._head(p)}</summary>{self._body(p)}</details>"

    def _note(self, e: Eqn) -> str:
        rule = note_rules.find(e.prim)
        if rule is None:
            return ""
        ins, outs = [a.aval for a in e.inputs], [v.aval for v in e.outputs]
        said = note_rules[e.prim](ins, outs, **e.params)
        return f"  <i>{escape(str(said))}</i>" if said else ""


def _link(e: Eqn) -> str:
    """Return a link to the line of an equation, which shows its source."""
    frames = user_frames(e.where, 1)
    if not frames:
        return ""
    f = frames[0]
    name = f.file.replace("\\", "/").rpartition("/")[2]
    source = linecache.getline(f.file, f.line).strip()
    url = "file://" + f.file if f.file.startswith("/") else f.file
    return f'<a href="{escape(url)}#{f.line}" title="{escape(source)}">{escape(name)}:{f.line}</a>'


def _mark(e: Eqn) -> tuple[Any, ...]:
    frames = user_frames(e.where, 1)
    where = (frames[0].file, frames[0].line) if frames else None
    return e.prim, where, tuple([(v.aval.shape, v.aval.dtype) for v in e.outputs])


def _marks(p: Program) -> set[tuple[Any, ...]]:
    return {_mark(e) for e in p.eqns}


def _number(p: Program, numbers: dict[Program, int]) -> None:
    """Number the sub-programs in the order in which they are shown."""
    for e in p.eqns:
        for q in programs_in(e.params):
            if q not in numbers:
                numbers[q] = len(numbers) + 1
                _number(q, numbers)


def _table(s: Section) -> str:
    head = "".join([f"<th>{escape(h)}</th>" for h in s.heads])
    rows = "".join(
        ["<tr>" + "".join([f"<td>{escape(c)}</td>" for c in row]) + "</tr>" for row in s.rows]
    )
    return f"<h4>{escape(s.title)}</h4><table><tr>{head}</tr>{rows}</table>"
