"""Inspection of computations while they run.

Invariant: a callback acts once each time the program reaches it, and has no results; looking for
nans does not change results either.
"""

import logging as _logging
import re as _re
import string as _string
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial as _partial
from typing import Any

import numpy as _np

from ._base.errors import ArgumentError, ConcretizationError, NanError
from ._base.tracebacks import explained_calls as _explained_calls
from ._core.array import Array, Literal
from ._core.carrier import Lifted, expand_rules
from ._core.interpreter import Interpreter, Value, as_list, current, open_under, opened, use
from ._core.ir import Program, effects_of, evaluate, programs_in
from ._core.primitive import Primitive
from ._jit.leaks import checking_leaks
from ._jit.purity import checking_purity
from ._ops.callbacks import callback as _callback
from ._ops.callbacks import debug_print as _print
from ._ops.control_flow import cond, scan, while_
from ._ops.shape import stack as _stack
from ._plugins.metadata import additions as _additions
from .tree import leaves as _leaves

__all__ = [
    "callback", "checking_leaks", "checking_purity", "infs", "log", "nans", "print",
]  # fmt: skip


def callback(
    callback: Callable[..., Any],
    *args: object,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: object,
) -> None:
    """Call `callback(*args, **kwargs)` in Python when the arguments are computed.

    Args:
      callback: takes trees of numpy arrays; its results are dropped.
      args, kwargs: trees of arrays, and of other objects, which are passed as they are.
      ordered: True if calls happen in the order of the program.
      partitioned: True allows a call on each device with its pieces.  Plait never uses that
        permission, and calls once with whole arrays (in `shard_map` with the pieces).

    >>> import plait
    >>> seen = []
    >>> _ = plait.jit(lambda x: plait.debug.callback(lambda v: seen.append(float(v)), x))(2.0)
    >>> seen
    [2.0]
    """
    del partitioned
    _callback(callback, *args, ordered=ordered, **kwargs)


def log(
    fmt: str,
    *args: object,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: object,
) -> None:
    """Write `fmt.format(*args, **kwargs)` to the log `plait` (level INFO) when the arguments are
    computed; see `print`."""
    del partitioned
    if not skip_format_check:
        _check_format(fmt, args, kwargs)
    _callback(
        lambda *a, **k: _logging.getLogger("plait").info("%s", fmt.format(*a, **k)),
        *args,
        ordered=ordered,
        **kwargs,
    )


def print(
    fmt: str | None = None,
    *args: object,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    file: object = None,
    **kwargs: object,
) -> Callable[..., None] | None:
    """Print `fmt.format(*args, **kwargs)` when the arguments are computed.

    Args:
      fmt: a format string; without it, a function is returned that prints with these options.
      args, kwargs: trees of arrays, and of other objects, such as names.
      ordered: True if lines come in the order of the program.
      partitioned: see `callback`.
      skip_format_check: True if the format is checked only when it is printed, not before.
      file: the file to print to; standard output by default.

    Raises TypeRule if the format does not fit the arguments.

    >>> import plait
    >>> _ = plait.jit(lambda x: plait.debug.print("x = {}", x))(1.0)
    x = 1.0
    """
    if fmt is None:
        with_options: Any = _partial(
            print,
            ordered=ordered,
            partitioned=partitioned,
            skip_format_check=skip_format_check,
            file=file,
        )
        return with_options
    if not skip_format_check:
        _check_format(fmt, args, kwargs)
    _print(fmt, *args, ordered=ordered, file=file, **kwargs)


