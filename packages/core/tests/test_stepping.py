"""disable_jit: functions, branches and loops in Python, where values can be looked at."""

import numpy as np
import pytest

import plait
from plait import lax
from plait._core.array import Array

X = np.arange(3, dtype=np.float32)


def test_functions_see_arrays_each_time():
    seen = []
    f = plait.jit(lambda x: (seen.append(type(x)), x * 2)[1])
    f(X)
    assert not issubclass(seen.pop(), Array)
    with plait.disable_jit():
        for _ in range(2):
            np.testing.assert_array_equal(f(plait.numpy.asarray(X)), X * 2)
        assert seen == [Array] * 2
        with plait.disable_jit(False):
            f(X)
        assert len(seen) <= 3
    known = len(seen)
    f(plait.numpy.asarray(X)), f(X)
    assert len(seen) <= known + 1  # compiled again, once


def test_functions_of_every_kind():
    f = plait.jit(lambda x, n, *, k: x * n + k, static_argnums=1, donate_argnames="k")
    with plait.disable_jit():
        k = plait.numpy.asarray(X)
        np.testing.assert_array_equal(f(X, 3, k=k), X * 4)
        np.testing.assert_array_equal(f(X, 3, k=k), X * 4)  # nothing is donated
        nested = plait.jit(lambda x: plait.jit(lambda y: y + 1)(x) * 2)
        np.testing.assert_array_equal(nested(X), (X + 1) * 2)


def test_loops_and_branches_see_values():
    seen = []

    def body(i, c):
        seen.append((int(i), float(c)))
        return c + i

    with plait.disable_jit():
        assert float(lax.fori_loop(0, 3, body, 0.0)) == 3
        assert seen == [(0, 0.0), (1, 0.0), (2, 1.0)]
        assert float(lax.while_loop(lambda c: c < 9, lambda c: c * 2, 1.0)) == 16
        assert float(lax.while_loop(lambda c: c < 9, lambda c: c * 2, 1.0, max_steps=2)) == 4
        got = lax.switch(7, [lambda v: v, lambda v: seen.append(float(v)) or v * 10], 2.0)
        assert float(got) == 20 and seen[-1] == 2.0
        c, ys = lax.scan(lambda c, r: (c + r, {"c": c}), 0.0, X, reverse=True)
        assert float(c) == 3
        np.testing.assert_array_equal(ys["c"], [3, 2, 0])
        _, ys = lax.scan(lambda c, r: (c, r), 0.0, X[:0])
        assert ys.shape == (0,)
        np.testing.assert_array_equal(lax.map(lambda r: r * r, X), X * X)


def test_an_error_stays_one():
    with plait.disable_jit(), pytest.raises(TypeError, match="not a function"):
        lax.cond(True, 1, 2)


LOOPS = {
    "while_loop": lambda body, v: lax.while_loop(lambda c: c[0] < 4, body, (v, v)),
    "while_loop with max_steps": lambda body, v: lax.while_loop(
        lambda c: c[0] < 9, body, (v, v), max_steps=4
    ),
    "fori_loop": lambda body, v: lax.fori_loop(0, 3, lambda i, c: body(c), (v, v)),
    "fori_loop of arrays": lambda body, v: lax.fori_loop(
        np.int32(0), plait.numpy.asarray(3), lambda i, c: body(c), (v, v)
    ),
    "scan": lambda body, v: lax.scan(lambda c, _: (body(c), None), (v, v), None, length=3)[0],
    "scan of rows": lambda body, v: lax.scan(
        lambda c, x: (body((c[0], c[1] + x)), None), (v, v), np.ones(3)
    )[0],
    "cond": lambda body, v: lax.cond(True, body, lambda c: c, (v, v)),
    "switch": lambda body, v: lax.switch(1, [lambda c: c, body], (v, v)),
    "jit": lambda body, v: plait.jit(body)((v, v)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_steps_that_write_into_what_they_are_given(name):
    def body(c):
        x, y = c
        x += 1  # a new array, where values are traced or are arrays; numpy's would change, twice
        return x, y + x

    start = np.array(1.0)
    want = [float(x) for x in LOOPS[name](body, start)]
    with plait.disable_jit():
        assert [float(x) for x in LOOPS[name](body, start)] == want
    assert start == 1.0
