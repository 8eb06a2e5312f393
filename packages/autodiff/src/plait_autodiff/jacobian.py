"""Jacobians and Hessians of functions of trees.

Invariant: one direction is pushed forward, or one cotangent pulled back, for each element, all at
once where mapping is installed.  Blocks have the shape of the output followed by that of the input.
"""

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np

from plait import map_axes
from plait.ext.errors import OperandTypeError, border, names_at
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.ops.shape import reshape as reshape_
from plait.ext.sizes import is_symbolic
from plait.ext.trace import Value, admitted, wraps
from plait.ext.tree import flatten
from plait.ext.types import INT32, Aval, float0
from plait.ext.values import as_value
from plait.typing import Array

from .adable import adables
from .api import jvp, vjp
from .tangents import (
    expect_differentiable,
    expect_function,
    expect_results,
    is_single,
    numbers,
    of_chosen,
    pair_of,
    positions,
)

P = ParamSpec("P")


def of_differentiable(
    fun: Callable[..., Any],
    argnums: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    what: str,
    holomorphic: bool,
    allow_int: bool = False,
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Do as `of_chosen`, and refuse arguments that cannot be differentiated."""
    nums = numbers(argnums, what)
    of, chosen = of_chosen(fun, nums, args, kwargs)
    named = lambda: names_at(fun, positions(nums, args, fun))  # noqa: E731
    expect_differentiable(chosen, holomorphic, allow_int, what, named)
    return of, chosen


def basis(xs: Sequence[Any]) -> list[Any]:
    """Return the unit vectors of a flat list of values: for each value, (total, *shape)."""
    sizes = [x.aval.size for x in xs]
    if is_symbolic(sizes):
        return _symbolic_basis(xs, sizes)
    total, at, out = sum(sizes), 0, []
    for x, n in zip(xs, sizes):
        e = np.zeros((total, n), x.aval.dtype)
        e[at : at + n] = np.eye(n, dtype=x.aval.dtype)
        out.append(e.reshape(total, *x.aval.shape))
        at += n
    return out


def _symbolic_basis(xs: Sequence[Any], sizes: Sequence[Any]) -> list:
    """Return the same for symbolic sizes."""
    total: Any = 0
    for n in sizes:
        total = total + n
    at: Any = 0
    out = []
    for x, n in zip(xs, sizes):
        cell = Aval((total, n), INT32)
        start = sh.broadcast_in_dim.bind(sh.size_value(at, INT32), shape=cell.shape, dims=())
        column = el.add.bind(sh.iota(INT32, cell.shape, 1), start)
        units = sh.convert(el.eq.bind(sh.iota(INT32, cell.shape, 0), column), x.aval.dtype)
        out.append(reshape_(units, (total, *x.aval.shape)))
        at = at + n
    return out


def _divided(rows: Any, xs: Sequence[Any]) -> list:
    """Split stacked rows of a Jacobian into one block per value: (*shape, *rest)."""
    at, out = 0, []
    for x in xs:
        n = x.aval.size
        part = rows[at : at + n]
        out.append(reshape_(part, (*x.aval.shape, *rows.aval.shape[1:])))
        at += n
    return out


@border
def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """Return the Jacobian, column by column, by forward mode; fast for few inputs.

    The result has `fun`'s output tree, with the argument's tree at each leaf; each block has the
    shape of the output followed by that of the input.

    >>> import plait
    >>> plait.jacfwd(lambda x: x * x)(plait.numpy.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    expect_function(fun, "jacfwd")

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        of, chosen = of_differentiable(fun, argnums, args, kwargs, "jacfwd", holomorphic)
        leaves, tree = flatten(adables.opened(chosen))
        out_tree: Any = None
        xs = [admitted(x) for x in leaves]
        function = (lambda *ys: pair_of(of(*ys), "jacfwd")[0]) if has_aux else of

        live = [x for x in xs if x.aval.varies]

        def push(*ts: Value) -> list:
            nonlocal out_tree
            moving = map(as_weak_as, ts, live)
            given = [next(moving) if x.aval.varies else _nothing(x.aval.shape) for x in xs]
            dot = jvp(function, chosen, tree.unflatten(given))[1]
            dots, out_tree = flatten(adables.opened(dot))
            return dots

        dots = map_axes(push, parallel=True)(*basis(live))
        expect_results(dots, holomorphic, "jacfwd", False)
        blocks = [columns_of(d, xs, tree, argnums) for d in dots]
        result = out_tree.unflatten(blocks)
        return (result, pair_of(of(*chosen), "jacfwd")[1]) if has_aux else result

    return border(wraps(fun)(jacobian))


def as_weak_as(t: Value, x: Value) -> Value:
    """Return a tangent, as weakly typed as the value `x` that it belongs to."""
    return sh.convert(t, x.aval.dtype, True) if x.aval.weak_type else t


def _nothing(shape: tuple) -> np.ndarray:
    """Return the derivative of integers or keys."""
    return np.zeros(shape, float0)


def columns_of(d: Array, xs: Sequence[Any], tree: Any, argnums: Any) -> Any:
    """Return blocks (*out, *in) of one output, from its stacked tangents (total, *out)."""
    m = d.aval.ndim - 1
    blocks: list[Any] = []
    divided = iter(_divided(d, [x for x in xs if x.aval.varies]))
    for x in xs:
        if not x.aval.varies:
            blocks.append(_nothing((*d.aval.shape[1:], *x.aval.shape)))
            continue
        k, b = x.aval.ndim, next(divided)
        blocks.append(sh.moveaxis(b, tuple(range(k)), tuple(range(m, m + k))) if k and m else b)
    block = tree.unflatten(blocks)
    return block[0] if is_single(argnums) else block


@border
def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """Return the Jacobian, row by row, by reverse mode; fast for few outputs.

    The result has the structure that `jacfwd` describes.  For real results of complex arguments,
    the elements of a row are those of `grad`.

    >>> import plait
    >>> plait.jacrev(lambda x: (x * x).sum())(plait.numpy.array([1.0, 2.0]))
    Array([2., 4.], dtype=float32)
    """
    expect_function(fun, "jacrev")

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        of, chosen = of_differentiable(fun, argnums, args, kwargs, "jacrev", holomorphic, allow_int)
        if has_aux:
            out, pull, aux = vjp(of, *chosen, has_aux=True)
        else:
            (out, pull), aux = vjp(of, *chosen), None
        outs, out_tree = flatten(adables.opened(out))
        tree: Any = None
        ys = [as_value(o) for o in outs]
        for y in ys:
            if not y.aval.varies:
                raise OperandTypeError(
                    f"jacrev is of floating or complex results, not of {y.aval!r}",
                    fix="return it as an auxiliary result (has_aux=True), or convert it",
                )
        expect_results(ys, holomorphic, "jacrev", True)

        def row(*cts: Value) -> list:
            nonlocal tree
            found, tree = flatten(adables.opened(pull(out_tree.unflatten(cts))))
            return found

        flat = map_axes(row, parallel=True)(*basis(ys))
        per_output = [[sh.materialise_at_ground(b) for b in _divided(r, ys)] for r in flat]
        blocks = []
        for k in range(len(ys)):
            block = tree.unflatten([b[k] for b in per_output])
            blocks.append(block[0] if is_single(argnums) else block)
        result = out_tree.unflatten(blocks)
        return (result, aux) if has_aux else result

    return border(wraps(fun)(jacobian))


@border
def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """Return second derivatives, forward over reverse, as blocks (*out, *in, *in).

    >>> import plait
    >>> plait.hessian(lambda x: (x ** 3).sum())(plait.numpy.array([1.0, 2.0]))
    Array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)
    """
    inner = jacrev(fun, argnums, has_aux, holomorphic)
    return jacfwd(inner, argnums, has_aux, holomorphic)
