"""closure_convert, custom_gradient, fwd_and_bwd: functions in other forms.

Invariant: derivatives are compared with those written by hand.
"""

import numpy as np
import pytest

import plait
from plait.ext.errors import TypeRule

jnp = plait.numpy


def test_what_is_closed_over_becomes_arguments():
    def f(y, n):
        converted, consts = plait.closure_convert(lambda x: x * y + n, 1.0)
        assert [c.aval.dtype for c in consts] == [np.float32]
        return converted(2.0, *[3 * c for c in consts])

    value, slope = plait.value_and_grad(f)(5.0, 1)
    assert (float(value), float(slope)) == (31.0, 6.0)
    assert float(plait.jit(f)(5.0, 1)) == 31.0
    fixed, consts = plait.closure_convert(lambda x: {"a": x + jnp.ones(2)}, 1.0)
    assert consts == []
    np.testing.assert_array_equal(fixed(2.0)["a"], [3.0, 3.0])
    with pytest.raises(TypeRule, match="made for"):
        fixed(jnp.ones(3))
    with pytest.raises(TypeRule):
        plait.closure_convert(3.0, 1.0)


@pytest.mark.parametrize("wrap", [lambda f: f, plait.jit], ids=["plain", "jit"])
def test_gradients_beside_values(wrap):
    @plait.custom_gradient
    def f(x, y, *, scale=1.0):
        z = jnp.sin(x)
        return {"out": z * y * scale}, lambda ct: (7 * ct["out"] * y, ct["out"] * z)

    dx, dy = wrap(plait.grad(lambda x, y: f(x, y, scale=2.0)["out"], argnums=(0, 1)))(0.5, 3.0)
    np.testing.assert_allclose([float(dx), float(dy)], [21.0, np.sin(0.5)], rtol=1e-6)
    np.testing.assert_allclose(float(f(0.5, 3.0)["out"]), 3 * np.sin(0.5), rtol=1e-6)


def test_gradients_of_one_argument_need_no_tuple():
    f = plait.custom_gradient(lambda x: (x**2, lambda ct: 10 * ct))
    g = plait.custom_gradient(lambda x: (x[0] * x[1], lambda ct: ((ct, 2 * ct),)))
    assert float(plait.grad(f)(3.0)) == 10.0
    assert [float(d) for d in plait.grad(g)((3.0, 4.0))] == [1.0, 2.0]
    with pytest.raises(TypeRule, match="value, pullback"):
        plait.custom_gradient(lambda x: x)(1.0)


@pytest.mark.parametrize("jitted", [True, False])
def test_a_pair_of_functions(jitted):
    fwd, bwd = plait.fwd_and_bwd(lambda x, y: jnp.sin(x) * y, argnums=(0, 1), jitted=jitted)
    out, pullback = fwd(0.5, 3.0)
    np.testing.assert_allclose(float(out), 3 * np.sin(0.5), rtol=1e-6)
    got = [float(d) for d in bwd(pullback, 2.0)]
    np.testing.assert_allclose(got, [6 * np.cos(0.5), 2 * np.sin(0.5)], rtol=1e-6)
    one, back = plait.fwd_and_bwd(lambda x: (x * x, x), argnums=0, has_aux=True, jitted=jitted)
    out, pullback, aux = one(3.0)
    assert (float(out), float(aux), float(back(pullback, 1.0))) == (9.0, 3.0, 6.0)


def test_other_names():
    assert plait.jacobian is plait.jacrev and plait.remat is plait.checkpoint


# ---- linear functions of integers ------------------------------------------------------------

