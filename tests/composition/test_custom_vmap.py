"""Functions with mapping rules, alone and together with jit, loops and derivatives.

Invariant: a rule that is wrong on purpose (it adds 100, or triples) shows where it was used.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext.errors import AxisError, MissingRule, TreeMismatch, TypeRule

pnp = plait.numpy
X = np.float32([0.5, 1.0, 2.0])


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-5)


def cubed():
    """x ** 3 * y, that is three times as large when it is mapped."""
    seen = []

    @plait.custom_vmap
    def f(x, y):
        return x * x * x * y

    @f.def_vmap
    def _(axis_size, in_batched, x, y):
        seen.append((axis_size, *in_batched))
        return 3 * x * x * x * y, any(in_batched)

    return f, seen


@pytest.mark.feature("B49")
def test_without_a_rule():
    f = plait.custom_vmap(lambda x: x)
    f.__name__ = "f"
    g = plait.custom_vmap(named)
    message = "the custom_vmap function named has no mapping rule"
    for use in (lambda: plait.vmap(g)(X), lambda: g(1.0)):
        with pytest.raises(AttributeError, match=message):
            use()


def named(x):
    return x


@pytest.mark.feature("B50")
def test_keyword_arguments():
    f, seen = cubed()
    close(f(x=2.0, y=3.0), 24)
    close(plait.vmap(f)(x=X, y=X), 3 * X**4)
    close(plait.vmap(lambda x: f(y=2.0, x=x))(X), 6 * X**3)
    assert seen == [(3, True, True), (3, True, False)]
    g = plait.custom_vmap(lambda x, *, kw=True: x)
    g.def_vmap(lambda size, batched, x: (x, True))
    close(plait.vmap(g)(X), X)
    with pytest.raises(TypeError, match=r"keyword arguments \(kw\) of .* have no position"):
        plait.vmap(lambda x: g(x, kw=False))(X)


WAYS = {
    "plain": lambda f: f,
    "jit": plait.jit,
    "checkpoint": plait.checkpoint,
    "scan": lambda f: lambda x, y: lax.scan(lambda c, _: (f(c, y), None), x, None, 1)[0],
    "while": lambda f: lambda x, y: lax.fori_loop(0, 1, lambda i, c: f(c, y), x),
    "cond": lambda f: lambda x, y: lax.cond(True, f, lambda x, y: x, x, y),
}


@pytest.mark.parametrize("way", WAYS)
def test_mapped(way):
    """Values and derivatives, in both orders: the rule is used wherever something is mapped."""
    f = WAYS[way](cubed()[0])
    close(f(2.0, 3.0), 24)
    close(plait.vmap(f, (0, None))(X, 2.0), 6 * X**3)
    close(plait.vmap(f)(X, X), 3 * X**4)
    close(plait.jit(plait.vmap(f, (None, 0)))(2.0, X), 24 * X)
    push = lambda x, y: plait.jvp(f, (x, y), (1.0, 0.0))[1]  # noqa: E731
    close(push(np.float32(2), np.float32(3)), 36)
    close(plait.vmap(push, (0, None))(X, np.float32(2)), 18 * X**2)
    close(plait.jvp(plait.vmap(f), (X, X), (np.ones_like(X), np.zeros_like(X)))[1], 9 * X**3)
    if way == "while":
        return
    close(plait.grad(f)(np.float32(2), np.float32(3)), 36)
    close(plait.vmap(plait.grad(f), (0, None))(X, np.float32(2)), 18 * X**2)
    close(plait.vmap(plait.grad(f, 1), (None, 0))(np.float32(2), X), [24] * 3)
    close(plait.jit(plait.vmap(plait.grad(f, (0, 1))))(X, X)[1], 3 * X**3)
    close(plait.grad(lambda x, y: plait.vmap(f, (0, None))(x, y).sum(), 1)(X, np.float32(1)),
          3 * (X**3).sum())  # fmt: skip


def test_computed_again():
    """Under checkpoint such a function is one operation, that policies say yes or no to; what is
    done again keeps its rule."""
    f, seen = cubed()
    name = "batching.custom_vmap_call"
    policies = {None: 2, (lambda prim, *avals, **params: prim.name == name): 1}
    for policy, times in policies.items():
        g = plait.checkpoint(lambda x: lax.sin(f(x, np.float32(2))), policy=policy)
        program = str(plait.make_program(plait.grad(g))(np.float32(2)))
        assert program.count(name) >= times
        kept = [r.what for r in plait.saved_residuals(g, np.float32(2))]
        assert any(not what.startswith("the argument") for what in kept) == (policy is not None)
        del seen[:]
        close(plait.vmap(plait.grad(g))(X), np.cos(6 * X**3) * 18 * X**2)
        assert seen and all(s[:2] == (3, True) for s in seen)


def test_derivatives_of_derivatives():
    f = cubed()[0]
    close(plait.grad(plait.grad(f))(np.float32(2), np.float32(3)), 36)
    close(plait.vmap(plait.grad(plait.grad(f)))(X, X), 18 * X**2)
    close(plait.vmap(lambda x: plait.hessian(f)(x, np.float32(1)))(X), 18 * X)


def test_mapped_directions():
    """Where directions alone are mapped, the rule is told of one point; it is used all the same."""
    f, seen = cubed()
    along = lambda t: plait.jvp(f, (np.float32(2), np.float32(1)), (t, t))  # noqa: E731
    for around in (lambda f: f, plait.jit):
        del seen[:]
        y, dots = around(plait.vmap(along, out_axes=(None, 0)))(X)
        close(y, 24)
        close(dots, (36 + 24) * X)
        assert seen == [(3, False, False)]
        del seen[:]
        close(around(plait.jacfwd(f, (0, 1)))(np.float32(2), np.float32(3)), (108, 24))
        assert all(s[1:] == (False, False) for s in seen) and seen
    mixed = plait.vmap(lambda x, t: plait.jvp(f, (x, x), (x, t)))
    close(mixed(X, 2 * X)[1], 9 * X**4 + 6 * X**4)
    mixed = plait.vmap(lambda y, t: plait.jvp(f, (np.float32(2), y), (t, y)))
    close(mixed(X, 2 * X)[1], 72 * X**2 + 24 * X)


def test_a_rule_that_calls_its_own_function_ends():
    """Also where directions alone are mapped, and the rule gets one point."""
    f = plait.custom_vmap(lambda x: lax.sin(x) * x)
    f.def_vmap(lambda size, batched, x: (f(x), batched[0]))
    slope, curve = np.sin(X) + X * np.cos(X), 2 * np.cos(X) - X * np.sin(X)
    for around in (lambda f: f, plait.jit):
        close(around(plait.vmap(f))(X), X * np.sin(X))
        close(around(plait.jacfwd(f))(X), np.diag(slope))
        close(around(plait.jacrev(f))(X), np.diag(slope))
        close(around(plait.hessian(lambda x: f(x).sum()))(X), np.diag(curve))
        along = plait.vmap(lambda t: plait.jvp(f, (X,), (t,)))
        close(around(along)(np.eye(3, dtype=np.float32))[1], np.diag(slope))


def test_a_derivative_that_does_not_differ_is_not_mapped():
    f = plait.custom_vmap(lambda x, y: 7 * x + y)
    f.def_vmap(lambda size, batched, x, y: (11 * x + y, True))
    push = lambda x, t: plait.jvp(lambda x: f(x, x), (x,), (t,))  # noqa: E731
    y, dot = plait.vmap(push, (0, None), (0, None))(X, np.float32(4))
    close(y, 12 * X)
    close(dot, 48)
    with pytest.raises(AxisError, match="varies along the mapped axis"):
        plait.vmap(push, (0, 0), (0, None))(X, X)


def test_nested_maps():
    """The innermost map uses the rule; what the rule does is mapped further out."""
    f, seen = cubed()
    x = np.stack([X, 2 * X])
    close(plait.vmap(plait.vmap(f, (0, None)), (0, None))(x, 2.0), 6 * x**3)
    assert seen == [(3, True, False)]


def test_trees_and_collectives():
    @plait.custom_vmap
    def f(p):
        return {"a": p["x"] + p["y"], "b": p["y"]}

    @f.def_vmap
    def _(size, batched, p):
        assert batched == [{"x": True, "y": False}] and size == 3
        return {"a": p["x"] * 2, "b": p["y"]}, {"a": True, "b": False}

    out = plait.vmap(f, ({"x": 0, "y": None},), {"a": 0, "b": None})({"x": X, "y": 5.0})
    close(out["a"], 2 * X)
    close(out["b"], 5)
    out = plait.vmap(plait.jit(lambda p: f(p)), ({"x": 0, "y": None},))({"x": X, "y": 5.0})
    close(out["b"], [5] * 3)


@pytest.mark.feature("A30")
def test_rules_may_bring_constants():
    """A forward rule that is mapped by a rule of its own, which brings an array."""

    @plait.custom_vmap
    def cosine(x):
        return lax.cos(x)

    @cosine.def_vmap
    def _(size, batched, x):
        return lax.cos(x) * pnp.asarray(np.array([2.0], np.float32)), True

    f = plait.custom_vjp(lambda x: lax.sin(x))
    f.defvjp(lambda x: (lax.sin(x), cosine(x)), lambda r, ct: (r * ct,), optimize_remat=True)
    for g in (f, plait.checkpoint(f), plait.jit(f)):
        close(plait.jit(plait.vmap(plait.grad(g)))(X), 2 * np.cos(X))
        close(plait.vmap(g)(X), np.sin(X))


def test_errors():
    f = plait.custom_vmap(lambda x: x)
    f.def_vmap(lambda size, batched, x: x)
    with pytest.raises(TypeRule, match="must return a pair"):
        plait.vmap(f)(X)
    f.def_vmap(lambda size, batched, x: (x.sum(), True))
    with pytest.raises(TypeRule, match="mapped as"):
        plait.vmap(plait.jit(lambda x: f(x)))(X)
    f.def_vmap(lambda size, batched, x: ((x, x), True))
    with pytest.raises(TreeMismatch, match="returned a result of structure"):
        plait.vmap(plait.jit(lambda x: f(x)))(X)

    def closing(x, y):
        g = plait.custom_vmap(lambda x: x * y)
        g.def_vmap(lambda size, batched, x: (x * y, True))
        return plait.jit(lambda x: g(x))(x)

    with pytest.raises(MissingRule, match="closes over a value that is being mapped"):
        plait.vmap(closing)(X, X)
    close(plait.vmap(closing, (0, None))(X, 2.0), 2 * X)


@pytest.mark.parametrize("run", [lambda f: f, plait.jit])
@pytest.mark.parametrize(
    ("out", "said"),
    [
        (lambda x: [x, x], [True, True]),
        (lambda x: (x, x, x), (True, True, True)),
        (lambda x: x, True),
        (lambda x: {"a": x, "b": x}, True),
    ],
)
def test_rules_return_the_structure_of_the_function(out, said, run):
    f = plait.custom_vmap(lambda x: (x, x))
    f.def_vmap(lambda size, mapped, x: (out(x), said))
    for _ in range(2):
        with pytest.raises(plait.errors.TreeMismatch, match="where the function returns"):
            run(plait.vmap(f))(pnp.arange(2.0))


@pytest.mark.parametrize("outer", [plait.custom_jvp, plait.custom_vjp])
def test_rules_of_the_function_inside_are_set_outside(outer):
    """The outermost decorator takes all rules, in whatever order decorators stand."""
    f = outer(plait.custom_vmap(lambda x: x * x))

    @f.def_vmap
    def _(axis_size, in_batched, x):
        return 3 * x * x, True

    if outer is plait.custom_jvp:
        f.defjvp(lambda xs, dots: (f(*xs), 5 * dots[0]))
    else:
        f.defvjp(lambda x: (f(x), None), lambda _, ct: (5 * ct,))
    close(plait.grad(f)(2.0), 5)
    close(plait.vmap(f)(X), 3 * X**2)
    back = plait.custom_vmap(plait.custom_jvp(lambda x: x * x))
    back.defjvp(lambda xs, dots: (xs[0] ** 2, 7 * dots[0]))
    close(plait.grad(back.fun)(2.0), 7)
    assert not hasattr(back, "defvjp") and not hasattr(back, "definition")
