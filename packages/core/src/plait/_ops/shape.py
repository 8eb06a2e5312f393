"""Operations that move elements: broadcasting, reshaping, slicing, padding, concatenating, iota.

Invariant: axes in parameters are non-negative and in range; nothing here computes with elements.
Functions that users call normalise their arguments; primitives take normalised ones.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .._base.errors import (
    ArgumentError,
    AxisError,
    ConcretizationError,
    OperandTypeError,
    ShapeError,
    UndecidedDim,
)
from .._base.jaxlib_api import IrValue
from .._core.array import Literal, as_value, asarray, fits, solid, wrap
from .._core.buffers import put
from .._core.interpreter import Tracer, Value, admitted_sizes, current
from .._core.primitive import Ints, Sizes, primitive
from .._plugins.traits import AnyElement, Increasing, Linear, Structural
from .._types.avals import (
    INT32,
    INTEGER,
    NOTHING,
    OPAQUE,
    Aval,
    category,
    dtype_of,
    no_number,
    nothing_to_do,
    promote,
)
from .._types.dims import Dim, decide_eq, divide_exact, is_symbolic, max_dim, product
from .._xla.lower import Emitter, eager_rules, lower_rules
from .._xla.mlir import i64, i64s
from ..typing import Array, ArrayLike, Axis
from .empty_axes import make_room, with_room

__all__ = [
    "barrier", "broadcast_in_dim", "broadcast_to", "concatenate", "concatenate_", "convert",
    "convert_", "convert_into", "convert_together", "expand_dims", "fill", "given_axes", "iota",
    "iota_", "materialise_at_ground", "moveaxis", "normal_axes", "normal_axis", "normal_shape",
    "pad", "pad_", "reshape", "reshape_", "rev", "slice_", "slice_in_dim", "squeeze", "squeeze_",
    "stack", "transpose", "transpose_",
]  # fmt: skip

STRUCTURE = (Linear, Structural, Increasing)


# ---- axes ----------------------------------------------------------------------------------


def normal_axis(axis: Any, ndim: int, what: str = "axis") -> int:
    """Return `axis` counted from the front; raises AxisError for an axis out of range."""
    try:
        n = axis.__index__()
    except ConcretizationError:
        raise
    except (AttributeError, TypeError):
        several = what.endswith(("axes", "dimensions"))
        raise OperandTypeError(
            f"{what} must be {'integers' if several else 'an integer'}, not {axis!r}",
            fix=f"write {what}=(0,)" if several else f"write {what}=0",
        ).given(axis) from None
    if not -ndim <= n < ndim:
        raise AxisError(
            f"{what} {n} is out of range for an array with {ndim} axes",
            fix=f"use {what} in [{-ndim}, {ndim})" if ndim else "give the array an axis first",
        )
    return n + ndim if n < 0 else n


def given_axes(axes: Any) -> Any:
    """Return axes as a hashable value: a tuple of integers for a sequence or a vector.

    Anything else is returned unchanged, and refused where axes are counted.
    """
    if isinstance(axes, tuple | list | range) or getattr(axes, "ndim", 0) == 1:
        return tuple([a.__index__() if hasattr(a, "__index__") else a for a in axes])
    if getattr(axes, "ndim", 0) or not hasattr(axes, "__index__"):
        return axes
    return axes.__index__()


def normal_axes(axes: Any, ndim: int, what: str = "axis") -> tuple[int, ...]:
    """Return axes counted from the front, in the order given; None means all.  No axis twice."""
    if axes is None:
        return tuple(range(ndim))
    if getattr(axes, "ndim", 0) == 1:
        axes = given_axes(axes)
    if not isinstance(axes, tuple | list | range):
        return (normal_axis(axes, ndim, what),)
    out = tuple([normal_axis(a, ndim, what) for a in axes])
    if len(set(out)) != len(out):
        raise AxisError(f"{what} {tuple(axes)} names an axis twice", fix="name every axis once")
    return out


_INT = frozenset((int,))


def normal_shape(shape: Any) -> tuple[Any, ...]:
    """Return a shape as a tuple of ints and symbolic sizes."""
    if shape.__class__ is tuple and _INT.issuperset(map(type, shape)):
        return shape
    if shape.__class__ is Dim or (hasattr(shape, "__index__") and not getattr(shape, "ndim", 0)):
        return (admitted_sizes(shape) if shape.__class__ is Dim else shape.__index__(),)
    try:
        return tuple([admitted_sizes(d) if d.__class__ is Dim else d.__index__() for d in shape])
    except ConcretizationError:
        raise  # A traced integer as a size is not a mistake in the form of the shape.
    except (AttributeError, TypeError):
        raise ShapeError(
            f"a shape is a tuple of integers, not {shape!r}", fix="write for instance (2, 3)"
        ).given(shape) from None


# ---- primitives ----------------------------------------------------------------------------


@primitive("core.broadcast_in_dim", traits=STRUCTURE)
def broadcast_in_dim(x: Aval, *, shape: Sizes, dims: Ints) -> Aval:
    """Map axis `i` to axis `dims[i]` of `shape`; axes of size 1 and new ones repeat."""
    fits = len(dims) == x.ndim and all(0 <= k < len(shape) for k in dims)
    if not fits or any(d != 1 and d != shape[k] for d, k in zip(x.shape, dims)):
        raise ShapeError(
            f"{x!r} does not broadcast to shape {shape} with its axes at {dims}",
            fix="sizes must be equal or 1",
        )
    return x.with_shape(shape)


@lower_rules.rule(broadcast_in_dim)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    shape: tuple[int | Dim, ...],
    dims: tuple[int, ...],
):
    return e.broadcast(xs[0], dims, outs[0])


FROM_HOST = 4096
"""The most elements of a constant that the host makes outside of transformations.

