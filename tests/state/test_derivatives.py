"""Derivatives of functions that make, read and write references, against finite differences and
values that JAX 0.10.2 gives for the same programs.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait.errors import ArgumentError, MissingRule, OperandTypeError, UnexpectedTracerError


def multiplied(x):
    q = plait.new_ref(x)
    q[...] = q[...] * x
    return q[...]


def branched(x):
    q = plait.new_ref(0.0)
    lax.cond(x > 0, lambda: q.write(x * x), lambda: q.write(-x))
    return q[...]


def looped(x):
    q = plait.new_ref(1.0)
    lax.fori_loop(0, 3, lambda i, _: q.write(q[...] * x), None)
    return q[...]


def scanned(x):
    table, last = plait.new_ref(pnp.zeros(4)), plait.new_ref(x)

    def body(c, i):
        table[i] = c + last[...]
        last[...] = pnp.sin(last[...]) * x
        return c * x, table[...].sum()

    c, ys = lax.scan(body, 1.0, pnp.arange(4))
    return c + (ys * pnp.arange(4.0)).sum() + plait.freeze(last)


def jitted(x):
    q = plait.new_ref(pnp.stack([x, x * x]))

    @plait.jit
    def step(r, y):
        r[0] += y * r[1]
        q_of = r[...]
        return q_of.sum()

    return step(q, x) * q[0]


def checkpointed(x):
    q = plait.new_ref(x)

    @plait.checkpoint
    def step(y):
        q[...] = pnp.sin(q[...]) * y
        return y * q[...]

    return step(x) + step(q[...])


def added(x):
    q = plait.new_ref(pnp.zeros(3))
    plait.ref.addupdate(q, pnp.array([0, 0, 2]), pnp.stack([x, x * x, pnp.cos(x)]))
    return (q[...] * pnp.arange(1.0, 4.0)).sum() * plait.ref.swap(q, 1, x)


def swapped(x):
    q = plait.new_ref(x * 3)
    return plait.ref.swap(q, ..., x) * q[...]


FUNCTIONS = [multiplied, branched, looped, scanned, jitted, checkpointed, added, swapped]


def in_numpy(f, x):
    """The function at a Python number, outside of every transformation."""
    return float(f(pnp.float32(x)))


def slope(f, x, h=1e-2):
    """The derivative by four values (their error is of the order of h**4)."""
    near, far = (
        (in_numpy(f, x + h) - in_numpy(f, x - h)),
        (in_numpy(f, x + 2 * h) - in_numpy(f, x - 2 * h)),
    )
    return (8 * near - far) / (12 * h)


def test_values_are_those_of_python():
    """The table and the loop written out."""
    x, last, table, c, total = 0.7, 0.7, np.zeros(4), 1.0, 0.0
    for i in range(4):
        table[i] = c + last
        last, c = np.sin(last) * x, c * x
        total += i * table.sum()
    assert in_numpy(scanned, x) == pytest.approx(c + total + last, rel=1e-6)
    assert in_numpy(added, 0.5) == 0  # what `swap` returned was 0
    assert in_numpy(swapped, 2.0) == 12


@pytest.mark.sampled(10)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_every_mode_gives_the_slope(f):
    x = 0.7
    want = pytest.approx(slope(f, x), rel=2e-3, abs=2e-3)
    grad = plait.grad(f)
    got = {
        "grad": grad(x),
        "jit of grad": plait.jit(grad)(x),
        "grad of jit": plait.grad(plait.jit(f))(x),
        "jvp": plait.jvp(f, (x,), (1.0,))[1],
        "jacrev": plait.jacrev(f)(x),
        "linearize": plait.linearize(f, x)[1](1.0),
        "checkpoint": plait.grad(plait.checkpoint(f))(x),
        "vmap of grad": plait.vmap(grad)(pnp.array([x, 1.0]))[0],
        "grad of vmap": plait.grad(lambda x: plait.vmap(f)(pnp.stack([x, x])).sum() / 2)(x),
        "with a branch of Python": plait.grad(lambda x: f(x) if x > 0 else x)(x),
    }
    for name, value in got.items():
        assert float(value) == want, name


@pytest.mark.sampled(10)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_second_derivatives(f):
    h, x = 1e-2, 0.7
    grad = plait.grad(f)
    want = (float(grad(x + h)) - float(grad(x - h))) / (2 * h)
    for second in (plait.grad(grad), plait.jit(plait.grad(grad)), plait.hessian(f)):
        assert float(second(x)) == pytest.approx(want, rel=2e-2, abs=2e-2)


def test_jax_gives_these():
    assert float(plait.grad(multiplied)(3.0)) == 6.0
    assert float(plait.grad(branched)(3.0)) == 6.0
    assert float(plait.grad(looped)(3.0)) == 27.0
    assert float(plait.grad(plait.checkpoint(multiplied))(3.0)) == 6.0


# ---- references of outside -------------------------------------------------------------------


def test_what_is_read_of_outside_is_a_constant():
    q = plait.new_ref(2.0)
    f = lambda x: q[...] * x * x  # noqa: E731
    for g in (plait.grad(f), plait.jit(plait.grad(f)), plait.grad(plait.jit(f))):
        q[...] = 2.0
        assert float(g(3.0)) == 12.0
        q[...] = 5.0
        assert float(g(3.0)) == 30.0


@pytest.mark.parametrize("staged", [False, True])
def test_what_carries_no_derivative_is_written(staged):
    """JAX's values, too: (2.0, 5.0) and (2.0, 9.0)."""
    for value, want in ((lambda x: 5.0, 5.0), (lambda x: lax.stop_gradient(x * x), 9.0)):
        q = plait.new_ref(2.0)

        def f(x, q=q, value=value):
            q[...] = value(x)
            return x * 2

        g = plait.grad(f)
        assert float((plait.jit(g) if staged else g)(3.0)) == 2.0 and float(q[...]) == want


