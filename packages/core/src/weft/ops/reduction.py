"""Reductions: sums, products, extremes, logic over axes, and where the extremes are.

Invariant: `axes` of a primitive is a sorted tuple of non-negative ints, and the result lacks them.
Sums and products of floats narrower than float32 are accumulated in float32, whatever the backend.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dims import product
from ..door import limits
from ..errors import AxisError, TypeRule
from ..primitive import Ints, Primitive, primitive
from ..traits import Discrete, Increasing, Linear, Reduction
from ..types import (
    BOOL,
    BOOLEAN,
    COMPLEX,
    FLOAT32,
    FLOATING,
    INT32,
    INTEGER,
    Aval,
    category,
    default_dtype,
    dtype_of,
)
from ..values import Literal, as_value
from ..xla.lower import Emitter, lower_rules
from ..xla.mlir import i64, i64s
from .elementwise import ANY, LOGIC, NUMBER, ORDERED, add, agreed, div, maximum, minimum, mul, ne
from .elementwise import select as choose
from .indexing import size_value
from .shape import (
    broadcast_to,
    convert,
    expand_dims,
    materialise_at_ground,
    normal_axes,
    normal_axis,
    reshape,
)

# ---- neutral elements ----------------------------------------------------------------------


def lowest(dtype: np.dtype) -> Any:
    """What every value of this dtype is at least: -inf where there is one."""
    return _bound(dtype, -1)


def highest(dtype: np.dtype) -> Any:
    """What every value of this dtype is at most: inf where there is one."""
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


def _dropped(x: Aval, axes: Ints) -> Aval:
    if list(axes) != sorted(set(axes)) or any(not 0 <= a < x.ndim for a in axes):
        raise AxisError(
            f"axes {axes} do not name axes of {x!r} in order, each once",
            fix="give sorted axes, counted from the front",
        )
    return x.with_shape([d for i, d in enumerate(x.shape) if i not in axes])


def _reduce(e: Emitter, x: Any, aval: Aval, out: Aval, axes: Ints, start: Any, step: Callable):
    """`step(emitter, [a, b], cell) -> value` along `axes`, from `start`."""
    cell = Aval((), aval.dtype)
    regions = [((cell, cell), lambda r, ab: [step(r, ab, cell)])]
    first = e.constant(start, cell)
    return e.op("stablehlo.reduce", [x, first], out, regions=regions, dimensions=i64s(*axes))


def _define(
    name: str,
    step: Callable,
    neutral: Callable[[np.dtype], Any],
    doc: str,
    accepts: Sequence[int],
    traits: Sequence[Any] = (),
    wide: bool = False,
) -> Primitive:
    """`wide`: whether narrow floats are accumulated in float32."""

    def rule(x: Aval, *, axes: Ints) -> Aval:
        return _dropped(agreed("reduce_" + name, accepts, x), axes)

    rule.__doc__ = doc
    p = Primitive("core.reduce_" + name, rule, (*traits, Reduction))

    @lower_rules.rule(p)
    def _(e, xs, ins, outs, axes):
        (x,), (aval,), (out,) = xs, ins, outs
        if not wide or aval.category != FLOATING or aval.dtype.itemsize > 2:
            return _reduce(e, x, aval, out, axes, neutral(aval.dtype), step)
        aval, inner = Aval(aval.shape, FLOAT32), Aval(out.shape, FLOAT32)
        x = e.op("stablehlo.convert", [x], aval)
        y = _reduce(e, x, aval, inner, axes, neutral(FLOAT32), step)
        return e.op("stablehlo.convert", [y], out)

    return p


def _simple(name: str) -> Callable:
    return lambda r, ab, cell: r.op("stablehlo." + name, ab, cell)


def _extreme(name: str, direction: str) -> Callable:
    """The greater or lesser of two; of complex numbers in lexicographic order, nan first of all,
    since the compiler's own `maximum` looks at real parts only."""

    def step(r: Emitter, ab: Sequence[Any], cell: Aval) -> Any:
        if cell.category != COMPLEX:
            return r.op("stablehlo." + name, ab, cell)
        pred, part = Aval((), BOOL), Aval((), np.float32 if cell.dtype.itemsize == 8 else float)
        logic = lambda f, x, y: r.op("stablehlo." + f, [x, y], pred)  # noqa: E731
        (ar, ai), (br, bi) = [[r.op(f"stablehlo.{p}", [v], part) for p in ("real", "imag")]
                              for v in ab]  # fmt: skip
        beyond = r.compare(ar, br, direction, pred)
        tie = logic("and", r.compare(ar, br, "EQ", pred), r.compare(ai, bi, direction, pred))
        nan = r.compare(ab[0], ab[0], "NE", pred)
        other = r.compare(ab[1], ab[1], "EQ", pred)
        first = logic("or", nan, logic("and", other, logic("or", beyond, tie)))
        return r.op("stablehlo.select", [first, *ab], cell)

    return step


