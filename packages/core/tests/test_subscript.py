"""x[index] and x.at[index] against numpy: every kind of index, alone and mixed, at once and traced.

Invariant: numpy says what an index reads and where a result has its axes, `ufunc.at` what writing
to places that occur twice does.
"""

import itertools
import random

import numpy as np
import pytest

import plait
from plait._base import jaxlib_api
from plait._core.array import Array, asarray, wrap
from plait._core.buffers import client, device_list, devices, handler
from plait._core.staging import staged
from plait._ops.taking import take, take_along_axis
from plait._types.avals import Aval, aval_for
from plait._types.dims import Scope, symbolic_dims
from plait._xla import mlir
from plait._xla.lower import Emitter, Unit
from plait.errors import ConcretizationError, SubscriptError, TypeRule, UndecidedDim
from plait.events import counting

SHAPE = (3, 4, 2)
A = np.arange(24, dtype=np.float32).reshape(SHAPE)
X = asarray(A)


def same(got, want):
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_array_equal(np.asarray(got), want)


# ---- every pair of items ---------------------------------------------------------------------

ITEMS = [
    0,
    -1,
    slice(None),
    slice(1, 3),
    slice(None, None, -1),
    slice(-1, 0, -2),
    slice(5, 1),
    None,
    Ellipsis,
    True,
    False,
    np.array([2, 0, -1]),
    np.array([[1], [0]]),
    np.array([], np.int64),
    np.array(1, np.int8),
    np.uint8(1),
    [2, 0, -1],
    [[1], [0]],
    [True, False, True],
]


def grid():
    single = [(i,) for i in ITEMS]
    return single + list(itertools.product(ITEMS, ITEMS))


def expected(index):
    """What numpy reads, or None if it is an error there."""
    try:
        return A[index]
    except IndexError:
        return None


@pytest.mark.sampled(16)
@pytest.mark.parametrize("first", range(len(ITEMS)))
def test_every_pair(first):
    for index in grid():
        if index[0] is not ITEMS[first]:
            continue
        want = expected(index)
        if want is not None:
            same(X[index], want)
        elif not any(isinstance(i, np.ndarray | list) and np.ndim(i) for i in index):  # those clamp
            with pytest.raises(IndexError):
                X[index]


LISTS = [
    [0, 1],
    [],
    [[], []],
    [[0, 2], [1, 1]],
    [True, False, True],
    [[True, False, True, True]] * 3,
    ([2, 0], [1, 3]),
    ([2, 0], slice(None), [1, 0]),
    ([[2], [0]], [1, 3, 0]),
    (range(2), 1),
    ((0, 2), (1, 3)),
    (Ellipsis, [1, 0, 1]),
    ([1, -1], None, 0),
    [np.int64(1), 0],
    [[np.array([0, 1])]],
]


@pytest.mark.parametrize("index", LISTS, ids=repr)
def test_lists(index):
    """Lists stand for arrays, wherever numpy takes them so: in reading and in writing."""
    want, written = A[index], A.copy()
    written[index] = -1
    for run in (lambda f: f, plait.jit):
        same(run(lambda x: x[index])(X), want)
        same(run(lambda x: x.at[index].set(-1))(X), written)


def test_lists_of_computed():
    """Of numbers without values, too."""
    for i in (0, 1, 2):
        same(plait.jit(lambda x, i: x[[i, 0]])(X, i), A[[i, 0]])
        same(plait.jit(lambda x, i: x[[[i], [1]], [0, i]])(X, i), A[[[i], [1]], [0, i]])
    size = symbolic_dims("n", Scope())[0]
    aval = Aval((size, 2), np.float32)
    assert staged(lambda x: [x[[0, 1]]], [aval]).out_avals[0].shape == (2, 2)


NO_INDICES = [
    1.5, [0, 1.5], ["a"], "a", [[0], [1, 2]], [None], [slice(0, 1)], [0, [1]], np.ones(2), 1j,
    slice(0, 1.5),
]  # fmt: skip


