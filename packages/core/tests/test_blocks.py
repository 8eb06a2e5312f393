"""Settings for a block, names in lowered programs, questions to the process, JAX's module names.

Invariant: what a block changes is as it was after it.
"""

import asyncio
import gc
import importlib
import logging
import subprocess
import sys
import threading
from concurrent import futures

import numpy as np
import pytest

import plait
from plait import errors

jnp = plait.numpy


# ---- settings ------------------------------------------------------------------------------


def test_dtypes_of_a_block():
    with plait.enable_x64():
        assert jnp.arange(2).dtype == np.int64 and jnp.ones(2).dtype == np.float64
        with plait.enable_x64(False):
            assert jnp.asarray(np.float64(1)).dtype == np.float32
    assert jnp.ones(2).dtype == np.float32 and jnp.asarray(np.float64(1)).dtype == np.float64
    with plait.numpy_dtype_promotion("strict"), pytest.raises(TypeError, match="strict"):
        jnp.ones(2) + jnp.arange(2)


def settings():
    return {name: getattr(plait.config, name) for name in dir(plait.config)
            if not name.startswith("_") and name in repr(plait.config)}  # fmt: skip


def test_blocks_of_tasks_that_overlap_leave_nothing():
    before, seen = settings(), []

    async def task(begin, end, block):
        await asyncio.sleep(begin)
        with block():
            await asyncio.sleep(end)
        seen.append(jnp.ones(1).dtype)

    async def main():
        await asyncio.gather(
            task(0, 0.02, plait.enable_x64),
            task(0.01, 0.03, plait.enable_x64),
            task(0.015, 0.01, lambda: plait.config(default_int="int64", checks=True)),
            task(0.005, 0.05, plait.disable_jit),
        )

    asyncio.run(main())
    assert len(seen) == 4 and settings() == before
    assert jnp.ones(1).dtype == np.float32 and jnp.arange(2).dtype == np.int32


def test_blocks_of_threads_that_overlap_leave_nothing():
    before, steps = settings(), [threading.Event() for _ in range(3)]

    def first():
        with plait.enable_x64():
            steps[0].set()
            steps[1].wait(30)
        steps[2].set()

    def second():
        steps[0].wait(30)
        with plait.config(default_float="float32", default_int="int64"):
            steps[1].set()
            steps[2].wait(30)  # the first has ended before the second
            kept.append(jnp.arange(2).dtype)

    kept: list = []
    both = [threading.Thread(target=f) for f in (first, second)]
    for t in both:
        t.start()
    for t in both:
        t.join()
    assert settings() == before and kept == [np.int64]
    assert jnp.ones(1).dtype == np.float32


def test_blocks_of_generators_that_are_left_open_leave_nothing():
    def rows():
        with plait.enable_x64():
            yield 1
            yield 2

    before = settings()
    one, two = rows(), rows()
    next(one), next(two), next(one)
    assert jnp.ones(1).dtype == np.float64
    one.close()
    assert jnp.ones(1).dtype == np.float64  # the other is still open
    del two
    gc.collect()
    assert settings() == before and jnp.ones(1).dtype == np.float32


@pytest.mark.parametrize("seed", range(20))
def test_what_began_last_is_in_force_of_what_is_open(seed):
    """Blocks that begin and end at random, and assignments between them, against a model."""
    rng, before = np.random.default_rng(seed), settings()
    names = {"default_float": ["float32", "float64"], "default_int": ["int32", "int64"],
             "checks": [True, False], "default_copy": [True, False]}  # fmt: skip
    outside, said, blocks = dict(before), [], []

    def some():
        picked = rng.permutation(list(names))[: rng.integers(1, 3)]
        return {str(n): names[n][rng.integers(2)] for n in picked}

    for _ in range(30):
        what = rng.integers(4)
        if what <= 1:
            new = some()
            said.append(new)
            blocks.append(plait.config(**new))
            blocks[-1].__enter__()
        elif what == 2 and blocks:
            k = rng.integers(len(blocks))
            del said[k]
            blocks.pop(k).__exit__(None, None, None)
        else:
            for name, value in some().items():
                setattr(plait.config, name, value)
                next((b for b in reversed(said) if name in b), outside)[name] = value
        want = dict(outside)
        for block in said:
            want |= block
        assert settings() == want
    while blocks:
        blocks.pop(rng.integers(len(blocks))).__exit__(None, None, None)
    assert settings() == outside
    for name, value in before.items():
        if outside[name] != value:
            setattr(plait.config, name, value)
    assert settings() == before


