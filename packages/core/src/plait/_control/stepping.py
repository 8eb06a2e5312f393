"""Branches and loops run in Python, one operation at a time, for `disable_jit`.

Invariant: nothing is traced here.  If a transformation hides the value of a predicate, nothing is
run here, and the operation is applied as usual.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from .._base.config import config
from .._base.errors import ConcretizationError
from .._core.array import as_value
from .._core.interpreter import Value
from .._ops.shape import materialise_at_ground, stack
from ..tree import flatten, map_tree

__all__ = ["disable_jit", "scan", "switch", "while_loop"]


def disable_jit(disable: bool = True) -> AbstractContextManager[Any]:
    """Run jitted functions, branches and loops in Python within a `with` block.

    They run one operation at a time, so that a debugger or `print` sees values.

    It is the setting `config.jit`; the block belongs to the process, not to a thread.

    >>> import plait
    >>> with plait.disable_jit():
    ...     _ = plait.jit(lambda x: print(x * 2))(1.0)
    2.0
    """
    return config(jit=not disable)


def switch(index: Value, branches: Sequence[Callable], operands: tuple) -> Any:
    """Run the chosen branch; return NotImplemented if the choice is unknown."""
    try:
        i = int(index)
    except ConcretizationError:
        return NotImplemented
    return branches[min(max(i, 0), len(branches) - 1)](*map_tree(_own, operands))


def _own(x: object) -> Any:
    """Return `x` as an array: a step that writes into a numpy array would change the caller's."""
    return materialise_at_ground(as_value(x))


def while_loop(
    test: Callable, body: Callable, x: float | tuple[Any, ...], max_steps: int | None
) -> Any:
    """Return the last carry; NotImplemented if the predicate is unknown."""
    turns, x = 0, map_tree(_own, x)
    while max_steps is None or turns < max_steps:
        try:
            more = bool(test(x))
        except ConcretizationError:
            return NotImplemented
        if not more:
            break
        x, turns = body(x), turns + 1
    return x


def scan(
    f: Callable, carry: float | tuple[Any, ...] | None, xs: Any, length: Any, reverse: bool
) -> Any:
    """Return (carry, ys); NotImplemented for no steps, or a symbolic number of them."""
    if length.__class__ is not int or not length:
        return NotImplemented
    rows, tree = flatten(xs)
    rows = [as_value(r) for r in rows]
    order = range(length)[::-1] if reverse else range(length)
    carry = map_tree(_own, carry)
    ys: list[list] = []
    out_tree: Any = None
    for i in order:
        carry, y = f(carry, tree.unflatten([r[i] for r in rows]))
        leaves, out_tree = flatten(y)
        ys.append(leaves)
    if reverse:
        ys.reverse()
    return carry, out_tree.unflatten([stack(column) for column in zip(*ys, strict=True)])
