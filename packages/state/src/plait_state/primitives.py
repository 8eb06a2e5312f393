"""Reading and writing a reference, where that is recorded in a program.

Parts of the contents are read and written by the operations that arrays have: these two take and
give them whole, and the compiler sees what is used.

Invariant: they are in no program that is lowered, transformed or kept by others: what a program
does to references is discharged when the operation that has it is applied.
"""

from plait.ext.errors import OperandTypeError
from plait.ext.ir import Effect, primitive
from plait.ext.types import Aval

from .types import content_type

__all__ = ["STATE", "get_", "set_"]

STATE = Effect("state")
"""What is read or written outside of a program: such an equation is never dropped."""


@primitive("state.get", effect=lambda params: STATE)
def get_(ref: Aval) -> Aval:
    """The contents of a reference."""
    return content_type(ref)


@primitive("state.set", many=True, effect=lambda params: STATE)
def set_(ref: Aval, value: Aval) -> list[Aval]:
    """Make a value of the type of its contents the contents of a reference; there is no result."""
    if not value.same_type(content_type(ref)):
        raise OperandTypeError(
            f"a reference to {content_type(ref)!r} can not hold {value!r}",
            fix="convert it with .astype, or reshape it",
        )
    return []
