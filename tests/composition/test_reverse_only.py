"""Functions of which only the pullback is known, under forward and mixed modes.

Where the pullback is linear in cotangents the derivative along a direction is its transpose; where
it is not, asking for one is an error that says so, and what can be had without one (reverse over
reverse, maps of linearized functions) is right.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext.errors import MissingRule

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


@plait.custom_vjp
def cube(x):
    return x * x * x


cube.defvjp(lambda x: (x * x * x, x), lambda x, ct: (3 * x * x * ct,))


@plait.custom_vjp
def product(x, y):
    return x * x * y


product.defvjp(
    lambda x, y: (x * x * y, (x, y)),
    lambda r, ct: (2 * r[0] * r[1] * ct, r[0] * r[0] * ct),
)


def fourth(t):
    """t ** 4, through the pullback."""
    return product(t, t * t)


def slope(x):
    return plait.jvp(fourth, (x,), (1.0,))[1]


def linearized(x):
    _, f_lin = plait.linearize(fourth, x)
    return f_lin(x * 1.0)


FORWARD = {
    "jvp": lambda f: plait.jvp(f, (f32(2),), (1.0,))[1],
    "jvp of jit": lambda f: plait.jvp(plait.jit(f), (f32(2),), (1.0,))[1],
    "jit of jvp": lambda f: plait.jit(lambda x: plait.jvp(f, (x,), (1.0,))[1])(f32(2)),
    "jvp of scan": lambda f: plait.jvp(
        lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0], (f32(2),), (1.0,)
    )[1],
    "jvp of vmap": lambda f: plait.jvp(plait.vmap(f), (f32([3, 2]),), (f32([1, 1]),))[1][1],
    "vmap of jvp": lambda f: plait.vmap(lambda x: plait.jvp(f, (x,), (1.0,))[1])(f32([3, 2]))[1],
    "jacfwd": lambda f: plait.jacfwd(f)(f32(2)),
    "linearize": lambda f: plait.linearize(f, f32(2))[1](f32(1)),
}


@pytest.mark.parametrize("way", FORWARD)
def test_forward_mode_is_derived(way):
    """A pullback that is linear in cotangents is transposed: the derivative along a direction."""
    assert FORWARD[way](fourth).item() == 32


CLIPS = {
    "clipped": lambda ct: pnp.clip(ct, -1, 1),
    "shifted": lambda ct: ct + 1.0,
    "constant": lambda ct: 7.0,
    "squared": lambda ct: ct * ct,
    "chosen": lambda ct: pnp.where(ct > 0, ct, 2 * ct),
    "in a loop": lambda ct: lax.fori_loop(0, 2, lambda i, c: c + 1.0, ct),
}


@pytest.mark.parametrize("how", CLIPS)
def test_forward_mode_is_refused(how):
    """Of a pullback that is not linear nothing can be derived: an error that says what to use."""
    f = plait.custom_vjp(lambda x: x * 1.0)
    f.defvjp(lambda x: (x * 1.0, None), lambda _, ct: (CLIPS[how](ct),))
    for way in ("jvp", "jit of jvp", "vmap of jvp") if how == "clipped" else ("jvp",):
        with pytest.raises(MissingRule, match="only the pullback is known") as caught:
            FORWARD[way](f)
        assert "custom_jvp" in caught.value.fix
    assert plait.grad(f)(f32(2)).shape == ()


ZEROS = {
    "scanned": lambda z: lax.scan(lambda c, _: (c * 2.0, None), z, None, length=2)[0],
    "chosen": lambda z: pnp.where(pnp.arange(1)[0] > 0, z, -z),
    "of a branch": lambda z: lax.cond(pnp.arange(1)[0] > 0, pnp.negative, lambda v: v * 3.0, z),
    "repeated": lambda z: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, -c[1]), (0, z))[
        1
    ],
    "called": lambda z: plait.jit(lambda v: v / 2.0)(z),
}


@pytest.mark.parametrize("how", ZEROS)
def test_zeros_may_go_through_what_a_pullback_does(how):
    """What is linear of a zero is zero, whatever it went through: a sum with it stays linear."""
    f = plait.custom_vjp(pnp.sin)
    f.defvjp(
        lambda x: (pnp.sin(x), pnp.cos(x)), lambda c, ct: (c * ct + ZEROS[how](pnp.zeros(())),)
    )
    for way in FORWARD.values():
        np.testing.assert_allclose(way(f), np.cos(2), rtol=1e-6)


REVERSE_OVER_FORWARD = {
    "grad of jvp": lambda x: plait.grad(lambda x: plait.jvp(cube, (x,), (1.0,))[1])(x),
    "grad of jvp of a product": lambda x: plait.grad(slope)(x),
    "grad of jit of jvp": lambda x: plait.grad(plait.jit(slope))(x),
    "grad of jvp of jit": lambda x: plait.grad(
        lambda x: plait.jvp(plait.jit(fourth), (x,), (1.0,))[1]
    )(x),
    "jvp of grad of jvp": lambda x: plait.jvp(plait.grad(slope), (x,), (1.0,))[1],
}


@pytest.mark.parametrize("way", REVERSE_OVER_FORWARD)
def test_reverse_over_forward(way):
    """Reverse over forward gives the second derivative: never another number."""
    want = {"grad of jvp": 12.0}.get(way, 48.0)
    assert REVERSE_OVER_FORWARD[way](f32(2)).item() == want


FURTHER = {
    "value and gradient": (lambda f: plait.value_and_grad(f)(f32(1)), (32, 32)),
    "linearize": (lambda f: plait.linearize(f, f32(1))[0], (32,)),
    "grad through linearize": (lambda f: plait.grad(linearized)(f32(2)), (128,)),
    "twice": (lambda f: plait.grad(plait.grad(linearized))(f32(2)), (192,)),
}


@pytest.mark.parametrize("way", FURTHER)
def test_derivative_of_a_linearized_function(way):
    """Differentiating what has been linearized gives the right values; never a tracer that looks
    like a value."""
    _, f_lin = plait.linearize(fourth, f32(2))
    attempt, want = FURTHER[way]
    out = attempt(f_lin)
    out = out if isinstance(out, tuple) else (out,)
    assert tuple(np.asarray(o).item() for o in out) == want


def test_transposed_linearized_function():
    """The transpose of a linearized custom_vjp function is its pullback, mapped too."""
    _, f_lin = plait.linearize(fourth, f32(2))
    transposed = plait.linear_transpose(f_lin, f32(1))
    assert transposed(f32(1))[0].item() == 32
    np.testing.assert_array_equal(plait.vmap(transposed)(f32([1, 2]))[0], [32, 64])


def test_reverse_over_reverse():
    """Reverse mode of any order differentiates the pullback itself."""
    assert plait.grad(fourth)(f32(2)).item() == 32
    assert plait.jvp(plait.grad(fourth), (f32(2),), (1.0,))[1].item() == 48
    assert plait.grad(plait.grad(fourth))(f32(2)).item() == 48
    assert plait.grad(plait.grad(plait.grad(fourth)))(f32(2)).item() == 48
    assert plait.grad(plait.grad(plait.jit(fourth)))(f32(2)).item() == 48
    assert plait.hessian(fourth)(f32(2)).item() == 48
    np.testing.assert_array_equal(plait.vmap(plait.grad(plait.grad(fourth)))(f32([1, 2])), [12, 48])
    loop = lambda x: lax.scan(lambda c, _: (cube(c), None), x, None, length=2)[0]  # noqa: E731
    assert plait.grad(loop)(f32(1)).item() == 9
    assert plait.grad(plait.grad(loop))(f32(1)).item() == 72
    assert plait.jvp(plait.grad(loop), (f32(1),), (1.0,))[1].item() == 72


def test_results_without_value():
    """A function whose result is linear in what is being differentiated further out has no value
    to return: an error, not a dead tracer."""

    def f(x):
        return plait.jvp(lambda y: y * x, (x,), (x,))[1]

    value, g = plait.value_and_grad(f)(f32(3))
    assert (value.item(), g.item()) == (9, 6)
    y, f_lin = plait.linearize(f, f32(3))
    assert (y.item(), f_lin(1.0).item()) == (9, 6)
