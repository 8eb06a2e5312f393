"""Names for authors of transformations and primitives.

    from plait import ext
    from plait.ext.ops.elementwise import mul

    double = ext.Primitive("mine.double", lambda x: x, traits=(ext.Linear, ext.Elementwise))
    ext.lower_rules.rule(double)(lambda e, xs, ins, outs: e.op("stablehlo.add", xs * 2, *outs))

The names that an author needs first are here; the modules below have the rest:

    ext.trace     interpreters, carriers, staging, tracing, arguments
    ext.values    arrays, literals, conversion of users' values
    ext.ir        programs, primitives, functions of both
    ext.rules     rule tables, traits, the tables that core owns
    ext.lower     lowering to StableHLO, modules, executables
    ext.ops       every primitive, by family, and the functions that users call
    ext.control   loops and branches as users write them
    ext.surface   tools for libraries of array functions
    ext.text      what shows programs in another form
    ext.profiling the runtime's profiler
    ext.errors    errors in three parts, and the user's lines that they name
    ext.tree      trees of values
    ext.plugins   declarations of installed plugins
    ext.sizes     sizes known by name
    ext.types     types of values and of their elements
    ext.devices   devices, placements, memory
    ext.transfers guards of transfers between the host and devices
    ext.processes  several processes that compute together

A plugin imports only these modules, `plait` itself and its public surfaces from core; Plait's own
plugins do the same.  Plugins offer names to each other in modules of the same name:
`plait_autodiff.ext`, `plait_batching.ext`, `plait_sharding.ext`.

`PLUGIN_API`, (major, minor), is the version of all these names.  A new name increases the minor
version.  Removing a name or changing its meaning increases the major version, after two minor
versions that named its replacement.  Parameters of primitives are part of the contract.  A plugin
declares the version that it was built for in its metadata:

    [project.entry-points."plait.plugin_api"]
    "1.0" = "my_plugin"

Invariant: nothing is defined here, and every name is used by a package or an example.
"""

from types import ModuleType

from .._base.lazy import later
from .._core.ir import Effect, Program, evaluate, programs_in
from .._core.primitive import Primitive, primitive
from .._plugins.metadata import MODULES as OFFERED_BY
from .._plugins.metadata import names, resolve
from .errors import MissingRule, PlaitError
from .ops.shape import materialise_at_ground
from .rules import (
    PLUGIN_API,
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
    RuleTable,
    Structural,
    ZeroPreserving,
    eager_rules,
    expand_rules,
    lower_rules,
)
from .trace import (
    Carrier,
    Interpreter,
    Lifted,
    Slots,
    Tracer,
    Value,
    Wiring,
    current,
    opened,
    stage,
    staged,
    use,
)
from .tree import flatten
from .types import Aval, Opaque
from .values import Array, Literal, as_value

MODULES = (
    "control", "devices", "errors", "ir", "lower", "observers", "ops", "plugins",
    "processes", "profiling", "rules", "sizes", "surface", "text", "trace", "transfers", "tree",
    "types", "values",
)  # fmt: skip

__all__ = [
    "PLUGIN_API", "AnyElement", "Array", "Aval", "Carrier", "Collective", "Cumulative",
    "Decreasing", "Discrete", "Effect", "Elementwise", "Increasing", "Indexing", "Interpreter",
    "Lifted", "Linear", "Literal", "MissingRule", "Opaque", "PlaitError", "Primitive", "Program",
    "Reduction", "RuleTable", "Slots", "Structural", "Tracer", "Value", "Wiring", "ZeroPreserving",
    "as_value", "current", "eager_rules", "evaluate", "expand_rules", "flatten", "lower_rules",
    "materialise_at_ground", "opened", "primitive", "programs_in", "stage", "staged", "use",
]  # fmt: skip


def __getattr__(name: str) -> ModuleType:
    if name in MODULES or (not name.startswith("_") and name in names("plait.ext")):
        return later(f"ext.{name}")
    if f"ext.{name}" in OFFERED_BY:  # by a plugin that is not installed
        return resolve(f"ext.{name}")
    raise AttributeError(f"plait.ext has no {name!r}; dir(plait.ext) lists what there is")


def __dir__() -> list[str]:
    return sorted([*__all__, *MODULES, *[n for n in names("plait.ext") if "." not in n]])
