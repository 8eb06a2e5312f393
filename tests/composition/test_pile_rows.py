"""Piles as the feature list has them, row by row; more of each in test_piles, test_pile_families.

Invariant: the other side is numpy, one example after the other, or what was asked for in words.
"""

import pickle
import re
from functools import partial

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax, nn, pile_axis, vmap
from plait.checks import FailedCheckError
from plait.errors import ArgumentError, ShapeError

LENGTHS = [3, 1, 4]


def ranges(lengths=LENGTHS, dtype="int32"):
    return vmap(partial(pnp.arange, dtype=dtype), out_axes=pile_axis)(pnp.array(lengths))


def floats(lengths=LENGTHS, columns=(), seed=0):
    rng = np.random.default_rng(seed)
    return plait.Pile.from_list([rng.standard_normal((n, *columns)) for n in lengths])


def mapped(f, *piles):
    return vmap(f, pile_axis, pile_axis)(*piles)


def same(pile, want, tolerance=0):
    assert isinstance(pile, plait.Pile) and len(pile) == len(want)
    for got, w in zip(pile.to_list(), want):
        assert got.shape == np.shape(w)
        np.testing.assert_allclose(got, w, tolerance, tolerance)


def equations(f, *args):
    """The equations over examples of the program of a function."""
    program = plait.make_program(f)(*args)
    return [e for e in program.eqns if e.prim.name == "piles.map"]


# ---- types, trees, axes


@pytest.mark.feature("B22")
def test_a_pile_has_a_type_and_its_rows_are_one_after_the_other():
    p = ranges()
    assert isinstance(p, plait.Pile)
    assert re.fullmatch(r"Var[0-9]+:3 => i32\[\[3 1 4\]\.Var[0-9]+\]", repr(p.aval))
    np.testing.assert_array_equal(p.data, np.concatenate([np.arange(n) for n in LENGTHS]))
    assert p.data.dtype == np.int32


@pytest.mark.feature("B22")
@pytest.mark.parametrize("lengths", [[0], [0, 0], [3, 0, 4], [1, 40, 2, 0], [7]])
def test_rows_of_any_lengths(lengths):
    want = [np.arange(n) for n in lengths]
    np.testing.assert_array_equal(ranges(lengths).data, np.concatenate(want))
    same(ranges(lengths), want)
    np.testing.assert_array_equal(ranges(lengths).lengths, lengths)


@pytest.mark.feature("B23")
def test_a_pile_is_a_tree():
    p = floats()
    leaves, tree = plait.tree.flatten(p)
    assert len(leaves) == 2
    again = plait.tree.unflatten(tree, leaves)
    same(again, p.to_list())
    np.testing.assert_array_equal(again.lengths, LENGTHS)
    same(plait.jit(lambda q: q)(p), p.to_list())
    same(plait.tree.map(lambda x: x * 2 if x.dtype == np.float64 else x, p),
         [2 * x for x in p.to_list()])  # fmt: skip


@pytest.mark.feature("B23")
def test_a_pile_is_differentiated():
    p = floats([3, 0, 4])
    for allow_int in (False, True):
        got = plait.grad(lambda q: (q.data**2).sum(), allow_int=allow_int)(p)
        for g, x in zip(got.to_list(), p.to_list(), strict=True):
            np.testing.assert_allclose(g, 2 * x)


@pytest.mark.feature("B24")
@pytest.mark.parametrize("axes", [0, 1, ({"a": 0},)])
def test_a_pile_is_mapped_by_its_own_axis_only(axes):
    p = {"a": ranges()} if isinstance(axes, tuple) else ranges()
    with pytest.raises(TypeError, match="pile input without using pile_axis in_axes spec") as e:
        vmap(lambda x: 0.0, axes)(p)
    assert "in_axes=plait.pile_axis" in e.value.fix


@pytest.mark.feature("B24")
def test_what_is_no_pile_has_no_such_axis():
    with pytest.raises(ArgumentError, match="is a pile, and it is"):
        mapped(lambda x: x, pnp.ones((3, 4)))


