"""Patches of convolution windows, locally connected convolutions, and shapes of results.

Invariant: spatial axes are in the order of the kernel's.
"""

from collections.abc import Callable, Sequence
from typing import Any

from plait.typing import Array, ArrayLike, DTypeLike

from .._api.surfaces import value
from .._base.errors import ArgumentError, AxisError, ShapeError
from .._core.array import Literal
from .._core.interpreter import Value
from .._ops import convolution as cn
from .._ops import shape as sh
from .._ops.contraction import contracted
from .._ops.shape import convert, normal_shape, slice_in_dim, transpose
from .._ops.static_arguments import fixed_each
from .._types.avals import asked_dtype
from .._types.dims import product

__all__ = [
    "conv_general_dilated_local", "conv_general_dilated_patches", "conv_general_permutations",
    "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose_shape_tuple",
    "ConvGeneralDilatedDimensionNumbers",
]  # fmt: skip

ConvGeneralDilatedDimensionNumbers = None | cn.ConvDims | tuple[str, str, str]
"""The types of `dimension_numbers` of convolutions."""


def _each(what: str, name: str, given: Any, count: int) -> tuple:
    """Return a positive number for each spatial axis; None gives ones."""
    items = (1,) * count if given is None else fixed_each(what, name, given)
    if len(items) != count or any(n.__class__ is int and n < 1 for n in items):
        raise ShapeError(
            f"{what}: {name} is {given!r}, for {count} spatial axes",
            fix="give a positive number for each",
        )
    return items


def conv_general_dilated_patches(
    lhs: ArrayLike, filter_shape: Sequence[int], window_strides: Sequence[int], padding: Any,
    lhs_dilation: object = None, rhs_dilation: object = None, dimension_numbers: Any = None,
    precision: object = None, preferred_element_type: DTypeLike | None = None,
) -> Array:  # fmt: skip
    """Return the input elements in each window of a convolution.

    Args:
      lhs: the input: batch, features and spatial axes.
      filter_shape: the size of the window along each spatial axis.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers: as in
        `conv_general_dilated`.
      precision: has no effect: elements are moved, not multiplied.
      preferred_element_type: dtype of the result; by default that of the input.

    Returns the batch, for each feature all elements of the window, and the window positions, in the
    order of `dimension_numbers`.  Raises TypeRule and AxisError for numbers that do not fit.

    >>> import plait
    >>> x = plait.numpy.arange(4).reshape(1, 1, 4)
    >>> plait.lax.conv_general_dilated_patches(x, (3,), (1,), "VALID").tolist()
    [[[0, 1], [1, 2], [2, 3]]]
    """
    x = value(lhs)
    steps = window_strides, lhs_dilation, rhs_dilation
    y, dims = _patches("conv_general_dilated_patches", x, filter_shape, padding, steps,
                       dimension_numbers)  # fmt: skip
    y = transpose(y, _inverse(dims.out_spec))
    return y if preferred_element_type is None else convert(y, asked_dtype(preferred_element_type))


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def _patches(
    what: str,
    x: Value,
    filter_shape: Sequence[int],
    padding: Sequence[tuple[Any, ...]] | str,
    steps: tuple,
    numbers: tuple[str, ...] | None,
) -> tuple[Any, cn.ConvDims]:
    """Return ((batch, features times elements of a window, positions...), the axis of each)."""
    n = x.aval.ndim
    dims = cn.conv_dimension_numbers(x.aval.shape, (1,) * n, numbers)
    count = n - 2
    window = _each(what, "filter_shape", filter_shape, count)
    strides, base, spread = (
        _each(what, name, v, count)
        for name, v in zip(("window_strides", "lhs_dilation", "rhs_dilation"), steps)
    )
    y = transpose(x, dims.lhs_spec)
    inside = [cn.dilated(d, b) for d, b in zip(y.aval.shape[2:], base)]
    extent = [cn.dilated(k, d) for k, d in zip(window, spread)]
    pads = cn.explicit_padding(padding, inside, extent, strides)
    config = [(0, 0, 0)] * 2 + [(low, high, b - 1) for (low, high), b in zip(pads, base)]
    y = sh.pad(y, Literal(0, y.aval.with_shape(())), config)
    for i, (k, d, s) in enumerate(zip(window, spread, strides)):
        # The elements of this axis's windows come after those of the axes before it.
        at = 2 + 2 * i
        places = cn.windows(y.aval.shape[at], cn.dilated(k, d), s)
        parts = [
            slice_in_dim(y, j * d, j * d + cn.dilated(places, s), s, axis=at) for j in range(k)
        ]
        y = sh.stack(parts, at)
    order = (0, 1, *range(2, 2 + 2 * count, 2), *range(3, 2 + 2 * count, 2))
    y = transpose(y, order)
    shape = y.aval.shape
    return sh.reshape(y, (shape[0], product(shape[1 : 2 + count]), *shape[2 + count :])), dims