def _ones(dtype: np.dtype) -> Any:
    return True if dtype == BOOL else (int(limits(dtype)[1]) if "uint" in dtype.name else -1)


reduce_sum = _define("sum", _simple("add"), lambda d: 0, "Sum over `axes`.", NUMBER,
                     (Linear, Increasing), wide=True)  # fmt: skip
reduce_prod = _define("prod", _simple("multiply"), lambda d: 1, "Product over `axes`.", NUMBER,
                      wide=True)  # fmt: skip
reduce_max = _define("max", _extreme("maximum", "GT"), lowest,
                     "Greatest over `axes`; nan if there is one; -inf or the least if empty.",
                     ANY, (Increasing,))  # fmt: skip
reduce_min = _define("min", _extreme("minimum", "LT"), highest,
                     "Least over `axes`; nan if there is one; inf or the greatest if empty.",
                     ANY, (Increasing,))  # fmt: skip
reduce_and = _define("and", _simple("and"), _ones, "Bitwise and over `axes`.", LOGIC,
                     (Discrete,))  # fmt: skip
reduce_or = _define("or", _simple("or"), lambda d: 0, "Bitwise or over `axes`.", LOGIC,
                    (Discrete,))  # fmt: skip
reduce_xor = _define("xor", _simple("xor"), lambda d: 0, "Bitwise exclusive or over `axes`.",
                     LOGIC, (Discrete,))  # fmt: skip


# ---- where the extremes are ----------------------------------------------------------------


def _place(name: str, x: Aval, axis: int, index_dtype: np.dtype) -> Aval:
    agreed(name, ORDERED, x)
    out = _dropped(x, (axis,))
    n = x.shape[axis]
    if n.__class__ is int and n == 0:
        raise AxisError(
            f"{name} of {x!r} along axis {axis}, which is empty",
            fix="check the size first: nothing has no extreme",
        )
    if category(index_dtype) != INTEGER:
        raise TypeRule(f"{name}: {index_dtype} can not hold an index", fix="use an integer dtype")
    if n.__class__ is int and n - 1 > int(limits(index_dtype)[1]):
        raise TypeRule(
            f"{name}: indices of an axis of size {n} do not fit in {index_dtype.name}",
            fix="use a wider index_dtype",
        )
    return Aval(out.shape, index_dtype)


@primitive("core.argmax", traits=(Discrete,))
def argmax_(x: Aval, *, axis: int, index_dtype: np.dtype) -> Aval:
    """Where along `axis` the greatest is; of several the first; nan is greater than all."""
    return _place("argmax", x, axis, index_dtype)


@primitive("core.argmin", traits=(Discrete,))
def argmin_(x: Aval, *, axis: int, index_dtype: np.dtype) -> Aval:
    """Where along `axis` the least is; of several the first; nan is less than all."""
    return _place("argmin", x, axis, index_dtype)


_SHORT = 32
"""Along shorter axes one reduction of pairs beats two plain ones (10 times for 10 elements on
CPUs); along longer ones the plain ones, which are vectorised, win (2 to 4 times)."""


def _placing(prim: Primitive, op: str, direction: str, start: Callable) -> None:
    @lower_rules.rule(prim)
    def _(e, xs, ins, outs, axis, index_dtype):
        (x,), (aval,), (out,) = xs, ins, outs
        counted = Aval(aval.shape, index_dtype)
        index = positions(e, counted, axis)
        n = aval.shape[axis]
        if n.__class__ is int and n < _SHORT:
            return _of_pairs(e, x, index, aval, out, axis, direction, start(aval.dtype))
        best = _reduce(e, x, aval, out.with_dtype(aval.dtype), (axis,), start(aval.dtype),
                       _simple(op))  # fmt: skip
        rest = [i for i in range(aval.ndim) if i != axis]
        flags = Aval(aval.shape, BOOL)
        there = e.compare(x, e.broadcast(best, rest, aval), "EQ", flags)
        if aval.inexact:
            nan = e.compare(x, x, "NE", flags)
            there = e.op("stablehlo.or", [there, nan], flags)
        never = e.constant(highest(index_dtype), counted)
        index = e.op("stablehlo.select", [there, index, never], counted)
        return _reduce(e, index, counted, out, (axis,), highest(index_dtype), _simple("minimum"))


