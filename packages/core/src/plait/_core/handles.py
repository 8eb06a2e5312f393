"""Handles: values that stand for something a plugin keeps, and are no data.

What they stand for is read and written by effects of the plugin's own primitives.  A program may
have a handle among its operands; whoever applies the operation that has such a program lets the
handle say how that is done, so that no transformation, lowering rule or executable meets one.

Invariant: an operation with programs that is given a handle is applied by `Handle.through`, and no
program returns one.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from .._base.errors import PlaitError
from .interpreter import GROUND, Interpreter, Params, Tracer, use

__all__ = ["Handle", "apply_through", "as_handle", "handle_among", "is_lasting"]


class Handle(Tracer):
    """A value that stands for something kept elsewhere.  Subclasses define all methods.

    Its type is opaque, and `by` is the interpreter that is current where it was made.  A class says
    in `Handle.of_dtype` how a handle is made of a variable of such a type: a function that is
    staged is given that for the variable.

    Attributes:
      of_dtype: dtype -> function of a variable that returns the handle for it.
    """

    __slots__ = ()
    of_dtype: ClassVar[dict[Any, Callable[[Any], "Handle"]]] = {}

    def atom(self, stage: Interpreter) -> Any:
        """Return the atom by which equations of a stage read it, or None, where it is of an
        interpreter around the stage: it is captured then.  Raises what is wrong with reading it."""
        raise PlaitError(f"{type(self).__name__} has no method `atom`", fix="define it")

    def through(self, prim: Any, args: Sequence[Any], params: Params) -> list[Any]:
        """Apply an operation with programs that has handles among its operands."""
        raise PlaitError(f"{type(self).__name__} has no method `through`", fix="define it")

    def contents(self) -> Any:
        """Return the value that it stands for now."""
        raise PlaitError(f"{type(self).__name__} has no method `contents`", fix="define it")

    def replace(self, value: Any) -> None:
        """Let it stand for a value of the same type."""
        raise PlaitError(f"{type(self).__name__} has no method `replace`", fix="define it")

    def like(self, value: Any) -> "Handle":
        """Return a new handle of this kind, at home here, that stands for a value of any type."""
        raise PlaitError(f"{type(self).__name__} has no method `like`", fix="define it")

    def ended(self) -> Any:
        """Return the value that it stands for, and let nobody use it again."""
        raise PlaitError(f"{type(self).__name__} has no method `ended`", fix="define it")

    def lend(self, begin: bool) -> None:
        """Let nobody use it from now on, or let it be used again.  Raises if it is not used by
        anybody already."""
        raise PlaitError(f"{type(self).__name__} has no method `lend`", fix="define it")

    def refused(self, by: object) -> PlaitError:
        """Return the error for what takes arrays only, and is named by `by`."""
        return PlaitError(f"{by} takes no {type(self).__name__}", fix="give an array")


def as_handle(v: Any) -> Any:
    """Return what a staged function is given for an input: the handle for a variable of a type
    that has handles, else the variable."""
    make = Handle.of_dtype.get(v.aval.dtype)
    return v if make is None else make(v)


def handle_among(args: Iterable[Any]) -> Handle | None:
    """Return the first handle among operands; None if there is none."""
    for a in args:
        if isinstance(a, Handle):
            return a
    return None


def apply_through(
    by: Interpreter, handle: Handle, prim: Any, args: Sequence[Any], params: Params
) -> list[Any]:
    """Apply an operation with programs to operands with a handle, under an interpreter."""
    with use(by):
        return handle.through(prim, args, params)


def is_lasting(x: Any) -> bool:
    """Return whether a captured value is the same for all calls of a function: it belongs to no
    transformation."""
    return not isinstance(x, Tracer) or (isinstance(x, Handle) and x.by is GROUND)
