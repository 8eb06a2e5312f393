"""Examples packed into batches of one capacity, and batches divided over devices.

Invariant: the reference is a loop over the examples, in their order.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Capacities, Pile, lax, pile_axis, vmap
from plait import PartitionSpec as P
from plait.errors import ArgumentError, ConcretizationError, ShapeError

SIZES = Capacities(rows=64, longest=30, count=8)


def documents(r, count):
    return [r.standard_normal((n, 2)) for n in r.integers(0, 31, count)]


@pytest.mark.parametrize("sizes", [SIZES, Capacities(64, 30), (64, 30)])
def test_documents_are_packed_in_order(sizes):
    xs = [np.ones((1, 2)), *documents(np.random.default_rng(0), 60)]
    xs = [x for x in xs if len(x)]
    batches = list(Pile.pack((x for x in xs), sizes))
    each = [[x for x in p.to_list() if len(x)] for p in batches]
    for x, y in zip([x for xs in each for x in xs], xs, strict=True):
        np.testing.assert_array_equal(x, y)
    for own, following in zip(each, each[1:]):
        rows = sum(map(len, own))
        is_full = sizes is SIZES and len(own) == SIZES.count
        assert rows <= 64 and (is_full or rows + len(following[0]) > 64)
    if sizes is SIZES:
        assert {len(p) for p in batches} == {SIZES.count}


def test_packed_batches_have_one_program():
    xs = [{"x": x, "i": np.arange(len(x))} for x in documents(np.random.default_rng(1), 100)]
    total = plait.jit(vmap(lambda d: d["x"].sum() * (1 + d["i"].sum()), pile_axis))
    with plait.events.counting() as n:
        got = np.concatenate([total(p) for p in Pile.pack(xs, SIZES)])
    want = np.array([d["x"].sum() * (1 + d["i"].sum()) for d in xs])
    np.testing.assert_allclose(got[got != 0], want[want != 0])
    assert n["trace"] == 1 and n["compile"] <= 1


def test_a_document_that_is_too_long_is_refused():
    with pytest.raises(ShapeError, match="31 rows in one element"):
        list(Pile.pack([np.ones(3), np.ones(31)], SIZES))
    with pytest.raises(ArgumentError, match="no capacity"):
        Pile.pack([np.ones(3)], None)


@pytest.mark.parametrize(("count", "parts"), [(16, 4), (13, 4), (3, 4), (9, 1)])
def test_parts_have_about_as_many_rows(count, parts):
    xs = documents(np.random.default_rng(2), count)
    stack, numbers = Pile.from_list(xs).divided(parts)
    assert len(stack) == parts and numbers.shape == (parts, -(-count // parts))
    assert sorted(numbers[numbers >= 0]) == list(range(count))
    for p, own in zip(stack.to_list(), numbers, strict=True):
        for x, i in zip(p.to_list(), own, strict=True):
            np.testing.assert_array_equal(x, xs[i] if i >= 0 else np.zeros((0, 2)))
    rows = np.asarray(stack.lengths).sum(axis=1)
    assert rows.max() <= sum(map(len, xs)) / parts + max(map(len, xs))


def test_parts_of_trees_and_of_two_sizes():
    xs = [{"a": x, "b": x @ x.T, "c": 2 * x} for x in documents(np.random.default_rng(3), 7)]
    p = Pile.from_list([{"a": d["a"], "c": d["c"]} for d in xs])
    q = Pile.from_list([d["b"] for d in xs], axis=(0, 1))
    for pile, keys in ((p, ("a", "c")), (q, None)):
        stack, numbers = pile.divided(3)
        for part, own in zip(stack.to_list(), numbers, strict=True):
            for x, i in zip(part.to_list(), own, strict=True):
                if i >= 0 and keys is None:
                    np.testing.assert_array_equal(x, xs[i]["b"])
                elif i >= 0:
                    np.testing.assert_array_equal(x["a"], xs[i]["a"])
                    np.testing.assert_array_equal(x["c"], xs[i]["c"])


def test_gradients_of_a_batch_divided_over_devices():
    """Each device has a part; the gradient is that of the whole batch."""
    r = np.random.default_rng(4)
    xs = documents(r, 13)
    w = r.standard_normal(2)
    mesh = plait.make_mesh((4,), ("i",))
    stack, _ = Pile.from_list(xs).divided(4)

    def loss(w, part):
        each = vmap(lambda w, x: pnp.tanh(x @ w).sum() ** 2, (None, pile_axis))
        return lax.psum(each(w, part[0]).sum(), "i")

    whole = plait.shard_map(loss, mesh=mesh, in_specs=(P(), P("i")), out_specs=P())
    value, got = plait.jit(plait.value_and_grad(whole))(w, stack)
    sums = [np.tanh(x @ w).sum() for x in xs]
    np.testing.assert_allclose(value, sum(s**2 for s in sums))
    want = sum(2 * s * ((1 - np.tanh(x @ w) ** 2) @ x) for s, x in zip(sums, xs))
    np.testing.assert_allclose(got, want, rtol=1e-9)


def test_parts_are_steps_of_a_scan():
    xs = documents(np.random.default_rng(5), 12)
    stack, numbers = Pile.from_list(xs).divided(3)
    each = lax.scan(lambda c, p: (c, vmap(lambda x: x.sum(), pile_axis)(p)), 0, stack)[1]
    np.testing.assert_allclose(each, [[xs[i].sum() for i in own] for own in numbers])


def test_batches_that_are_not_divided():
    p = Pile.from_list(documents(np.random.default_rng(6), 4))
    with pytest.raises(ArgumentError, match="0 parts"):
        p.divided(0)
    with pytest.raises(ConcretizationError, match="traced lengths"):
        plait.jit(lambda p: p.divided(2)[0])(p)