Compiling a program for each shape takes a thousand times as long as sending the elements."""


def _is_small(shape: Sizes) -> bool:
    """Return True if the host makes it.  Empty axes count as 1, since numpy cannot make all
    such arrays."""
    return prod([max(n, 1) for n in shape]) <= FROM_HOST


@eager_rules.rule(broadcast_in_dim)
def _(args: Any, params: dict[str, Any]) -> Any:
    """Repeat a small number; None for other operands."""
    x, shape = args[0], params["shape"]
    if x.__class__ is not Literal or x.aval.category in (OPAQUE, NOTHING):
        return None
    if not _is_small(shape):
        return None
    number = Literal(x.value, x.aval.with_shape(())).numpy()
    aval = x.aval.with_shape(shape)
    return wrap(put(np.full(shape, number), aval), aval)


def _divisors(n: int) -> str:
    """Return a text of the divisors of a number that users are likely to mean."""
    found = [d for d in range(2, min(n, 100) + 1) if not n % d][:6]
    return f"as {', '.join(map(str, found))} do" if found else "as 1 does"


def _as_many(size: Any, shape: tuple[Any, ...]) -> str:
    """Return what to write for a shape with another number of elements."""
    for i, n in reversed([*enumerate(shape)]):
        rest = product([m for j, m in enumerate(shape) if j != i])
        if size.__class__ is int and rest.__class__ is int and n != 1 and rest and not size % rest:
            fits = (*shape[:i], size // rest, *shape[i + 1 :])
            return f"give a shape with as many elements, such as {fits}"
    return "give a shape with as many elements; one size may be -1"


@primitive("core.reshape", traits=STRUCTURE)
def reshape_(x: Aval, *, shape: Sizes) -> Aval:
    """Return the same elements in row-major order, in another shape."""
    if product(x.shape) != product(shape):
        raise ShapeError(
            f"{x!r} of {x.size} elements cannot be reshaped to {shape}, which has {product(shape)}",
            fix=_as_many(x.size, shape),
        )
    return x.with_shape(shape)


@lower_rules.rule(reshape_)
def _(
    e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], shape: tuple[int | Dim, ...]
):
    if is_symbolic(shape):
        return e.op("stablehlo.dynamic_reshape", [xs[0], e.shape(shape)], outs[0])
    return e.op("stablehlo.reshape", xs, outs[0])


@primitive("core.squeeze", traits=STRUCTURE)
def squeeze_(x: Aval, *, axes: Ints) -> Aval:
    """Remove `axes`, which have size 1."""
    for a in axes:
        if x.shape[a] != 1:
            raise ShapeError(
                f"axis {a} of {x!r} has size {x.shape[a]}, not 1", fix="squeeze axes of size 1"
            )
    return x.with_shape([d for i, d in enumerate(x.shape) if i not in axes])


@lower_rules.rule(squeeze_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], axes: tuple[int, ...]):
    if is_symbolic(outs[0].shape):
        return e.op("stablehlo.dynamic_reshape", [xs[0], e.shape(outs[0].shape)], outs[0])
    return e.op("stablehlo.reshape", xs, outs[0])


@primitive("core.transpose", traits=STRUCTURE)
def transpose_(x: Aval, *, perm: Ints) -> Aval:
    """Permute axes: axis `i` of the result is axis `perm[i]`."""
    if sorted(perm) != list(range(x.ndim)):
        raise AxisError(
            f"{perm} is not a permutation of the axes of {x!r}",
            fix=f"name each of the axes 0 to {x.ndim - 1} once",
        )
    return x.with_shape([x.shape[i] for i in perm])


@lower_rules.rule(transpose_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], perm: tuple[int, ...]):
    return e.op("stablehlo.transpose", xs, outs[0], permutation=i64s(*perm))


@primitive("core.rev", traits=STRUCTURE)
def rev(x: Aval, *, axes: Ints) -> Aval:
    """Reverse along `axes`."""
    return x


@lower_rules.rule(rev)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], axes: tuple[int, ...]):
    return e.op("stablehlo.reverse", xs, outs[0], dimensions=i64s(*axes))


@primitive("core.slice", traits=STRUCTURE)
def slice_(x: Aval, *, starts: Sizes, limits: Sizes, strides: Ints) -> Aval:
    """Read the box from `starts` to `limits`, every `strides`-th element."""
    return x.with_shape([_steps(b - a, s) for a, b, s in zip(starts, limits, strides, strict=True)])


def _within(e: Emitter, starts, limits, shape: tuple[int | Dim, ...]):
    """Return the limits of a slice as vectors, clamped for the operation.

    An empty slice may be written with limits out of bounds, or with an end before its start; the
    operation refuses both.
    """
    types = Aval((len(shape),), INT32)
    none, every = e.shape((0,) * len(shape)), e.shape(shape)
    first, last = (
        e.op("stablehlo.clamp", [none, e.shape(ends), every], types) for ends in (starts, limits)
    )
    return first, e.op("stablehlo.maximum", [first, last], types)


def _steps(n, s: int):
    n = max_dim(n, 0) if n.__class__ is Dim else max(n, 0)
    return n if s == 1 else -(-n // s)


@lower_rules.rule(slice_)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    starts: Sequence[int],
    limits: Sequence[int | Dim],
    strides: Sequence[int],
):
    if is_symbolic(ins[0].shape):
        wide = with_room(ins[0], limits)
        xs = [make_room(e, xs[0], ins[0], wide)]
        if is_symbolic(starts) or is_symbolic(limits):
            first, last = _within(e, starts, limits, wide.shape)
            box = [xs[0], first, last, e.shape(strides)]
            return e.op("stablehlo.real_dynamic_slice", box, outs[0])
    # One element takes no stride: of a divided axis XLA takes another one, or refuses the program.
    single = [n.__class__ is int and n == 1 for n in outs[0].shape]
    limits = [a + 1 if one else b for a, b, one in zip(starts, limits, single)]
    strides = [1 if one else step for step, one in zip(strides, single)]
    at = dict(start_indices=i64s(*starts), limit_indices=i64s(*limits), strides=i64s(*strides))
    return e.op("stablehlo.slice", xs, outs[0], **at)


def _same_dtype(args: tuple[Any, ...]):
    x, v = map(as_value, args)
    if v.aval.dtype != x.aval.dtype:
        v = convert(v, x.aval.dtype)
    return x, v


@primitive("core.pad", traits=(Structural, Increasing, AnyElement), prepare=_same_dtype)
def pad_(x: Aval, value: Aval, *, low: Sizes, high: Sizes, interior: Ints) -> Aval:
    """Put `value` around and between elements; negative `low` and `high` cut off."""
    if value.dtype != x.dtype or value.ndim:
        raise OperandTypeError(
            f"{x!r} cannot be padded with {value!r}", fix="pad with a scalar of the same dtype"
        )
    if any(i < 0 for i in interior):
        raise ShapeError(
            f"{x!r} cannot be padded by {interior} between elements",
            fix="cut off with a stride, or with negative padding at the ends",
        )
    shape = []
    for n, a, b, i in zip(x.shape, low, high, interior, strict=True):
        inner = n + _gaps(n) * i if i else n
        shape.append(a + b + inner)
        if shape[-1].__class__ is Dim:
            shape[-1] = max_dim(shape[-1], 0)
        if shape[-1].__class__ is int and shape[-1] < 0:
            raise ShapeError(
                f"padding of {a} and {b} leaves nothing of an axis of size {n}",
                fix="cut off less",
            )
    return x.with_shape(shape)


def _gaps(n: int):
    """Return the number of places between elements."""
    return max_dim(n - 1, 0) if n.__class__ is Dim else max(n - 1, 0)


@lower_rules.rule(pad_)
def _(
    e: Emitter,
    xs: list[IrValue],
    ins: list[Aval],
    outs: list[Aval],
    low: tuple[int, ...],
    high: tuple[int, ...],
    interior: tuple[int, ...],
):
    if is_symbolic(ins[0].shape):
        # Padding may cut off more than the axis holds.
        cut = [0 if i else max_dim(-a - b, 0) for a, b, i in zip(low, high, interior)]
        xs = [make_room(e, xs[0], ins[0], with_room(ins[0], cut)), xs[1]]
    if is_symbolic(low) or is_symbolic(high):
        vectors = [e.shape(low), e.shape(high), e.shape(interior)]
        return e.op("stablehlo.dynamic_pad", [*xs, *vectors], outs[0])
    # XLA divides an axis correctly only if it is padded at the ends alone.
    axes = [k for k, (a, b, i) in enumerate(zip(low, high, interior)) if i or a < 0 or b < 0]
    x = e.whole_along(xs[0], ins[0], axes)
    out = e.op(
        "stablehlo.pad", [x, xs[1]], outs[0], edge_padding_low=i64s(*low),
        edge_padding_high=i64s(*high), interior_padding=i64s(*interior),
    )  # fmt: skip
    return e.whole_along(out, outs[0], axes)


def _promoted(args: tuple[Value, ...]):
    vs = [as_value(a) for a in args]
    dtypes = {v.aval.dtype for v in vs}
    return vs if len(dtypes) < 2 else convert_together(vs)


def _to_join(a: Aval, b: Aval, axis: int) -> str:
    """Return what to write for arrays that cannot be concatenated along an axis."""
    if a.ndim != b.ndim:
        return "give all of them as many axes: x[None] has one more"
    apart = [i for i, (m, n) in enumerate(zip(a.shape, b.shape)) if m != n]
    if apart in ([], [axis]):
        return "convert them to one dtype, with .astype"
    if len(apart) == 1:
        return f"write axis={apart[0]}, in which they differ: the other sizes must agree"
    return "all sizes but that of the axis must agree"


@primitive("core.concatenate", traits=(Structural, Increasing), prepare=_promoted)
def concatenate_(*xs: Aval, axis: int) -> Aval:
    """Join operands along `axis`."""
    first = xs[0]
    for x in xs[1:]:
        same = x.ndim == first.ndim and all(
            a == b for i, (a, b) in enumerate(zip(x.shape, first.shape)) if i != axis
        )
        if not same or x.dtype != first.dtype:
            raise ShapeError(
                f"{first!r} and {x!r} cannot be concatenated along axis {axis}",
                fix=_to_join(first, x, axis),
            )
    total = xs[0].shape[axis]
    for x in xs[1:]:
        total = total + x.shape[axis]
    out = first.strong() if any(not x.weak_type for x in xs) else first
    return out.with_shape([total if i == axis else d for i, d in enumerate(first.shape)])


@lower_rules.rule(concatenate_)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], axis: int):
    return e.op("stablehlo.concatenate", xs, outs[0], dimension=i64(axis))


@primitive("core.iota")
def iota_(*, shape: Sizes, axis: int, dtype: np.dtype) -> Aval:
    """Count 0, 1, 2, ... along `axis`."""
    return Aval(shape, dtype)


@lower_rules.rule(iota_)
def _(
    e: Emitter,
    xs: list[Any],
    ins: list[Any],
    outs: list[Aval],
    shape: tuple[int | Dim, ...],
    axis: int,
    dtype: np.dtype,
):
    if is_symbolic(shape):
        size = [e.shape(shape)]
        return e.op("stablehlo.dynamic_iota", size, outs[0], iota_dimension=i64(axis))
    return e.op("stablehlo.iota", [], outs[0], iota_dimension=i64(axis))


@eager_rules.rule(iota_)
def _(args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Count along an axis on the host; None for many elements."""
    shape, axis, dtype = params["shape"], params["axis"], params["dtype"]
    if not _is_small(shape) or dtype.kind not in "iufc":
        return None
    counted = np.arange(shape[axis]).astype(dtype)
    if len(shape) > 1:
        column = counted.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        counted = np.ascontiguousarray(np.broadcast_to(column, shape))
    aval = Aval(shape, dtype)
    return wrap(put(counted, aval), aval)


