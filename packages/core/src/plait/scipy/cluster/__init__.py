"""Clusters, named as in scipy.cluster.

Invariant: importing this imports what it holds.
"""

from . import vq

__all__ = ["vq"]
