"""Primitives that read and write a reference in a recorded program.

They read and write the contents as a whole.  Parts are read and written by operations on arrays,
and the compiler finds the parts that are used.

Invariant: no program that is lowered, transformed or kept elsewhere contains them.  When an
operation with programs is applied, their effects on references are discharged.
"""

from plait.ext.errors import OperandTypeError
from plait.ext.ir import Effect, primitive
from plait.ext.types import Aval

from .types import content_type

__all__ = ["STATE", "get_", "set_"]

STATE = Effect("state")
"""The effect of reading and writing outside of a program: such an equation is never dropped."""


@primitive("state.get", effect=lambda params: STATE)
def get_(ref: Aval) -> Aval:
    """Return the contents of a reference."""
    return content_type(ref)


@primitive("state.set", many=True, effect=lambda params: STATE)
def set_(ref: Aval, value: Aval) -> list[Aval]:
    """Replace the contents of a reference by a value of the same type; return no result."""
    if not value.same_type(content_type(ref)):
        raise OperandTypeError(
            f"a reference to {content_type(ref)!r} cannot hold {value!r}",
            fix="convert it with .astype, or reshape it",
        )
    return []
