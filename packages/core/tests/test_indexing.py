"""Boxes, gather and scatter against loops over indices in numpy.

Invariant: the loops below say what the dimension numbers mean, one index and one element of a
window at a time, and know nothing of the implementation.
"""

import itertools

import numpy as np
import pytest

import plait
from plait._core.array import asarray
from plait._core.staging import staged
from plait._ops.dynamic_slicing import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    index_in_dim,
)
from plait._ops.indexing import GatherDimensionNumbers, GatherScatterMode, gather, gather_
from plait._ops.scattering import (
    ScatterDimensionNumbers,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from plait._ops.sizes import numbered
from plait._types.avals import Aval
from plait._types.dims import symbolic_dims
from plait.errors import SubscriptError, TypeRule

RNG = np.random.default_rng(0)
A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
X = asarray(A)


def same(got, want):
    np.testing.assert_array_equal(np.asarray(got), want)
    assert got.dtype == want.dtype and got.shape == want.shape


# ---- boxes -----------------------------------------------------------------------------------


def box(a, starts, sizes):
    """Where a box is, moved inside."""
    fixed = [s + n if s < 0 else s for s, n in zip(starts, a.shape)]
    at = [min(max(s, 0), n - m) for s, n, m in zip(fixed, a.shape, sizes)]
    return tuple(slice(s, s + m) for s, m in zip(at, sizes))


@pytest.mark.parametrize("starts", [(0, 1, 2), (1, 2, 3), (-1, -2, -9), (9, 9, 9)])
def test_dynamic_slice(starts):
    sizes = (1, 2, 3)
    want = A[box(A, starts, sizes)]
    same(dynamic_slice(X, starts, sizes), want)
    same(dynamic_slice(X, asarray(np.array(starts)), sizes), want)
    same(plait.jit(lambda x, *s: dynamic_slice(x, s, sizes))(X, *starts), want)
    small = [np.int8(s) for s in starts]
    same(plait.jit(lambda x, *s: dynamic_slice(x, s, sizes))(X, *small), want)
    mixed = [np.int64(starts[0]), asarray(np.array(starts[1], np.int32)), starts[2]]
    same(dynamic_slice(X, mixed, sizes), want)
    v = np.full(sizes, -1, np.float32)
    changed = A.copy()
    changed[box(A, starts, sizes)] = v
    same(dynamic_update_slice(X, v, starts), changed)
    same(plait.jit(lambda x, v, *s: dynamic_update_slice(x, v, s))(X, v, *starts), changed)


def test_along_one_axis():
    same(dynamic_slice_in_dim(X, 2, 2, 1), A[:, 1:3])
    same(dynamic_slice_in_dim(X, -1, 1, -1), A[..., 3:])
    same(dynamic_index_in_dim(X, 1), A[1:2])
    same(dynamic_index_in_dim(X, 7, 2, keepdims=False), A[..., 3])
    same(index_in_dim(X, -1, 1), A[:, 2:3])
    same(index_in_dim(X, 2, 2, keepdims=False), A[..., 2])
    with pytest.raises(SubscriptError, match="index 3 is out of range for axis 1"):
        index_in_dim(X, 3, 1)
    want = A.copy()
    want[:, 1:3] = 0
    same(dynamic_update_slice_in_dim(X, np.zeros((2, 2, 4), np.float32), 1, 1), want)
    want = A.copy()
    want[:, 2] = 5
    same(dynamic_update_index_in_dim(X, np.full((2, 4), 5, np.float32), 2, 1), want)
    same(dynamic_update_index_in_dim(X, np.full((2, 1, 4), 5, np.float32), 2, 1), want)


def test_boxes_refused():
    with pytest.raises(TypeRule, match="2 positions for the 3 axes"):
        dynamic_slice(X, (0, 0), (1, 1, 1))
    with pytest.raises(TypeRule, match="a box of size 4 does not fit axis 1"):
        dynamic_slice(X, (0, 0, 0), (1, 4, 1))
    with pytest.raises(TypeRule, match="must be integers"):
        dynamic_slice(X, (0.5, 0, 0), (1, 1, 1))
    with pytest.raises(TypeRule, match="is not a box of"):
        dynamic_update_slice(X, np.zeros(3, np.float32), (0, 0, 0))
    with pytest.raises(TypeRule, match=r"f64\[1,1,1\] does not go into f32"):
        dynamic_update_slice(X, np.zeros((1, 1, 1)), (0, 0, 0))


def test_no_axes_and_nothing():
    same(dynamic_slice(asarray(np.float32(3)), (), ()), np.float32(3).reshape(()))
    same(dynamic_slice(X, (0, 0, 0), (0, 3, 4)), A[:0])
    same(dynamic_update_slice(asarray(np.float32(3)), np.float32(4), ()), np.array(np.float32(4)))


# ---- gather and scatter, by their definition --------------------------------------------------


def windows(shape, indices, numbers, sizes, mode):
    """For each index: (its place among the indices, where its window begins, whether inside)."""
    _, _, to, together, with_ = numbers
    for k in np.ndindex(indices.shape[:-1]):
        start = [0] * len(shape)
        for axis, i in zip(to, indices[k]):
            start[axis] = int(i)
        inside = all(0 <= start[a] <= shape[a] - sizes[a] for a in to)
        if mode == "clip":
            start = [min(max(s, 0), n - m) for s, n, m in zip(start, shape, sizes)]
        for axis, other in zip(together, with_):
            start[axis] = k[other]
        yield k, start, inside or mode == "clip"


def elements(k, start, numbers, sizes, ndim):
    """(place in the result or updates, place in the operand) of each element of a window."""
    window, dropped, _, together, _ = numbers
    kept = [a for a in range(len(sizes)) if a not in (*dropped, *together)]
    for offset in np.ndindex(tuple(sizes)):
        out, rest = [0] * ndim, iter(k)
        for position in range(ndim):
            if position in window:
                out[position] = offset[kept[window.index(position)]]
            else:
                out[position] = next(rest)
        yield tuple(out), tuple(s + o for s, o in zip(start, offset))


def gathered(a, indices, numbers, sizes, mode, fill):
    ndim = indices.ndim - 1 + len(numbers[0])
    dropped = (*numbers[1], *numbers[3])
    kept = [m for i, m in enumerate(sizes) if i not in dropped]
    shape, w, b = [], iter(kept), iter(indices.shape[:-1])
    for p in range(ndim):
        shape.append(next(w) if p in numbers[0] else next(b))
    out = np.full(shape, fill, a.dtype)
    for k, start, inside in windows(a.shape, indices, numbers, sizes, mode):
        for to, at in elements(k, start, numbers, sizes, ndim):
            if inside:
                out[to] = a[at]
    return out


def scattered(a, indices, updates, numbers, sizes, mode, join):
    out = a.copy()
    for k, start, inside in windows(a.shape, indices, numbers, sizes, mode):
        for at, to in elements(k, start, numbers, sizes, updates.ndim):
            if inside:
                out[to] = join(out[to], updates[at])
    return out


def places(*shape):
    return RNG.integers(-2, 5, shape).astype(np.int32)


CASES = {
    "rows": (((1, 2), (0,), (0,)), (1, 3, 4), (5, 1)),
    "columns": (((0, 1), (2,), (2,)), (2, 3, 1), (3, 1)),
    "elements": (((), (0, 1, 2), (0, 1, 2)), (1, 1, 1), (4, 3)),
    "permuted": (((), (0, 1, 2), (2, 0, 1)), (1, 1, 1), (2, 2, 3)),
    "windows": (((1, 2), (1,), (0, 2)), (2, 1, 2), (4, 2)),
    "windows first": (((0, 2), (1,), (2, 1)), (1, 1, 3), (4, 2)),
    "no axes": (((0, 1), (1,), (1, 2)), (2, 1, 2), (2,)),
    "nothing mapped": (((1, 2, 3), (), ()), (2, 2, 4), (2, 0)),
    "together": (((2,), (1,), (1,), (0,), (0,)), (1, 1, 4), (2, 3, 1)),
    "together twice": (((), (1,), (1,), (0, 2), (1, 0)), (1, 1, 1), (4, 2, 1)),
    "window and together": (((1, 2), (), (1, 2), (0,), (0,)), (1, 3, 2), (2, 2)),
}


@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize("name", CASES)
def test_gather(name, mode):
    numbers, sizes, shape = CASES[name]
    numbers = GatherDimensionNumbers(*numbers)
    indices = places(*shape)
    want = gathered(A, indices, numbers, sizes, mode, np.nan)
    same(gather(X, indices, numbers, sizes, mode=mode), want)
    f = plait.jit(lambda x, i: gather(x, i, numbers, sizes, mode=mode, fill_value=-1))
    same(f(X, indices), np.where(np.isnan(want), np.float32(-1), want))
    wide = gather(X, indices.astype(np.int64), numbers, sizes, mode=mode)
    same(wide, want)


JOINS = {
    scatter_add: np.add,
    scatter_sub: np.subtract,
    scatter_mul: np.multiply,
    scatter_min: np.minimum,
    scatter_max: np.maximum,
    scatter: lambda old, new: new,
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("f", JOINS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", CASES)
def test_scatter(name, f):
    numbers, sizes, shape = CASES[name]
    numbers = ScatterDimensionNumbers(*numbers)
    indices = places(*shape)
    ndim = indices.ndim - 1 + len(numbers[0])
    kept = iter([m for i, m in enumerate(sizes) if i not in (*numbers[1], *numbers[3])])
    rest = iter(indices.shape[:-1])
    v = RNG.integers(1, 4, [next(kept) if p in numbers[0] else next(rest) for p in range(ndim)])
    v = np.full_like(v, 2) if f is scatter else v  # which of several counts is not promised
    v = v.astype(np.float32)
    for mode in ("drop", "clip"):
        want = scattered(A, indices, v, numbers, sizes, mode, JOINS[f])
        same(f(X, indices, v, numbers, mode=mode), want)
        compiled = plait.jit(lambda x, i, v, mode=mode: f(x, i, v, numbers, mode=mode))
        same(compiled(X, indices, v), want)


def test_names_of_modes():
    numbers = GatherDimensionNumbers((), (0,), (0,))
    x, i = asarray(np.arange(3.0)), np.array([[5], [1]])
    for mode in ("clip", GatherScatterMode.CLIP):
        same(gather(x, i, numbers, (1,), mode=mode), np.array([2.0, 1.0]))
    for mode in (None, "fill", GatherScatterMode.FILL_OR_DROP):
        same(gather(x, i, numbers, (1,), mode=mode), np.array([np.nan, 1.0]))
    same(gather(x, i % 3, numbers, (1,), mode="promise_in_bounds"), np.array([2.0, 1.0]))
    with pytest.raises(TypeRule, match="no indexing mode 'wrap'"):
        gather(x, i, numbers, (1,), mode="wrap")


def test_fill_values_tell_zeros_apart():
    """0.0 and -0.0 are equal in Python, and different programs."""
    numbers, i = GatherDimensionNumbers((), (0,), (0,)), np.array([[9]])
    x = asarray(np.ones(3))
    for zero in (0.0, -0.0, 0.0):
        got = np.asarray(gather(x, i, numbers, (1,), fill_value=zero))
        assert np.signbit(got[0]) == np.signbit(zero)


def test_no_indices():
    numbers = GatherDimensionNumbers((1,), (0,), (0,))
    empty = asarray(np.zeros((0, 3)))
    assert gather(empty, np.zeros((0, 1), np.int32), numbers, (1, 3)).shape == (0, 3)
    into = ScatterDimensionNumbers((1,), (0,), (0,))
    got = scatter(X[0], np.zeros((0, 1), np.int32), np.zeros((0, 4), np.float32), into)
    same(got, A[0])


@pytest.mark.parametrize(
    ("numbers", "sizes", "shape", "text"),
    [
        (((1, 2), (0,), (0,)), (1, 3, 4), (5, 2), "2 components"),
        (((1,), (0,), (0,)), (1, 3, 4), (5, 1), "are not the 3 axes"),
        (((1, 2), (0,), (7,)), (1, 3, 4), (5, 1), r"map to axes \(7,\)"),
        (((1, 2), (0,), (0,)), (2, 3, 4), (5, 1), "axis 0 is dropped"),
        (((1, 2), (0,), (0,)), (1, 5, 4), (5, 1), "a window of size 5 does not fit axis 1"),
        (((2, 1), (0,), (0,)), (1, 3, 4), (5, 1), "in order"),
        (((2,), (1,), (1,), (0,), (0,)), (1, 1, 4), (3, 3, 1), "do not go together"),
    ],
)
def test_gather_refused(numbers, sizes, shape, text):
    with pytest.raises(TypeRule, match=text):
        gather(X, places(*shape), GatherDimensionNumbers(*numbers), sizes)


def test_scatter_refused():
    numbers, i = ScatterDimensionNumbers((1, 2), (0,), (0,)), places(5, 1)
    with pytest.raises(TypeRule, match="they need dtype float32 and 3 axes"):
        scatter(X, i, np.zeros((5, 3), np.float32), numbers)
    with pytest.raises(TypeRule, match="not one window for each"):
        scatter_add(X, i, np.zeros((4, 3, 4), np.float32), numbers)
    with pytest.raises(TypeRule, match="complex numbers have no order"):
        scatter_min(X.astype("complex64"), i, np.zeros((5, 3, 4), np.complex64), numbers)


# ---- dtypes, and sizes known by name only -----------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int64", "float16", "complex128"])
def test_dtypes(dtype):
    a = (np.arange(6) % 3).astype(dtype)
    i = np.array([[4], [1], [1]])
    numbers = GatherDimensionNumbers((), (0,), (0,))
    same(gather(asarray(a), i, numbers, (1,)), a[[4, 1, 1]])
    v = np.ones(3, dtype)
    want = a.copy()
    np.add.at(want, [4, 1, 1], v)
    same(scatter_add(asarray(a), i, v, ScatterDimensionNumbers(*numbers)), want)


def test_unsigned_places():
    """The greatest uint32 is far outside, and not -1."""
    numbers = GatherDimensionNumbers((), (0,), (0,))
    x = asarray(np.arange(3.0))
    for dtype in (np.uint8, np.uint32, np.uint64):
        top = np.array([[np.iinfo(dtype).max], [1]], dtype)
        same(gather(x, top, numbers, (1,)), np.array([np.nan, 1.0]))
        same(gather(x, top, numbers, (1,), mode="clip"), np.array([2.0, 1.0]))


def test_numbered():
    for shape in ((), (4,), (2, 3, 4), (0, 2)):
        got = plait.jit(lambda s=shape: numbered(s, np.dtype(np.int32)))()
        want = np.arange(np.prod(shape)).reshape(shape)
        np.testing.assert_array_equal(np.asarray(got), want)


def test_types_with_symbolic_sizes():
    b, c = symbolic_dims("b, c")
    x = Aval((b, 4, c), np.float32)
    i = Aval((c, 1), np.int32)
    numbers = GatherDimensionNumbers((1, 2), (0,), (0,))
    how = dict(mode="clip", fill_value=None, indices_are_sorted=False, unique_indices=False)
    program = staged(
        lambda x, i: [gather_.bind(x, i, dimension_numbers=numbers, slice_sizes=(1, 4, c), **how)],
        [x, i],
    )
    assert program.out_avals[0].shape == (c, 4, c)
    program = staged(lambda x: [dynamic_slice(x, (0, 1, 0), (1, 2, c))], [x])
    assert program.out_avals[0].shape == (1, 2, c)


def test_every_pair_of_flags():
    """Promises that are kept change nothing."""
    numbers = GatherDimensionNumbers((1, 2), (0,), (0,))
    i = np.array([[0], [1]])
    for a, b in itertools.product((False, True), repeat=2):
        how = dict(indices_are_sorted=a, unique_indices=b)
        same(gather(X, i, numbers, (1, 3, 4), **how), A)
        v = np.ones((2, 3, 4), np.float32)
        same(scatter_add(X, i, v, ScatterDimensionNumbers(*numbers), **how), A + 1)
