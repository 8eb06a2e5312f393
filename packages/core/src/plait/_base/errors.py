"""Every exception that Plait raises for users.

A message has three parts: what happened; where, in the user's file and line; what to write.

Invariant: a `PlaitError` finds the user's line by itself when it is made, so that no caller needs
to pass it.
"""

from collections.abc import Callable
from typing import Any, Self

from .lazy import later
from .source import defined_at, here, user_line
from .tracebacks import watch_display

__all__ = [
    "ArgumentError", "AxisError", "CacheWarning", "CarrierError", "ClosedOver",
    "ConcretizationError", "ConcretizationTypeError", "CopyError", "DeletedArrayError",
    "DimMismatch", "DuplicateRule", "IrreversibleLoop", "JaxRuntimeError", "KeyReuseError",
    "LateSetting", "MissingAttribute", "MissingPlatform", "MissingPlugin", "MissingRule",
    "NanError", "NoArray", "NonConcreteBooleanIndexError", "NotAnArrayError", "NotAnIndexError",
    "OperandTypeError", "OutOfBounds", "PlacementError", "PluginError", "PluginWarning",
    "ProgramError", "PromotionWarning", "PurityWarning", "RegistrationError", "RuleLost",
    "RuntimeFailure", "RuntimeRefusal", "ShapeError", "SubscriptError",
    "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError",
    "TransferError", "TreeMismatch", "TypeRule", "UnboundAxisName", "UndecidedDim", "UndefinedRule",
    "UnexpectedTracerError", "UnknownFormat", "UnknownMask", "UnknownSlice", "Unsupported",
    "PlaitError",
]  # fmt: skip


class PlaitError(Exception):
    """Base of all errors of Plait.

    Args:
      what: what happened.
      where: a location token (`plait._base.source.here()`), or the text `file:line`; by default,
        where the error is made.
      fix: what to write instead, or a function that returns it, called when it is read.
    """

    where: str
    args: tuple[Any, ...]
    _asked: tuple[Any, ...] = ()
    """The object whose name is to be found, if any."""
    _given: tuple[str, str] = "", ""
    """The text before the name that was found was added, and that name."""

    def __init__(
        self, what: str, *, where: object = None, fix: str | Callable[[], str] | None = None
    ):
        self._what, self._fix = what, fix
        self.where, self._told = _line_of(where), where is not None
        watch_display()
        super().__init__(what)

    @property
    def what(self) -> str:
        """The text of what happened, with the name that `given` asked for."""
        if self._asked:
            (x,), self._asked = self._asked, ()
            name = later("_base.argument_names").name_given(x, self.__traceback__)
            if name:
                bare = self._what
                self.of(f"argument `{name}`")._given = bare, name
        return self._what

    @what.setter
    def what(self, text: str) -> None:
        self._what = text

    @property
    def fix(self) -> str | None:
        """The text to write instead."""
        if callable(self._fix):
            self._fix = self._fix()
        return self._fix

    @fix.setter
    def fix(self, text: str | None) -> None:
        self._fix = text

    def __reduce__(self) -> str | tuple[Any, ...]:
        _ = self.fix, self.what  # as text: what it is computed from may be tied to this process
        return _unpickled, (type(self), self.args), self.__dict__

    def about(self, where: object) -> "PlaitError":
        """Return this error, pointing to `where` (a location token) unless it was made with a
        location.

        An operation may be refused long after the line that staged it ran.
        """
        line = user_line(where)
        if not self._told and line != "<unknown>":
            self.where, self._told = line, True
        return self

    def defined(self, f: Any) -> "PlaitError":
        """Return this error, pointing to the definition of a function whose result it refuses."""
        line = defined_at(f)
        if line is not None:
            self.where, self._told = line, True
        return self

    def of(self, name: str) -> Self:
        """Return this error, with the name of the array among many that it concerns:
        `args[0]['w']`.

        An error has one name.  The one that `given` has found stays, unless this one leads further
        into the same argument.
        """
        what, (bare, known) = self.what, self._given
        if not known or f"`{known.partition('[')[0]}" in name:
            self.what = f"{bare or what} ({name})"
            self._given = "", ""
            self.args = (self.what,)
        return self

    def given(self, x: object) -> Self:
        """Return this error, with the name of the argument that `x` is of the array function which
        the user's code has called, if it is one: `axes[1]`.

        The name is looked for when the text is read, or the error leaves for user code, since many
        errors do not: Plait catches them to try something else.
        """
        self._asked = (x,)
        return self

    def __repr__(self) -> str:
        _ = self.what
        return super().__repr__()

    def __str__(self) -> str:
        lines = [self.what]
        if self.where != "<unknown>":
            lines.append(f"  at {self.where}")
        if self.fix:
            lines.append("  " + self.fix.replace("\n", "\n  "))
        return "\n".join(lines)


