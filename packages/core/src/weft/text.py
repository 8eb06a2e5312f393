"""Programs as text: what they print as, and how that text is read back.

    given b >= 2
    lambda(%0: f32[b], %1: f32[]*) {
      const %2: f32[2] = [1.0, 2.0]
      %3: f32[b] = core.sin(%0)
      %4: f32[b] = core.mul(%3, 2.0:f32[b])
      %5: f32[]* = core.call(%1; program=double(%0: f32[]*) {
        %1: f32[]* = core.add(%0, %0)
        return %1
      })
      return %4, %5
    }

The name comes first, then inputs, constants (large ones by number, as `@0`), equations, outputs,
and effects (`} does debug and ordered io`).  A `*` marks a weak type; a literal is a scalar with
the type that it fills.  `given` lists what is known of symbolic sizes.  A sub-program that occurs
more than once is printed once, in front, as `@1 = double(...) {...}`, and `@1` stands for it.

Invariant: `parse(show(p))` is the same program as `p`, down to which sub-programs and constants
are shared, if every parameter has a text form; one that has none prints in angle brackets.
"""

import math
import re
import sys
import typing
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import Any, NoReturn

import numpy as np

from .dims import Dim, Scope, symbolic_dims
from .door import EXTRA_DTYPES
from .errors import ProgramError, WeftError
from .interpreter import Interpreter
from .ir import Effect, Eqn, Program, Thunk, Var, programs_in
from .plugins import declared, load
from .primitive import Primitive, freeze, registered
from .source import user_line
from .types import Aval, float0, short_name
from .values import Array, Literal, from_numpy, wrap

__all__ = ["parse", "same_program", "show"]

_SMALL = 8
"""Constants of at most so many elements are printed with their values."""

_NUMPY = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
    "complex128"
)
_DTYPES: dict[str, np.dtype] = {
    short_name(d): d for d in (*map(np.dtype, _NUMPY.split()), *EXTRA_DTYPES.values(), float0)
}
_WORDS = {"true": True, "false": False, "none": None}

# ---- printing ------------------------------------------------------------------------------


def show(program: Program, locations: bool = False) -> str:
    """The program as text, one equation per line; `locations` adds the user's file and line.

    This is what `print(program)` prints.

    >>> import weft as wf
    >>> print(wf.text.show(wf.make_program(lambda x: wf.lax.sin(x) + 1)(1.0)))
    lambda(%0: f32[]*) {
      %1: f32[]* = core.sin(%0)
      %2: f32[]* = core.add(%1, 1:f32[]*)
      return %2
    }
    """
    return _Writer(program, locations).text


class _Writer:
    """Writes one program and all that it holds."""

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

        def define(v: Any) -> str:
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
            said = f"{e.prim.name}({inputs}{'; ' if inputs and params else ''}{params})"
            where = f"  # {user_line(e.where)}" if self.locations else ""
            lines.append(f"{inner}{outputs}{' = ' if outputs else ''}{said}{where}")
        results = ", ".join([atom(a) for a in p.outputs])
        lines.append(f"{inner}return {results}".rstrip())
        does = f" does {' and '.join(_effects(p))}" if p.effects else ""
        lines.append(f"{indent}}}{does}")
        return "\n".join(lines)

    def params(self, e: Eqn, indent: str) -> str:
        """Parameters in their order, but programs last, where they do not hide the others."""
        if not e.params:
            return ""
        items = sorted(e.params.items(), key=lambda item: bool(programs_in(dict([item]))))
        return ", ".join([f"{k}={self.value(v, e.prim, indent)}" for k, v in items])

    def value(self, v: Any, prim: Primitive, indent: str) -> str:
        """A parameter; what has no text form is put in angle brackets."""
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
        if isinstance(v, tuple) and _records(prim).get(kind.__name__) is kind:
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
        """The elements of a small constant; the number of a large one."""
        if x.aval.size <= _SMALL and not x.is_deleted():
            try:
                flat = x.numpy().reshape(-1)
            except WeftError:  # the computation of it failed: that is for its user to hear
                pass
            else:
                return f"[{', '.join([_element(v) for v in flat])}]"
        return f"@{self.arrays.setdefault(id(x), len(self.arrays))}"


