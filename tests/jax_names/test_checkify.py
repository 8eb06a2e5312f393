"""`jax.experimental.checkify`: checks without a `checkify` that looks for them have no effect.

What is expected was written down from jax 0.10.2.
"""

import numpy as np
import pytest

X = np.ones(2, np.float32)


@pytest.fixture
def checkify(jax, load):
    return load("jax.experimental.checkify")


def test_a_check_of_another_kind_is_dropped(jax, checkify):
    def f(x):
        checkify.check(x.sum() < 0, "must be negative")
        return x / 0

    for errors, word in [
        (checkify.user_checks, "must be negative"),
        (checkify.div_checks, "zero"),
        (checkify.nan_checks, None),
        (set(), None),
    ]:
        for run in (checkify.checkify(f, errors), jax.jit(checkify.checkify(f, errors))):
            error, y = run(X)
            np.testing.assert_array_equal(y, np.full(2, np.inf, np.float32))
            assert error.get() is None if word is None else word in error.get()


def test_a_debug_check_acts_under_checkify_only(jax, checkify):
    def f(x):
        checkify.debug_check(x.sum() < 0, "must be negative")
        return x * 2

    rows = jax.vmap(lambda x: f(x).sum())
    slope = jax.grad(lambda x: f(x).sum())
    for run in (f, jax.jit(f), slope, jax.jit(slope)):
        np.testing.assert_array_equal(run(X), [2, 2])
    for run in (rows, jax.jit(rows)):
        np.testing.assert_array_equal(run(np.ones((3, 2), np.float32)), [4, 4, 4])
    for run in (f, jax.jit(f), slope):
        assert "must be negative" in checkify.checkify(run)(X)[0].get()
    assert "must be negative" in jax.jit(checkify.checkify(f))(X)[0].get()
