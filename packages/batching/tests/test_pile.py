"""Piles as users hold them: made, looked at, copied, handed to jit, and what is refused.

Invariant: what is expected is numpy's, element by element.
"""

import copy
import gc
import pickle
import subprocess
import sys
import weakref

import numpy as np
import pytest

import plait
from plait import Pile, pile_axis, vmap
from plait.errors import (
    ArgumentError,
    AxisError,
    ConcretizationError,
    MissingRule,
    NotAnArrayError,
    OperandTypeError,
    ShapeError,
    SubscriptError,
)
from plait_batching.piles.tables import KEPT, shared

pnp = plait.numpy

ROWS = [np.float32([1, 2, 3]), np.zeros(0, np.float32), np.float32([4])]


def pile():
    return Pile.from_list(ROWS)


def same(got, want):
    """Elements of one dtype and shape, and equal."""
    got = got.to_list() if isinstance(got, Pile) else got
    assert len(got) == len(want)
    for g, w in zip(got, want):
        gs, ws = plait.tree.leaves(g), plait.tree.leaves(w)
        assert plait.tree.structure(g) == plait.tree.structure(w)
        for a, b in zip(gs, ws):
            a, b = np.asarray(a), np.asarray(b)
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


# ---- made ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint32", "int64", "float16", "bfloat16", "float64", "complex64"]
)
def test_dtypes(dtype):
    """Rows keep theirs, through a map, too."""
    made = [np.arange(n).astype(plait.dtypes.canonicalize_dtype(dtype)) for n in (2, 0, 3)]
    p = Pile.from_list(made)
    assert p.data.dtype == p.aval.dtype == made[0].dtype
    same(p, made)
    same(vmap(lambda x: x[::-1], pile_axis, pile_axis)(p), [m[::-1] for m in made])


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_along_an_axis(axis):
    sizes = (2, 0, 5)
    made = [np.arange(3.0 * n).reshape((n, 3) if axis in (0, -2) else (3, n)) for n in sizes]
    same(Pile.from_list(made, axis=axis), made)
    same(Pile(np.concatenate(made, axis), sizes, axis=axis), made)
    wide = np.full((3, *([5, 3] if axis in (0, -2) else [3, 5])), 7.0)
    for b, x in enumerate(made):
        wide[(b, *[slice(0, n) for n in x.shape])] = x
    same(Pile.from_padded(wide, sizes, axis=axis), made)


@pytest.mark.parametrize("axes", [(0, 1), [1, 0], (0, 1, 2), (2,), ()])
def test_along_several_axes(axes):
    made = [np.random.default_rng(b).normal(size=[b + 2 if a in axes else 3 for a in range(3)])
            for b in range(3)]  # fmt: skip
    p = Pile.from_list(made, axis=axes if isinstance(axes, list) else tuple(axes))
    same(p, made)
    padded = np.asarray(p.to_padded(fill=9))
    for b, x in enumerate(made):
        want = np.full(padded.shape[1:], 9.0)
        want[tuple([slice(0, n) for n in x.shape])] = x
        np.testing.assert_array_equal(padded[b], want)


def test_sizes_that_differ_each_for_itself():
    made = [np.ones((2, 40)), np.ones((35, 1)), np.ones((0, 3))]
    p = Pile.from_list(made, axis=(0, 1))
    same(p, made)
    np.testing.assert_array_equal(p.lengths, [2, 35, 0])


def test_trees():
    made = [{"u": np.arange(n), "v": (np.ones((n, 2)),)} for n in (2, 0, 3)]
    p = Pile.from_list(made)
    same(p, made)
    assert set(p.data) == {"u", "v"} and p.data["v"][0].shape == (5, 2)
    same(Pile(p.data, [2, 0, 3]), made)
    same(Pile.from_padded(p.to_padded(), p.lengths), made)
    assert p.to_padded()["u"].shape == (3, 3)