def test_a_counter_in_a_function_that_is_differentiated():
    calls = plait.new_ref(0)

    @plait.jit
    def loss(x):
        calls[...] += 1
        return (x * x).sum()

    step = plait.jit(plait.value_and_grad(loss))
    for _ in range(3):
        value, g = step(pnp.arange(3.0))
    assert (float(value), g.tolist(), int(calls[...])) == (5.0, [0, 2, 4], 3)
    assert plait.grad(loss)(pnp.arange(3.0)).tolist() == [0, 2, 4] and int(calls[...]) == 4


def _written_in_jit(q):
    def f(x):
        plait.jit(lambda: q.write(x * x))()
        return x * 2

    return f


def _written_in_scan(q):
    return lambda x: lax.scan(lambda c, _: (c, q.write(c)), x, None, 2)[0]


WRITING = {
    "at once": lambda q: lambda x: (q.write(x * x), x * 2)[1],
    "in jit": _written_in_jit,
    "in scan": _written_in_scan,
    "in checkpoint": lambda q: plait.checkpoint(lambda x: (q.write(x), x)[1]),
}


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("where", WRITING)
def test_no_derivative_is_lost_in_a_reference(where, staged):
    q = plait.new_ref(1.0)
    g = plait.grad(WRITING[where](q))
    with pytest.raises(ArgumentError, match="written into a reference of outside") as e:
        (plait.jit(g) if staged else g)(3.0)
    assert "has_aux" in e.value.fix and __file__ in str(e.value)
    assert float(q[...]) == 1


def test_a_reference_is_no_argument_to_differentiate():
    q = plait.new_ref(2.0)
    with pytest.raises(OperandTypeError, match="with respect to"):
        plait.grad(lambda r: r[...] * 2)(q)
    assert float(plait.grad(lambda x, r: x * r[...])(3.0, q)) == 2


def test_a_reference_does_not_leave_what_is_differentiated():
    with pytest.raises(OperandTypeError):
        plait.grad(lambda x: plait.new_ref(x))(1.0)
    _, kept = plait.grad(lambda x: (x, plait.new_ref(x)), has_aux=True)(1.0)
    with pytest.raises(UnexpectedTracerError, match="outlived grad"):
        kept[...]


# ---- rules of users --------------------------------------------------------------------------


def test_a_backward_rule_writes_what_it_is_given():
    """The cotangent that passes by is stored: JAX's values, (2.0, 1.0)."""
    q = plait.new_ref(0.0)

    @plait.custom_vjp
    def f(x):
        return x * 2

    def backward(_, g):
        q[...] += g
        return (g * 2,)

    f.defvjp(lambda x: (x * 2, None), backward)
    assert (float(plait.grad(f)(1.0)), float(q[...])) == (2.0, 1.0)


def test_a_function_with_a_rule_reads_nothing_of_outside():
    q = plait.new_ref(2.0)

    @plait.custom_jvp
    def f(x):
        return x * q[...]

    f.defjvp(lambda p, t: (f(p[0]), t[0] * 7))
    assert float(f(3.0)) == 6  # done at once, it is Python
    with pytest.raises(MissingRule, match="rule of its own") as e:
        plait.jit(f)(3.0)
    assert "ref[...]" in e.value.fix
