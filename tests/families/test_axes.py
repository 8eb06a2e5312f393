"""Axes and indices out of range: refused where they are written, never taken modulo the rank.

Invariant: what is read for one mapped example never comes from another one.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext.errors import AxisError

pnp = plait.numpy

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def i32(x):
    return pnp.asarray(np.asarray(x, np.int32))


WRONG = {
    "vmap in_axes": lambda x: plait.vmap(lambda r: r.sum(), in_axes=2)(x),
    "vmap in_axes, from the end": lambda x: plait.vmap(lambda r: r.sum(), in_axes=-3)(x),
    "vmap out_axes": lambda x: plait.vmap(lambda r: r, out_axes=7)(x),
    "vmap out_axes, from the end": lambda x: plait.vmap(lambda r: r, out_axes=-3)(x),
    "sum": lambda x: x.sum(axis=5),
    "sum, from the end": lambda x: x.sum(axis=-3),
    "max": lambda x: x.max(axis=2),
    "mean": lambda x: x.mean(axis=(0, 2)),
    "argmax": lambda x: x.argmax(axis=2),
    "cumsum": lambda x: x.cumsum(axis=2),
    "sort": lambda x: x.sort(axis=2),
    "transpose": lambda x: x.transpose(0, 2),
    "swapaxes": lambda x: x.swapaxes(0, 2),
    "squeeze": lambda x: x[:, :1].squeeze(axis=2),
    "concatenate": lambda x: pnp.concatenate([x, x], axis=2),
    "stack": lambda x: pnp.stack([x, x], axis=4),
    "expand_dims": lambda x: pnp.expand_dims(x, 4),
    "map_axes": lambda x: plait.map_axes(lambda r: r, in_axes=2)(x),
    "map_axes out_axes": lambda x: plait.map_axes(lambda r: r, out_axes=2)(x),
}


@pytest.mark.parametrize("name", WRONG)
def test_axis_out_of_range(name):
    """An axis that an array does not have is an error, under every transformation."""
    for wrap in (lambda f: f, plait.jit, lambda f: lambda x: plait.vmap(f)(x[None])):
        with pytest.raises(AxisError):
            wrap(WRONG[name])(f32(X))


@pytest.mark.parametrize("axis", [-2, -1, 0, 1])
def test_axes_in_range(axis):
    """The axes that there are, from both ends."""
    np.testing.assert_array_equal(
        plait.vmap(lambda r: r.sum(), in_axes=axis)(f32(X)), np.moveaxis(X, axis, 0).sum(1)
    )
    np.testing.assert_array_equal(
        plait.vmap(lambda r: r, out_axes=axis)(f32(X)), np.moveaxis(X, 0, axis)
    )
    np.testing.assert_array_equal(f32(X).sum(axis=axis), X.sum(axis))


# ---- indices ---------------------------------------------------------------------------------


INDICES = [0, 2, 3, 5, -1, -3, -4, -7]


def np_read(x, i):
    """Indices from the end count from there; what is out of range is brought to the nearest."""
    return x[np.clip(i + len(x) if i < 0 else i, 0, len(x) - 1)]


@pytest.mark.parametrize("index", INDICES)
def test_read_out_of_range(index):
    """A traced index is brought into range, alone, mapped, and mapped on one side only."""
    read = lambda x, i: x[i]  # noqa: E731
    i = i32([index])
    np.testing.assert_array_equal(f32(X)[0][i], [np_read(X[0], index)])
    both = i32([[index], [index]])
    want = [[np_read(r, index)] for r in X]
    np.testing.assert_array_equal(plait.vmap(read)(f32(X), both), want)
    np.testing.assert_array_equal(plait.vmap(read, in_axes=(0, None))(f32(X), i), want)
    np.testing.assert_array_equal(plait.jit(plait.vmap(read))(f32(X), both), want)
    one = plait.vmap(read, in_axes=(None, 0))(f32(X[1]), both)
    np.testing.assert_array_equal(one, [[np_read(X[1], index)]] * 2)
    columns = plait.vmap(read, in_axes=(1, None))(f32(X.T), i)
    np.testing.assert_array_equal(columns, want)
    scalar = plait.vmap(read)(f32(X), i32([index, index]))
    np.testing.assert_array_equal(scalar, [np_read(r, index) for r in X])
    nested = plait.vmap(plait.vmap(read, in_axes=(None, 0)))(f32(X), i32([INDICES, INDICES]))
    np.testing.assert_array_equal(nested, [[np_read(r, k) for k in INDICES] for r in X])


@pytest.mark.parametrize("index", INDICES)
def test_slice_out_of_range(index):
    """A box that would stick out is moved inside, of each example by itself."""
    cut = lambda x, i: lax.dynamic_slice(x, (i,), (2,))  # noqa: E731
    start = np.clip(index + 3 if index < 0 else index, 0, 1)
    np.testing.assert_array_equal(cut(f32(X[0]), i32(index)), X[0][start : start + 2])
    want = X[:, start : start + 2]
    np.testing.assert_array_equal(plait.vmap(cut)(f32(X), i32([index, index])), want)
    np.testing.assert_array_equal(plait.vmap(cut, in_axes=(0, None))(f32(X), i32(index)), want)


@pytest.mark.parametrize("index", INDICES)
def test_derivative_of_a_read(index):
    """The derivative of a read goes to the element that was read, out of range or not."""
    read = lambda x, i: x[i].sum()  # noqa: E731
    at = int(np.clip(index + 3 if index < 0 else index, 0, 2))
    want = np.eye(3, dtype=np.float32)[at]
    np.testing.assert_array_equal(plait.grad(read)(f32(X[0]), i32([index])), want)
    np.testing.assert_array_equal(plait.grad(read)(f32(X[0]), i32(index)), want)
    mapped = plait.vmap(plait.grad(read))(f32(X), i32([[index], [index]]))
    np.testing.assert_array_equal(mapped, [want, want])
    total = lambda x, i: plait.vmap(read)(x, i).sum()  # noqa: E731
    both = i32([[index], [index]])
    np.testing.assert_array_equal(plait.grad(total)(f32(X), both), [want, want])
    _, dot = plait.jvp(lambda x: x[i32([index])], (f32(X[0]),), (f32([1, 10, 100]),))
    assert dot.item() == 10.0**at


@pytest.mark.parametrize("index", INDICES)
def test_write_out_of_range(index):
    """A write out of range is dropped, and never lands in another example."""
    write = lambda x, i: x.at[i].set(9.0)  # noqa: E731
    want = X.copy()
    if -3 <= index < 3:
        want[:, index] = 9
    np.testing.assert_array_equal(write(f32(X[0]), i32(index)), want[0])
    np.testing.assert_array_equal(plait.vmap(write)(f32(X), i32([index, index])), want)
    np.testing.assert_array_equal(plait.vmap(write, in_axes=(0, None))(f32(X), i32([index])), want)
    g = plait.grad(lambda x: (plait.vmap(write)(x, i32([index, index])) * f32(X)).sum())(f32(X))
    np.testing.assert_array_equal(g, np.where(want == 9, 0, X))


def test_take():
    """The same of `take`, along an axis that is mapped around."""
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    pick = lambda x, i: pnp.take(x, i, axis=0, mode="clip")  # noqa: E731
    got = plait.vmap(pick)(f32(x), i32([[7], [-7]]))
    np.testing.assert_array_equal(got, [x[0][[2]], x[1][[0]]])
    got = plait.vmap(pick, in_axes=(2, None), out_axes=2)(f32(x), i32([1, 7]))
    np.testing.assert_array_equal(got, np.take(x, [1, 1], axis=0))
