"""Graphs of ordinary operations of TensorFlow's, made of StableHLO: one rule for each operation.

    table      rules: operation of StableHLO -> operations of TensorFlow
    walking    operations are done one after the other; types are held against what is said
    named      what is one operation of TensorFlow's and several of StableHLO's
    sizes, integers
               what rules have in common
    elementwise, conversions, shapes, contractions, convolutions, reductions, windows, sorting,
    indexing, control
               the rules by family

Invariant: a graph computes what the module computes, or making it is refused by the name of the
operation that stands in the way.
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
