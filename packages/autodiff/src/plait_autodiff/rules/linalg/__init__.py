"""Derivative rules of the primitives of `linalg`, by family.

Invariant: importing this package registers rules and does nothing else.
"""

from . import factorisation, matrix_equations, matrix_inverses, solving, spectral

__all__ = ["factorisation", "matrix_equations", "matrix_inverses", "solving", "spectral"]
