"""Branches: which one is taken, what type comes out, and what the others may not do."""

import numpy as np
import pytest

import plait
from plait import lax

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def i32(x):
    return pnp.asarray(np.asarray(x, np.int32))


WAYS = {
    "eager": lambda f, *xs: f(*xs),
    "jit": lambda f, *xs: plait.jit(lambda *a: f(*a))(*xs),
    "vmap": lambda f, *xs: plait.vmap(f)(*[pnp.asarray(x)[None] for x in xs])[0],
    "scan": lambda f, *xs: lax.scan(
        lambda c, _: (c, f(*xs)), f32(0), None, length=1
    )[1][0],
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_promoted_results(way):
    """Python numbers meet in one dtype; none is cut down to that of another."""
    run = WAYS[way]
    out = run(lambda p: lax.cond(p, lambda: 0.5, lambda: 1), pnp.asarray(True))
    assert out.item() == 0.5 and out.dtype == np.float32
    out = run(lambda p: lax.cond(p, lambda: 1, lambda: 0.5), pnp.asarray(False))
    assert out.item() == 0.5
    out = run(lambda p, x: lax.cond(p, lambda x: 3, lambda x: x, x), pnp.asarray(True), f32(1))
    assert out.item() == 3 and out.dtype == np.float32
    three = [lambda: 1, lambda: 2.5, lambda: 3]
    got = [run(lambda i: lax.switch(i, three), i32(i)).item() for i in range(3)]
    assert got == [1, 2.5, 3]


def test_derivative_of_promoted_branches():
    """A branch that returns a Python number has no derivative, the other keeps its own."""
    f = lambda x: lax.cond(x > 1, lambda x: 1, lambda x: x * x, x)  # noqa: E731
    assert [plait.grad(f)(f32(v)).item() for v in (0.5, 2.0)] == [1, 0]
    np.testing.assert_array_equal(plait.vmap(plait.grad(f))(f32([0.5, 2])), [1, 0])


@pytest.mark.parametrize("way", WAYS)
def test_index_out_of_range(way):
    """`switch` takes the first branch below the range and the last above, mapped or not."""
    branches = [lambda x: x * 0.0, lambda x: x * 0.0 + 1, lambda x: x * 0.0 + 2]
    run = WAYS[way]
    got = [run(lambda i: lax.switch(i, branches, f32(5)), i32(i)).item() for i in (-1, 0, 1, 2, 5)]
    assert got == [0, 0, 1, 2, 2]
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    for i, want in ((low, 0), (high, 2), (2**32, 2), (-(2**32), 0), (2**32 - 1, 2)):
        index = pnp.asarray(np.int64(i))
        assert run(lambda i: lax.switch(i, branches, f32(5)), index).item() == want
    small = pnp.asarray(np.uint8(255))
    assert run(lambda i: lax.switch(i, branches, f32(5)), small).item() == 2


def test_mapped_index_out_of_range():
    """Each element of a mapped index is clamped by itself."""
    branches = [lambda x: x * 0.0, lambda x: x * 0.0 + 1, lambda x: x * 0.0 + 2]
    got = plait.vmap(lambda i: lax.switch(i, branches, f32(5)))(i32([-1, 5, 1]))
    np.testing.assert_array_equal(got, [0, 2, 1])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("pred", [0.5, -1, 2, 1e-30, np.nan, 2**31, np.uint8(4)], ids=str)
def test_numbers_are_true(way, pred):
    """A number is true if it is not zero: not if its integer part is, nor if it is one."""
    value = pnp.asarray(np.asarray(pred))
    got = WAYS[way](lambda p: lax.cond(p, lambda: 1.0, lambda: 0.0), value)
    assert got.item() == 1
    zero = pnp.asarray(np.zeros_like(np.asarray(pred)))
    assert WAYS[way](lambda p: lax.cond(p, lambda: 1.0, lambda: 0.0), zero).item() == 0


# ---- the branch that is not taken ------------------------------------------------------------


def log_or_double(x):
    return lax.cond(x > 0, lambda x: lax.log(x), lambda x: x * 2.0, x)


POINTS = [0.0, 1.0, -1.0]


def test_untaken_branch_and_derivatives():
    """An element that does not take a branch gets no nan from its derivative."""
    x = f32(POINTS)
    total = lambda x: plait.vmap(log_or_double)(x).sum()  # noqa: E731
    np.testing.assert_array_equal(plait.vmap(plait.grad(log_or_double))(x), [2, 1, 2])
    np.testing.assert_array_equal(plait.grad(total)(x), [2, 1, 2])
    np.testing.assert_array_equal(plait.jit(plait.grad(total))(x), [2, 1, 2])
    np.testing.assert_array_equal(plait.grad(plait.jit(total))(x), [2, 1, 2])
    np.testing.assert_array_equal(plait.grad(plait.checkpoint(total))(x), [2, 1, 2])
    np.testing.assert_array_equal(plait.vmap(plait.grad(plait.grad(log_or_double)))(x), [0, -1, 0])
    np.testing.assert_array_equal(plait.grad(lambda x: plait.grad(total)(x).sum())(x), [0, -1, 0])
    second = plait.grad(lambda x: plait.vmap(plait.grad(log_or_double))(x).sum())
    np.testing.assert_array_equal(second(x), [0, -1, 0])
    primal, dot = plait.jvp(plait.vmap(log_or_double), (x,), (pnp.ones(3),))
    np.testing.assert_array_equal(primal, [0, 0, -2])
    np.testing.assert_array_equal(dot, [2, 1, 2])


def test_untaken_branch_in_a_loop():
    """The same for branches in loops, and for operands that are closed over."""

    def f(x):
        step = lambda c, r: (
            log_or_double(c) + r * 0,
            lax.cond(x > 0, lambda: lax.log(x), lambda: x),
        )  # noqa: E731
        c, ys = lax.scan(step, x, f32([1, 2]))
        return c + ys.sum()

    def want(v):
        inner = np.log(v) if v > 0 else 2 * v
        slope = 1 / v if v > 0 else 2.0
        slope *= 1 / inner if inner > 0 else 2.0
        return slope + 2 * (1 / v if v > 0 else 1.0)

    points = [0.5, 3.0, -1.0]
    got = plait.grad(lambda x: plait.vmap(f)(x).sum())(f32(points))
    np.testing.assert_allclose(got, [want(v) for v in points], rtol=1e-5)
    np.testing.assert_allclose(plait.vmap(plait.grad(f))(f32(points)), got, rtol=1e-5)


def test_untaken_branch_of_constants():
    """A branch whose operands are all shared by the mapped elements."""
    f = lambda p, x: lax.cond(p, lambda x: lax.log(x), lambda x: x * 3.0, x)  # noqa: E731
    p = pnp.asarray(np.array([False, False]))
    g = plait.grad(lambda x: plait.vmap(f, in_axes=(0, None))(p, x).sum())(f32(0))
    assert g.item() == 6
    g = plait.grad(lambda x: plait.vmap(lambda p: f(p, x))(p).sum())(f32(0))
    assert g.item() == 6


def test_second_order_of_mapped_branches():
    """Second derivatives of both branches in every order of mapping, against their formulas."""

    def f(x):
        yes, no = lambda x: lax.sqrt(x) * lax.sin(x), lambda x: lax.exp(x) * x * x  # noqa: E731
        return lax.cond(x > 0, yes, no, x)

    def d2(x):
        if x > 0:
            return -(x**-1.5) / 4 * np.sin(x) + np.cos(x) / np.sqrt(x) - np.sqrt(x) * np.sin(x)
        return np.exp(x) * (x * x + 4 * x + 2)

    points = np.array([2.0, -1.0])
    want, x = [d2(v) for v in points], pnp.asarray(points)
    twice = plait.grad(plait.grad(f))
    np.testing.assert_allclose(plait.vmap(twice)(x), want, rtol=1e-9)
    np.testing.assert_allclose(plait.vmap(plait.jit(twice))(x), want, rtol=1e-9)
    over = plait.grad(lambda v: plait.vmap(plait.grad(f))(v).sum())
    np.testing.assert_allclose(over(x), want, rtol=1e-9)


def test_second_order_of_branches_in_a_loop():
    """A loop of branches, mapped: second derivatives against those of single elements."""

    def f(x):
        turn = lambda c, i: (lax.cond(c > i, lambda c: lax.sin(c) * x, lambda c: c * c + x, c), c)  # noqa: E731
        return lax.scan(turn, x, pnp.asarray(np.array([0.1, 0.5, 2.0])))[0]

    def np_f(x):
        c = x
        for i in (0.1, 0.5, 2.0):
            c = np.sin(c) * x if c > i else c * c + x
        return c

    points, h = np.array([0.3, 0.7]), 1e-4
    want = [(np_f(v + h) - 2 * np_f(v) + np_f(v - h)) / h**2 for v in points]
    got = plait.vmap(plait.grad(plait.grad(f)))(pnp.asarray(points))
    np.testing.assert_allclose(got, want, rtol=1e-5)


# ---- what branches may return ----------------------------------------------------------------


def test_branches_without_operands_or_results():
    """Constants, Python numbers and nothing at all, mapped by the index."""
    i = i32([0, 1, 0])
    got = plait.vmap(lambda i: lax.switch(i, [lambda: 1.0, lambda: f32(2)]))(i)
    np.testing.assert_array_equal(got, [1, 2, 1])
    got = plait.vmap(lambda i: lax.switch(i, [lambda: 1.0, lambda: 2.0]))(i)
    np.testing.assert_array_equal(got, [1, 2, 1])
    nothing = plait.vmap(lambda i: lax.cond(i > 0, lambda: None, lambda: None))(i)
    assert nothing is None


# ---- what is returned as it was given -----------------------------------------------------------


def _chosen(p, x, y, z):
    """Both branches pass `y` on, and one of them `z`."""
    return lax.cond(p, lambda x, y, z: (x * 2, y, z, y), lambda x, y, z: (x + 1, y, -z, y), x, y, z)


@pytest.mark.parametrize("staged", [lambda f: f, plait.jit])
def test_what_every_branch_passes_on_is_no_choice(staged):
    ps, x, z = np.array([True, False, True]), np.float32(3), np.float32(5)
    y = np.float32([1, 2])
    mapped = plait.vmap(staged(_chosen), in_axes=(0, None, None, None), out_axes=(0, None, 0, None))
    got = mapped(ps, x, y, z)
    for a, want in zip(got, (np.where(ps, x * 2, x + 1), y, np.where(ps, z, -z), y), strict=True):
        np.testing.assert_array_equal(a, want)
    with pytest.raises(plait.errors.AxisError, match=r"result\[2\]"):
        plait.vmap(staged(_chosen), in_axes=(0, None, None, None), out_axes=(0, None, None, None))(
            ps, x, y, z
        )
    for p in ps:
        rows = plait.jacrev(lambda y: staged(_chosen)(p, x, y, z)[1])(y)  # noqa: B023
        np.testing.assert_array_equal(rows, np.eye(2))


def test_python_numbers_that_are_passed_on_are_arrays():
    for p in (True, False, np.array(True)):
        for out in lax.cond(p, lambda a, b: (b, a), lambda a, b: (b, a), 1, 2.5):
            assert isinstance(out, plait.Array)
        assert [float(v) for v in lax.switch(1, [lambda a: (a, 1)] * 3, 4)] == [4, 1]
    carry = lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, 7))
    assert all(isinstance(v, plait.Array) for v in carry) and [int(v) for v in carry] == [3, 7]


