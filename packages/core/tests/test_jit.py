"""jit: arguments of every role, and versions of one function.

Invariant: results are compared with those of the same Python on numpy's arrays.
"""

import functools

import numpy as np
import pytest

import plait
from plait.ext.errors import (
    TypeRule,
)

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


ones = np.ones(4, np.float32)


# ---- donation --------------------------------------------------------------------------------


def test_donated_twice():
    """One array for two donated arguments, or for a donated and another one."""
    x = f32(ones)
    try:
        out, _ = plait.jit(lambda a, b: (a + b, a - b), donate_argnums=(0, 1))(x, x)
    except plait.PlaitError:
        pass
    else:
        np.testing.assert_array_equal(out, 2 * ones)
    y = f32(ones)
    try:
        out = plait.jit(lambda a, b: a + b, donate_argnums=0)(y, y)
    except plait.PlaitError:
        pass
    else:
        np.testing.assert_array_equal(out, 2 * ones)


def test_donating_in_a_loop():
    """State that is passed through a donating step."""
    step = plait.jit(lambda s, k: (s[0] + k, s[1] * 2), donate_argnums=0)
    state = f32(0), f32(1)
    for i in range(5):
        state = step(state, f32(i))
    assert [s.item() for s in state] == [10, 32]


# ---- static arguments ------------------------------------------------------------------------


def test_partial_with_static_arguments():
    """jit of functools.partial and of other callables, with static arguments."""
    f = functools.partial(lambda n, x: x * n)
    assert plait.jit(f, static_argnums=0)(2, f32(1)).item() == 2
    g = functools.partial(lambda k, n, x: x * n + k, 10)
    assert plait.jit(g, static_argnums=0)(2, f32(1)).item() == 12
    assert plait.jit(functools.partial(lambda x, n: x * n, n=3))(f32(1)).item() == 3

    class Scale:
        def __call__(self, x, n):
            return x * n if isinstance(n, int) else 0

    assert plait.jit(Scale(), static_argnums=1)(f32(1), 3).item() == 3
    assert plait.jit(Scale(), static_argnames="n")(f32(1), n=3).item() == 3


def test_static_from_the_end():
    """Negative positions count from the end of the signature."""
    f = lambda x, n: x * (2 if n else 1)  # noqa: E731
    assert plait.jit(f, static_argnums=-1)(f32(1), True).item() == 2
    assert plait.jit(f, static_argnums=(-1,))(f32(1), False).item() == 1
    assert plait.jit(lambda n, x: x * n, static_argnums=-2)(3, f32(2)).item() == 6


def test_static_name_given_by_position():
    """A name is a position too, and a position a name."""
    f = lambda x, n: x * n if isinstance(n, int) else "traced"  # noqa: E731
    assert plait.jit(f, static_argnames="n")(f32(1), 3).item() == 3
    assert plait.jit(f, static_argnames="n")(f32(1), n=3).item() == 3
    assert plait.jit(f, static_argnums=1)(f32(1), n=3).item() == 3
    assert plait.jit(f, static_argnums=1)(f32(1), 3).item() == 3
    mixed = plait.jit(lambda a, b, c: a * b + c, static_argnames=("b",), static_argnums=(2,))
    assert mixed(f32(2), 3, 4).item() == mixed(f32(2), b=3, c=4).item() == 10


def test_static_that_cannot_be():
    """A list can not be hashed, an argument can not be out of range."""
    with pytest.raises(TypeRule, match="hashable"):
        plait.jit(lambda n, x: x * n[0], static_argnums=0)([1], f32(1))
    with pytest.raises(TypeRule, match="out of range"):
        plait.jit(lambda x: x, static_argnums=3)
    with pytest.raises(TypeRule, match="no argument"):
        plait.jit(lambda x: x, static_argnames="y")


def test_method():
    """A method decorated with jit says that `self` is no array."""

    class Model:
        k = 2.0

        @plait.jit
        def f(self, x):
            return x * self.k

        def g(self, x):
            return x * self.k

    model = Model()
    with pytest.raises(TypeRule, match="Model"):
        model.f(f32(1))
    assert plait.jit(model.g)(f32(1)).item() == 2
