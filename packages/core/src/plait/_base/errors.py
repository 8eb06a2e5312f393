"""Every exception a user can meet.

A message has three parts: what happened; where, in the user's file and line; what to write.

Invariant: a `PlaitError` finds the user's line by itself when it is made, so that no caller has
to remember to say it.
"""

from typing import Any

from .source import here, user_line
from .tracebacks import watch_display

__all__ = [
    "ArgumentError",
    "AxisError",
    "CacheWarning",
    "ClosedOver",
    "ConcretizationError",
    "ConcretizationTypeError",
    "CopyError",
    "DeletedArrayError",
    "DimMismatch",
    "DuplicateRule",
    "JaxRuntimeError",
    "KeyReuseError",
    "MissingPlatform",
    "MissingPlugin",
    "MissingRule",
    "NanError",
    "NoArray",
    "NonConcreteBooleanIndexError",
    "NotAnArrayError",
    "NotAnIndexError",
    "OperandTypeError",
    "OutOfBounds",
    "PlacementError",
    "ProgramError",
    "PluginError",
    "PluginWarning",
    "RegistrationError",
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
    "UnknownSlice",
    "PlaitError",
]


class PlaitError(Exception):
    """Base of all errors of Plait.

    Args:
      what: what happened.
      where: a location token (`plait._base.source.here()`); by default, where the error is made.
      fix: what to write instead.
    """

    def __init__(self, what: str, *, where: Any = None, fix: str | None = None):
        self.what, self.fix = what, fix
        self.where = user_line(where) if where is not None else user_line(here())
        self._told = where is not None
        watch_display()
        super().__init__(what)

    def about(self, where: Any) -> "PlaitError":
        """Return this error, pointing to `where` (a location token) unless it was made with a
        place of its own: an operation may be refused long after the line that staged it ran."""
        line = user_line(where)
        if not self._told and line != "<unknown>":
            self.where, self._told = line, True
        return self

    def of(self, name: str) -> "PlaitError":
        """Return this error, which says of which array among many it is: `args[0]['w']`."""
        self.what = f"{self.what} ({name})"
        self.args = (self.what,)
        return self

    def __str__(self) -> str:
        lines = [self.what]
        if self.where != "<unknown>":
            lines.append(f"  at {self.where}")
        if self.fix:
            lines.append("  " + self.fix.replace("\n", "\n  "))
        return "\n".join(lines)


class MissingRule(PlaitError, NotImplementedError):
    """A transformation met a primitive it has no rule for."""


class NanError(PlaitError, FloatingPointError):
    """An operation made a nan or an infinity, inside `plait.debug.nans()` or `infs()`."""


class UndefinedRule(MissingRule, AttributeError):
    """A function that needs a rule of its own was called before the rule was defined."""


class RegistrationError(PlaitError, TypeError):
    """A rule, a table, a primitive or a carrier that can not be what it is registered as."""


class DuplicateRule(RegistrationError):
    """Two modules gave a rule for the same cell, or two things of one name."""


class MissingPlugin(PlaitError, AttributeError):
    """A public name of a distribution that is not installed."""


class PluginError(PlaitError, ImportError):
    """An installed plugin can not be used."""


class PluginWarning(UserWarning):
    """A plugin that might have had something to say could not be loaded; nothing depends on it."""


class CacheWarning(UserWarning):
    """Executables can not be kept on disk, or one that was can not be used; it is compiled."""


class UnexpectedTracerError(PlaitError):
    """A traced value was used outside the transformation it belongs to."""


class ClosedOver(UnexpectedTracerError, MissingRule):
    """A function with a rule of its own closes over a value that the rule does not take."""


class ConcretizationError(PlaitError, TypeError):
    """Python asked for the value of something that has only a type."""


class UnknownMask(ConcretizationError, IndexError):
    """A boolean index whose values are not known, so nor is how many elements it picks."""


class UnknownSlice(ConcretizationError, IndexError):
    """A slice whose ends are not known, so nor is how many elements it picks."""


class NoArray(ConcretizationError, AttributeError):
    """What only an array in memory has was asked of a value that is traced."""


class TypeRule(PlaitError, TypeError, ValueError):
    """Something that a primitive or a function does not accept; the base of the three mistakes."""


class OperandTypeError(TypeRule):
    """Operands whose elements a primitive or a function does not take, or that are no arrays."""


class NotAnArrayError(OperandTypeError):
    """Something that was to be an operand, and that no array can be made of without asking."""


class NotAnIndexError(OperandTypeError, IndexError):
    """Something in a subscript that is no index of arrays: a float, a string, ..."""


class ShapeError(TypeRule):
    """Operands whose shapes, sizes or numbers of axes do not fit."""


class ArgumentError(TypeRule):
    """Arguments that are no operands and make no sense: flags, modes, functions, roles of
    arguments (static, donated)."""


class ProgramError(PlaitError, ValueError):
    """A Program, or the text of one, is not well formed."""


class AxisError(PlaitError, ValueError, IndexError):
    """An axis out of range, or axes that do not fit together."""


class PlacementError(PlaitError, ValueError):
    """Arrays on different devices that one computation was given."""


class MissingPlatform(PlacementError, RuntimeError):
    """A platform that this process does not compute on."""


class SubscriptError(PlaitError, IndexError):
    """An index that an array does not have, or that is no index."""


class OutOfBounds(TypeRule, OverflowError):
    """A Python integer that the dtype it is to have does not hold."""


class TreeMismatch(PlaitError, ValueError, TypeError):
    """Two trees that should have one structure do not."""


class CopyError(PlaitError, BufferError, ValueError):
    """Memory was to be shared, and can not be."""


class DeletedArrayError(PlaitError, RuntimeError):
    """An array whose memory was donated or deleted."""


class RuntimeFailure(PlaitError, RuntimeError):
    """A computation that failed, or a program that the compiler refused."""


class KeyReuseError(PlaitError, RuntimeError):
    """A random key that was used, and is used again."""


class UndecidedDim(PlaitError, TypeError):
    """A question about symbolic dimensions that has no answer for all their sizes."""


class DimMismatch(PlaitError, ValueError, TypeError):
    """Sizes that do not fit together, or that the symbolic dimensions can not have."""


ConcretizationTypeError = ConcretizationError
TracerArrayConversionError = ConcretizationError
TracerBoolConversionError = ConcretizationError
TracerIntegerConversionError = ConcretizationError
NonConcreteBooleanIndexError = UnknownMask
JaxRuntimeError = RuntimeFailure
"""Errors under the names that JAX has for them."""
