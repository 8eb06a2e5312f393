"""The primitives of the namespace `special`, for modules that need all of them by name.

Invariant: importing this module defines every primitive of `special`.
"""

from . import (
    bessel,
    error_functions,
    functions,
    hypergeometric,
    incomplete,
    integrals,
    sampling,
    trigonometric_integrals,
)

__all__ = [
    "bessel", "error_functions", "functions", "hypergeometric", "incomplete", "integrals",
    "sampling", "trigonometric_integrals",
]  # fmt: skip
