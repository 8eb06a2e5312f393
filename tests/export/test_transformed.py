"""Exported functions with transformations of other packages in them, which are gone afterwards.

Invariant: results are compared with formulas in numpy, at several sizes.
"""

import subprocess
import sys

import numpy as np

import plait
from plait.ext.ops import elementwise as el
from plait_export import deserialize, export, symbolic_args_specs

F32 = np.float32
W = np.arange(6, dtype=F32).reshape(3, 2) / 6


def loss(w, x):
    return (el.tanh(x @ w) ** 2).sum() / x.shape[0]


def gradient(w, x):
    y = np.tanh(x @ w)
    return x.T @ (2 * y * (1 - y * y)) / len(x)


def batch(n):
    return np.random.default_rng(n).normal(size=(n, 3)).astype(F32)


TYPES = symbolic_args_specs((W, batch(2)), (None, "b, 3"))


def saved(f, *types):
    return deserialize(export(f)(*types).serialize())


def test_a_gradient_for_any_batch():
    exported = saved(plait.jit(plait.value_and_grad(loss)), *TYPES)
    for n in (1, 2, 7):
        value, slope = exported.call(W, batch(n))
        np.testing.assert_allclose(value, (np.tanh(batch(n) @ W) ** 2).sum() / n, rtol=1e-5)
        np.testing.assert_allclose(slope, gradient(W, batch(n)), rtol=1e-4, atol=1e-6)


def test_gradients_of_each_example():
    each = plait.vmap(plait.grad(lambda w, x: loss(w, x[None])), (None, 0))
    exported = saved(each, *TYPES)
    for n in (1, 3):
        want = [gradient(W, x[None]) for x in batch(n)]
        np.testing.assert_allclose(exported.call(W, batch(n)), want, rtol=1e-4, atol=1e-6)


def test_second_order_and_custom_rules():
    @plait.custom_vjp
    def square(x):
        return x * x

    square.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * ct * x,))
    exported = saved(
        plait.grad(lambda x: plait.grad(lambda y: (square(y) * y).sum())(x).sum()), TYPES[1]
    )
    x = batch(4)
    np.testing.assert_allclose(exported.call(x), 6 * x, rtol=1e-5)


def test_another_process_needs_none_of_them(tmp_path):
    path = tmp_path / "artifact"
    path.write_bytes(
        export(plait.vmap(plait.grad(lambda x: el.sin(x).sum())))(TYPES[1]).serialize()
    )
    code = (
        "import sys, numpy as np, plait\n"
        "exported = plait.export.deserialize(open(sys.argv[1], 'rb').read())\n"
        "x = np.ones((5, 3), np.float32)\n"
        "np.testing.assert_allclose(exported.call(x), np.cos(x), rtol=1e-6)\n"
        "assert not {'plait_autodiff', 'plait_batching'} & set(sys.modules)\n"
    )
    env = {"PLAIT_PLUGINS": "export", "PLAIT_CACHE_DIR": "", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code, str(path)], env=env, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_what_was_saved_without_a_derivative_is_read_back():
    exported = saved(lambda x: el.sin(x), batch(2))
    found = plait.grad(lambda x: exported.call(x).sum())(batch(2))
    np.testing.assert_allclose(found, np.cos(batch(2)), rtol=1e-6)


def test_what_was_exported_is_mapped():
    exported = export(lambda x, y: (el.sin(x), el.add(x, y)))(batch(2), batch(2))
    xs = np.stack([k * batch(2) for k in range(3)])
    for mapped in (
        plait.vmap(exported.call, (0, None)),
        plait.jit(plait.vmap(exported.call, (0, None))),
    ):
        first, second = mapped(xs, batch(2))
        np.testing.assert_allclose(first, np.sin(xs), rtol=1e-5)
        np.testing.assert_allclose(second, xs + batch(2), rtol=1e-6)


def test_it_goes_into_other_transformations_unlifted():
    exported = export(lambda x: el.sin(x))(batch(2))
    f = lambda w: (exported.call(batch(2)) * w).sum()  # noqa: E731
    np.testing.assert_allclose(plait.grad(f)(np.float32(2)), np.sin(batch(2)).sum(), rtol=1e-5)


def test_functions_on_a_mesh_of_one_device():
    mesh = plait.make_mesh((1,), ("rows",))
    f = plait.shard_map(
        lambda x: x * 2, mesh=mesh, in_specs=plait.P("rows"), out_specs=plait.P("rows")
    )
    exported = plait.export.deserialize(export(f)(batch(2)).serialize())
    assert exported.nr_devices == 1
    np.testing.assert_array_equal(exported.call(batch(2)), batch(2) * 2)


def test_arrays_that_lie_elsewhere_are_brought():
    mesh = plait.make_mesh((1,), ("rows",))
    x = plait.device_put(batch(2), plait.NamedSharding(mesh, plait.P("rows")))
    np.testing.assert_allclose(export(el.sin)(batch(2)).call(x), np.sin(batch(2)), rtol=1e-6)


def test_of_what_is_placed_on_one_device():
    """An artifact runs on one device, and which one that is it does not say."""
    there = plait.SingleDeviceSharding(plait.devices()[0])
    f = plait.jit(lambda x: x * 2 + 1, in_shardings=there, out_shardings=there)
    exported = plait.export.export(f)(np.ones(3, np.float32))
    again = plait.export.deserialize(exported.serialize())
    for e in (exported, again):
        np.testing.assert_array_equal(e.call(np.arange(3.0, dtype=np.float32)), [1.0, 3.0, 5.0])


def test_derivatives_and_maps_of_linear_algebra_without_libraries():
    """The pullback of each, mapped, is made of loops, too."""
    la = plait.numpy.linalg
    x = np.random.default_rng(0).normal(size=(3, 4, 4))
    x = x @ np.swapaxes(x, 1, 2) + np.eye(4)
    cases = {
        "slogdet": (lambda x: la.slogdet(x)[1], lambda x: np.linalg.inv(x).T),
        "trace of the inverse": (
            lambda x: plait.numpy.trace(la.inv(x)),
            lambda x: -(np.linalg.inv(x) @ np.linalg.inv(x)).T,
        ),
        "sum of eigenvalues": (lambda x: la.eigvalsh(x).sum(), lambda x: np.eye(4)),
        "squares of singular values": (
            lambda x: (la.svd(x, compute_uv=False) ** 2).sum(),
            lambda x: 2 * x,
        ),
        "of the factor": (
            lambda x: 2 * plait.numpy.log(plait.numpy.diagonal(la.cholesky(x))).sum(),
            np.linalg.inv,
        ),
    }
    for f, want in cases.values():
        made = export(plait.vmap(plait.grad(f)), libraries=False)(x)
        assert not made.custom_calls
        with plait.config(tier="fast"):
            got = made.call(x)
        np.testing.assert_allclose(got, [want(a) for a in x], rtol=1e-8, atol=1e-8)
