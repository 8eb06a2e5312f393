"""What authors of transformations and primitives build on.

    from plait import ext

    double = ext.Primitive("mine.double", lambda x: x, traits=(ext.Linear, ext.Elementwise))
    ext.lower_rules.rule(double)(lambda e, xs, ins, outs: e.op("stablehlo.add", xs * 2, *outs))

`PLUGIN_API` is versioned by itself, (major, minor): names are only removed with a new major, after
two minors with a named replacement; parameters of primitives are part of the contract.

What installed plugins offer to authors (the division of programs into known and unknown halves) is
here too, found when it is first asked for; it has their version, not this module's.

Invariant: every name here is used by the first-party packages themselves.
"""

from .carrier import Carrier, Lifted, expand_rules
from .check import check
from .errors import PlaitError
from .events import counting, listening
from .interpreter import (
    Interpreter,
    Tracer,
    Value,
    axis_size,
    current,
    enter,
    leave,
    opened,
    use,
)
from .ir import Effect, Eqn, Program, Thunk, Var, derived, evaluate, programs_in
from .ops.mapping import map_axes, parallel_rules
from .ops.opaque import unwrap, wrap
from .ops.shape import fill, materialise_at_ground, normal_axes, normal_axis
from .physical import physical_rules
from .plugins import additions as _additions
from .primitive import Ints, Primitive, freeze, primitive
from .rewiring import lift_program, rebuilt, solve
from .rules import RuleTable
from .source import hide, user_line
from .staging import Stage, stage, staged
from .traits import (
    AnyElement,
    Collective,
    Cumulative,
    Decreasing,
    Discrete,
    Elementwise,
    Increasing,
    Indexing,
    Linear,
    Reduction,
    Structural,
    Trait,
    ZeroPreserving,
)
from .tree import flatten, spread, unflatten
from .types import Aval, Opaque, Place, Placed, Placement
from .values import Array, Literal, as_value
from .wiring import Ends, Part, Slots, Wiring, width
from .xla.lower import Emitter, eager_rules, lower_rules

PLUGIN_API = (0, 1)
"""Version of this module's names: (major, minor)."""

__all__ = [
    "PLUGIN_API",
    "AnyElement",
    "Array",
    "Aval",
    "Carrier",
    "Collective",
    "Cumulative",
    "Decreasing",
    "Discrete",
    "Effect",
    "Elementwise",
    "Emitter",
    "Ends",
    "Eqn",
    "Increasing",
    "Indexing",
    "Interpreter",
    "Ints",
    "Lifted",
    "Linear",
    "Literal",
    "Opaque",
    "Part",
    "Place",
    "Placed",
    "Placement",
    "Primitive",
    "Program",
    "Reduction",
    "RuleTable",
    "Slots",
    "Stage",
    "Structural",
    "Thunk",
    "Tracer",
    "Trait",
    "Value",
    "Var",
    "PlaitError",
    "Wiring",
    "ZeroPreserving",
    "as_value",
    "axis_size",
    "check",
    "counting",
    "current",
    "derived",
    "eager_rules",
    "enter",
    "evaluate",
    "expand_rules",
    "fill",
    "flatten",
    "freeze",
    "hide",
    "leave",
    "lift_program",
    "listening",
    "lower_rules",
    "map_axes",
    "materialise_at_ground",
    "normal_axes",
    "normal_axis",
    "opened",
    "parallel_rules",
    "physical_rules",
    "primitive",
    "programs_in",
    "rebuilt",
    "solve",
    "spread",
    "stage",
    "staged",
    "unflatten",
    "unwrap",
    "use",
    "user_line",
    "width",
    "wrap",
]

__getattr__, __dir__ = _additions(globals(), "plait.ext")