def test_lists():
    """A list of numbers is an array, as is a list of those; other lists are trees."""
    same(Pile.from_list([[1.5, 2.5], [3.5]]), [np.float64([1.5, 2.5]), np.float64([3.5])])
    same(
        Pile.from_list([[[1, 2], [3, 4]], [[5, 6]]]),
        [np.array([[1, 2], [3, 4]]), np.array([[5, 6]])],
    )
    same(Pile([1, 2, 3], [1, 2]), [np.array([1]), np.array([2, 3])])
    same(Pile.from_padded([[1, 2], [3, 4]], [1, 2]), [np.array([1]), np.array([3, 4])])
    made = [[np.ones(2), np.zeros(2)], [np.ones(1), np.zeros(1)]]
    same(Pile.from_list(made), made)
    same(Pile.from_list(iter([np.ones(2), pnp.ones(1, "float64")])), [np.ones(2), np.ones(1)])


def test_few_and_empty():
    same(Pile.from_list([[1.0]]), [np.ones(1)])
    for count in (1, 3):
        p = Pile(np.ones((0, 2)), [0] * count)
        same(p, [np.ones((0, 2))] * count)
        same(vmap(lambda x: 2 * x, pile_axis, pile_axis)(p), [np.ones((0, 2))] * count)
        np.testing.assert_array_equal(vmap(lambda x: x.sum(), pile_axis)(p), [0.0] * count)
        assert p.to_padded().shape == (count, 0, 2) and p.to_padded(capacity=3).shape[1] == 3
        np.testing.assert_array_equal(p.offsets, [0] * (count + 1))


@pytest.mark.parametrize(
    "make",
    [lambda: Pile(np.ones((0, 2)), []), lambda: Pile.from_padded(np.ones((0, 3, 2)), [])],
    ids=["data", "padded"],
)
def test_no_elements(make):
    """Mapped, they are not results of the right type, eager and in one program."""
    p = make()
    assert (len(p), p.to_list(), list(p), str(p)) == (0, [], [], "Pile([])")
    assert p.to_padded(capacity=4).shape == (0, 4, 2) and p.data.shape == (0, 2)
    for wrap in (lambda f: f, plait.jit):
        assert wrap(vmap(lambda x: x.sum(0), pile_axis))(p).shape == (0, 2)
        q = wrap(vmap(lambda x: pnp.sort(x, 0) @ x.T, pile_axis, pile_axis))(p)
        assert q.to_list() == [] and q.aval.dtype == np.float64


def test_more_rows_than_are_used():
    same(Pile(np.arange(9), [2, 3]), [np.arange(2), np.arange(2, 5)])


# ---- looked at -----------------------------------------------------------------------------------


def test_what_it_is():
    p = pile()
    np.testing.assert_array_equal(p.lengths, [3, 0, 1])
    np.testing.assert_array_equal(p.offsets, [0, 3, 3, 4])
    np.testing.assert_array_equal(p.data, np.concatenate(ROWS))
    assert p.lengths.dtype == p.offsets.dtype == np.int32 and len(p) == 3
    assert str(p) == "Pile([[1. 2. 3.], [], [4.]])"
    assert repr(p) == f"Pile([[1. 2. 3.], [], [4.]], {p.aval.elt_ty!r})"
    assert repr(p.aval) == "Var1:3 => f32[[3 0 1].Var1]"
    assert str(Pile.from_list([[1]] * 9)).endswith("[1], ...])")
    same(list(p), ROWS)
    for b in (0, 2, -1, -3, np.int64(1), pnp.asarray(2)):
        np.testing.assert_array_equal(p[b], ROWS[int(b)])
    assert all(p.data[int(i) : int(j)].tolist() == r.tolist()
               for i, j, r in zip(p.offsets, p.offsets[1:], ROWS))  # fmt: skip


def test_padded():
    p = pile()
    np.testing.assert_array_equal(p.to_padded(), [[1, 2, 3], [0, 0, 0], [4, 0, 0]])
    got = p.to_padded(fill=np.nan, capacity=4)
    nan = np.nan
    np.testing.assert_array_equal(got, [[1, 2, 3, nan], [nan] * 4, [4, nan, nan, nan]])
    assert got.dtype == np.float32
    q = Pile.from_list([[1, 2], [3]])
    assert q.to_padded(fill=-1, capacity=np.int64(3)).tolist() == [[1, 2, -1], [3, -1, -1]]


