"""Conversion of StableHLO to graphs of ordinary TensorFlow operations, by one rule per operation.

    table      rules: operation of StableHLO -> operations of TensorFlow
    walking    applies the rules, operation by operation, and checks result types
    named      operations that TensorFlow has and StableHLO expands
    sizes, integers
               helpers of the rules
    elementwise, conversions, shapes, contractions, convolutions, reductions, windows, sorting,
    indexing, control
               the rules by family

Invariant: a graph computes the same results as the module; otherwise making it raises an error that
names the unsupported operation.
"""

from . import (  # noqa: F401  (they fill the table)
    contractions,
    control,
    conversions,
    convolutions,
    elementwise,
    indexing,
    reductions,
    shapes,
    sorting,
    windows,
)
from .named import differentiable_there
from .table import GRAPHS, REFUSED
from .walking import Walk

__all__ = ["GRAPHS", "REFUSED", "Walk", "differentiable_there"]
