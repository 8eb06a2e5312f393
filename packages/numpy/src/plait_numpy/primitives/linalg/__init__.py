"""Primitives of the namespace `linalg`: factorisations of matrices, and systems of equations.

Invariant: nothing of core's other primitives imports this package.
"""
