"""All families of primitives, for modules that need every primitive by name.

The parser of program texts uses it, and so does the matrix of primitives and tables.  Other
modules import the families that they use.

Invariant: importing this module defines every primitive of core.
"""

from . import (
    accuracy,
    argreduction,
    callbacks,
    checks,
    collective,
    complex_elementary,
    composed,
    composite,
    contraction,
    control_flow,
    conversion,
    convolution,
    cumulative,
    dynamic_slicing,
    elementwise,
    foreign_calls,
    fourier,
    index_access,
    index_plans,
    indexing,
    keys,
    mapping,
    opaque,
    platforms,
    reduction,
    rng,
    scattering,
    shape,
    sizes,
    sliding,
    sorting,
    subscript,
    taking,
    windows,
)

__all__ = [
    "accuracy", "argreduction", "callbacks", "checks", "collective", "complex_elementary",
    "composed", "composite", "contraction", "control_flow", "conversion", "convolution",
    "cumulative", "dynamic_slicing", "elementwise", "foreign_calls", "fourier", "index_access",
    "index_plans", "indexing", "keys", "mapping", "opaque", "platforms", "reduction",
    "rng", "scattering", "shape", "sizes", "sliding", "sorting", "subscript", "taking", "windows",
]  # fmt: skip
