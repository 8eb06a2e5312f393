"""Errors in three parts, and the places in the user's code that they name.

Invariant: nothing is defined here.
"""

from .._base.argument_names import (
    Namer,
    argument_path,
    names_at,
    names_in_call,
    names_of_arguments,
    numbers_of,
    parameter_names,
)
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
from .._base.source import (
    below_hidden,
    here,
    hidden,
    hide,
    user_frames,
    user_line,
    warn,
    where_defined,
)
from .._base.tracebacks import border, watch_display
from .._plugins.metadata import install_command

__all__ = [
    "border", "NoArray", "NotAnArrayError", "ShapeError", "OperandTypeError", "ArgumentError",
    "AxisError", "ConcretizationError", "DimMismatch", "DuplicateRule", "IrreversibleLoop",
    "MissingRule", "PlaitError", "TreeMismatch", "TypeRule", "UndecidedDim", "UndefinedRule",
    "Namer", "argument_path", "below_hidden", "here", "hidden", "hide", "install_command",
    "names_at", "names_in_call", "names_of_arguments", "numbers_of", "parameter_names",
    "user_frames", "user_line", "warn", "watch_display", "where_defined",
]  # fmt: skip