@primitive("core.barrier", traits=(Structural,), many=True)
def barrier(*xs: Aval) -> list:
    """Return the same values; the compiler may not move work across."""
    return list(xs)


@lower_rules.rule(barrier)
def _(e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval]):
    r = e.op("stablehlo.optimization_barrier", xs, *outs)
    return r if len(outs) != 1 else [r]


# ---- conversion (defined here, since everything that promotes needs it) ---------------------


@primitive("core.convert", traits=(Structural,))
def convert_(x: Aval, *, dtype: np.dtype, weak: bool) -> Aval:
    """Convert to another dtype.

    Floats are truncated towards zero, complex numbers lose their imaginary part, and anything but
    zero becomes True.
    """
    if x.dtype != dtype and OPAQUE in (x.category, category(dtype)):
        raise no_number("convert", x if x.category == OPAQUE else Aval(x.shape, dtype))
    return Aval(x.shape, dtype, weak)


@lower_rules.rule(convert_)
def _(
    e: Emitter, xs: list[IrValue], ins: list[Aval], outs: list[Aval], dtype: np.dtype, weak: bool
):
    x, (source,) = xs[0], ins
    if source.dtype == dtype:
        return x
    if dtype == bool:
        return e.compare(x, e.constant(0, source), "NE", outs[0])
    if source.dtype.kind == "c" and dtype.kind != "c":
        part = Aval(source.shape, np.float32 if source.dtype.itemsize == 8 else np.float64)
        x = e.op("stablehlo.real", [x], part)
        if part.dtype == dtype:
            return x
    return e.op("stablehlo.convert", [x], outs[0])


