"""Parts of trees of which it matters whether they are one object: one value for functions that are
staged, and a trace for each pattern.

Invariant: what a function sees is compared by identity, what it returns with numpy.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait.ext.tree import register, tell_parts_apart


class Ruled:
    """Numbers beside a ruler, which several may share."""

    def __init__(self, numbers, ruler):
        self.numbers, self.ruler = numbers, ruler


register(Ruled, lambda r: ((r.numbers, r.ruler), None), lambda _, kids: Ruled(*kids))
tell_parts_apart(Ruled, lambda static, count: [1])

X = np.arange(3, dtype="float32")


def ruled(ruler, k=1.0):
    return Ruled(pnp.asarray(k * X), ruler)


@pytest.fixture
def rulers():
    return pnp.asarray(X + 1), pnp.asarray(X + 1)


@pytest.fixture
def seen():
    return []


def one_or_two(seen):
    def f(a, b):
        seen.append(a.ruler is b.ruler)
        return a.numbers * a.ruler + b.numbers * b.ruler

    return f


def test_one_value_for_one_object_and_a_trace_for_each_pattern(rulers, seen):
    one, other = rulers
    f = plait.jit(one_or_two(seen))
    for first, second in ((one, one), (one, other), (other, other), (one, one), (other, one)):
        got = f(ruled(first), ruled(second, 2.0))
        np.testing.assert_allclose(got, 3 * X * (X + 1))
    assert seen == [True, False]


def test_two_arrays_are_not_taken_for_one(rulers):
    f = plait.jit(lambda a, b: (a.ruler, b.ruler))
    one, _ = rulers
    f(ruled(one), ruled(one))
    a, b = f(ruled(one), ruled(2 * one))
    np.testing.assert_allclose(a, X + 1)
    np.testing.assert_allclose(b, 2 * X + 2)


def test_calls_that_come_again_are_looked_up(rulers, seen):
    one, other = rulers
    f = plait.jit(one_or_two(seen))
    for _ in range(4):
        f(ruled(one), ruled(one))
        f(ruled(one), ruled(other))
    with plait.events.counting() as n:
        for _ in range(4):
            f(ruled(one), ruled(one))
            f(ruled(one), ruled(other))
    assert not n["trace"] and not n["compile"]
    assert len(seen) == 2


def test_numbers_that_are_one_object_are_nothing(seen):
    """Only parts that the class tells of."""
    f = plait.jit(lambda a, b: seen.append(a.numbers is b.numbers) or a.numbers + b.numbers)
    x = pnp.asarray(X)
    np.testing.assert_allclose(f(Ruled(x, x), Ruled(x, 2 * x)), 2 * X)
    assert seen == [False]


@pytest.mark.parametrize("around", [lambda f: f, plait.jit], ids=["as it is", "in jit"])
def test_results_are_one_object_where_the_function_says_so(around, rulers):
    one, _ = rulers
    split = plait.jit(lambda r: (Ruled(r.numbers, r.ruler * 2), r))

    def f(r):
        a, _ = split(r)
        return a, Ruled(a.numbers + 1, a.ruler), Ruled(a.numbers, a.ruler + 0)

    a, b, c = around(plait.jit(f))(ruled(one))
    assert a.ruler is b.ruler and c.ruler is not a.ruler
    np.testing.assert_allclose(b.ruler, 2 * X + 2)
    np.testing.assert_allclose(b.numbers, X + 1)


def test_branches(rulers, seen):
    one, other = rulers
    f = one_or_two(seen)
    g = plait.jit(lambda p, a, b: lax.cond(p, f, lambda a, b: a.numbers, a, b))
    np.testing.assert_allclose(g(True, ruled(one), ruled(one)), 2 * X * (X + 1))
    np.testing.assert_allclose(g(True, ruled(one), ruled(other)), 2 * X * (X + 1))
    assert seen == [True, False]


def loops():
    def scanned(step, carry):
        return lax.scan(lambda c, _: (step(c), None), carry, None, length=3)[0]

    def turned(step, carry):
        return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, step(s[1])), (0, carry))[1]

    return {"scan": scanned, "while": turned}


@pytest.mark.parametrize("loop", loops())
def test_loops_whose_carry_stays_so(loop, rulers, seen):
    one, other = rulers

    def step(carry):
        a, b = carry
        seen.append(a.ruler is b.ruler)
        return Ruled(a.numbers + b.ruler, a.ruler), Ruled(b.numbers + a.ruler, b.ruler)

    run = plait.jit(lambda c: loops()[loop](step, c))
    a, b = run((ruled(one), ruled(one)))
    assert all(seen) and a.ruler is b.ruler
    np.testing.assert_allclose(a.numbers, X + 3 * (X + 1))
    a, b = run((ruled(one), ruled(2 * other)))
    assert not seen[-1] and a.ruler is not b.ruler
    np.testing.assert_allclose(a.numbers, X + 6 * (X + 1))


@pytest.mark.parametrize("loop", loops())
@pytest.mark.parametrize("jit", [False, True])
def test_loops_whose_carry_does_not(loop, jit, rulers):
    """One before the first turn, two after it."""
    one, _ = rulers

    def step(carry):
        a, b = carry
        return Ruled(a.numbers + b.ruler, a.ruler), Ruled(b.numbers + a.ruler, b.ruler * 2)

    run = lambda c: loops()[loop](step, c)
    a, b = (plait.jit(run) if jit else run)((ruled(one), ruled(one)))
    np.testing.assert_allclose(a.numbers, X + 7 * (X + 1))
    np.testing.assert_allclose(b.numbers, X + 3 * (X + 1))
    np.testing.assert_allclose(b.ruler, 8 * (X + 1))


def test_a_loop_that_swaps_them(rulers):
    one, other = rulers
    step = lambda c, _: ((c[1], c[0]), None)
    a, b = lax.scan(step, (ruled(one), ruled(3 * other)), None, length=3)[0]
    np.testing.assert_allclose(a.ruler, 3 * X + 3)
    np.testing.assert_allclose(b.ruler, X + 1)


def test_what_others_may_have_is_not_donated(rulers):
    one, _ = rulers
    mine, theirs = ruled(one), ruled(one)
    f = plait.jit(lambda r: Ruled(r.numbers + 1, r.ruler), donate_argnums=0)
    np.testing.assert_allclose(f(mine).numbers, X + 1)
    assert mine.numbers.is_deleted() and not one.is_deleted()
    np.testing.assert_allclose(f(theirs).ruler, X + 1)


def test_why_it_is_traced_again(rulers, caplog):
    one, other = rulers
    f = plait.jit(lambda a, b: a.numbers + b.numbers)
    with plait.config(explain_cache_misses=True):
        f(ruled(one), ruled(one))
        f(ruled(one), ruled(other))
    assert "one and the same array" in caplog.records[-1].getMessage()
