"""Plans of calls of public functions on arrays, for the tables of `plait._core.dispatch`.

Invariant: a plan computes the same as the body for any values of its operands.  A body that depends
on values cannot be staged, and so has no plan.  Neither has a body that returns one of its
operands, or a constant.
"""

from collections.abc import Callable
from typing import Any

from .._base.config import config
from .._core.array import Array
from .._core.dispatch import Plan
from .._core.interpreter import GROUND, Value
from .._core.ir import Var
from .._types.avals import WEAK
from .._xla.executables import executable
from .._xla.operands import as_argument, operand_buffer
from .._xla.tiers import of_operation
from ..tree import LEAF
from .call_forms import builder
from .tracing import trace

_ASKED = Plan()
"""The plan of a body that runs at each call."""

# ---- Python numbers as operands ----------------------------------------------------------------


_EXACT = {
    float: {"bool", "int32", "float32", "complex64"},
    int: {"bool", "int32", "float32", "complex64", "float64", "complex128"},
}
"""Dtypes of arrays beside which a Python number is exact as an operand of 32 bits.

Beside narrower dtypes it would be rounded twice, or wrap where the body refuses it; beside wider
floats it would have lost digits."""
_EXACT_64 = {kind: {*names, "int64", "float64", "complex128"} for kind, names in _EXACT.items()}


def _is_exact(kind: type, arrays: list[Array]) -> bool:
    exact = (_EXACT_64 if WEAK[kind].dtype.itemsize == 8 else _EXACT)[kind]
    return all(x.aval.dtype.name in exact for x in arrays)


# ---- plans -------------------------------------------------------------------------------------


def plan(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], with_numbers: bool
) -> Plan:
    """Return the plan for calls of `f` with such arguments.

    `args` are arrays, lists or tuples of them, and static arguments; numbers among them are
    operands if `with_numbers`.
    """

    def is_operand(x: object) -> bool:
        return x.__class__ is Array or (with_numbers and x.__class__ in _EXACT)

    def body(*xs: Value) -> Any:
        given = iter(xs)
        filled = [
            a.__class__([next(given) if x.__class__ is Array else x for x in a])
            if a.__class__ is tuple or a.__class__ is list
            else (next(given) if is_operand(a) else a)
            for a in args
        ]
        return f(*filled, **kwargs)

    operands: list[Any] = []
    for a in args:
        if a.__class__ is tuple or a.__class__ is list:
            operands += [x for x in a if x.__class__ is Array]
        elif is_operand(a):
            operands.append(a)
    arrays = [x for x in operands if x.__class__ is Array]
    if not arrays or not config.jit:
        return _ASKED
    if any(x.key is not x.aval for x in arrays):
        return _ASKED  # the body handles placements
    if not all(x.__class__ is Array or _is_exact(x.__class__, arrays) for x in operands):
        return _ASKED
    values = [as_argument(x) for x in operands]
    try:
        traced = trace(body, values, {}, "jit")
    except Exception:
        return _ASKED  # the body raises the error itself, or depends on values
    program = traced.program
    inputs = set(program.inputs)
    if traced.captured or traced.asked or program.effects or not program.outputs:
        return _ASKED
    if any(o.__class__ is not Var or o in inputs for o in program.outputs):
        return _ASKED
    made = executable(program, (), [x.key for x in values], of_operation(program))
    if any(key is not key.aval for key in made.keys):
        return _ASKED
    if traced.tree == LEAF:
        return Plan(made.run, made.handlers, made.keys[0])
    return Plan(made.run, made.handlers, None, builder(traced.tree, made.keys))


GROUND.plan_with(operand_buffer, plan)
