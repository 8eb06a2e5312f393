"""Results that shall lie on devices in a certain way.

Invariant: what a placement is, and how a value is brought there, is the affair of the package that
offers placements.
"""

from typing import Any

from .._plugins.metadata import resolve


def placed(out: Any, sharding: Any) -> Any:
    """`out`, a tree, which the compiler shall lay out as `sharding` says if one is given."""
    return out if sharding is None else resolve("with_sharding_constraint")(out, sharding)
