"""Errors in three parts, and the places in the user's code that they name.

Invariant: nothing is defined here.
"""

from .._base.errors import (
    ArgumentError,
    AxisError,
    ConcretizationError,
    DimMismatch,
    DuplicateRule,
    IrreversibleLoop,
    MissingRule,
    NoArray,
    NotAnArrayError,
    OperandTypeError,
    PlaitError,
    ShapeError,
    TreeMismatch,
    TypeRule,
    UndecidedDim,
    UndefinedRule,
)
from .._base.source import here, hide, user_frames, user_line, warn, where_defined
from .._base.tracebacks import border, watch_display

__all__ = [
    "border", "NoArray", "NotAnArrayError", "ShapeError", "OperandTypeError", "ArgumentError",
    "AxisError", "ConcretizationError", "DimMismatch", "DuplicateRule", "IrreversibleLoop",
    "MissingRule", "PlaitError", "TreeMismatch", "TypeRule", "UndecidedDim", "UndefinedRule",
    "here", "hide", "user_frames", "user_line", "warn", "watch_display", "where_defined",
]  # fmt: skip
