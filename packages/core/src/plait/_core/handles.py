"""Handles: values that are not data, but stand for state that a plugin keeps.

Effects of the plugin's own primitives read and write that state.  A program may have a handle among
its operands.  The caller that applies an operation with such a program delegates to the handle, so
that no transformation, lowering rule or executable meets one.

Invariant: an operation with programs that is given a handle is applied by `Handle.through`, and no
program returns one.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from .._base.errors import PlaitError
from .interpreter import GROUND, Interpreter, Params, Tracer, Value, use

__all__ = ["Handle", "apply_through", "as_handle", "handle_among", "is_lasting"]


class Handle(Tracer):
    """A value that stands for something kept elsewhere.  Subclasses define all methods.

    Its type is opaque, and `by` is the interpreter that was current where it was made.  A subclass
    registers in `Handle.of_dtype` a function that makes a handle from a variable of its type.  A
    function that is staged receives that handle in place of the variable.

    Attributes:
      of_dtype: dtype -> function of a variable that returns the handle for it.
    """

    __slots__ = ()
    of_dtype: ClassVar[dict[Any, Callable[[Any], "Handle"]]] = {}

    def atom(self, stage: Interpreter) -> Any:
        """Return the atom by which equations of a stage read it.

        None if it belongs to an interpreter around the stage, which then captures it.  Raises if it
        may not be read there.
        """
        raise PlaitError(f"{type(self).__name__} has no method `atom`", fix="define it")

    def through(self, prim: object, args: Sequence[Any], params: Params) -> list[Any]:
        """Apply an operation with programs that has handles among its operands."""
        raise PlaitError(f"{type(self).__name__} has no method `through`", fix="define it")

    def contents(self) -> Any:
        """Return the value that it stands for now."""
        raise PlaitError(f"{type(self).__name__} has no method `contents`", fix="define it")

    def replace(self, value: object) -> None:
        """Make it stand for another value of the same type."""
        raise PlaitError(f"{type(self).__name__} has no method `replace`", fix="define it")

    def like(self, value: object) -> "Handle":
        """Return a new handle of this kind, of the current interpreter, that stands for `value`."""
        raise PlaitError(f"{type(self).__name__} has no method `like`", fix="define it")

    def ended(self) -> Any:
        """Return the value that it stands for, and refuse all use from now on."""
        raise PlaitError(f"{type(self).__name__} has no method `ended`", fix="define it")

    def lend(self, begin: bool) -> None:
        """Refuse all use from now on (`begin`), or allow it again.  Raises if use is already
        refused."""
        raise PlaitError(f"{type(self).__name__} has no method `lend`", fix="define it")

    def refused(self, by: object) -> PlaitError:
        """Return the error of a function, named by `by`, that takes arrays only."""
        return PlaitError(f"{by} takes no {type(self).__name__}", fix="give an array")


def as_handle(v: Value) -> Any:
    """Return the argument that a staged function receives for an input: a handle for a variable of
    a type that has handles, else the variable."""
    make = Handle.of_dtype.get(v.aval.dtype)
    return v if make is None else make(v)


def handle_among(args: Iterable[Any]) -> Handle | None:
    """Return the first handle among operands; None without one."""
    for a in args:
        if isinstance(a, Handle):
            return a
    return None


def apply_through(
    by: Interpreter, handle: Handle, prim: Any, args: Sequence[Any], params: Params
) -> list[Any]:
    """Apply an operation with a handle among its operands, under an interpreter."""
    with use(by):
        return handle.through(prim, args, params)


def is_lasting(x: Tracer | Value) -> bool:
    """Return whether a captured value is the same in all calls of a function: it belongs to no
    transformation."""
    return not isinstance(x, Tracer) or (isinstance(x, Handle) and x.by is GROUND)
