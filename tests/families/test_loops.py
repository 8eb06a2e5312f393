"""Loops that turn a varying number of times, in reverse: equal to the loop written out."""

import numpy as np
import pytest

import plait
from plait import lax
from plait import numpy as jnp
from plait.ext.ir import programs_in
from plait.ext.ops.control_flow import while_
from plait_autodiff.bounded_loops import levels

A = np.float32([[0.6, 0.3], [0.1, 0.8]])
X = np.float32([1.0, -2.0])
STEPS = 5


def turn(a, x):
    return jnp.tanh(a @ x) + 0.5 * x


def unrolled(a, x, n=STEPS):
    for _ in range(n):
        x = turn(a, x)
    return (x * x).sum()


def looped(a, x, n=STEPS, max_steps=40):
    """`n` may be a value: nobody knows how often it turns."""
    test = lambda s: s[0] < n  # noqa: E731
    body = lambda s: (s[0] + 1, turn(a, s[1]))  # noqa: E731
    x = lax.while_loop(test, body, (0, x), max_steps=max_steps)[1]
    return (x * x).sum()


def close(got, want, rtol=1e-5):
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=rtol, atol=1e-6)


def test_gradient_of_a_bounded_while_loop():
    want = plait.grad(unrolled, (0, 1))(A, X)
    close(plait.grad(looped, (0, 1))(A, X), want)
    close(plait.jit(plait.grad(looped, (0, 1)))(A, X, jnp.asarray(STEPS)), want)


def test_bounded_fori_loop_whose_ends_are_values():
    def f(a, x, n):
        x = lax.fori_loop(0, n, lambda i, x: turn(a, x), x, max_steps=8)
        return (x * x).sum()

    got = plait.jit(plait.grad(f, (0, 1)))(A, X, STEPS)
    close(got, plait.grad(unrolled, (0, 1))(A, X))


def test_second_order_and_forward_mode():
    f, g = lambda x: looped(A, x), lambda x: unrolled(A, x)
    want = plait.hessian(g)(X)
    close(
        [plait.hessian(f)(X), plait.jacrev(plait.grad(f))(X), plait.jacfwd(plait.jacfwd(f))(X)],
        [want] * 3,
    )


def test_mapping_loops_of_different_lengths():
    xs, ns = np.stack([X, 2 * X, -X]), np.int32([0, 2, 5])
    want = [plait.grad(unrolled, 1)(A, x, int(n)) for x, n in zip(xs, ns)]
    each = plait.vmap(lambda x, n: plait.grad(looped, 1)(A, x, n))
    total = plait.grad(lambda xs: plait.vmap(lambda x, n: looped(A, x, n))(xs, ns).sum())
    close(each(xs, ns), want)
    close(total(xs), want)


def test_the_bound_ends_the_loop_and_its_derivative():
    for bound in (0, 3):
        value, slope = plait.value_and_grad(looped, 1)(A, X, 100, bound)
        want = plait.value_and_grad(unrolled, 1)(A, X, bound)
        close([value, slope], want)
    assert int(lax.fori_loop(0, 10, lambda i, x: x + 1, 0, max_steps=4)) == 4


def test_in_other_loops_and_again():
    """A bounded loop in a scan, under checkpoint, and in another bounded loop."""

    def outer(inner):
        return lambda a, x: lax.scan(lambda c, _: (inner(a, c), None), x, None, length=2)[0].sum()

    def once(a, x, n=2):
        return lax.fori_loop(0, jnp.asarray(n), lambda i, x: turn(a, x), x, max_steps=3)

    def nested(a, x):
        body = lambda s: (s[0] + 1, once(a, s[1]))  # noqa: E731
        return lax.while_loop(lambda s: s[0] < 1, body, (0, x), max_steps=2)[1]

    ways = {
        "plain": once,
        "checkpoint": plait.checkpoint(once),
        "nested": nested,
    }

    def every(a, x):
        first = [plait.grad(outer(f), (0, 1))(a, x) for f in ways.values()]
        return first, plait.jvp(plait.grad(outer(plait.checkpoint(once)), 1), (a, x), (a, x))[1]

    plain = outer(lambda a, x: turn(a, turn(a, x)))
    want = plait.grad(plain, (0, 1))(A, X)
    again = plait.jvp(plait.grad(plain, 1), (A, X), (A, X))[1]
    first, second = plait.jit(every)(A, X)
    for got in first:
        close(got, want)
    close([second], [again], 1e-4)


def test_a_loop_of_linear_turns_is_transposed():
    def f(x):
        return lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, A @ s[1]), (0, x), max_steps=3
        )[1]

    (got,) = plait.linear_transpose(f, X)(X)
    close([got], [np.linalg.matrix_power(A.T, 3) @ X])


def test_few_carries_are_kept():
    """Of n turns some d * n**(1/d) carries are residuals, and no other value of the body."""
    most, wide = 1000, np.ones(50, np.float32)

    def f(x):
        body = lambda s: (s[0] + 1, jnp.sin(s[1]) * jnp.cos(s[1]))  # noqa: E731
        return lax.while_loop(lambda s: s[0] < 900, body, (0, x), max_steps=most)[1].sum()

    stats = plait.jit(plait.grad(f)).lower(wide).compile().memory_analysis()
    assert stats.temp_size_in_bytes < 6 * sum(levels(most)) * wide.nbytes < most * wide.nbytes / 2


@pytest.mark.parametrize("most", [0, 1, 31, 32, 33, 1000, 1025, 40000])
def test_nested_scans_suffice(most):
    assert np.prod(levels(most)) >= most
    assert max(levels(most)) <= 32


def test_a_loop_without_bound_says_what_to_write():
    with pytest.raises(NotImplementedError, match="max_steps=n") as error:
        plait.grad(looped)(A, X, STEPS, None)
    assert __file__ in str(error.value)
    with pytest.raises(TypeError, match="cannot turn -1 times"):
        looped(A, X, max_steps=-1)


def test_the_bound_survives_transformations():
    def loops(p):
        return [e.params.get("max_steps") for e in p.eqns if e.prim is while_] + [
            n for e in p.eqns for q in programs_in(e.params) for n in loops(q)
        ]

    many = plait.make_program(plait.vmap(lambda x, n: looped(A, x, n)))(
        np.stack([X, X]), np.arange(2)
    )
    along = plait.make_program(lambda x: plait.jvp(lambda x: looped(A, x), (x,), (x,)))(X)
    assert loops(many) == loops(along) == [40]