@pytest.mark.parametrize("index", NO_INDICES, ids=repr)
def test_no_indices(index):
    """What is no index is an IndexError, as numpy has it, and a TypeError, as Python has it."""
    for kind in (IndexError, TypeError):
        with pytest.raises(kind, match="cannot be indexed|cannot end"):
            X[index]
        with pytest.raises(kind, match="cannot be indexed|cannot end"):
            plait.jit(lambda x: x.at[index].set(0))(X)


def test_slices_that_are_computed():
    for index in (lambda i: slice(i, 2), lambda i: slice(0, i), lambda i: (0, slice(i))):
        with pytest.raises(IndexError, match="size of a slice"):
            plait.jit(lambda x, i: x[index(i)])(X, 1)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4), (0, 0), (3, 4, 0), (3, 0, 2)])
def test_empty_masks(shape):
    """A mask may have size 0 where the array has more: numpy's, and the standard's, choice."""
    mask = np.zeros(shape, bool)
    same(X[mask], A[mask])
    same(X[asarray(mask)], A[mask])
    with pytest.raises(IndexError):
        X[np.zeros((*shape[:-1], 7), bool)]


@pytest.mark.parametrize("value", [True, False])
def test_masks_without_axes(value):
    want = A[np.array(value)]
    for mask in (value, np.bool_(value), np.array(value), asarray(np.array(value))):
        same(X[mask], want)
        same(X[1, mask], A[1, np.array(value)])
    written = A.copy()
    written[np.array(value)] = 5
    same(X.at[asarray(np.array(value))].set(5), written)


# ---- random mixtures -------------------------------------------------------------------------


class Draw:
    """Random indices into an array of this shape."""

    def __init__(self, seed, shape):
        self.rnd, self.shape = random.Random(seed), shape

    def slice(self):
        ends = [None, None, 0, 1, 2, -1, -2, 3, 7, -9]
        step = self.rnd.choice([None, None, 1, 2, -1, -2, 3])
        return slice(self.rnd.choice(ends), self.rnd.choice(ends), step)

    def array(self, n):
        shape = self.rnd.choice([(3,), (2, 3), (1,), (3,), (2, 1), ()])
        dtype = self.rnd.choice([np.int32, np.int64, np.int8, np.uint8])
        low = 0 if dtype is np.uint8 else -n
        values = [self.rnd.randrange(low, n) for _ in range(int(np.prod(shape)))]
        return np.array(values, dtype).reshape(shape)

    def mask(self, shape):
        return np.array([self.rnd.random() < 0.5 for _ in range(int(np.prod(shape)))]).reshape(
            shape
        )

    def index(self):
        items, axis, count, dots = [], 0, self.rnd.randint(1, len(self.shape)), False
        while axis < count:
            r, n = self.rnd.random(), self.shape[axis]
            step = 1
            if r < 0.2:
                item = self.rnd.randrange(-n, n)
            elif r < 0.45:
                item = self.slice()
            elif r < 0.75:
                item = self.array(n)
            elif r < 0.85:
                item, step = None, 0
            elif r < 0.9 and not dots:
                item, step, dots = Ellipsis, len(self.shape) - count, True
                count = len(self.shape)
            elif axis + 2 <= count:
                item, step = self.mask(self.shape[axis : axis + 2]), 2
            else:
                item = self.mask((n,))
            items.append(item)
            axis += step
        return tuple(items)


def mixtures(seed, count):
    draw = Draw(seed, SHAPE)
    found = []
    while len(found) < count:
        index = draw.index()
        if expected(index) is not None:
            found.append(index)
    return found


def on_device(index):
    """The same index with Arrays for numpy arrays."""
    return tuple([asarray(i) if isinstance(i, np.ndarray) else i for i in index])


def traced(f, index):
    """`f(x, index, *rest)` compiled, integers and integer arrays of the index being arguments."""
    dynamic = [k for k, i in enumerate(index) if _number(i)]
    values = [asarray(np.asarray(index[k])) for k in dynamic]

    def inside(x, places, *rest):
        items = list(index)
        for k, p in zip(dynamic, places):
            items[k] = p
        return f(x, tuple(items), *rest)

    return lambda *rest: plait.jit(inside)(X, values, *rest)


def _number(i):
    return (type(i) is int) or (isinstance(i, np.ndarray | Array) and i.dtype != bool)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(6))
