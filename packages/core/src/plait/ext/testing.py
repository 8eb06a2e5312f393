"""Tools for writing laws: see `plait.testing.conformance`.

Invariant: nothing is defined here.
"""

from ..testing.oracle import ArrayOracle
from ..testing.report import Inapplicable, agree, tolerance

__all__ = [
    "ArrayOracle",
    "Inapplicable",
    "agree",
    "tolerance",
]
