"""What compiled and traced things are remembered by: never by an equality that hides a difference.

Python says 1 == 1.0 == True and 0.0 == -0.0, and a class may say whatever it likes; a program made
for one of them is wrong for the other.
"""

import dataclasses
import functools

import numpy as np
import pytest

import plait
from plait import ext, lax

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


@dataclasses.dataclass(frozen=True)
class Layer:
    """Equal to another one of the same name, whatever its weight."""

    name: str
    w: object = dataclasses.field(compare=False)

    def __call__(self, c, _):
        return c * self.w, None


class Same:
    """Equal to everything of its class."""

    def __init__(self, v):
        self.v = v

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1

    def __call__(self, c, _=None):
        return c * self.v, None


PAIRS = {
    "dataclass with a field that does not compare": (Layer("a", 2.0), Layer("a", 3.0)),
    "an equality that says yes": (Same(2.0), Same(3.0)),
    "bound methods of equal instances": (Same(2.0).__call__, Same(3.0).__call__),
    "partials": (
        functools.partial(lambda w, c, _: (c * w, None), 2.0),
        functools.partial(lambda w, c, _: (c * w, None), 3.0),
    ),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_functions_by_identity(pair):
    """Equal callables that do different things are told apart, by everything that traces."""
    first, second = PAIRS[pair]
    for f, w in ((first, 2.0), (second, 3.0), (first, 2.0)):
        step = lambda c, f=f: f(c, None)[0]  # noqa: E731
        x = f32(1)
        assert lax.scan(f, x, None, length=2)[0].item() == w * w
        assert plait.grad(lambda x, f=f: lax.scan(f, x, None, length=2)[0])(x).item() == w * w
        assert plait.jit(f)(x, None)[0].item() == w
        assert plait.checkpoint(f)(x, None)[0].item() == w
        assert lax.cond(True, step, step, x).item() == w
        assert plait.eval_shape(f, x, None)[0].shape == ()
        assert plait.vmap(lambda x, f=f: f(x, None)[0])(f32([1, 2])).tolist() == [w, 2 * w]


scale = ext.Primitive("composed_cache_keys.scale", lambda x, *, c: x)

ext.expand_rules.rule(scale)(lambda x, *, c: x / c if c == 0 else x * c)

held = ext.Primitive("composed_cache_keys.held", lambda x, *, c: x)

ext.expand_rules.rule(held)(lambda x, *, c: (x / c[0]) if c[0] == 0 else x * c[0])


@pytest.mark.parametrize(
    "wrap", [lambda f: f, plait.jit, plait.checkpoint], ids=["now", "jit", "ckpt"]
)
def test_parameters_of_primitives(wrap):
    """A parameter -0.0 is not the parameter 0.0, nor is 1.0 the parameter 1."""
    for _ in range(2):
        assert wrap(lambda x: scale(x, c=0.0))(f32(1)).item() == np.inf
        assert wrap(lambda x: scale(x, c=-0.0))(f32(1)).item() == -np.inf
        assert wrap(lambda x: held(x, c=(0.0,)))(f32(1)).item() == np.inf
        assert wrap(lambda x: held(x, c=(-0.0,)))(f32(1)).item() == -np.inf
        assert scale(f32(3), c=2).item() == scale(f32(3), c=2.0).item() == 6
        both = wrap(lambda x: (scale(x, c=0.0), scale(x, c=-0.0)))(f32(1))
        assert [b.item() for b in both] == [np.inf, -np.inf]
