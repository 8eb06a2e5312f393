"""The primitives of the namespace `linalg`, for modules that need all of them by name.

Invariant: importing this module defines every primitive of `linalg`.
"""

from . import factorisation, matrix_equations, matrix_inverses, solving, spectral

__all__ = ["factorisation", "matrix_equations", "matrix_inverses", "solving", "spectral"]
