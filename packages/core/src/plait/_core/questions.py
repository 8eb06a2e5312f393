"""Questions that Python asks of traced values, and what to write in place of each.

A branch, a size, an index and a format ask for a value through a few special methods, which do not
tell them apart.  The user's call does: the frames between the method and the user's line show
whether a function of Plait asked, and the instruction that runs at that line has a place in the
source, whose syntax is read (Python 3.11 records the place of every instruction).

Invariant: no frame is kept; sources are read only when the message of an error is read, since
Plait itself asks such questions and catches the errors.
"""

import ast
import linecache
import sys
from collections.abc import Iterator
from functools import lru_cache, partial
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from .._base.errors import ConcretizationError, OperandTypeError, PlaitError, UnknownFormat
from .._base.source import below_hidden, of_a_library, of_standard_library, user_line

if TYPE_CHECKING:
    from .interpreter import Tracer, Value
    from .ir import Var

__all__ = ["not_an_integer", "taken_out", "unknown_value"]


def unknown_value(x: "Var", title: str) -> PlaitError:
    """Return the error for asking the value of a tracer that has only a type."""
    asked = _asked(x)
    after = "," if asked.name else ""
    kind = UnknownFormat if _is_format(asked) else ConcretizationError
    return kind(
        f"{_described(asked, x)}{after} has a type but no value while {title} is traced; "
        f"it was made at {user_line(x.where)}",
        fix=partial(_fix, asked),
    )


def not_an_integer(x: "Tracer") -> PlaitError:
    """Return the error for a value, known but not an integer, where Python needs an integer."""
    asked = _asked(x)
    after = "," if asked.name else ""
    if _is_format(asked):
        return UnknownFormat(
            f"{_described(asked, x)}{after} is not an integer, and this format shows integers only",
            fix=partial(_fix, asked),
        )
    return OperandTypeError(
        f"{_described(asked, x)}{after} is not an integer without axes, and Python needs one here",
        fix="write int({x}) for the number that it is now".replace("{x}", asked.name or "x"),
    )


def taken_out(what: str, x: "Tracer", title: str) -> ConcretizationError:
    """Return the error for taking a tracer out of its transformation, by the operation `what`."""
    asked = _asked(x)
    return ConcretizationError(
        f"{what} of {_described(asked, x)}, made at {user_line(x.where)}, would take it out of "
        f"{title}",
        fix=partial(_fix, asked),
    )


# ---- who asked ---------------------------------------------------------------------------------


class _Asked(NamedTuple):
    """A question: the special method that was called, and the instruction of the user's code."""

    method: str
    by_plait: bool
    """True if a function of Plait that user code called asked."""
    code: CodeType | None
    instruction: int
    name: str | None
    """The name of the value in the user's function, if it has one."""


_METHODS = frozenset(
    ("__bool__", "__int__", "__index__", "__float__", "__complex__", "__array__", "__format__",
     "item", "tolist", "tobytes", "__reduce__")
)  # fmt: skip


def _asked(x: "Value") -> _Asked:
    frame: Any = sys._getframe(2)
    method, between = "", False
    while frame is not None:
        code = frame.f_code
        if below_hidden(code.co_filename):
            between = code.co_name not in _METHODS
            method = method if between else code.co_name
        elif not of_standard_library(code.co_filename) and not of_a_library(code.co_filename):
            names = [k for k, v in frame.f_locals.items() if v is x and k.isidentifier()]
            return _Asked(method, between, code, frame.f_lasti, names[0] if names else None)
        frame = frame.f_back
    return _Asked(method, between, None, 0, None)


def _described(asked: _Asked, x: "Value") -> str:
    return repr(x) if asked.name is None else f"`{asked.name}`, {x!r}"


def _is_format(asked: _Asked, methods: tuple[str, ...] = ("__int__", "__index__")) -> bool:
    """Return whether the operator % of a text asked by one of these methods, as in `"%d" % x`.

    Other operands of the operator ask for nothing: they are operands of the remainder.
    """
    if asked.by_plait or asked.code is None or asked.method not in methods:
        return False
    around = next(_syntax(asked.code, asked.instruction), None)
    return isinstance(around, ast.BinOp | ast.AugAssign) and isinstance(around.op, ast.Mod)


