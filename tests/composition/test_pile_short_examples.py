"""Examples with fewer rows than a function asks for are refused where lengths are known; where they
are not, nothing of other examples is read.

Invariant: what is refused is what the example itself refuses; what is read instead is 0.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax, pile_axis, vmap
from plait.errors import AxisError, PlaitError, ShapeError, SubscriptError

LENGTHS = (3, 0, 5, 1)
ROWS = [np.full((n, 4), 10.0 * (i + 1)) + np.arange(n)[:, None] for i, n in enumerate(LENGTHS)]


def pile(rows=ROWS):
    return plait.Pile.from_list(rows)


def mapped(f):
    return vmap(f, pile_axis, pile_axis)


READS = {  # what is read of an example of no rows, where lengths are traced
    "first": (lambda x: x[0], [0.0] * 4),
    "last": (lambda x: x[-1], [0.0] * 4),
    "last of a running sum": (lambda x: pnp.cumsum(x, 0)[-1], [0.0] * 4),
    "at a value": (lambda x: x[x.shape[0] - pnp.asarray(x.shape[0])], [0.0] * 4),
    "taken": (lambda x: pnp.take(x, pnp.array([0, 2]), axis=0, mode="clip"), np.zeros((2, 4))),
    "filled": (lambda x: x.at[0].get(mode="fill", fill_value=7.0), [7.0] * 4),
    "box": (lambda x: lax.dynamic_slice_in_dim(x, 0, 1), np.zeros((1, 4))),
    "edge": (lambda x: pnp.pad(x, ((1, 0), (0, 0)), mode="edge"), np.zeros((1, 4))),
    "median": (lambda x: pnp.median(x, 0), [0.0] * 4),
    "greatest": (lambda x: x.max(0), [-np.inf] * 4),
    "place of the greatest": (lambda x: pnp.argmax(x, 0), [0] * 4),
    "two greatest": (lambda x: lax.top_k(x[:, 0], 1)[0], [-np.inf]),
}  # fmt: skip


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", READS)
def test_an_example_of_no_rows(name):
    f, empty = READS[name]
    if name == "filled":  # an index that is out of bounds is what the mode is for
        np.testing.assert_array_equal(f(pnp.asarray(ROWS[1])), empty)
    else:
        _expect_refused(f)
    got = plait.jit(mapped(f))(pile()).to_list()
    for b, (g, x) in enumerate(zip(got, ROWS)):
        np.testing.assert_array_equal(g, f(pnp.asarray(x)) if len(x) else empty, err_msg=str(b))


def _expect_refused(f):
    with pytest.raises(PlaitError, match="example 1, where n0_0 is 0") as e:
        mapped(f)(pile())
    assert __file__ in str(e.value) and e.value.fix
    with pytest.raises(type(e.value)):
        f(pnp.asarray(ROWS[1]))


@pytest.mark.parametrize("name", ["first", "last of a running sum", "taken", "box", "edge"])
def test_nothing_flows_back_into_other_examples(name):
    f = READS[name][0]

    def total(rows):
        p = plait.tree.unflatten(plait.tree.structure(pile()), [rows, pile().lengths])
        return sum(v.sum() for v in plait.tree.leaves(mapped(lambda x: (f(x) ** 2).sum())(p)))

    @plait.jit
    def slopes(p):
        return plait.grad(lambda q: vmap(lambda x: (f(x) ** 2).sum(), pile_axis)(q).sum())(p)

    for g, x in zip(slopes(pile()).to_list(), ROWS):
        want = plait.grad(lambda v: (f(v) ** 2).sum())(pnp.asarray(x)) if len(x) else x
        np.testing.assert_allclose(g, want)


def test_fewer_rows_than_are_cut_out():
    """The shortest example says what all would, whatever is asked for."""
    rows = [r for r in ROWS if len(r) > 1]
    for f in (
        lambda x: lax.slice(x, (0, 0), (4, 4)),
        lambda x: lax.dynamic_slice_in_dim(x, 0, 4),
        lambda x: lax.top_k(x.T, 4)[0],
        lambda x: plait.jit(lambda v: lax.slice_in_dim(v, 0, 4))(x),
    ):
        with pytest.raises(PlaitError, match="example 0, where n0_0 is 3"):
            mapped(f)(pile(rows))
        cut = plait.jit(mapped(f))(pile(rows)).to_list()
        np.testing.assert_array_equal(cut[1], f(pnp.asarray(rows[1])))
    cut = plait.jit(mapped(lambda x: lax.slice_in_dim(x, 0, 4)))(pile(rows)).to_list()
    np.testing.assert_array_equal(cut[0], np.concatenate([rows[0], np.zeros((1, 4))]))


def test_what_is_not_refused_of_an_example_alone_is_not_refused():
    def careful(x):
        return x.max(0, initial=-1.0), lax.cond(
            pnp.asarray(x.shape[0]) > 0, lambda: x.sum(), lambda: np.float64(-2)
        )

    first, second = mapped(careful)(pile())
    for p, q, x in zip(first.to_list(), second.to_list(), ROWS):
        np.testing.assert_array_equal(p, x.max(0, initial=-1))
        assert q == (x.sum() if len(x) else -2)
    assert mapped(lambda x: x[:2].sum() + pnp.unique(x, size=1).sum())(pile()).to_list()[1] == 0


def test_an_example_whose_result_has_another_type():
    """numpy.cov of one row takes it for a column."""
    with pytest.raises(ShapeError, match=r"example 3, where n0_0 is 1: a result of type f64\[\]"):
        mapped(lambda x: pnp.cov(x, rowvar=False))(pile())


def test_kinds_of_errors_are_those_of_the_example():
    with pytest.raises(SubscriptError):
        mapped(lambda x: x[0])(pile())
    with pytest.raises(AxisError, match="nothing to choose from"):
        vmap(lambda x: plait.jit(pnp.max)(x), pile_axis)(pile())
