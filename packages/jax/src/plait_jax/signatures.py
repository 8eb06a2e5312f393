"""Functions by which JAX code reads arguments of functions, and types of values.

Invariant: nothing here traces or computes.
"""

import inspect
from collections.abc import Iterable
from typing import Any

import plait
from plait import tree_util
from plait.ext.tree import spread

__all__ = [
    "dtype_of",
    "flatten_axes",
    "infer_argnums_and_argnames",
    "to_complex_dtype",
]


def infer_argnums_and_argnames(
    sig: inspect.Signature,
    argnums: int | Iterable[int] | None,
    argnames: str | Iterable[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return positions and names of arguments, each read from the other if only one is given.

    >>> infer_argnums_and_argnames(inspect.signature(lambda x, y: x), 1, None)
    ((1,), ('y',))
    """
    numbers = None if argnums is None else _tuple(argnums, int)
    names = None if argnames is None else _tuple(argnames, str)
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD
    both = [(i, p.name) for i, p in enumerate(sig.parameters.values()) if p.kind is plain]
    if numbers is None:
        numbers = tuple(i for i, name in both if name in (names or ()))
    if names is None:
        names = tuple(name for i, name in both if i in numbers)
    return numbers, names


def _tuple(x: Any, single: type) -> tuple[Any, ...]:
    """Return one item or several as a tuple."""
    return (x,) if isinstance(x, single) or hasattr(x, "__index__") else tuple(x)


def flatten_axes(
    name: str, treedef: Any, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False
) -> list[Any]:
    """Return the entry of each leaf of a tree, given a prefix of the tree with entries.

    >>> tree = tree_util.tree_structure((1, [2, 3]))
    >>> flatten_axes("in_axes", tree, (None, 0))
    [None, 0, 0]

    Raises TreeMismatch, a ValueError, if the entries are not such a prefix.
    """
    like = tree_util.tree_unflatten(treedef, [object()] * treedef.num_leaves)
    if not kws:
        return spread(axis_tree, like, name, _is_entry, "an axis")
    args, kwargs = like
    rest = len(tree_util.tree_leaves(kwargs))  # keyword arguments are mapped along axis 0
    return [*spread(axis_tree, args, name, _is_entry, "an axis"), *[0] * rest]


def _is_entry(x: Any) -> bool:
    return x is None or tree_util.treedef_is_leaf(tree_util.tree_structure(x))


def dtype_of(x: Any) -> Any:
    """Return the dtype of a value, or of a Python number.

    >>> dtype_of(1.0)
    dtype('float32')
    """
    return plait.typeof(x).dtype


def to_complex_dtype(dtype: Any) -> Any:
    """Return the complex dtype with the precision of a dtype.

    >>> to_complex_dtype("float64")
    dtype('complex128')
    """
    return plait.dtypes.result_type(dtype, plait.numpy.complex64)
