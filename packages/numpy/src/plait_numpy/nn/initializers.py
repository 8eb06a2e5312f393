"""Initial values of parameters: factories of `init(key, shape, dtype)`.

Invariant: draws depend on key and shape only; the scale follows from the shape alone.
"""

import math
from typing import Any, Protocol

import numpy as np

from plait.errors import ArgumentError, AxisError, OperandTypeError, ShapeError
from plait.ext import Aval, materialise_at_ground
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape as sh
from plait.ext.sizes import product
from plait.ext.surface import advise as _advise
from plait.ext.surface import value as as_value
from plait.ext.types import COMPLEX, FLOATING, INT32, asked_dtype, category
from plait.typing import Array, ArrayLike, Axis, DTypeLike, Shape

from ..lax.linalg import qr
from ..random import normal as _draw_normal
from ..random import split
from ..random import truncated_normal as _draw_truncated
from ..random import uniform as _draw_uniform
from ..refusals import explain

__all__ = [
    "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform",
    "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones",
    "orthogonal", "truncated_normal", "uniform", "variance_scaling", "xavier_normal",
    "xavier_uniform", "zeros",
]  # fmt: skip


class Initializer(Protocol):
    """The type of functions that make initial values from a key, a shape, and optionally a dtype.

    >>> import plait
    >>> init: plait.nn.initializers.Initializer = plait.nn.initializers.constant(2.0)
    >>> init(None, (2,), "int32").tolist()
    [2, 2]
    """

    def __call__(self, key: ArrayLike, shape: Shape, dtype: DTypeLike | None = None) -> Array: ...


def _dtype(given: object, default: Any) -> Any:
    return asked_dtype(default if given is None else given)


def zeros(key: ArrayLike, shape: Shape, dtype: DTypeLike | None = None) -> Array:
    """Return zeros of a shape, in the default float if no dtype is given.

    key: not used, may be None; shape: ints; dtype: dtype of the result.

    >>> import plait
    >>> plait.nn.initializers.zeros(None, (2,)).tolist()
    [0.0, 0.0]
    """
    return sh.fill(0, Aval(sh.normal_shape(shape), _dtype(dtype, None)))