def _shared(program: Program) -> list[Program]:
    """Sub-programs that occur more than once, those inside others first."""
    times: dict[Program, int] = {}

    def visit(p: Program) -> None:
        for e in p.eqns:
            if e.prim.higher is not None:
                for q in programs_in(e.params):
                    seen = times.get(q, 0)
                    if not seen:
                        visit(q)
                        times.setdefault(q, 0)
                    times[q] += 1

    visit(program)
    return [p for p, n in times.items() if n > 1]


def _given(scope: Scope) -> str:
    """What is known of sizes; the bound of those that nothing is said of, if it is not 1."""
    least = [f"least {scope.least}"] if scope.least != 1 else []
    texts = [*least, *scope.constraints]
    return f"given {'; '.join(texts)}" if texts else ""


def _effects(p: Program) -> list[str]:
    return sorted([_effect(e) for e in p.effects])


def _effect(e: Effect) -> str:
    return f"{'ordered ' if e.ordered else ''}{e.name}"


def _program_name(name: str) -> str:
    if name == "<lambda>":
        return "lambda"
    return name if name.isidentifier() and name != "lambda" else repr(name)


def _plain(v: Any) -> str:
    """A parameter that holds no others."""
    kind = v.__class__
    if kind in (bool, int, float, complex):
        return _scalar(v)
    if kind in (str, bytes):
        return repr(v)
    if v is None:
        return "none"
    if v is ...:
        return "..."
    if isinstance(v, np.dtype) and _DTYPES.get(_dtype_name(v)) == v:
        return _dtype_name(v)
    if isinstance(v, np.generic) and _DTYPES.get(_dtype_name(v.dtype)) == v.dtype:
        return f"{_element(v)}:{_dtype_name(v.dtype)}"
    if kind is Thunk:
        return "<rule>"
    if callable(v) and not isinstance(v, type):
        return f"<function {re.sub('[<>]', '', getattr(v, '__name__', kind.__name__))}>"
    return f"<{kind.__name__}>"


def _dtype_name(dtype: np.dtype) -> str:
    if dtype.kind in "biufc" or dtype == float0 or dtype.name in EXTRA_DTYPES:
        return short_name(dtype)
    return ""


def _scalar(v: Any) -> str:
    """A Python scalar, such that its class, sign and every bit but those of a nan are seen."""
    if v is True or v is False:
        return "true" if v else "false"
    if v.__class__ is complex:
        sign = "-" if math.copysign(1, v.imag) < 0 and v.imag == v.imag else "+"
        return f"{v.real!r}{sign}{abs(v.imag)!r}j"
    return repr(v)


def _element(v: Any) -> str:
    """A numpy scalar: the shortest decimal that becomes it again."""
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


@cache
def _records(prim: Primitive) -> dict[str, type]:
    """NamedTuples that parameters of this primitive may be, by name: those that the annotations
    of its type rule, and of their own fields, name."""
    found: dict[str, type] = {}
    ahead: list[Any] = [getattr(prim.rule, "func", prim.rule)]
    while ahead:
        hints = _hints(ahead.pop())
        for kind in _classes(hints):
            if kind.__name__ not in found and hasattr(kind, "_fields"):
                found[kind.__name__] = kind
                ahead.append(kind)
    return found


def _hints(of: Any) -> list[Any]:
    try:
        return list(typing.get_type_hints(of).values())
    except Exception:  # an annotation that can not be evaluated names no class of ours
        scope = getattr(of, "__globals__", None) or vars(sys.modules[of.__module__])
        texts = [a for a in getattr(of, "__annotations__", {}).values() if isinstance(a, str)]
        return [scope[a] for a in texts if a in scope]


def _classes(hints: Iterable[Any]) -> Iterator[type]:
    for h in hints:
        if isinstance(h, type) and issubclass(h, tuple):
            yield h
        yield from _classes(typing.get_args(h))


# ---- comparing -----------------------------------------------------------------------------


def same_program(a: Program, b: Program) -> bool:
    """Whether two programs differ at most in the names of their variables.

    Types, equations in their order, parameters, sub-programs, outputs and the values of constants
    must agree; names of programs and source locations need not.
    """
    return _Pairs().programs(a, b)