@pytest.mark.feature("B25")
def test_a_ragged_result_without_its_axis_is_named():
    with pytest.raises(TypeError, match="ragged output without using pile_axis out_axes spec") as e:
        vmap(lambda n: {"rest": [1.0, pnp.ones((2, n))]})(pnp.array(LENGTHS))
    assert "result['rest'][1]" in str(e.value)
    assert "at axis 1" in str(e.value)
    assert "out_axes=plait.pile_axis" in e.value.fix


@pytest.mark.feature("B26")
@pytest.mark.parametrize("axis", [(), 0, 1, (0, 1)])
def test_elements_with_any_number_of_ragged_axes_go_through(axis):
    rng = np.random.default_rng(0)
    own = axis if isinstance(axis, tuple) else (axis,)
    shapes = [(m if 0 in own else 5, n if 1 in own else 2) for m, n in ((3, 1), (0, 4), (35, 2))]
    want = [rng.standard_normal(s) for s in shapes]
    p = plait.Pile.from_list(want, axis=own)
    same(mapped(lambda x: x, p), want)
    same(plait.jit(partial(mapped, lambda x: x))(p), want)


@pytest.mark.feature("B27")
@pytest.mark.parametrize("make", [np.ones, pnp.ones])
def test_a_regular_result_may_be_a_pile(make):
    p = vmap(lambda x: x * 2, out_axes=pile_axis)(make((3, 4), "float32"))
    assert isinstance(p, plait.Pile)
    assert repr(p.aval.elt_ty) == "f32[4]" and p.aval.length == 3
    same(p, 2 * np.ones((3, 4)))


# ---- reductions


@pytest.mark.feature("B28")
def test_sums_of_each_example():
    np.testing.assert_array_equal(
        vmap(lambda n: pnp.arange(n).sum())(pnp.array(LENGTHS)), [3, 0, 6]
    )
    rng = np.random.default_rng(0)
    xs = [rng.standard_normal((7, n)) for n in LENGTHS]
    p = plait.Pile.from_list(xs, axis=1)
    np.testing.assert_allclose(vmap(lambda x: x.sum(), pile_axis)(p), [x.sum() for x in xs])
    np.testing.assert_allclose(
        vmap(lambda x: (x * x.shape[1]).sum((0, 1)), pile_axis)(p),
        [x.sum() * x.shape[1] for x in xs],
    )


@pytest.mark.feature("B29")
def test_reductions_along_other_axes_stay_ragged():
    p = vmap(lambda n: pnp.ones((n, 5)).sum(1), out_axes=pile_axis)(pnp.array(LENGTHS))
    np.testing.assert_array_equal(p.data, 5 * np.ones(8))
    same(p, [5 * np.ones(n) for n in LENGTHS])


REDUCERS = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.feature("B30")
@pytest.mark.parametrize("name", REDUCERS)
def test_every_reducer_has_its_own_neutral_element(name):
    f = getattr(lax, f"reduce_{name}")
    got = vmap(lambda n: f(pnp.arange(n, dtype="int32") - 5, (0,)))(pnp.array([3, 1, 4, 2]))
    want = [REDUCERS[name].reduce(np.arange(n, dtype=np.int32) - 5) for n in (3, 1, 4, 2)]
    np.testing.assert_array_equal(got, want)


@pytest.mark.feature("B30")
def test_max_argmax_all_any():
    n = pnp.array(LENGTHS)
    np.testing.assert_array_equal(vmap(lambda n: (pnp.arange(n) - 5).max())(n), [-3, -5, -2])
    xs = [np.array([-1.0, -9.0, -0.5]), np.array([-7.0]), np.array([-3.0, -2.0, -2.0, -8.0])]
    p = plait.Pile.from_list(xs)
    for f, g in [(pnp.argmax, np.argmax), (pnp.argmin, np.argmin)]:
        np.testing.assert_array_equal(vmap(f, pile_axis)(p), [g(x) for x in xs])
    np.testing.assert_array_equal(vmap(lambda x: (x < 0).all(), pile_axis)(p), [True] * 3)
    np.testing.assert_array_equal(vmap(lambda x: (x >= 0).any(), pile_axis)(p), [False] * 3)


