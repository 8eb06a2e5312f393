"""Programs, primitives, and functions that inspect or make them.

Invariant: no function of Programs is defined here.  Those that a first derivative does not need are
imported at their first use.
"""

from typing import TYPE_CHECKING, Any

from .._base.freezing import freeze_params
from .._base.lazy import later
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
from .._core.primitive import Primitive, primitive, primitives, registered

__all__ = [
    "Effect", "Eqn", "Primitive", "Program", "Thunk", "Var", "ambient_of", "dce", "derived",
    "dims_of", "effects_of", "evaluate", "forwarded", "freeze_params", "inline_calls",
    "live_equations", "ordered", "primitive", "primitives", "programs_in", "registered",
    "speaks_of",
]  # fmt: skip

if TYPE_CHECKING:
    from .._simplify import dce, forwarded, inline_calls


def __getattr__(name: str) -> Any:
    if name in ("dce", "forwarded", "inline_calls"):
        return getattr(later("_simplify"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