def test_equal_to_itself_only():
    p = pile()
    assert p == p and p != pile() and len({p, p, pile()}) == 2


def test_results_of_one_shape():
    """What differs in no size is stacked."""
    p = vmap(lambda x: x.sum(), pile_axis, pile_axis)(pile())
    assert p.data.tolist() == [6, 0, 4] and len(p) == 3 and p[0] == 6
    with pytest.raises(ArgumentError, match="have one shape"):
        _ = p.lengths


def test_results_of_other_sizes():
    p = vmap(lambda x: pnp.concatenate([x, x]), pile_axis, pile_axis)(pile())
    same(p, [np.concatenate([x, x]) for x in ROWS])
    np.testing.assert_array_equal(p.lengths, [6, 0, 2])
    np.testing.assert_array_equal(p.data, np.concatenate([x for r in ROWS for x in (r, r)]))


# ---- copied, and handed on -----------------------------------------------------------------------

TREES = {
    "array": lambda: pile(),
    "tree": lambda: Pile.from_list([{"u": np.ones(n), "v": np.ones((n, 2))} for n in (2, 3)]),
    "two axes": lambda: Pile.from_list([np.ones((2, 3)), np.ones((40, 1))], axis=(0, 1)),
    "no elements": lambda: Pile(np.ones(0), []),
}


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize(
    "again",
    [
        copy.copy,
        copy.deepcopy,
        lambda p: pickle.loads(pickle.dumps(p)),
        lambda p: plait.tree.map(lambda x: x, p),
        lambda p: plait.tree.unflatten(plait.tree.structure(p), plait.tree.leaves(p)),
        plait.jit(lambda p: p),
        plait.block_until_ready,
    ],
    ids=["copy", "deepcopy", "pickle", "map", "leaves", "jit", "block"],
)
def test_the_same_again(name, again):
    """With the structure that it had, and mapped as it was."""
    p = TREES[name]()
    q = again(p)
    assert isinstance(q, Pile) and len(q) == len(p)
    assert plait.tree.structure(q) == plait.tree.structure(p)
    same(q, p.to_list())
    total = vmap(lambda x: sum(y.sum() for y in plait.tree.leaves(x)), pile_axis)
    np.testing.assert_array_equal(total(q), total(p))


def test_pickled_for_another_process():
    """Which has made no pile itself: there, too, it is known for one."""
    code = (
        "import pickle, sys; p = pickle.load(sys.stdin.buffer); import plait\n"
        "try: plait.vmap(lambda x: x)(p)\n"
        "except plait.errors.ArgumentError as e: assert 'is a pile' in str(e)\n"
        "print(plait.vmap(lambda x: x.sum(), plait.pile_axis)(p).tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(pile()), capture_output=True, check=True
    )
    assert done.stdout.split() == b"[6.0, 0.0, 4.0]".split()


def test_in_trees():
    """A pile among other things: rows and lengths are leaves, and rows may be computed with."""
    p = pile()
    rows, lengths = plait.tree.leaves(p)
    doubled = plait.tree.unflatten(plait.tree.structure(p), [2 * rows, lengths])
    same(doubled, [2 * r for r in ROWS])
    leaves, tree = plait.tree.flatten({"p": p, "w": 1.0})
    assert len(leaves) == 3
    same(tree.unflatten(leaves)["p"], ROWS)


