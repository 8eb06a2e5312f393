"""Pages that show functions: their Programs side by side, with notes of the packages installed.

Packages add tables to a page by entry points of the group `plait.sections`: functions
`section(fun, args, kwargs)` that return a `Section`, or a tuple of its fields; None for no table.
The table `notes` adds a text beside an operation.

Invariant: a page never fails for want of a section: one that raises is left out.
"""

from collections.abc import Callable
from typing import Any

from plait import make_program
from plait.ext.errors import ArgumentError, PlaitError, below_hidden, border
from plait.ext.ir import Program
from plait.ext.plugins import declared, load, names
from plait.ext.trace import name_of

from .notes import Section
from .pages import Column, Page, page_of

__all__ = ["page_of_compiled", "page_of_program", "show"]

SECTIONS = "plait.sections"


@border
def show(*funs: Callable[..., Any]) -> Callable[..., Page]:
    """Return a function that shows the Programs of functions for arguments, as a page of HTML.

    In a notebook the page shows itself; `page.save("page.html")` writes it.  Several functions,
    such as `show(f, grad(f))`, are shown side by side: what the second has beyond the first is
    coloured.  Operations with programs unfold, and each equation links to its line.

    Args:
      funs: functions of the same arguments.

    >>> import plait
    >>> page = plait.show(lambda x: plait.lax.sin(x) * 2)(1.0)
    >>> "core.sin" in page.html
    True
    """
    if not funs or not all(map(callable, funs)):
        raise ArgumentError(
            "show needs functions", fix="write plait.show(f)(*args), without calling f"
        )

    def shown(*args: Any, **kwargs: object) -> Page:
        columns = []
        for f in funs:
            program = make_program(f)(*args, **kwargs)
            columns.append(Column(name_of(f), program, _maker(f)))
        sections = [s for f in funs[:1] for s in _sections(f, args, kwargs)]
        return page_of(columns, sections)

    return border(shown)


def page_of_program(program: Program) -> str:
    """Return the page of one program, as HTML for a notebook."""
    return page_of([Column(program.name, program)]).body


def page_of_compiled(compiled: Any, program: Program) -> str:
    """Return the page of a compiled function: its Program, its memory, transfers of devices."""
    memory = compiled.memory_analysis()
    rows = [(kind, f"{getattr(memory, f'{kind}_size_in_bytes', 0):,}") for kind in _MEMORY]
    found = [Section("Memory of a call", ("kind", "bytes"), rows)]
    exchanged = [
        (c.op, f"{c.bytes:,}", ", ".join(c.operands), c.where or "") for c in compiled.collectives()
    ]
    if exchanged:
        heads = ("operation", "bytes", "operands", "line")
        found.append(Section("Transfers between devices", heads, exchanged))
    return page_of([Column(program.name, program)], found).body


_MEMORY = ("argument", "output", "temp", "alias", "generated_code")


def _sections(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Section]:
    """Return the tables that packages add to the page of a function."""
    found = []
    for name in names(SECTIONS):
        for d in declared(SECTIONS, name):
            try:
                section = load(d)(f, args, kwargs)
            except (PlaitError, TypeError, ValueError):
                continue
            if section is not None:
                found.append(Section(*section))
    return found


def _maker(f: Any, depth: int = 0) -> str:
    """Return the package of the outermost transformation of a function: "autodiff" for a gradient,
    "" for a plain function."""
    code = getattr(f, "__code__", None)
    if code is None or not below_hidden(code.co_filename) or depth > 4:
        return ""
    package = f.__globals__.get("__name__", "").partition(".")[0]
    if package != "plait":
        return package.removeprefix("plait_")
    inner = [c.cell_contents for c in f.__closure__ or () if callable(_content(c))]
    return next((found for g in inner if (found := _maker(g, depth + 1))), "")


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None
