"""Looking into computations while they run.

Invariant: what is called here acts once for each time the program says so, and has no results.
"""

from collections.abc import Callable
from typing import Any

from .ops.host import callback as _callback
from .ops.host import debug_print as _print

__all__ = ["callback", "print"]


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
