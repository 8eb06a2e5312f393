"""Costs of a function by the lines of the user's files: time, operations on numbers, and bytes.

Operations and bytes are those of the Program, before the compiler fuses its equations; time is
measured, on the executable, and belongs to the lines that its operations carry.

Invariant: a time that was not measured is None, never an estimate.
"""

import linecache
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from plait import config, jit
from plait.ext import profiling
from plait.ext.devices import platform
from plait.ext.errors import PlaitError, border, user_line
from plait.ext.ir import Eqn, Program, Var, programs_in
from plait.ext.lower import RuntimeFailure, module_of
from plait.ext.ops.control_flow import map_axes, scan
from plait.ext.trace import GROUND, wraps
from plait.ext.tree import flatten

from .trace_files import operation_events

__all__ = ["LineCost", "LineTable", "by_line", "costs_by_line"]


class LineCost(NamedTuple):
    """The costs of one line in one call.

    Attributes:
      where: the line, "file.py:12"; "<unknown>" for operations without one.
      flops: the operations on numbers, elementary functions counted as one each.
      bytes: the sizes of the operands and results of its equations.
      seconds: the measured time; None if the runtime reports no times of operations.
    """

    where: str
    flops: float
    bytes: int
    seconds: float | None

    @property
    def text(self) -> str:
        """The source of the line, if its file is there."""
        file, _, number = self.where.rpartition(":")
        return linecache.getline(file, int(number)).strip() if number.isdecimal() else ""


