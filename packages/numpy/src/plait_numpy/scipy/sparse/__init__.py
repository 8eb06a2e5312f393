"""Linear equations with matrices given as functions, with the names of scipy.sparse.

Invariant: importing this imports all of its modules.
"""

from . import linalg

__all__ = ["linalg"]