def test_ranks_that_meet():
    row, table = jnp.ones(3), jnp.ones((2, 3))
    with plait.numpy_rank_promotion("raise"):
        with pytest.raises(errors.TypeRule, match="different numbers of axes"):
            row + table
        with pytest.raises(errors.TypeRule, match="different numbers of axes"):
            plait.jit(lambda x: x * table)(row)
        assert (table + 1).shape == (row[None] + table).shape == (2, 3)
    with plait.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="numbers of axes"):
        row + table
    assert (row + table).shape == (2, 3)


def test_precision_of_products():
    f = plait.jit(lambda x: x @ x)
    assert "HIGHEST" not in f.lower(jnp.eye(2)).as_text()
    with plait.default_matmul_precision("float32"):
        assert "HIGHEST" in f.lower(jnp.eye(2)).as_text()
        assert "HIGHEST" not in plait.jit(lambda x: jnp.matmul(x, x, precision="default")).lower(
            jnp.eye(2)
        ).as_text().replace("DEFAULT", "")
    with pytest.raises(errors.TypeRule, match="precision"):
        plait.default_matmul_precision("exact")


def test_keys_of_another_generator():
    with plait.default_prng_impl("rbg"):
        assert plait.random.key(0).dtype == plait.random.key(0, impl="rbg").dtype
    assert plait.random.key(0).dtype == plait.random.key(0, impl="threefry2x32").dtype


@pytest.mark.parametrize("block, f", [
    (plait.debug_nans, lambda: jnp.log(jnp.asarray(-1.0))),
    (plait.debug_infs, lambda: 1 / jnp.zeros(())),
])  # fmt: skip
def test_numbers_that_are_errors(block, f):
    with block(True), pytest.raises(FloatingPointError):
        f()
    with block(False):
        assert not np.isfinite(float(f()))


def test_leaks_are_found():
    kept = []
    with pytest.raises(errors.UnexpectedTracerError), plait.check_tracer_leaks():
        plait.jit(lambda x: kept.append(x))(1.0)


def test_logs(caplog):
    caplog.set_level(logging.WARNING, "plait")
    with plait.log_compiles():
        plait.jit(lambda x: x * 3.25)(1.0)
    told = [r.message.split()[0] for r in caplog.records]
    assert told == ["tracing", "lowering", "compiling"]
    caplog.clear()
    with plait.explain_cache_misses():
        plait.jit(lambda x: x * 3.5)(1.0)
    assert "never seen" in caplog.text


def test_what_is_known_is_computed_now():
    @plait.jit
    def f(x):
        with plait.ensure_compile_time_eval():
            n = int(jnp.arange(4).sum())
        return x * n

    assert float(f(2.0)) == 12.0


def test_what_is_traced_is_traced_there():
    """In the block operations on traced values are recorded, with what is known as constants, and
    inner functions are jitted as ever."""

    def f(x):
        with plait.ensure_compile_time_eval():
            known = plait.jit(lambda: jnp.arange(3.0) + 1)()
            assert [float(k) for k in known] == [1.0, 2.0, 3.0]
            if known.sum() > 5:
                return (x * known).sum() + plait.jit(lambda v: v * v)(x)
            return x

    assert float(plait.jit(f)(2.0)) == 16.0
    assert float(f(2.0)) == 16.0
    traced = []
    plait.jit(lambda x: traced.append(isinstance(_doubled(x), plait.core.Tracer)))(1.0)
    assert traced == [True]


