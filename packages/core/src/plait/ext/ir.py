"""Programs, primitives, and what can be asked and made of them.

Invariant: nothing is defined here.
"""

from .._core.check import (
    check as check,
)
from .._core.ir import (
    Effect as Effect,
)
from .._core.ir import (
    Eqn as Eqn,
)
from .._core.ir import (
    Program as Program,
)
from .._core.ir import (
    Thunk as Thunk,
)
from .._core.ir import (
    Var as Var,
)
from .._core.ir import (
    ambient_of as ambient_of,
)
from .._core.ir import (
    derived as derived,
)
from .._core.ir import (
    effects_of as effects_of,
)
from .._core.ir import (
    evaluate as evaluate,
)
from .._core.ir import (
    live_equations as live_equations,
)
from .._core.ir import (
    ordered as ordered,
)
from .._core.ir import (
    programs_in as programs_in,
)
from .._core.primitive import (
    Ints as Ints,
)
from .._core.primitive import (
    Primitive as Primitive,
)
from .._core.primitive import (
    freeze as freeze,
)
from .._core.primitive import (
    freeze_params as freeze_params,
)
from .._core.primitive import (
    primitive as primitive,
)
from .._simplify import (
    dce as dce,
)
from .._simplify import (
    inline_calls as inline_calls,
)

__all__ = [
    "Effect",
    "Eqn",
    "Ints",
    "Primitive",
    "Program",
    "Thunk",
    "Var",
    "ambient_of",
    "check",
    "dce",
    "derived",
    "effects_of",
    "evaluate",
    "freeze",
    "freeze_params",
    "inline_calls",
    "live_equations",
    "ordered",
    "primitive",
    "programs_in",
]
