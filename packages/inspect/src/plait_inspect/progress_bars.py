"""Progress bars of loops that run compiled.

Invariant: tqdm is imported when a bar is first needed, and a bar changes no result.
"""

from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

from plait.debug import callback
from plait.ext.errors import ArgumentError, border
from plait.ext.plugins import library
from plait.ext.trace import name_of, wraps

__all__ = ["progress"]

F = TypeVar("F", bound=Callable[..., Any])


@border
def progress(f: F, total: int | None = None, *, desc: str | None = None, **options: object) -> F:
    """Return the body of a `scan`, `fori_loop`, `while_loop` or `map` with a progress bar, which
    counts its turns while the loop runs.

    Bars are tqdm's: `python -m pip install tqdm`.  They are shown in notebooks, too.

    Args:
      f: the body of the loop.
      total: the number of turns, after which the bar is closed and the next turn begins a new one;
        None if it is not known.
      desc: the text before the bar; the name of `f` by default.
      options: further options of `tqdm.tqdm`.

    Raises ArgumentError if `f` is not a function, MissingPlugin if tqdm is not installed.

    Example:
      plait.lax.scan(plait.debug.progress(step, 1000), init, None, length=1000)
    """
    if not callable(f):
        raise ArgumentError(
            f"progress: {f!r} is not a function", fix="write scan(progress(step, n), init, xs)"
        )
    bar = _Bar(total, name_of(f) if desc is None else desc, options)

    @wraps(f)
    def body(*args: Any, **kwargs: object) -> Any:
        callback(bar.turn)
        return f(*args, **kwargs)

    return body  # type: ignore[return-value]


class _Bar:
    """The bar of a loop: made at its first turn, closed at its last."""

    def __init__(self, total: int | None, desc: str, options: dict[str, Any]):
        self.make = _tqdm()
        self.total, self.desc, self.options = total, desc, options
        self.shown: Any = None
        self.turns, self.lock = 0, Lock()

    def turn(self) -> None:
        with self.lock:
            if self.shown is None:
                self.turns = 0
                self.shown = self.make(total=self.total, desc=self.desc, **self.options)
            self.shown.update(1)
            self.turns += 1
            if self.turns == self.total:
                self.shown.close()
                self.shown = None


def _tqdm() -> Any:
    """Return tqdm's class of bars that suits a terminal or a notebook."""
    does = "debug.progress shows bars of tqdm"
    return library("tqdm.auto", does, "plait-inspect", "progress").tqdm
