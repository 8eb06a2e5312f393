"""Convolutions as CPUs compute them fast: as products of matrices, or of shifted arrays.

The compiler's own convolution is fast where many places share a small kernel over many features.
It is slow where it has little to sum at each place, or few places:

* a kernel of one element, or one for each patch of the input, is a product of matrices;
* groups of features are a convolution each, if they are few;
* a kernel for each feature alone ("depthwise") is a sum of shifted inputs times a number;
* one place with a large window is a product; in three dimensions so is each of a few places, as in
  the derivative by a kernel.

Operands stay in the order of axes that they have: an exchange would copy them.

Invariant: sums are as wide as those of the convolution; padding is zeros, and is multiplied only
where the convolution does so.
"""

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np

from .._core.array import Literal
from .._types.avals import Aval
from .contraction import dot_general
from .convolution import ConvDims, conv_general
from .divided_convolution import every
from .elementwise import add, mul
from .reduction import reduce_sum
from .shape import broadcast_in_dim, concatenate, pad, reshape, transpose

MOST_TERMS = 64
"""The most positions to write down one by one; larger modules take long to compile."""
MOST_SUMS = 25
"""The most positions at which a sum over all places is written down: sums compile longer."""
MOST_GROUPS = 8
"""The most groups to write down as a convolution each."""