def _line_of(where: object) -> str:
    return where if isinstance(where, str) else user_line(here() if where is None else where)


def _unpickled(kind: type[PlaitError], args: tuple[Any, ...]) -> PlaitError:
    """Return an error without its attributes; `__init__` of its class may take other arguments."""
    watch_display()
    error = kind.__new__(kind, *args)
    error.args = args  # which ImportError sets later
    return error


class MissingRule(PlaitError, NotImplementedError):
    """A transformation met a primitive it has no rule for."""


class NanError(PlaitError, FloatingPointError, ZeroDivisionError):
    """An operation made a nan or an infinity, inside `plait.debug.nans()` or `infs()`."""


class UndefinedRule(MissingRule, AttributeError):
    """A function that needs a rule of its own was called before the rule was defined."""


class RegistrationError(PlaitError, TypeError):
    """A rule, a table, a primitive or a carrier that cannot be registered as given."""


class DuplicateRule(RegistrationError):
    """Two modules gave a rule for the same cell, or defined one name twice."""


class MissingPlugin(PlaitError, AttributeError):
    """A public name of a distribution that is not installed.

    Args:
      distribution: the distribution that has the name, if it is known.
    """

    def __init__(
        self,
        what: str,
        *,
        where: Any = None,
        fix: str | Callable[[], str] | None = None,
        distribution: str | None = None,
    ):
        super().__init__(what, where=where, fix=fix)
        self.distribution = distribution


class MissingAttribute(PlaitError, AttributeError):
    """A method that arrays of other libraries have, and those of Plait have by another name."""


class PluginError(PlaitError, ImportError):
    """An installed plugin cannot be used."""


class PluginWarning(UserWarning):
    """A plugin that might have registered something could not be loaded; nothing depends on it."""


class RuleLost(UserWarning):
    """A transformation applied a function without its custom rule, which it does not keep."""


class PromotionWarning(UserWarning):
    """An array of numpy made an operation of 32 bits one of 64."""


class PurityWarning(UserWarning):
    """A value that a function read while it was traced has changed, which its program ignores."""


class CacheWarning(UserWarning):
    """Executables cannot be kept on disk, or a kept one cannot be used and is compiled again."""


class UnexpectedTracerError(PlaitError):
    """A traced value was used outside the transformation it belongs to."""


class ClosedOver(UnexpectedTracerError, MissingRule):
    """A function with a rule of its own closes over a value that the rule does not take."""


class ConcretizationError(PlaitError, TypeError):
    """Python needed the value of something that has only a type."""


class UnknownFormat(PlaitError):
    """A format by `%` needed the value of something that has only a type.

    It is not a TypeError: Python replaces one by its own, which names neither argument nor line.
    """


class UnknownMask(ConcretizationError, IndexError):
    """A boolean index with unknown values, so that the number of picked elements is unknown."""


class UnknownSlice(ConcretizationError, IndexError):
    """A slice with unknown ends, so that the number of picked elements is unknown."""


class NoArray(ConcretizationError, AttributeError):
    """An attribute that only arrays in memory have was read from a traced value."""


