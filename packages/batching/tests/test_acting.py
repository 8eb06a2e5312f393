"""Mapped cond and while that act: what is done, for whom, and what collectives inside speak of.

Invariant: what is seen is compared with a Python loop over elements, and results with numpy.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.errors import AxisError

X = np.float32([2, 3, 5, 1])
SCALAR = plait.ShapeDtypeStruct((), np.float32)
WAYS = pytest.mark.parametrize("way", [lambda f: f, plait.jit], ids=["eager", "jit"])


class Log(list):
    """Which values were seen."""

    def seen(self, x, ordered=True):
        def see(v):
            self.append(float(v))
            return np.float32(v)

        return plait.io_callback(see, SCALAR, x, ordered=ordered)


@WAYS
@pytest.mark.parametrize("ordered", [True, False])
def test_cond_acts_for_those_who_come_and_collects_from_all(way, ordered):
    log = Log()

    def f(x):
        far = lambda v: log.seen(v, ordered) + lax.psum(v, "i") - lax.axis_index("i")  # noqa: E731
        return lax.cond(x > 2.5, far, lambda v: v, x)

    got = way(plait.vmap(f, axis_name="i"))(X)
    want = [x + X.sum() - i if x > 2.5 else x for i, x in enumerate(X)]
    np.testing.assert_array_equal(np.asarray(got), want)
    assert sorted(log) == [3, 5] and (not ordered or log == [3, 5])


@WAYS
def test_switch(way):
    log = Log()
    branches = [lambda v: v, log.seen, lambda v: log.seen(v * 10) + lax.pmax(v, "i")]
    choose = plait.vmap(lambda i, x: lax.switch(i, branches, x), axis_name="i")
    got = way(choose)(np.array([2, 0, 1, 1]), X)
    np.testing.assert_array_equal(np.asarray(got), [25, 3, 5, 1])
    assert sorted(log) == [1, 5, 20]


@WAYS
def test_while_acts_as_long_as_an_element_turns(way):
    """Its predicate acts, too: once more often than the body."""
    log = Log()

    def f(n):
        step = lambda c: (c[0] + 1, c[1] + log.seen(100 + n * 10 + c[0]))  # noqa: E731
        return lax.while_loop(lambda c: log.seen(c[0]) < n, step, (np.float32(0), np.float32(0)))[1]

    got = way(plait.vmap(f))(X)
    want_log, want = [], []
    for n in X:
        turns = np.arange(n)
        want.append((100 + n * 10 + turns).sum())
        want_log += [*turns, n, *(100 + n * 10 + turns)]
    np.testing.assert_array_equal(np.asarray(got), want)
    assert sorted(log) == sorted(want_log)


@WAYS
def test_collectives_of_a_loop_that_acts_are_those_of_one_that_does_not(way):
    """Elements that are done are still there, with what they have."""
    log = Log()

    def f(act, n):
        step = lambda c: (c[0] + 1, c[1] + lax.psum(c[0], "i") + 0 * act(c[0]))  # noqa: E731
        return lax.while_loop(lambda c: c[0] < n, step, (np.float32(0), np.float32(0)))[1]

    at, total = np.zeros(4, np.float32), np.zeros(4, np.float32)
    while (at < X).any():
        total, at = np.where(at < X, total + at.sum(), total), np.where(at < X, at + 1, at)
    for act in (log.seen, lambda v: v):
        got = way(plait.vmap(lambda n, act=act: f(act, n), axis_name="i"))(X)
        np.testing.assert_array_equal(np.asarray(got), total)
    assert sorted(log) == sorted(t for n in X for t in range(int(n)))


@WAYS
def test_nested(way):
    """A scan in a cond in a while: each knows who comes this way."""
    log = Log()

    def f(n):
        def step(c):
            i, total = c
            steps = lambda v: lax.scan(  # noqa: E731
                lambda s, k: (s + log.seen(i * 100 + k * 10 + n), None), v, np.arange(2, dtype="f")
            )[0]
            return i + 1, lax.cond(i > 0.5, steps, lambda v: v - lax.psum(1.0, "i"), total)

        return lax.while_loop(lambda c: c[0] < n, step, (np.float32(0), np.float32(0)))[1]

    got = way(plait.vmap(f, axis_name="i"))(X)
    seen = {n: [i * 100 + k * 10 + n for i in range(1, int(n)) for k in (0, 1)] for n in X}
    np.testing.assert_array_equal(np.asarray(got), [sum(seen[n]) - 4 for n in X])
    assert sorted(log) == sorted(v for vs in seen.values() for v in vs)


@WAYS
def test_an_unmapped_operand_is_seen_once_for_each_who_comes(way):
    log = Log()
    act = lambda x, y: lax.cond(x > 2.5, lambda: log.seen(y), lambda: y)  # noqa: E731
    got = way(plait.vmap(act, (0, None)))(X, np.float32(7))
    np.testing.assert_array_equal(np.asarray(got), [7] * 4)
    assert log == [7, 7]


@WAYS
def test_maps_of_maps(way):
    log = Log()
    pairs = np.float32([[1, 6, 3], [4, 2, 5]])
    act = lambda x: lax.cond(x > 2.5, lambda v: log.seen(v) + lax.psum(v, "j"), lambda v: v, x)  # noqa: E731
    got = way(plait.vmap(plait.vmap(act, axis_name="j"), axis_name="i"))(pairs)
    want = np.where(pairs > 2.5, pairs + pairs.sum(1, keepdims=True), pairs)
    np.testing.assert_array_equal(np.asarray(got), want)
    assert sorted(log) == [3, 4, 5, 6]


@WAYS
def test_a_custom_rule_that_acts_is_for_those_who_come(way):
    log = Log()

    @plait.custom_vmap
    def f(x):
        return log.seen(x) * 2

    @f.def_vmap
    def _(size, mapped, xs):
        raise AssertionError("it acts for each element, and the rule is for all at once")

    got = way(plait.vmap(lambda x: lax.cond(x > 2.5, f, lambda v: v, x)))(X)
    np.testing.assert_array_equal(np.asarray(got), [2, 6, 10, 1])
    assert log == [3, 5]


NAMED_TWICE = {
    "psum": lambda x: lax.psum(x, ("i", "i")),
    "pmean": lambda x: lax.pmean(x, ("i", "i")),
    "pmax": lambda x: lax.pmax(x, ["i", "i"]),
    "all_gather": lambda x: lax.all_gather(x, ("i", "i")),
    "psum_scatter": lambda x: lax.psum_scatter(x, ("i", "i")),
    "ppermute": lambda x: lax.ppermute(x, ("i", "i"), [(0, 1)]),
    "all_to_all": lambda x: lax.all_to_all(x, ("i", "i"), 0, 0),
    "among others": lambda x: plait.vmap(lambda y: lax.pmin(y, ("i", "j", "i")), axis_name="j")(x),
}


@pytest.mark.parametrize("name", NAMED_TWICE)
def test_an_axis_that_is_named_twice_is_refused(name):
    with pytest.raises(AxisError, match="axis 'i' is named twice") as e:
        plait.vmap(NAMED_TWICE[name], axis_name="i")(np.ones((2, 4), np.float32))
    assert "name each axis once" in str(e.value) and __file__ in str(e.value)


# ---- pure callbacks ----------------------------------------------------------------------------

SHAPES = {
    "sequential": ((), ()),
    "sequential_unrolled": ((), ()),
    "broadcast_all": ((4,), (4,)),
    "expand_dims": ((4,), (1,)),
    "legacy_vectorized": ((4,), ()),
}
"""vmap_method -> shapes in which a callback is given a mapped and an unmapped number."""


@WAYS
@pytest.mark.parametrize("method", [*SHAPES, "vectorized"])
def test_shapes_that_callbacks_are_given(way, method):
    how = {"vectorized": True} if method == "vectorized" else {"vmap_method": method}
    wanted = SHAPES.get(method, SHAPES["legacy_vectorized"])
    shapes = set()

    def host(x, y):
        shapes.add((x.shape, y.shape))
        return np.float32(x * 10 + y)

    f = lambda x, y: plait.pure_callback(host, SCALAR, x, y, **how)  # noqa: E731
    got = way(plait.vmap(f, in_axes=(0, None)))(X, np.float32(7))
    np.testing.assert_array_equal(got, X * 10 + 7)
    assert shapes == {wanted}
    shapes.clear()
    got = way(plait.vmap(f, in_axes=(None, 0)))(np.float32(7), X)
    np.testing.assert_array_equal(got, 70 + X)
    assert shapes == {wanted[::-1]}


@pytest.mark.parametrize("method", SHAPES)
def test_callbacks_mapped_twice(method):
    """Each way, under two maps over different operands."""
    f = lambda x, y: plait.pure_callback(  # noqa: E731
        lambda x, y: np.float32(np.asarray(x) * 10 + y), SCALAR, x, y, vmap_method=method
    )
    if method == "legacy_vectorized":  # the function must add the axes that operands lack
        f = lambda x, y: plait.pure_callback(  # noqa: E731
            lambda x, y: np.float32(np.reshape(x, (-1, 1)) * 10 + np.reshape(y, (1, -1))),
            SCALAR, x, y, vmap_method=method,
        )  # fmt: skip
    inner = plait.vmap(f, in_axes=(None, 0))
    got = plait.vmap(inner, in_axes=(0, None))(X, X[:3])
    np.testing.assert_array_equal(got, X[:, None] * 10 + X[:3])