# ---- what to write -----------------------------------------------------------------------------


def _instead(asked: _Asked) -> str:
    """Return what to write for the question."""
    around = [*_syntax(asked.code, asked.instruction)] if asked.code is not None else []
    call = next((n for n in around[:2] if isinstance(n, ast.Call)), None)
    if asked.by_plait:
        return _STATIC.format(what=f"{_text(call.func)} needs" if call else "this needs")
    for answer in (_of_branch, _of_call, _of_expression):
        found = answer(asked, around, call)
        if found:
            return found
    return _BY_METHOD.get(asked.method, _BRANCHES)


def _fix(asked: _Asked) -> str:
    """Return what to write, with the name that the value has in the user's function."""
    return _instead(asked).replace("{x}", asked.name or "x")


_STATIC = (
    "{what} a concrete number: sizes, axes and options are part of a program.  Make the "
    "argument static (jit's static_argnums or static_argnames), take it from x.shape, or compute "
    "with the greatest size and a mask (plait.numpy.where)"
)
_BRANCHES = (
    "use plait.lax.cond, plait.lax.while_loop or plait.numpy.where instead of Python's `if` and "
    "`while`, or make the argument static (jit's static_argnums)"
)
_IN_PROGRAM = "compute with plait.numpy instead, or call numpy through plait.pure_callback"
_LOGIC = "write p & q, p | q and ~p (with parentheses around comparisons) for `and`, `or` and `not`"
_BY_METHOD = {
    "__bool__": _BRANCHES,
    "__int__": "write {x}.astype(int) for a number that stays in the program, or make the argument "
    "static (jit's static_argnums) if Python needs it",
    "__index__": "a sequence of Python takes a concrete number: make the argument static "
    "(jit's static_argnums), or use an array in place of the sequence",
    "__format__": 'write plait.debug.print("{x} = {}", {x}), which prints when the program runs',
    **dict.fromkeys(("__float__", "__complex__", "__array__", "tobytes"), _IN_PROGRAM),
    **dict.fromkeys(
        ("item", "tolist"),
        "leave the value in the program, and return it: its elements are Python numbers outside of "
        "the transformed function (has_aux of grad); plait.debug.print shows it while the program "
        "runs",
    ),
    "__reduce__": "return the value from the transformed function, and pickle the array there",
}


def _of_branch(asked: _Asked, around: list[ast.AST], call: ast.Call | None) -> str | None:
    """Return what to write for statements and operators that ask for a truth value."""
    if asked.method != "__bool__" or call is not None and _text(call.func) in _INSTEAD_OF_CALLS:
        return None
    inner = around[0] if around else None
    for node in around:
        if isinstance(node, ast.BoolOp | ast.UnaryOp):
            return _LOGIC
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            return "write (a < b) & (b < c) for `a < b < c`"
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            return "write plait.numpy.any(x == plait.numpy.asarray(values)) for `x in values`"
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            if inner is not node and not _within(inner, node.test):
                continue
            return _STATEMENTS[type(node)]
    return None


_STATEMENTS: dict[type, str] = {
    ast.If: "write plait.lax.cond(p, f, g, *operands), which runs one of two functions, or "
    "plait.numpy.where(p, a, b), which picks elements, instead of Python's `if`; or make the "
    "argument static (jit's static_argnums)",
    ast.IfExp: "write plait.numpy.where(p, a, b) for `a if p else b`, or plait.lax.cond, which "
    "computes one of them",
    ast.While: "write plait.lax.while_loop(test, body, start) instead of Python's `while`",
    ast.Assert: "write plait.checks.check(p, message), and call plait.checks.checkify(f), which "
    "returns the error",
}


def _of_call(asked: _Asked, around: list[ast.AST], call: ast.Call | None) -> str | None:
    """Return what to write for a call of a function that is not Plait's."""
    if call is None:
        return None
    name = _text(call.func)
    if name in _INSTEAD_OF_CALLS:
        return _INSTEAD_OF_CALLS[name]
    module, _, function = name.rpartition(".")
    if module in ("math", "np", "numpy") and function.isidentifier():
        return (
            f"write plait.numpy.{function}, if there is one, for {name}; or call it through "
            "plait.pure_callback"
        )
    return None


