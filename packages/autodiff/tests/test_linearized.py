"""What linearize and vjp return, as values: in and out of jit, in loops, as residuals.

Invariant: derivatives are compared with those written out; what is kept is counted.
"""

import gc
import weakref

import numpy as np
import pytest

import plait
from plait import lax
from plait_autodiff import custom_vjp, grad, linearize, vjp

pnp = plait.numpy
X = np.float32([0.5, -1.0, 2.0])
CT = np.float32([1.0, 2.0, 3.0])


def f(x):
    return lax.sin(x) * 2.0


WANT = 2 * np.cos(X) * CT


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-6)


def test_a_pullback_is_a_tree():
    """Its leaves are the residuals, whether it was made by Python or under jit."""
    (_, eager), (_, staged) = vjp(f, X), plait.jit(lambda x: vjp(f, x))(X)
    for pull in (eager, staged):
        (kept,) = plait.tree.leaves(pull)
        close(kept, np.cos(X))
        close(pull(CT)[0], WANT)
        close(plait.jit(pull)(CT)[0], WANT)
        close(plait.jit(lambda p, ct: p(ct))(pull, CT)[0], WANT)
        close(plait.jit(lambda ct, p=pull: p(ct))(CT)[0], WANT)
        scaled = plait.tree.map(lambda v: 10 * v, pull)
        close(scaled(CT)[0], 10 * WANT)
    _, push = plait.jit(lambda x: linearize(lambda x: {"a": f(x), "n": 3}, x))(X)
    dot = plait.jit(lambda p, t: p(t))(push, CT)
    close(dot["a"], WANT)
    assert repr(eager) == "<pullback of f>" and repr(push).startswith("<pushforward of ")


def test_in_loops():
    """It is closed over, carried, and stacked."""
    pull = vjp(f, X)[1]
    turns = lambda ct: lax.scan(lambda c, _: (pull(c)[0], None), ct, None, 3)[0]  # noqa: E731
    close(turns(CT), (2 * np.cos(X)) ** 3 * CT)
    close(grad(lambda ct: turns(ct).sum())(CT), (2 * np.cos(X)) ** 3)
    carried = lambda p: lax.fori_loop(0, 2, lambda i, p: plait.tree.map(lambda v: v * 2, p), p)  # noqa: E731
    close(carried(pull)(CT)[0], 4 * WANT)
    stacked = lax.map(lambda x: vjp(f, x)[1], X)
    close(lax.map(lambda px: px[0](px[1])[0], (stacked, CT)), WANT)
    chosen = lax.cond(X[0] > 0, lambda p: p, lambda p: plait.tree.map(lambda v: -v, p), pull)
    close(chosen(CT)[0], WANT)


def test_as_a_residual():
    """The forward rule returns what vjp returns; derivatives of it go through the residuals."""
    g = custom_vjp(f)
    g.defvjp(lambda x: vjp(f, x), lambda pull, ct: pull(3.0 * ct))
    for h in (g, plait.jit(g), plait.checkpoint(g)):
        close(grad(lambda x, h=h: (h(x) * CT).sum())(X), 3 * WANT)
    second = grad(lambda x: plait.jit(lambda x: vjp(f, x)[1])(x)(CT)[0].sum())
    close(second(X), -2 * np.sin(X) * CT)


def test_what_is_closed_over_is_a_leaf():
    """So a pullback is complete: nothing of the function is behind it but its residuals."""
    w = pnp.asarray(np.eye(3, dtype=np.float32) * 2)
    pull = vjp(lambda x: w @ x, X)[1]
    (leaf,) = plait.tree.leaves(pull)
    np.testing.assert_array_equal(leaf, w)
    a, b = plait.tree.structure(pull), plait.tree.structure(pull)
    assert a == b and hash(a) == hash(b)
    close(plait.tree.unflatten(a, [leaf * 2])(CT)[0], 4 * CT)


def test_neither_arguments_nor_results_are_kept():
    x = pnp.asarray(X)
    ref = weakref.ref(x)
    y, pull = vjp(f, x)
    held = weakref.ref(y)
    del x, y
    gc.collect()
    assert ref() is None and held() is None
    close(pull(CT)[0], WANT)


def test_integers_and_results_that_do_not_vary():
    _, pull = plait.jit(lambda x, n: vjp(lambda x, n: (x * n, n + 1), x, n))(X, np.int32(2))
    gx, gn = pull((CT, np.zeros((), plait.float0)))
    close(gx, 2 * CT)
    assert gn.dtype == plait.float0
    with pytest.raises(TypeError, match="takes one cotangent, a tree like the result"):
        pull(CT, CT)


# ---- transposed functions as trees ------------------------------------------------------------

MATRIX = np.array([[2.0, -1.0, 0.5], [0.0, 3.0, 1.0]], np.float32)


def _through_jit(make):
    return plait.jit(make)


def _through_a_loop(make):
    def run(m):
        _, many = plait.lax.scan(lambda c, _: (c, make(m)), 0, None, length=2)
        return plait.tree.map(lambda x: x[1], many)

    return run


def _as_an_argument(make):
    return lambda m: plait.jit(lambda f: plait.tree_util.Partial(plait.jit(lambda f, c: f(c)), f))(
        make(m)
    )


@pytest.mark.parametrize("through", [lambda make: make, _through_jit, _through_a_loop,
                                     _as_an_argument])  # fmt: skip
@pytest.mark.parametrize("closed", ["an argument", "a constant"])
def test_transposed_functions_go_in_and_out(through, closed):
    """The transpose of x -> (M x, [x, 2 x]): against the matrix."""
    x, c, d = np.ones(3, np.float32), np.float32([1, 2]), np.float32([3, 4, 5])

    def make(m):
        m = m if closed == "an argument" else plait.numpy.asarray(MATRIX)
        return plait.linear_transpose(lambda x: (m @ x, [x, 2 * x]), x)

    transposed = through(make)(MATRIX)
    (got,) = transposed((c, [d, d]))
    np.testing.assert_allclose(got, MATRIX.T @ c + 3 * d, rtol=1e-6)
    (got,) = plait.jit(lambda f, c: f((c, [d, d])))(transposed, c)
    np.testing.assert_allclose(got, MATRIX.T @ c + 3 * d, rtol=1e-6)


def test_transposed_functions_of_integers_go_out_of_jit():
    held = np.array([[3, 0], [-1, 2**20]])
    f = plait.jit(lambda m: plait.linear_transpose(lambda x: m @ x, np.arange(2)))(held)
    np.testing.assert_array_equal(f(np.array([5, 7]))[0], held.T @ np.array([5, 7]))
    with pytest.raises(plait.errors.OperandTypeError, match="transposed|transpose"):
        f(np.ones(2))
