"""What laws are written with: see `plait.testing.conformance`.

Invariant: nothing is defined here.
"""

from ..testing.oracle import (
    ArrayOracle as ArrayOracle,
)
from ..testing.report import (
    Inapplicable as Inapplicable,
)
from ..testing.report import (
    agree as agree,
)
from ..testing.report import (
    tolerance as tolerance,
)

__all__ = [
    "ArrayOracle",
    "Inapplicable",
    "agree",
    "tolerance",
]