@pytest.mark.parametrize("staged", [lambda f: f, plait.jit])
@pytest.mark.parametrize("bound", [{}, {"max_steps": 6}])
def test_what_a_loop_does_not_change_is_none_of_its_carry(staged, bound):
    def loop(n, m, x):
        go = lambda c: (c["i"] < n) & (c["m"].sum() < 99)  # noqa: E731
        turn = lambda c: {"i": c["i"] + 1, "m": c["m"], "x": c["m"] @ c["x"]}  # noqa: E731
        out = lax.while_loop(go, turn, {"i": 0, "m": m, "x": x}, **bound)
        return out["m"], out["x"], out["i"]

    m, x, ns = np.float32([[1, 2], [0, 1]]), np.float32([1, 1]), np.arange(4)
    mapped = plait.vmap(staged(loop), in_axes=(0, None, None), out_axes=(None, 0, 0))
    same, ends, turns = mapped(ns, m, x)
    np.testing.assert_array_equal(same, m)
    np.testing.assert_array_equal(ends, [np.linalg.matrix_power(m, n) @ x for n in ns])
    np.testing.assert_array_equal(turns, ns)
    push = plait.jvp(lambda m: staged(loop)(3, m, x)[1].sum(), (m,), (np.ones((2, 2), np.float32),))
    h = 1e-3
    f = lambda t: (np.linalg.matrix_power(m.astype(float) + t, 3) @ x).sum()  # noqa: E731
    np.testing.assert_allclose(push[1], (f(h) - f(-h)) / (2 * h), rtol=1e-4)
    if bound:
        slope = plait.grad(lambda m: staged(loop)(3, m, x)[1].sum())(m)
        np.testing.assert_allclose(slope.sum(), push[1], rtol=1e-5)


def test_a_loop_that_changes_nothing_ends_at_once_or_never():
    assert float(lax.while_loop(lambda x: x < 3, lambda x: x, 5.0)) == 5.0
    got = plait.vmap(lambda x: lax.while_loop(lambda v: v < 3, lambda v: v, x))(np.float32([5, 7]))
    np.testing.assert_array_equal(got, [5, 7])