def test_reading_mixtures(seed):
    for index in mixtures(seed, 25):
        want = A[index]
        same(X[index], want)
        same(X[on_device(index)], want)
        same(plait.jit(lambda x, index=index: x[index])(X), want)
        same(traced(lambda x, i: x[i], index)(), want)


UFUNCS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "min": np.minimum,
    "max": np.maximum,
    "power": np.power,
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("op", ["set", *UFUNCS])
def test_writing_mixtures(op):
    rng = np.random.default_rng(1)
    for index in mixtures(op, 25):
        hits = np.arange(A.size).reshape(SHAPE)[index]
        v = rng.uniform(0.5, 2.0, hits.shape).astype(np.float32)
        want = A.copy()
        if op != "set":
            UFUNCS[op].at(want, index, v)
        elif np.unique(hits).size == hits.size:
            want[index] = v
        else:
            continue
        write = lambda x, i, v: getattr(x.at[i], op)(v)  # noqa: E731
        for got in (
            write(X, index, v),
            write(X, on_device(index), asarray(v)),
            plait.jit(lambda x, v, index=index: write(x, index, v))(X, v),
            traced(write, index)(v),
        ):
            np.testing.assert_allclose(np.asarray(got), want, rtol=2e-5)


def test_written_values_broadcast():
    for index, v in [
        (0, 1),
        ((slice(None), 1), np.float32([5, 6])),
        ((Ellipsis, 0), np.arange(4.0)),
        ((slice(None, None, -2), slice(1, 3)), np.ones((1, 1, 2))),
        (np.array([2, 0]), np.ones((2, 1, 1))),
        (slice(1), np.ones((1, 1, 1, 4, 2))),
        ((None, 1), 2.0),
    ]:
        want = A.copy()
        want[index] = v
        same(X.at[index].set(v), want)


# ---- masks -----------------------------------------------------------------------------------


def test_masks_read():
    for mask in (A > 7, np.array([True, False, True]), A[:, :, 0] % 2 == 0, np.zeros(SHAPE, bool)):
        same(X[mask], A[mask])
        same(X[asarray(mask)], A[mask])
    with pytest.raises(SubscriptError, match=r"boolean index of shape \(2,\)"):
        X[np.array([True, False])]


def test_masks_write():
    for mask in (A > 7, np.array([True, False, True]), A[:, :, 0] % 2 == 0):
        rest = A.shape[mask.ndim :]
        for v in (np.float32(3), np.arange(np.prod(rest), dtype=np.float32).reshape(rest)):
            for op in ("set", "add", "multiply", "min"):
                want = A.copy()
                if op == "set":
                    want[mask] = v
                else:
                    UFUNCS[op].at(want, mask, v)
                write = lambda x, m, v, op=op: getattr(x.at[m], op)(v)  # noqa: E731
                same(write(X, mask, v), want)
                same(plait.jit(write)(X, mask, v), want)  # the mask has no value here
        count = np.arange(A[mask].size, dtype=np.float32).reshape(A[mask].shape)
        want = A.copy()
        want[mask] = count
        same(X.at[mask].set(count), want)


def test_masks_without_value():
    with pytest.raises(ConcretizationError, match="how many elements"):
        plait.jit(lambda x: x[x > 3])(X)
    with pytest.raises(ConcretizationError):
        plait.jit(lambda x: x.at[x > 3].set(plait.numpy.ones(20)))(X)


# ---- places outside --------------------------------------------------------------------------

PLACES = np.array([0, 3, -1, -4, 4, 9, -5, 100, -100], np.int32)
INSIDE = (PLACES >= -4) & (PLACES < 4)


def test_computed_places_outside():
    clamped = np.clip(np.where(PLACES < 0, PLACES + 4, PLACES), 0, 3)
    same(X[:, asarray(PLACES)], A[:, clamped])
    for dtype in (np.int8, np.int32, np.int64):
        for p, c in zip(PLACES, clamped):
            same(X[:, asarray(np.array(p, dtype))], A[:, c])
            same(plait.jit(lambda x, i: x[:, i])(X, asarray(np.array(p, dtype))), A[:, c])
    big = asarray(np.array([2**32 - 1, 1], np.uint32))
    same(X[:, big], A[:, [3, 1]])


