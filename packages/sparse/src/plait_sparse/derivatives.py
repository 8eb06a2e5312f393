"""Derivatives with respect to the values of sparse arrays.

Invariant: indices are constant, and a derivative has the entries of the argument; so the elements
without an entry have none.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import plait
import plait.numpy as pnp
from plait import tree
from plait.ext.errors import ArgumentError, border, numbers_of
from plait.ext.trace import Value, wraps
from plait.tree_util import register_pytree_node

from .base import JAXSparse
from .bcoo import BCOO

if TYPE_CHECKING:
    from .bcsr import BCSR

__all__ = ["grad", "jacfwd", "jacobian", "jacrev", "value_and_grad"]


class Values:
    """The values that a derivative is with respect to: a tree of one list."""

    def __init__(self, items: Sequence[Any]):
        self.items = list(items)


register_pytree_node(Values, lambda v: (v.items, None), lambda _, items: Values(items))


def _is_sparse(x: object) -> bool:
    return isinstance(x, JAXSparse)


def _with_data(x: "BCOO | BCSR", data: Value) -> Any:
    """Return a sparse array with other values; of a dense array, the values."""
    if not _is_sparse(x):
        return data
    (_, *others), static = x.tree_flatten()
    return type(x).tree_unflatten(static, (data, *others))


class Split:
    """The arguments of one call, divided into values and everything else."""

    def __init__(self, argnums: int | Sequence[int], args: Sequence[Any]):
        at = numbers_of(argnums)
        self.single = not isinstance(argnums, Sequence)
        if any(not -len(args) <= k < len(args) for k in at):
            raise ArgumentError(
                f"expected argnums within {len(args)} positional arguments, got {argnums}",
                fix="pass these arguments by position",
            )
        self.at = [k % len(args) for k in at]
        chosen = [args[k] for k in self.at]
        self.leaves, self.tree = tree.flatten(chosen, is_leaf=_is_sparse)
        self.args = list(args)

    @property
    def values(self) -> Values:
        """The values."""
        return Values([x.data if _is_sparse(x) else x for x in self.leaves])

    def call(self, fun: Callable[..., Any], values: Values, kwargs: dict[str, Any]) -> Any:
        """Return the function of arguments with these values."""
        pairs = zip(self.leaves, values.items, strict=True)
        chosen = tree.unflatten(self.tree, [_with_data(x, v) for x, v in pairs])
        args = list(self.args)
        for k, x in zip(self.at, chosen, strict=True):
            args[k] = x
        return fun(*args, **kwargs)

    def result(self, found: Values, build: Callable[[Any, Any], Any]) -> Any:
        """Return derivatives in the structure of the arguments."""
        pairs = zip(self.leaves, found.items, strict=True)
        out = tree.unflatten(self.tree, [build(x, v) for x, v in pairs])
        return out[0] if self.single else tuple(out)


@border
def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Return a function that returns the value and the gradient of `fun`, as plait.value_and_grad.

    The gradient with respect to a sparse array is a sparse array with the same indices.

    >>> import plait
    >>> x = plait.sparse.BCOO.fromdense([[0.0, 3.0], [1.0, 0.0]])
    >>> value, slope = plait.sparse.value_and_grad(lambda x: (x * x).sum())(x)
    >>> float(value), slope.todense().tolist()
    (10.0, [[0.0, 6.0], [2.0, 0.0]])
    """

    @wraps(fun)
    def differentiated(*args: "BCOO | BCSR", **named: object) -> Any:
        split = Split(argnums, args)
        inner = plait.value_and_grad(lambda v: split.call(fun, v, named), has_aux=has_aux, **kwargs)
        value, found = inner(split.values)
        return value, split.result(found, _with_data)

    return differentiated


@border
def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **kwargs: object,
) -> Callable[..., Any]:
    """Return a function that returns the gradient of `fun`, as `plait.grad`.

    The gradient with respect to a sparse array is a sparse array with the same indices.

    >>> import plait
    >>> x = plait.sparse.BCOO.fromdense([[0.0, 3.0], [1.0, 0.0]])
    >>> plait.sparse.grad(lambda x: (x * x).sum())(x).todense().tolist()
    [[0.0, 6.0], [2.0, 0.0]]
    """
    both = value_and_grad(fun, argnums, has_aux, **kwargs)

    @wraps(fun)
    def differentiated(*args: "BCOO | BCSR", **named: object) -> Any:
        value, slope = both(*args, **named)
        return (slope, value[1]) if has_aux else slope

    return differentiated


def _stacked(x: Any, data: Any) -> Any:
    """Return derivatives of an array: a sparse array with more batch axes for a sparse one."""
    if not _is_sparse(x):
        return data
    x = x._entries()
    more = data.ndim - x.data.ndim
    lead = tuple(data.shape[:more])
    indices = pnp.broadcast_to(x.indices, (*lead, *x.indices.shape))
    return BCOO.made(data, indices, x.sparse_shape, x.indices_sorted, x.unique_indices)


def _jacobian(
    name: str, fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool, kwargs: Any
) -> Callable[..., Any]:
    """Return a function that returns Jacobians by `plait.<name>`."""

    @wraps(fun)
    def differentiated(*args: Any, **named: object) -> Any:
        split = Split(argnums, args)
        inner = getattr(plait, name)(lambda v: split.call(fun, v, named), has_aux=has_aux, **kwargs)
        found = inner(split.values)
        found, aux = found if has_aux else (found, None)
        out = tree.map(
            lambda v: split.result(v, _stacked), found, is_leaf=lambda v: isinstance(v, Values)
        )
        return (out, aux) if has_aux else out

    return differentiated


@border
def jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **kwargs: object,
) -> Callable[..., Any]:
    """Return a function that returns the Jacobian of `fun`, column by column, as `plait.jacfwd`.

    With respect to a sparse array it is a BCOO, whose first batch axes are those of the result.

    >>> import plait
    >>> x = plait.sparse.BCOO.fromdense([[0.0, 3.0], [1.0, 0.0]])
    >>> plait.sparse.jacfwd(lambda x: x @ plait.numpy.ones(2))(x)
    BCOO(float32[2, 2, 2], nse=2, n_batch=1)
    """
    return _jacobian("jacfwd", fun, argnums, has_aux, kwargs)


@border
def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **kwargs: object,
) -> Callable[..., Any]:
    """Return a function that returns the Jacobian of `fun`, row by row, as `plait.jacrev`.

    With respect to a sparse array it is a BCOO, whose first batch axes are those of the result.
    """
    return _jacobian("jacrev", fun, argnums, has_aux, kwargs)


@border
def jacobian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    **kwargs: object,
) -> Callable[..., Any]:
    """Return a function that returns the Jacobian of `fun`; it is `jacrev`."""
    return jacrev(fun, argnums, has_aux, **kwargs)