class LineTable(tuple[LineCost, ...]):
    """The costs of a call by line, the longest first; prints as a table."""

    def of(self, number: int) -> LineCost:
        """Return the costs of the line with a number; KeyError if it has none."""
        for row in self:
            if row.where.endswith(f":{number}"):
                return row
        raise KeyError(number)

    @property
    def flops(self) -> float:
        """The operations of all lines."""
        return sum(row.flops for row in self)

    @property
    def bytes(self) -> int:
        """The bytes of all lines."""
        return sum(row.bytes for row in self)

    @property
    def seconds(self) -> float | None:
        """The time of all lines; None if it was not measured."""
        known = [row.seconds for row in self if row.seconds is not None]
        return sum(known) if known else None

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return the cells of the table: time, operations, bytes, line, source."""
        return [
            ("-" if r.seconds is None else f"{r.seconds * 1e6:.1f}", _amount(r.flops),
             _amount(r.bytes), r.where.replace("\\", "/").rpartition("/")[2], r.text)
            for r in self
        ]  # fmt: skip

    def __str__(self) -> str:
        cells = [("us", "flops", "bytes", "line", ""), *self.rows()]
        widths = [max(len(c[i]) for c in cells) for i in range(4)]
        out = [
            "  ".join([*[c[i].rjust(widths[i]) for i in range(3)], c[3].ljust(widths[3]), c[4]])
            for c in cells
        ]
        if self and self.seconds is None:
            out.append("(times are unknown: this runtime reports none of operations)")
        return "\n".join([line.rstrip() for line in out])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape

        head = "".join(f"<th>{h}</th>" for h in ("µs", "flops", "bytes", "line", "source"))
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows()
        )
        return f"<table><tr>{head}</tr>{body}</table>"


@border
def by_line(fun: Callable[..., Any], *, repeat: int = 5) -> Callable[..., LineTable]:
    """Return a function that runs `fun` compiled, and returns its costs by line of the user's file.

    The compiler fuses equations of several lines into one operation, whose time is shared among
    them by the sizes of their results.  A `while_loop` counts as one turn, and a branch as if every
    one ran, in operations and bytes; times are those of the call.

    Args:
      fun: the function, jitted or not.
      repeat: how many calls are measured; the result is their mean.

    >>> import plait, numpy as np
    >>> def f(x):
    ...     return x @ x
    >>> plait.profiler.by_line(f)(np.ones((8, 8), np.float32)).flops
    1024.0
    """

    @wraps(fun)
    def measured(*args: Any, **kwargs: object) -> LineTable:
        function = fun if hasattr(fun, "lower") else jit(fun)
        with config(source_lines=True, tier="full" if config.tier == "both" else config.tier):
            staged: Any = function.trace(*args, **kwargs)  # type: ignore[attr-defined]
            compiled = function.lower(*args, **kwargs).compile()  # type: ignore[attr-defined]
            costs = costs_by_line(staged.program)
            times = _times(lambda: function(*args, **kwargs), compiled.as_text(), repeat)
        lines = [*dict.fromkeys([*costs, *(times or ())])]
        found = [
            LineCost(at, *costs.get(at, (0.0, 0)), None if times is None else times.get(at, 0.0))
            for at in lines
        ]
        return LineTable(sorted(found, key=lambda r: (-(r.seconds or 0.0), -r.flops, -r.bytes)))

    return measured


def _times(call: Callable[[], Any], hlo: str, repeat: int) -> dict[str, float] | None:
    """Return the mean seconds of a call by line; None if the runtime reports no operations."""
    _finish(call())
    session = profiling.session(python=False)
    try:
        for _ in range(repeat):
            _finish(call())
    finally:
        recorded = session.stop()
    events = operation_events(profiling.profile_data(recorded))
    name, lines = profiling.module_name(hlo), profiling.lines_of_operations(hlo)
    found: dict[str, float] = defaultdict(float)
    for e in events:
        if e.module == name:
            for at, share in (lines.get(e.op) or {"<unknown>": 1.0}).items():
                found[at] += share * e.seconds / repeat
    return dict(found) or None


def _finish(out: Any) -> None:
    for x in flatten(out)[0]:
        if hasattr(x, "block_until_ready"):
            x.block_until_ready()


def _amount(x: float) -> str:
    """Return a number with a letter for its power of a thousand."""
    for letter in ("", "k", "M", "G", "T"):
        if abs(x) < 1000 or letter == "T":
            break
        x /= 1000
    return f"{x:.0f}{letter}" if letter == "" else f"{x:.3g}{letter}"


# ---- costs of a Program --------------------------------------------------------------------------


def costs_by_line(program: Program) -> dict[str, tuple[float, int]]:
    """Return {line: (operations, bytes)} of a Program."""
    found: dict[str, tuple[float, int]] = {}
    for e, times in _each(program, 1):
        at = user_line(e.where)
        flops, size = found.get(at, (0.0, 0))
        found[at] = flops + times * _flops(e), size + times * _bytes(e)
    return found


def _each(program: Program, times: int) -> Iterator[tuple[Eqn, int]]:
    """Yield the equations that compute, and how often each runs."""
    for e in program.eqns:
        inner = programs_in(e.params)
        if not inner:
            yield e, times
            continue
        turns: Any = 1
        if e.prim is scan:
            turns = e.params["length"]
        elif e.prim is map_axes:
            turns = e.params["size"]
        for p in inner:
            yield from _each(p, times * (turns if isinstance(turns, int) else 1))


def _bytes(e: Eqn) -> int:
    return sum(_size(a.aval) for a in (*e.inputs, *e.outputs))


def _size(aval: Any) -> int:
    laid = aval.physical
    return laid.size * laid.dtype.itemsize if isinstance(laid.size, int) else 0


def _flops(e: Eqn) -> float:
    """Return the operations on numbers of an equation, as the runtime counts those of its
    lowering."""
    key = e.prim, tuple(sorted(e.params.items())), tuple([a.aval for a in e.inputs])
    try:
        found = _counted.get(key)
    except TypeError:  # a parameter is not hashable
        return _count(e)
    if found is None:
        if len(_counted) > 4096:
            _counted.clear()
        found = _counted[key] = _count(e)
    return found


_counted: dict[Any, float] = {}


def _count(e: Eqn) -> float:
    ins = [_variable(a.aval) for a in e.inputs]
    outs = [_variable(a.aval) for a in e.outputs]
    alone = Program(ins, [Eqn(e.prim, ins, outs, e.params, None)], outs, str(e.prim))
    try:
        code = module_of(alone, platforms=(platform(),)).code
        costs = profiling.costs_of(code)
    except (PlaitError, RuntimeFailure):  # it calls Python, or needs several devices
        return 0.0
    return sum(max(costs.get(kind, 0.0), 0.0) for kind in ("flops", "transcendentals"))


def _variable(aval: Any) -> Var:
    v = Var()
    v.by, v.aval, v.where = GROUND, aval, None
    return v