def convert(x: Any, dtype: Any, weak: bool = False) -> Value:
    """Return `x` as an array of `dtype`; `x` itself if it is one."""
    dtype = dtype_of(dtype)
    if x.__class__ is int and _exact(x, dtype):  # The int need not fit in the default dtype.
        return Literal(_as(x, dtype), Aval((), dtype, weak))
    x = as_value(x)
    if x.aval.dtype == dtype and x.aval.weak_type == weak:
        return x
    if x.aval.category == NOTHING:
        raise nothing_to_do([x.aval])
    if x.__class__ is Literal and not x.aval.ndim and _exact(x.value, dtype):
        return Literal(_as(x.value, dtype), Aval((), dtype, weak))
    return convert_.bind(x, dtype=dtype, weak=weak)


def convert_into(x: Any, dtype: Any) -> Value:
    """Return `x` in the dtype of an array that it becomes part of.

    Raises OperandTypeError for complex numbers in an array of real ones, and OutOfBounds for an
    int that does not fit.

    >>> convert_into(3, "float32").dtype
    dtype('float32')
    """
    dtype = dtype_of(dtype)
    if x.__class__ is not int:
        x = as_value(x)
        keep_imaginary(x.aval, dtype)
    return convert(x, dtype)


def keep_imaginary(x: Aval, dtype: np.dtype) -> None:
    """Refuse complex values that become part of an array of real numbers."""
    if x.dtype.kind == "c" and dtype.kind != "c":
        raise OperandTypeError(
            f"complex values {x!r} cannot be written into an array of {dtype}",
            fix="write their real part, or convert the array with .astype first",
        )