@pytest.mark.sampled(3)
@pytest.mark.feature("B30")
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int8", "uint8", "bool"])
@pytest.mark.parametrize("axis", [0, 1])
def test_the_first_of_several_extremes(dtype, axis):
    """nan before all; an example of none is refused when the program runs."""
    rng = np.random.default_rng(0)
    xs = [rng.integers(-3, 4, (n, 4) if axis == 0 else (4, n)) for n in (3, 0, 40, 1, 7)]
    xs = [x.astype(dtype) for x in xs]
    if np.dtype(dtype).kind == "f":
        xs = [np.where(rng.random(x.shape) < 0.2, x.dtype.type(np.nan), x / 0.5) for x in xs]
    p = plait.Pile.from_list(xs, axis=axis)
    both = lambda x: (pnp.argmax(x, axis), pnp.argmin(x, axis))
    run = plait.jit(partial(mapped, both))
    with pytest.raises(FailedCheckError, match="example 1, where n0_0 is 0: argmax"):
        plait.tree.map(np.asarray, run(p))
    xs = [x for x in xs if x.shape[axis]]
    for got, f in zip(run(plait.Pile.from_list(xs, axis=axis)), (np.argmax, np.argmin)):
        same(got, [f(x, axis) for x in xs])


@pytest.mark.feature("B31")
@pytest.mark.parametrize(
    "lengths", [[3, 0, 4], [0, 3, 4], [3, 4, 0], [0, 0, 0], [0, 0, 5, 0, 0, 1], [70, 0, 33], [1]]
)
def test_sums_with_empty_examples(lengths):
    want = [sum(range(n)) for n in lengths]
    got = vmap(lambda n: pnp.arange(n).sum())(pnp.array(lengths))
    np.testing.assert_array_equal(got, want)
    p = ranges(lengths, "float64")
    np.testing.assert_array_equal(vmap(lambda x: x.sum(), pile_axis)(p), want)
    np.testing.assert_array_equal(plait.jit(vmap(lambda x: x.sum(), pile_axis))(p), want)


@pytest.mark.feature("B32")
def test_segment_sum_with_a_size_for_each_example():
    def f(n):
        return plait.ops.segment_sum(pnp.arange(6), pnp.arange(6) % 4, num_segments=n)

    want = [np.bincount(np.arange(6) % 4, np.arange(6), minlength=4)[:n] for n in (4, 1, 3)]
    same(vmap(f, out_axes=pile_axis)(pnp.array([4, 1, 3])), want)


@pytest.mark.feature("B32")
def test_segment_sum_of_ragged_rows():
    p, ids = floats([3, 0, 40]), plait.Pile.from_list([np.arange(n) * 7 % 5 for n in (3, 0, 40)])
    got = vmap(partial(plait.ops.segment_sum, num_segments=5), pile_axis)(p, ids)
    for g, x, i in zip(got, p.to_list(), ids.to_list()):
        np.testing.assert_allclose(g, np.bincount(i, x, minlength=5), 1e-12, 1e-12)


# ---- contractions and shapes


@pytest.mark.feature("B33")
def test_products_over_ragged_axes():
    p = ranges()
    np.testing.assert_array_equal(vmap(pnp.dot, pile_axis)(p, p), [5, 0, 14])

    def square(n):
        return pnp.ones((7, n)) @ pnp.ones((n, 7))

    want = np.stack([n * np.ones((7, 7)) for n in LENGTHS])
    np.testing.assert_array_equal(vmap(square)(pnp.array(LENGTHS)), want)


def heads(x):
    return x.reshape(x.shape[0], 2, 2) if isinstance(x, np.ndarray) else pnp.reshape(
        x, (x.shape[0], 2, 2)
    )  # fmt: skip