class TypeRule(PlaitError, TypeError, ValueError):
    """Operands or arguments that a primitive or function does not accept; base of finer classes."""


class OperandTypeError(TypeRule):
    """Operands whose elements a primitive or a function does not take, or that are not arrays."""


class NotAnArrayError(OperandTypeError):
    """An operand that is not an array and is not converted to one implicitly."""


class NotAnIndexError(OperandTypeError, IndexError):
    """An object in a subscript that cannot index arrays: a float, a string, ..."""


class ShapeError(TypeRule):
    """Operands whose shapes, sizes or numbers of axes do not fit."""


class ArgumentError(TypeRule):
    """Arguments that are not operands and make no sense: flags, modes, functions, roles of
    arguments (static, donated)."""


class CarrierError(ArgumentError):
    """A method of a carrier, or a rule, returned a wrong value: a mistake of its author.

    Args:
      what: what happened.
      at: the file and line of the author.
      fix: what to write instead.
    """

    def __init__(self, what: str, at: str, fix: str):
        super().__init__(what, fix=fix)
        self.where, self._told = at, True


class ProgramError(PlaitError, ValueError):
    """A Program, or the text of one, is not well formed."""


class AxisError(PlaitError, ValueError, IndexError):
    """An axis out of range, or axes that do not fit together."""


class UnboundAxisName(AxisError, NameError):
    """A name of an axis that is not bound where it is used."""


class IrreversibleLoop(MissingRule, ValueError):
    """A loop of unknown length that was differentiated in reverse."""


class PlacementError(PlaitError, ValueError):
    """Arrays on different devices were passed to one computation."""


class MissingPlatform(PlacementError, RuntimeError):
    """A platform that this process does not compute on."""


class TransferError(PlaitError, RuntimeError):
    """A copy between the host and devices that `transfer_guard` refuses."""


class SubscriptError(PlaitError, IndexError):
    """An index that an array does not have, or an object that is not an index."""


class OutOfBounds(TypeRule, OverflowError):
    """A Python integer that does not fit in its dtype."""


class TreeMismatch(PlaitError, ValueError, TypeError):
    """Two trees that should have one structure do not."""


class CopyError(PlaitError, BufferError, ValueError):
    """Memory that cannot be shared as requested."""


class DeletedArrayError(PlaitError, RuntimeError):
    """An array whose memory was donated or deleted."""


class RuntimeFailure(PlaitError, RuntimeError):
    """A computation that failed, or a program that the compiler refused."""


class RuntimeRefusal(ArgumentError, RuntimeFailure):
    """Arguments that the compiler or the runtime refuses: its options, memory donated twice."""


class Unsupported(ArgumentError, NotImplementedError):
    """Arguments that mean something in numpy, and nothing for arrays that are never written to or
    have one order in memory: `out=`, `order="K"`."""


class LateSetting(PlaitError, RuntimeError):
    """A setting that cannot change any more, because something was made by it."""


class KeyReuseError(PlaitError, RuntimeError):
    """A random key that is used again."""


class UndecidedDim(PlaitError, TypeError):
    """A question about symbolic dimensions that has no answer for all their sizes.

    `asked` is (polynomial, relation to 0, scope) of the question, and `question` is its text; both
    are None for a size that must be a number.
    """

    asked: Any = None
    question: str | None = None


class DimMismatch(PlaitError, ValueError, TypeError):
    """Sizes that do not fit together, or that the symbolic dimensions cannot have."""


ConcretizationTypeError = ConcretizationError
TracerArrayConversionError = ConcretizationError
TracerBoolConversionError = ConcretizationError
TracerIntegerConversionError = ConcretizationError
NonConcreteBooleanIndexError = UnknownMask
JaxRuntimeError = RuntimeFailure
"""Errors under the names that JAX has for them."""

for _name in __all__:  # tracebacks, pickles and pages give the name that users import
    globals()[_name].__module__ = "plait.errors"
