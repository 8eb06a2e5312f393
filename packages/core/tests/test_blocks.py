"""Settings for a block, names in lowered programs, questions to the process, JAX's module names.

Invariant: what a block changes is as it was after it.
"""

import importlib
import logging
import subprocess
import sys

import numpy as np
import pytest

import weft as wf
from weft import errors

jnp = wf.numpy


# ---- settings ------------------------------------------------------------------------------


def test_dtypes_of_a_block():
    with wf.enable_x64():
        assert jnp.arange(2).dtype == np.int64 and jnp.ones(2).dtype == np.float64
        with wf.enable_x64(False):
            assert jnp.asarray(np.float64(1)).dtype == np.float32
    assert jnp.ones(2).dtype == np.float32 and jnp.asarray(np.float64(1)).dtype == np.float64
    with wf.numpy_dtype_promotion("strict"), pytest.raises(TypeError, match="strict"):
        jnp.ones(2) + jnp.arange(2)


def test_ranks_that_meet():
    row, table = jnp.ones(3), jnp.ones((2, 3))
    with wf.numpy_rank_promotion("raise"):
        with pytest.raises(errors.TypeRule, match="different numbers of axes"):
            row + table
        with pytest.raises(errors.TypeRule, match="different numbers of axes"):
            wf.jit(lambda x: x * table)(row)
        assert (table + 1).shape == (row[None] + table).shape == (2, 3)
    with wf.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="numbers of axes"):
        row + table
    assert (row + table).shape == (2, 3)


def test_precision_of_products():
    f = wf.jit(lambda x: x @ x)
    assert "HIGHEST" not in f.lower(jnp.eye(2)).as_text()
    with wf.default_matmul_precision("float32"):
        assert "HIGHEST" in f.lower(jnp.eye(2)).as_text()
        assert "HIGHEST" not in wf.jit(lambda x: jnp.matmul(x, x, precision="default")).lower(
            jnp.eye(2)
        ).as_text().replace("DEFAULT", "")
    with pytest.raises(errors.TypeRule, match="precision"):
        wf.default_matmul_precision("exact")


def test_keys_of_another_generator():
    with wf.default_prng_impl("rbg"):
        assert wf.random.key(0).dtype == wf.random.key(0, impl="rbg").dtype
    assert wf.random.key(0).dtype == wf.random.key(0, impl="threefry2x32").dtype


@pytest.mark.parametrize("block, f", [
    (wf.debug_nans, lambda: jnp.log(jnp.asarray(-1.0))),
    (wf.debug_infs, lambda: 1 / jnp.zeros(())),
])  # fmt: skip
def test_numbers_that_are_errors(block, f):
    with block(True), pytest.raises(FloatingPointError):
        f()
    with block(False):
        assert not np.isfinite(float(f()))


def test_leaks_are_found():
    kept = []
    with pytest.raises(errors.UnexpectedTracerError), wf.check_tracer_leaks():
        wf.jit(lambda x: kept.append(x))(1.0)


def test_logs(caplog):
    caplog.set_level(logging.WARNING, "weft")
    with wf.log_compiles():
        wf.jit(lambda x: x * 3.25)(1.0)
    told = [r.message.split()[0] for r in caplog.records]
    assert told == ["tracing", "lowering", "compiling"]
    caplog.clear()
    with wf.explain_cache_misses():
        wf.jit(lambda x: x * 3.5)(1.0)
    assert "never seen" in caplog.text


def test_what_is_known_is_computed_now():
    @wf.jit
    def f(x):
        with wf.ensure_compile_time_eval():
            n = int(jnp.arange(4).sum())
        return x * n

    assert float(f(2.0)) == 12.0
    with pytest.raises(errors.UnexpectedTracerError):
        wf.jit(lambda x: _doubled_now(x))(1.0)


def _doubled_now(x):
    with wf.ensure_compile_time_eval():
        return x * 2


def test_the_first_device_is_the_default():
    with wf.default_device(wf.devices()[0]), wf.default_device("cpu"), wf.default_device(None):
        assert float(jnp.ones(())) == 1.0
    with pytest.raises(errors.PlacementError, match="device_put"):
        wf.default_device(wf.Device(7, "cpu", "cpu"))