def positions(e: Emitter, aval: Aval, axis: int) -> Any:
    """0, 1, 2, ... along `axis`."""
    if all(d.__class__ is int for d in aval.shape):
        return e.op("stablehlo.iota", [], aval, iota_dimension=i64(axis))
    return e.op("stablehlo.dynamic_iota", [e.shape(aval.shape)], aval, iota_dimension=i64(axis))


def _of_pairs(e: Emitter, x, index, aval: Aval, out: Aval, axis: int, direction: str, start):
    """The extreme and its place in one reduction."""
    cell, at, pred = Aval((), aval.dtype), Aval((), out.dtype), Aval((), BOOL)

    def step(r: Emitter, args):
        a, i, b, j = args
        logic = lambda f, x, y: r.op("stablehlo." + f, [x, y], pred)  # noqa: E731
        ahead = r.compare(a, b, direction, pred)
        same = r.compare(a, b, "EQ", pred)
        if aval.inexact:
            nan, other = (r.compare(v, v, "NE", pred) for v in (a, b))
            ahead = logic("or", ahead, nan)
            same = logic("or", same, logic("and", nan, other))
        # a tie goes to the lesser index; of two nans too
        earlier = logic("and", same, r.compare(i, j, "LT", pred))
        later = logic("and", same, r.compare(i, j, "GT", pred))
        keep = logic("and", logic("or", ahead, earlier), r.op("stablehlo.not", [later], pred))
        value = r.op("stablehlo.select", [keep, a, b], cell)
        return [value, r.op("stablehlo.select", [keep, i, j], at)]

    first = [e.constant(start, cell), e.constant(highest(out.dtype), at)]
    kinds = (cell, at)
    return e.op(
        "stablehlo.reduce", [x, index, *first], out.with_dtype(aval.dtype), out,
        regions=[((*kinds, *kinds), step)], dimensions=i64s(axis),
    )[1]  # fmt: skip


_placing(argmax_, "maximum", "GT", lowest)
_placing(argmin_, "minimum", "LT", highest)


# ---- as users say it -----------------------------------------------------------------------


def _sorted_axes(axis: Any, ndim: int) -> Ints:
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
    prim: Primitive, x: Any, axis: Any, keepdims: bool, where: Any, neutral: Callable
) -> Any:
    """Reduced over axes as users give them; elements not in `where` count as `neutral`."""
    if where is not None:
        x = choose(where, x, Literal(neutral(x.aval.dtype), Aval((), x.aval.dtype)))
    axes = _sorted_axes(axis, x.aval.ndim)
    out = prim.bind(x, axes=axes) if axes else materialise_at_ground(x)
    return expand_dims(out, axes) if keepdims and axes else out


def summand(x: Any, dtype: Any) -> Any:
    """`x` in the dtype it is summed in: as numpy, integers narrower than the default one become
    that."""
    x = as_value(x)
    if dtype is not None:
        return convert(x, dtype)
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
    where: Any = None,
) -> Any:
    """Sum of the elements over axes, as numpy's.

    Args:
      x: an array of any shape and dtype.
      axis: None (all), an int, or a tuple of ints.
      dtype: of the sum; by default that of `x`, but booleans and narrow integers become the
        default integer (unsigned if they are).
      keepdims: whether the axes stay, with size 1.
      initial: what to start from.
      where: which elements count; broadcasts with `x`.

    Raises AxisError for an axis that `x` lacks.

    >>> import numpy as np
    >>> sum_(np.arange(6.0).reshape(2, 3), axis=1).tolist()
    [3.0, 12.0]
    """
    out = _over(reduce_sum, summand(x, dtype), axis, keepdims, where, lambda d: 0)
    return out if initial is None else add(out, initial)


def prod(
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = None,
) -> Any:
    """Product of the elements over axes, as numpy's; arguments are those of `sum_`.

    >>> import numpy as np
    >>> prod(np.array([2, 3, 4])).item()
    24
    """
    out = _over(reduce_prod, summand(x, dtype), axis, keepdims, where, lambda d: 1)
    return out if initial is None else mul(out, initial)


def _extremum(name: str, prim: Primitive, join: Primitive, neutral: Callable, which: str):
    def reduce(
        x: Any,
        axis: Any = None,
        *,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = None,
    ) -> Any:
        x = as_value(x)
        if initial is None:
            _not_empty(name, x.aval, axis, where)
        out = _over(prim, x, axis, keepdims, where, neutral)
        return out if initial is None else join(out, initial)

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


def _not_empty(name: str, x: Aval, axis: Any, where: Any) -> None:
    axes = normal_axes(axis, x.ndim)
    sizes = [x.shape[a] for a in axes]
    if any(d.__class__ is int and d == 0 for d in sizes):
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


def _truth(x: Any) -> Any:
    x = as_value(x)
    return x if x.aval.dtype == BOOL else ne(x, Literal(0, x.aval))


