"""Reductions: sums, products, extremes and logic over axes.

Invariant: `axes` of a primitive is a sorted tuple of non-negative ints, and the result lacks them.
Sums and products of floats narrower than float32 are accumulated in float32, whatever the backend.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._base.errors import AxisError, OperandTypeError, ShapeError
from .._base.jaxlib_api import IrValue, limits
from .._base.lazy import later
from .._core.array import Literal, as_value
from .._core.interpreter import Value
from .._core.primitive import Ints, Primitive
from .._plugins.traits import Discrete, Increasing, Linear, Reduction
from .._types.avals import (
    BOOL,
    BOOLEAN,
    COMPLEX,
    FLOAT32,
    FLOATING,
    INT32,
    INTEGER,
    NOTHING,
    Aval,
    asked_dtype,
    category,
    default_dtype,
    nothing_to_do,
)
from .._types.dims import decide_ge, product
from .._xla.cpu_forms import cpu_form_rules
from .._xla.lower import Emitter, lower_rules
from .._xla.mlir import i64s
from ..typing import Array, ArrayLike, Axis
from .elementwise import (
    ANY,
    LOGIC,
    NUMBER,
    add,
    agreed,
    and_,
    div,
    extreme,
    maximum,
    minimum,
    mul,
    ne,
    or_,
)
from .elementwise import select as choose
from .shape import broadcast_to, convert, expand_dims, materialise_at_ground, normal_axes
from .sizes import size_value

__all__ = [
    "all_", "any_", "highest", "lowest", "max_", "mean", "min_", "prod", "reduce_and", "reduce_max",
    "reduce_min", "reduce_or", "reduce_prod", "reduce_sum", "reduce_xor", "sum_", "truth",
]  # fmt: skip

# ---- neutral elements ----------------------------------------------------------------------


def lowest(dtype: np.dtype) -> Any:
    """Return a lower bound of all values of this dtype: -inf where there is one."""
    return _bound(dtype, -1)


def highest(dtype: np.dtype) -> Any:
    """Return an upper bound of all values of this dtype: inf where there is one."""
    return _bound(dtype, 1)


def _bound(dtype: np.dtype, side: int) -> Any:
    kind = category(dtype)
    if kind == COMPLEX:
        return complex(side * np.inf, side * np.inf)
    least, greatest = limits(dtype)
    end = greatest if side > 0 else least
    if kind == BOOLEAN:
        return bool(end)
    if kind == INTEGER:
        return int(end)
    with np.errstate(all="ignore"):
        infinite = np.asarray(side * np.inf).astype(dtype)
    return side * np.inf if np.isinf(infinite) else float(end)


# ---- primitives ----------------------------------------------------------------------------


def without_axes(x: Aval, axes: Ints) -> Aval:
    """Return the type without these axes; raises AxisError unless they are named in order."""
    if list(axes) != sorted(set(axes)) or any(not 0 <= a < x.ndim for a in axes):
        raise AxisError(
            f"axes {axes} do not name axes of {x!r} in order, each once",
            fix="give sorted axes, counted from the front",
        )
    return x.with_shape([d for i, d in enumerate(x.shape) if i not in axes])


def reduce_by(
    e: Emitter, x: IrValue, aval: Aval, out: Aval, axes: Ints, start: complex, step: Callable
):
    """Reduce along `axes` from `start` by `step(emitter, [a, b], cell) -> value`."""
    cell = Aval((), aval.dtype)
    regions = [((cell, cell), lambda r, ab: [step(r, ab, cell)])]
    xs = [x, e.constant(start, cell)]
    return e.alike(
        (step, aval, out, axes),
        xs,
        lambda: e.op("stablehlo.reduce", xs, out, regions=regions, dimensions=i64s(*axes)),
    )


def _define(
    name: str,
    step: Callable,
    neutral: Callable[[np.dtype], Any],
    doc: str,
    accepts: Sequence[int],
    traits: Sequence[Any] = (),
    wide: bool = False,
) -> Primitive:
    """Define a reduction; if `wide`, narrow floats are accumulated in float32."""

    def rule(x: Aval, *, axes: Ints) -> Aval:
        return without_axes(agreed("reduce_" + name, accepts, x), axes)

    rule.__doc__ = doc
    p = Primitive("core.reduce_" + name, rule, (*traits, Reduction))

    @lower_rules.rule(p)
    def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], axes: tuple[int, ...]):
        (x,), (aval,), (out,) = xs, ins, outs
        if not wide or aval.category != FLOATING or aval.dtype.itemsize > 2:
            return reduce_by(e, x, aval, out, axes, neutral(aval.dtype), step)
        aval, inner = Aval(aval.shape, FLOAT32), Aval(out.shape, FLOAT32)
        x = e.op("stablehlo.convert", [x], aval)
        y = reduce_by(e, x, aval, inner, axes, neutral(FLOAT32), step)
        return e.op("stablehlo.convert", [y], out)

    return p


@functools.cache
def plain(name: str) -> Callable:
    """Return a step that is one operation of StableHLO."""
    return lambda r, ab, cell: r.op("stablehlo." + name, ab, cell)


def _product(r: Emitter, ab: Sequence[Any], cell: Aval) -> Any:
    """Multiply; 1 is exactly neutral, also to infinite complex numbers."""
    out = r.op("stablehlo.multiply", ab, cell)
    if cell.category != COMPLEX:
        return out
    neutral = r.compare(ab[0], r.constant(1, cell), "EQ", Aval((), BOOL))
    return r.op("stablehlo.select", [neutral, ab[1], out], cell)


def _ones(dtype: np.dtype) -> Any:
    return True if dtype == BOOL else (int(limits(dtype)[1]) if "uint" in dtype.name else -1)


reduce_sum = _define("sum", plain("add"), lambda d: 0, "Sum over `axes`.", NUMBER,
                     (Linear, Increasing), wide=True)  # fmt: skip


@cpu_form_rules.rule(reduce_sum)
def _(avals: Sequence[Aval], /, **params: Any) -> Any:
    return later("_ops.reduction_forms").form_of(avals, **params)


reduce_prod = _define("prod", _product, lambda d: 1, "Product over `axes`.", NUMBER,
                      wide=True)  # fmt: skip
reduce_max = _define("max", extreme("maximum"), lowest,
                     "Greatest over `axes`; nan if there is one; -inf or the least if empty.",
                     ANY, (Increasing,))  # fmt: skip
reduce_min = _define("min", extreme("minimum"), highest,
                     "Least over `axes`; nan if there is one; inf or the greatest if empty.",
                     ANY, (Increasing,))  # fmt: skip
reduce_and = _define("and", plain("and"), _ones, "Bitwise and over `axes`.", LOGIC,
                     (Discrete,))  # fmt: skip
reduce_or = _define("or", plain("or"), lambda d: 0, "Bitwise or over `axes`.", LOGIC,
                    (Discrete,))  # fmt: skip
reduce_xor = _define("xor", plain("xor"), lambda d: 0, "Bitwise exclusive or over `axes`.",
                     LOGIC, (Discrete,))  # fmt: skip


# ---- functions for users -------------------------------------------------------------------


def _sorted_axes(axis: object, ndim: int) -> Ints:
    try:
        return _axes_of[axis.__class__, axis, ndim]
    except (KeyError, TypeError):
        pass
    axes = tuple(sorted(normal_axes(axis, ndim)))
    if axis is None or axis.__class__ is int:
        _axes_of[axis.__class__, axis, ndim] = axes
    return axes


_axes_of: dict[tuple, Ints] = {}


def _over(
    prim: Primitive, x: Any, axis: object, keepdims: bool, where: Any, neutral: Callable
) -> Any:
    """Reduce over axes as users give them; elements not in `where` count as `neutral`."""
    if where is not None:
        where = as_value(where)
        if where.aval.category != BOOLEAN:
            raise OperandTypeError(
                f"`where` says of each element whether it counts, and is {where.aval!r}",
                fix="compare, as in where=mask != 0",
            )
        _fits(where.aval, x.aval)
        x = choose(where, x, Literal(neutral(x.aval.dtype), Aval((), x.aval.dtype)))
    axes = _sorted_axes(axis, x.aval.ndim)
    out = prim.bind(x, axes=axes) if axes else materialise_at_ground(x)
    return expand_dims(out, axes) if keepdims and axes else out


def _fits(where: Aval, x: Aval) -> None:
    """Refuse a mask that does not broadcast to the array, for it would repeat elements."""
    pairs = zip(where.shape[::-1], x.shape[::-1])
    wide = [n.__class__ is int and m.__class__ is int and n not in (1, m) for n, m in pairs]
    if where.ndim > x.ndim or any(wide):
        raise ShapeError(
            f"`where` must broadcast to {x!r}, and is {where!r}",
            fix="give a mask of the array's shape, or broadcast the array to that of the mask",
        )


def summand(x: Any, dtype: Any) -> Any:
    """Return `x` in the dtype it is summed in.

    As in numpy, integers narrower than the default integer are converted to it.
    """
    x = as_value(x)
    if dtype is not None:
        return convert(x, asked_dtype(dtype))
    have, default = x.aval.dtype, default_dtype(INTEGER)
    if have == BOOL:
        return convert(x, default)
    if x.aval.category == INTEGER and have.itemsize < default.itemsize:
        unsigned = "uint" in have.name
        return convert(x, np.dtype(f"u{default.name}") if unsigned else default)
    return x


def sum_(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: ArrayLike | None = None,
) -> Any:
    """Return the sum of the elements over axes, as numpy's.

    Args:
      x: an array of any shape and dtype.
      axis: None (all), an int, or a tuple of ints.
      dtype: of the sum; by default that of `x`, but booleans and narrow integers become the
        default integer (unsigned if they are).
      keepdims: True to keep the axes, with size 1.
      initial: a number to start from.
      where: a mask of the elements that count; broadcasts with `x`.

    Raises AxisError for an axis that `x` lacks.

    >>> import numpy as np
    >>> sum_(np.arange(6.0).reshape(2, 3), axis=1).tolist()
    [3.0, 12.0]
    """
    out = _over(reduce_sum, summand(x, dtype), axis, keepdims, where, lambda d: 0)
    return _started(add, out, initial)


def prod(
    x: Any,
    axis: object = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: ArrayLike | None = None,
) -> Any:
    """Return the product of the elements over axes, as numpy's; arguments are those of `sum_`.

    >>> import numpy as np
    >>> prod(np.array([2, 3, 4])).item()
    24
    """
    out = _over(reduce_prod, summand(x, dtype), axis, keepdims, where, lambda d: 1)
    return _started(mul, out, initial)


def _extremum(name: str, prim: Primitive, join: Primitive, neutral: Callable, which: str):
    def reduce(
        x: Any,
        axis: Any = None,
        *,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: Any = None,
    ) -> Any:
        x = as_value(x)
        if initial is None:
            _not_empty(name, x.aval, axis, where)
        out = _over(prim, x, axis, keepdims, where, neutral)
        # The reduction starts from this number itself.
        is_neutral = initial.__class__ is float and x.aval.category == FLOATING
        if is_neutral and initial == neutral(x.aval.dtype):
            return out
        return _started(join, out, initial)

    reduce.__name__ = reduce.__qualname__ = name + "_"
    reduce.__doc__ = (
        f"{which} of the elements over axes, as numpy's; nan if there is one.\n\n"
        "Args:\n"
        "  x: an array; complex numbers are compared by real part, then by imaginary part.\n"
        "  axis: None (all), an int, or a tuple of ints.\n"
        "  keepdims: whether the axes stay, with size 1.\n"
        "  initial: a further element; needed where there may be no other.\n"
        "  where: which elements count; broadcasts with `x`.\n\n"
        "Raises AxisError for an axis that `x` lacks, and for nothing to choose from.\n\n"
        ">>> import numpy as np\n"
        f">>> {name}_(np.array([[3, 1], [2, 5]]), axis=0).tolist()\n"
        f"{[3, 5] if name == 'max' else [2, 1]}\n"
    )
    return reduce


def _started(join: Primitive, out: Any, initial: Any) -> Any:
    """Return a reduction joined with its `initial`, which must be one number."""
    if initial is None:
        return out
    initial = as_value(initial)
    if initial.aval.ndim:
        raise ShapeError(
            f"initial must be one number, got {initial.aval!r}",
            fix="give a scalar, or combine the array with the result of the reduction",
        )
    return join(out, initial)


def _not_empty(name: str, x: Aval, axis: object, where: ArrayLike | None) -> None:
    axes = normal_axes(axis, x.ndim)
    sizes = [x.shape[a] for a in axes]
    # The answer for a named size is left open, so that maps over piles learn of the question.
    if any(d == 0 if d.__class__ is int else decide_ge(d, 1) is False for d in sizes):
        raise AxisError(
            f"{name} of {x!r} over axes {axes}: there is nothing to choose from",
            fix="give `initial`, the result for no elements",
        )
    if where is not None:
        raise AxisError(
            f"{name} with `where` may have nothing to choose from",
            fix="give `initial`, the result for no elements",
        )


max_ = _extremum("max", reduce_max, maximum, lowest, "Greatest")
min_ = _extremum("min", reduce_min, minimum, highest, "Least")


def truth(x: Any) -> Any:
    """Return True for elements that are not zero; booleans as they are.

    >>> truth(2.0).item()
    True
    """
    x = as_value(x)
    if x.aval.category == NOTHING:
        raise nothing_to_do([x.aval])
    return x if x.aval.dtype == BOOL else ne(x, Literal(0, x.aval))


def any_(
    x: ArrayLike, axis: Axis | None = None, *, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return True if any element over axes is not zero (nan is not zero), as numpy's.

    Args:
      x: an array.
      axis: None (all), an int, or a tuple of ints.
      keepdims: True to keep the axes, with size 1.
      initial: a further element.
      where: a mask of the elements that count; broadcasts with `x`.

    >>> import numpy as np
    >>> any_(np.array([[0, 0], [0, 2]]), axis=1).tolist()
    [False, True]
    """
    out = _over(reduce_or, truth(x), axis, keepdims, where, lambda d: False)
    return _started(or_, out, None if initial is None else truth(initial))


