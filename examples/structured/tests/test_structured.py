"""Structured matrices give what their arrays give, and products keep their structure."""

import numpy as np
import pytest
from plait_structured import Diagonal, LowRank, register, structured

import plait
import plait.numpy as pnp
from plait import lax
from plait.ext.ops import elementwise as el

rng = np.random.default_rng(0)
normal = lambda *shape: rng.normal(size=shape).astype(np.float32)  # noqa: E731
D = Diagonal(normal(8))
L = LowRank(normal(8, 8), normal(8, 2), normal(2, 8))
X = normal(8)


def repeated(m, x):
    return lax.fori_loop(0, 3, lambda i, y: pnp.tanh(m @ y), x)


FUNCTIONS = {
    "product": lambda m, x: m @ x,
    "from the left": lambda m, x: x @ m,
    "transposed": lambda m, x: m.T @ x,
    "sum": lambda m, x: (m + m).sum(0) * x,
    "other": lambda m, x: pnp.exp(m)[0] + x,
    "loop": repeated,
    "carried": lambda m, x: lax.fori_loop(0, 2, lambda i, n: n @ m, m) @ x,
    "rows": lambda m, x: lax.scan(lambda c, row: (c, row @ x), 0.0, m)[1],
    "branch": lambda m, x: lax.cond(x[0] > 9, lambda: m, lambda: pnp.ones((8, 8))) @ x,
    "mapped": lambda m, x: plait.vmap(lambda row: row * 2.0)(m)[1],
    "columns": lambda m, x: plait.vmap(lambda y: m @ y, 1, 1)(pnp.stack([x, 2 * x], 1)).sum(1),
    "gradient": lambda m, x: plait.grad(lambda x: (m @ x).sum())(x),
    "jit": plait.jit(lambda m, x: m @ x),
    "checkpoint": plait.checkpoint(lambda m, x: pnp.tanh(m @ x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("matrix", [D, L], ids=["diagonal", "low rank"])
def test_they_give_what_arrays_give(name, matrix):
    f = FUNCTIONS[name]
    want = f(np.asarray(matrix.dense()), X)
    for way in (lambda f: f, plait.jit):
        np.testing.assert_allclose(way(structured(f))(matrix, X), want, rtol=2e-4, atol=1e-4)


def products(f, *args):
    """The shapes of the operands of products."""
    program = plait.make_program(f)(*args)
    found = [e for e in program.eqns if e.prim.name == "core.dot_general"]
    return [tuple(a.aval.shape for a in e.inputs) for e in found]


def test_the_update_is_never_multiplied_out():
    assert ((8, 2), (2, 8)) in products(lambda m, x: m.dense() @ x, L, X)
    assert ((8, 2), (2, 8)) not in products(structured(lambda m, x: m @ x), L, X)
    assert not products(structured(lambda m, x: m @ x), D, X)


def test_structure_is_kept():
    both = structured(lambda a, b: (a @ b + a.T) * b)(D, Diagonal(X))
    assert isinstance(both, Diagonal)
    np.testing.assert_allclose(both.d, (D.d * X + D.d) * X, rtol=1e-5)
    turned = structured(lambda m: m.T)(L)
    assert isinstance(turned, LowRank)
    np.testing.assert_allclose(turned.dense(), np.asarray(L.dense()).T, rtol=1e-5)


def test_fine_tuning():
    """Derivatives with respect to the factors of the update."""
    loss = lambda a, b: (structured(lambda m, x: m @ x)(LowRank(L.w, a, b), X) ** 2).sum()  # noqa: E731
    got = plait.jit(plait.grad(loss, argnums=(0, 1)))(L.a, L.b)
    y = 2 * (np.asarray(L.dense()) @ X)
    np.testing.assert_allclose(got[0], np.outer(y, L.b @ X), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(got[1], np.outer(L.a.T @ y, X), rtol=1e-3, atol=1e-4)


def test_on_devices_and_exported(rows):
    mesh, cut = rows
    local = lambda m, x: m @ x  # noqa: E731
    f = plait.shard_map(local, mesh=mesh, in_specs=(cut, plait.P()), out_specs=cut)
    np.testing.assert_allclose(structured(f)(D, X), D.d * X, rtol=1e-5)
    made = plait.jit(lambda w, a, b, x: structured(repeated)(LowRank(w, a, b), x))
    file = plait.export.export(made)(L.w, L.a, L.b, X).serialize()
    want = repeated(np.asarray(L.dense()), X)
    np.testing.assert_allclose(
        plait.export.deserialize(file).call(L.w, L.a, L.b, X), want, rtol=1e-4
    )


def test_rules_of_others():
    register(el.sign, Diagonal)(lambda m: Diagonal(pnp.sign(m.d)))
    assert isinstance(structured(pnp.sign)(D), Diagonal)


def test_it_conforms():
    def dense(f):
        def of(d):
            found = structured(f)(Diagonal(d))
            return found.dense() if isinstance(found, Diagonal) else found

        return of

    truth = lambda f: lambda d: f(Diagonal(pnp.asarray(d)).dense())  # noqa: E731
    report = plait.testing.transform_suite(dense, truth, [X])
    assert report.total > 50


def test_custom_derivatives_are_kept():
    """Also where the operand of the function with the rule has fewer numbers than its array."""
    rounded = plait.custom_vjp(pnp.round)
    rounded.defvjp(lambda x: (pnp.round(x), None), lambda _, ct: (ct * 3.0,))
    loss = lambda d: (structured(rounded)(Diagonal(d)) * np.arange(64.0).reshape(8, 8)).sum()  # noqa: E731
    for way in (lambda f: f, plait.jit):
        np.testing.assert_allclose(way(plait.grad(loss))(X), 27.0 * np.arange(8))
