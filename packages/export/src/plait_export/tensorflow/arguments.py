"""Arguments and results: trees of tensors, and their types in Plait.

Invariant: a type that only one side has, or an unknown size without a name, is an error that names
the argument.
"""

from typing import Any

from plait.ext.errors import OperandTypeError, PlaitError, ShapeError
from plait.ext.sizes import Dim, Scope, symbolic_dims
from plait.ext.tree import key_paths, spread
from plait.ext.types import Aval, ShapeDtypeStruct, float0
from plait.ext.values import as_value

from ..symbols import filled
from .library import tf


def plain_tree(x: Any) -> Any:
    """Return a tree with plain containers.

    TensorFlow wraps the containers that are attributes of its modules.
    """
    cls = type(x)
    if cls in (dict, list, tuple) or cls.__module__.startswith("tensorflow.python.trackable"):
        if isinstance(x, dict):
            return {k: plain_tree(v) for k, v in x.items()}
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return getattr(x, "__wrapped__", x)
        if isinstance(x, list | tuple):
            return (list if isinstance(x, list) else tuple)(map(plain_tree, x))
    return x


def paths_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """Return the path of every leaf."""
    return [f"args{p}" for p in key_paths(plain_tree(args))] + [
        f"kwargs{p}" for p in key_paths(plain_tree(kwargs))
    ]


def tensor_of(x: Any, path: str) -> Any:
    """Convert a leaf to a tensor.  Raises OperandTypeError if that is impossible."""
    if getattr(x, "dtype", None) == float0:
        return tf.zeros(x.shape, tf.bool)
    try:
        return tf.convert_to_tensor(x)
    except (TypeError, ValueError) as e:
        raise OperandTypeError(
            f"{path} is {x!r}, of which no tensor can be made: {str(e).splitlines()[0]}",
            fix="pass tensors, variables, numpy arrays and numbers, in trees",
        ) from None


def sizes_said(shapes: Any, args: tuple[Any, ...], count: int) -> list[str | None]:
    """Return the text for the sizes of each leaf; None for leaves of keyword arguments."""
    if shapes is None:
        return [None] * count
    if isinstance(shapes, list):
        shapes = tuple(shapes)
    is_text = lambda t: t is None or isinstance(t, str)  # noqa: E731
    found = spread(shapes, plain_tree(args), "polymorphic_shapes", is_text, "a text or None")
    return [*found, *[None] * (count - len(found))]


def type_of_leaf(
    x: Any, tensor: Any, text: str | None, path: str, scope: Scope
) -> ShapeDtypeStruct:
    """Return the type of an argument, with the names given to its sizes.

    Raises ShapeError if the text does not fit the shape, or leaves an unknown size without a name.
    """
    dtype, weak = our_dtype(x, tensor, path)
    if tensor.shape.rank is None:
        raise ShapeError(
            f"{path} has a shape of which TensorFlow does not know how many axes it has",
            fix=f"tell it with tf.ensure_shape, or an input_signature; here it is {path}",
        )
    shape = tensor.shape.as_list()
    try:
        texts = filled("..." if text is None else text, shape)
        sizes = symbolic_dims(", ".join(texts).replace("None", "0"), scope)
    except PlaitError as e:
        raise ShapeError(f"polymorphic_shapes of {path}: {e.what}", fix=e.fix) from None
    known = [n is not None or d.__class__ is Dim for n, d in zip(shape, sizes)]
    if not all(known):
        raise ShapeError(
            f"{path} has the shape {tuple(shape)}, and polymorphic_shapes gives no name for its "
            f"axis {known.index(False)}",
            fix='name every size that TensorFlow does not know, as in polymorphic_shapes="b, ..."',
        )
    told = len(sizes) == len(shape) and all(n == d or n is None or d.__class__ is Dim
                                            for n, d in zip(shape, sizes))  # fmt: skip
    if not told:
        raise ShapeError(
            f"{path} has the shape {tuple(shape)}, and polymorphic_shapes says {text!r}",
            fix="write as many sizes as there are axes, each a number that it has, a name, or '_'",
        )
    return ShapeDtypeStruct(sizes, dtype, weak_type=weak)


def our_dtype(x: Any, tensor: Any, path: str) -> tuple[Any, bool]:
    """Return (dtype, whether it is weak because the argument is a Python number)."""
    if getattr(x, "dtype", None) == float0:
        return float0, False
    if x.__class__ in (bool, int, float, complex):
        aval = as_value(x).aval
        return aval.dtype, aval.weak_type
    try:
        return Aval((), tensor.dtype.as_numpy_dtype).dtype, False
    except (PlaitError, TypeError, ValueError, AttributeError):
        raise OperandTypeError(
            f"{path} is a tensor of {tensor.dtype.name}, which Plait has not",
            fix="pass booleans and numbers; do with others what is to be done in TensorFlow",
        ) from None


def dtype_of(aval: Aval, where: str) -> Any:
    """Return TensorFlow's dtype for a type of Plait's.  Raises OperandTypeError if it has none."""
    if aval.dtype == float0:
        return tf.bool
    try:
        return tf.as_dtype(aval.dtype)
    except (TypeError, KeyError):
        raise OperandTypeError(
            f"TensorFlow has no {aval.dtype.name}, of which {where} is",
            fix="take and return others: plait.random.key_data(key) for a key, astype for numbers",
        ) from None