def all_(
    x: ArrayLike, axis: Axis | None = None, *, keepdims: bool = False,
    initial: ArrayLike | None = None, where: ArrayLike | None = None,
) -> Array:  # fmt: skip
    """Return True if no element over axes is zero, as numpy's; arguments are those of `any_`.

    >>> import numpy as np
    >>> all_(np.array([[1, 0], [3, 2]]), axis=1).tolist()
    [False, True]
    """
    out = _over(reduce_and, truth(x), axis, keepdims, where, lambda d: True)
    return _started(and_, out, None if initial is None else truth(initial))


def mean(
    x: Any,
    axis: Value | float | tuple[Any, ...] | None = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """Return the arithmetic mean over axes, as numpy's; nan without elements.

    Args:
      x: an array; integers and booleans become floats.
      axis: None (all), an int, or a tuple of ints.
      dtype: of the result; floats narrower than float32 are summed in float32 all the same.
      keepdims: True to keep the axes, with size 1.
      where: a mask of the elements that count; broadcasts with `x`.

    >>> import numpy as np
    >>> mean(np.array([[1, 2], [3, 5]]), axis=1).tolist()
    [1.5, 4.0]
    """
    x = as_value(x)
    if dtype is not None:
        result = asked_dtype(dtype)
    else:
        result = x.aval.dtype if x.aval.inexact else default_dtype(FLOATING)
    narrow = category(result) == FLOATING and result.itemsize < 4
    weak = x.aval.weak_type and result == x.aval.dtype
    x = convert(x, FLOAT32 if narrow else result, weak and not narrow)
    total = sum_(x, axis, keepdims=keepdims, where=where)
    return convert(div(total, _number(x, axis, keepdims, where, total.aval)), result, weak)


def _number(x: Value, axis: Any, keepdims: bool, where: ArrayLike | None, aval: Aval) -> Any:
    """Return the number of elements of a mean, in the dtype of the sum."""
    if where is None:
        n = product([x.aval.shape[a] for a in normal_axes(axis, x.aval.ndim)])
        if n.__class__ is int:
            return Literal(n, aval)
        return broadcast_to(size_value(n, aval.dtype), aval.shape)
    each = Literal(1, Aval(x.aval.shape, INT32))
    count = _over(reduce_sum, each, axis, keepdims, where, lambda d: 0)
    return convert(count, aval.dtype, aval.weak_type)
