"""Programs written as text.

Invariant: a value without a text form is printed in angle brackets, so it is never mistaken for
another value.
"""

import math
import re
from typing import Any

import numpy as np

from .._base.errors import PlaitError
from .._base.source import user_line
from .._core.array import Array, is_tracer, laid
from .._core.interpreter import Value
from .._core.ir import Eqn, Program, Thunk, Var, programs_in
from .._core.primitive import Primitive, textual_name
from .._types.avals import OPAQUE, Aval, Opaque
from .._types.dims import Dim, Scope
from .names import DTYPES, dtype_name, effects_said, records

_SMALL = 8
"""Constants of at most so many elements are printed with their values."""


def show(program: Program, locations: bool = False) -> str:
    """Return the program as text, one equation per line; `locations` adds the user's file and line.

    This is what `print(program)` prints.

    >>> import plait
    >>> print(plait.text.show(plait.make_program(lambda x: plait.lax.sin(x) + 1)(1.0)))
    lambda(%0: f32[]*) {
      %1: f32[]* = core.sin(%0)
      %2: f32[]* = core.add(%1, 1:f32[]*)
      return %2
    }
    """
    return Writer(program, locations).text


class Writer:
    """A writer of one program and its sub-programs."""

    text: str

    def __init__(self, program: Program, locations: bool):
        self.locations = locations
        self.scopes: dict[Scope, None] = {}
        self.arrays: dict[int, int] = {}
        self.labels: dict[Program, int] = {}
        shared = _shared(program)
        parts = []
        for number, p in enumerate(shared, 1):
            parts.append(f"@{number} = {self.program(p, '')}")
            self.labels[p] = number
        parts.append(self.program(program, ""))
        self.text = "\n".join([*filter(None, map(_given, self.scopes)), *parts])

    def program(self, p: Program, indent: str) -> str:
        names: dict[Any, str] = {}

        def define(v: Value) -> str:
            names[v] = name = f"%{len(names)}"
            return f"{name}: {self.type(v.aval)}"

        def atom(a: Any) -> str:
            if a.__class__ is Var:
                return names.get(a, "%?")
            return f"{_scalar(a.value)}:{self.type(a.aval)}"

        inner = indent + "  "
        lines = [f"{_program_name(p.name)}({', '.join([define(v) for v in p.inputs])}) {{"]
        lines += [f"{inner}const {define(v)} = {self.array(x)}" for v, x in p.consts]
        for e in p.eqns:
            inputs = ", ".join([atom(a) for a in e.inputs])
            params = self.params(e, inner)
            outputs = ", ".join([define(v) for v in e.outputs])
            said = f"{textual_name(e.prim)}({inputs}{'; ' if inputs and params else ''}{params})"
            where = f"  # {user_line(e.where)}" if self.locations else ""
            lines.append(f"{inner}{outputs}{' = ' if outputs else ''}{said}{where}")
        results = ", ".join([atom(a) for a in p.outputs])
        lines.append(f"{inner}return {results}".rstrip())
        does = f" does {' and '.join(effects_said(p))}" if p.effects else ""
        lines.append(f"{indent}}}{does}")
        return "\n".join(lines)

    def params(self, e: Eqn, indent: str) -> str:
        """Return the parameters in their order; programs come last, so that they do not hide the
        others."""
        if not e.params:
            return ""
        items = sorted(e.params.items(), key=lambda item: bool(programs_in(dict([item]))))
        return ", ".join([f"{k}={self.value(v, e.prim, indent)}" for k, v in items])

    def value(self, v: Any, prim: Primitive, indent: str) -> str:
        """Return the text of a parameter; a value without a text form is put in angle brackets."""
        kind: Any = v.__class__
        if kind is tuple:
            items = [self.value(x, prim, indent) for x in v]
            return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
        if kind is Program:
            label = self.labels.get(v)
            return self.program(v, indent) if label is None else f"@{label}"
        if kind is Aval:
            return self.type(v)
        if kind is Dim:
            self.scopes[v.scope] = None
            return f"{{{v}}}"
        if isinstance(v, tuple) and records(prim).get(kind.__name__) is kind:
            pairs = zip(kind._fields, v, strict=True)
            fields = [f"{k}={self.value(x, prim, indent)}" for k, x in pairs]
            return f"{kind.__name__}({', '.join(fields)})"
        if kind is frozenset:
            return f"set({', '.join(sorted([self.value(x, prim, indent) for x in v]))})"
        return _plain(v)

    def type(self, aval: Aval) -> str:
        for d in aval.shape:
            if d.__class__ is Dim:
                self.scopes[d.scope] = None
        return repr(aval)

    def array(self, x: Array) -> str:
        """Return the elements of a small constant, the number of a large one, or the type of a
        value of a transformation under way."""
        if is_tracer(x):
            return repr(x)
        if x.aval.physical.size <= _SMALL and not x.is_deleted():
            try:
                flat = (laid(x) if x.aval.category == OPAQUE else x).numpy().reshape(-1)
            except PlaitError:  # its computation failed, which its user will see elsewhere
                pass
            else:
                return f"[{', '.join([_element(v) for v in flat])}]"
        return f"@{self.arrays.setdefault(id(x), len(self.arrays))}"