def _doubled(x):
    with plait.ensure_compile_time_eval():
        return x * 2


def test_the_first_device_is_the_default():
    with (
        plait.default_device(plait.devices()[0]),
        plait.default_device("cpu"),
        plait.default_device(None),
    ):
        assert float(jnp.ones(())) == 1.0
    with pytest.raises(errors.PlacementError, match="local_devices"):
        plait.default_device(plait.Device(77, "cpu", "cpu"))


@pytest.mark.parametrize("name", sorted(settings()))
def test_settings_say_what_they_can_be(name):
    """In words of the user, and no name of ours; some take any text."""
    try:
        with plait.config(**{name: "no value of any setting ?!"}):
            pass
    except errors.PlaitError as e:
        assert e.fix and not any(word.startswith("_") for word in e.fix.split()), e.fix
        assert f"at {__file__}:" in str(e)  # and not where Python begins a block


def test_settings_by_the_names_of_jax(monkeypatch):
    monkeypatch.setattr(plait.config, "checks", False)  # whatever the runner set
    try:
        plait.config.update("jax_enable_x64", True)
        assert jnp.ones(2).dtype == np.float64
    finally:
        plait.config.update("default_float", "float32")
        plait.config.update("default_int", "int32")
    assert plait.config.x64
    plait.config.update("jax_platforms", "cpu")
    assert plait.config.jax_platforms == plait.config.jax_platform_name == plait.config.platform
    with plait.disable_jit(), plait.config(checks=True):
        assert plait.config.jax_disable_jit and plait.config.jax_enable_checks
    assert plait.config.jax_disable_jit is plait.config.jax_enable_checks is False
    assert plait.config.jax_num_cpu_devices == plait.config.cpu_devices
    assert plait.config.jax_compilation_cache_dir == plait.config.cache_dir
    assert not hasattr(plait.config, "jax_unheard_of")
    assert plait.config.jax_enable_x64 is False and plait.config.jax_numpy_rank_promotion == "allow"
    with pytest.raises(errors.PlaitError, match="platform"):
        plait.config.update("jax_platforms", "tpu")
    with pytest.raises(errors.PlaitError, match="no setting"):
        plait.config.update("jax_unheard_of", 1)


# ---- names in programs ---------------------------------------------------------------------


def test_scopes_show_where_programs_are_read():
    @plait.named_scope("outer")
    def f(x):
        with plait.named_scope("inner"):
            y = jnp.sin(x)
        return plait.lax.scan(lambda c, _: (c * y, None), x, None, length=2)[0]

    text = plait.jit(f).lower(1.0).as_text(debug_info=True)
    assert 'loc("outer/inner"' in text and 'loc("outer"' in text and "test_blocks.py" in text
    assert "outer" not in plait.jit(f).lower(1.0).as_text()
    np.testing.assert_allclose(float(f(0.5)), 0.5 * np.sin(0.5) ** 2, rtol=1e-6)
    np.testing.assert_allclose(float(plait.jit(f)(0.5)), float(f(0.5)), rtol=1e-6)


def test_errors_inside_a_scope_name_the_line():
    def f(x):
        with plait.named_scope("a"):
            return x @ jnp.ones((2, 3))

    with pytest.raises(errors.PlaitError, match="test_blocks.py"):
        plait.jit(f)(jnp.ones(4))
    with pytest.raises(errors.TypeRule):
        plait.named_scope(f)


def test_named_calls():
    @plait.named_call
    def helper(x):
        return x + 1

    other = plait.named_call(lambda x: helper(x) * 2, name="twice")
    text = plait.jit(other).lower(1.0).as_text(debug_info=True)
    assert "twice/helper" in text and float(other(1.0)) == 4.0


# ---- programs, compilation, the process --------------------------------------------------------


