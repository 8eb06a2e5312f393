"""Programs read from their text.

Invariant: text that cannot be read is an error with its line and column; a program that was read is
checked like any other.
"""

import re
from ast import literal_eval
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from .._base.errors import PlaitError, ProgramError
from .._core.array import Array, Literal, from_numpy, standing_for, wrap
from .._core.interpreter import Interpreter
from .._core.ir import Eqn, Program, Var
from .._core.primitive import Primitive, registered
from .._plugins.metadata import declared, load
from .._types.avals import OPAQUE, Aval, Opaque
from .._types.dims import Scope, symbolic_dims
from .names import DTYPES, effects_said, records
from .scanning import Pattern, Scanner

_WORDS = {"true": True, "false": False, "none": None}


def parse(text: str, consts: Sequence[Any] = ()) -> Program:
    """Return the program that a text of `show` describes, checked while it is read.

    Args:
      text: as `show` prints; blanks, and comments from `#` to the end of a line, do not matter.
      consts: the arrays that the text calls @0, @1, ...: those too large to be printed.

    Raises:
      ProgramError: a text that cannot be read or is not well typed, with line and column; or a
        parameter that has no text form.

    >>> import plait
    >>> p = plait.text.parse('f(%0: f32[3]) { %1: f32[3] = core.neg(%0)  return %1 }')
    >>> p.out_avals
    [f32[3]]
    """
    if not isinstance(text, str):
        raise ProgramError(
            f"a program is read from a text, not from {text!r}",
            fix="give what show(program) returned",
        )
    reader = _Reader(text, consts)
    try:
        return reader.all()
    except PlaitError:
        raise
    except RecursionError:
        raise reader.error("programs or values are nested too deeply") from None
    except Exception as e:  # Python and numpy may refuse numbers and strings for many reasons.
        raise reader.error(f"this cannot be read: {type(e).__name__}: {e}") from None


