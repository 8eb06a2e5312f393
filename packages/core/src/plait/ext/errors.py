"""Errors in three parts, and the places in the user's code that they name.

Invariant: nothing is defined here.
"""

from .._base.errors import (
    ArgumentError as ArgumentError,
)
from .._base.errors import (
    AxisError as AxisError,
)
from .._base.errors import (
    DimMismatch as DimMismatch,
)
from .._base.errors import (
    DuplicateRule as DuplicateRule,
)
from .._base.errors import (
    MissingRule as MissingRule,
)
from .._base.errors import (
    OperandTypeError as OperandTypeError,
)
from .._base.errors import (
    PlaitError as PlaitError,
)
from .._base.errors import (
    ShapeError as ShapeError,
)
from .._base.errors import (
    TreeMismatch as TreeMismatch,
)
from .._base.errors import (
    TypeRule as TypeRule,
)
from .._base.errors import (
    UndecidedDim as UndecidedDim,
)
from .._base.errors import (
    UndefinedRule as UndefinedRule,
)
from .._base.source import (
    here as here,
)
from .._base.source import (
    hide as hide,
)
from .._base.source import (
    user_frames as user_frames,
)
from .._base.source import (
    user_line as user_line,
)
from .._base.source import (
    where_defined as where_defined,
)

__all__ = [
    "ShapeError",
    "OperandTypeError",
    "ArgumentError",
    "AxisError",
    "DimMismatch",
    "DuplicateRule",
    "MissingRule",
    "PlaitError",
    "TreeMismatch",
    "TypeRule",
    "UndecidedDim",
    "UndefinedRule",
    "here",
    "hide",
    "user_frames",
    "user_line",
    "where_defined",
]