def test_modes_of_reading():
    i = asarray(PLACES)
    want = np.where(INSIDE[:, None], A[0][PLACES % 4], np.nan)
    same(X[0].at[i].get(mode="fill"), want)
    same(X[0].at[i].get(mode="fill", fill_value=-1), np.where(np.isnan(want), -1, want))
    same(X[0].at[i].get(fill_value=2.5), np.where(np.isnan(want), np.float32(2.5), want))
    for p, row in zip(PLACES, want):
        same(X[0].at[int(p)].get(mode="fill"), row)
        same(plait.jit(lambda x, p: x[0].at[p].get(mode="fill"))(X, p), row)
    same(X.at[9].get(mode="clip"), A[2])
    same(X.at[1, -9:9].get(mode="fill"), A[1])
    unwrapped = X[0].at[i].get(mode="fill", fill_value=0, wrap_negative_indices=False)
    ok = (PLACES >= 0) & (PLACES < 4)
    same(unwrapped, np.where(ok[:, None], A[0][PLACES % 4], np.float32(0)))


def _forms(i):
    """Return an index as a Python value, a numpy array, an array, and as a traced argument."""
    host = np.asarray(i)
    yield lambda f: f(i if host.ndim else int(i))
    yield lambda f: f(host)
    yield lambda f: f(asarray(host))
    yield lambda f: plait.jit(f)(asarray(host))


@pytest.mark.parametrize("place", [-1, -5, -9, 0, 3, 4, [-1, 2], [-4, 9], [[-1], [3]]])
@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_negative_positions_can_be_outside(place, dtype):
    place = np.asarray(place, dtype)
    host = np.arange(4, dtype=np.float32)
    x, inside = asarray(host), (place >= 0) & (place < 4)
    read = np.where(inside, host[place % 4], np.float32(9))
    clipped = host[np.clip(place.astype(int), 0, 3)]
    written, added = host.copy(), host.copy()
    written[place[inside].astype(int)] = 7
    np.add.at(added, place[inside].astype(int), np.float32(7))
    how = dict(wrap_negative_indices=False)
    for at in _forms(place):
        same(at(lambda i: x.at[i].get(mode="fill", fill_value=9, **how)), read)
        same(at(lambda i: x.at[i].get(mode="clip", **how)), clipped)
        same(at(lambda i: x.at[i].set(7, mode="drop", **how)), written)
        same(at(lambda i: x.at[i].add(7, mode="drop", **how)), added)
        same(at(lambda i: x.at[i].apply(lambda v: v * 0 + 7, mode="drop", **how)), written)


@pytest.mark.parametrize("index", [-1, np.array([0, -1])], ids=str)
def test_a_fixed_negative_position_outside_is_refused(index):
    x = asarray(np.arange(4.0))
    for call in (x.at[index].get, lambda **how: x.at[index].set(1.0, **how)):
        with pytest.raises(SubscriptError, match=r"use an index in \[0, 4\)"):
            call(wrap_negative_indices=False)


@pytest.mark.parametrize(
    ("dtype", "want"),
    [("int8", -128), ("uint8", 255), ("int32", -(2**31)), ("bool", True), ("complex64", np.nan)],
)
def test_default_fill(dtype, want):
    x = asarray(np.ones(3, dtype))
    got = np.asarray(x.at[asarray(np.array([5]))].get(mode="fill"))
    np.testing.assert_array_equal(got, np.array([want], dtype))


def test_modes_of_writing():
    x, i = X[0, :, 0], asarray(PLACES)
    kept = PLACES[INSIDE]
    want = A[0, :, 0].copy()
    np.add.at(want, kept, 10)
    for mode in (None, "drop", "fill"):
        same(x.at[i].add(10, mode=mode), want)
    want = A[0, :, 0].copy()
    np.add.at(want, np.clip(np.where(PLACES < 0, PLACES + 4, PLACES), 0, 3), 10)
    same(x.at[i].add(10, mode="clip"), want)
    for p in PLACES:
        want = A[0, :, 0].copy()
        if -4 <= p < 4:
            want[p] = 7
        same(plait.jit(lambda x, p: x.at[p].set(7))(x, p), want)
        same(x.at[asarray(p)].set(7), want)
        same(x.at[int(p)].set(7, mode="drop"), want)
    same(x.at[asarray(np.int32(9)), None].set(7), A[0, :, 0])


