"""Small programs that try the installed distributions: `python -m plait doctor --check`.

A distribution brings its own as the function `check` of the module `doctor` in its package.

Invariant: a program that fails is reported, and never raised.
"""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import EntryPoint
from typing import NamedTuple

import numpy as np

from .._control.loops import fori_loop
from .._jit.jitted import jit
from .._ops.elementwise import sin
from .._plugins.metadata import CORE, load
from .inventory import Installed, one_line

__all__ = ["Trial", "tried"]


class Trial(NamedTuple):
    """The program of a distribution, in words, and the text of its failure if it failed."""

    of: Installed
    outcome: str
    failure: str | None = None


def tried(working: Sequence[Installed]) -> Iterator[Trial]:
    """Run the program of each distribution that brings one, the core's first."""
    for i in sorted(working, key=lambda i: i.name != CORE):
        try:
            check = _check if i.name == CORE else _brought(i)
            if check is None:
                yield Trial(i, "brings no program to try")
                continue
            check()
        except Exception as e:  # of any kind: the report must go on
            text = one_line(f"{type(e).__name__}: {e}")
            yield Trial(i, "its program failed", text)
        else:
            yield Trial(i, "its program ran")


def _brought(i: Installed) -> Callable[[], None] | None:
    """Return the program that a plugin brings, if there is one."""
    first = i.points[0]
    name = first.point.module.partition(".")[0] + ".doctor"
    if importlib.util.find_spec(name) is None:
        return None
    return load(first._replace(point=EntryPoint("check", f"{name}:check", "plait.doctor")))


def _check() -> None:
    """Compile a loop, and compare it with the same one in Python."""

    def steps(x):
        return fori_loop(0, 3, lambda _, y: sin(y) + 1, x)

    expected = np.float32(0.5)
    for _ in range(3):
        expected = np.sin(expected) + np.float32(1)
    np.testing.assert_allclose(np.asarray(jit(steps)(np.float32(0.5))), expected, rtol=1e-5)