def conv_general_dilated_local(
    lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: Any,
    filter_shape: Sequence[int], lhs_dilation: object = None, rhs_dilation: object = None,
    dimension_numbers: Any = None, precision: object = None,
) -> Array:  # fmt: skip
    """Convolve with a different kernel at each position: a locally connected layer.

    Args:
      lhs: the input: batch, features and spatial axes.
      rhs: the kernels: their spatial axes are positions of the result, and their input features are
        the elements of a window, those of the first feature first.
      filter_shape: the size of the window along each spatial axis.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision: as in
        `conv_general_dilated`.

    Raises TypeRule and AxisError for sizes and numbers that do not fit.

    >>> import plait
    >>> x, kernels = plait.numpy.ones((1, 1, 3)), plait.numpy.array([[[1.0, 5.0], [1.0, 5.0]]])
    >>> plait.lax.conv_general_dilated_local(x, kernels, (1,), "VALID", (2,)).tolist()
    [[[2.0, 10.0]]]
    """
    x, w = value(lhs), value(rhs)
    steps = window_strides, lhs_dilation, rhs_dilation
    y, dims = _patches("conv_general_dilated_local", x, filter_shape, padding, steps,
                       dimension_numbers)  # fmt: skip
    if w.aval.ndim != x.aval.ndim:
        raise AxisError(
            f"conv_general_dilated_local of {x.aval!r} and {w.aval!r}",
            fix="input and kernels have as many axes",
        )
    w = transpose(w, dims.rhs_spec)
    space = tuple(range(2, x.aval.ndim))
    if w.aval.shape[1:] != y.aval.shape[1:]:
        raise ShapeError(
            f"conv_general_dilated_local: windows have (elements, places...) {y.aval.shape[1:]}, "
            f"and kernels {w.aval.shape[1:]}",
            fix="the kernels need a weight for each element of each window",
        )
    out = contracted(y, w, ((1,), (1,)), (space, space), precision=precision)
    n = len(space)
    return transpose(transpose(out, (n, n + 1, *range(n))), _inverse(dims.out_spec))


# ---- axes and shapes -----------------------------------------------------------------------


def conv_general_permutations(dimension_numbers: object) -> tuple[Any, ...]:
    """Return the axes of input, kernel and result in canonical order, from three strings.

    The order is (batch, features, space...), and (output features, input features, space...) for
    the kernel.

    Raises AxisError for invalid strings.

    >>> import plait
    >>> plait.lax.conv_general_permutations(("NHC", "HIO", "NHC"))
    ((0, 2, 1), (2, 1, 0), (0, 2, 1))
    """
    texts = tuple(dimension_numbers) if isinstance(dimension_numbers, tuple | list) else ()
    if len(texts) != 3 or not all(isinstance(t, str) for t in texts):
        raise AxisError(
            f"conv_general_permutations of {dimension_numbers!r}",
            fix='give three strings, such as ("NHWC", "HWIO", "NHWC")',
        )
    sizes = (1,) * len(texts[0])
    return tuple(cn.conv_dimension_numbers(sizes, sizes, texts))


