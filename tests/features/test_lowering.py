"""Lowering ahead of time, for here and elsewhere, and what exported functions keep.

Invariant: what is lowered for other platforms is only read; numbers come from this one.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext.errors import TypeRule

export = plait.export.export
pnp = plait.numpy
X = np.arange(8, dtype=np.float32)


# ---- lowering --------------------------------------------------------------------------------


@pytest.mark.feature("E11")
@pytest.mark.parametrize("platform", ["tpu", "cuda", "cpu"])
def test_any_platform_ahead_of_time(platform):
    f = plait.jit(lambda x, n: pnp.cumsum(x) @ pnp.sort(x) * n, static_argnums=1)
    staged = f.trace(X, 3)
    for low in (
        staged.lower(lowering_platforms=(platform,)),
        f.lower(X, 3, lowering_platforms=(platform,)),
    ):
        text = low.as_text()
        assert "func.func public @main(%arg0: tensor<8xf32>)" in text and "custom_call" not in text
    shapes = plait.ShapeDtypeStruct((8,), np.float32)
    assert f.trace(shapes, 3).lower(lowering_platforms=[platform]).as_text() == text
    grad = plait.jit(plait.vmap(plait.grad(lambda x: (x * x).sum()))).trace(X[None])
    assert "stablehlo.add" in grad.lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.feature("E11")
def test_what_is_lowered_for_elsewhere_is_not_compiled_here():
    f = plait.jit(lambda x: x * 2)
    for platforms in (["tpu"], "tpu", ("cuda", "rocm")):
        low = f.lower(X, lowering_platforms=platforms)
        assert "stablehlo.multiply" in low.as_text()
        with pytest.raises(TypeRule, match="was lowered for .*, and this process compiles") as e:
            low.compile()
        assert "export it for that platform" in e.value.fix
    for platforms in (["cpu"], ("tpu", "cpu"), None):
        np.testing.assert_array_equal(f.lower(X, lowering_platforms=platforms).compile()(X), 2 * X)


@pytest.mark.feature("E11")
@pytest.mark.parametrize(("name", "hint"), [("gpu", "write 'cuda'"), ("abacus", "some of cpu")])
def test_platforms_that_are_none(name, hint):
    for run in (
        lambda: plait.jit(lambda x: x).lower(X, lowering_platforms=[name]),
        lambda: plait.jit(lambda x: x).trace(X).lower(lowering_platforms=name),
        lambda: export(lambda x: x, platforms=["cpu", name]),
    ):
        with pytest.raises(TypeRule, match=f"there is no platform '{name}'") as e:
            run()
        assert hint in e.value.fix and "test_lowering.py" in str(e.value)


@pytest.mark.feature("E13")
def test_all_that_can_be_asked_of_a_lowered_function():
    """The HLO, named axes, donation, trees and what compiling gives, without a call."""
    f = plait.jit(lambda x: {"y": x * 2}, donate_argnums=0)
    low = f.lower(plait.ShapeDtypeStruct((8,), np.float32))
    hlo = low.as_text("hlo")
    assert hlo.startswith("HloModule") and "multiply" in hlo and "buffer_donor={ (0, {}) }" in hlo
    assert "stablehlo.multiply" in low.as_text() and "buffer_donor" in low.as_text("stablehlo")
    assert f"{__file__}" in low.as_text(debug_info=True)
    assert "HloModule" in low.compile().as_text()
    np.testing.assert_array_equal(low.compile()(X)["y"], 2 * X)
    mesh = plait.make_mesh((8,), ("i",))
    over = plait.shard_map(
        lambda v: lax.psum(v, "i"), mesh=mesh, in_specs=plait.P("i"), out_specs=plait.P()
    )
    assert "all-reduce" in plait.jit(over).lower(X).as_text("hlo")
    mapped = plait.vmap(lambda v: lax.psum(v, "i"), axis_name="i")
    assert "reduce" in plait.jit(mapped).lower(X).as_text("hlo")
    with pytest.raises(TypeRule, match="no dialect 'mhlo'"):
        low.as_text("mhlo")


# ---- exporting -------------------------------------------------------------------------------


@pytest.mark.feature("E01")
def test_functions_of_nothing_are_not_computed():
    exported = export(lambda: lax.sin(1.0))()
    assert "stablehlo.sine" in exported.mlir_module()
    np.testing.assert_allclose(exported.call(), np.sin(1.0), rtol=1e-6)
    assert "stablehlo.sine" in plait.jit(lambda: lax.sin(1.0)).lower().as_text()


@pytest.mark.feature("E02")
def test_calls_inside():
    for f in (
        lambda x: plait.jit(lambda y: plait.jit(lax.sin)(y) * 2)(x),
        lambda x: x * 2 + 0 * plait.jit(lambda: lax.sin(1.0))(),
        lambda x: plait.jit(lambda y: y + plait.jit(lambda: x.sum())())(x),
    ):
        exported = plait.export.deserialize(export(f)(X).serialize())
        np.testing.assert_allclose(exported.call(X), f(X), rtol=1e-6)


@pytest.mark.feature("E04", "E14")
def test_gradients_of_integers():
    """A pullback that is exported takes and returns tangents of the types of the primals."""

    def pullback(x, n, ct):
        return plait.vjp(lambda x, n: x * n, x, n)[1](ct)

    exported = plait.export.deserialize(export(pullback)(X, np.int32(3), X).serialize())
    dx, dn = exported.call(X, np.int32(3), X)
    np.testing.assert_array_equal(dx, 3 * X)
    assert dn.dtype == plait.float0 and dn.shape == ()
    assert [a.dtype for a in exported.out_avals] == [np.float32, plait.float0]
    inner = lambda x, n: plait.grad(lambda x, n: (x * n).sum(), (0, 1), allow_int=True)(x, n)[0]  # noqa: E731
    np.testing.assert_array_equal(export(inner)(X, 2).call(X, 2), np.full(8, 2))

    def forward(x, n, t):
        return plait.jvp(lambda x, n: (x, n), (x, n), (t, np.zeros((), plait.float0)))[1]

    _, dot = export(forward)(X, np.int32(3), X).call(X, np.int32(3), X)
    assert dot.dtype == plait.float0
