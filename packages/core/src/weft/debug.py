"""Looking into computations while they run.

Invariant: what is called here acts once for each time the program says so, and has no results;
looking for nans changes no result either.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as _np

from .errors import NanError
from .interpreter import Interpreter, as_list, current, open_under, opened
from .ir import Program, effects_of, evaluate, programs_in
from .leaks import checking_leaks
from .ops.higher import cond, scan, while_
from .ops.host import callback as _callback
from .ops.host import debug_print as _print
from .values import Array, Literal

__all__ = ["callback", "checking_leaks", "nans", "print"]


def callback(callback: Callable[..., Any], *args: Any, ordered: bool = False, **kwargs: Any):
    """Call `callback(*args, **kwargs)` in Python when the arguments are computed.

    Args:
      callback: takes trees of numpy arrays; what it returns is dropped.
      args, kwargs: trees of arrays.
      ordered: whether calls happen in the order of the program.

    >>> import weft as wf
    >>> seen = []
    >>> _ = wf.jit(lambda x: wf.debug.callback(lambda v: seen.append(float(v)), x))(2.0)
    >>> seen
    [2.0]
    """
    _callback(callback, *args, ordered=ordered, **kwargs)


def print(fmt: str, *args: Any, ordered: bool = False, file: Any = None, **kwargs: Any) -> None:
    """Print `fmt.format(*args, **kwargs)` when the arguments are computed.

    Args:
      fmt: a format string.
      args, kwargs: trees of arrays.
      ordered: whether lines come in the order of the program.
      file: where to; standard output if not given.

    >>> import weft as wf
    >>> _ = wf.jit(lambda x: wf.debug.print("x = {}", x))(1.0)
    x = 1.0
    """
    _print(fmt, *args, ordered=ordered, file=file, **kwargs)


# ---- nans ----------------------------------------------------------------------------------


@contextmanager
def nans() -> Generator[None, None, None]:
    """Inside the `with` block an operation that makes a nan of operands without one is an error.

    It names the line: of the operation, where it is applied at once; of the equation, where a
    jitted function, a branch or a loop gives a nan, which is then done again equation by equation;
    of the operation that is differentiated, where the nan is a derivative's.

    Raises NanError.

    >>> import weft as wf
    >>> try:
    ...     with wf.debug.nans():
    ...         wf.jit(lambda x: wf.numpy.log(x) + 1)(-1.0)
    ... except FloatingPointError as error:
    ...     print(error.what)
    core.log gave nan for f32[]* = -1.0
    """
    with opened(_Nans(current())):
        yield


class _Nans(Interpreter):
    """Applies everything under its parent, and looks at what comes out."""

    does = "debug.nans"

    def __init__(self, parent: Interpreter):
        open_under(self, parent)
        self.where: Any = None

    def apply(self, prim: Any, args: Any, params: dict[str, Any]) -> Any:
        assert self.parent is not None
        out = self.parent.apply(prim, args, params)
        if any(map(_has_nan, as_list(out))) and not any(map(_has_nan, args)):
            if prim.higher is not None and not effects_of(prim, params):
                _again(self, prim, args, params)
            shown = ", ".join(map(_shown, args)) or "no operands"
            raise NanError(
                f"{prim} gave nan for {shown}",
                where=self.where,
                fix="keep its operands where it is defined; a nan that weft.numpy.where drops is "
                "still in its derivative: choose the operand, too",
            )
        return out


def _has_nan(x: Any) -> bool:
    return x.__class__ is Array and x.aval.inexact and bool(_np.isnan(x.numpy()).any())


def _shown(x: Any) -> str:
    if x.__class__ is Array and x.aval.size == 1:
        return f"{x.aval!r} = {x.item()}"
    return f"{x.aval!r} = {x.value}" if x.__class__ is Literal else repr(x.aval)


def _again(by: _Nans, prim: Any, args: Sequence[Any], params: dict[str, Any]) -> None:
    """The programs of an operation, equation by equation, as often as they are run."""
    if prim is cond:
        evaluate(params["branches"][int(args[0].concrete())], args[1:], by)
    elif prim is while_:
        _again_while(by, args, **params)
    elif prim is scan:
        _again_scan(by, args, **params)
    else:
        types = [a.aval for a in args]
        for p in programs_in(params)[:1]:
            same = [a.same_type(b) for a, b in zip(types, p.in_avals)]
            if len(types) == len(p.inputs) and all(same):
                evaluate(p, args, by)


def _again_while(
    by: _Nans,
    args: Sequence[Any],
    cond: Program,
    body: Program,
    cond_consts: int,
    body_consts: int,
    max_steps: int | None = None,
) -> None:
    k, turns = cond_consts + body_consts, 0
    carry = list(args[k:])
    while turns != max_steps and evaluate(cond, [*args[:cond_consts], *carry], by)[0].concrete():
        carry, turns = evaluate(body, [*args[cond_consts:k], *carry], by), turns + 1


def _again_scan(
    by: _Nans,
    args: Sequence[Any],
    body: Program,
    consts: int,
    carry: int,
    length: int,
    reverse: bool,
    unroll: int,
) -> None:
    k = consts + carry
    state, rows = list(args[consts:k]), args[k:]
    for i in range(length)[:: -1 if reverse else 1]:
        state = evaluate(body, [*args[:consts], *state, *(r[i] for r in rows)], by)[:carry]