def any_(x: Any, axis: Any = None, *, keepdims: bool = False, where: Any = None) -> Any:
    """Whether any element over axes is not zero (nan is not), as numpy's.

    Args:
      x: an array.
      axis: None (all), an int, or a tuple of ints.
      keepdims: whether the axes stay, with size 1.
      where: which elements count; broadcasts with `x`.

    >>> import numpy as np
    >>> any_(np.array([[0, 0], [0, 2]]), axis=1).tolist()
    [False, True]
    """
    return _over(reduce_or, _truth(x), axis, keepdims, where, lambda d: False)


def all_(x: Any, axis: Any = None, *, keepdims: bool = False, where: Any = None) -> Any:
    """Whether no element over axes is zero, as numpy's; arguments are those of `any_`.

    >>> import numpy as np
    >>> all_(np.array([[1, 0], [3, 2]]), axis=1).tolist()
    [False, True]
    """
    return _over(reduce_and, _truth(x), axis, keepdims, where, lambda d: True)


def mean(
    x: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, where: Any = None
) -> Any:
    """Arithmetic mean over axes, as numpy's; nan of nothing.

    Args:
      x: an array; integers and booleans become floats.
      axis: None (all), an int, or a tuple of ints.
      dtype: of the result; floats narrower than float32 are summed in float32 all the same.
      keepdims: whether the axes stay, with size 1.
      where: which elements count; broadcasts with `x`.

    >>> import numpy as np
    >>> mean(np.array([[1, 2], [3, 5]]), axis=1).tolist()
    [1.5, 4.0]
    """
    x = as_value(x)
    if dtype is not None:
        result = dtype_of(dtype)
    else:
        result = x.aval.dtype if x.aval.inexact else default_dtype(FLOATING)
    narrow = category(result) == FLOATING and result.itemsize < 4
    weak = x.aval.weak_type and result == x.aval.dtype
    x = convert(x, FLOAT32 if narrow else result, weak and not narrow)
    total = sum_(x, axis, keepdims=keepdims, where=where)
    return convert(div(total, _number(x, axis, keepdims, where, total.aval)), result, weak)


def _number(x: Any, axis: Any, keepdims: bool, where: Any, aval: Aval) -> Any:
    """How many elements a mean is taken of, as the dtype of the sum."""
    if where is None:
        n = product([x.aval.shape[a] for a in normal_axes(axis, x.aval.ndim)])
        if n.__class__ is int:
            return Literal(n, aval)
        return broadcast_to(size_value(n, aval.dtype), aval.shape)
    each = Literal(1, Aval(x.aval.shape, INT32))
    count = _over(reduce_sum, each, axis, keepdims, where, lambda d: 0)
    return convert(count, aval.dtype, aval.weak_type)


def _finder(prim: Primitive, which: str, example: list[int]):
    name = prim.name.rpartition(".")[2]

    def find(x: Any, axis: Any = None, *, keepdims: bool = False, index_dtype: Any = None) -> Any:
        x = as_value(x)
        n = x.aval.ndim
        if axis is None:
            x, at = reshape(x, (x.aval.size,)), 0
        else:
            at = normal_axis(axis, n)
        size = x.aval.shape[at]
        dtype = dtype_for_indices(size) if index_dtype is None else dtype_of(index_dtype)
        out = prim.bind(x, axis=at, index_dtype=dtype)
        if not keepdims:
            return out
        return expand_dims(out, tuple(range(n)) if axis is None else at)

    find.__name__ = find.__qualname__ = name
    find.__doc__ = (
        f"Where the {which} element is, as numpy's: the first if there are several; nan counts\n"
        "as the extreme.\n\n"
        "Args:\n"
        "  x: a boolean, integer or floating array.\n"
        "  axis: along which axis; None: in the flattened array.\n"
        "  keepdims: whether the axis stays, with size 1.\n"
        "  index_dtype: of the result; the default integer unless the axis is too long for it.\n\n"
        "Raises AxisError for an axis that `x` lacks or that is empty.\n\n"
        ">>> import numpy as np\n"
        f">>> {name}(np.array([[3, 1], [2, 5]]), axis=0).tolist()\n"
        f"{example}\n"
    )
    return find


def dtype_for_indices(n: Any) -> np.dtype:
    """The default integer, or int64 if indices of an axis of size `n` need that."""
    default = default_dtype(INTEGER)
    fits = n.__class__ is not int or n - 1 <= int(limits(default)[1])
    return default if fits else np.dtype(np.int64)


argmax = _finder(argmax_, "greatest", [0, 1])
argmin = _finder(argmin_, "least", [1, 0])
