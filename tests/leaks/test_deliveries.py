"""Values on their way into transformations, and out of functions and rules.

A value that is handed on, and meets no primitive, is checked where it is received: one that has
outlived its transformation, or is used below it, is an error; one of a transformation further out
is as good as an array, and has the derivative that it should have.

Invariant: derivatives are compared with finite differences of the same delivery of arrays.
"""

import itertools

import numpy as np
import pytest

import plait
from plait import lax
from plait.errors import MissingRule, UnexpectedTracerError
from plait.ext.errors import ArgumentError

from .deliveries import ARGUMENTS, RESULTS, custom_jvp, custom_vjp, custom_vmap, f32, same, same_vjp

pnp = plait.numpy
DELIVERIES = [(f"given to {k}", d) for k, d in ARGUMENTS.items()]
DELIVERIES += [(f"returned to {k}", d) for k, d in RESULTS.items()]
NAMES = [name for name, _ in DELIVERIES]
kept: list = []


def leak(x):
    kept.append(x * 2 + 1)  # the line that creates it
    return x


LINE = f"reated on line {__file__}:{leak.__code__.co_firstlineno + 1}"
SOURCES = [
    lambda: plait.jit(lambda x: leak(x))(f32(1)),
    lambda: plait.grad(lambda x: leak(x))(f32(1)),
    lambda: plait.vmap(plait.grad(lambda x: leak(x)))(f32([1])),
    lambda: plait.vmap(lambda x: leak(x))(f32([1])),
    lambda: plait.jit(plait.vmap(lambda x: leak(x)))(f32([1])),
    lambda: plait.jvp(lambda x: leak(x), (f32(1),), (f32(1),)),
    lambda: lax.scan(lambda c, _: (leak(c), None), f32(1), None, length=2),
]


def then(x, run):
    run()
    return x


AROUND = {
    "nothing": lambda run: run(),
    "jit": lambda run: plait.jit(lambda z: then(z, run))(f32(1)),
    "grad": lambda run: plait.grad(lambda z: then(z, run))(f32(1)),
    "jvp in jit": lambda run: plait.jit(lambda w: plait.jvp(lambda z: then(z, run), (w,), (w,)))(
        f32(1)
    ),
    "vmap": lambda run: plait.vmap(lambda z: then(z, run))(f32([1])),
}
number = itertools.count()


@pytest.mark.feature("C01")
@pytest.mark.parametrize("name,deliver", DELIVERIES, ids=NAMES)
def test_escaped(name, deliver):
    """Wherever an escaped value is delivered, and whatever is around: the error names its line."""
    for around in AROUND.values():
        kept.clear()
        SOURCES[next(number) % len(SOURCES)]()
        (x, *_) = kept
        with pytest.raises(UnexpectedTracerError) as caught:
            around(lambda x=x: deliver(x))
        assert LINE in str(caught.value)


# ---- values of a transformation further out ------------------------------------------------

NO_DERIVATIVE = {  # and what is said of it
    "given to stop_gradient": None,
    "given to pure_callback": (MissingRule, "callback has no derivative"),
    "given to while_loop": (MissingRule, "cannot be differentiated in reverse"),
    "returned to while_loop": (MissingRule, "cannot be differentiated in reverse"),
    # by the equation that the solution satisfies, not by the solver that returns something else
    "given to custom_root": None,
    "returned to custom_root, solver": None,
    "returned to custom_linear_solve, solver": None,
    "given to custom_linear_solve": (ArgumentError, "no transpose_solve"),
    "returned to custom_linear_solve, matrix": (ArgumentError, "no transpose_solve"),
    # rules that have no way to take along what the function closes over
    "returned to custom_jvp": (UnexpectedTracerError, "closes over a value that is being diff"),
    "returned to custom_vjp": (UnexpectedTracerError, "closes over a value that is being diff"),
}
NOT_MAPPED = {"returned to custom_vmap": "closes over a value that is being mapped"}
OUTSIDE = (  # of what is traced, or of numbers
    "given to new_ref", "given to print", "given to check", "given to pile", "given to index",
    "returned to eval_shape", "returned to export", "returned to make_program",
    "returned to closure_convert",
)  # fmt: skip
LEGITIMATE = [(n, d) for n, d in DELIVERIES if n not in OUTSIDE]


