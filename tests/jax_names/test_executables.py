"""`jax.experimental.serialize_executable`, `jax.memory`, and `lobpcg_standard`.

Values are compared with numpy's.
"""

import pickle

import numpy as np
import pytest

X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def saved(load):
    return load("jax.experimental.serialize_executable")


def test_an_executable_is_saved_and_loaded(jax, saved):
    kept = jax.numpy.arange(3.0, dtype="float32")

    def f(x, n, *, more):
        return {"a": x * n + more["k"] + kept, "b": [x.sum()]}

    compiled = jax.jit(f, static_argnums=1).lower(X, 3, more={"k": 1}).compile()
    data, in_tree, out_tree = saved.serialize(compiled)
    assert isinstance(data, bytes)
    assert (in_tree, out_tree) == (compiled.in_tree, compiled.out_tree)
    args = pickle.loads(pickle.dumps((data, in_tree, out_tree)))
    loaded = saved.deserialize_and_load(*args)
    want, got = compiled(X, more={"k": 1}), loaded(X, more={"k": 1})
    np.testing.assert_array_equal(got["a"], X * 3 + 1 + np.arange(3))
    np.testing.assert_array_equal(got["a"], want["a"])
    np.testing.assert_array_equal(got["b"][0], X.sum())
    assert got["a"].dtype == want["a"].dtype
    with pytest.raises((TypeError, ValueError)):
        loaded(np.ones(4, np.float32), more={"k": 1})


def test_memory_spaces(jax):
    spaces = jax.memory.Space
    for space in (spaces.Device, spaces.Host, spaces.Any):
        out = jax.device_put(X, space)
        np.testing.assert_array_equal(out, X)
        assert out.devices() == {jax.devices()[0]}
        np.testing.assert_array_equal(
            jax.jit(lambda x, s=space: jax.device_put(x, s) * 2)(X), X * 2
        )
        assert pickle.loads(pickle.dumps(space)) is space
    last = jax.device_put(X, jax.devices()[-1])
    assert jax.device_put(last, spaces.Device).devices() == {jax.devices()[-1]}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("how", ["matrix", "function", "jit"])
def test_the_greatest_eigenvalues(jax, load, dtype, how):
    linalg = load("jax.experimental.sparse.linalg")
    rng, n, k = np.random.default_rng(0), 60, 4
    q = np.linalg.qr(
        rng.normal(size=(n, n)) + (1j * rng.normal(size=(n, n)) if "c" in dtype else 0)
    )[0]
    spectrum = np.concatenate([[100.0, 50.0, 20.0, 9.0], rng.uniform(-5, 5, n - k)])
    a = ((q * spectrum) @ q.conj().T).astype(dtype)
    start = rng.normal(size=(n, k)).astype(dtype)
    operator = a if how == "matrix" else lambda v: jax.numpy.asarray(a) @ v
    run = lambda s: linalg.lobpcg_standard(operator, s, m=200)  # noqa: E731
    theta, u, steps = (jax.jit(run) if how == "jit" else run)(start)
    close = 1e-3 if dtype == "float32" else 1e-8
    np.testing.assert_allclose(theta, [100, 50, 20, 9], rtol=close)
    u = np.asarray(u)
    np.testing.assert_allclose(u.conj().T @ u, np.eye(k), atol=close)
    np.testing.assert_allclose(a @ u, u * np.asarray(theta), atol=close * 100)
    assert 0 < int(steps) < 200
    _, _, few = linalg.lobpcg_standard(operator, start, m=1)
    assert int(few) == 1


def test_operands_that_do_not_fit(load):
    f = load("jax.experimental.sparse.linalg").lobpcg_standard
    a, x = np.eye(20, dtype=np.float32), np.ones((20, 2), np.float32)
    for wrong in (
        (a, x[:, :0]), (a, np.ones((20, 4), np.float32)), (a[:5, :5], x), (a, x[:, 0]),
        (a.astype("float64"), x), (a, x.astype(int)),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            f(*wrong)


def test_the_other_solver_is_there(load):
    assert load("jax.experimental.sparse.linalg").spsolve is load("plait.sparse.linalg").spsolve