def _shape(
    lhs_shape: Any,
    rhs_shape: Any,
    numbers: tuple[str, ...] | None,
    space: Callable[..., Any],
    batches: int = 1,
) -> tuple:
    """Return the result's shape; `space(sizes of the input, of the kernel)` gives the spatial
    sizes."""
    x, w = normal_shape(lhs_shape), normal_shape(rhs_shape)
    dims = cn.conv_dimension_numbers(x, w, numbers)
    batch = x[dims.lhs_spec[0]]
    if batch.__class__ is int and batch % batches:
        raise ArgumentError(f"a batch of {batch} does not divide into {batches} groups")
    sizes = space([x[a] for a in dims.lhs_spec[2:]], [w[a] for a in dims.rhs_spec[2:]])
    found = (batch // batches, w[dims.rhs_spec[0]], *sizes)
    return tuple([found[i] for i in _inverse(dims.out_spec)])


def _places(sizes: list[int], kernel: list[int], strides: tuple[int, ...], padding: Any) -> list:
    pads = cn.explicit_padding(padding, sizes, kernel, strides)
    return [
        cn.windows(low + n + high, k, s)
        for n, k, s, (low, high) in zip(sizes, kernel, strides, pads)
    ]


def conv_general_shape_tuple(
    lhs_shape: object,
    rhs_shape: object,
    window_strides: object,
    padding: Any,
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """Return the shape of `conv_general_dilated`, without dilations and groups.

    Raises ShapeError for a padding that is not one of the window.

    >>> import plait
    >>> layout = ("NHC", "HIO", "NHC")
    >>> plait.lax.conv_general_shape_tuple((1, 8, 3), (3, 3, 4), (2,), "SAME", layout)
    (1, 4, 4)
    """

    def space(sizes: list, kernel: list) -> list:
        strides = _each("conv_general_shape_tuple", "window_strides", window_strides, len(sizes))
        return _places(sizes, kernel, strides, padding)

    return _shape(lhs_shape, rhs_shape, dimension_numbers, space)


def conv_shape_tuple(
    lhs_shape: object, rhs_shape: object, strides: object, pads: Any, batch_group_count: int = 1
) -> tuple[int, ...]:
    """Return the shape of `conv`: batch and features come first.

    Raises ShapeError for a padding that is not one of the window.

    >>> import plait
    >>> plait.lax.conv_shape_tuple((1, 3, 8, 8), (4, 3, 3, 3), (2, 2), "SAME")
    (1, 4, 4, 4)
    """

    def space(sizes: list, kernel: list) -> list:
        steps = _each("conv_shape_tuple", "strides", strides, len(sizes))
        return _places(sizes, kernel, steps, pads)

    return _shape(lhs_shape, rhs_shape, None, space, batch_group_count)


def conv_transpose_shape_tuple(
    lhs_shape: object,
    rhs_shape: object,
    window_strides: object,
    padding: object,
    dimension_numbers: Any,
) -> tuple[int, ...]:
    """Return the shape of `conv_transpose`.

    Raises ShapeError for a padding that is not one of the window.

    >>> import plait
    >>> layout = ("NHC", "HIO", "NHC")
    >>> plait.lax.conv_transpose_shape_tuple((1, 8, 3), (3, 3, 4), (2,), "SAME", layout)
    (1, 16, 4)
    """

    def space(sizes: list, kernel: list) -> list:
        strides = _each("conv_transpose_shape_tuple", "window_strides", window_strides, len(sizes))
        pads = (
            cn.transposed_padding(padding, kernel, strides) if isinstance(padding, str) else padding
        )
        spread = [cn.dilated(n, s) for n, s in zip(sizes, strides)]
        return _places(spread, kernel, (1,) * len(sizes), pads)

    return _shape(lhs_shape, rhs_shape, dimension_numbers, space)