@pytest.mark.parametrize("how", ["data", "padded"])
def test_lengths_that_are_traced(how):
    """One program for all lengths; what is not known has its greatest size."""
    traced = []

    @plait.jit
    def f(x, n):
        traced.append(n)
        p = Pile(x, n) if how == "data" else Pile.from_padded(x, n)
        doubled = vmap(lambda r: r * 2, pile_axis, pile_axis)(p)
        return p, p.lengths, p.offsets, p.data, p.to_padded(capacity=4), doubled

    x = np.arange(1.0, 9.0)
    for n in ([3, 1], [0, 4], [0, 0]):
        rows = [x[: n[0]], x[n[0] : sum(n)]] if how == "data" else [x[: n[0]], x[4 : 4 + n[1]]]
        p, lengths, offsets, data, padded, doubled = f(
            x if how == "data" else x.reshape(2, 4), np.array(n)
        )
        same(p, rows)
        same(doubled, [2 * r for r in rows])
        assert lengths.tolist() == n and offsets.tolist() == [0, n[0], sum(n)]
        np.testing.assert_array_equal(data[: sum(n)], np.concatenate(rows))
        assert not np.asarray(data[sum(n) :]).any()
        for got, want in zip(np.asarray(padded), rows):
            np.testing.assert_array_equal(got, [*want, *[0] * (4 - len(want))])
    assert len(traced) == 1


def test_shapes_without_values():
    q = plait.eval_shape(vmap(lambda x: x * 2, pile_axis, pile_axis), pile())
    assert plait.tree.structure(q) == plait.tree.structure(pile())


# ---- refused -------------------------------------------------------------------------------------