def total(out):
    leaves = [v for v in plait.tree.leaves(out) if getattr(v, "dtype", None) == np.float32]
    return sum((i + 1) * pnp.sin(v * 1.0).sum() for i, v in enumerate(leaves))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name,deliver", LEGITIMATE, ids=[n for n, _ in LEGITIMATE])
def test_of_a_level_around(name, deliver):
    """A value of an outer transformation comes and goes with its derivative, and each element."""
    f = lambda x: total(deliver(x))  # noqa: E731
    at = lambda x: np.float64(f(f32(x)))  # noqa: E731
    h = 2.0**-6
    slope = (at(1.25 + h) - at(1.25 - h)) / (2 * h)
    expected = NO_DERIVATIVE.get(name, ())
    if expected == ():
        for g in (f, plait.jit(f)):
            np.testing.assert_allclose(plait.grad(g)(f32(1.25)), slope, rtol=0.02, atol=0.02)
    elif expected is not None:
        error, told = expected
        for g in (f, plait.jit(f)):
            with pytest.raises(error, match=told):
                plait.grad(g)(f32(1.25))
    for g in (plait.vmap(f), plait.jit(plait.vmap(f))):
        if name in NOT_MAPPED:
            with pytest.raises(UnexpectedTracerError, match=NOT_MAPPED[name]):
                g(f32([1.25, 0.5]))
        else:
            np.testing.assert_allclose(g(f32([1.25, 0.5])), [at(1.25), at(0.5)], rtol=1e-4)


# ---- values of the very transformation -----------------------------------------------------


def with_zeros(custom, fun, *rules):
    f = custom(fun)
    (f.defjvp if len(rules) == 1 else f.defvjp)(*rules, symbolic_zeros=True)
    return f


def static(custom, fun, *rules):
    f = custom(fun, nondiff_argnums=(0,))
    (f.defjvp if len(rules) == 1 else f.defvjp)(*rules)
    return lambda x: f(2, x)


def each(fun, rule):
    f = plait.custom_jvp(fun)
    f.defjvps(rule)
    return f


def right_jvp(p, t):
    return p[0], t[0]


def right_bwd(r, ct):
    return (ct,)


def of_a_global(x):
    kept[:] = [x]
    return custom_jvp(lambda y: kept[0] * y, right_jvp)(f32(1))


def in_a_loop(x):
    g = custom_vjp(lambda y: x * y, same_vjp, right_bwd)
    return lax.scan(lambda c, _: (g(f32(1)), None), f32(1), None, length=2)[0]


