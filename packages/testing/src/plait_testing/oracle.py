"""An evaluator of programs by numpy, one equation after the other: an oracle for rewriters.

Invariant: nothing here is compiled; numpy defines primitives, and Python's own control flow defines
operations with programs.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.ext import Array, Interpreter, Literal, MissingRule, Primitive, Program, evaluate, use
from plait.ext.trace import as_list
from plait.typing import ArrayLike

from .references import all_references

__all__ = ["ArrayOracle", "in_numpy", "numpy_evaluate"]


def numpy_evaluate(program: Program, args: Sequence[Any]) -> list[np.ndarray]:
    """Evaluate a program on numpy arrays.

    Covers the primitives of the core, except those of named axes; opaque elements are the integers
    that represent them.  Raises MissingRule for other primitives.

    >>> import numpy as np, plait
    >>> p = plait.make_program(lambda x: x * 2 + 1)(np.float32([1, 2]))
    >>> plait.testing.numpy_evaluate(p, [np.float32([1, 2])])
    [array([3., 5.], dtype=float32)]
    """
    with use(ArrayOracle()), np.errstate(all="ignore"):
        return [_array(x) for x in evaluate(program, [np.asarray(a) for a in args])]


def _array(x: object) -> np.ndarray:
    return x.numpy() if isinstance(x, Array | Literal) else np.asarray(x)


class ArrayOracle(Interpreter):
    """The interpreter that applies primitives to numpy arrays."""

    does = "the oracle"

    def apply(self, prim: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        xs = [_array(a) for a in args]
        known = all_references().get(prim.name)
        if known is None or prim.ambient is not None:
            raise MissingRule(f"the oracle does not know {prim}")
        return known.value(*xs, **params)


def in_numpy(prim: Primitive) -> Callable[..., list[np.ndarray]]:
    """Return a primitive of the kit as a function of numpy arrays and parameters."""

    def value(*xs: ArrayLike, **params: object) -> list[np.ndarray]:
        with use(ArrayOracle()), np.errstate(all="ignore"):
            outs = as_list(all_references()[prim.name].value(*[np.array(x) for x in xs], **params))
            return [_array(y) for y in outs]

    return value