def test_programs_with_static_arguments_and_axes():
    program, shape = plait.make_jaxpr(lambda n, x: x[:n], static_argnums=0, return_shape=True)(
        2, jnp.ones(3)
    )
    assert shape.shape == (2,) and program.out_avals[0].shape == (2,)
    summed = plait.make_jaxpr(lambda x: plait.lax.psum(x, "i"), axis_env=[("i", 4)])(1.0)
    assert [e.prim.name for e in summed.eqns] == ["core.psum"]
    with pytest.raises(errors.TypeRule):
        plait.make_jaxpr(3)


def test_flags_of_the_compiler():
    f = lambda x: jnp.exp(x) * 2  # noqa: E731
    want = 2 * np.exp(0.5)
    fast = {"xla_cpu_enable_fast_math": True}
    with plait.events.counting() as n:
        assert np.isclose(plait.jit(f)(0.5), want)
        assert np.isclose(plait.jit(f, compiler_options=fast)(0.5), want)
        assert np.isclose(plait.jit(f, compiler_options=dict(fast))(0.5), want)
    assert n["compile"] == 2 and n["trace"] == 1
    lowered = plait.jit(f).lower(0.5)
    assert np.isclose(lowered.compile(compiler_options=fast)(0.5), want)
    static = plait.jit(lambda x, n: x * n, static_argnums=1, compiler_options=fast)
    assert float(static(2.0, 3)) == 6.0
    for wrong in ({"xla_unheard_of": 1}, {"xla_cpu_enable_fast_math": "perhaps"}):
        with pytest.raises(errors.ArgumentError, match="compiler_options"):
            plait.jit(f, compiler_options=wrong)(0.5)
    with pytest.raises(errors.ArgumentError, match="dict"):
        plait.jit(f, compiler_options=[])
    with pytest.raises(errors.PlacementError, match="platform"):
        plait.jit(f, backend="tpu")
    assert np.isclose(plait.jit(f, backend="cpu")(0.5), want)


def test_the_process_is_the_only_one():
    assert plait.process_index() == plait.host_id() == 0 and plait.process_count() == 1
    assert plait.process_indices() == [0] and plait.local_devices(0, "cpu") == plait.devices("cpu")
    assert plait.local_device_count() == plait.device_count() == len(plait.devices())
    for wrong in (lambda: plait.devices("tpu"), lambda: plait.local_devices(3)):
        with pytest.raises(errors.PlacementError):
            wrong()
    assert "jaxlib" in plait.print_environment_info(return_string=True)


def test_arrays_that_live():
    x = jnp.arange(5)
    assert any(y is x for y in plait.live_arrays())
    assert plait.copy_to_host_async({"x": x, "n": 1})["x"] is x
    x.delete()
    assert not any(y is x for y in plait.live_arrays())
    plait.effects_barrier()


def test_copies_to_the_host_begin_for_arrays_of_others():
    begun = []

    class Theirs:
        def copy_to_host_async(self):
            begun.append(self)
            raise AttributeError("theirs")

    x = Theirs()
    with pytest.raises(AttributeError, match="theirs"):  # a mistake of theirs is not hidden
        plait.copy_to_host_async([1, x, object()])
    assert begun == [x]
    assert float(plait.jit(plait.copy_to_host_async)(2.0)) == 2.0


def test_traced_values_are_arrays():
    kinds = []
    plait.jit(
        lambda x: kinds.append((isinstance(x, plait.Array), isinstance(x, plait.core.Tracer)))
    )(1.0)
    assert kinds == [(True, True)]
    x = jnp.ones(2)
    assert isinstance(x, plait.Array) and isinstance(x, jnp.ndarray)
    assert not isinstance(x, plait.core.Tracer) and not isinstance(np.ones(2), plait.Array)
    with pytest.raises(TypeError, match="asarray"):
        plait.Array((2,))


def test_types_of_values():
    t = plait.typeof(jnp.ones((2, 3), "bfloat16"))
    assert (t.shape, t.dtype, t.weak_type) == ((2, 3), jnp.bfloat16, False)
    assert plait.typeof(2).weak_type and plait.typeof(np.ones(4)).shape == (4,)


