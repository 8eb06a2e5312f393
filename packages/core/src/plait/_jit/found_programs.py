"""Programs that are found again by the structure of what was recorded, and when one is made.

Compiling a program takes as long as hundreds of calls of what it is for, so it is made of what came
often, or of what would have to be compiled anyway, operation by operation.

Invariant: at most so many programs are compiled at first sight as wait to be used again; who does
another thing at each call waits for none.
"""

from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any
from weakref import WeakKeyDictionary

from .._base.config import config
from .._core.ir import Eqn

_MOST = 512
_SIGHTS = 8
"""Calls of one structure after which it is compiled, which takes as long as hundreds of them."""
_NEW = 4
"""So many operations that were never done compile about as long as the whole; so it is compiled."""
_UNUSED = 4
"""Programs compiled at first sight that may wait for a second call; beyond, structures change at
every call, and operations are what they share."""

_compiled: "dict[Any, _Found]" = {}
_sights: dict[int, int] = {}
_done: set[Any] = set()
"""Operations with types that were done one by one, for what they were recorded."""


class _Found:
    """A compiled function (None if it can not be), and whether it was found again."""

    __slots__ = ("call", "used")

    def __init__(self, call: Callable[..., Any] | None):
        self.call, self.used = call, False


_TRIES = 32
"""Calls in a row of which no program came, after which a function is recorded no more: it branches,
or is another one each time."""
_vain: "WeakKeyDictionary[CodeType, dict[str, int]]" = WeakKeyDictionary()


def is_recorded(f: Callable[..., Any], does: str) -> bool:
    """Whether calls of a function are worth recording for a transformation (`does` is its name),
    and settings let it be.

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
    code = getattr(f, "__code__", None)
    vain = _vain.get(code) if isinstance(code, CodeType) else None
    return vain is None or vain.get(does, 0) < _TRIES


def note(f: Any, does: str, is_run: bool) -> None:
    """Remember whether what was recorded of a function was run as a program."""
    code = getattr(f, "__code__", None)
    if isinstance(code, CodeType):
        vain = _vain.setdefault(code, {})
        vain[does] = 0 if is_run else vain.get(does, 0) + 1


def found(
    key: Any,
    does: Any,
    eqns: Sequence[Eqn],
    make: Callable[[], Callable[..., Any]],
    operands: Sequence[Any],
) -> Any:
    """Return what the compiled function of this key gives, which `make()` makes; None if there is
    none, since that would take longer or can not be compiled.

    `does` says what operations are done for: one that was done for something else was not.
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
        _compiled[key] = _Found(None)  # done one by one, the operations say what is wrong
        return None
    _compiled[key] = _Found(call)
    return out


def forget_found() -> None:
    """Drop the programs, and what was seen."""
    for table in (_compiled, _sights, _done, _vain):
        table.clear()


def _is_worth_it(key: Any, does: Any, eqns: Sequence[Eqn]) -> bool:
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