def _check_format(fmt: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise TypeRule if the format names missing arguments, or leaves some out."""
    try:
        fields = [name for _, name, _, _ in _string.Formatter().parse(fmt) if name is not None]
    except (ValueError, TypeError) as e:
        raise ArgumentError(
            f"print: {fmt!r} is not a format: {e}", fix="write {{ and }} for braces themselves"
        ) from None
    heads = [_HEAD.split(name)[0] for name in fields]
    numbers = {int(h) for h in heads if h.isdigit()} | set(range(heads.count("")))
    names = {h for h in heads if h and not h.isdigit()}
    lost = names - kwargs.keys() | {str(n) for n in numbers if n >= len(args)}
    unused = kwargs.keys() - names | {str(n) for n in range(len(args)) if n not in numbers}
    if (lost or unused) and not any("{" in spec for _, _, spec, _ in _parts(fmt) if spec):
        what = "names arguments that are not there" if lost else "does not show the arguments"
        raise ArgumentError(
            f"print: the format {fmt!r} {what}: {', '.join(sorted(lost or unused))}",
            fix="write {} for each argument and {name} for each keyword",
        )


_HEAD = _re.compile(r"[.\[]")
_parts = _string.Formatter().parse


# ---- nans ----------------------------------------------------------------------------------


@contextmanager
def nans() -> Generator[None, None, None]:
    """Make it an error, inside the `with` block, for an operation to give nan for operands without
    nan.

    The error names a line.  For an operation applied at once, it is the line of the operation.  A
    jitted function, a branch or a loop that gives a nan is run again equation by equation, and the
    line is that of the equation.  For a nan in a derivative, it is the line of the operation that
    is differentiated.

    Raises NanError.

    >>> import plait
    >>> try:
    ...     with plait.debug.nans():
    ...         plait.jit(lambda x: plait.numpy.log(x) + 1)(-1.0)
    ... except FloatingPointError as error:
    ...     print(error.what)
    core.log gave nan for f32[]* = -1.0
    """
    with opened(_Watch(current(), "nan", _np.isnan)):
        yield


@contextmanager
def infs() -> Generator[None, None, None]:
    """Make it an error, inside the `with` block, for an operation to give an infinity for finite
    operands; see `nans`.

    Raises NanError.

    >>> import plait
    >>> try:
    ...     with plait.debug.infs():
    ...         1 / plait.numpy.zeros(())
    ... except FloatingPointError as error:
    ...     print(error.what.partition(" for ")[0])
    core.div gave inf
    """
    with opened(_Watch(current(), "inf", _np.isinf)):
        yield


class _Watch(Interpreter):
    """An interpreter that applies operations under its parent, and inspects their results."""

    does = "debug.nans"
    keeps_fused = True

    def __init__(self, parent: Interpreter, what: str, found: Callable[..., Any]):
        open_under(self, parent)
        self.where: Any = None
        self.what, self.found = what, found
        self.hides = False

    @property
    def observed(self) -> Interpreter | None:
        return self.parent

    def observing(self, inner: Interpreter) -> Interpreter:
        self.hides = True
        return _Watch(inner, self.what, self.found)

    def has(self, x: Any) -> bool:
        """Return whether a value contains a nan (or an infinity, for `infs`)."""
        if x.__class__ is Lifted:
            return any(map(self.has, x.by.defined(x)))
        if x.__class__ is Literal:
            return x.aval.inexact and bool(self.found(x.value))
        return x.__class__ is Array and x.aval.inexact and bool(self.found(x.numpy()).any())

    @property
    def recorders(self) -> tuple[Any, ...]:
        return (self, *super().recorders)

    def apply(self, prim: Any, args: Sequence[Value], params: dict[str, Any]) -> Any:
        assert self.parent is not None
        out = self.parent.apply(prim, args, params)
        if any(map(self.has, as_list(out))) and not any(map(self.has, args)):
            if prim.higher is not None and not effects_of(prim, params):
                before, self.hides = self.hides, False
                with use(self):
                    found = _again(prim, args, params)
                # Places that hold no data may have held it: there, the second run has zeros.
                hides, self.hides = self.hides, self.hides or before
                if found is not None and hides and not any(map(self.has, found)):
                    return _replaced(out, found)
            raise self.error(str(prim), args)
        return out

    def error(self, what: str, args: Sequence[Any]) -> NanError:
        """Return the error for an operation, or a program, on these operands."""
        shown = ", ".join(map(_shown, args)) or "no operands"
        return NanError(
            f"{what} gave {self.what} for {shown}",
            where=self.where,
            fix="keep its operands where it is defined; a nan that plait.numpy.where drops is "
            "still in its derivative: choose the operand, too",
        )

    def executed(self, run: Callable[[], Any], program: Any, args: Callable[[], Any]) -> Any:
        """Return the results of an executable, which is run again equation by equation if they
        have a nan and its operands have none."""
        given = args()
        before, out = any(map(self.has, given)), run()
        if before or not any(map(self.has, _leaves(out))):
            return out
        if not program.effects:
            with use(self):
                evaluate(program, given)
        self.where = None  # the user's line, which calls it
        raise self.error(program.name, given)


def _shown(x: Any) -> str:
    if x.__class__ is Array and x.aval.size == 1:
        return f"{x.aval!r} = {x.item()}"
    return f"{x.aval!r} = {x.value}" if x.__class__ is Literal else repr(x.aval)


def _replaced(out: list[Value], found: list[Any]) -> Any:
    """Return the results of a second run in place of `out`, if it kept all of them."""
    outs = as_list(out)
    if len(found) != len(outs) or not all(map(_same_type, found, outs)):
        return out
    return found if out.__class__ in (list, tuple) else found[0]


def _same_type(a: Value, b: Value) -> bool:
    return a.aval.same_type(b.aval)


def _again(prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[Any] | None:
    """Run the programs of an operation equation by equation, as often as the operation runs them;
    return its results.

    Returns None if its examples run differently, or its program is not of its operands."""
    try:
        if prim is cond:
            return evaluate(params["branches"][int(args[0].concrete())], args[1:])
        if prim is while_:
            return _again_while(args, **params)
    except ConcretizationError:
        return None
    if prim is scan:
        return _again_scan(args, **params)
    if expand_rules.find(prim) is not None:
        return as_list(expand_rules[prim](*args, **params))
    types = [a.aval for a in args]
    for p in programs_in(params)[:1]:
        same = [a.same_type(b) for a, b in zip(types, p.in_avals)]
        if len(types) == len(p.inputs) and all(same):
            return evaluate(p, args)
    return None


def _again_while(
    args: Sequence[Any],
    cond: Program,
    body: Program,
    cond_consts: int,
    body_consts: int,
    max_steps: int | None = None,
) -> list[Any]:
    k, turns = cond_consts + body_consts, 0
    carry = list(args[k:])
    while turns != max_steps and evaluate(cond, [*args[:cond_consts], *carry])[0].concrete():
        carry, turns = evaluate(body, [*args[cond_consts:k], *carry]), turns + 1
    return carry


def _again_scan(
    args: Sequence[Any],
    body: Program,
    consts: int,
    carry: int,
    length: int,
    reverse: bool,
    unroll: int,
) -> list[Any] | None:
    k = consts + carry
    state, rows, given = list(args[consts:k]), args[k:], [[] for _ in body.outputs[carry:]]
    for i in range(length)[:: -1 if reverse else 1]:
        out = evaluate(body, [*args[:consts], *state, *(r[i] for r in rows)])
        state = out[:carry]
        for ys, y in zip(given, out[carry:], strict=True):
            ys.append(y)
    if not length and given:
        return None
    return [*state, *[_stack(ys[:: -1 if reverse else 1]) for ys in given]]


_explained_calls(globals())
__getattr__, __dir__ = _additions(globals(), "plait.debug")
