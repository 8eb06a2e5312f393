"""Convolutions as CPUs compute them fast: as products of matrices, or of shifted arrays.

The compiler's own convolution is fast where many places share a small kernel over many features.
It is slow where it has little to sum at each place, or few places:

* a kernel of one element, or one for each patch of the input, is a product of matrices;
* groups of features are a convolution each, if they are few; products of groups are a stack;
* a kernel for each feature alone ("depthwise") is a sum of shifted inputs times a number;
* one place with a large window is a product; in three dimensions so is each of a few places, as in
  the derivative by a kernel;
* an input with gaps as wide as the window, as in the derivative by patches, is a product for each
  element: the compiler multiplies the zeros between them, too.

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
from .._core.interpreter import Value
from .._types.avals import Aval
from .._xla.cpu_forms import cpu_limit
from .contraction import dot_general
from .convolution import ConvDims, conv_general
from .divided_convolution import every
from .elementwise import add, mul
from .reduction import reduce_sum
from .reduction_forms import LONGEST
from .shape import broadcast_in_dim, concatenate, pad, reshape, rev, transpose
from .taking import take

MOST_TERMS = cpu_limit(
    "convolution.most_terms",
    121,
    "The most positions to write down one by one; larger modules take long to compile.",
)
MOST_SUMS = cpu_limit(
    "convolution.most_sums",
    25,
    "The most positions at which a sum over all places is written down: sums compile longer.",
)
SMALLEST_RESULT = cpu_limit(
    "convolution.smallest_result",
    16,
    "The fewest results at one place of a group that several places are worth products for.",
)
MOST_GROUPS = cpu_limit(
    "convolution.most_groups", 8, "The most groups to write down as a convolution each."
)


class Convolution:
    """A convolution of known sizes.

    Attributes:
      x, y: types of the input and the kernel.
      dims, strides, padding, gaps, steps: its parameters; `gaps` dilate the input, `steps` the
        kernel.
      features, batches: the numbers of groups of features and of examples.
      window, places: the sizes of the kernel and of the result along the spatial axes.
    """

    def __init__(self, x: Aval, y: Aval, params: dict[str, Any]):
        self.x, self.y, self.dims = x, y, params["dims"]
        self.strides, self.padding = params["window_strides"], params["padding"]
        self.gaps, self.steps = params["lhs_dilation"], params["rhs_dilation"]
        self.features, self.batches = params["feature_group_count"], params["batch_group_count"]
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

    @property
    def groups(self) -> int:
        """The number of groups, of features or of examples."""
        return self.features * self.batches

    @property
    def each(self) -> int:
        """The number of results of a group at one place."""
        batch, out = self.x.shape[self.dims.lhs_spec[0]], self.y.shape[self.dims.rhs_spec[0]]
        return (batch // self.batches) * (out // self.groups)

    @property
    def is_depthwise(self) -> bool:
        """True if each feature has a kernel of its own."""
        into, out = self.x.shape[self.dims.lhs_spec[1]], self.y.shape[self.dims.rhs_spec[0]]
        return self.batches == 1 < self.features == into == out

    @property
    def is_by_depthwise_kernel(self) -> bool:
        """True if each example meets a kernel of its own, as in the derivative by such a kernel."""
        batch, out = self.x.shape[self.dims.lhs_spec[0]], self.y.shape[self.dims.rhs_spec[0]]
        return self.features == 1 < self.batches == batch == out

    @property
    def is_scattered(self) -> bool:
        """True if elements of the input are so far apart that no place meets two of them."""
        alone = all(w <= g for w, g in zip(self.window, self.gaps))
        return alone and self.groups == 1 and max(self.gaps) > 1 == max(*self.strides, *self.steps)

    def padded(self, x: Value) -> Any:
        """Return the input with its padding and the gaps of its dilation as zeros."""
        if not self.is_padded:
            return x
        edges = [(0, 0, 0)] * x.aval.ndim
        for a, (low, high), gap in zip(self.dims.lhs_spec[2:], self.padding, self.gaps):
            edges[a] = low, high, gap - 1
        return pad(x, Literal(0, x.aval.with_shape(())), edges)

    def product(
        self,
        x: Value,
        y: Value,
        contract: Sequence[Sequence[int]],
        out: int,
        own: int | None = None,
    ) -> Any:
        """Return the product of the groups of two arrays.

        Args:
          x: has the axes of the input.
          contract: the axes of x and of y that are summed.
          out: the axis of y that is left, the output features.
          own: the axis of x that has the groups, if x has other axes than the input.

        Returns an array with the axes of x that are left, and the output features as the last.
        """
        count = self.groups
        if count == 1:
            return dot_general.bind(x, y, contract=tuple(map(tuple, contract)), shared=((), ()),
                                    **self.how)  # fmt: skip
        usual = self.dims.lhs_spec[int(self.features > 1)]
        at = usual if own is None else own
        places = [tuple([a + (a >= k) for a in axes]) for axes, k in zip(contract, (at, out))]
        x, y = _divided(x, at, count), _divided(y, out, count)
        made = dot_general.bind(x, y, contract=tuple(places), shared=((at,), (out,)), **self.how)
        n, shape = made.aval.ndim, made.aval.shape
        made = transpose(made, (*range(1, n - 1), 0, n - 1))
        return reshape(made, (*shape[1:-1], count * shape[-1]))

    def shifted(self, x: Value, at: Sequence[int]) -> Any:
        """Return the elements of the padded input that one position of the kernel meets."""
        start = [i * s for i, s in zip(at, self.steps)]
        return every(x, self.dims.lhs_spec[2:], start, self.places, self.strides)

    def box(self, x: Value, at: Sequence[int]) -> Any:
        """Return the elements of the padded input that the kernel meets at one place."""
        start = [i * s for i, s in zip(at, self.strides)]
        return every(x, self.dims.lhs_spec[2:], start, self.window, self.steps)


def form_of(avals: Sequence[Aval], /, **params: Any) -> Callable | None:
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
    window, places = math.prod(it.window), math.prod(it.places)
    if it.is_depthwise:
        return (lambda x, y: _depthwise(it, x, y)) if window <= MOST_TERMS.value else None
    if it.is_by_depthwise_kernel:
        return (lambda x, y: _depthwise_kernel(it, x, y)) if places <= MOST_SUMS.value else None
    if window == 1 and not it.is_padded:
        return lambda x, y: _pointwise(it, x, y)
    if it.is_scattered:
        return lambda x, y: _scattered(it, x, y)
    # In one and two dimensions, the compiler's convolution is as fast as two products or more.  It
    # is slower where each example has a group, as in the derivative by kernels of examples.
    stacks = it.groups > MOST_GROUPS.value and it.each >= SMALLEST_RESULT.value
    most = MOST_TERMS.value if len(it.window) > 2 else MOST_SUMS.value if stacks else 1
    if places <= most and places < window:
        return lambda x, y: _at_each_place(it, x, y)
    if it.batches == 1 < it.features <= MOST_GROUPS.value:
        return lambda x, y: _one_by_one(it, x, y, params)
    return None


def by_patches(x: Value, y: Value, params: dict[str, Any]) -> Any:
    """Return a convolution as one product with copies of all places' inputs.

    It takes as much memory as the input for each element of the kernel, but any dtype: accelerators
    without convolutions of integers have products of them.
    """
    it = Convolution(x.aval, y.aval, params)
    dims: ConvDims = it.dims
    x = it.padded(x)
    axes = [[a] for a in range(x.aval.ndim)]  # of x by now, for each axis that it had
    parts = zip(dims.lhs_spec[2:], it.places, it.window, it.strides, it.steps)
    for a, places, window, stride, step in parts:
        at = np.arange(places)[:, None] * stride + np.arange(window) * step
        start = axes[a][0]
        x = take(x, at.astype(np.int32), start, mode="clip")
        axes = [[k + (k > start) for k in own] for own in axes]
        axes[a] = [start, start + 1]
    contract = [axes[dims.lhs_spec[1]][0], *[axes[a][1] for a in dims.lhs_spec[2:]]]
    own = dims.lhs_spec[1] if it.features > 1 else dims.lhs_spec[0]
    made = it.product(x, y, (contract, dims.rhs_spec[1:]), dims.rhs_spec[0], axes[own][0])
    given = {axes[a][0]: b for a, b in zip(dims.lhs_spec, dims.out_spec)}
    left = [given[a] for a in range(x.aval.ndim) if a not in contract]
    return _arranged(made, [*left, dims.out_spec[1]])


def _divided(x: Value, axis: int, count: int) -> Any:
    """Return an array with an axis as two: the groups, and the elements of a group."""
    shape = x.aval.shape
    return reshape(x, (*shape[:axis], count, shape[axis] // count, *shape[axis + 1 :]))


def _arranged(out: Any, axes: Sequence[int]) -> Any:
    """Return an array whose axis k is axis `axes[k]` of the result, with its axes in order."""
    return transpose(out, tuple(np.argsort(axes).tolist()))


def _pointwise(it: Convolution, x: Value, y: Value) -> Any:
    """Return the result of a kernel of one element: a product over the features."""
    dims: ConvDims = it.dims
    x = it.shifted(x, [0] * len(it.window))
    into, out = dims.rhs_spec[1], dims.rhs_spec[0]
    y = reshape(y, tuple(y.aval.shape[a] for a in sorted((into, out))))
    contracted = dims.lhs_spec[1]
    made = it.product(x, y, ((contracted,), (int(into > out),)), int(out > into))
    given = dict(zip(dims.lhs_spec, dims.out_spec))
    return _arranged(made, [given[a] for a in range(x.aval.ndim) if a != contracted]
                     + [dims.out_spec[1]])  # fmt: skip


def _scattered(it: Convolution, x: Value, y: Value) -> Any:
    """Return the products of each element of the input with the kernel, side by side."""
    dims, count = it.dims, len(it.window)
    (batch, into, *across), (out, met, *along) = dims.lhs_spec, dims.rhs_spec
    y = rev.bind(y, axes=tuple(sorted(along)))  # the first place meets the kernel's last element
    made = dot_general.bind(x, y, contract=((into,), (met,)), shared=((), ()), **it.how)
    left = [a for a in range(count + 2) if a != into]
    right = [a for a in range(count + 2) if a != met]
    own: dict[int, list[int]] = {dims.out_spec[0]: [left.index(batch)]}
    own[dims.out_spec[1]] = [count + 1 + right.index(out)]
    for a, b, c in zip(dims.out_spec[2:], across, along):
        own[a] = [left.index(b), count + 1 + right.index(c)]
    made = transpose(made, tuple([i for a in range(count + 2) for i in own[a]]))
    zero = Literal(0, made.aval.with_shape(()))
    size = dict(zip(dims.out_spec, (x.aval.shape[batch], y.aval.shape[out])))
    between, ends = [(0, 0, 0)] * made.aval.ndim, [(0, 0, 0)] * (count + 2)
    order = [i for a in range(count + 2) for i in own[a]]
    parts = zip(dims.out_spec[2:], across, it.window, it.gaps, it.padding, it.places)
    for a, b, w, g, (low, _), places in parts:
        between[order.index(own[a][1])] = 0, g - w, 0
        size[a] = x.aval.shape[b] * g
        start = low - w + 1
        ends[a] = start, places - start - size[a], 0
    made = reshape(pad(made, zero, between), tuple([size[a] for a in range(count + 2)]))
    return pad(made, zero, ends)


def _at_each_place(it: Convolution, x: Value, y: Value) -> Any:
    """Return one product for each place: over the features and the window."""
    dims: ConvDims = it.dims
    x, found = it.padded(x), []
    contract = dims.lhs_spec[1:], dims.rhs_spec[1:]
    for at in product(*map(range, it.places)):
        found.append(it.product(it.box(x, at), y, contract, dims.rhs_spec[0]))
    return _collected(it, found, (dims.out_spec[0], dims.out_spec[1]))


def _collected(it: Convolution, found: list, axes: Sequence[int]) -> Any:
    """Return the results at all places as one array; their axes are `axes` of it."""
    dims, shape = it.dims, found[0].aval.shape
    found = [reshape(v, (1, *v.aval.shape)) for v in found]
    made = concatenate(found, 0) if len(found) > 1 else found[0]
    made = reshape(made, (*it.places, *shape))
    return _arranged(made, [*dims.out_spec[2:], *axes])


def _one_by_one(it: Convolution, x: Value, y: Value, params: dict[str, Any]) -> Any:
    """Return the results of the groups of features, one after the other."""
    groups, dims = params["feature_group_count"], it.dims
    parts = zip(_parts(x, dims.lhs_spec[1], groups), _parts(y, dims.rhs_spec[0], groups))
    one = {**params, "feature_group_count": 1}
    return concatenate([conv_general.bind(*part, **one) for part in parts], dims.out_spec[1])


def _parts(x: Value, axis: int, count: int) -> list:
    n = x.aval.shape[axis] // count
    return [every(x, (axis,), (k * n,), (n,), (1,)) for k in range(count)]


def _depthwise(it: Convolution, x: Value, y: Value) -> Any:
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


def _summed(x: Value, axes: Sequence[int]) -> Any:
    """Return a sum over axes; a part of one axis is summed first.

    The sum of a few slices joins the loop that makes them, so that the library that does the rest
    reads a fraction.
    """
    shape = x.aval.shape
    parts = [(math.gcd(shape[a], LONGEST.value), a) for a in axes if a < x.aval.ndim - 1]
    count, axis = max(parts, key=lambda p: p[0], default=(1, 0))
    if count > 1:
        x = reshape(x, (*shape[:axis], count, shape[axis] // count, *shape[axis + 1 :]))
        x = reduce_sum.bind(x, axes=(axis,))
    return reduce_sum.bind(x, axes=tuple(axes))


def _depthwise_kernel(it: Convolution, x: Value, y: Value) -> Any:
    """Return the derivative by a depthwise kernel: at each place, a sum for each feature."""
    dims: ConvDims = it.dims
    taken = dict(zip(dims.rhs_spec, dims.lhs_spec))  # the axis of x that an axis of y goes along
    y = _arranged(y, [taken[a] for a in range(y.aval.ndim)])
    x, found = it.padded(x), []
    for at in product(*map(range, it.places)):
        box = it.box(x, at)
        found.append(_summed(mul.bind(box, y), sorted(dims.lhs_spec[1:])))
    found = [reshape(v, (1, *v.aval.shape)) for v in found]
    return _collected(it, found, dims.out_spec[:2])
