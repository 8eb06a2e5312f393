"""inspect_array_sharding under derivatives and maps.

Invariant: where a value must lie is said by a constraint on it.
"""

import numpy as np

import plait
from plait.debug import inspect_array_sharding
from plait_sharding import device_put, with_sharding_constraint

A = np.arange(64, dtype=np.float32).reshape(8, 8)


def test_derivatives_are_of_what_is_around_it(lies, close):
    seen = []

    def f(x):
        y = with_sharding_constraint(x * x, lies("y"))
        inspect_array_sharding(y, callback=seen.append)
        return y.sum()

    x = device_put(A, lies("x"))
    for g, want in (
        (plait.grad(f), 2 * A),
        (lambda x: plait.jvp(f, (x,), (x,))[1], 2 * (A * A).sum()),
    ):
        seen.clear()
        close(plait.jit(g)(x), want)
        assert set(seen) == {lies("y")}
        close(g(x), want)
    seen.clear()
    close(plait.jit(plait.grad(plait.checkpoint(f)))(x), 2 * A)
    assert lies("y") in seen


def test_of_the_array_of_all_elements(lies):
    seen = []

    def f(x):
        inspect_array_sharding(x, callback=seen.append)
        return x + 1

    plait.jit(plait.vmap(f))(device_put(A, lies("x")))
    plait.vmap(f)(device_put(A, lies("y")))
    assert seen == [lies("x"), lies("y")]