SHAPES = {
    "broadcast": lambda q, x: q.broadcast_to(x.sum(), (x.shape[0],)),
    "broadcast rows": lambda q, x: q.broadcast_to(q.arange(3), (x.shape[0], 3)),
    "broadcast to both": lambda q, x: q.broadcast_to(x.sum(), (x.shape[0], x.shape[0])),
    "broadcast columns to both": lambda q, x: x[:, 0][:, None] + x[:, 1][None, :],
    "squeeze": lambda q, x: q.squeeze(x[:, :1], 1),
    "squeeze in front": lambda q, x: q.squeeze(x[None], 0),
    "transpose": lambda q, x: q.transpose(x),
    "transpose both": lambda q, x: q.transpose(q.cumsum(x @ x.T, 1)),
    "transpose three": lambda q, x: q.transpose(heads(x), (1, 0, 2)),
    "einsum vectors": lambda q, x: q.einsum("nd,n->d", x, x[:, 0]),
    "einsum matrices": lambda q, x: q.einsum("nd,ne->de", x, x * 2),
    "einsum scores": lambda q, x: q.einsum("nhd,mhd->hnm", heads(x), heads(x)),
    "einsum mixed": lambda q, x: q.einsum("nm,mhd->nhd", x @ x.T, heads(x)),
    "split": lambda q, x: q.split(x, 2, 1)[1],
    "split three": lambda q, x: q.concatenate(q.split(x, 4, 1)[::-1], 1),
    "slice": lambda q, x: x[1:, 1:3],
    "slice strided": lambda q, x: x[::2],
    "times a matrix": lambda q, x: x @ q.ones((4, 6)),
    "matrix times": lambda q, x: q.ones((6, 4)) @ x.T,
}


@pytest.mark.sampled(16)
@pytest.mark.feature("B33")
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    f = SHAPES[name]
    p = floats([3, 0, 36, 1], (4,))
    same(mapped(partial(f, pnp), p), [f(np, x) for x in p.to_list()], 1e-9)


@pytest.mark.feature("B33")
def test_a_layer_of_a_transformer():
    """With weights that all examples share, and two heads."""
    rng = np.random.default_rng(1)
    w = {k: rng.standard_normal((4, 4)) / 2 for k in ("q", "k", "v", "o", "up", "down")}

    def layer(q, w, x):
        parts = [heads(x @ w[k]) for k in "qkv"]
        scores = q.einsum("nhd,mhd->hnm", *parts[:2]) / 2
        scores = q.exp(scores - scores.max(-1, keepdims=True, initial=-50.0))
        weights = scores / scores.sum(-1, keepdims=True)
        mixed = q.einsum("hnm,mhd->nhd", weights, parts[2]).reshape(x.shape)
        x = x + mixed @ w["o"]
        mean = x.sum(-1, keepdims=True) / 4
        x = (x - mean) / q.sqrt(((x - mean) ** 2).sum(-1, keepdims=True) / 4 + 1e-3)
        return x + q.maximum(x @ w["up"], 0) @ w["down"]

    p = floats([3, 0, 36, 1], (4,))
    got = plait.jit(vmap(partial(layer, pnp), (None, pile_axis), pile_axis))(w, p)
    same(got, [layer(np, w, x) for x in p.to_list()], 1e-9)


@pytest.mark.feature("B34")
def test_piles_of_equal_lengths_meet():
    p, q = floats(seed=1), floats(seed=2)
    want = [x + y for x, y in zip(p.to_list(), q.to_list())]
    same(mapped(pnp.add, p, q), want)
    same(plait.jit(partial(mapped, pnp.add))(p, q), want)
    same(mapped(lambda x: x + 1.5, p), [x + 1.5 for x in p.to_list()])
    same(vmap(pnp.add, (pile_axis, 0), pile_axis)(p, pnp.arange(3.0)),
         [x + b for b, x in enumerate(p.to_list())])  # fmt: skip