# ---- dtypes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "int64", "float16", "bfloat16", "float64",
              "complex64"]
)  # fmt: skip
def test_dtypes(dtype):
    base = plait.numpy.dtype(dtype) if dtype == "bfloat16" else np.dtype(dtype)
    a = (np.arange(6) % 5).astype(base)
    x = asarray(a)
    index = asarray(np.array([4, 1, 1]))
    assert x[2].dtype == base and x[index].dtype == base
    want = a.astype(np.complex128)
    want[2] = 1
    got = np.asarray(x.at[2].set(1)).astype(np.complex128)
    np.testing.assert_array_equal(got, want)
    got = np.asarray(x.at[index].max(1)) if base.kind != "c" else None
    if got is not None:
        top = np.asarray(a).astype(np.float64)
        np.maximum.at(top, [4, 1, 1], 1)
        np.testing.assert_array_equal(got.astype(np.float64), top)


def test_values_take_the_dtype_of_the_array():
    ints = asarray(np.arange(3))
    same(ints.at[1].set(2.9), np.array([0, 2, 2]))
    assert ints.at[0].divide(2).dtype.kind == "f"
    same(asarray(np.zeros(2, np.float32)).at[0].add(np.float64(0.5)), np.float32([0.5, 0]))
    with pytest.raises(TypeRule, match="complex values"):
        X.at[0].set(1j)


def test_apply():
    want = A.copy()
    want[1] = np.sqrt(want[1])
    np.testing.assert_allclose(np.asarray(X.at[1].apply(plait.numpy.sqrt)), want, rtol=1e-6)
    want = A.copy()
    want[A > 20] *= 2
    same(X.at[A > 20].apply(lambda v: v * 2), want)
    same(plait.jit(lambda x: x.at[x > 20].apply(lambda v: v * 2))(X), want)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("index", [
    [2, 0, 2], [[1, 1], [1, 0]], [0, -3, 0, 2, 2], [1] * 20, [], [2],
], ids=str)  # fmt: skip
def test_apply_counts_how_often_a_position_occurs(index):
    i = np.array(index, np.int32)
    f = lambda v: v * 0.5 + 1  # noqa: E731
    want = A.astype(np.float64)
    for row in i.ravel():  # as a ufunc's `at`: each time to what the time before left
        want[row] = f(want[row])
    want = want.astype(np.float32)
    x = X.astype("float32")
    for got in (x.at[i].apply(f), x.at[asarray(i)].apply(f),
                plait.jit(lambda x, i: x.at[i].apply(f))(x, i),
                plait.jit(lambda x: x.at[i].apply(f))(x)):  # fmt: skip
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)
    two = np.float64(A)  # several axes of positions, one of them fixed
    for r in i.ravel():
        two[r, 1] = f(two[r, 1])
    np.testing.assert_allclose(np.asarray(x.at[asarray(i), 1].apply(f)), two, rtol=1e-6)
    # a result of another dtype is written, and read again, in the array's
    ints = np.full(3, 100)
    for r in i.ravel():
        ints[r] = np.sqrt(ints[r])
    same(asarray(np.full(3, 100)).at[i].apply(plait.numpy.sqrt), ints)
    once = x.at[asarray(i)].apply(f, unique_indices=True)
    one = A.astype(np.float32)
    one[i.ravel() % 3] = f(A[i.ravel() % 3])
    np.testing.assert_allclose(np.asarray(once), one, rtol=1e-6)


def test_apply_drops_what_lies_outside():
    x, i = asarray(np.arange(3.0)), asarray(np.array([5, 2, 2, -9]))
    assert x.at[i].apply(lambda v: v + 1).tolist() == [0, 1, 4]
    assert x.at[asarray(np.array([-1, 0]))].apply(
        lambda v: v + 1, wrap_negative_indices=False
    ).tolist() == [1, 1, 2]  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int32"])