ONE = np.ones
MADE = {
    "no elements": (ArgumentError, "no elements has no type", lambda: Pile.from_list([])),
    "a number": (ArgumentError, "of type int", lambda: Pile.from_list(3)),
    "a text": (ArgumentError, "of type str", lambda: Pile.from_list("abc")),
    "texts": (OperandTypeError, "dtype <U1", lambda: Pile.from_list(["a", "b"])),
    "nothing": (ShapeError, "no arrays", lambda: Pile.from_list([None, None])),
    "numbers": (ShapeError, r"shape \(\) have no axes", lambda: Pile.from_list([1.0, 2.0])),
    "other sizes": (
        ShapeError, "differ elsewhere",
        lambda: Pile.from_list([ONE((2, 3)), ONE((1, 4))]),
    ),
    "other ranks": (ShapeError, "differ elsewhere", lambda: Pile.from_list([ONE((2, 3)), ONE(1)])),
    "other trees": (
        ShapeError, "element 1",
        lambda: Pile.from_list([{"a": ONE(1)}, {"b": ONE(1)}]),
    ),
    "the number of each is one for all": (
        AxisError, "varies along the mapped axis",
        lambda: vmap(lambda x: plait.lax.axis_index("i"), pile_axis, None, axis_name="i")(pile()),
    ),
    "an axis too far": (ShapeError, "no axes", lambda: Pile.from_list([ONE(2)], axis=1)),
    "an axis twice": (ShapeError, "no axes", lambda: Pile.from_list([ONE(2)], axis=(0, -1))),
    "no axis": (
        ArgumentError, "axis of a pile is None",
        lambda: Pile.from_list([ONE(2)], axis=None),
    ),
    "a named axis": (ArgumentError, "is 'n'", lambda: Pile(ONE(2), [2], axis="n")),
    "uneven lists": (
        ShapeError, "list of lists",
        lambda: Pile.from_list([[[1, 2], [3]], [[4, 5]]]),
    ),
    "keys": (
        OperandTypeError, "one dtype",
        lambda: Pile.from_list([plait.random.split(plait.random.key(0)), ONE(2)]),
    ),
    "traced": (
        ConcretizationError, "padded arrays",
        lambda: plait.jit(lambda x: Pile.from_list([x]))(ONE(3)),
    ),
    "no rows": (ShapeError, "of no arrays", lambda: Pile({}, [1])),
    "a scalar": (ShapeError, "along axis 0", lambda: Pile(3.0, [1])),
    "too few rows": (ShapeError, "5 rows in all, and there are 4", lambda: Pile(ONE(4), [2, 3])),
    "a length beyond int32": (ArgumentError, "a length is", lambda: Pile(ONE(4), [2**32 + 3, 1])),
    "an unsigned length beyond int32": (
        ArgumentError, "a length is", lambda: Pile(ONE(4), np.array([2**32 - 3], np.uint32))),
    "a length far below 0": (ArgumentError, "negative", lambda: Pile(ONE(4), [3 - 2**32])),
    "a negative length of 8 bits": (
        ArgumentError, "negative", lambda: Pile(ONE(4), np.array([3, -1], np.int8))),
    "a negative length": (ArgumentError, "negative", lambda: Pile(ONE(4), [5, -1])),
    "lengths of floats": (ArgumentError, "lengths are f64", lambda: Pile(ONE(4), [2.0, 2.0])),
    "lengths of booleans": (ArgumentError, "bool", lambda: Pile(ONE(2), np.array([True, True]))),
    "a matrix of lengths": (ArgumentError, r"\[1,2\]", lambda: Pile(ONE(4), [[2, 2]])),
    "no lengths": (NotAnArrayError, "None", lambda: Pile(ONE(4), None)),
    "leaves of other rows": (
        ShapeError, "along axis 0",
        lambda: Pile({"a": ONE(3), "b": ONE(4)}, [3]),
    ),
    "more than padded": (ShapeError, "length of 4", lambda: Pile.from_padded(ONE((2, 3)), [1, 4])),
    "another count": (ShapeError, "of 1 elements", lambda: Pile.from_padded(ONE((2, 3)), [1])),
    "nothing padded": (ShapeError, "not a padded", lambda: Pile.from_padded(ONE(2), [1, 1])),
    "padded, too far": (
        ShapeError, "axis -3",
        lambda: Pile.from_padded(ONE((2, 3, 3)), [1, 1], -3),
    ),
    "paddings": (
        ShapeError, "3, 4 rows",
        lambda: Pile.from_padded((ONE((1, 3)), ONE((1, 4))), [1]),
    ),
}  # fmt: skip
USED = {
    "an element too far": (SubscriptError, "element 3 of a pile of 3", lambda: pile()[3]),
    "one before the first": (SubscriptError, "element -4", lambda: pile()[-4]),
    "a slice of another kind": (
        SubscriptError, "asked for by a value of type str", lambda: pile()["a"]
    ),
    "a float": (SubscriptError, "of type float", lambda: pile()[1.0]),
    "a matrix": (ShapeError, "vector of integers", lambda: pile()[np.array([[0, 1]])]),
    "too little capacity": (ShapeError, "size 3 does not fit", lambda: pile().to_padded(0, 2)),
    "no capacity": (ArgumentError, "capacity is", lambda: pile().to_padded(0, 2.5)),
    "a vector to fill with": (ArgumentError, "no rows is", lambda: pile().to_padded(ONE(3))),
    "a text to fill with": (NotAnArrayError, "'a'", lambda: pile().to_padded("a")),
    "numpy": (NotAnArrayError, "to_padded", lambda: np.asarray(pile())),
    "a function of rows": (NotAnArrayError, "pile_axis", lambda: pnp.sort(pile())),
    "traced, as a list": (
        ConcretizationError, "are not known", lambda: plait.jit(lambda p: p.to_list())(pile())
    ),
    "traced, elements by a mask": (
        ShapeError, "must be known", lambda: plait.jit(lambda p: p[p.lengths > 0])(pile())
    ),
}  # fmt: skip


def total(x):
    return x.sum()


def both(x, y):
    return x + y


