"""Progress bars of loops that run compiled.

Invariant: the library of the bars is imported when a bar is first needed, and a bar changes no
result.
"""

import atexit
from collections.abc import Callable
from threading import Lock, Thread
from time import sleep
from types import ModuleType
from typing import Any, Literal, TypeVar

from plait.debug import callback
from plait.ext.errors import ArgumentError, border
from plait.ext.plugins import library
from plait.ext.trace import name_of, wraps

__all__ = ["progress"]

F = TypeVar("F", bound=Callable[..., Any])


@border
def progress(
    f: F,
    total: int | None = None,
    *,
    desc: str | None = None,
    bars: Literal["tqdm", "rich"] = "tqdm",
    **options: object,
) -> F:
    """Return the body of a `scan`, `fori_loop`, `while_loop` or `map` with a progress bar, which
    counts its turns while the loop runs.

    Terminals and notebooks show the bars, which are those of tqdm or of rich: either must be
    installed (`python -m pip install tqdm`).

    Args:
      f: the body of the loop.
      total: the number of turns, after which the bar is closed and the next turn begins a new one;
        None if it is not known.
      desc: the text before the bar; the name of `f` by default.
      bars: the library of the bars.
      options: further options of `tqdm.tqdm`, or of `rich.progress.Progress`.

    Raises ArgumentError if `f` is not a function, `total` is not a number of turns or `bars` has
    another value, and MissingPlugin if the library is not installed.

    Example:
      plait.lax.scan(plait.debug.progress(step, 1000), init, None, length=1000)
    """
    if not callable(f):
        raise ArgumentError(
            f"progress: {f!r} is not a function", fix="write scan(progress(step, n), init, xs)"
        )
    if total is not None and (isinstance(total, bool) or not isinstance(total, int) or total < 0):
        raise ArgumentError(
            f"progress: total must be a number of turns or None, got {total!r}",
            fix="write the length of the loop as a Python integer: progress(step, 1000)",
        )
    if bars not in _MAKERS:
        raise ArgumentError(
            f"progress: bars={bars!r} is neither 'tqdm' nor 'rich'", fix='write bars="tqdm"'
        )
    bar = _Bar(_MAKERS[bars](), total, name_of(f) if desc is None else desc, options)

    @wraps(f)
    def body(*args: Any, **kwargs: object) -> Any:
        callback(bar.turn)
        return f(*args, **kwargs)

    return body  # type: ignore[return-value]


class _Bar:
    """The bar of a loop: made at its first turn, closed at its last.

    Nothing announces the end of a loop of unknown length.  Its bar shows the last turn when no
    other follows for a while, and is closed with the process.
    """

    def __init__(
        self, make: Callable[..., Any], total: int | None, desc: str, options: dict[str, Any]
    ):
        self.make = make
        self.total, self.desc, self.options = total, desc, options
        self.shown: Any = None
        self.watched = False
        self.turns, self.lock = 0, Lock()

    def turn(self) -> None:
        with self.lock:
            if self.shown is None:
                self.turns = 0
                self.shown = self.make(total=self.total, desc=self.desc, **self.options)
                # Without an end, a terminal would keep a hidden cursor or an old number of turns.
                atexit.register(self.shown.close)
            self.shown.update(1)
            self.turns += 1
            if self.turns == self.total:
                atexit.unregister(self.shown.close)
                self.shown.close()
                self.shown = None
            elif self.total is None and not self.watched:
                self.watched = True
                Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        """Show the number of turns once it stays the same."""
        seen = None
        while seen != self.turns:
            seen = self.turns
            sleep(_PAUSE)
        with self.lock:
            self.watched = False
            self.shown.refresh()


_PAUSE = 0.2
"""Seconds without a turn after which a bar of unknown length shows the last one."""


def _tqdm() -> Any:
    """Return tqdm's class of bars that suits a terminal or a notebook."""
    does = "debug.progress shows bars of tqdm"
    return library("tqdm.auto", does, "plait-inspect", "progress").tqdm


def _rich() -> Any:
    """Return a class of bars of rich."""
    shown = library("rich.progress", "debug.progress shows bars of rich", "plait-inspect", "rich")

    class Bar:
        def __init__(self, total: int | None, desc: str, **options: Any):
            columns = None if total is not None else _columns_without_total(shown)
            self.of = shown.Progress(*(columns or shown.Progress.get_default_columns()), **options)
            self.task = self.of.add_task(desc, total=total)
            self.of.start()

        def update(self, n: int) -> None:
            self.of.advance(self.task, n)

        def refresh(self) -> None:
            self.of.refresh()

        def close(self) -> None:
            self.of.stop()

    return Bar


def _columns_without_total(shown: ModuleType) -> list[Any]:
    """Return the columns of a loop of unknown length: the turns so far instead of a percentage."""
    turns = shown.TextColumn("{task.completed:.0f} turns")
    return [shown.TextColumn("{task.description}"), turns, shown.TimeElapsedColumn()]


_MAKERS: dict[str, Callable[[], Any]] = {"tqdm": _tqdm, "rich": _rich}