MEETING = {
    "add": lambda x, y: x + y,
    "tails": lambda x, y: x[1:] * y[1:],
    "twice": lambda x, y: pnp.concatenate([x, x]) - pnp.concatenate([y, y]),
    "einsum": lambda x, y: pnp.einsum("n,n->n", x, y),
    "dot": lambda x, y: x @ y + pnp.zeros(2, "float64"),
    "where": lambda x, y: pnp.where(x > y, x, y),
    "stack": lambda x, y: pnp.stack([x, y], 1),
    "scan": lambda x, y: lax.scan(lambda c, r: (c + r[0] * r[1], c), np.float64(0), (x, y))[1],
    "vmap": lambda x, y: vmap(lambda a, b: a * b)(x, y),
    "segments": lambda x, y: plait.ops.segment_sum(x, (y > 0).astype("int32"), num_segments=2),
    "halves": lambda x, y: x[: x.shape[0] // 2] + y[: y.shape[0] // 2],
}


@pytest.mark.sampled(10)
@pytest.mark.feature("B34")
@pytest.mark.parametrize("name", MEETING)
def test_wherever_two_piles_meet_traced_lengths_must_be_equal(name):
    """Whichever operation it is that asks: lengths are not known while they are traced."""
    f = MEETING[name]
    p, q = floats(seed=1), floats(seed=2)
    g = plait.jit(partial(mapped, f))
    same(g(p, q), [np.asarray(f(x, y)) for x, y in zip(p.to_list(), q.to_list())], 1e-9)
    with pytest.raises(ShapeError, match="`x` and of `y` must be equal in every"):
        g(p, floats([3, 1, 3])).data


@pytest.mark.feature("B34")
def test_piles_of_other_lengths_are_refused():
    with pytest.raises(ShapeError, match="must be equal in every example, and are") as e:
        mapped(pnp.add, floats(), floats([3, 2, 4]))
    assert "same lengths" in e.value.fix


def written_in_two_ways(x):
    """max(2n, 1) - max(n, 1) is n, and has room for more by what is known of its parts."""
    n, most = x.shape[0], plait.core.max_dim
    ones = pnp.ones((most(2 * n, 1), 4), x.dtype)
    tail = lax.slice(pnp.cumsum(ones, 0), (most(n, 1), 0), (most(2 * n, 1), 4))
    return tail + x, pnp.where(x > tail, tail, 1.0), (x * tail).sum(0), tail.T @ x


@pytest.mark.feature("B34")
@pytest.mark.parametrize("wrap", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_sizes_that_are_equal_and_written_in_two_ways(wrap):
    p = floats([3, 0, 40, 1], (4,))
    got = wrap(partial(mapped, written_in_two_ways))(p)
    columns = [pile.to_list() for pile in got]
    for b, x in enumerate(p.to_list()):
        n = len(x)
        tail = np.arange(max(n, 1) + 1, max(2 * n, 1) + 1.0)[:, None] * np.ones(4)
        want = tail + x, np.where(x > tail, tail, 1.0), (x * tail).sum(0), tail.T @ x
        for c, w in zip(columns, want, strict=True):
            np.testing.assert_allclose(c[b], w, 1e-9)


@pytest.mark.feature("B34")
def test_a_dense_array_has_no_row_for_each_row_of_a_pile():
    add = vmap(pnp.add, (pile_axis, None), pile_axis)
    with pytest.raises(TypeError, match="example 0, where n0_0 is 3: .* sizes 3 and 4"):
        add(floats(), pnp.ones(4))
    with pytest.raises(TypeError, match="is n0_0 == 4") as e:
        plait.jit(add)(floats(), pnp.ones(4))
    assert "examples" in e.value.fix and "symbolic_dims" not in e.value.fix


@pytest.mark.feature("B34")
@pytest.mark.parametrize(("ask", "told"), [
    (lambda x: x if x.shape[0] > 2 else -x, "Pile(rows, lengths, at_least=3)"),
    (lambda x: x.reshape(2, -1), "Pile(rows, lengths, multiple_of=2)"),
    (lambda x: x * len(range(x.shape[0])), "sizes of an example are known by name only"),
    (lambda x: x / len(x), "write x.shape[0] in place of len(x)"),
], ids=["order", "division", "number", "len"])  # fmt: skip
def test_questions_about_sizes_are_answered_in_words_of_piles(ask, told):
    with pytest.raises(TypeError) as e:
        plait.jit(partial(mapped, ask))(floats())
    assert told in e.value.fix and "symbolic_dims" not in e.value.fix


# ---- jit inside, sizes that are one


@pytest.mark.feature("B35")
def test_jit_inside():
    p = floats()
    same(mapped(plait.jit(lambda x: x**2), p), [x**2 for x in p.to_list()], 1e-12)
    inner = plait.jit(lambda x, y: (x * y).sum())
    np.testing.assert_allclose(
        vmap(inner, pile_axis)(p, mapped(pnp.sin, p)),
        [(x * np.sin(x)).sum() for x in p.to_list()],
    )


@pytest.mark.feature("B35")
def test_piles_that_share_lengths_pass_them_once():
    def f(p):
        return mapped(plait.jit(lambda x, y: x + y), p, mapped(pnp.sin, p))

    last = equations(f, floats())[-1]
    assert len(last.params["sizes"]) == 1
    assert len(last.inputs) == 3  # the lengths, and the rows of both


@pytest.mark.feature("B36")
def test_rows_of_lengths_that_are_known_are_counted():
    assert ranges().data.shape == (8,)
    assert mapped(lambda x: x * 2, floats([5, 0, 2])).data.shape == (7,)


@pytest.mark.feature("B36")
def test_inside_sizes_have_names():
    (e,) = equations(lambda p: mapped(lambda x: x * x.shape[0], p), floats())
    program = e.params["program"]
    (size,) = program.in_avals[0].shape
    assert str(size) == e.params["sizes"][0].name
    assert program.out_avals[0].shape == (size,)


@pytest.mark.feature("B36")
def test_jit_inside_is_of_the_named_size():
    """Around, all rows are counted; inside of the example the size has its name."""
    (e,) = equations(lambda p: mapped(plait.jit(lambda x: x * 2), p), ranges())
    (call,) = [q for q in e.params["program"].eqns if "program" in q.params]
    (inner,) = call.params["program"].in_avals
    assert str(inner.shape[0]) == e.params["sizes"][0].name
    assert mapped(plait.jit(lambda x: x * 2), ranges()).data.shape == (8,)


@pytest.mark.feature("B36")
def test_other_lengths_of_the_same_capacity_are_not_traced_again():
    traced = []

    def each(x):
        traced.append(x)
        return pnp.cumsum(x) * x.shape[0]

    f = plait.jit(partial(mapped, each))
    for lengths in ([3, 1, 4], [1, 1, 1], [0, 0, 8], [5, 2, 3]):
        p = floats(lengths)
        same(f(p), [np.cumsum(x) * len(x) for x in p.to_list()], 1e-9)
    assert len(traced) == 1


@pytest.mark.feature("B37")
def test_sizes_of_the_same_lengths_are_one_size():
    p = floats()
    q = mapped(lambda x: x * 2, p)
    both = lambda p, q: mapped(lambda x, y: x.shape[0] + 0 * y.shape[0], p, q)
    for other, sizes in ((q, 1), (floats([3, 2, 3]), 2)):
        (e,) = equations(both, p, other)[:1]
        assert len(e.params["sizes"]) == sizes

    def one(p):
        return mapped(lambda x, y: x.shape[0] == y.shape[0], p, mapped(pnp.cos, p))

    np.testing.assert_array_equal(one(p).data, [True] * 3)


@pytest.mark.feature("B37")
def test_joined_sizes_are_one_size_too():
    p, q = floats([3, 1, 4]), floats([2, 0, 5])

    def f(x, y):
        joined = pnp.concatenate([x, y])
        assert joined.shape[0] == x.shape[0] + y.shape[0]
        return joined + pnp.concatenate([y, x])

    pairs = list(zip(p.to_list(), q.to_list()))
    same(mapped(f, p, q), [np.concatenate(xy) + np.concatenate(xy[::-1]) for xy in pairs])


# ---- programs inside


@plait.custom_vjp
def doubled(x):
    return x * x.shape[0]


doubled.defvjp(lambda x: (x * x.shape[0], x), lambda x, ct: (100 * ct * pnp.cos(x),))


@plait.custom_jvp
def bent(x):
    return pnp.sin(x)


@bent.defjvp
def _(primals, tangents):
    return bent(*primals), 7.0 * tangents[0]


@pytest.mark.feature("B38")
def test_custom_rules():
    p = floats([3, 0, 4])
    same(mapped(doubled, p), [x * len(x) for x in p.to_list()], 1e-12)
    g = mapped(plait.grad(lambda x: doubled(x).sum()), p)
    same(g, [100 * np.cos(x) for x in p.to_list()], 1e-12)
    g = mapped(plait.grad(lambda x: bent(x).sum()), p)
    same(g, [7 * np.ones(len(x)) for x in p.to_list()])

    def total(rows):
        q = plait.tree.unflatten(plait.tree.structure(p), [rows, p.lengths])
        return vmap(lambda x: doubled(x).sum(), pile_axis)(q).sum()

    rows = plait.tree.leaves(p)[0]
    np.testing.assert_allclose(
        plait.grad(total)(rows)[:7], 100 * np.cos(np.concatenate(p.to_list()))
    )


LOOPED = {
    "map": (lambda x: lax.map(lambda r: r * 2 + 1, x), lambda x: x * 2 + 1),
    "vmap": (lambda x: vmap(lambda r: r * 2 + 1)(x), lambda x: x * 2 + 1),
    "scan": (lambda x: lax.scan(lambda c, r: (c + r, c), np.float64(0), x)[1],
             lambda x: np.cumsum(x) - x),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x),
             lambda x: x * 2 if x.sum() > 0 else x - 1),
    "while": (lambda x: lax.while_loop(lambda s: (s[1] ** 2).sum() * s[0] < 40,
                                       lambda s: (s[0] + 1, s[1] + 1), (np.float64(1), x))[1]
              , None),
    "pmap": (lambda x: x * plait.pmap(lambda r: r * 2)(pnp.ones((1, 3))).sum(), lambda x: x * 6),
}  # fmt: skip


