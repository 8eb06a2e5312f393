"""Programs, primitives, and functions that inspect or make them.

Invariant: nothing is defined here.
"""

from .._base.freezing import freeze_params
from .._core.ir import (
    Effect,
    Eqn,
    Program,
    Thunk,
    Var,
    ambient_of,
    derived,
    dims_of,
    effects_of,
    evaluate,
    live_equations,
    ordered,
    programs_in,
    speaks_of,
)
from .._core.primitive import Primitive, primitive, registered
from .._simplify import dce, inline_calls

__all__ = [
    "Effect",
    "Eqn",
    "Primitive",
    "Program",
    "Thunk",
    "Var",
    "ambient_of",
    "dce",
    "derived",
    "dims_of",
    "effects_of",
    "evaluate",
    "freeze_params",
    "inline_calls",
    "live_equations",
    "ordered",
    "primitive",
    "programs_in",
    "registered",
    "speaks_of",
]
