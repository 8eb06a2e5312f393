"""The check of random keys that a plugin brings, around compiled programs.

The setting `debug_key_reuse` turns it on.  In the group `plait.guards`, under the name of the
setting, a plugin declares `begun(program, buffers)`.  It is called when a program on keys is
compiled, with None for the buffers, and before each of its runs; it may raise.  It returns a
function of the buffers of the results, which is called when these are consumed.

Invariant: without the setting a program on keys takes one look at it more, and others nothing.
"""

import weakref
from collections.abc import Callable
from typing import Any

from .._base.config import config
from .._base.errors import MissingPlugin
from .._core.array import Array
from .._core.interpreter import GROUND, current
from .._core.ir import Program
from .._plugins.metadata import GUARD_HINTS, GUARDS, declared, install_command, load
from .._plugins.rules import RuleTable
from .._types.avals import OPAQUE
from .physical import speaks

__all__ = ["guarded", "is_seeded", "reuse_rules", "seeded"]

reuse_rules = RuleTable(
    "reuse",
    signature="(walk, e, xs)",
    programs="(walk, e, xs)",
    doc="for each result its Names, or None: what an operation does to keys; "
    "`e` is the equation, `xs` are Names, Known values, Same ones or None.",
)

_SETTING = "debug_key_reuse"
_seeds: dict[int, Any] = {}
"""id of a buffer -> weak reference to it, for keys made from numbers during tracing."""


def guarded(run: Callable[..., Any], program: Program) -> Callable[..., Any]:
    """Return `run` for a program, which is checked while the setting is on if it has keys."""
    if not speaks(program):
        return run
    if config.debug_key_reuse:
        _guard()(program, None)

    def checked(bufs: list[Any]) -> Any:
        if not config.debug_key_reuse:
            return run(bufs)
        ended = _guard()(program, bufs)
        return _Results(run(bufs), ended)

    return checked


def _guard() -> Callable[[Program, list[Any] | None], Callable[[list[Any]], None]]:
    found, dist = declared(GUARDS, _SETTING), GUARD_HINTS[_SETTING]
    if not found:
        raise MissingPlugin(
            f"the setting {_SETTING} is on, but {dist}, which checks random keys, is not installed",
            fix=lambda: f"{install_command(dist)}\nor turn the setting off",
            distribution=dist,
        )
    return load(found[0])  # type: ignore[no-any-return]


class _Results:
    """The results of a run, which is over for the check when they are consumed."""

    __slots__ = ("results", "ended")

    def __init__(self, results: Any, ended: Callable[[list[Any]], None]):
        self.results, self.ended = results, ended

    def consume_with_handlers(self, handlers: list[Any]) -> list[Any]:
        """Return the results as the runtime does."""
        bufs: list[Any] = self.results.consume_with_handlers(handlers)
        self.ended(bufs)
        return bufs

    def __getattr__(self, name: str) -> Any:
        return getattr(self.results, name)


def seeded(x: Array) -> None:
    """Record a key made from a number during tracing: the program makes it at each run."""
    if config.debug_key_reuse and current() is not GROUND:
        buf, n = x.buffer(), id(x.buffer())
        _seeds[n] = weakref.ref(buf, lambda r: _seeds.pop(n, None) if _seeds.get(n) is r else None)


def is_seeded(x: Array) -> bool:
    """Return whether a constant of a program is a key that `seeded` recorded."""
    held = _seeds.get(id(x.buffer())) if x.aval.category == OPAQUE and _seeds else None
    return held is not None and held() is x.buffer()
