"""Rule tables, traits, and the tables that core owns.

Invariant: nothing is defined here.
"""

from .._core.carrier import (
    expand_rules as expand_rules,
)
from .._ops.mapping import (
    parallel_rules as parallel_rules,
)
from .._plugins.metadata import (
    PLUGIN_API as PLUGIN_API,
)
from .._plugins.metadata import (
    core_version as core_version,
)
from .._plugins.metadata import (
    resolve as resolve,
)
from .._plugins.rules import (
    RuleTable as RuleTable,
)
from .._plugins.traits import (
    AnyElement as AnyElement,
)
from .._plugins.traits import (
    Collective as Collective,
)
from .._plugins.traits import (
    Cumulative as Cumulative,
)
from .._plugins.traits import (
    Decreasing as Decreasing,
)
from .._plugins.traits import (
    Discrete as Discrete,
)
from .._plugins.traits import (
    Elementwise as Elementwise,
)
from .._plugins.traits import (
    Increasing as Increasing,
)
from .._plugins.traits import (
    Indexing as Indexing,
)
from .._plugins.traits import (
    Linear as Linear,
)
from .._plugins.traits import (
    Reduction as Reduction,
)
from .._plugins.traits import (
    Structural as Structural,
)
from .._plugins.traits import (
    Trait as Trait,
)
from .._plugins.traits import (
    ZeroPreserving as ZeroPreserving,
)
from .._xla.key_reuse import (
    reuse_rules as reuse_rules,
)
from .._xla.lower import (
    eager_rules as eager_rules,
)
from .._xla.lower import (
    lower_rules as lower_rules,
)
from .._xla.physical import (
    physical_rules as physical_rules,
)

__all__ = [
    "PLUGIN_API",
    "AnyElement",
    "Collective",
    "Cumulative",
    "Decreasing",
    "Discrete",
    "Elementwise",
    "Increasing",
    "Indexing",
    "Linear",
    "Reduction",
    "RuleTable",
    "Structural",
    "Trait",
    "ZeroPreserving",
    "core_version",
    "eager_rules",
    "expand_rules",
    "lower_rules",
    "parallel_rules",
    "physical_rules",
    "resolve",
    "reuse_rules",
]
