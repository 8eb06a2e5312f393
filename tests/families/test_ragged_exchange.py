"""ragged_all_to_all: mapped over an axis, and on devices, with derivatives.

Invariant: what each place gets is written by a loop over slices.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext.errors import AxisError, OperandTypeError, ShapeError

N, M, ROWS = 12, 20, 3
"""Rows that are sent and received, and the shape of one."""


def exchange(places, per, seed=0):
    """Tables of slices: each sends `per` of them to each place, of random sizes, which lie one
    after the other where they arrive, in a random order."""
    rng = np.random.default_rng(seed)
    k = places * per
    sizes = rng.integers(0, 3, (places, k)).astype(np.int32)
    starts = rng.integers(0, N - 2, (places, k)).astype(np.int32)
    got = np.zeros((places, k), np.int32)
    at = np.zeros((places, k), np.int32)
    for target in range(places):
        slots = [(s, target * per + j) for s in range(places) for j in range(per)]
        got[target] = [sizes[s] for s in slots]
        here = 0
        for i in rng.permutation(k):
            at[slots[i]] = here
            here += min(sizes[slots[i]], max(M - here, 0))
            sizes[slots[i]] = got[target][i] = min(sizes[slots[i]], max(M - at[slots[i]], 0))
    return starts, sizes, at, got


def looped(x, out, starts, sizes, at, per):
    """What each place has afterwards; the last slice counts."""
    out = out.copy()
    for source in range(len(x)):
        for i, (a, n, b) in enumerate(zip(starts[source], sizes[source], at[source], strict=True)):
            out[i // per][b : b + n] = x[source][a : a + n]
    return out


def arrays(places):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((places, N, ROWS)).astype(np.float32)
    return x, rng.standard_normal((places, M, ROWS)).astype(np.float32)


def call(*args, groups=None):
    return lax.ragged_all_to_all(*args, axis_name="i", axis_index_groups=groups)


def on_devices(places, groups=None):
    mesh, spec = plait.make_mesh((places,), ("i",)), plait.P("i")
    f = lambda *args: call(*[a[0] for a in args], groups=groups)[None]  # noqa: E731
    return plait.jit(plait.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec))


@pytest.mark.sampled(10)
@pytest.mark.parametrize("per", [1, 3])
@pytest.mark.parametrize("places", [1, 2, 4])
def test_slices_go_where_they_are_sent(places, per):
    x, out = arrays(places)
    for seed in range(3):
        starts, sizes, at, got = exchange(places, per, seed)
        want = looped(x, out, starts, sizes, at, per)
        assert places == 1 or not np.array_equal(want, out)
        for f in (plait.vmap(call, axis_name="i"), on_devices(places)):
            np.testing.assert_array_equal(f(x, out, starts, sizes, at, got), want)


def test_as_it_is_written_down():
    x, out = np.array([[1, 2, 2], [3, 4, 0]]), np.zeros((2, 4), int)
    tables = [[[0, 1], [0, 1]], [[1, 2], [1, 1]], [[0, 0], [1, 2]], [[1, 1], [2, 1]]]
    tables = [np.array(t, np.int8) for t in tables]
    for f in (plait.vmap(call, axis_name="i"), on_devices(2)):
        assert f(x, out, *tables).tolist() == [[1, 3, 0, 0], [2, 2, 4, 0]]


def test_among_groups():
    groups = [[0, 2], [3, 1]]
    x, out = arrays(4)
    want = out.copy()
    tables = [np.zeros((4, 4), np.int32) for _ in range(4)]
    for g, seed in zip(groups, (1, 2), strict=True):
        some = exchange(2, 2, seed)
        for table, t in zip(tables, some, strict=True):
            table[g] = t
        want[g] = looped(x[g], out[g], *some[:3], 2)
    mapped = plait.vmap(lambda *args: call(*args, groups=groups), axis_name="i")
    for f in (mapped, on_devices(4, groups)):
        np.testing.assert_array_equal(f(x, out, *tables), want)


def test_over_two_axes_of_a_mesh():
    x, out = arrays(4)
    starts, sizes, at, got = exchange(4, 1)
    mesh, spec = plait.make_mesh((2, 2), ("a", "b")), plait.P(("a", "b"))
    f = lambda *args: lax.ragged_all_to_all(*[a[0] for a in args], axis_name=("a", "b"))[None]  # noqa: E731
    f = plait.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)
    np.testing.assert_array_equal(
        f(x, out, starts, sizes, at, got), looped(x, out, starts, sizes, at, 1)
    )


def test_derivatives():
    """It is linear in both arrays: the gradient of a weighted sum moves the weights back."""
    x, out = arrays(4)
    starts, sizes, at, got = exchange(4, 2)
    weight = np.random.default_rng(2).standard_normal(out.shape).astype(np.float32)
    to_x, to_out = np.zeros_like(x), weight.copy()
    for source in range(4):
        for i, (a, n, b) in enumerate(zip(starts[source], sizes[source], at[source])):
            to_x[source][a : a + n] += weight[i // 2][b : b + n]
            to_out[i // 2][b : b + n] = 0
    for f in (plait.vmap(call, axis_name="i"), on_devices(4)):
        loss = lambda x, out: (f(x, out, starts, sizes, at, got) * weight).sum()  # noqa: B023, E731
        dx, dout = plait.grad(loss, argnums=(0, 1))(x, out)
        np.testing.assert_allclose(dx, to_x, atol=1e-5)
        np.testing.assert_allclose(dout, to_out, atol=1e-5)
        step = np.ones_like(x)
        _, along = plait.jvp(lambda x: loss(x, out), (x,), (step,))  # noqa: B023
        np.testing.assert_allclose(along, to_x.sum(), rtol=1e-4)


def test_what_contradicts_moves_nothing():
    """Sizes that only one side knows of, and rows that are not there."""
    x, out = np.arange(1.0, 7.0).reshape(2, 3), np.zeros((2, 4))
    f = plait.vmap(call, axis_name="i")
    zero, big = np.zeros((2, 2), int), np.full((2, 2), 9)
    for tables in (
        (zero, zero, zero, big), (zero, big, zero, zero), (zero + 3, zero + 1, zero, zero + 1),
        (zero - 1, zero + 1, zero, zero + 1), (zero, zero + 2, zero - 2, zero + 2),
        (zero + 2**32, zero + 1, zero, zero + 1), (zero, zero + 1, zero - 2**32, zero + 1),
    ):  # fmt: skip
        assert np.asarray(f(x, out, *tables)).tolist() == out.tolist(), tables
    over = f(x, out, zero, big, zero + 2, big)  # the last of the slices that overlap
    assert np.asarray(over).tolist() == [[0, 0, 4, 5]] * 2


def test_no_rows():
    t = np.zeros((2, 2), int)
    f = plait.vmap(call, axis_name="i")
    assert (
        f(np.ones((2, 0, 3)), np.ones((2, 4, 3)), t, t, t, t).tolist()
        == np.ones((2, 4, 3)).tolist()
    )
    assert f(np.ones((2, 4, 3)), np.ones((2, 0, 3)), t, t, t, t).shape == (2, 0, 3)


def test_mistakes():
    x, out, t = np.ones((2, 3)), np.ones((2, 4)), np.zeros((2, 2), int)
    f = plait.vmap(call, axis_name="i")
    wrong = [
        (ShapeError, (x[:, :, None], out, t, t, t, t)),
        (ShapeError, (x[:, 0], out[:, 0], t, t, t, t)),
        (OperandTypeError, (x, out.astype(int), t, t, t, t)),
        (OperandTypeError, (x, out, t * 1.0, t, t, t)),
        (ShapeError, (x, out, t, t, np.zeros((2, 4), int), t)),
        (ShapeError, (x, out, *[np.zeros((2, 3), int)] * 4)),
        (ShapeError, (x, out, *[np.zeros((2, 2, 2), int)] * 4)),
    ]
    for kind, args in wrong:
        with pytest.raises(kind, match="ragged_all_to_all|must be integers"):
            f(*args)
    with pytest.raises(AxisError, match="'i'"):
        call(*[a[0] for a in (x, out, t, t, t, t)])
    with pytest.raises(AxisError, match="axis_index_groups"):
        plait.vmap(lambda *a: call(*a, groups=[0]), axis_name="i")(x, out, t, t, t, t)
    with pytest.raises(AxisError, match="axis_index_groups"):
        plait.vmap(lambda *a: call(*a, groups=[[0]]), axis_name="i")(x, out, t, t, t, t)