A = np.array([[2, -1, 0], [5, 3, -2]])
INTEGER_MAPS = {
    "a multiple": (lambda x: 3 * x, 3 * np.eye(3, dtype=int)),
    "a matrix": (lambda x: jnp.asarray(A) @ x, A),
    "a sum": (lambda x: x.sum()[None], np.ones((1, 3), int)),
    "turned": (lambda x: x[::-1] - x, np.eye(3, dtype=int)[::-1] - np.eye(3, dtype=int)),
    "one": (lambda x: x[jnp.array([1, 1])], np.array([[0, 1, 0], [0, 1, 0]])),
    "nothing": (lambda x: jnp.zeros(2, int), np.zeros((2, 3), int)),
    "running": (lambda x: jnp.cumsum(x), np.tril(np.ones((3, 3), int))),
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", INTEGER_MAPS)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_transposes_of_maps_of_integers(name, dtype):
    """Exactly the transposed matrix, also where no float holds the numbers."""
    f, matrix = INTEGER_MAPS[name]
    x = np.arange(3).astype(dtype)
    fixed = lambda v: f(v).astype(dtype)  # noqa: E731
    rng = np.random.default_rng(0)
    top = 2**24 if dtype == "int32" else 2**55
    ct = rng.integers(-top, top, len(matrix)).astype(dtype)
    for run in (lambda g: g, plait.jit):
        (got,) = run(lambda c: plait.linear_transpose(fixed, x)(c))(ct)
        assert got.dtype == dtype
        np.testing.assert_array_equal(np.asarray(got), matrix.T.astype(dtype) @ ct)


WEAK = {
    "alone": lambda x: x * x,
    "times an array": lambda x: x * plait.numpy.float32(2),
    "plus an array": lambda x: x + plait.numpy.float32(1),
    "sum": lambda x: (x * plait.numpy.ones(3)).sum(),
    "twice": lambda x: x * x + plait.numpy.sin(x) * plait.numpy.float32(1),
    "converted": lambda x: x.astype("float32") * 1,
    "maximum": lambda x: plait.numpy.maximum(x, plait.numpy.float32(0)),
    "half": lambda x: x * plait.numpy.float16(2),
    "no derivative": lambda x: plait.numpy.float32(3),
}


@pytest.mark.parametrize("name", WEAK)
def test_gradients_of_python_numbers_are_as_weak(name):
    f = WEAK[name]
    for weak, x in ((True, 1.5), (False, np.float32(1.5)), (False, plait.numpy.float32(1.5))):
        value = f(plait.numpy.float32(1.5)) if not weak else plait.vjp(f, x)[0]
        for g in (plait.grad(f)(x), plait.jit(plait.grad(f))(x), plait.value_and_grad(f)(x)[1],
                  plait.vjp(f, x)[1](plait.numpy.ones_like(value))[0]):  # fmt: skip
            assert g.weak_type == weak and g.dtype == np.float32
            step = np.float32(1e-2)
            up, down = (float(f(plait.numpy.float32(1.5 + s))) for s in (step, -step))
            np.testing.assert_allclose(float(g), (up - down) / (2 * step), rtol=2e-2, atol=1e-3)
        assert (plait.grad(f)(x) * plait.numpy.float16(1)).dtype == (
            np.float16 if weak else np.float32
        )


DERIVATIVES = {
    "grad": plait.grad,
    "jacfwd": plait.jacfwd,
    "jacrev": plait.jacrev,
    "hessian": plait.hessian,
    "jvp": lambda f: lambda x: plait.jvp(f, (x,), (x,))[1],
    "vjp": lambda f: lambda x: plait.vjp(f, x)[1](1.0)[0],
    "linearize": lambda f: lambda x: plait.linearize(f, x)[1](x),
}


@pytest.mark.parametrize("wrap", [lambda f: f, plait.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("of", DERIVATIVES.values(), ids=DERIVATIVES)
@pytest.mark.parametrize("f", [lambda x: x, lambda x: x**2, lambda x: 3 * jnp.sin(x)])
def test_a_derivative_is_as_weakly_typed_as_its_argument(f, of, wrap):
    # Beside a float16 array, the derivative for a Python number must not widen the result.
    for x in (2.0, jnp.float32(2.0), jnp.float16(2.0)):
        value, derivative = f(jnp.asarray(x)), wrap(of(f))(x)
        assert derivative.weak_type == value.weak_type == isinstance(x, float)
        assert derivative.dtype == value.dtype
