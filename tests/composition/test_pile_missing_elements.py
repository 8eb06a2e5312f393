"""Operations that read or act across the elements of a batch, where some elements are missing.

Elements are missing where a capacity has room for more, in a stack of such batches, and where piles
in a pile differ in number.

Invariant: the reference is a loop of numpy over the elements that are there.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Capacities, P, Pile, checks, lax, pile_axis, vmap
from plait.errors import AxisError

SIZES = Capacities(16, 8, count=4)
XS = [np.arange(1.0, 4), np.array([2.0]), np.arange(5.0, 9)]
YS = [np.array([-3.0, 1.0]), np.array([4.0, 0.5])]


def _sum(v):
    return lax.psum(v, "i")


ACROSS = {  # function of an example, and its results for all examples
    "sum": (lambda x: _sum(x.sum() + 1), lambda xs: sum(x.sum() + 1 for x in xs)),
    "mean of rows": (lambda x: _sum(x.mean()), lambda xs: sum(x.mean() for x in xs)),
    "number": (lambda x: _sum(1), len),
    "twice the number": (lambda x: _sum((2, 2.0))[0], lambda xs: 2 * len(xs)),
    "ones": (lambda x: _sum(pnp.ones(())), len),
    "mean": (lambda x: lax.pmean(x.sum(), "i"), lambda xs: np.mean([x.sum() for x in xs])),
    "least": (lambda x: lax.pmin(x.sum() + 1, "i"), lambda xs: min(x.sum() + 1 for x in xs)),
    "greatest": (lambda x: lax.pmax(-9 - x.sum(), "i"), lambda xs: max(-9 - x.sum() for x in xs)),
    "greatest integer": (lambda x: lax.pmax(-x.shape[0], "i"), lambda xs: max(-len(x) for x in xs)),
    "gathered": (
        lambda x: lax.all_gather(x.mean(), "i").sum(), lambda xs: sum(x.mean() for x in xs)
    ),
    "in a jitted part": (lambda x: plait.jit(lambda v: _sum(v) / _sum(1))(x.mean()),
                         lambda xs: np.mean([x.mean() for x in xs])),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jitted"])
@pytest.mark.parametrize("name", ACROSS)
def test_collectives_of_the_elements_that_are_there(name, jit):
    f, want = ACROSS[name]
    run = vmap(f, pile_axis, axis_name="i")
    got = (plait.jit(run) if jit else run)(Pile.from_list(XS, capacity=SIZES))
    np.testing.assert_allclose(got, [want(XS)] * 3 + [0], rtol=1e-6)


def test_collectives_in_groups():
    """Groups are of places in the batch; a missing element is missing in its group."""
    groups = [[0, 3], [1, 2]]
    f = lambda x: lax.psum(x.mean(), "i", axis_index_groups=groups)  # noqa: E731
    got = vmap(f, pile_axis, axis_name="i")(Pile.from_list(XS, capacity=SIZES))
    np.testing.assert_allclose(got, [2.0, 8.5, 8.5, 0])


def test_the_size_of_the_axis_is_not_the_number_of_elements():
    mean = lambda x: _sum(x.sum()) / lax.axis_size("i")  # noqa: E731
    with pytest.raises(AxisError, match="room for 4 elements") as e:
        vmap(mean, pile_axis, axis_name="i")(Pile.from_list(XS, capacity=SIZES))
    assert "psum(1, 'i')" in e.value.fix
    want = sum(x.sum() for x in XS) / 3
    np.testing.assert_allclose(vmap(mean, pile_axis, axis_name="i")(Pile.from_list(XS)), want)


def test_derivatives_of_collectives():
    def loss(w, p):
        centred = lambda x: (pnp.tanh(w * x).mean() - lax.pmean((w * x).mean(), "i")) ** 2  # noqa: E731
        return vmap(centred, pile_axis, axis_name="i")(p).sum()

    def plain(w):
        ms = [(w * x).mean() for x in XS]
        return sum((np.tanh(w * x).mean() - np.mean(ms)) ** 2 for x in XS)

    p = Pile.from_list(XS, capacity=SIZES)
    value, got = plait.jit(plait.value_and_grad(loss))(0.3, p)
    np.testing.assert_allclose(value, plain(0.3), rtol=1e-5)
    np.testing.assert_allclose(got, (plain(0.3001) - plain(0.2999)) / 2e-4, rtol=1e-3)


def stacked(*batches):
    """Return the rows of several batches, and their lengths."""
    rows = np.stack([np.resize(np.concatenate(b), 16) for b in batches])
    return rows, np.array([[*map(len, b), *[0] * (4 - len(b))] for b in batches])


def test_batches_in_a_stack_have_their_own_missing_elements():
    """Those of the first lie between elements of both."""

    def batch(w, rows, n):
        f = lambda x: (w * x).mean() + w  # noqa: E731
        return vmap(f, pile_axis)(Pile(rows, n, capacity=SIZES))

    rows, n = stacked(XS, YS)
    got = vmap(lambda r, k: batch(2.0, r, k))(rows, n)
    want = [[2 * x.mean() + 2 for x in b] + [0] * (4 - len(b)) for b in (XS, YS)]
    np.testing.assert_allclose(got, want, rtol=1e-6)
    slope = plait.grad(lambda w: vmap(lambda r, k: batch(w, r, k).sum())(rows, n).sum())(2.0)
    np.testing.assert_allclose(slope, sum(x.mean() + 1 for x in XS + YS), rtol=1e-6)


CHOSEN = {  # a batch made of others, and its examples
    "joined": (lambda p: pnp.concatenate([p, p[::-1][-3:], p]), [*XS, *XS[::-1], *XS]),
    "longest first": (lambda p: p[pnp.argsort(-p.lengths)], [XS[2], XS[0], XS[1]]),
    "some": (lambda p: p[pnp.array([1, 3])], [XS[1]]),
    "rows": (lambda p: p[p > 1.5], [XS[0][1:], XS[1], XS[2]]),
}


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jitted"])
@pytest.mark.parametrize("name", CHOSEN)
def test_batches_made_of_others_have_their_missing_elements_at_the_end(name, jit):
    make, xs = CHOSEN[name]
    mean = vmap(lambda w, x: (w * x).mean() / _sum(1), (None, pile_axis), axis_name="i")
    run = plait.value_and_grad(lambda w, p: mean(w, make(p)).sum())
    value, slope = (plait.jit(run) if jit else run)(2.0, Pile.from_list(XS, capacity=SIZES))
    want = np.mean([x.mean() for x in xs])
    np.testing.assert_allclose([value, slope], [2 * want, want], rtol=1e-6)


def nested():
    with SIZES:
        return Pile.from_list([Pile.from_list(XS), Pile.from_list(YS)])


def test_piles_in_piles_have_their_own_missing_elements():
    def total(w, p):
        return vmap(lambda q: vmap(lambda x: (w * x).mean() + w, pile_axis)(q).sum(), pile_axis)(p)

    want = [sum(2 * x.mean() + 2 for x in b) for b in (XS, YS)]
    np.testing.assert_allclose(total(2.0, nested()), [*want, 0, 0], rtol=1e-6)
    slope = plait.grad(lambda w: total(w, nested()).sum())(2.0)
    np.testing.assert_allclose(slope, sum(x.mean() + 1 for x in XS + YS), rtol=1e-6)


def until(x):
    """Add the sum of the rows until that is enough: an empty element would never end."""
    return lax.while_loop(lambda s: s < 10, lambda s: s + abs(x.sum()), 0.0)


def until_in_python(x):
    s = 0.0
    while s < 10:
        s += abs(x.sum())
    return s


LOOPS = {
    "capacity": lambda: vmap(until, pile_axis)(Pile.from_list(XS, capacity=SIZES)),
    "jitted": lambda: plait.jit(vmap(until, pile_axis))(Pile.from_list(XS, capacity=SIZES)),
    "stack": lambda: vmap(lambda r, n: vmap(until, pile_axis)(Pile(r, n, capacity=SIZES)))(
        *stacked(XS, YS)
    ),
    "nested": lambda: vmap(lambda q: vmap(until, pile_axis)(q).sum(), pile_axis)(
        Pile.from_list([Pile.from_list(XS), Pile.from_list(YS)])
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_that_end_for_each_example_end(name):
    xs, ys = ([until_in_python(x) for x in b] for b in (XS, YS))
    want = {"stack": [[*xs, 0], [*ys, 0, 0]], "nested": [sum(xs), sum(ys)]}.get(name, [*xs, 0])
    np.testing.assert_allclose(LOOPS[name](), want)


def _printed(seen):
    return lambda x: (plait.debug.callback(lambda v: seen.append(float(v)), x.sum()), x.sum())[1]


def _of_rows(seen):
    shown = lambda v: seen.append(float(v.sum()))  # noqa: E731
    return lambda x: (plait.debug.callback(shown, x), x.sum())[1]


def _pure(seen, **how):
    def host(v):
        seen.extend(np.ravel(v).tolist())
        return v

    what = plait.ShapeDtypeStruct((), np.float64)
    return lambda x: plait.pure_callback(host, what, x.sum(), **how)


CALLS = {
    "effect": _printed,
    "effect of rows": _of_rows,
    "pure": lambda seen: _pure(seen, vmap_method="sequential"),
    "pure, all at once": lambda seen: _pure(seen, vmap_method="broadcast_all"),
    "in a jitted part": lambda seen: plait.jit(_printed(seen)),
    "in a loop": lambda seen: (
        lambda x: lax.fori_loop(0, 1, lambda i, s: s + _printed(seen)(x), 0.0)
    ),
}


@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jitted"])
@pytest.mark.parametrize("name", CALLS)
def test_the_host_is_called_for_the_elements_that_are_there(name, jit):
    seen: list[float] = []
    run = vmap(CALLS[name](seen), pile_axis)
    got = (plait.jit(run) if jit else run)(Pile.from_list(XS, capacity=SIZES))
    want = [x.sum() for x in XS]
    np.testing.assert_allclose(got, [*want, 0])
    plait.effects_barrier()
    assert seen == want


def test_the_host_is_called_for_elements_of_piles_in_piles():
    seen: list[float] = []
    p = Pile.from_list([Pile.from_list(YS), Pile.from_list(XS)])
    vmap(lambda q: vmap(_of_rows(seen), pile_axis)(q).sum(), pile_axis)(p)
    plait.effects_barrier()
    assert seen == [x.sum() for x in YS + XS]


def _positive(x):
    checks.check(x.sum() > 0, "sum {}", x.sum())
    return x.sum()


def _rows_positive(x):
    checks.check((x > 0).all() & (x.max(initial=-1) > 0), "rows")
    return x.sum()


@pytest.mark.parametrize("f", [_positive, _rows_positive])
def test_checks_are_of_the_elements_that_are_there(f):
    checked = checks.checkify(vmap(f, pile_axis))
    error, got = checked(Pile.from_list(XS, capacity=SIZES))
    assert error.get() is None
    np.testing.assert_allclose(got, [*[x.sum() for x in XS], 0])
    error, _ = checked(Pile.from_list([*XS, -XS[0]], capacity=SIZES))
    assert error.get() is not None


@pytest.mark.parametrize("kind", ["pmap", "shard_map", "shard_map without types"])
def test_collectives_over_devices_count_the_elements_that_are_there(kind):
    """The first device has one example more than the second."""
    f = lambda x: (lax.psum(x.mean() + 1, "d"), lax.pmean(x.mean(), "d"), lax.psum(1, "d"))  # noqa: E731
    each = lambda p: vmap(f, pile_axis)(p)  # noqa: E731
    piles = [Pile.from_list(b, capacity=SIZES) for b in (XS, YS)]
    stack = plait.tree.map(lambda *v: pnp.stack(v), *piles)
    if kind == "pmap":
        got = plait.pmap(each, axis_name="d")(stack)
    else:
        part = lambda s: plait.tree.map(lambda v: v[None], each(s[0]))  # noqa: E731
        mesh = plait.make_mesh((2,), ("d",))
        types = kind == "shard_map"
        over = plait.shard_map(
            part, mesh=mesh, in_specs=(P("d"),), out_specs=P("d"), check_vma=types
        )
        got = over(stack)
    means = np.array([[x.mean() for x in XS[:2]], [y.mean() for y in YS]])
    total, mean, number = map(np.asarray, got)
    rest = XS[2].mean()
    np.testing.assert_allclose(total[0], [*(means + 1).sum(0), rest + 1, 0], rtol=1e-6)
    np.testing.assert_allclose(total[1], [*(means + 1).sum(0), 0, 0], rtol=1e-6)
    np.testing.assert_allclose(mean[0], [*means.mean(0), rest, 0], rtol=1e-6)
    np.testing.assert_allclose(number, [[2, 2, 1, 0], [2, 2, 0, 0]])