_NAME = Pattern(r"[A-Za-z_]\w*")
_DOTTED = Pattern(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*")
_VAR = Pattern(r"%\w+")
_LABEL = Pattern(r"@\d+")
_TYPE = Pattern(r"([A-Za-z]\w*(?:<\w+>)?)\[([^\]\n]*)\](\*?)(?:\{([\w,]+)\})?")
_OPAQUE = Pattern(r"[A-Za-z]\w*<\w+>")
_DIM = Pattern(r"\{([^{}\n]*)\}")
_ESCAPE = r"\\(?:[\\'\"abfnrtv]|x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8})"
_ESCAPE = r"\\(?:[\\'\"abfnrtv]|x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8})"
_STRING = Pattern(rf"b?(?:'(?:{_ESCAPE}|[^'\\\n])*'|\"(?:{_ESCAPE}|[^\"\\\n])*\")")
_REAL = r"(?:nan|inf|\d+(?:\.\d*)?(?:e[+-]?\d+)?)"
_NUMBER = Pattern(rf"-?{_REAL}(?:[+-]{_REAL}j)?(?!\w)")
_FORMLESS = Pattern(r"<[^<>\n]*>")
_GIVEN = Pattern(r"given\s([^\n]*)")
_CONST = Pattern(r"const\s+%")
_RETURN = Pattern(r"return(?![\w.(])")
_NO_INPUTS = Pattern(r"\)\s*\{")
_DOES = Pattern(r"does\b")
_AND = Pattern(r"and\b")
_ORDERED = Pattern(r"ordered\b")
_SETTING = Pattern(r"[A-Za-z_]\w*\s*=")
_END = Pattern(r"\Z")


def _fits(value: float, dtype: np.dtype) -> bool:
    """Return whether an array of a dtype can hold a number as it is written."""
    if dtype.kind == "b":
        return value.__class__ is bool
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return value.__class__ in (bool, int) and info.min <= value <= info.max
    return dtype.kind == "c" or value.__class__ is not complex


_TEXT = Interpreter()
_TEXT.closed, _TEXT.does = True, "parse"


class _Reader(Scanner):
    """A reader of programs and of the values of their parameters."""

    def __init__(self, text: str, consts: Sequence[Any]):
        super().__init__(text)
        self.consts = consts
        self.scope: Scope | None = None
        self.labels: dict[str, Program] = {}
        self.what = ""

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
            raise self.error("sizes of two scopes cannot be read into one program", at)
        least = re.fullmatch(r"least (\d)", texts[0])
        try:
            self.scope = Scope(
                [t for t in texts[bool(least) :] if t], lower=int(least.group(1)) if least else 1
            )
        except PlaitError as e:
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
            return str(literal_eval(found.group().removeprefix("b")))
        name = self.take(_NAME, "the name of a program").group()
        return "<lambda>" if name == "lambda" else name

    def effects(self, p: Program) -> None:
        """Raise unless the effects in the text are those of the equations."""
        at = self.skip()
        said: list[str] = []
        if self.find(_DOES):
            said.append(self.effect())
            while self.find(_AND):
                said.append(self.effect())
        if sorted(said) != effects_said(p):
            does = " and ".join(effects_said(p)) or "nothing"
            raise self.error(f"the equations of {p.name} do {does}", at)

    def effect(self) -> str:
        ordered = "ordered " if self.find(_ORDERED) else ""
        return ordered + self.take(_DOTTED, "an effect").group()

    def definition(self, env: dict[str, Var]) -> Var:
        """Return a new variable with its type."""
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
        """Raise unless the types in the text are those of the type rule."""
        try:
            got = prim.infer(tuple([a.aval for a in ins]), params)
        except Exception as e:  # a type rule may raise anything for unexpected operands
            said = e.what if isinstance(e, PlaitError) else f"{type(e).__name__}: {e}"
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
            aval = self.type()
            if not _fits(value, aval.physical.dtype):
                raise self.error(f"{value!r} is not a value of {aval.dtype}", at)
            return Literal(value, aval)
        if found.group() not in env:
            raise self.error(f"{found.group()} is not defined yet", at)
        return env[found.group()]

    # -- types and constants ---------------------------------------------------------------

    def type(self) -> Aval:
        at = self.skip()
        name, shape, weak, axes = self.take(_TYPE, "a type, such as f32[3],").groups()
        if "@" in shape:
            raise self.error(
                f"the type {name}[{shape}] is divided over a mesh, which a text does not have",
                at,
                fix="make the program of arguments that are not divided over explicit axes",
            )
        found = Aval(self.shape(shape, at), self.dtype(name, at), bool(weak))
        return found.with_vma(frozenset(axes.split(","))) if axes else found

    def shape(self, text: str, at: int) -> tuple[Any, ...]:
        if re.fullmatch(r"[\d, ]*", text):
            return tuple([int(n) for n in text.split(",") if n.strip()])
        try:
            return symbolic_dims(text, self.scope)
        except PlaitError as e:
            raise self.error(e.what, at) from None

    def dtype(self, name: str, at: int) -> Any:
        if "<" in name:
            return self.opaque(name, at)
        if name not in DTYPES:
            raise self.error(f"there is no dtype {name!r}", at, f"one of {', '.join(DTYPES)}")
        return DTYPES[name]

    def opaque(self, name: str, at: int) -> Opaque:
        """Return the dtype of that name; those of core come with its primitives."""
        found = Opaque.named(name)
        if found is None:
            for d in declared("plait.primitives", "core"):
                load(d)
            found = Opaque.named(name)
        if found is None:
            raise self.error(
                f"there is no dtype {name!r}", at, fix="import the module that defines it"
            )
        return found

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
            memory = aval.physical
            if len(values) != memory.size:
                raise self.error(f"{len(values)} elements are given for {memory!r}", at)
            for value in values:
                if not _fits(value, memory.dtype):
                    raise self.error(f"{value!r} is not a value of {memory.dtype}", at)
            given = np.array(values, memory.dtype if memory.dtype.kind in "biufc" else np.float64)
            x = from_numpy(given.astype(memory.dtype).reshape(memory.shape))
            x = x if x.aval.dtype != memory.dtype else wrap(x.buffer(), aval)
        elif int(found.group()[1:]) < len(self.consts):
            x = self.consts[int(found.group()[1:])]
            x = x if isinstance(x, Array) else from_numpy(np.asarray(x))
            if aval.category == OPAQUE and x.aval.same_type(aval.physical):
                x = standing_for(x, aval)
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
        found = self.find(_OPAQUE)
        return self.word(prim) if found is None else self.opaque(found.group(), at)

    def number(self) -> Any:
        value = self.scalar()
        if not self.has(":"):
            return value
        at = self.skip()
        return self.dtype(self.take(_NAME, "a dtype").group(), at).type(value)

    def word(self, prim: Primitive) -> Any:
        """Read a value that begins with a name: a program, a record, a set, a dtype or a word."""
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
        kind: Any = records(prim).get(name)
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
