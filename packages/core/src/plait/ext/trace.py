"""Interpreters, carriers, staging and tracing: how a transformation runs.

Invariant: nothing is defined here.
"""

from .._core.arguments import (
    Call as Call,
)
from .._core.arguments import (
    Function as Function,
)
from .._core.carrier import (
    Carrier as Carrier,
)
from .._core.carrier import (
    Lifted as Lifted,
)
from .._core.closures import (
    tracers_of as tracers_of,
)
from .._core.deferred import (
    Deferred as Deferred,
)
from .._core.deferred import (
    rule_thunk as rule_thunk,
)
from .._core.deferred import (
    settled as settled,
)
from .._core.higher_order import (
    Ends as Ends,
)
from .._core.higher_order import (
    Part as Part,
)
from .._core.higher_order import (
    Slots as Slots,
)
from .._core.higher_order import (
    Wiring as Wiring,
)
from .._core.higher_order import (
    width as width,
)
from .._core.interpreter import (
    GROUND as GROUND,
)
from .._core.interpreter import (
    Evaluate as Evaluate,
)
from .._core.interpreter import (
    Interpreter as Interpreter,
)
from .._core.interpreter import (
    Tracer as Tracer,
)
from .._core.interpreter import (
    Value as Value,
)
from .._core.interpreter import (
    as_list as as_list,
)
from .._core.interpreter import (
    axis_size as axis_size,
)
from .._core.interpreter import (
    current as current,
)
from .._core.interpreter import (
    enter as enter,
)
from .._core.interpreter import (
    leave as leave,
)
from .._core.interpreter import (
    open_under as open_under,
)
from .._core.interpreter import (
    opened as opened,
)
from .._core.interpreter import (
    use as use,
)
from .._core.interpreter import (
    with_lines as with_lines,
)
from .._core.lift_higher_order import (
    lift_program as lift_program,
)
from .._core.lift_higher_order import (
    lift_rule as lift_rule,
)
from .._core.lift_higher_order import (
    rebuilt as rebuilt,
)
from .._core.lift_higher_order import (
    solve as solve,
)
from .._core.staging import (
    Stage as Stage,
)
from .._core.staging import (
    collector_paused as collector_paused,
)
from .._core.staging import (
    stage as stage,
)
from .._core.staging import (
    staged as staged,
)
from .._jit.roles import (
    Role as Role,
)
from .._jit.roles import (
    role as role,
)
from .._jit.roles import (
    without_static as without_static,
)
from .._jit.tracing import (
    arguments as arguments,
)
from .._jit.tracing import (
    kept as kept,
)
from .._jit.tracing import (
    result as result,
)
from .._jit.tracing import (
    shapes_only as shapes_only,
)
from .._jit.tracing import (
    trace as trace,
)

__all__ = [
    "Call",
    "Carrier",
    "Deferred",
    "Ends",
    "Evaluate",
    "Function",
    "GROUND",
    "Interpreter",
    "Lifted",
    "Part",
    "Role",
    "Slots",
    "Stage",
    "Tracer",
    "Value",
    "Wiring",
    "arguments",
    "as_list",
    "axis_size",
    "collector_paused",
    "current",
    "enter",
    "kept",
    "leave",
    "lift_program",
    "lift_rule",
    "open_under",
    "opened",
    "without_static",
    "with_lines",
    "rebuilt",
    "result",
    "role",
    "rule_thunk",
    "settled",
    "shapes_only",
    "solve",
    "stage",
    "staged",
    "trace",
    "tracers_of",
    "use",
    "width",
]