def _exact(value: Any, dtype: np.dtype) -> bool:
    """Return True if a Python scalar converts to this dtype without the compiler."""
    if dtype.kind == "f":
        return not isinstance(value, complex)
    return category(dtype) == INTEGER and isinstance(value, int) or dtype.kind in "cb"


def _as(value: Any, dtype: np.dtype) -> Any:
    if dtype.kind in "fc":
        return float(value) if dtype.kind == "f" else complex(value)
    if dtype == bool:
        return bool(value)
    return fits(value, dtype) if value.__class__ is int else value


def convert_together(vs: Sequence[Any], strict: bool = True) -> list[Value]:
    """Convert values to their promoted dtype, each in its own shape; `strict` as of `promote`."""
    from_types = [v.aval for v in vs]
    dtype, weak = promote(from_types, strict)
    return [convert(v, dtype, weak) for v in vs]


def fit(v: Any, aval: Aval) -> Any:
    """Convert and broadcast `v` to an `aval`."""
    if v.aval is aval:
        return v
    if v.aval.dtype != aval.dtype or v.aval.weak_type != aval.weak_type:
        if v.__class__ is Literal:
            if _exact(v.value, aval.dtype):
                return Literal(_as(v.value, aval.dtype), aval)
        v = convert_.bind(v, dtype=aval.dtype, weak=aval.weak_type)
    return v if v.aval.shape == aval.shape else broadcast_to(v, aval.shape)


