"""`jax.test_util` compares derivatives over short steps, where none is given.

Invariant: the functions have a point without a derivative further away than that step, and nearer
than Plait's own step for numbers of 32 bits.
"""

import numpy as np
import pytest

NEAR = np.float32([0.004, -0.004, 0.003])


def kinked(jax):
    return lambda x: jax.numpy.abs(x) + 3 * x


def test_a_kink_nearby_is_not_stepped_over(load):
    jax, util = load("jax"), load("jax.test_util")
    f = kinked(jax)
    util.check_grads(f, (NEAR,), order=1)
    util.check_jvp(f, lambda xs, ts: jax.jvp(f, xs, ts), (NEAR,))
    util.check_vjp(f, lambda *xs: jax.vjp(f, *xs), (NEAR,))


def test_a_step_that_is_given_is_used(load):
    jax, util = load("jax"), load("jax.test_util")
    f = kinked(jax)
    with pytest.raises(AssertionError):
        util.check_grads(f, (NEAR,), order=1, eps=1e-2)
    with pytest.raises(AssertionError):
        util.check_jvp(f, lambda xs, ts: jax.jvp(f, xs, ts), (NEAR,), eps=1e-2)
    with pytest.raises(AssertionError):
        util.check_vjp(f, lambda *xs: jax.vjp(f, *xs), (NEAR,), eps=1e-2)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_wrong_derivatives_are_found(load, dtype):
    jax, util = load("jax"), load("jax.test_util")

    @jax.custom_jvp
    def square(x):
        return x * x

    square.defjvp(lambda xs, ts: (xs[0] * xs[0], xs[0] * ts[0]))  # half of it
    x = np.array([0.5, -1.5, 2.0], dtype)
    with pytest.raises(AssertionError):
        util.check_grads(square, (x,), order=1)
    util.check_grads(lambda x: x * x, (x,), order=1)
