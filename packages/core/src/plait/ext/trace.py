"""Interpreters, carriers, staging and tracing: the machinery of transformations.

Invariant: nothing is defined here.
"""

from .._base.source import code_of
from .._base.surroundings import surround, surrounding
from .._base.wrapping import copy_names, name_of, wraps
from .._core.arguments import Call, Function
from .._core.carrier import Carrier, Lifted
from .._core.closures import tracers_of
from .._core.deferred import Deferred, rule_thunk, settled
from .._core.divided import lie_as, with_axis, without_axis
from .._core.handles import Handle, apply_through, handle_among
from .._core.higher_order import Ends, Slots, Wiring, width
from .._core.interpreter import (
    GROUND,
    Interpreter,
    Tracer,
    Value,
    as_list,
    current,
    enclosed,
    enter,
    escaped,
    is_above,
    leave,
    naming,
    open_under,
    opened,
    use,
    with_lines,
)
from .._core.lending import Lending
from .._core.lift_higher_order import lift_rule, rebuilt, solve
from .._core.staging import (
    Stage,
    admitted,
    admitted_leaves,
    apart_from,
    collector_paused,
    leaf_name,
    stage,
    staged,
)
from .._core.varying import varying_inputs
from .._jit.caches import kept
from .._jit.found_programs import is_recorded, shared_program
from .._jit.recording import Recording, as_operand, is_unplaced
from .._jit.roles import Role, SplitCall, role, without_static
from .._jit.shapes import shapes_only
from .._jit.signatures import arguments
from .._jit.tracing import result, trace

__all__ = [
    "Call", "Carrier", "Deferred", "Ends", "Function", "GROUND", "Handle", "Interpreter", "Lending",
    "Lifted", "Recording", "Role", "Slots", "SplitCall", "Stage", "Tracer", "Value", "Wiring",
    "admitted", "admitted_leaves", "apart_from", "apply_through", "arguments", "as_list",
    "as_operand", "code_of", "collector_paused", "copy_names", "current", "enclosed", "enter",
    "escaped", "handle_among", "is_above", "is_recorded", "is_unplaced", "kept", "leaf_name",
    "leave", "lie_as", "lift_rule", "name_of", "naming", "open_under", "opened", "without_static",
    "with_lines", "rebuilt", "result", "role", "rule_thunk", "settled", "shapes_only",
    "shared_program", "solve", "stage", "staged", "surround", "surrounding", "trace", "tracers_of",
    "use", "varying_inputs", "width", "with_axis", "without_axis", "wraps",
]  # fmt: skip
