"""Every exception a user can meet.

Invariant: nothing is defined here.
"""

from ._base.errors import (
    ArgumentError as ArgumentError,
)
from ._base.errors import (
    AxisError as AxisError,
)
from ._base.errors import (
    ConcretizationError as ConcretizationError,
)
from ._base.errors import (
    ConcretizationTypeError as ConcretizationTypeError,
)
from ._base.errors import (
    CopyError as CopyError,
)
from ._base.errors import (
    DeletedArrayError as DeletedArrayError,
)
from ._base.errors import (
    DimMismatch as DimMismatch,
)
from ._base.errors import (
    DuplicateRule as DuplicateRule,
)
from ._base.errors import (
    JaxRuntimeError as JaxRuntimeError,
)
from ._base.errors import (
    KeyReuseError as KeyReuseError,
)
from ._base.errors import (
    MissingPlugin as MissingPlugin,
)
from ._base.errors import (
    MissingRule as MissingRule,
)
from ._base.errors import (
    NanError as NanError,
)
from ._base.errors import (
    NonConcreteBooleanIndexError as NonConcreteBooleanIndexError,
)
from ._base.errors import (
    OperandTypeError as OperandTypeError,
)
from ._base.errors import (
    OutOfBounds as OutOfBounds,
)
from ._base.errors import (
    PlacementError as PlacementError,
)
from ._base.errors import (
    PlaitError as PlaitError,
)
from ._base.errors import (
    PluginError as PluginError,
)
from ._base.errors import (
    ProgramError as ProgramError,
)
from ._base.errors import (
    RuntimeFailure as RuntimeFailure,
)
from ._base.errors import (
    ShapeError as ShapeError,
)
from ._base.errors import (
    SubscriptError as SubscriptError,
)
from ._base.errors import (
    TracerArrayConversionError as TracerArrayConversionError,
)
from ._base.errors import (
    TracerBoolConversionError as TracerBoolConversionError,
)
from ._base.errors import (
    TracerIntegerConversionError as TracerIntegerConversionError,
)
from ._base.errors import (
    TreeMismatch as TreeMismatch,
)
from ._base.errors import (
    TypeRule as TypeRule,
)
from ._base.errors import (
    UndecidedDim as UndecidedDim,
)
from ._base.errors import (
    UndefinedRule as UndefinedRule,
)
from ._base.errors import (
    UnexpectedTracerError as UnexpectedTracerError,
)
from ._base.errors import (
    UnknownMask as UnknownMask,
)

__all__ = [
    "ArgumentError",
    "AxisError",
    "ConcretizationError",
    "ConcretizationTypeError",
    "CopyError",
    "DeletedArrayError",
    "DimMismatch",
    "DuplicateRule",
    "JaxRuntimeError",
    "KeyReuseError",
    "MissingPlugin",
    "MissingRule",
    "NanError",
    "NonConcreteBooleanIndexError",
    "OperandTypeError",
    "OutOfBounds",
    "PlacementError",
    "PlaitError",
    "PluginError",
    "ProgramError",
    "RuntimeFailure",
    "ShapeError",
    "SubscriptError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "TreeMismatch",
    "TypeRule",
    "UndecidedDim",
    "UndefinedRule",
    "UnexpectedTracerError",
    "UnknownMask",
]
