"""Programs looked up by the structure of a recording, and the decision when to compile one.

Compiling a program takes as long as hundreds of eager calls.  So one is compiled for a structure
that occurred often, or whose operations would have to be compiled anyway, one by one.

Invariant: the number of programs compiled at first sight that wait for a second use is bounded.  So
a function with another structure at each call does not wait for the compiler each time.
"""

from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

from .._base import code_memory
from .._base.config import config
from .._base.source import code_of
from .._core.ir import Eqn, Program
from .._core.structures import program_key

_MOST = 512
_SIGHTS = 8
"""Calls of one structure after which it is compiled, which takes as long as hundreds of calls."""
_NEW = 4
"""New operations in a structure that take about as long to compile as the whole; from this number
on, the whole is compiled."""
_UNUSED = 4
"""The most programs compiled at first sight that may wait for a second call.  Beyond, structures
change at every call and share only their operations."""

_compiled: "dict[Any, _Found]" = {}
_shared: dict[Any, Program] = {}
"""Programs without constants, by their structure, their lines if asked, and the settings."""
_sights: dict[int, int] = {}
_done: set[Any] = set()
"""Operations with types that were executed one by one, with the transformation they were for."""


class _Found:
    """A compiled function (None if it cannot be compiled), and whether it was used again."""

    __slots__ = ("call", "used")

    def __init__(self, call: Callable[..., Any] | None):
        self.call, self.used = call, False


_TRIES = 32
"""Calls in a row without a program, after which a function is not recorded again: it branches, or
has another structure each time."""
_vain: "WeakKeyDictionary[CodeType, dict[str, int]]" = WeakKeyDictionary()


def is_recorded(f: Callable[..., Any], does: str) -> bool:
    """Return whether to record calls of a function for the transformation with the name `does`.

    It is false if earlier recordings found no program, or if the settings forbid it.

    >>> import plait
    >>> from plait.ext.trace import is_recorded
    >>> is_recorded(plait.lax.sin, "vmap")
    True
    >>> with plait.disable_jit():
    ...     is_recorded(plait.lax.sin, "vmap")
    False
    """
    if not (config.eager_programs and config.jit):
        return False
    vain = _vain.get(code) if (code := code_of(f)) is not None else None
    return vain is None or vain.get(does, 0) < _TRIES


def note(f: object, does: str, is_run: bool) -> None:
    """Remember whether a recording of a function was run as a program."""
    if (code := code_of(f)) is not None:
        vain = _vain.setdefault(code, {})
        vain[does] = 0 if is_run else vain.get(does, 0) + 1


def found(
    key: tuple[Any, ...],
    does: tuple[str | tuple[Any, ...], ...],
    eqns: Sequence[Eqn],
    make: Callable[[], Callable[..., Any]],
    operands: Sequence[Any],
) -> Any:
    """Return the result of the compiled function with this key, which `make()` makes.

    The result is None if compiling it for the first time would not pay, or if it cannot be
    compiled.  `does` is the purpose of the operations: one executed for another purpose counts as
    new.
    """
    whole = _compiled.get(key)
    if whole is not None:
        whole.used = True
        return whole.call(*operands) if whole.call is not None else None
    if not _is_worth_it(key, does, eqns):
        return None
    if len(_compiled) >= _MOST:
        _compiled.clear()
    call = make()
    try:
        out = call(*operands)
    except Exception:
        _compiled[key] = _Found(None)  # run one by one, the operations raise the error themselves
        return None
    _compiled[key] = _Found(call)
    return out


def shared_program(program: Program, by_lines: bool = False) -> tuple[Program, list[Any]]:
    """Return (an earlier program of the same structure, the values that it takes first).

    These values are the constants of `program`.  Results derived from the earlier program, such as
    its executable, serve again.  Outside of jit a function that stages one of its own, such as a
    Jacobian, would otherwise be lowered at each call.  With `by_lines`, it comes from the same
    lines, which the errors of its operations name.
    """
    consts = program.consts
    free = Program([*(v for v, _ in consts), *program.inputs], program.eqns, program.outputs,
                   program.name)  # fmt: skip
    key = None if free.effects or not config.eager_programs else program_key(free)
    if key is None:
        return program, []
    lines = tuple([e.where for e in free.eqns]) if by_lines else ()
    if len(_shared) >= _MOST:
        _shared.clear()
    return _shared.setdefault((key, lines, config.state), free), [x for _, x in consts]


@code_memory.emptied_by
def forget_found() -> None:
    """Drop the programs and the counts."""
    for table in (_compiled, _sights, _done, _vain, _shared):
        table.clear()


def _is_worth_it(
    key: tuple[Any, ...], does: tuple[str | tuple[Any, ...], ...], eqns: Sequence[Eqn]
) -> bool:
    operations = [(does, e.prim, *[a.aval for a in e.inputs]) for e in eqns]
    unknown = sum(o not in _done for o in operations)
    if unknown >= _NEW and sum(not w.used for w in list(_compiled.values())) < _UNUSED:
        return True
    if len(_done) > 16 * _MOST or len(_sights) > 16 * _MOST:
        _done.clear()
        _sights.clear()
    _done.update(operations)
    number = hash(key)
    seen = _sights[number] = _sights.get(number, 0) + 1
    return seen >= _SIGHTS