def test_integers_that_do_not_fit_are_not_written(dtype):
    info, base = np.iinfo(dtype), np.arange(3).astype(dtype)
    x = asarray(base)
    for n in (int(info.min), int(info.max), 0, 1):
        for _ in range(2):  # the second time by the short way
            same(x.at[1].set(n), np.array([0, n, 2], dtype))
        same(x.at[x > 1].set(n), np.array([0, 1, n], dtype))
        same(x.at[asarray(np.array([0, 1]))].set(n), np.array([n, n, 2], dtype))
    for n in (int(info.min) - 1, int(info.max) + 1, 2**40, -(2**40)):
        for write in (lambda x, n: x.at[1].set(n), lambda x, n: x.at[1:].add(n),
                      lambda x, n: x.at[asarray(np.array([0]))].max(n),
                      lambda x, n: x.at[x > 1].multiply(n),
                      lambda x, n: x.at[0].min(n)):  # fmt: skip
            with pytest.raises(OverflowError, match="does not fit"):
                write(x, n)
            with pytest.raises(OverflowError, match="does not fit"):
                plait.jit(lambda x, n=n, write=write: write(x, n))(x)
    same(asarray(np.zeros(2, np.float32)).at[0].set(2**40), np.float32([2**40, 0]))


@pytest.mark.parametrize("i", [[3], [-4], [0, 7], [[1], [-9]], 3, -4], ids=str)
def test_fixed_indices_outside_are_refused_whatever_holds_them(i):
    i, x = np.array(i), asarray(np.arange(3))
    for f in (lambda x: x[i], lambda x: x.at[i].set(1), lambda x: x.at[i].get(),
              lambda x: x[None, i], lambda x: x.at[i].apply(lambda v: v)):  # fmt: skip
        with pytest.raises(IndexError, match="out of range"):
            f(x)
        with pytest.raises(IndexError, match="out of range"):
            plait.jit(f)(x)
    # with a mode, or computed, they may lie outside
    assert x.at[i].get(mode="fill", fill_value=-7).ravel()[-1] == -7
    same(x.at[i].set(1, mode="drop").sum(), x.at[asarray(i)].set(1).sum())


# ---- take ------------------------------------------------------------------------------------


def test_take():
    for i in (np.array([2, 0]), np.array([[1, -1], [0, 2]]), 1, np.int8(2)):
        for axis in (0, -2, None):
            same(take(X, i, axis), np.take(A, i, axis))
    for mode in ("clip", "wrap"):
        same(take(X, PLACES, 1, mode=mode), np.take(A, PLACES, 1, mode=mode))
    got = np.asarray(take(X, PLACES, 1))
    np.testing.assert_array_equal(np.isnan(got).all((0, 2)), ~INSIDE)
    same(take(X, PLACES, 1, fill_value=4)[:, ~INSIDE], np.full((3, 5, 2), 4, np.float32))
    with pytest.raises(TypeRule, match="must be integers"):
        take(X, 1.5)


def test_take_along_axis():
    order = np.argsort(-A, axis=1)
    same(take_along_axis(X, order, 1), np.take_along_axis(A, order, 1))
    same(take_along_axis(X, order[:1], 1), np.take_along_axis(A, order[:1], 1))
    same(
        take_along_axis(X, np.array([5, -1]), None), np.take_along_axis(A, np.array([5, -1]), None)
    )
    got = take_along_axis(X, np.full((3, 1, 2), 7), 1, mode="fill", fill_value=0.0)
    same(got, np.zeros((3, 1, 2), np.float32))


# ---- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "kind", "text"),
    [
        (3, IndexError, "index 3 is out of range for axis 0 of size 3"),
        ((0, -5), IndexError, "index -5 is out of range for axis 1 of size 4"),
        ((0, 0, 0, 0), IndexError, "too many indices: 4 for an array of 3 axes"),
        ((Ellipsis, Ellipsis), IndexError, "more than one Ellipsis"),
        (slice(None, None, 0), IndexError, "step 0"),
        (([[0], [0, 1]], 0), TypeError, "whose parts have different shapes"),
        (((0, "b"), 0), TypeError, "with the tuple"),
        (1.0, TypeError, "indexed with 1.0"),
        ("a", TypeError, "indexed with 'a'"),
        (np.zeros(2), TypeError, "array of dtype float64"),
        (slice(1.5), TypeError, "a slice cannot end at 1.5"),
    ],
)
def test_refused(index, kind, text):
    for f in (lambda x: x[index], lambda x: x.at[index].set(1), lambda x: x.at[index].add(1)):
        with pytest.raises(kind, match=text) as e:
            f(X)
        assert "test_subscript.py" in str(e.value)
        with pytest.raises(kind, match=text):
            plait.jit(f)(X)


