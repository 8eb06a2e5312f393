"""Linear equations with matrices that are only known as functions, named as in scipy.sparse.

Invariant: importing this imports what it holds.
"""

from . import linalg

__all__ = ["linalg"]
