"""Examples with fewer rows than a function asks for are refused, with known lengths and with traced
ones; where such an error is only returned, nothing of other examples is read.

Invariant: what is refused is what the example itself refuses; what is read instead is 0.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Pile, lax, nn, pile_axis, vmap
from plait.checks import FailedCheckError, all_checks, checkify
from plait.errors import AxisError, PlaitError, ShapeError, SubscriptError

LENGTHS = (3, 0, 5, 1)
ROWS = [np.full((n, 4), 10.0 * (i + 1)) + np.arange(n)[:, None] for i, n in enumerate(LENGTHS)]


def pile(rows=ROWS):
    return plait.Pile.from_list(rows)


def mapped(f):
    return vmap(f, pile_axis, pile_axis)


def unchecked(f):
    """The function, jitted, without the errors of examples."""
    checked = plait.jit(checkify(f))
    return lambda *args: checked(*args)[1]


READS = {  # what is read of an example of no rows, where the error is returned, not raised
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


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", READS)
def test_an_example_of_no_rows(name):
    f, empty = READS[name]
    if name == "filled":  # an index that is out of bounds is what the mode is for
        np.testing.assert_array_equal(f(pnp.asarray(ROWS[1])), empty)
    else:
        _expect_refused(f)
    got = unchecked(mapped(f))(pile()).to_list()
    for b, (g, x) in enumerate(zip(got, ROWS)):
        np.testing.assert_array_equal(g, f(pnp.asarray(x)) if len(x) else empty, err_msg=str(b))


def _expect_refused(f):
    with pytest.raises(PlaitError, match="example 1, where n0_0 is 0") as e:
        mapped(f)(pile())
    assert __file__ in str(e.value) and e.value.fix
    with pytest.raises(type(e.value)):
        f(pnp.asarray(ROWS[1]))
    told = str(e.value).splitlines()[0]
    with pytest.raises(FailedCheckError) as run:
        plait.tree.map(np.asarray, plait.jit(mapped(f))(pile()))
    assert told in str(run.value) and __file__ in str(run.value)
    for g in (checkify(plait.jit(mapped(f)), errors=all_checks), plait.jit(checkify(mapped(f)))):
        assert told in g(pile())[0].get()
        assert g(pile([r for r in ROWS if len(r) > 2]))[0].get() is None


@pytest.mark.parametrize("name", ["first", "last of a running sum", "taken", "box", "edge"])
def test_nothing_flows_back_into_other_examples(name):
    f = READS[name][0]

    def total(rows):
        p = plait.tree.unflatten(plait.tree.structure(pile()), [rows, pile().lengths])
        return sum(v.sum() for v in plait.tree.leaves(mapped(lambda x: (f(x) ** 2).sum())(p)))

    def slopes(p):
        return plait.grad(lambda q: vmap(lambda x: (f(x) ** 2).sum(), pile_axis)(q).sum())(p)

    for g, x in zip(unchecked(slopes)(pile()).to_list(), ROWS):
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
        with pytest.raises(FailedCheckError, match="example 0, where n0_0 is 3"):
            plait.tree.map(np.asarray, plait.jit(mapped(f))(pile(rows)))
        cut = unchecked(mapped(f))(pile(rows)).to_list()
        np.testing.assert_array_equal(cut[1], f(pnp.asarray(rows[1])))
    cut = unchecked(mapped(lambda x: lax.slice_in_dim(x, 0, 4)))(pile(rows)).to_list()
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
    """numpy.cov of one row has no axes."""
    f = mapped(lambda x: pnp.cov(x))
    for run, kind in ((f, ShapeError), (plait.jit(f), FailedCheckError)):
        with pytest.raises(kind, match=r"example 3, where n0_0 is 1: a result of type f64\[\]"):
            plait.tree.map(np.asarray, run(pile()))


LAWS = {  # sizes that a function of x and y refuses
    "either": (lambda x, y: x.max(0) + y.min(0), lambda n, m: n == 0 or m == 0),
    "together": (lambda x, y: pnp.concatenate([x, y]).max(0), lambda n, m: n + m == 0),
    "slopes": (lambda x, y: pnp.gradient(x, axis=0).sum(0) + y.sum(0), lambda n, m: n < 2),
    "a window": (lambda x, y: lax.dynamic_slice_in_dim(x, 0, 5)[0] + y.sum(0), lambda n, m: n < 5),
    "nothing": (lambda x, y: x.sum(0) + y.mean(0), lambda n, m: False),
}


@pytest.mark.parametrize("name", LAWS)
def test_sizes_that_are_refused_when_the_program_runs(name):
    """Each batch is refused if, and only if, an example of it is."""
    f, refused = LAWS[name]
    run = plait.jit(vmap(f, pile_axis))
    rng = np.random.default_rng(len(name))
    for _ in range(12):
        n, m = rng.integers(0, 7, (2, 3)) * rng.integers(0, 2, (2, 3)) + rng.integers(0, 3)
        p, q = (plait.Pile(np.ones((40, 2)), k) for k in (n, m))
        bad = [b for b in range(3) if refused(n[b], m[b])]
        if not bad:
            np.asarray(run(p, q))
            continue
        with pytest.raises(FailedCheckError, match=f"example {bad[0]}, where n0_0 is {n[bad[0]]}"):
            np.asarray(run(p, q))


def test_kinds_of_errors_are_those_of_the_example():
    with pytest.raises(SubscriptError):
        mapped(lambda x: x[0])(pile())
    with pytest.raises(AxisError, match="nothing to choose from"):
        vmap(lambda x: plait.jit(pnp.max)(x), pile_axis)(pile())


REFUSE_NOTHING = {
    "attention": lambda x: nn.softmax(x @ x.T) @ x,
    "mean": lambda x: x - x.mean(0),
    "logsumexp": lambda x: nn.logsumexp(x, 0),
    "greatest with initial": lambda x: x.max(0, initial=0.0),
    "running sum": lambda x: pnp.cumsum(x, 0) * x.shape[0],
    "jitted": lambda x: plait.jit(lambda v: v * v.sum())(x),
    "products": lambda x: pnp.tanh(x) @ np.ones((4, 2)) + x[:, :1],
}


@pytest.mark.parametrize("name", REFUSE_NOTHING)
def test_functions_that_refuse_nothing_are_traced_once(name):
    traced = []

    def f(x):
        traced.append(x.shape)
        return REFUSE_NOTHING[name](x)

    with np.errstate(all="ignore"):
        got = plait.jit(mapped(f))(pile()).to_list()
        assert len(traced) == 1
        for g, x in zip(got, ROWS, strict=True):
            np.testing.assert_allclose(g, f(pnp.asarray(x)), rtol=1e-9)


ADDED = {
    "first": lambda x: x[0],
    "greatest": lambda x: x.max(0),
    "median": lambda x: pnp.median(x, 0),
    "second": lambda x: x[1],
    "pairs": lambda x: x[: x.shape[0] // 2 * 2].reshape(-1, 2, 4).sum(1),
    "numbers": lambda x: sum(r * i for i, r in enumerate(x)),
    "branches": lambda x: x[1:] if len(x) > 3 else x[:-1],
}
KNOWN_ALONE = {"second", "numbers", "branches"}
"""Functions whose questions only known lengths answer."""


@pytest.mark.parametrize("name", ADDED)
def test_elements_that_a_capacity_adds_are_never_refused(name):
    f, rows = ADDED[name], [r for r in ROWS if len(r) > 2]
    room = plait.Capacities(rows=32, longest=8, count=5)
    run = mapped(f)
    for g in (run, plait.jit(run)):
        if g is not run and name in KNOWN_ALONE:
            continue
        got = g(Pile.from_list(rows, capacity=room)).to_list()
        for y, x in zip(got[: len(rows)], rows, strict=True):
            np.testing.assert_allclose(y, f(pnp.asarray(x)))
        with pytest.raises(PlaitError, match="example 1, where n0_0 is 0"):
            short = Pile.from_list([rows[0], rows[0][:0], rows[1]], capacity=room)
            if name not in ("pairs", "branches", "numbers"):
                plait.tree.map(np.asarray, g(short))
            else:  # these accept an example of no rows
                mapped(lambda x: x[0])(short)


def test_facts_are_not_about_elements_that_a_capacity_adds():
    room = plait.Capacities(rows=32, longest=8, count=5)
    rows = np.arange(32.0)

    @plait.jit
    def seconds(rows, n):
        return mapped(lambda x: x[1] * x.sum())(Pile(rows, n, capacity=room, at_least=2))

    for n in ([3, 2], [2, 6, 2], [8, 2, 4, 3, 2]):
        starts = np.cumsum(n) - n
        want = [rows[s + 1] * rows[s : s + k].sum() for s, k in zip(starts, n)]
        np.testing.assert_allclose(seconds(rows, np.array(n)).data[: len(n)], want)
    with pytest.raises(FailedCheckError, match="element 1 has 1 rows"):
        np.asarray(seconds(rows, np.array([3, 1])).data)
    p = Pile.from_list([rows[:4], rows[:2]], capacity=room, multiple_of=2)
    assert mapped(lambda x: x.reshape(-1, 2).sum(1))(p).lengths.tolist() == [2, 1, 0, 0, 0]
    assert p.lengths.tolist() == [4, 2, 0, 0, 0]


CUTS = {  # parts of an example that may have no rows where the example has some
    "ends": lambda x: x[1:-1],
    "behind": lambda x: x[2:],
    "behind, jitted": lambda x: plait.jit(lambda v: v[3:])(x),
    "half": lambda x: x[: x.shape[0] // 2],
    "a few of the end": lambda x: x[2:][:3],
}
OF_SOME_ROWS = {
    "place of the greatest": lambda x: pnp.argmax(x, 0),
    "place of the least": lambda x: x * 0 + pnp.argmin(x, 0),
    "median": lambda x: pnp.median(x, 0),
    "quantile": lambda x: pnp.quantile(x, 0.3, axis=0),
    "reach": lambda x: pnp.ptp(x, 0),
    "greatest": lambda x: x.max(0),
    "slopes": lambda x: pnp.gradient(x, axis=0),
    "sorted": lambda x: pnp.sort(x, 0),
    "in a branch": lambda x: lax.cond(x.sum() > 0, lambda: pnp.argmax(x, 0), lambda: x.argmin(0)),
}


@pytest.mark.sampled(18)
@pytest.mark.parametrize("name", OF_SOME_ROWS)
@pytest.mark.parametrize("cut", CUTS)
def test_parts_without_rows_are_refused_as_alone(cut, name):
    """An operand may have no rows where the example has some."""

    def f(x):
        return OF_SOME_ROWS[name](CUTS[cut](x))

    over = plait.jit(lambda rows, n: mapped(f)(Pile(rows, n)))
    for n in range(6):
        xs = [np.arange(4.0 * k).reshape(k, 4) for k in (7, n)]
        try:
            want = np.asarray(f(pnp.asarray(xs[1])))
        except PlaitError as e:
            with pytest.raises(type(e), match=f"example 1, where n0_0 is {n}"):
                mapped(f)(pile(xs))
            with pytest.raises(FailedCheckError, match=f"example 1, where n0_0 is {n}"):
                plait.block_until_ready(over(np.concatenate(xs), np.array([7, n])))
        else:
            for out in (mapped(f)(pile(xs)), over(np.concatenate(xs), np.array([7, n]))):
                np.testing.assert_allclose(out.to_list()[1], want)