def ones(key: ArrayLike, shape: Shape, dtype: DTypeLike | None = None) -> Array:
    """Return ones of a shape, in the default float if no dtype is given; arguments as `zeros`.

    >>> import plait
    >>> plait.nn.initializers.ones(None, (2,)).tolist()
    [1.0, 1.0]
    """
    return sh.fill(1, Aval(sh.normal_shape(shape), _dtype(dtype, None)))


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Make an initializer that returns one value everywhere.

    Args:
      value: a number, or an array that broadcasts to the shape.
      dtype: dtype of the results; the default float if not given.

    >>> import plait
    >>> plait.nn.initializers.constant(7.0)(None, (2,)).tolist()
    [7.0, 7.0]
    """
    default = dtype

    def init(key: ArrayLike, shape: Shape, dtype: DTypeLike | None = None) -> Array:
        v = sh.convert(as_value(value), _dtype(dtype, default))
        return materialise_at_ground(sh.broadcast_to(v, sh.normal_shape(shape)))

    return init


def uniform(scale: ArrayLike = 0.01, dtype: DTypeLike | None = None) -> Initializer:
    """Make an initializer that draws uniformly from 0 to `scale`.

    scale: a number; dtype: dtype of the results, the default float if not given.

    >>> import plait
    >>> init = plait.nn.initializers.uniform(0.1)
    >>> plait.eval_shape(lambda key: init(key, (3, 2)), plait.random.key(0)).shape
    (3, 2)
    """
    default = dtype

    def init(key: ArrayLike, shape: Shape, dtype: DTypeLike | None = None) -> Array:
        kind = _dtype(dtype, default)
        return el.mul(_draw_uniform(key, shape, kind), _scale(scale, kind))

    return init


def normal(stddev: ArrayLike = 0.01, dtype: DTypeLike | None = None) -> Initializer:
    """Make an initializer that draws from the normal distribution with this standard deviation.

    stddev: a number; dtype: dtype of the results, the default float if not given.

    >>> import plait
    >>> init = plait.nn.initializers.normal(0.1)
    >>> plait.eval_shape(lambda key: init(key, (3, 2)), plait.random.key(0)).shape
    (3, 2)
    """
    default = dtype

    def init(key: ArrayLike, shape: Shape, dtype: DTypeLike | None = None) -> Array:
        kind = _dtype(dtype, default)
        return el.mul(_draw_normal(key, shape, kind), _scale(stddev, kind))

    return init


def truncated_normal(
    stddev: ArrayLike = 0.01, dtype: DTypeLike | None = None, lower: ArrayLike = -2.0,
    upper: ArrayLike = 2.0,
) -> Initializer:  # fmt: skip
    """Make an initializer that draws normal numbers, truncated to [lower, upper], times `stddev`.

    stddev, lower, upper: numbers; dtype: dtype of the results, the default float if not given.

    >>> import plait
    >>> init = plait.nn.initializers.truncated_normal(0.1)
    >>> plait.eval_shape(lambda key: init(key, (3, 2)), plait.random.key(0)).shape
    (3, 2)
    """
    default = dtype

    def init(key: ArrayLike, shape: Shape, dtype: DTypeLike | None = None) -> Array:
        kind = _dtype(dtype, default)
        return el.mul(_draw_truncated(key, lower, upper, shape, kind), _scale(stddev, kind))

    return init


def _scale(x: Any, dtype: np.dtype) -> Any:
    return sh.convert(as_value(x), dtype)


# ---- by the number of connections ----------------------------------------------------------

_TRUNCATED = 0.87962566103423978
"""The standard deviation of a standard normal variable truncated to [-2, 2]."""


_FAR = -math.expm1(-4.0)
"""The probability that a complex standard normal variable, whose squared size is exponential, is
below 2."""
_CUT = math.sqrt(1.0 - 4.0 * math.exp(-4.0) / _FAR)
"""The standard deviation of a complex standard normal variable truncated to sizes below 2."""


def _rays(key: Any, shape: tuple, dtype: Any, even: bool) -> Any:
    """Draw complex numbers of variance 1 in all directions: uniform on a disc, or truncated
    normal."""
    real = np.zeros(0, dtype).real.dtype
    u, turn = (_draw_uniform(k, shape, real) for k in split(key))
    size = el.mul(2.0, u) if even else el.neg(el.log1p(el.mul(-_FAR, u)))
    size = el.sqrt(size) if even else el.div(el.sqrt(size), _CUT)
    angle = el.mul(turn, 2 * math.pi)
    return el.complex_.bind(el.mul(size, el.cos(angle)), el.mul(size, el.sin(angle)))


def _fans(shape: tuple, in_axis: Any, out_axis: Any, batch_axis: Any) -> tuple[float, float]:
    """Return the numbers of inputs and outputs of each element, the other axes being repeated."""
    n = len(shape)
    if n < 2 and batch_axis == () and (in_axis, out_axis) == (-2, -1):
        raise ShapeError(
            f"the numbers of inputs and outputs of shape {shape} are not known",
            fix="give two axes or more, or in_axis and out_axis",
        )
    named = {"in_axis": in_axis, "out_axis": out_axis, "batch_axis": batch_axis}
    sides = [sh.normal_axes(axes, n, name) for name, axes in named.items()]
    inputs, outputs, batch = [math.prod([shape[i] for i in axes]) for axes in sides]
    size = math.prod(shape)
    field = size / (inputs * outputs * batch) if size else 0
    return inputs * field, outputs * field


def _root(x: float) -> Any:
    """Return the square root of a number, or of a value made of sizes known by name."""
    return math.sqrt(x) if isinstance(x, int | float) else el.sqrt(x)


def variance_scaling(
    scale: ArrayLike, mode: str, distribution: str, in_axis: Axis = -2, out_axis: Axis = -1,
    batch_axis: Axis = (), dtype: DTypeLike | None = None,
) -> Initializer:  # fmt: skip
    """Make an initializer whose variance is `scale` divided by a number of connections.

    Args:
      scale: a positive number.
      mode: "fan_in", "fan_out", "fan_avg" or "fan_geo_avg": by inputs, outputs, or a mean of both.
      distribution: "truncated_normal", "normal" or "uniform".
      in_axis, out_axis: the axes of inputs and of outputs.
      batch_axis: axes that are repeated without connecting anything.
      dtype: dtype of the results; the default float if not given.

    Complex draws have uniform angles: "uniform" on a disc, "truncated_normal" up to twice the
    untruncated deviation.  Raises TypeRule for other modes and distributions.

    >>> import plait
    >>> init = plait.nn.initializers.variance_scaling(2.0, "fan_in", "normal")
    >>> plait.eval_shape(lambda key: init(key, (3, 2)), plait.random.key(0)).shape
    (3, 2)
    """
    default = dtype
    if distribution not in ("truncated_normal", "normal", "uniform"):
        raise ArgumentError(
            f"variance_scaling knows no distribution {distribution!r}",
            fix='use "truncated_normal", "normal" or "uniform"',
        )
    if mode not in _MODES:
        raise ArgumentError(
            f"variance_scaling knows no mode {mode!r}", fix=f"use one of {', '.join(_MODES)}"
        )

    def init(key: ArrayLike, shape: Shape, dtype: DTypeLike | None = None) -> Array:
        kind = _dtype(dtype, default)
        if category(kind) not in (FLOATING, COMPLEX):
            raise OperandTypeError(
                f"initial values of dtype {kind}", fix="use a floating or complex dtype"
            )
        shape = tuple(shape)
        count = _MODES[mode](*_fans(shape, in_axis, out_axis, batch_axis))
        none = count.__class__ in (int, float) and not count
        variance = 0.0 if none else scale / count
        if category(kind) == COMPLEX and distribution != "normal":
            return el.mul(_rays(key, shape, kind, distribution == "uniform"), _root(variance))
        if distribution == "uniform":
            return el.mul(_draw_uniform(key, shape, kind, -1), _root(3 * variance))
        if distribution == "normal":
            return el.mul(_draw_normal(key, shape, kind), _root(variance))
        draw = _draw_truncated(key, -2, 2, shape, kind)
        return el.mul(draw, _root(variance) / _TRUNCATED)

    return init


# ---- orthogonal ----------------------------------------------------------------------------


def _orthonormal(key: Any, rows: int, columns: int, dtype: np.dtype) -> Any:
    """Draw orthonormal columns, uniformly: rows >= columns.

    Source: Mezzadri, How to generate random matrices from the classical compact groups, 2007.
    """
    q, r = qr(_draw_normal(key, (rows, columns), dtype), full_matrices=False)
    places = sh.iota(INT32, (columns,))
    diagonal = r[places, places]
    if category(dtype) == COMPLEX:
        return el.mul(q, el.sign(diagonal))
    return el.mul(q, el.select(el.lt(diagonal, 0), -1, 1))


def orthogonal(
    scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Make an initializer of matrices with orthonormal rows or columns, whichever are fewer.

    Args:
      scale: factor of the matrices.
      column_axis: the axis of columns; the others together are the rows.
      dtype: dtype of the result if `init` is called without one.

    `init` raises AxisError for shapes with fewer than two axes.

    >>> import plait
    >>> init = plait.nn.initializers.orthogonal()
    >>> plait.eval_shape(lambda key: init(key, (3, 2)), plait.random.key(0)).shape
    (3, 2)
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: None = None) -> Any:
        shape, kind = tuple(shape), _dtype(dtype, None)
        if len(shape) < 2:
            raise AxisError(f"an orthogonal matrix of shape {shape}", fix="give two axes at least")
        (at,) = sh.normal_axes(column_axis, len(shape))
        columns = shape[at]
        if 0 in shape:
            return sh.fill(0, Aval(shape, kind))
        rows = product(shape) // columns
        if columns > rows:
            q = _orthonormal(key, columns, rows, kind)
        else:
            q = sh.transpose(_orthonormal(key, rows, columns, kind))
        rest = [n for i, n in enumerate(shape) if i != at]
        return el.mul(sh.moveaxis(sh.reshape(q, (columns, *rest)), 0, at), scale)

    return init


def delta_orthogonal(
    scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Make an initializer of convolution kernels: an orthogonal matrix in the middle, else zero.

    Args:
      scale, column_axis, dtype: as in `orthogonal`.

    `init` takes shapes (space, ..., inputs, outputs) with one to three axes of space, and raises
    AxisError for others, and for more inputs than outputs.

    Source: Xiao et al., Dynamical isometry and a mean field theory of CNNs, 2018.

    >>> import plait
    >>> init = plait.nn.initializers.delta_orthogonal()
    >>> plait.eval_shape(lambda key: init(key, (3, 2, 4)), plait.random.key(0)).shape
    (3, 2, 4)
    """

    def init(key: Any, shape: Any, dtype: Any = dtype, out_sharding: None = None) -> Any:
        shape, kind = tuple(shape), _dtype(dtype, None)
        if not 3 <= len(shape) <= 5 or shape[-2] > shape[-1]:
            raise AxisError(
                f"a delta-orthogonal kernel of shape {shape}",
                fix="give one to three axes of space, inputs, and at least as many outputs",
            )
        matrix = orthogonal(scale, column_axis, kind)(key, shape[-2:])
        middle = tuple([(n - 1) // 2 for n in shape[:-2]])
        return sh.fill(0, Aval(shape, kind)).at[middle].set(matrix)

    return init


_MODES = {
    "fan_in": lambda a, b: a,
    "fan_out": lambda a, b: b,
    "fan_avg": lambda a, b: (a + b) / 2,
    "fan_geo_avg": lambda a, b: _root(a * b),
}


class _Scaled(Protocol):
    """A function that makes initializers of one variance."""

    def __call__(
        self,
        in_axis: Axis = -2,
        out_axis: Axis = -1,
        batch_axis: Axis = (),
        dtype: DTypeLike | None = None,
    ) -> Initializer: ...


def _named(name: str, scale: float, mode: str, distribution: str, source: str) -> _Scaled:
    def make(
        in_axis: Axis = -2,
        out_axis: Axis = -1,
        batch_axis: Axis = (),
        dtype: DTypeLike | None = None,
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = (
        f"`variance_scaling({scale}, {mode!r}, {distribution!r})`.\n\nSource: {source}.\n\n"
        f">>> import plait\n>>> init = plait.nn.initializers.{name}()\n"
        ">>> plait.eval_shape(lambda key: init(key, (3, 2)), plait.random.key(0)).shape\n(3, 2)"
    )
    return make


_GLOROT = "Glorot, Bengio, Understanding the difficulty of training deep networks, 2010"
_LECUN = "LeCun, Bottou, Orr, Mueller, Efficient backprop, 1998"
_HE = "He, Zhang, Ren, Sun, Delving deep into rectifiers, 2015"
glorot_uniform = xavier_uniform = _named("glorot_uniform", 1.0, "fan_avg", "uniform", _GLOROT)
glorot_normal = xavier_normal = _named("glorot_normal", 1.0, "fan_avg", "truncated_normal", _GLOROT)
lecun_uniform = _named("lecun_uniform", 1.0, "fan_in", "uniform", _LECUN)
lecun_normal = _named("lecun_normal", 1.0, "fan_in", "truncated_normal", _LECUN)
he_uniform = kaiming_uniform = _named("he_uniform", 2.0, "fan_in", "uniform", _HE)
he_normal = kaiming_normal = _named("he_normal", 2.0, "fan_in", "truncated_normal", _HE)

explain(globals())

_advise("plait.nn.initializers", globals())
