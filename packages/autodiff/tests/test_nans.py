"""Nans in derivatives are reported with the line that is differentiated."""

import numpy as np
import pytest

import plait
from plait import numpy as jnp


def norm(x):
    total = (x * x).sum()
    return jnp.sqrt(total)


def guarded(x):
    return jnp.where(x > 0, jnp.log(x), 0.0)


CASES = {
    "reverse": lambda: plait.grad(norm)(np.zeros(3, np.float32)),
    "reverse, compiled": lambda: plait.jit(plait.grad(norm))(np.zeros(3, np.float32)),
    "forward": lambda: plait.jvp(norm, (np.zeros(3, np.float32),), (np.ones(3, np.float32),)),
    "a branch that is not chosen": lambda: plait.grad(guarded)(0.0),
    "in a scan": lambda: plait.jit(
        plait.grad(lambda x: plait.lax.scan(lambda c, r: (c + norm(r), None), 0.0, x)[0])
    )(np.zeros((2, 3), np.float32)),
}


def bounded(x):
    body = lambda s: (s[0] + 1, s[1] * norm(s[1]))  # noqa: E731
    return plait.lax.while_loop(lambda s: s[0] < 1, body, (0, x), max_steps=2)[1].sum()


ZEROS = np.zeros(3, np.float32)
WAYS = {  # each takes the derivative of norm, which is nan where it squares
    "checkpoint": lambda: plait.grad(plait.checkpoint(norm))(ZEROS),
    "checkpoint, compiled": lambda: plait.jit(plait.grad(plait.checkpoint(norm)))(ZEROS),
    "of a jitted function": lambda: plait.grad(plait.jit(norm))(ZEROS),
    "a branch": lambda: plait.grad(lambda x: plait.lax.cond(x[0] < 1, norm, lambda x: x.sum(), x))(
        ZEROS
    ),
    "a jitted pullback": lambda: plait.jit(plait.vjp(norm, ZEROS)[1])(np.float32(1)),
    "a bounded loop": lambda: plait.grad(bounded)(ZEROS),
    "second order": lambda: plait.hessian(norm)(ZEROS),
}


@pytest.mark.parametrize("name", WAYS)
def test_the_line_in_other_transformations(name):
    line = norm.__code__.co_firstlineno
    with pytest.raises(FloatingPointError, match="gave nan") as error:
        with plait.debug.nans():
            WAYS[name]()
    at = 2 if name in ("a bounded loop", "second order") else 1  # 0 * inf, of the root
    assert f"test_nans.py:{line + at}" in str(error.value)


def test_the_line_of_a_rule():
    """What a user's rule computes has lines of its own."""
    f = plait.custom_vjp(norm)

    def backward(x, ct):
        return (ct * x / x,)

    f.defvjp(lambda x: (norm(x), x), backward)
    line = backward.__code__.co_firstlineno + 1
    for g in (f, plait.checkpoint(f), lambda x: plait.jit(f)(x)):
        for h in (plait.grad(g), plait.jit(plait.grad(g))):
            with pytest.raises(FloatingPointError, match="core.div gave nan") as error:
                with plait.debug.nans():
                    h(ZEROS)
            assert f"test_nans.py:{line}" in str(error.value)


@pytest.mark.parametrize("name", CASES)
def test_the_line_of_the_operation(name):
    of = guarded if "branch" in name else norm
    line = of.__code__.co_firstlineno + (2 if name == "forward" else 1)
    with pytest.raises(FloatingPointError, match="gave nan") as error:
        with plait.debug.nans():
            CASES[name]()
    assert f"test_nans.py:{line}" in str(error.value)


def test_what_is_fine_stays_as_it_is():
    x = np.float32([3.0, 4.0])
    with plait.debug.nans():
        inside = plait.grad(norm)(x), plait.jit(plait.hessian(norm))(x)
    for a, b in zip(inside, (plait.grad(norm)(x), plait.hessian(norm)(x)), strict=True):
        np.testing.assert_array_equal(a, b)