def test_settings_by_the_names_of_jax():
    try:
        wf.config.update("jax_enable_x64", True)
        assert jnp.ones(2).dtype == np.float64
    finally:
        wf.config.update("default_float", "float32")
        wf.config.update("default_int", "int32")
    assert wf.config.x64
    wf.config.update("jax_platforms", "cpu")
    assert wf.config.jax_enable_x64 is False and wf.config.jax_numpy_rank_promotion == "allow"
    with pytest.raises(errors.WeftError, match="platform"):
        wf.config.update("jax_platforms", "tpu")
    with pytest.raises(errors.WeftError, match="no setting"):
        wf.config.update("jax_unheard_of", 1)


# ---- names in programs ---------------------------------------------------------------------


def test_scopes_show_where_programs_are_read():
    @wf.named_scope("outer")
    def f(x):
        with wf.named_scope("inner"):
            y = jnp.sin(x)
        return wf.lax.scan(lambda c, _: (c * y, None), x, None, length=2)[0]

    text = wf.jit(f).lower(1.0).as_text(debug_info=True)
    assert 'loc("outer/inner"' in text and 'loc("outer"' in text and "test_blocks.py" in text
    assert "outer" not in wf.jit(f).lower(1.0).as_text()
    np.testing.assert_allclose(float(f(0.5)), 0.5 * np.sin(0.5) ** 2, rtol=1e-6)
    np.testing.assert_allclose(float(wf.jit(f)(0.5)), float(f(0.5)), rtol=1e-6)


def test_errors_inside_a_scope_name_the_line():
    def f(x):
        with wf.named_scope("a"):
            return x @ jnp.ones((2, 3))

    with pytest.raises(errors.WeftError, match="test_blocks.py"):
        wf.jit(f)(jnp.ones(4))
    with pytest.raises(errors.TypeRule):
        wf.named_scope(f)


def test_named_calls():
    @wf.named_call
    def helper(x):
        return x + 1

    other = wf.named_call(lambda x: helper(x) * 2, name="twice")
    text = wf.jit(other).lower(1.0).as_text(debug_info=True)
    assert "twice/helper" in text and float(other(1.0)) == 4.0


# ---- programs, compilation, the process --------------------------------------------------------


def test_programs_with_static_arguments_and_axes():
    program, shape = wf.make_jaxpr(lambda n, x: x[:n], static_argnums=0, return_shape=True)(
        2, jnp.ones(3)
    )
    assert shape.shape == (2,) and program.out_avals[0].shape == (2,)
    summed = wf.make_jaxpr(lambda x: wf.lax.psum(x, "i"), axis_env=[("i", 4)])(1.0)
    assert [e.prim.name for e in summed.eqns] == ["core.psum"]
    with pytest.raises(errors.TypeRule):
        wf.make_jaxpr(3)


def test_flags_of_the_compiler():
    f = lambda x: jnp.exp(x) * 2  # noqa: E731
    want = 2 * np.exp(0.5)
    fast = {"xla_cpu_enable_fast_math": True}
    with wf.events.counting() as n:
        assert np.isclose(wf.jit(f)(0.5), want)
        assert np.isclose(wf.jit(f, compiler_options=fast)(0.5), want)
        assert np.isclose(wf.jit(f, compiler_options=dict(fast))(0.5), want)
    assert n["compile"] == 2 and n["trace"] == 1
    lowered = wf.jit(f).lower(0.5)
    assert np.isclose(lowered.compile(compiler_options=fast)(0.5), want)
    static = wf.jit(lambda x, n: x * n, static_argnums=1, compiler_options=fast)
    assert float(static(2.0, 3)) == 6.0
    for wrong in ({"xla_unheard_of": 1}, {"xla_cpu_enable_fast_math": "perhaps"}):
        with pytest.raises(errors.ArgumentError, match="compiler_options"):
            wf.jit(f, compiler_options=wrong)(0.5)
    with pytest.raises(errors.ArgumentError, match="dict"):
        wf.jit(f, compiler_options=[])
    with pytest.raises(errors.PlacementError, match="platform"):
        wf.jit(f, backend="tpu")
    assert np.isclose(wf.jit(f, backend="cpu")(0.5), want)


def test_the_process_is_the_only_one():
    assert wf.process_index() == wf.host_id() == 0 and wf.process_count() == 1
    assert wf.process_indices() == [0] and wf.local_devices(0, "cpu") == wf.devices("cpu")
    assert wf.local_device_count() == wf.device_count() == len(wf.devices())
    for wrong in (lambda: wf.devices("tpu"), lambda: wf.local_devices(3)):
        with pytest.raises(errors.PlacementError):
            wrong()
    assert "jaxlib" in wf.print_environment_info(return_string=True)


