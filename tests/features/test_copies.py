"""Copies have memory of their own under every transformation that runs at once.

Invariant: a result that is a copy outlives its donated original.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp

COPIES = {
    "array": pnp.array,
    "array with copy": lambda x: pnp.array(x, copy=True),
    "asarray": lambda x: pnp.asarray(x, copy=True),
    "copy": pnp.copy,
    "method": lambda x: x.copy(),
    "astype": lambda x: x.astype(x.dtype, copy=True),
}
UNDER = {
    "jvp": lambda f, x: plait.jvp(f, (x,), (x,))[0],
    "vjp": lambda f, x: plait.vjp(f, x)[0],
    "linearize": lambda f, x: plait.linearize(f, x)[0],
    "vmap": lambda f, x: plait.vmap(f)(x),
    "vmap of jvp": lambda f, x: plait.vmap(lambda v: plait.jvp(f, (v,), (v,))[0])(x),
    "jit": lambda f, x: plait.jit(f)(x),
    "has_aux": lambda f, x: plait.grad(lambda v: (v.sum(), f(v)), has_aux=True)(x)[1],
    "closed over": lambda f, x: plait.jvp(lambda v: (v, f(x))[1], (x,), (x,))[0],
}


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("under", UNDER)
def test_a_copy_outlives_its_donated_original(copy, under):
    x = pnp.asarray(np.float32([1, 2, 3]))
    y = UNDER[under](COPIES[copy], x)
    plait.jit(lambda v: v * 2, donate_argnums=0)(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(np.asarray(y), [1, 2, 3])


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_is_another_value_with_the_same_derivative(copy):
    seen = []

    def f(x):
        y = COPIES[copy](x)
        seen.append(y is x)
        return y * y

    x = pnp.asarray(np.float32([1, 2, 3]))
    np.testing.assert_array_equal(plait.jvp(f, (x,), (x,))[1], 2 * np.square(x))
    np.testing.assert_array_equal(plait.grad(lambda v: f(v).sum())(x), 2 * np.asarray(x))
    np.testing.assert_array_equal(plait.vmap(f)(x), np.square(x))
    assert not any(seen)