def _shared(program: Program) -> list[Program]:
    """Return the sub-programs that occur more than once; inner ones come before outer ones."""
    times: dict[Program, int] = {}
    _count(program, times)
    return [p for p, n in times.items() if n > 1]


def _count(program: Program, times: dict[Program, int]) -> None:
    """Add the occurrences of sub-programs to `times`; inner ones come first."""
    for e in program.eqns:
        if e.prim.higher is not None:
            for q in programs_in(e.params):
                if not times.get(q, 0):
                    _count(q, times)
                    times.setdefault(q, 0)
                times[q] += 1


def _given(scope: Scope) -> str:
    """Return the line with the constraints on sizes, and the lower bound of all others if it is not
    1."""
    least = [f"least {scope.least}"] if scope.least != 1 else []
    texts = [*least, *scope.constraints]
    return f"given {'; '.join(texts)}" if texts else ""


def _program_name(name: str) -> str:
    if name == "<lambda>":
        return "lambda"
    return name if name.isidentifier() and name != "lambda" else repr(name)


def _plain(v: Any) -> str:
    """Return the text of a parameter that contains no other values."""
    kind = v.__class__
    if kind in (bool, int, float, complex):
        return _scalar(v)
    if kind in (str, bytes):
        return repr(v)
    if v is None:
        return "none"
    if v is ...:
        return "..."
    if kind is Opaque:
        return v.name
    if isinstance(v, np.dtype) and DTYPES.get(dtype_name(v)) == v:
        return dtype_name(v)
    if isinstance(v, np.generic) and DTYPES.get(dtype_name(v.dtype)) == v.dtype:
        return f"{_element(v)}:{dtype_name(v.dtype)}"
    if kind is Thunk:
        return "<rule>"
    if callable(v) and not isinstance(v, type):
        return f"<function {re.sub('[<>]', '', getattr(v, '__name__', kind.__name__))}>"
    return f"<{kind.__name__}>"


def _scalar(v: Any) -> str:
    """Return the text of a Python scalar, which shows its class, its sign and every bit except
    those of a nan."""
    if v is True or v is False:
        return "true" if v else "false"
    if v.__class__ is complex:
        sign = "-" if math.copysign(1, v.imag) < 0 and v.imag == v.imag else "+"
        return f"{v.real!r}{sign}{abs(v.imag)!r}j"
    return repr(v)


def _element(v: Any) -> str:
    """Return the text of a numpy scalar: the shortest decimal that is read back as the same
    value."""
    if v.dtype.kind in "biuc":
        return _scalar(v.item())
    if "int" in v.dtype.name:
        return str(int(v))
    exact = float(v)
    if v.dtype.itemsize < 8 and exact - exact == 0:
        short = float(np.format_float_positional(v)) if v.dtype.kind == "f" else float(str(v))
        if v.dtype.type(short) == v:
            return repr(short)
    return repr(exact)