OTHER = [1, 1, 1]
MAPPED = {
    "not said": (
        ArgumentError, r"argument `x` is a pile, and its in_axes is 0",
        lambda: vmap(total)(pile()),
    ),
    "said otherwise": (
        ArgumentError, r"in_axes is 0", lambda: vmap(both, (0, 0))(pile(), ONE(3))
    ),
    "an axis behind its leaves": (
        AxisError, r"out_axes is 1 for a pile", lambda: vmap(lambda s: pile(), out_axes=1)(ONE(2))
    ),
    "leaves of another shape": (
        ShapeError, r"were added to the leaves of this tree, or removed",
        lambda: vmap(total, pile_axis)(plait.tree.map(lambda a: a.sum(), pile())),
    ),
    "no pile": (
        ArgumentError, r"`x` is a pile, and it is f64\[3\]",
        lambda: vmap(total, pile_axis)(ONE(3)),
    ),
    "one in a tree is none": (
        ArgumentError, r"`x\['w'\]` is a pile, and it is",
        lambda: vmap(total, pile_axis)({"p": pile(), "w": ONE(3)}),
    ),
    "a result": (
        ShapeError, r"result\['u'\]\[0\] of type f32\[n0_0\] .* n0_0 at axis 0",
        lambda: vmap(lambda x: {"u": (x, x.sum())}, pile_axis)(pile()),
    ),
    "a result along axis 1": (
        ShapeError, "n0_0 at axis 1", lambda: vmap(lambda x: x * ONE((2, 1)), pile_axis)(pile())
    ),
    "one result for all": (
        AxisError, "varies along the mapped axis", lambda: vmap(total, pile_axis, None)(pile())
    ),
    "an axis too far": (AxisError, "out_axes 3", lambda: vmap(total, pile_axis, 3)(pile())),
    "lengths that differ": (
        ShapeError, r"`x` and of `y` must be equal .* \[3 0 1\] and \[1 1 1\]",
        lambda: vmap(both, (pile_axis,) * 2, pile_axis)(pile(), Pile(ONE(3), OTHER)),
    ),
    "traced lengths that differ": (
        ShapeError, r"\[3 0 1\] and \[1 1 1\]",
        lambda: plait.jit(vmap(both, (pile_axis,) * 2, pile_axis))(pile(), Pile(ONE(3), OTHER)),
    ),
    "counts that differ": (
        AxisError, r"`x` has 3 elements, `y` has 4",
        lambda: vmap(both, (pile_axis, 0))(pile(), ONE(4)),
    ),
    "piles of other counts": (
        AxisError, r"`y` has 1", lambda: vmap(both, pile_axis)(pile(), Pile(ONE(1), [1]))
    ),
    "axis_size": (
        AxisError, "axis_size=4", lambda: vmap(total, pile_axis, axis_size=4)(pile())
    ),
    "chunk": (ArgumentError, "no chunk", lambda: vmap(total, pile_axis, chunk=2)(pile())),
    "spmd_axis_name": (
        ArgumentError, "spmd_axis_name", lambda: vmap(total, pile_axis, spmd_axis_name="i")(pile())
    ),
    "no rule": (
        MissingRule, "linalg.eig has no rule for sizes that differ",
        lambda: plait.jit(vmap(lambda x: abs(pnp.linalg.eigvals(x[:, None] * x)).sum(), pile_axis))(
            pile()
        ),
    ),
    "a size asked for": (
        TypeError, "n0_0 is not known",
        lambda: plait.jit(vmap(lambda x: x * int(len(x)), pile_axis, pile_axis))(pile()),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [*MADE, *USED, *MAPPED])
def test_refused(name):
    """In the line that asked for it, with what to write instead."""
    kind, message, call = {**MAPPED, **USED, **MADE}[name]
    with pytest.raises(kind, match=message) as e:
        call()
    assert __file__ in str(e.value) and e.value.fix


@pytest.mark.parametrize("wrap", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_equal_lengths_are_one_size(wrap):
    """Of piles that were made each for itself."""
    got = wrap(vmap(both, (pile_axis,) * 2, pile_axis))(pile(), pile())
    same(got, [2 * r for r in ROWS])


def test_names_are_classes_of_their_own():
    assert repr(pile_axis) == "plait.pile_axis"
    assert copy.deepcopy(pile_axis) is pile_axis is pickle.loads(pickle.dumps(pile_axis))


def test_a_keyword_is_mapped_as_what_it_is():
    p, scale = pile(), np.array([1.0, 2.0, 3.0])
    got = vmap(lambda x, *, y, s: (x * y).sum() * s, pile_axis)(p, y=p, s=scale)
    want = [(x * x).sum() * s for x, s in zip(p.to_list(), scale)]
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_pile_that_all_examples_are_given():
    p, q = pile(), Pile(ONE(4), [1, 3])
    got = vmap(lambda x, whole: x.sum() + whole.to_padded().sum(), (pile_axis, None))(p, q)
    np.testing.assert_allclose(got, [x.sum() + 4 for x in p.to_list()], rtol=1e-6)
    got = vmap(lambda s, whole: s * whole.data.sum(), (0, None))(ONE(2) * 3, q)
    np.testing.assert_allclose(got, [12, 12])


def test_what_collectives_give_all_examples_is_one():
    f = lambda x: (plait.lax.psum(x.sum(), "i"), plait.lax.pmax(x.shape[0] * 1.0, "i"))  # noqa: E731
    total, most = vmap(f, pile_axis, None, axis_name="i")(pile())
    np.testing.assert_allclose(total, sum(x.sum() for x in pile().to_list()), rtol=1e-6)
    assert most == 3


@pytest.mark.parametrize("change", [lambda a: a * 0.5, lambda a: a * 100, lambda a: -a])
def test_lengths_that_a_function_of_all_leaves_has_changed(change):
    """Nothing is cut off, or made up, in silence."""
    leaves, tree = plait.tree.flatten(pile())
    changed = tree.unflatten(map(change, leaves))
    for use in (
        lambda p: p.to_list(), lambda p: p.to_padded(), lambda p: p.lengths, lambda p: p[0],
        lambda p: p.data, vmap(pnp.sum, pile_axis),
    ):  # fmt: skip
        with pytest.raises(
            ShapeError, match=r"lengths of a pile of 3 elements.*\n(.|\n)*p.lengths"
        ):
            use(changed)
    if change(1.0) == 0.5:
        with pytest.raises(ShapeError, match="lengths of a pile"):
            plait.jit(vmap(pnp.sum, pile_axis))(changed)


def test_rows_of_another_dtype():
    halved = plait.tree.map(lambda a: a.astype("float16") if a.dtype.kind == "f" else a, pile())
    for f in (vmap(pnp.sum, pile_axis), plait.jit(vmap(pnp.sum, pile_axis))):
        got = f(halved)
        assert got.dtype == np.float16
        np.testing.assert_array_equal(got, [6, 0, 4])


def test_programs_of_tables_are_let_go():
    """Capacities come and go, as data do: what was staged for those of long ago is not kept, and of
    those that come again nothing is staged anew."""
    f = shared(lambda n, capacities: n + capacities[0])

    def staged_for(k):
        (e,) = plait.make_program(lambda n: f(n, (k,)))(np.int32(1)).eqns
        return e.params["program"]

    kept = [weakref.ref(staged_for(k)) for k in range(KEPT + 20)]
    gc.collect()
    assert sum(r() is not None for r in kept) <= KEPT
    assert kept[-1]() is staged_for(KEPT + 19) is not None


@pytest.mark.parametrize(
    "lengths",
    [
        np.array([2**32 + 3, 1]), np.array([2**31]), np.array([3 - 2**32]),
        np.array([2**32 - 3], np.uint32), np.full(4, 2**30, np.int32), np.full(5, 2**30, np.int32),
        np.full(3, 2**31 - 1, np.int32), np.array([2**31 - 1, 2**31 - 1, 6], np.int32),
    ],
    ids=str,
)  # fmt: skip
def test_traced_lengths_that_wrap_around_are_refused(lengths):
    """Also where their sum is one that fits, counted by 32 bits."""
    f = plait.jit(lambda rows, n: plait.vmap(lambda x: x.sum(), pile_axis, 0)(Pile(rows, n)))
    with pytest.raises(plait.errors.PlaitError, match="length"):
        np.asarray(f(ONE(8), lengths))


def test_lengths_of_every_integer_dtype_and_byte_order():
    for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">i4", ">i8", "<i8"):
        p = Pile(ONE(5), np.array([2, 0, 3], dtype)[::-1])
        assert np.asarray(p.lengths).tolist() == [3, 0, 2]
