"""Functions that are objects: without a name, with one that is not a string, with any attribute.

Invariant: the results are those of a plain function of the same text.
"""

import functools

import numpy as np
import pytest

import plait
from plait import checks, lax
from plait import numpy as pnp


class Nameless:
    """A callable object."""

    def __init__(self, fun):
        self.fun = fun

    def __call__(self, *args):
        return self.fun(*args)


class NamedByAnObject(Nameless):
    """Attributes that are read of functions, and are not what functions have."""

    __name__ = property(lambda self: None)
    __doc__ = property(lambda self: object())  # type: ignore[assignment]
    __annotations__ = property(lambda self: "none")  # type: ignore[assignment]
    __type_params__ = property(lambda self: [])  # type: ignore[assignment]

    def __init__(self, fun):
        super().__init__(fun)
        self.__qualname__, self.__module__ = 3, None  # type: ignore[assignment]


class OfAnyAttribute(Nameless):
    """An object that returns itself for every public attribute, as objects for tests do."""

    def __getattr__(self, name):
        if name.startswith("__") and name not in ("__name__", "__qualname__", "__annotations__"):
            raise AttributeError(name)
        return self


KINDS = [Nameless, NamedByAnObject, OfAnyAttribute, functools.partial]
X = np.float32(0.5)
ROWS = np.arange(3, dtype=np.float32)


def cube(x):
    return x * x * x


def custom(make, define, f):
    fun = make(f)
    define(fun)
    return plait.grad(fun)(X)


USES = {
    "jit": lambda of: plait.jit(of(cube))(X),
    "jit twice": lambda of: plait.jit(of(plait.jit(of(cube))))(X),
    "lower": lambda of: plait.jit(of(cube)).lower(X).compile()(X),
    "grad": lambda of: plait.grad(of(cube))(X),
    "value_and_grad": lambda of: plait.value_and_grad(of(cube))(X),
    "vmap": lambda of: plait.vmap(of(cube))(ROWS),
    "jvp": lambda of: plait.jvp(of(cube), (X,), (X,)),
    "vjp": lambda of: plait.vjp(of(cube), X)[1](X),
    "linearize": lambda of: plait.linearize(of(cube), X)[1](X),
    "jacfwd": lambda of: plait.jacfwd(of(cube))(ROWS),
    "jacrev": lambda of: plait.jacrev(of(cube))(ROWS),
    "hessian": lambda of: plait.hessian(of(cube))(X),
    "checkpoint": lambda of: plait.grad(plait.checkpoint(of(cube)))(X),
    "make_program": lambda of: len(plait.make_program(of(cube))(X).eqns),
    "eval_shape": lambda of: plait.eval_shape(of(cube), ROWS).shape,
    "named_call": lambda of: plait.named_call(of(cube))(X),
    "scan": lambda of: lax.scan(of(lambda c, x: (c + x, c * x)), X, ROWS),
    "cond": lambda of: lax.cond(X > 0, of(cube), of(pnp.sin), X),
    "while": lambda of: lax.while_loop(of(lambda x: x < 9), of(lambda x: x + 1), X),
    "fori_loop": lambda of: lax.fori_loop(0, 3, of(lambda i, x: x + i), X),
    "map": lambda of: lax.map(of(cube), ROWS),
    "associative_scan": lambda of: lax.associative_scan(of(lambda a, b: a + b), ROWS),
    "vectorize": lambda of: pnp.vectorize(of(cube))(ROWS),
    "checkify": lambda of: checks.checkify(of(cube))(X)[1],
    "pure_callback": lambda of: plait.pure_callback(
        of(lambda x: np.asarray(x) * 2), plait.ShapeDtypeStruct((), np.float32), X
    ),
    "custom_jvp": lambda of: custom(
        plait.custom_jvp, lambda f: f.defjvp(of(lambda p, t: (cube(p[0]), 2 * t[0]))), of(cube)
    ),
    "custom_vjp": lambda of: custom(
        plait.custom_vjp,
        lambda f: f.defvjp(of(lambda x: (cube(x), None)), of(lambda r, ct: (3 * ct,))),
        of(cube),
    ),
    "closure_convert": lambda of: plait.closure_convert(of(cube), X)[0](X),
    "linear_transpose": lambda of: plait.linear_transpose(of(lambda x: 3 * x), X)(X),
    "debug.callback": lambda of: plait.debug.callback(of(lambda x: None), X),
    "custom_root": lambda of: lax.custom_root(
        of(lambda x: x - 2), X, of(lambda f, x: x * 0 + 2), of(lambda g, y: y)
    ),
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("use", USES)
def test_a_callable_needs_no_name(use, kind):
    want = plait.tree_util.tree_leaves(USES[use](lambda f: f))
    got = plait.tree_util.tree_leaves(USES[use](kind))
    assert len(got) == len(want)
    for g, w in zip(got, want):
        np.testing.assert_array_equal(np.asarray(g), np.asarray(w))


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_an_error_about_a_callable_is_made_without_its_name(kind):
    for use in (plait.grad, plait.jit, plait.vmap):
        with pytest.raises(plait.errors.PlaitError):
            use(kind(lambda x: [x, "text"]))(ROWS)