def counted_up(x):
    turns = 1
    while len(x) and (x**2).sum() * turns < 40:
        turns, x = turns + 1, x + 1
    return x


@pytest.mark.feature("B38")
@pytest.mark.parametrize("name", LOOPED)
def test_control_flow_and_maps(name):
    f, g = LOOPED[name]
    p = floats([3, 5, 4, 1])
    same(mapped(f, p), [(g or counted_up)(x) for x in p.to_list()], 1e-9)


def three_of_one_batch():
    """Queries, keys and values, that a function made of one batch."""
    p = floats([3, 0, 36, 1], (4,))
    return [mapped(lambda x, k=k: x * k, p) for k in (0.5, 1.0, 2.0)]


def attending(seen):
    def attend(q, k, v):
        seen.append(q.shape[0] is k.shape[0] is v.shape[0])
        return nn.softmax(q @ k.T, -1) @ v

    return lambda q, k, v: mapped(attend, q, k, v)


ONE_BATCH = {
    "of one object": three_of_one_batch,
    "made apart": lambda: [floats([3, 0, 36, 1], (4,), seed=s) for s in range(3)],
    "results of jit": lambda: plait.jit(three_of_one_batch)(),
    "copied": lambda: [pickle.loads(pickle.dumps(p)) for p in three_of_one_batch()],
}


