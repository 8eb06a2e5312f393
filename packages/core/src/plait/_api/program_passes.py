"""Functions whose Programs are rewritten before they are run.

Invariant: the results are those of the function, up to rounding; transformations of the returned
function see the rewritten Program.
"""

from collections.abc import Callable
from typing import Any

from .._base.errors import ArgumentError
from .._base.tracebacks import border
from .._base.wrapping import wraps
from .._core.ir import evaluate
from .._jit.tracing import trace
from .._simplify import rerolled

__all__ = ["reroll"]


def reroll(fun: Callable[..., Any], *, times: int = 4, size: int = 6) -> Callable[..., Any]:
    """Return `fun`, with equal consecutive layers rolled into a scan.

    Args:
      fun: takes and returns trees of arrays.
      times: the least number of repetitions in a row.
      size: the least number of operations in a layer.

    A network whose layers are written as a Python loop has them all in its Program.  Rolled, it has
    one.  This pays for transformations of large Programs, and with the fast tier; the full tier
    compiles equal loops once in any case.  Values that differ by layer, such as weights, are copied
    into one array before the scan.  A later scan reads that
    array, and those that an earlier scan wrote, as they are.  The compiler cannot fuse across the
    border of two layers.  Transformations of the returned function see the scan.  The function may
    be a gradient: its backward pass is a scan in reverse.  Layers stay as they are where moving
    their values in and out takes more operations than a scan saves.  `plait.jit(f, tier="fast")`
    does it by itself.

    Layers are found in the Program: operations with the same parameters on the same types, which
    take their operands from the same layer, the layer before, or from outside.  Layers that call
    functions with custom rules, defined anew for each layer, are not found.

    Raises ArgumentError if `fun` is not a function, or a number is less than 2 (`times`) or 1.

    Source: loop rerolling, as compilers do it for loops that were unrolled by hand.

    >>> import plait
    >>> def f(x, ws):
    ...     for w in ws:
    ...         x = plait.numpy.tanh(x @ w) * 2 + x
    ...     return x
    >>> x, ws = plait.numpy.ones(2), [plait.numpy.eye(2)] * 8
    >>> [e.prim.name for e in plait.make_program(plait.reroll(f, size=4))(x, ws).eqns][-1]
    'core.scan'
    """
    if not callable(fun):
        raise ArgumentError(f"reroll needs a function, not {fun!r}", fix="write reroll(f)(x)")
    for name, given, least in (("times", times, 2), ("size", size, 1)):
        if given.__class__ is not int or given < least:
            raise ArgumentError(
                f"reroll(..., {name}={given!r}): it is a whole number, at least {least}",
                fix=f"leave {name} out, or give such a number",
            )

    @border
    @wraps(fun)
    def rolled(*args: object, **kwargs: object) -> Any:
        traced = trace(fun, args, kwargs, "reroll")
        program = rerolled(traced.program, times, size)
        return traced.tree.unflatten(evaluate(program, [*traced.captured, *traced.values]))

    return rolled