_INSTEAD_OF_CALLS = {
    "range": "write plait.lax.fori_loop(0, n, body, start) for the loop, or make the argument "
    "static (jit's static_argnums), so that Python repeats its body",
    "max": "write plait.numpy.maximum(a, b), or x.max()",
    "min": "write plait.numpy.minimum(a, b), or x.min()",
    "sorted": "write plait.numpy.sort(x)",
    "any": "write plait.numpy.any(x)",
    "all": "write plait.numpy.all(x)",
    "bool": "leave it an array: plait.lax.cond and plait.numpy.where take it; or make the argument "
    "static (jit's static_argnums)",
    "int": _BY_METHOD["__int__"],
    "float": "write {x}.astype(float) for a number that stays in the program, or return it and "
    "convert it there",
    "complex": "write {x}.astype(complex) for a number that stays in the program",
    "hash": "return the value from the transformed function first",
    "format": _BY_METHOD["__format__"],
    "print": _BY_METHOD["__format__"],
}


_OF_FORMATS = ("__int__", "__index__", "__float__")
"""The methods by which the operator % of a text asks."""


def _of_expression(asked: _Asked, around: list[ast.AST], call: ast.Call | None) -> str | None:
    """Return what to write for formats by %, and subscripts of sequences or of numpy's arrays."""
    for node in around[:2]:
        if _is_format(asked, _OF_FORMATS) or _formats_text(node):
            return _BY_METHOD["__format__"]
        if not isinstance(node, ast.Subscript):
            continue
        name = _text(node.value)
        if isinstance(node.ctx, ast.Store):
            at = f"{name} = {name}.at[{_text(node.slice)}].set({{x}})"
            return f"make `{name}` an array of plait.numpy, and write {at}"
        if asked.method == "__array__":
            return f"write plait.numpy.asarray({name})[{{x}}]"
        if asked.method == "__index__":
            return (
                "write plait.numpy.stack(items)[i] for a list of arrays, plait.lax.switch(i, "
                "functions) to choose what is computed, or make the argument static (jit's "
                "static_argnums)"
            )
    return None


# ---- the user's source -------------------------------------------------------------------------


def _syntax(code: CodeType, instruction: int) -> Iterator[ast.AST]:
    """Yield the expressions and statements around an instruction, innermost first.

    They end with the function or class in which it is.  Nothing is yielded without source.
    """
    place = [*code.co_positions()][instruction // 2]
    if None in place:
        return
    line, last, column, end = place
    tree = _parsed(code.co_filename, "".join(linecache.getlines(code.co_filename)))
    path: list[ast.AST] = []
    node: ast.AST | None = tree
    while node is not None:
        path.append(node)
        node = next((n for n in ast.iter_child_nodes(node) if _covers(n, line, last, column, end)),
                    None)  # fmt: skip
    for node in reversed(path):
        if isinstance(node, _SCOPES):
            return
        yield node


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)


@lru_cache(8)
def _parsed(file: str, source: str) -> ast.AST:
    try:
        return ast.parse(source, file)
    except (SyntaxError, ValueError):  # a cell of a notebook with commands, or no Python
        return ast.Module([], [])


def _covers(n: Any, line: Any, last: Any, column: Any, end: Any) -> bool:
    if not hasattr(n, "lineno"):  # such as an operator, or the arguments of a function
        return any(_covers(m, line, last, column, end) for m in ast.iter_child_nodes(n))
    return (n.lineno, n.col_offset) <= (line, column) and (last, end) <= (
        n.end_lineno,
        n.end_col_offset,
    )


def _formats_text(n: ast.AST) -> bool:
    if not isinstance(n, ast.BinOp) or not isinstance(n.op, ast.Mod):
        return False
    return isinstance(n.left, ast.Constant) and isinstance(n.left.value, str | bytes)


def _within(inner: Any, outer: Any) -> bool:
    return any(n is inner for n in ast.walk(outer))


def _text(function: Any) -> str:
    return ast.unparse(function)
