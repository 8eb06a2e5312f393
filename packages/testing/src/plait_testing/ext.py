"""Tools for writing laws: see `plait.testing.conformance`.

Invariant: nothing is defined here.
"""

from .oracle import ArrayOracle
from .report import Inapplicable, agree, tolerance

__all__ = ["ArrayOracle", "Inapplicable", "agree", "tolerance"]