# ---- functions for users -------------------------------------------------------------------


def fill(value: float, aval: Aval) -> Value:
    """Return an array of this type filled with a Python scalar; a literal while tracing."""
    if value and aval.category == OPAQUE:
        raise no_number("fill", aval)
    x = Literal(value, aval)
    return materialise(x) if current().at_once else x


def materialise(x: Any) -> Any:
    """Return an Array for a literal, made on the device; other values as they are."""
    if x.__class__ is not Literal:
        return x
    if not x.aval.ndim or is_symbolic(x.aval.shape):
        return solid(x)
    cell = Literal(x.value, Aval((), x.aval.dtype, x.aval.weak_type))
    return broadcast_in_dim.bind(cell, shape=x.aval.shape, dims=())


def broadcast_to(x: Any, shape: Any) -> Value:
    """Broadcast as numpy's broadcast_to; raises TypeRule if sizes are neither equal nor 1."""
    x = as_value(x)
    shape = normal_shape(shape)
    have = x.aval.shape
    if have == shape:
        return x
    if len(have) > len(shape):
        raise ShapeError(f"{x.aval!r} has more axes than the shape {shape}", fix="give more sizes")
    if x.__class__ is Literal:
        return Literal(x.value, x.aval.with_shape(shape))
    front = len(shape) - len(have)
    dims = tuple(range(front, len(shape)))
    return broadcast_in_dim.bind(x, shape=shape, dims=dims)


def reshape(x: Any, shape: Any) -> Value:
    """Return the same elements in another shape; one size may be -1."""
    x = as_value(x)
    shape = normal_shape(shape)
    if shape == x.aval.shape:
        return x
    if -1 in shape:
        known = product([d for d in shape if d.__class__ is Dim or d != -1])
        if shape.count(-1) > 1 or known == 0:
            raise ShapeError(f"the size of -1 in {shape} is not determined", fix="name all sizes")
        size = x.aval.size
        if size.__class__ is int and known.__class__ is int:
            if size % known:
                raise ShapeError(
                    f"{x.aval!r} of {size} elements cannot be reshaped to {shape}",
                    fix=f"the other sizes must divide {size}, {_divisors(size)}",
                )
            rest = size // known
        else:
            rest = divide_exact(size, known)
        shape = tuple([rest if d.__class__ is int and d == -1 else d for d in shape])
        if shape == x.aval.shape:
            return x
    return reshape_.bind(x, shape=shape)


def transpose(x: Any, perm: Any = None) -> Value:
    """Put axes in another order, reversed by default."""
    x = as_value(x)
    n = x.aval.ndim
    order = tuple(range(n))[::-1] if perm is None else normal_axes(given_axes(perm), n, "axes")
    return x if order == tuple(range(n)) else transpose_.bind(x, perm=order)


def moveaxis(x: ArrayLike, source: Axis, destination: Axis) -> Array:
    """Move some axes; the others keep their order."""
    v = as_value(x)
    n = v.aval.ndim
    a, b = normal_axes(source, n, "source"), normal_axes(destination, n, "destination")
    if len(a) != len(b):
        raise AxisError(f"{len(a)} axes cannot move to {len(b)} positions", fix="name as many")
    perm = [i for i in range(n) if i not in a]
    for to, frm in sorted(zip(b, a)):
        perm.insert(to, frm)
    return transpose(v, perm)


def expand_dims(x: Any, axis: object) -> Value:
    """Add axes of size 1, at positions of the result."""
    x, axis = as_value(x), given_axes(axis)
    count = len(axis) if isinstance(axis, tuple) else 1
    n = x.aval.ndim + count
    new = normal_axes(axis, n)
    sizes = iter(x.aval.shape)
    shape = tuple([1 if i in new else next(sizes) for i in range(n)])
    dims = tuple([i for i in range(n) if i not in new])
    if not count:
        return x
    return broadcast_in_dim.bind(x, shape=shape, dims=dims)


