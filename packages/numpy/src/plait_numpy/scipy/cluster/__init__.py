"""Clustering, with the names of scipy.cluster.

Invariant: importing this imports all of its modules.
"""

from . import vq

__all__ = ["vq"]