class _Pairs:
    """Compares programs, each pair of them once."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], bool] = {}

    def programs(self, a: Program, b: Program) -> bool:
        if a is b:
            return True
        key = id(a), id(b)
        if key not in self.known:
            self.known[key] = self._programs(a, b)
        return self.known[key]

    def _programs(self, a: Program, b: Program) -> bool:
        pairs: dict[Any, Any] = {}

        def define(xs: Sequence[Any], ys: Sequence[Any]) -> bool:
            pairs.update(zip(xs, ys))
            return len(xs) == len(ys) and all(x.aval is y.aval for x, y in zip(xs, ys))

        def atoms(xs: Sequence[Any], ys: Sequence[Any]) -> bool:
            return len(xs) == len(ys) and all(map(atom, xs, ys))

        def atom(x: Any, y: Any) -> bool:
            if x.__class__ is Var:
                return pairs.get(x) is y
            return y.__class__ is Literal and x.aval is y.aval and _same_scalar(x.value, y.value)

        def equation(x: Eqn, y: Eqn) -> bool:
            return (
                x.prim is y.prim
                and atoms(x.inputs, y.inputs)
                and self.params(x.params, y.params)
                and define(x.outputs, y.outputs)
            )

        return (
            define(a.inputs, b.inputs)
            and define([v for v, _ in a.consts], [v for v, _ in b.consts])
            and all(_same_array(x, y) for (_, x), (_, y) in zip(a.consts, b.consts))
            and len(a.eqns) == len(b.eqns)
            and all(map(equation, a.eqns, b.eqns))
            and atoms(a.outputs, b.outputs)
        )

    def params(self, a: dict[str, Any], b: dict[str, Any]) -> bool:
        return a.keys() == b.keys() and all(self.values(a[k], b[k]) for k in a)

    def values(self, a: Any, b: Any) -> bool:
        if a.__class__ is not b.__class__:
            return False
        if a.__class__ is Program:
            return self.programs(a, b)
        if isinstance(a, tuple):
            return len(a) == len(b) and all(map(self.values, a, b))
        return a is b or _same_scalar(a, b)


def _same_scalar(a: Any, b: Any) -> bool:
    """Equal, and not only in Python's eyes; a nan is a nan."""
    return freeze(a) == freeze(b) or (a.__class__ is b.__class__ and bool(a != a and b != b))


def _same_array(a: Array, b: Array) -> bool:
    if a is b:
        return True
    if not a.aval.same_type(b.aval):
        return False
    x, y = a.numpy(), b.numpy()
    return x.tobytes() == y.tobytes() or bool(np.array_equal(x, y, equal_nan=x.dtype.kind in "fc"))


# ---- reading -------------------------------------------------------------------------------


def parse(text: str, consts: Sequence[Any] = ()) -> Program:
    """The program that a text of `show` describes, checked as it is read.

    Args:
      text: as `show` prints; blanks, and comments from `#` to the end of a line, do not matter.
      consts: the arrays that the text calls @0, @1, ...: those too large to be printed.

    Raises:
      ProgramError: a text that is not understood or not well typed, with line and column; or a
        parameter that has no text form.

    >>> import weft as wf
    >>> p = wf.text.parse('f(%0: f32[3]) { %1: f32[3] = core.neg(%0)  return %1 }')
    >>> p.out_avals
    [f32[3]]
    """
    if not isinstance(text, str):
        raise ProgramError(f"a program is read from a text, not from {text!r}")
    return _Reader(text, consts).all()


class _Pattern:
    """A regular expression, compiled when it is first needed: texts are read rarely, and this
    module is imported always."""

    def __init__(self, source: str):
        self.source = source

    @cached_property
    def match(self) -> "Callable[[str, int], re.Match[str] | None]":
        return re.compile(self.source).match


