"""vmap, jvp, linearize and vjp outside of jit, which are recorded, and compiled as one program when
they come again.

Invariant: what a mapped function gives is compared with a loop of Python over its elements, and
derivatives are compared with finite differences or a formula.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait._jit import found_programs
from plait.errors import AxisError, ConcretizationError, UnexpectedTracerError

F32 = np.float32
RNG = np.random.default_rng(0)
X = pnp.asarray(RNG.normal(size=(4, 3)).astype(F32))
W = pnp.asarray(RNG.normal(size=3).astype(F32))


@pytest.fixture(autouse=True, params=[1, 8], ids=["at once", "after some"])
def _when(request, monkeypatch):
    """A structure is compiled when it is seen first, or in the midst of the calls of a test."""
    plait.clear_caches()
    monkeypatch.setattr(found_programs, "_SIGHTS", request.param)


def alike(got, want):
    gs, tree = plait.tree.flatten(got)
    ws, wanted = plait.tree.flatten(want)
    assert tree == wanted
    for g, w in zip(gs, ws, strict=True):
        assert g.dtype == np.asarray(w).dtype
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=1e-6)


# ---- vmap --------------------------------------------------------------------------------------


def by_loop(f, x):
    outs = [plait.tree.map(np.asarray, f(row)) for row in x]
    return plait.tree.map(lambda *rows: np.stack(rows), *outs)


def tree_of(x):
    return {"a": pnp.sin(x) + 1 - x * 2, "b": (x.sum(), pnp.arange(3) * 2)}


def some_loops(x):
    c, ys = lax.scan(lambda c, a: (c + a, c * 2), 0.0, x)
    n = lax.while_loop(lambda n: n.sum() < 9, lambda n: n * 2 + 0.5, abs(x))
    return c, ys, lax.cond(c > 0, pnp.sin, lambda n: n * 2 + 1, n)


FUNCTIONS = {
    "elementwise": lambda x: pnp.tanh(pnp.sin(x) * W + 2) / 3,
    "tree": tree_of,
    "loops": some_loops,
    "itself": lambda x: x,
    "constant": lambda x: pnp.zeros(2) + 3,
    "numpy": lambda x: pnp.sin(x) * F32(2) + np.ones(3, F32),
    "cumulative": lambda x: pnp.cumsum(pnp.sort(x) * 2 + 1),
    "factorised": lambda x: pnp.linalg.svd(pnp.outer(x, x) + pnp.eye(3))[1],
    "gradient": plait.grad(lambda x: (pnp.tanh(x) * W).sum() ** 2),
    "second": plait.hessian(lambda x: (pnp.tanh(x) * W).sum() ** 2),
    "mapped": plait.vmap(lambda a: pnp.sin(a) * 2 + 1 - a),
    "jitted": plait.jit(lambda a: pnp.sin(a) * 2 + 1 - a),
    "checkpointed": plait.checkpoint(lambda a: pnp.sin(a) * 2 + 1 - a),
    "indexed": lambda x: x[pnp.argmax(x)] + x.at[1].set(x[0] * 2),
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_mapped_function_is_a_loop(name):
    f = FUNCTIONS[name]
    for i in range(10):
        x = X + i % 3
        alike(plait.vmap(f)(x), by_loop(f, x))


def test_keys():
    keys = plait.random.split(plait.random.key(0), 4)
    f = lambda k: plait.random.normal(k, (2,)) * 3 + 1  # noqa: E731
    for _ in range(10):
        alike(plait.vmap(f)(keys), by_loop(f, keys))


def test_axes():
    x = np.asarray(X)
    both = lambda a, b, c: (a * c["w"] + b, a.sum() - b[0] * 2)  # noqa: E731
    for _ in range(10):
        got = plait.vmap(both, in_axes=(1, None, 0), out_axes=(-1, 0))(X.T, W, {"w": X})
        np.testing.assert_allclose(got[0], (x * x + np.asarray(W)).T, rtol=1e-6)
        np.testing.assert_allclose(got[1], x.sum(1) - np.asarray(W)[0] * 2, rtol=1e-5)


def test_keyword_arguments_and_what_is_no_array():
    f = lambda x, how, y: how(x) * y * 2 + 1  # noqa: E731
    for how, of in [(pnp.sin, np.sin), (pnp.cos, np.cos)] * 5:
        got = plait.vmap(f, in_axes=(0, None))(X, how, y=X)
        np.testing.assert_allclose(got, of(X) * np.asarray(X) * 2 + 1, rtol=1e-5)


def test_results_that_do_not_vary():
    f = lambda x: (pnp.sin(x) * W + 1 - 2, W * 2, 5)  # noqa: E731
    for _ in range(10):
        got = plait.vmap(f, out_axes=(0, None, None))(X)
        np.testing.assert_allclose(got[0], np.sin(X) * np.asarray(W) - 1, rtol=1e-5)
        np.testing.assert_array_equal(got[1], np.asarray(W) * 2)
        assert got[2] == 5
        with pytest.raises(AxisError, match="varies along the mapped axis"):
            plait.vmap(f, out_axes=None)(X)
        got = plait.vmap(f)(X)
        np.testing.assert_array_equal(got[1], np.broadcast_to(np.asarray(W) * 2, (4, 3)))
        np.testing.assert_array_equal(got[2], [5] * 4)


def test_values_that_python_asks_for():
    for _ in range(10):
        with pytest.raises(ConcretizationError, match="test_recorded_maps.py"):
            plait.vmap(lambda x: pnp.sin(x) * 2 if x.sum() * 3 > 0 else x)(X)
        got = plait.vmap(lambda x: x * 2 if W.sum() < 1e9 else x)(X)
        np.testing.assert_array_equal(got, np.asarray(X) * 2)


def test_sizes_that_differ():
    """Integers of which arrays are made are sizes, also where they are recorded first."""
    for _ in range(10):
        got = plait.vmap(lambda n: pnp.arange(n).sum() + 2 * n)(np.array([3, 1, 4]))
        np.testing.assert_array_equal(got, [3 + 6, 0 + 2, 6 + 8])


def test_names_of_axes_and_chunks():
    for _ in range(10):
        got = plait.vmap(lambda x: x - lax.pmean(x, "i") * 2 + 1, axis_name="i")(X)
        np.testing.assert_allclose(got, X - np.mean(X, 0) * 2 + 1, rtol=1e-5, atol=1e-6)
        got = plait.vmap(lambda x: pnp.sin(x) * 2 + 1, chunk=3)(X)
        np.testing.assert_allclose(got, np.sin(X) * 2 + 1, rtol=1e-5)


def test_effects_come_once_for_each_element(capsys):
    def f(x):
        y = pnp.sin(x) * 2
        plait.debug.print("{}", y.sum() * 0)
        return y + 1

    for _ in range(10):
        got = plait.vmap(f)(X)
        plait.effects_barrier()
        assert len(capsys.readouterr().out.split()) == 4
        np.testing.assert_allclose(got, np.sin(X) * 2 + 1, rtol=1e-5)


def test_rules_of_the_user():
    @plait.custom_batching.custom_vmap
    def f(x):
        return x * 2

    @f.def_vmap
    def rule(size, mapped, x):
        return x * 3, True

    for _ in range(10):
        got = plait.vmap(lambda x: f(pnp.sin(x)) + 1)(X)
        np.testing.assert_allclose(got, np.sin(X) * 3 + 1, rtol=1e-5)


# ---- derivatives -------------------------------------------------------------------------------


def of_pair(x, n):
    return {"y": pnp.sum(pnp.sin(x) * x * n), "n": n * 2}, {"x": pnp.cos(x), "kept": "word"}


@pytest.mark.sampled(10)
@pytest.mark.parametrize("f", ["jvp", "linearize", "vjp"])
def test_trees_integers_and_what_is_beside(f):
    x, t = np.asarray(X), np.ones((4, 3), F32)
    slope = (np.cos(x) * x + np.sin(x)) * 3
    n, none = pnp.asarray(3), np.zeros((), plait.dtypes.float0)
    for _ in range(20):
        if f == "jvp":
            y, dy, aux = plait.jvp(of_pair, (X, n), (pnp.asarray(t), none), has_aux=True)
        elif f == "linearize":
            y, push, aux = plait.linearize(of_pair, X, n, has_aux=True)
            dy = push(pnp.asarray(t), none)
        else:
            y, pull, aux = plait.vjp(of_pair, X, n, has_aux=True)
            g, dn = pull({"y": F32(1), "n": none})
            assert dn.dtype == plait.dtypes.float0
            np.testing.assert_allclose(g, slope, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(y["y"], np.sum(np.sin(x) * x * 3), rtol=1e-5)
        assert y["n"] == 6
        np.testing.assert_allclose(aux["x"], np.cos(x), rtol=1e-5)
        assert aux["kept"] == "word"
        if f != "vjp":
            np.testing.assert_allclose(dy["y"], np.sum(slope), rtol=1e-4)
            assert dy["n"].dtype == plait.dtypes.float0


def test_linear_functions_are_trees_and_are_transformed():
    f = lambda x: pnp.tanh(x) * x  # noqa: E731
    slope = 1 / np.cosh(X) ** 2 * np.asarray(X) + np.tanh(X)
    for _ in range(20):
        _, pull = plait.vjp(f, X)
        leaves, tree = plait.tree.flatten(pull)
        again = tree.unflatten(leaves)
        np.testing.assert_allclose(again(pnp.ones((4, 3)))[0], slope, rtol=1e-4, atol=1e-5)
        got = plait.jit(lambda p, ct: p(ct)[0])(pull, pnp.ones((4, 3)))
        np.testing.assert_allclose(got, slope, rtol=1e-4, atol=1e-5)
        rows = plait.vmap(lambda ct: pull(ct)[0])(pnp.ones((2, 4, 3)))
        np.testing.assert_allclose(rows[1], slope, rtol=1e-4, atol=1e-5)
        twice = plait.grad(lambda ct: pnp.sum(pull(ct)[0] * 2))(pnp.ones((4, 3)))
        np.testing.assert_allclose(twice, 2 * slope, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("transformed", [
    lambda f, x: plait.jvp(f, (x,), (x,)),
    lambda f, x: plait.linearize(f, x)[1](x),
    lambda f, x: plait.vjp(f, x),
    lambda f, x: plait.vmap(f)(x),
], ids=["jvp", "linearize", "vjp", "vmap"])  # fmt: skip
def test_values_that_escape(transformed):
    kept = []

    def f(x):
        kept.append(pnp.sin(x))
        return kept[-1] * 2 + 1

    for _ in range(10):
        transformed(f, X)
        with pytest.raises(UnexpectedTracerError, match="test_recorded_maps.py"):
            kept.pop() + 1


def test_branches_of_python():
    def f(x):
        return pnp.sum(pnp.sin(x)) * 2 if pnp.sum(x) > 0 else pnp.sum(x**3) + 1

    for sign in (1.0, -1.0) * 6:
        x = np.array([1.0, 2.0], F32) * F32(sign)
        want = 2 * np.cos(x) if sign > 0 else 3 * x**2
        given = pnp.asarray(x)
        np.testing.assert_allclose(plait.vjp(f, given)[1](F32(1))[0], want, rtol=1e-5)
        t = pnp.asarray(np.array([0.5, 1.5], F32))
        np.testing.assert_allclose(plait.jvp(f, (given,), (t,))[1], want @ t, rtol=1e-5)
        np.testing.assert_allclose(plait.linearize(f, given)[1](t), want @ t, rtol=1e-5)


def test_each_inside_each():
    """Every one outside, with every other inside: the second derivative of a sum of sines."""
    f = lambda x: pnp.sum(pnp.sin(x) * 2)  # noqa: E731
    ones = pnp.ones((4, 3))
    inner = {
        "grad": plait.grad(f),
        "vjp": lambda x: plait.vjp(f, x)[1](pnp.ones(()))[0],
        "jvp": lambda x: plait.vmap(lambda t: plait.jvp(f, (x,), (t.reshape(x.shape),))[1])(
            pnp.eye(x.size)
        ).reshape(x.shape),
        "linearize": lambda x: plait.vmap(lambda t: plait.linearize(f, x)[1](t.reshape(x.shape)))(
            pnp.eye(x.size)
        ).reshape(x.shape),
    }
    want = -2 * np.sin(X)
    for _ in range(9):
        for g in inner.values():
            np.testing.assert_allclose(plait.vmap(g)(X), 2 * np.cos(X), rtol=1e-4)
            along = plait.jvp(g, (X,), (ones,))[1]
            np.testing.assert_allclose(along, want, rtol=1e-4)
            np.testing.assert_allclose(plait.linearize(g, X)[1](ones), want, rtol=1e-4)
            np.testing.assert_allclose(plait.vjp(g, X)[1](ones)[0], want, rtol=1e-4)
            total = plait.grad(lambda x, g=g: pnp.sum(g(x)))(X)
            np.testing.assert_allclose(total, want, rtol=1e-4)
