"""Arguments without contents: shapes and dtypes in place of arrays.

Invariant: a shape has a type and perhaps a placement, and never contents; an array that takes part
in a computation is never made from one.
"""

from typing import Any

from .._base.errors import ArgumentError, AxisError
from .._core.array import as_value
from .._core.interpreter import GROUND, Interpreter, Tracer, Value, current
from .._core.staging import Stage
from .._types.avals import OPAQUE, Aval, Placed, Placement, canonical
from ..tree import flatten, key_paths
from .jittable import jittables


class ShapeDtypeStruct:
    """A shape and a dtype, in place of an array.

    Args:
      shape: ints or symbolic sizes.
      dtype: any value that numpy accepts as a dtype.
      weak_type: whether the dtype gives way to others.
      sharding: its placement, or the sharding in its type; None leaves that open.
    """

    __slots__ = ("shape", "dtype", "weak_type", "sharding")
    shape: tuple[Any, ...]
    dtype: Any
    weak_type: bool
    sharding: Any

    def __init__(self, shape: Any, dtype: Any, *, weak_type: bool = False, sharding: Any = None):
        if dtype is None:
            raise ArgumentError(
                "ShapeDtypeStruct needs a dtype, got None", fix='write one, for instance "float32"'
            )
        aval = Aval(tuple(shape), dtype, weak_type)
        self.shape, self.dtype, self.weak_type = aval.shape, aval.dtype, weak_type
        self.sharding = sharding

    @property
    def aval(self) -> Aval:
        return Aval(self.shape, self.dtype, self.weak_type)

    @classmethod
    def like(cls, x: object) -> "ShapeDtypeStruct":
        """Return the shape, dtype and weakness of an array, of a traced value or of any object with
        a shape and a dtype; and the sharding of an array that was placed on purpose.

        >>> import plait
        >>> plait.ShapeDtypeStruct.like(plait.numpy.ones((2, 3)))
        ShapeDtypeStruct(shape=(2, 3), dtype=float32)
        """
        found = _shape_of(x)
        value = found if isinstance(found, Shape) else as_value(found)
        key: Any = getattr(value, "key", value.aval)
        placement = key.placement if isinstance(key, Placed) else None
        aval = value.aval
        return cls(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=placement)

    def update(self, **changes: Any) -> "ShapeDtypeStruct":
        """Return a copy with some of shape, dtype, weak_type and sharding changed."""
        old = {name: getattr(self, name) for name in ("weak_type", "sharding")}
        shape, dtype = changes.pop("shape", self.shape), changes.pop("dtype", self.dtype)
        return ShapeDtypeStruct(shape, dtype, **old | changes)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a shape without axes")
        return self.shape[0]

    @property
    def size(self) -> Any:
        """The number of elements."""
        return self.aval.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct):
            return False
        return self.aval is other.aval and self.sharding == other.sharding

    def __hash__(self) -> int:
        return hash(self.aval)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        there = f", sharding={self.sharding!r}" if self.sharding is not None else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{weak}{there})"


class Shape(Tracer):
    """An argument without contents: staging and lowering need only its type and its place."""

    __slots__ = ("key",)

    def __init__(self, aval: Aval, placement: Placement | None = None):
        self.key = aval if placement is None else Placed(aval, placement)
        self.by, self.aval, self.where = GROUND, self.key.aval, None


def shapes_only(tree_: object) -> Any:
    """Return a tree of arguments in which ShapeDtypeStructs become Shapes, which can be staged.

    So do other objects that have a shape and a dtype and are not arrays.
    """
    leaves, tree = flatten(jittables.opened(tree_))
    shapes = [_shape_of(x) for x in leaves]
    for i, x in enumerate(shapes):
        placement = x.key.placement if x.__class__ is Shape else None
        if getattr(placement, "explicit", None) is not None:
            _expect_divisible(x, placement, key_paths(tree_)[i])
    return tree.unflatten(shapes)


def _expect_divisible(x: Any, placement: Any, path: str) -> None:
    """Raise AxisError, naming the argument, unless its sizes allow the sharding in its type."""
    try:
        placement.check(x.aval)
    except AxisError as e:
        raise AxisError(f"{e.what} (argument{path})", fix=e.fix) from None


def _shape_of(x: Any) -> Any:
    if isinstance(x, ShapeDtypeStruct):
        # A PartitionSpec alone refers to the mesh in context.
        here = getattr(x.sharding, "here", None)
        return Shape(_entering(x.aval), x.sharding if here is None else here())
    if isinstance(x, Value) or not hasattr(x, "shape") or not hasattr(x, "dtype"):
        return x
    if any(hasattr(x, name) for name in ("__array__", "__plait_array__", "__jax_array__")):
        return x
    weak = getattr(x, "weak_type", False)
    return Shape(_entering(Aval(tuple(x.shape), x.dtype, weak)), getattr(x, "sharding", None))


def _entering(aval: Aval) -> Aval:
    """Return the type that an array of this type has as an argument, under the setting x64."""
    if aval.category == OPAQUE:
        return aval
    dtype = canonical(aval.dtype)
    return aval if dtype == aval.dtype else aval.with_dtype(dtype)


def of_shape_only(x: object) -> Value | None:
    """Return a value with a type only, for a ShapeDtypeStruct within `eval_shape`; else None.

    It is an input of the program that `eval_shape` stages, which is never run."""
    by: Interpreter | None = current() if isinstance(x, ShapeDtypeStruct) else None
    while by is not None:
        if isinstance(by, Stage) and by.does == "eval_shape":
            return by.input(x.aval)  # type: ignore[attr-defined]  # x was looked at above
        by = by.parent
    return None


def typeof(x: object) -> Aval:
    """Return the type of an array, a traced value or a Python number: shape, dtype and weakness.

    Raises NotAnArrayError for another object.

    >>> import plait
    >>> plait.typeof(plait.numpy.ones((2, 3))), plait.typeof(1.0)
    (f32[2,3], f32[]*)
    """
    return as_value(x).aval