OWN = {
    # what a rule returns
    "jvp rule": lambda x: custom_jvp(same, lambda p, t: (x, t[0]))(x),
    "jvp tangent": lambda x: custom_jvp(same, lambda p, t: (p[0], x))(x),
    "jvp rule, zeros": lambda x: with_zeros(plait.custom_jvp, same, lambda p, t: (x, t[0]))(x),
    "jvp tangent, zeros": lambda x: with_zeros(plait.custom_jvp, same, lambda p, t: (p[0], x))(x),
    "jvp of each": lambda x: each(same, lambda t, out, p: x)(x),
    "jvp rule, static": lambda x: static(
        plait.custom_jvp, lambda s, y: y, lambda s, p, t: (x, t[0])
    )(x),
    "forward": lambda x: custom_vjp(same, lambda y: (x, ()), right_bwd)(x),
    "residual": lambda x: custom_vjp(same, lambda y: (y, x), right_bwd)(x),
    "residual that is returned": lambda x: custom_vjp(same, lambda y: (y, x), lambda r, ct: (r,))(
        x
    ),
    "backward": lambda x: custom_vjp(same, same_vjp, lambda r, ct: (x,))(x),
    "forward, zeros": lambda x: with_zeros(plait.custom_vjp, same, lambda y: (x, ()), right_bwd)(x),
    "backward, zeros": lambda x: with_zeros(
        plait.custom_vjp, same, lambda y: (y.value, ()), lambda r, ct: (x,)
    )(x),
    "backward, static": lambda x: static(
        plait.custom_vjp, lambda s, y: y, lambda s, y: (y, ()), lambda s, r, ct: (x,)
    )(x),
    "custom_gradient": lambda x: plait.custom_gradient(lambda y: (y * y, lambda ct: x))(x),
    # what a function closes over whose own argument is not differentiated
    "function of a number": lambda x: custom_jvp(lambda y: x, right_jvp)(1.0),
    "function of an array": lambda x: custom_jvp(lambda y: x * y, right_jvp)(f32(1)),
    "vjp function of a number": lambda x: custom_vjp(lambda y: x * y, same_vjp, right_bwd)(1.0),
    "vjp function of an array": lambda x: custom_vjp(lambda y: x, same_vjp, right_bwd)(f32(1)),
    "function in a loop": in_a_loop,
    "function that calls jit": lambda x: custom_jvp(
        lambda y: plait.jit(lambda z: z * x)(y), right_jvp
    )(f32(1)),
    "function of a global": of_a_global,
    "function under vmap": lambda x: plait.vmap(custom_jvp(lambda y: x * y, right_jvp))(
        f32([1, 2])
    ),
}
WAYS = {
    "grad": lambda f: plait.grad(f)(f32(3)),
    "linearize": lambda f: plait.linearize(f, f32(3))[1](f32(1)),
    "jit of grad": lambda f: plait.jit(plait.grad(f))(f32(3)),
    "grad of jit": lambda f: plait.grad(plait.jit(f))(f32(3)),
    "vmap of grad": lambda f: plait.vmap(plait.grad(f))(f32([3, 4])),
    "grad of vmap": lambda f: plait.grad(lambda x: plait.vmap(f)(pnp.stack([x, x])).sum())(f32(3)),
    "hessian": lambda f: plait.hessian(f)(f32(3)),
    "grad of checkpoint": lambda f: plait.grad(plait.checkpoint(f))(f32(3)),
}


@pytest.mark.parametrize("name", OWN)
def test_of_its_own_level(name):
    """A value that is being differentiated, where only the rule's own arguments may come in."""
    f = lambda x: total(OWN[name](x))  # noqa: E731
    for way, run in WAYS.items():
        with pytest.raises(UnexpectedTracerError) as caught:
            run(f)
        assert "reated on line" in str(caught.value), way


@pytest.mark.parametrize("run", [lambda f: f, plait.jit], ids=["at once", "jit"])
def test_mapping_rules(run):
    """The same of rules for mapping."""
    x = f32([1, 2])
    returned = lambda v: custom_vmap(same, lambda n, b, y: (v, False))(v)  # noqa: E731
    enclosed = lambda v: custom_vmap(lambda y: y * v, lambda n, b, y: (y, b[0]))(f32(1))  # noqa: E731
    for f in (returned, enclosed):
        with pytest.raises(UnexpectedTracerError, match="reated on line"):
            plait.vmap(run(f))(x)
    # a rule for mapping must leave derivatives alone
    np.testing.assert_allclose(plait.grad(run(enclosed))(f32(3)), 1)


def test_rules_that_need_not_take_it_along():
    """A function with a rule may look at what is differentiated, and not depend on it."""

    def f(x):
        @plait.custom_jvp
        def g(y):
            return y * x.ndim + (1 if x > 0 else 2)

        g.defjvp(lambda p, t: (g(p[0]), t[0]))
        return x * g(f32(2)) + g(1.0)

    np.testing.assert_allclose(plait.grad(f)(f32(3)), 1)
    np.testing.assert_allclose(plait.jvp(f, (f32(3),), (f32(1),)), (4, 1))