class Convolution:
    """A convolution of known sizes.

    Attributes:
      x, y: types of the input and the kernel.
      dims, strides, padding, gaps, steps: its parameters; `gaps` dilate the input, `steps` the
        kernel.
      window, places: the sizes of the kernel and of the result along the spatial axes.
    """

    def __init__(self, x: Aval, y: Aval, params: dict[str, Any]):
        self.x, self.y, self.dims = x, y, params["dims"]
        self.strides, self.padding = params["window_strides"], params["padding"]
        self.gaps, self.steps = params["lhs_dilation"], params["rhs_dilation"]
        self.how = {"precision": params["precision"], "out_dtype": params["out_dtype"]}
        self.window = [y.shape[a] for a in self.dims.rhs_spec[2:]]
        sizes = [x.shape[a] for a in self.dims.lhs_spec[2:]]
        sizes = [low + (n - 1) * g + 1 + high if n else low + high
                 for n, g, (low, high) in zip(sizes, self.gaps, self.padding)]  # fmt: skip
        reach = [(n - 1) * s + 1 for n, s in zip(self.window, self.steps)]
        self.places = [(n - r) // s + 1 for n, r, s in zip(sizes, reach, self.strides)]

    @property
    def is_padded(self) -> bool:
        """True if the input is padded, cut, or spread."""
        return any(p for pair in self.padding for p in pair) or any(g > 1 for g in self.gaps)

    def padded(self, x: Any) -> Any:
        """Return the input with its padding and the gaps of its dilation as zeros."""
        if not self.is_padded:
            return x
        edges = [(0, 0, 0)] * x.aval.ndim
        for a, (low, high), gap in zip(self.dims.lhs_spec[2:], self.padding, self.gaps):
            edges[a] = low, high, gap - 1
        return pad(x, Literal(0, x.aval.with_shape(())), edges)

    def shifted(self, x: Any, at: Sequence[int]) -> Any:
        """Return the elements of the padded input that one position of the kernel meets."""
        start = [i * s for i, s in zip(at, self.steps)]
        return every(x, self.dims.lhs_spec[2:], start, self.places, self.strides)

    def box(self, x: Any, at: Sequence[int]) -> Any:
        """Return the elements of the padded input that the kernel meets at one place."""
        start = [i * s for i, s in zip(at, self.strides)]
        return every(x, self.dims.lhs_spec[2:], start, self.window, self.steps)


def form_of(avals: Sequence[Aval], **params: Any) -> Callable | None:
    """Return the form of a convolution; None if the compiler's own is the better one."""
    x, y = avals
    sizes = *x.shape, *y.shape
    if not all(n.__class__ is int and n > 0 for n in sizes) or x.dtype.kind not in "fc":
        return None
    if x.dtype.itemsize < 4 or x.dtype != params["out_dtype"] or params.get("exact"):
        return None
    it = Convolution(x, y, params)
    if not it.window or min(it.places) < 1:
        return None
    if x.dtype.itemsize > 4 and it.is_padded:  # its loop in double precision visits no padding
        return None
    features, batches = params["feature_group_count"], params["batch_group_count"]
    window, places = math.prod(it.window), math.prod(it.places)
    if features == batches == 1:
        if window == 1 and not it.is_padded:
            return lambda x, y: _pointwise(it, x, y)
        # In one and two dimensions, the compiler's convolution is as fast as two products or more.
        most = 1 if len(it.window) < 3 else MOST_TERMS
        if places <= most and places < window:
            return lambda x, y: _at_each_place(it, x, y)
        return None
    if batches == 1 and x.shape[it.dims.lhs_spec[1]] == features == y.shape[it.dims.rhs_spec[0]]:
        return (lambda x, y: _depthwise(it, x, y)) if window <= MOST_TERMS else None
    if features == 1 and x.shape[it.dims.lhs_spec[0]] == batches == y.shape[it.dims.rhs_spec[0]]:
        return (lambda x, y: _depthwise_kernel(it, x, y)) if places <= MOST_SUMS else None
    if batches == 1 and features <= MOST_GROUPS:
        return lambda x, y: _one_by_one(it, x, y, params)
    return None


def _arranged(out: Any, axes: Sequence[int]) -> Any:
    """Return an array whose axis k is axis `axes[k]` of the result, with its axes in order."""
    return transpose(out, tuple(np.argsort(axes).tolist()))


def _pointwise(it: Convolution, x: Any, y: Any) -> Any:
    """Return the result of a kernel of one element: a product over the features."""
    dims: ConvDims = it.dims
    x = it.shifted(x, [0] * len(it.window))
    into, out = dims.rhs_spec[1], dims.rhs_spec[0]
    y = reshape(y, tuple(y.aval.shape[a] for a in sorted((into, out))))
    contracted = dims.lhs_spec[1]
    made = dot_general.bind(
        x, y, contract=((contracted,), (int(into > out),)), shared=((), ()), **it.how
    )
    given = dict(zip(dims.lhs_spec, dims.out_spec))
    return _arranged(made, [given[a] for a in range(x.aval.ndim) if a != contracted]
                     + [dims.out_spec[1]])  # fmt: skip


def _at_each_place(it: Convolution, x: Any, y: Any) -> Any:
    """Return one product for each place: over the features and the window."""
    dims: ConvDims = it.dims
    x, found = it.padded(x), []
    contract = dims.lhs_spec[1:], dims.rhs_spec[1:]
    for at in product(*map(range, it.places)):
        found.append(
            dot_general.bind(it.box(x, at), y, contract=contract, shared=((), ()), **it.how)
        )
    return _collected(it, found, (dims.out_spec[0], dims.out_spec[1]))


def _collected(it: Convolution, found: list, axes: Sequence[int]) -> Any:
    """Return the results at all places as one array; their axes are `axes` of it."""
    dims, shape = it.dims, found[0].aval.shape
    found = [reshape(v, (1, *v.aval.shape)) for v in found]
    made = concatenate(found, 0) if len(found) > 1 else found[0]
    made = reshape(made, (*it.places, *shape))
    return _arranged(made, [*dims.out_spec[2:], *axes])


def _one_by_one(it: Convolution, x: Any, y: Any, params: dict[str, Any]) -> Any:
    """Return the results of the groups of features, one after the other."""
    groups, dims = params["feature_group_count"], it.dims
    parts = zip(_parts(x, dims.lhs_spec[1], groups), _parts(y, dims.rhs_spec[0], groups))
    one = {**params, "feature_group_count": 1}
    return concatenate([conv_general.bind(*part, **one) for part in parts], dims.out_spec[1])


def _parts(x: Any, axis: int, count: int) -> list:
    n = x.aval.shape[axis] // count
    return [every(x, (axis,), (k * n,), (n,), (1,)) for k in range(count)]


def _depthwise(it: Convolution, x: Any, y: Any) -> Any:
    """Return the sum over the window of the shifted input times the kernel's numbers."""
    dims: ConvDims = it.dims
    x, total = it.padded(x), None
    for at in product(*map(range, it.window)):
        piece = it.shifted(x, at)
        cell = every(y, dims.rhs_spec[2:], at, [1] * len(at), [1] * len(at))
        cell = reshape(cell, (y.aval.shape[dims.rhs_spec[0]],))
        cell = broadcast_in_dim.bind(cell, shape=piece.aval.shape, dims=(dims.lhs_spec[1],))
        term = mul.bind(piece, cell)
        total = term if total is None else add.bind(total, term)
    given = dict(zip(dims.lhs_spec, dims.out_spec))
    return _arranged(total, [given[a] for a in range(x.aval.ndim)])


def _depthwise_kernel(it: Convolution, x: Any, y: Any) -> Any:
    """Return the derivative by a depthwise kernel: at each place, a sum for each feature."""
    dims: ConvDims = it.dims
    taken = dict(zip(dims.rhs_spec, dims.lhs_spec))  # the axis of x that an axis of y goes along
    y = _arranged(y, [taken[a] for a in range(y.aval.ndim)])
    x, found = it.padded(x), []
    for at in product(*map(range, it.places)):
        box = it.box(x, at)
        found.append(reduce_sum.bind(mul.bind(box, y), axes=tuple(sorted(dims.lhs_spec[1:]))))
    found = [reshape(v, (1, *v.aval.shape)) for v in found]
    return _collected(it, found, dims.out_spec[:2])
