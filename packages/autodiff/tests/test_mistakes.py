"""What is said of functions, rules and policies that are not what they should be.

Invariant: every error says what happened, on which line of the user, and what to write; nothing
here gives a number.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext.errors import PlaitError
from plait_autodiff import (
    checkpoint,
    custom_ivjp,
    custom_jvp,
    custom_vjp,
    grad,
    hessian,
    implicit_diff,
    invertible,
    jvp,
    linearize,
    saved_residuals,
    vjp,
)

pnp, keep = plait.numpy, plait.checkpoint_policies
X, V = np.float32(0.5), np.ones(3, np.float32)


def by_jvp(rule, **options):
    f = custom_jvp(lambda x: x * 2)
    f.defjvp(rule, **options)
    return f


def by_vjp(fwd, bwd, **options):
    f = custom_vjp(lambda x: x * 2)
    f.defvjp(fwd, bwd, **options)
    return f


def by_ivjp(rule):
    f = custom_ivjp(lambda x: x * 2)
    f.defivjp(rule)
    return f


def by_parts(*rules):
    f = custom_jvp(lambda x: x * 2)
    f.defjvps(*rules)
    return f


def root(**changed):
    parts = {"f": lambda x: x, "solve": lambda f, x: x, "tangent_solve": lambda g, y: y}
    f, solve, tangent_solve = {**parts, **changed}.values()
    return lambda a: lax.custom_root(
        (lambda x: f(x) - a) if callable(f) else f, 1.0, solve, tangent_solve
    )


def solved(matvec=lambda x: x, solve=lambda m, b: b, b=1.0):
    return lax.custom_linear_solve(matvec, b, solve)


def twice(policy):
    return checkpoint(lambda x: lax.sin(lax.sin(x)), policy=policy)


def bad(f):
    """A custom function that returns no array."""
    g = f(lambda x: "a")
    g.defjvp(lambda p, t: (p[0], t[0])) if f is custom_jvp else g.defvjp(
        lambda x: (x, None), lambda r, ct: (ct,)
    )
    return g


double = lambda x: x * 2  # noqa: E731

DEFINED = {  # refused where it is written
    "jvp rule": (lambda: by_jvp(None), "defjvp of <lambda> needs a function, not None"),
    "fwd": (lambda: by_vjp("f", double), "defvjp of <lambda> needs a function, not 'f'"),
    "bwd": (lambda: by_vjp(double, 3), "defvjp of <lambda> needs a function, not 3"),
    "ivjp rule": (lambda: by_ivjp(None), "defivjp of <lambda> needs a function"),
    "parts": (lambda: by_parts(3), "defjvps of <lambda> needs functions, not 3"),
    "jvp arity": (lambda: by_jvp(lambda p: p), "cannot be called with 2 arguments"),
    "fwd arity": (lambda: by_vjp(lambda: 1, double), "cannot be called with 1 arguments"),
    "bwd arity": (lambda: by_vjp(double, lambda r: r), "cannot be called with 2 arguments"),
    "ivjp arity": (lambda: by_ivjp(lambda xs: xs), "cannot be called with 3 arguments"),
    "custom_jvp": (lambda: custom_jvp(3), "custom_jvp needs a function, not 3"),
    "custom_vjp": (lambda: custom_vjp(None), "custom_vjp needs a function, not None"),
    "custom_ivjp": (lambda: custom_ivjp(3), "custom_ivjp needs a function, not 3"),
    "invertible": (lambda: invertible(3), "invertible needs a function, not 3"),
    "implicit_diff": (lambda: implicit_diff(3), "implicit_diff needs a function, not 3"),
    "solver": (lambda: implicit_diff(double)(3), "needs a function, not 3"),
    "policies": (lambda: keep.save_from_both_policies(3, None), "is for policies, not 3"),
    "argnums": (lambda: grad(double, argnums="x"), "argnums of grad is 'x'"),
}

CALLED = {  # refused where it is called, jitted or not
    "jvp pair": (by_jvp(lambda p, t: p), "must return a pair"),
    "jvp tree": (by_jvp(lambda p, t: (p[0], [t[0]])), "a leaf against a list"),
    "jvp leaf": (by_jvp(lambda p, t: (p[0], "a")), "returned str as the tangent of a value"),
    "jvp complex": (by_jvp(lambda p, t: (p[0], 1j)), r"c64\[\]\* for a value of type f32"),
    "vjp pair": (by_vjp(lambda x: x, lambda r, ct: (ct,)), "must return a pair"),
    "vjp residual": (
        by_vjp(lambda x: (x, "r"), lambda r, ct: (ct,)),
        "of type str is not an array",
    ),
    "vjp no tuple": (by_vjp(lambda x: (x, None), lambda r, ct: ct), "a tuple of 1 cotangents"),
    "vjp leaf": (by_vjp(lambda x: (x, None), lambda r, ct: ("a",)), "returned str as the cotangen"),
    "ivjp pair": (by_ivjp(lambda xs, y, dy: (xs, xs, xs)), "must return two trees"),
    "ivjp tree": (by_ivjp(lambda xs, y, dy: ((y, y), (dy,))), "returned arguments of structure"),
    "ivjp type": (
        by_ivjp(lambda xs, y, dy: ((pnp.stack([y, y]),), (dy,))),
        r"an argument of type f32\[2\] for a value of type f32\[\]",
    ),
    "parts": (by_parts(lambda t, y, x: t, lambda t, y, x: t), "was given 2 rules, and the functio"),
    "part": (by_parts(lambda t, y, x: (t, t)), "another structure than its result"),
    "policy says nothing": (twice(lambda *a, **k: None), "a policy of checkpoint says None of"),
    "policy says much": (twice(lambda *a, **k: "save"), "says 'save' of core.sin"),
    "policy says an array": (twice(lambda *a, **k: np.ones(2)), "a policy of checkpoint says"),
    "f of root": (root(f=3), "f of custom_root needs a function, not 3"),
    "solve of root": (root(solve=None), "solve of custom_root needs a function, not None"),
    "tangents of root": (root(tangent_solve=None), "tangent_solve of custom_root needs a funct"),
    "a while loop": (
        lambda x: lax.while_loop(lambda c: c < 3, double, x),
        "cannot be differentiated in reverse",
    ),
    "max_steps": (
        lambda x: lax.while_loop(lambda c: c < 3, double, x, max_steps=2.5),
        "max_steps of while_loop is 2.5",
    ),
    "max_steps < 0": (
        lambda x: lax.fori_loop(0, 3, lambda i, c: c, x, max_steps=-1),
        "fori_loop cannot turn -1 times",
    ),
}

OTHER = {
    "unknown keyword": lambda: by_jvp(lambda p, t: (p[0], t[0]))(y=X),
    "no argument": lambda: by_jvp(lambda p, t: (p[0], t[0]))(),
    "two arguments": lambda: by_jvp(lambda p, t: (p[0], t[0]))(X, X),
    "no array": lambda: by_ivjp(lambda xs, y, dy: (xs, dy))("a"),
    "no array in": lambda: checkpoint(double)("a"),
    "no array out": lambda: checkpoint(lambda x: "a")(X),
    "custom_jvp": lambda: bad(custom_jvp)(X),
    "custom_vjp": lambda: plait.jit(bad(custom_vjp))(X),
    "matvec": lambda: solved(matvec=3),
    "solve": lambda: solved(solve=None),
    "right-hand side": lambda: solved(b="a"),
    "cotangents": lambda: vjp(double, X)[1](X, X),
    "cotangent tree": lambda: vjp(double, X)[1]((X, X)),
    "cotangent shape": lambda: vjp(double, X)[1](V),
    "no cotangent": lambda: vjp(double, X)[1](None),
    "no tangent": lambda: linearize(double, X)[1](),
    "aux": lambda: grad(double, has_aux=True)(X),
    "argument by name": lambda: grad(lambda x: x * 2)(x=X),
    "twice": lambda: grad(lambda x: x * 2, argnums=(0, -1))(X),
    "hessian": lambda: hessian(lambda x: x * 2, argnums=1.5)(X),
    "tangents": lambda: jvp(double, X, X),
    "report": lambda: saved_residuals(3, X),
    "schedule": lambda: plait.checkpoint_scan(3, 1.0, V),
    "name": lambda: plait.checkpoint_name("a", "b"),
}


def three_parts(error):
    assert isinstance(error, PlaitError) and error.fix
    assert __file__ in str(error), str(error)


@pytest.mark.feature("A33")
@pytest.mark.parametrize("what", DEFINED)
def test_what_is_no_rule(what):
    make, message = DEFINED[what]
    with pytest.raises((TypeError, ValueError), match=message) as error:
        make()
    three_parts(error.value)


@pytest.mark.feature("A17", "A33")
@pytest.mark.parametrize("what", CALLED)
def test_what_rules_return(what):
    f, message = CALLED[what]
    # forward rules of one direction are refused going forward; others backward
    for g in (f, plait.jit(lambda x: f(x))):
        with pytest.raises((TypeError, ValueError, NotImplementedError), match=message) as error:
            grad(g)(X)
        three_parts(error.value)


def test_what_is_called_otherwise():
    for what, call in OTHER.items():
        with pytest.raises((TypeError, ValueError)) as error:
            call()
        assert isinstance(error.value, PlaitError), what
        three_parts(error.value)


def test_rules_of_functions_that_take_more_or_less():
    """What is not known of a signature is left to the call."""
    many = custom_vjp(lambda *xs: sum(xs))
    many.defvjp(lambda x, y: (x + y, None), lambda _, ct: (ct, 2 * ct))
    assert [g.item() for g in grad(many, (0, 1))(X, X)] == [1, 2]
    some = custom_vjp(lambda x, y=1.0: x * y)
    some.defvjp(lambda x, y: (x * y, y), lambda y, ct: (5 * ct, None))
    assert grad(lambda x: some(x, 2.0))(X).item() == 5
    built_in = custom_jvp(abs)
    built_in.defjvp(lambda *given: (given[0][0], 3 * given[1][0]))
    assert grad(built_in)(X).item() == 3


def test_errors_of_the_user_are_the_users():
    """What a rule or a policy raises goes through as it is."""

    def wrong(*args, **params):
        raise KeyError("mine")

    for f in (by_jvp(wrong), by_vjp(wrong, wrong), twice(wrong)):
        with pytest.raises(KeyError, match="mine"):
            grad(f)(X)