def squeeze(x: Any, axis: Any = None) -> Value:
    """Remove axes of size 1 (all of them by default; UndecidedDim if a symbolic size decides)."""
    x = as_value(x)
    if axis is None:
        axes = tuple([i for i, d in enumerate(x.aval.shape) if _is_1(d, i)])
    else:
        axes = tuple(sorted(normal_axes(axis, x.aval.ndim)))
    return squeeze_.bind(x, axes=axes) if axes else x


def _is_1(d: "Dim | int", axis: int) -> bool:
    known = decide_eq(d, 1)
    if known is None:
        raise UndecidedDim(
            f"squeeze leaves out the axes of size 1, and whether axis {axis} is one depends: its "
            f"size is {d}",
            fix="name the axes that are to be left out: squeeze(x, axis=...)",
        )
    return known


def concatenate(xs: Sequence[Any], axis: int = 0) -> Value:
    """Join arrays along `axis`, in their promoted dtype."""
    vs = [as_value(x) for x in xs]
    if not vs:
        raise ArgumentError("there is nothing to concatenate", fix="give at least one array")
    if not vs[0].aval.ndim:
        raise ShapeError("arrays without axes cannot be concatenated", fix="use stack")
    at = normal_axis(axis, vs[0].aval.ndim)
    return concatenate_(*vs, axis=at) if len(vs) > 1 else materialise_at_ground(vs[0])


def materialise_at_ground(x: Array) -> Any:
    """Return the value that users get: an Array while nothing is traced."""
    return materialise(x) if x.__class__ is Literal and current().at_once else x


def stack(xs: Sequence[Any], axis: int = 0) -> Value:
    """Join arrays along a new axis."""
    vs = [x if isinstance(x, Value) else as_value(x) for x in xs]
    if not vs:
        raise ShapeError("there is nothing to stack", fix="give at least one array")
    at = normal_axis(axis, vs[0].aval.ndim + 1)
    return concatenate([expand_dims(v, at) for v in vs], at)


def fitting(what: str, v: Any, x: Any) -> Any:
    """Convert `v` to the dtype of `x`; it must have that already, or be a Python number of its
    kind."""
    v = as_value(v)
    a, b = v.aval, x.aval
    if a.dtype != b.dtype and not (a.weak_type and a.category <= b.category):
        raise ArgumentError(
            f"{what}: {a!r} does not go into {b!r}",
            fix="convert it with .astype, or use .at[...] of the array",
        )
    return convert(v, b.dtype, b.weak_type)


def pad(x: Array, value: ArrayLike, config: Sequence[tuple]) -> Any:
    """Put `value` around and between: (low, high, interior) for each axis; low and high may cut."""
    low, high, interior = ([c[k] for c in config] for k in range(3))
    if not len(config):
        return as_value(x)
    return pad_(x, value, low=tuple(low), high=tuple(high), interior=tuple(interior))


def slice_in_dim(x: Array, start: Any, limit: Dim | int, stride: int = 1, axis: int = 0) -> Value:
    """Return the part of one axis from `start` to `limit`."""
    x = as_value(x)
    at = normal_axis(axis, x.aval.ndim)
    box = lambda new, old: tuple([new if i == at else d for i, d in enumerate(old)])  # noqa: E731
    n = x.aval.ndim
    return slice_.bind(
        x,
        starts=box(start, (0,) * n),
        limits=box(limit, x.aval.shape),
        strides=box(stride, (1,) * n),
    )


def iota(dtype: np.dtype | type, shape: Sequence[Any], axis: int = 0) -> Any:
    """Count 0, 1, 2, ... along `axis` of an array of this shape."""
    return iota_.bind(shape=normal_shape(shape), axis=axis, dtype=dtype_of(dtype))


def array(x: object, dtype: np.dtype | None = None) -> Any:
    """Make an Array from scalars, numpy arrays and nested lists; values are converted if needed."""
    if x.__class__ is Dim:
        x = as_value(x)
    if isinstance(x, list | tuple) and _holds_tracers(x):
        x = stack([array(v, dtype) for v in x])
    if isinstance(x, Value):
        return materialise_at_ground(x if dtype is None else convert(x, dtype))
    return asarray(x, dtype)


def _holds_tracers(x: object) -> bool:
    """Return whether there are traced values in nested lists."""
    if isinstance(x, list | tuple):
        return any(map(_holds_tracers, x))
    return isinstance(x, Tracer)