@pytest.mark.sampled(16)
@pytest.mark.feature("B34")
@pytest.mark.parametrize("name", ONE_BATCH)
@pytest.mark.parametrize("way", ["jit", "jit in jit", "grad of jit", "cond", "scan"])
def test_piles_of_one_batch_are_one_size(name, way):
    """Their function is traced once, at one size, and no lengths are compared when it runs."""
    seen, piles = [], ONE_BATCH[name]()
    f = attending(seen)
    want = [np.asarray(nn.softmax(q @ k.T, -1) @ v) for q, k, v in zip(*piles)]
    ways = {
        "jit": plait.jit(f),
        "jit in jit": plait.jit(plait.jit(f)),
        "grad of jit": lambda *p: plait.grad(
            lambda v: vmap(pnp.sum, pile_axis)(plait.jit(f)(*p[:2], v)).sum()
        )(p[2]),
        "cond": plait.jit(lambda *p: lax.cond(p[0].data.sum() < 1e9, f, lambda q, k, v: v, *p)),
        "scan": plait.jit(
            lambda *p: lax.scan(lambda c, _: ((f(*c), *c[1:]), None), p, None, length=1)[0][0]
        ),
    }
    got = ways[way](*piles)
    assert seen == [True]
    if way == "grad of jit":
        weights = [nn.softmax(q @ k.T, -1) for q, k in zip(*piles[:2])]
        want = [np.asarray(w.T @ np.ones((len(w), 4))) for w in weights]
    same(got, want, 1e-6)
    text = plait.jit(f).lower(*piles).as_text()
    assert "callback" not in text


@pytest.mark.feature("B34")
def test_batches_that_come_again_are_not_traced_again():
    seen = []
    f = plait.jit(attending(seen))
    for k in range(6):
        lengths = [3 + k % 2, 0, 36, 1]
        f(*[floats(lengths, (4,), seed=s) for s in range(3)])
    with plait.events.counting() as n:
        f(*[floats([4, 1, 34, 2], (4,), seed=s) for s in range(3)])
    assert seen == [True] and not n["trace"] and not n["compile"]