def test_callbacks_once_for_all():
    shapes = []

    def on_host(a, b):
        shapes.append((np.shape(a), np.shape(b)))
        return np.asarray(a) + np.asarray(b)

    f = lambda x: plait.pure_callback(on_host, x, x, 1.0, vmap_method="expand_dims")  # noqa: E731
    assert float(f(jnp.asarray(1.0))) == 2.0 and shapes == [((), ())]
    with pytest.raises(errors.TypeRule, match="vmap_method"):
        plait.pure_callback(on_host, 1.0, vmap_method="somehow")
    with pytest.raises(errors.TypeRule, match="whole"):
        plait.pure_callback(on_host, 1.0, sharding=object())


def test_formats_are_tried_before_they_are_printed(capsys):
    plait.debug.print("{} {n:.1f} {{}}", 1, n=2.0)
    assert capsys.readouterr().out == "1 2.0 {}\n"
    for fmt, args, kwargs in (("{} {}", (1,), {}), ("{x}", (), {}), ("", (1,), {}), ("{", (), {})):
        with pytest.raises(errors.TypeRule, match="format"):
            plait.debug.print(fmt, *args, **kwargs)


# ---- errors and modules by the names of JAX ------------------------------------------------------


def test_errors_have_the_names_of_jax():
    e = plait.errors
    cases = {
        e.TracerBoolConversionError: lambda x: 1 if x > 0 else 2,
        e.ConcretizationTypeError: lambda x: float(x),
        e.TracerArrayConversionError: lambda x: np.sin(x),
        e.TracerIntegerConversionError: lambda x: [1, 2][x.astype(int)],
        e.NonConcreteBooleanIndexError: lambda x: jnp.arange(3)[x > jnp.arange(3)],
    }
    for kind, f in cases.items():
        with pytest.raises(kind):
            plait.jit(f)(1.0)
    assert issubclass(e.NonConcreteBooleanIndexError, IndexError)
    assert issubclass(e.JaxRuntimeError, RuntimeError)


def test_modules_by_the_names_of_jax():
    core = importlib.import_module("plait.core")
    assert core.ShapedArray is type(plait.typeof(1.0)) and plait.core is core
    assert importlib.import_module("plait.experimental").io_callback is plait.io_callback
    assert plait.experimental.pjit.pjit is plait.jit
    with pytest.raises(AttributeError, match="differences"):
        plait.core.unheard_of  # noqa: B018
    assert not hasattr(plait.experimental, "__unheard_of__")
    for absent in ("plait.experimental.unheard_of", "plait.unheard_of", "plait.core.unheard_of"):
        with pytest.raises(ImportError):
            importlib.import_module(absent)


def test_names_of_others_are_found_late():
    code = """if True:
        import sys
        import plait
        late = ["numpy", "lax", "blocks", "scopes", "debug", "random", "nn", "scipy"]
        assert not [m for m in late if "plait." + m in sys.modules]
        missing = [n for n in plait.__all__ if getattr(plait, n, None) is None]
        assert not missing, missing
        assert {"named_scope", "enable_x64"} <= set(dir(plait))
        """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


# ---- what is wrong with a block --------------------------------------------------------------


@pytest.mark.parametrize(
    "block",
    [
        lambda: plait.config(no_such_setting=1),
        lambda: plait.config(default_float=3),
        lambda: plait.numpy_rank_promotion("no"),
        lambda: plait.default_matmul_precision("no"),
    ],
)
def test_mistakes_name_the_line_of_the_with(block):
    """Between it and us is contextlib, of which the user knows nothing."""
    with pytest.raises(errors.PlaitError) as e, block():
        pass
    assert e.value.fix and "test_blocks.py" in e.value.where, e.value.where


def test_python_itself_is_named_where_nobody_else_called():
    with futures.ThreadPoolExecutor(1) as pool:
        got = pool.submit(jnp.reshape, np.ones(3), (2,))
        with pytest.raises(errors.PlaitError) as e:
            got.result()
    assert "thread.py" in e.value.where