_SKIP = _Pattern(r"(?:\s+|#[^\n]*)*")
_NAME = _Pattern(r"[A-Za-z_]\w*")
_DOTTED = _Pattern(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*")
_VAR = _Pattern(r"%\w+")
_LABEL = _Pattern(r"@\d+")
_TYPE = _Pattern(r"([A-Za-z]\w*)\[([^\]\n]*)\](\*?)")
_DIM = _Pattern(r"\{([^{}\n]*)\}")
_STRING = _Pattern(r"b?(?:'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\")")
_REAL = r"(?:nan|inf|\d+(?:\.\d*)?(?:e[+-]?\d+)?)"
_NUMBER = _Pattern(rf"-?{_REAL}(?:[+-]{_REAL}j)?(?!\w)")
_FORMLESS = _Pattern(r"<[^<>\n]*>")
_GIVEN = _Pattern(r"given\s([^\n]*)")
_CONST = _Pattern(r"const\s+%")
_RETURN = _Pattern(r"return(?![\w.(])")
_NO_INPUTS = _Pattern(r"\)\s*\{")
_DOES = _Pattern(r"does\b")
_AND = _Pattern(r"and\b")
_ORDERED = _Pattern(r"ordered\b")
_SETTING = _Pattern(r"[A-Za-z_]\w*\s*=")
_END = _Pattern(r"\Z")

_TEXT = Interpreter()
_TEXT.closed, _TEXT.does = True, "parse"


class _Reader:
    """Reads a text from left to right."""

    def __init__(self, text: str, consts: Sequence[Any]):
        self.text, self.at, self.consts = text, 0, consts
        self.scope: Scope | None = None
        self.labels: dict[str, Program] = {}
        self.what = ""

    # -- pieces ----------------------------------------------------------------------------

    def skip(self) -> int:
        self.at = _SKIP.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.at

    def peek(self, what: _Pattern | str) -> bool:
        at = self.skip()
        if isinstance(what, str):
            return self.text.startswith(what, at)
        return what.match(self.text, at) is not None

    def find(self, what: _Pattern) -> "re.Match[str] | None":
        found = what.match(self.text, self.skip())
        if found is not None:
            self.at = found.end()
        return found

    def take(self, what: _Pattern, said: str) -> "re.Match[str]":
        found = self.find(what)
        if found is None:
            raise self.error(f"{said} is expected")
        return found

    def has(self, word: str) -> bool:
        """Take `word` if it is next."""
        if not self.peek(word):
            return False
        self.at += len(word)
        return True

    def need(self, word: str) -> None:
        if not self.has(word):
            raise self.error(f"{word!r} is expected")

    def listed(self, item: Callable[[], Any], end: str) -> list[Any]:
        """Items with commas between them (and maybe after the last), up to `end`."""
        items: list[Any] = []
        while not self.has(end):
            items.append(item())
            if not self.has(","):
                self.need(end)
                break
        return items

    def error(self, what: str, at: int | None = None, fix: str | None = None) -> ProgramError:
        at = self.skip() if at is None else at
        line = self.text.count("\n", 0, at) + 1
        column = at - self.text.rfind("\n", 0, at)
        shown = self.text.split("\n")[line - 1]
        return ProgramError(
            f"line {line}, column {column}: {what}\n    {shown}\n    {' ' * (column - 1)}^", fix=fix
        )

    # -- programs --------------------------------------------------------------------------

    def all(self) -> Program:
        while self.peek(_GIVEN):
            self.given()
        while self.peek(_LABEL):
            label = self.take(_LABEL, "a label").group()
            self.need("=")
            self.labels[label] = self.program()
        program = self.program()
        self.take(_END, "the end of the text")
        return program

    def given(self) -> None:
        at = self.at
        texts = [t.strip() for t in self.take(_GIVEN, "given").group(1).split(";")]
        if self.scope is not None:
            raise self.error("sizes of two scopes can not be read into one program", at)
        least = re.fullmatch(r"least (\d)", texts[0])
        try:
            self.scope = Scope(
                [t for t in texts[bool(least) :] if t], lower=int(least.group(1)) if least else 1
            )
        except WeftError as e:
            raise self.error(e.what, at) from None

    def program(self) -> Program:
        name = self.program_name()
        env: dict[str, Var] = {}
        self.need("(")
        inputs = self.listed(lambda: self.definition(env), ")")
        self.need("{")
        consts: list[tuple[Var, Any]] = []
        while self.peek(_CONST):
            self.need("const")
            v = self.definition(env)
            consts.append((v, self.array(v.aval)))
        eqns: list[Eqn] = []
        while not self.peek(_RETURN):
            eqns.append(self.equation(env))
        self.need("return")
        outputs = [] if self.peek("}") else [self.atom(env)]
        while self.has(","):
            outputs.append(self.atom(env))
        self.need("}")
        p = Program(inputs, eqns, outputs, name, consts)
        self.effects(p)
        return p

    def program_name(self) -> str:
        found = self.find(_STRING)
        if found is not None:
            return literal_eval(found.group())
        name = self.take(_NAME, "the name of a program").group()
        return "<lambda>" if name == "lambda" else name

    def effects(self, p: Program) -> None:
        """What is said to be done must be what the equations do."""
        at = self.skip()
        said: list[str] = []
        if self.find(_DOES):
            said.append(self.effect())
            while self.find(_AND):
                said.append(self.effect())
        if sorted(said) != _effects(p):
            does = " and ".join(_effects(p)) or "nothing"
            raise self.error(f"the equations of {p.name} do {does}", at)

    def effect(self) -> str:
        ordered = "ordered " if self.find(_ORDERED) else ""
        return ordered + self.take(_DOTTED, "an effect").group()

    def definition(self, env: dict[str, Var]) -> Var:
        """A new variable with its type."""
        at = self.skip()
        name = self.take(_VAR, "a variable").group()
        if name in env:
            raise self.error(f"{name} is defined twice", at)
        self.need(":")
        v = Var()
        v.by, v.aval, v.where = _TEXT, self.type(), None
        env[name] = v
        return v

    def equation(self, env: dict[str, Var]) -> Eqn:
        new: dict[str, Var] = {}
        outputs: list[Var] = []
        at = self.skip()
        if self.peek("%"):
            outputs.append(self.definition(new))
            while self.has(","):
                outputs.append(self.definition(new))
            self.need("=")
        prim, ins = self.primitive(), []
        self.need("(")
        settings = self.peek(_SETTING) or self.peek(")")
        while not settings:
            ins.append(self.atom(env))
            if not self.has(","):
                break
        if ins and not self.peek(")"):
            self.need(";")
        params = dict(self.listed(lambda: self.setting(prim), ")"))
        for name in new:
            if name in env:
                raise self.error(f"{name} is defined twice", at)
        env.update(new)
        self.check(prim, ins, params, outputs, at)
        return Eqn(prim, ins, outputs if prim.many else tuple(outputs), params, None)

    def check(
        self, prim: Primitive, ins: list[Any], params: dict[str, Any], outs: list[Var], at: int
    ) -> None:
        """Types as the text says must be those that the type rule says."""
        try:
            got = prim.infer(tuple([a.aval for a in ins]), params)
        except Exception as e:  # whatever a type rule makes of what it did not expect
            said = e.what if isinstance(e, WeftError) else f"{type(e).__name__}: {e}"
            raise self.error(f"{prim} refuses its operands or parameters: {said}", at) from e
        types = list(got) if prim.many else [got]
        if len(types) != len(outs) or not all(t.same_type(v.aval) for t, v in zip(types, outs)):
            listed = ", ".join(map(repr, types)) or "nothing"
            raise self.error(f"the results of {prim} are {listed}", at)

    def primitive(self) -> Primitive:
        at = self.skip()
        name = self.take(_DOTTED, "a primitive").group()
        prim = registered(name)
        if prim is None:
            for d in declared("weft.primitives", name.rpartition(".")[0]):
                load(d)
            prim = registered(name)
        if prim is None:
            raise self.error(
                f"there is no primitive {name!r}", at, fix="import the module that defines it"
            )
        return prim

    def atom(self, env: dict[str, Var]) -> Any:
        at = self.skip()
        found = self.find(_VAR)
        if found is None:
            value = self.scalar()
            self.need(":")
            return Literal(value, self.type())
        if found.group() not in env:
            raise self.error(f"{found.group()} is not defined yet", at)
        return env[found.group()]

    # -- types and constants ---------------------------------------------------------------

    def type(self) -> Aval:
        at = self.skip()
        name, shape, weak = self.take(_TYPE, "a type, such as f32[3],").groups()
        return Aval(self.shape(shape, at), self.dtype(name, at), bool(weak))

    def shape(self, text: str, at: int) -> tuple[Any, ...]:
        if re.fullmatch(r"[\d, ]*", text):
            return tuple([int(n) for n in text.split(",") if n.strip()])
        try:
            return symbolic_dims(text, self.scope)
        except WeftError as e:
            raise self.error(e.what, at) from None

    def dtype(self, name: str, at: int) -> np.dtype:
        if name not in _DTYPES:
            raise self.error(f"there is no dtype {name!r}", at, f"one of {', '.join(_DTYPES)}")
        return _DTYPES[name]

    def scalar(self) -> Any:
        found = self.find(_NUMBER)
        if found is not None:
            text = found.group()
            if text.endswith("j"):
                return complex(text)
            return float(text) if re.search("[.en]", text) else int(text)
        at = self.skip()
        word = self.take(_NAME, "a number").group()
        if word not in ("true", "false"):
            raise self.error(f"a number is expected, not {word!r}", at)
        return _WORDS[word]

    def array(self, aval: Aval) -> Any:
        self.need("=")
        at = self.skip()
        found = self.find(_LABEL)
        if found is None:
            self.need("[")
            values = self.listed(self.scalar, "]")
            if len(values) != aval.size:
                raise self.error(f"{len(values)} elements are given for {aval!r}", at)
            given = np.array(values, aval.dtype if aval.dtype.kind in "biufc" else np.float64)
            x = from_numpy(given.astype(aval.dtype).reshape(aval.shape))
            x = x if x.aval.dtype != aval.dtype else wrap(x.buffer(), aval)
        elif int(found.group()[1:]) < len(self.consts):
            x = self.consts[int(found.group()[1:])]
            x = x if isinstance(x, Array) else from_numpy(np.asarray(x))
        else:
            raise self.error(
                f"the elements of {aval!r} are not in the text",
                at,
                fix=f"give an array for each of @0 to {found.group()}: parse(text, consts=[...])",
            )
        if not x.aval.same_type(aval):
            raise self.error(f"the constant given is {x.aval!r}, not {aval!r}", at)
        return x

    # -- parameters ------------------------------------------------------------------------

    def setting(self, prim: Primitive) -> tuple[str, Any]:
        name = self.take(_NAME, "the name of a parameter").group()
        self.need("=")
        self.what = f"{name} of {prim}"
        return name, self.value(prim)

    def value(self, prim: Primitive) -> Any:
        at = self.skip()
        if self.peek(_FORMLESS):
            self.formless(at)
        if self.has("..."):
            return ...
        if self.has("("):
            return tuple(self.listed(lambda: self.value(prim), ")"))
        found = self.find(_LABEL)
        if found is not None:
            if found.group() not in self.labels:
                raise self.error(f"no program {found.group()} is defined above", at)
            return self.labels[found.group()]
        found = self.find(_DIM)
        if found is not None:
            (d,) = self.shape(found.group(1), at)
            return d
        found = self.find(_STRING)
        if found is not None:
            if not self.peek("("):
                return literal_eval(found.group())
            self.at = at
            return self.program()
        if self.peek(_NUMBER):
            return self.number()
        if self.peek(_TYPE):
            return self.type()
        return self.word(prim)

    def number(self) -> Any:
        value = self.scalar()
        if not self.has(":"):
            return value
        at = self.skip()
        return self.dtype(self.take(_NAME, "a dtype").group(), at).type(value)

    def word(self, prim: Primitive) -> Any:
        """What begins with a name: a program, a record, a set, a dtype or a word of ours."""
        at = self.skip()
        name = self.take(_NAME, "a value").group()
        if not self.has("("):
            if name not in _WORDS:
                return self.dtype(name, at)
            if name != "none" and self.peek(":"):
                self.at = at
                return self.number()
            return _WORDS[name]
        if self.peek("%") or self.peek(_NO_INPUTS):
            self.at = at
            return self.program()
        if name == "set":
            return frozenset(self.listed(lambda: self.value(prim), ")"))
        kind: Any = _records(prim).get(name)
        if kind is None:
            raise self.error(f"{prim} knows no record {name}", at)
        fields = dict(self.listed(lambda: self.setting(prim), ")"))
        if fields.keys() != set(kind._fields):
            raise self.error(f"the fields of {name} are {', '.join(kind._fields)}", at)
        return kind(**fields)

    def formless(self, at: int) -> NoReturn:
        what = self.take(_FORMLESS, "").group()
        raise self.error(
            f"the parameter {self.what} is {what}, which has no text form",
            at,
            fix="build the program by staging the function instead",
        )
