"""Rule tables, traits, and the tables that core owns.

Invariant: nothing is defined here.
"""

from .._base.lazy import later_names
from .._core.carrier import expand_rules
from .._ops.mapping import parallel_rules
from .._plugins.metadata import PLUGIN_API, core_version, resolve
from .._plugins.rules import RuleTable, tables
from .._plugins.traits import (
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
    ZeroPreserving,
)
from .._xla.cpu_forms import cpu_form_rules, cpu_limit
from .._xla.guards import reuse_rules
from .._xla.lower import eager_rules, lower_rules
from .._xla.physical import physical_rules

__all__ = [
    "PLUGIN_API", "AnyElement", "Collective", "Cumulative", "Decreasing", "Discrete",
    "Elementwise", "Increasing", "Indexing", "Linear", "Reduction", "RuleTable", "Structural",
    "ZeroPreserving", "core_version", "cpu_form_rules", "cpu_limit", "eager_rules", "expand_rules",
    "later_names", "lower_rules", "parallel_rules", "physical_rules", "resolve", "reuse_rules",
    "tables",
]  # fmt: skip