OUTSIDE = [7, -9, (1, -8), np.array([1, 7, -9]), (slice(None), np.array([[5], [-6]])),
           (-4, 9, slice(1, 2)), (np.array([0, 3]), 1, np.array([2, -1]))]  # fmt: skip


def moved(index):
    """The index with its positions moved inside, and which of them were there before."""
    parts, inside = [], np.asarray(True)
    for i, n in zip(index if isinstance(index, tuple) else (index,), X.shape, strict=False):
        if isinstance(i, slice):
            parts.append(i)
            continue
        inside = inside & (np.asarray(i) >= -n) & (np.asarray(i) < n)
        parts.append(np.clip(np.where(np.asarray(i) < 0, i + n, i), 0, n - 1))
    return tuple([p if isinstance(p, slice) or p.ndim else int(p) for p in parts]), inside


@pytest.mark.parametrize("index", OUTSIDE, ids=str)
def test_positions_outside_that_are_not_checked(index):
    """Reading clamps them and writing drops them, as it does those that are computed."""
    there, inside = moved(index)
    written = A.copy()
    written[
        tuple(
            [p if isinstance(p, slice) else np.broadcast_to(p, inside.shape)[inside] for p in there]
        )
    ] = 9
    for _ in range(2):
        with plait.config(check_static_indices=False):
            for run in (lambda f: f, plait.jit):
                same(run(lambda x: x[index])(X), A[there])
                same(run(lambda x: x.at[index].get())(X), A[there])
                same(run(lambda x: x.at[index].set(9))(X), written)
                same(run(lambda x: x.at[index].apply(lambda v: 0 * v + 9))(X), written)
        for f in (lambda x: x[index], lambda x: x.at[index].get(), lambda x: x.at[index].set(9)):
            with pytest.raises(SubscriptError, match="out of range"):
                f(X)
    with plait.config(check_static_indices=False), pytest.raises(SubscriptError):
        asarray(np.zeros((0, 2)))[0]


def test_refused_writing():
    with pytest.raises(TypeRule, match=r"shape \(3,\) cannot be written .* shape \(4, 2\)"):
        X.at[0].set(np.ones(3))
    with pytest.raises(TypeRule, match="no argument 'typo'"):
        X.at[0].set(1, typo=True)
    with pytest.raises(TypeRule, match="no indexing mode 'wrong'"):
        X.at[0].get(mode="wrong")
    with pytest.raises(ConcretizationError, match="dynamic_slice_in_dim"):
        plait.jit(lambda x, n: x[:n])(X, 2)
    with pytest.raises(SubscriptError, match="nothing to index"):
        asarray(np.zeros((0, 2)))[asarray(np.array([0]))]


# ---- what is compiled ------------------------------------------------------------------------


def test_places_are_operands():
    """Loops over positions compile once."""
    x = asarray(np.arange(97, dtype=np.float32))
    x[0], x[0:2], x.at[0].set(1.0), x[None, 5], x.at[3:5].add(1.0)
    with counting() as seen:
        for i in range(1, 50):
            assert float(x[i]) == i
            assert np.asarray(x[i : i + 2]).tolist() == [i, i + 1]
            assert float(x.at[-i].set(1.0)[97 - i]) == 1.0
            x[None, i]
            x.at[i : i + 2].add(1.0)
    assert seen["compile"] == 0


def test_fixed_places_become_slices():
    program = plait.make_program(lambda x: (x[1, ::2], x.at[0, 1:3].set(0.0)))(X)
    names = [e.prim.name for e in program.eqns]
    assert "core.gather" not in names and "core.scatter" not in names
    assert names.count("core.dynamic_update_slice") == 1


