"""What depends on the platform, what is named for the compiler, and layouts asked for in passing.

Invariant: a module for a platform that is not here is judged by its text.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext.errors import PlaitError


def chosen(x):
    return lax.platform_dependent(
        x, cpu=lambda v: v * v, tpu=lambda v: v - 7.0, default=lambda v: v + 3.0
    )


@pytest.mark.feature("E12")
def test_branch_of_the_platform():
    x = np.arange(3.0, dtype=np.float32)
    for f in (chosen, plait.jit(chosen), plait.vmap(chosen), plait.jit(plait.vmap(chosen))):
        np.testing.assert_array_equal(f(x), x * x)
    for f in (plait.grad(chosen), plait.jit(plait.grad(chosen)), plait.grad(plait.jit(chosen))):
        assert f(np.float32(3)).item() == 6
    np.testing.assert_array_equal(plait.jit(plait.vmap(plait.grad(chosen)))(x), 2 * x)


@pytest.mark.feature("E12")
def test_one_branch_is_lowered():
    text = {
        p: plait.jit(chosen).lower(1.0, lowering_platforms=[p]).as_text()
        for p in ("cpu", "tpu", "cuda")
    }
    assert "multiply" in text["cpu"] and "7.0" in text["tpu"] and "3.0" in text["cuda"]
    assert not any("stablehlo.case" in t for t in text.values())
    with pytest.raises(PlaitError, match="no branch for the platform 'cpu'"):
        lax.platform_dependent(1.0, tpu=lambda v: v)
    with pytest.raises(PlaitError, match="no branch for the platform 'cpu'"):
        plait.jit(lambda x: lax.platform_dependent(x, tpu=lambda v: v))(1.0)


@pytest.mark.feature("E12")
def test_artifact_for_several_platforms():
    x = np.float32(3)
    exported = plait.export.export(chosen, platforms=["cpu", "tpu", "cuda"])(x)
    assert "stablehlo.case" in exported.mlir_module()
    again = plait.export.deserialize(exported.serialize())
    for f in (exported.call, again.call, plait.jit(again.call)):
        assert f(x).item() == 9
    again_exported = plait.export.export(again.call, platforms=["cpu", "tpu"])(x)
    assert again_exported.call(x).item() == 9
    assert plait.jit(again.call).lower(x, lowering_platforms=["tpu"]).as_text().count("plait.") == 0
    sizes = plait.export.symbolic_args_specs((np.ones(2, np.float32),), "n")
    symbolic = plait.export.export(chosen, platforms=["cpu", "cuda"])(*sizes)
    np.testing.assert_array_equal(symbolic.call(np.float32([1, 2, 3])), [1, 4, 9])


@pytest.mark.feature("E12")
def test_each_branch_is_lowered_for_its_platform():
    """One calls a library that only its platform has; so does a function inside."""
    factor = plait.jit(plait.numpy.linalg.cholesky)
    f = lambda x: lax.platform_dependent(  # noqa: E731
        x, cpu=factor, cuda=lambda v: v * 2.0, rocm=lambda v: v, default=lambda v: v * 3.0
    )
    x = np.float32([[4.0, 2.0], [2.0, 5.0]])
    exported = plait.export.export(f, platforms=["cpu", "tpu"])(x)
    np.testing.assert_allclose(exported.call(x), np.linalg.cholesky(x), rtol=1e-6)


def test_composites_are_what_they_are_made_of():
    f = lax.composite(lambda x, *, by: lax.sin(x) * by, "my.sine")
    x = np.float32([0.5, 1.0])
    np.testing.assert_allclose(plait.vmap(lambda v: f(v, by=2.0))(x), 2 * np.sin(x), rtol=1e-6)
    slope = lambda v: f(v, by=2.0)  # noqa: E731
    np.testing.assert_allclose(plait.vmap(plait.grad(slope))(x), 2 * np.cos(x), rtol=1e-6)
    np.testing.assert_allclose(
        plait.jit(plait.vmap(plait.jacfwd(slope)))(x), 2 * np.cos(x), rtol=1e-6
    )
    kept = plait.checkpoint(lambda v: f(v, by=2.0) ** 2)
    np.testing.assert_allclose(plait.grad(kept)(0.5), 8 * np.sin(0.5) * np.cos(0.5), rtol=1e-5)
    assert "composite" not in plait.jit(plait.grad(slope)).lower(0.5).as_text()


def test_accuracy_is_kept_by_derivatives():
    f = lambda x: lax.tan(x, accuracy=lax.Tolerance(1e-5, 0.0, 1))  # noqa: E731
    np.testing.assert_allclose(plait.grad(f)(0.5), 1 / np.cos(0.5) ** 2, rtol=1e-5)
    assert "accuracy" in plait.jit(plait.value_and_grad(f)).lower(0.5).as_text()
    x = np.float32([0.1, 0.2])
    np.testing.assert_allclose(plait.vmap(f)(x), np.tan(x), rtol=1e-5)


def test_layouts_asked_for_in_passing():
    mesh = plait.make_mesh((4,), ("x",))
    rows, columns = (
        plait.NamedSharding(mesh, plait.P("x")),
        plait.NamedSharding(mesh, plait.P(None, "x")),
    )
    x = np.arange(16.0, dtype=np.float32)
    assert lax.full((4,), 1.0, sharding=rows).sharding == rows
    assert lax.reshape(x, (4, 4), out_sharding=columns).sharding == columns
    got = plait.jit(lambda v: lax.dot(v, v, out_sharding=columns))(x.reshape(4, 4))
    assert got.sharding == columns
    np.testing.assert_allclose(got, x.reshape(4, 4) @ x.reshape(4, 4))
    assert lax.reduce_sum(x.reshape(4, 4), (0,), out_sharding=rows).sharding == rows
    assert lax.with_sharding_constraint(x, rows).sharding == rows


def test_rows_in_batches_have_derivatives():
    x = np.arange(7.0, dtype=np.float32)
    f = lambda v: lax.map(lambda r: r**3, v, batch_size=3).sum()  # noqa: E731
    np.testing.assert_allclose(plait.grad(f)(x), 3 * x**2)
    g = lambda v: lax.scatter_apply(  # noqa: E731
        v,
        np.array([[1], [1]]),
        lambda e: e**2,
        lax.ScatterDimensionNumbers((), (0,), (0,)),
        update_shape=(2,),
    )
    _, along = plait.jvp(g, (x,), (np.ones_like(x),))
    np.testing.assert_allclose(along, [1, 4, 1, 1, 1, 1, 1])