def test_arrays_that_live():
    x = jnp.arange(5)
    assert any(y is x for y in wf.live_arrays())
    assert wf.copy_to_host_async({"x": x, "n": 1})["x"] is x
    x.delete()
    assert not any(y is x for y in wf.live_arrays())
    wf.effects_barrier()


def test_traced_values_are_arrays():
    kinds = []
    wf.jit(lambda x: kinds.append((isinstance(x, wf.Array), isinstance(x, wf.core.Tracer))))(1.0)
    assert kinds == [(True, True)]
    x = jnp.ones(2)
    assert isinstance(x, wf.Array) and isinstance(x, jnp.ndarray)
    assert not isinstance(x, wf.core.Tracer) and not isinstance(np.ones(2), wf.Array)
    with pytest.raises(TypeError, match="asarray"):
        wf.Array((2,))


def test_types_of_values():
    t = wf.typeof(jnp.ones((2, 3), "bfloat16"))
    assert (t.shape, t.dtype, t.weak_type) == ((2, 3), jnp.bfloat16, False)
    assert wf.typeof(2).weak_type and wf.typeof(np.ones(4)).shape == (4,)


def test_callbacks_once_for_all():
    shapes = []

    def on_host(a, b):
        shapes.append((np.shape(a), np.shape(b)))
        return np.asarray(a) + np.asarray(b)

    f = lambda x: wf.pure_callback(on_host, x, x, 1.0, vmap_method="expand_dims")  # noqa: E731
    assert float(f(jnp.asarray(1.0))) == 2.0 and shapes == [((), ())]
    with pytest.raises(errors.TypeRule, match="vmap_method"):
        wf.pure_callback(on_host, 1.0, vmap_method="somehow")
    with pytest.raises(errors.TypeRule, match="whole"):
        wf.pure_callback(on_host, 1.0, sharding=object())


def test_formats_are_tried_before_they_are_printed(capsys):
    wf.debug.print("{} {n:.1f} {{}}", 1, n=2.0)
    assert capsys.readouterr().out == "1 2.0 {}\n"
    for fmt, args, kwargs in (("{} {}", (1,), {}), ("{x}", (), {}), ("", (1,), {}), ("{", (), {})):
        with pytest.raises(errors.TypeRule, match="format"):
            wf.debug.print(fmt, *args, **kwargs)


# ---- errors and modules by the names of JAX ------------------------------------------------------


def test_errors_have_the_names_of_jax():
    e = wf.errors
    cases = {
        e.TracerBoolConversionError: lambda x: 1 if x > 0 else 2,
        e.ConcretizationTypeError: lambda x: float(x),
        e.TracerArrayConversionError: lambda x: np.sin(x),
        e.TracerIntegerConversionError: lambda x: [1, 2][x.astype(int)],
        e.NonConcreteBooleanIndexError: lambda x: jnp.arange(3)[x > jnp.arange(3)],
    }
    for kind, f in cases.items():
        with pytest.raises(kind):
            wf.jit(f)(1.0)
    assert issubclass(e.NonConcreteBooleanIndexError, IndexError)
    assert issubclass(e.JaxRuntimeError, RuntimeError)


def test_modules_by_the_names_of_jax():
    core = importlib.import_module("weft.core")
    assert core.ShapedArray is type(wf.typeof(1.0)) and wf.core is core
    assert importlib.import_module("weft.experimental").io_callback is wf.io_callback
    assert wf.experimental.pjit.pjit is wf.jit
    assert set(dir(wf.custom_derivatives)) >= {"custom_gradient", "closure_convert"}
    with pytest.raises(AttributeError, match="differences"):
        wf.core.unheard_of  # noqa: B018
    assert not hasattr(wf.experimental, "__unheard_of__")


def test_names_of_others_are_found_late():
    code = """if True:
        import sys
        import weft as wf
        late = ["numpy", "lax", "blocks", "scopes", "debug", "random", "nn", "scipy"]
        assert not [m for m in late if "weft." + m in sys.modules]
        missing = [n for n in wf.__all__ if getattr(wf, n, None) is None]
        assert not missing, missing
        assert {"named_scope", "enable_x64"} <= set(dir(wf))
        """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
