"""The user's functions on references: make, read, write and freeze them.

Invariant: an index has the same meaning as for arrays.
"""

from typing import Any

from plait.ext.errors import ArgumentError, border
from plait.ext.trace import Tracer, Value
from plait.lax import full
from plait.typing import Array

from .ref import Ref, closed, made, read_part, write_part

__all__ = ["addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]


@border
def new_ref(init_val: object, *, memory_space: object = None, kind: object = None) -> Ref:
    """Return a mutable reference that holds an array.

    Args:
      init_val: an array or a number; the contents keep its shape and dtype.
      memory_space: None.
      kind: None, or "no_grad_no_remat", which changes nothing.

    Functions under `jit`, `scan`, `while_loop`, `cond`, `checkpoint` may read and write references
    that they close over or take as arguments. Functions that are differentiated or mapped may do
    so with references that they make. If a reference is mapped, is a row of a `scan`, or is an
    argument of `shard_map`, the function receives a reference to its part. A value with a
    derivative or a mapped axis cannot be written into another reference from outside.

    Raises NotAnArrayError if `init_val` is not an array, OperandTypeError if it is a reference,
    ArgumentError for a memory space.

    >>> import plait
    >>> import plait.numpy as pnp
    >>> ref = plait.new_ref(pnp.zeros(3))
    >>> ref[1] = 5.0
    >>> ref[...] += 1
    >>> ref
    Ref([1., 6., 1.], dtype=float32)
    """
    if memory_space is not None or kind not in (None, "no_grad_no_remat"):
        raise ArgumentError(
            f"new_ref knows no memory_space={memory_space!r} or kind={kind!r}",
            fix="leave them out",
        )
    return made(init_val)


@border
def freeze(ref: Ref) -> Array:
    """Return the array that a reference holds; the reference cannot be used any more.

    Raises ArgumentError if the reference comes from outside of the transformed function, or was
    frozen before.

    >>> import plait
    >>> ref = plait.new_ref(1.0)
    >>> ref[...] += 1
    >>> plait.freeze(ref)
    Array(2., dtype=float32, weak_type=True)
    """
    return closed(_expected(ref, "freeze"))


@border
def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """Return a mutable reference that holds zeros until it is written.

    Args:
      ty: an object with the shape and dtype of the contents: a `ShapeDtypeStruct` or an array.
      memory_space: None.

    Raises ArgumentError for an object without shape and dtype, and for a memory space.

    >>> import plait
    >>> ref = plait.empty_ref(plait.ShapeDtypeStruct((2,), "float32"))
    >>> ref[1] = 3.0
    >>> ref
    Ref([0., 3.], dtype=float32)
    """
    if not hasattr(ty, "shape") or not hasattr(ty, "dtype"):
        raise ArgumentError(
            f"empty_ref needs the type of an array, not {type(ty).__name__} {ty!r}",
            fix="write plait.ShapeDtypeStruct(shape, dtype)",
        )
    return new_ref(full(ty.shape, 0, ty.dtype), memory_space=memory_space)


@border
def free_ref(ref: Ref) -> None:
    """Make a reference unusable, and drop the array that it holds.

    Raises ArgumentError if the reference comes from outside of the transformed function, or was
    frozen or freed before.

    >>> import plait
    >>> ref = plait.new_ref(1.0)
    >>> plait.free_ref(ref)
    >>> ref[...]
    Traceback (most recent call last):
    ...
    plait.errors.ArgumentError: a reference was frozen, and is used again: ...
    """
    closed(_expected(ref, "free_ref"))


@border
def get(ref: Ref, idx: object = None) -> Any:
    """Return `ref[idx]`; without an index, or with an Ellipsis, return all contents.

    >>> import plait
    >>> plait.ref.get(plait.new_ref(plait.numpy.arange(4)), slice(1, 3))
    Array([1, 2], dtype=int32)
    """
    return read_part(_expected(ref, "get"), idx)


@border
def set(ref: Ref, idx: object, value: object) -> None:
    """Write `ref[idx] = value`.

    Raises ShapeError or OperandTypeError unless the value has the shape and dtype of the part.

    >>> import plait
    >>> ref = plait.new_ref(plait.numpy.zeros(2))
    >>> plait.ref.set(ref, 0, 3.0)
    >>> ref
    Ref([3., 0.], dtype=float32)
    """
    write_part(_expected(ref, "set"), idx, value)


@border
def swap(ref: Ref, idx: object, value: object) -> Any:
    """Write `ref[idx] = value`, and return the previous value of that part.

    Raises ShapeError or OperandTypeError unless the value has the shape and dtype of the part.

    >>> import plait
    >>> ref = plait.new_ref(plait.numpy.arange(3))
    >>> int(plait.ref.swap(ref, 2, 10)), ref
    (2, Ref([ 0,  1, 10], dtype=int32))
    """
    return write_part(_expected(ref, "swap"), idx, value)


@border
def addupdate(ref: Ref, idx: object, x: object) -> None:
    """Add to a part; an element that an index names several times is added to as often.

    Raises ShapeError or OperandTypeError unless `x` has the shape and dtype of the part.

    >>> import plait
    >>> import plait.numpy as pnp
    >>> ref = plait.new_ref(pnp.zeros(3))
    >>> plait.ref.addupdate(ref, pnp.array([0, 0, 1]), pnp.ones(3))
    >>> ref
    Ref([2., 1., 0.], dtype=float32)
    """
    write_part(_expected(ref, "addupdate"), idx, x, "add", "adding to")


def _expected(ref: Tracer | Value, does: str) -> Ref:
    if not isinstance(ref, Ref):
        raise ArgumentError(
            f"{does} needs a reference, not {type(ref).__name__} {ref!r}",
            fix="make one with plait.new_ref",
        )
    return ref