# ---- symbolic sizes --------------------------------------------------------------------------

scope = Scope(["b >= 3"])
b, c = symbolic_dims("b, c", scope)


def at_sizes(program, xs, sizes):
    """Results of a program of symbolic types, refined at actual sizes."""
    outs = [
        Aval([d if d.__class__ is int else d.substitute(sizes) for d in o.shape], o.dtype)
        for o in program.out_avals
    ]
    with jaxlib_api.lock:
        unit = Unit(("cpu",))
        kinds = ([mlir.type_of(x.aval) for x in xs], [mlir.type_of(a) for a in program.out_avals])
        block, _ = mlir.function(unit.module, "main", *kinds, public=True)
        e = Emitter(unit, mlir.insertion_point(block), {}, {}, {}, {}, mlir.bindings().unknown)
        e.dims = {n: e.constant(v, aval_for((), "int32")) for n, v in sizes.items()}
        args = [
            e.op("stablehlo.convert", [x], a) for x, a in zip(block.arguments, program.in_avals)
        ]
        results = e.program(program, args)
        e.create("func.return", [], results, None, None, 0, e.where, e.ip)
        code = jaxlib_api.refine_shapes(mlir.bytecode(unit.module))
    options = jaxlib_api.compile_options([devices()[0].id], False)
    run = jaxlib_api.load(client(), code, device_list(None), options).execute_sharded
    bufs = run([x.buffer() for x in xs]).consume_with_handlers([handler(o) for o in outs])
    return [np.asarray(wrap(buf, o)) for buf, o in zip(bufs, outs)]


SYMBOLIC = {
    "ends": lambda x, i: [x[0], x[-1], x[2], x[-3:]],
    "ranges": lambda x, i: [x[1:], x[:-1], x[::-1], x[::2], x[1:3], x[: b - 1], x[5:]],
    "other axis": lambda x, i: [x[:, 1], x[:, ::-2], x[None, ..., 0]],
    "arrays": lambda x, i: [x[i], x[:, i % 4], x[i, 1:3], x[i, ::2]],
    "computed": lambda x, i: [x[i[0]], x[:, i[0]], x[1:, i[1]]],
    "fill": lambda x, i: [x.at[i + 2].get(mode="fill", fill_value=-1.0)],
    "written": lambda x, i: [x.at[0].set(1.0), x.at[-1].add(2.0), x.at[1:].multiply(3.0)],
    "written steps": lambda x, i: [x.at[:, ::2].set(5.0), x.at[:, ::-1].set(x)],
    "written arrays": lambda x, i: [x.at[i].add(1.0), x.at[i + 2].add(1.0, mode="clip")],
    "written computed": lambda x, i: [x.at[i[1]].set(9.0), x.at[i[0], 1:3].set(9.0)],
    "taken": lambda x, i: [take(x, i, 0, mode="clip"), take(x, i, 0, mode="wrap")],
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", SYMBOLIC)
def test_symbolic_sizes(name):
    """Staged once on b rows; run on several, against the same function on actual arrays."""
    f = SYMBOLIC[name]
    i = asarray(np.array([0, -1, 2, 4], np.int32))
    program = staged(f, [Aval((b, 4), np.float32), i.aval])
    for rows in (3, 5, 8):
        x = asarray(np.arange(rows * 4, dtype=np.float32).reshape(rows, 4))
        want = f(x, i) if name != "ranges" else [
            np.asarray(x)[s] for s in (np.s_[1:], np.s_[:-1], np.s_[::-1], np.s_[::2], np.s_[1:3],
                                       np.s_[: rows - 1], np.s_[5:])
        ]  # fmt: skip
        for g, w in zip(at_sizes(program, [x, i], {"b": rows}), want, strict=True):
            np.testing.assert_array_equal(g, np.asarray(w))


def test_undecided_index():
    with pytest.raises(UndecidedDim):
        staged(lambda x: [x[3]], [Aval((b, 4), np.float32)])
    with pytest.raises(SubscriptError):
        staged(lambda x: [x[:, 4]], [Aval((b, 4), np.float32)])
