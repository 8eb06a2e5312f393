"""Settings of JAX's that are blocks of Plait's: they stay open until they are written again.

Invariant: what was written is taken back, for settings belong to the process.
"""

import warnings

import numpy as np
import pytest

import plait
from plait.errors import ArgumentError, PlaitError
from plait_jax import key_types, report, settings
from plait_jax.settings import _BLOCKS, _SPELLED, CONFIG, SETTINGS, _plaits

X = np.float32(-1)


@pytest.fixture(autouse=True)
def as_before():
    yield
    for name in ("jax_debug_nans", "jax_debug_infs", "jax_check_tracer_leaks"):
        CONFIG.update(name, False)
    CONFIG.jax_default_device = None


def log(x):
    return plait.numpy.log(x) + 1


def reciprocal(x):
    return 1 / x


def test_nans_and_infinities_in_any_order():
    assert not CONFIG.jax_debug_nans and np.isnan(plait.jit(log)(X))
    CONFIG.update("jax_debug_nans", True)
    assert CONFIG.jax_debug_nans is True and CONFIG.read("jax_debug_nans") is True
    with pytest.raises(FloatingPointError, match="core.log gave nan"):
        plait.jit(log)(X)
    CONFIG.jax_debug_infs = True
    with pytest.raises(FloatingPointError, match="inf"):
        plait.jit(reciprocal)(0.0)
    CONFIG.update("jax_debug_nans", False)
    assert np.isnan(plait.jit(log)(X))
    with pytest.raises(FloatingPointError, match="inf"):
        plait.jit(reciprocal)(0.0)
    CONFIG.update("jax_debug_infs", False)
    assert np.isinf(plait.jit(reciprocal)(0.0))


def test_inside_of_a_block_or_a_traced_function_they_are_refused():
    with plait.debug_nans(True), pytest.raises(ArgumentError, match="inside of another block"):
        CONFIG.update("jax_debug_infs", True)

    def f(x):
        CONFIG.update("jax_debug_infs", True)
        return x

    with pytest.raises(ArgumentError, match="a function that is transformed") as e:
        plait.jit(f)(1.0)
    assert "with jax.debug_infs(...)" in e.value.fix
    assert not CONFIG.jax_debug_infs and np.isinf(plait.jit(reciprocal)(0.0))


def test_the_default_device():
    device = plait.devices()[-1]
    CONFIG.update("jax_default_device", device)
    assert CONFIG.jax_default_device is device
    assert plait.numpy.ones(2).tolist() == [1, 1]
    with pytest.raises(PlaitError, match="device"):
        CONFIG.update("jax_default_device", 3.5)
    CONFIG.jax_default_device = None
    assert CONFIG.jax_default_device is None


def test_an_unknown_setting():
    with pytest.raises(PlaitError, match="no setting 'jax_debug_nanz'") as e:
        CONFIG.update("jax_debug_nanz", True)
    assert isinstance(e.value, AttributeError) and "dir(jax.config)" in e.value.fix
    assert "jax_debug_nans" in dir(CONFIG)


VALUES = {"bool": (True, False), "int": (0, 7), "float": (0, 0.5), "str": ("", "some text")}
MEANINGLESS = [n for n in SETTINGS if n not in _BLOCKS and n not in _SPELLED and not _plaits(n)]


@pytest.mark.parametrize("name", MEANINGLESS)
def test_a_setting_without_meaning_is_kept_and_warns_once(name, monkeypatch):
    monkeypatch.setattr(settings, "_warned", set())
    monkeypatch.setattr(settings, "_kept", {})
    kind, default = SETTINGS[name]
    assert CONFIG.read(name) == default
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CONFIG.update(name, default)
        CONFIG.update(name, None)
    others = [v for v in VALUES.get(kind, kind.split("|")[1:]) if v != default]
    with pytest.warns(UserWarning, match=f"{name}=.* has no effect") as told:
        for value in others:
            CONFIG.update(name, value)
            assert CONFIG.read(name) == getattr(CONFIG, name) == value
    assert len(told) == 1 and told[0].filename == __file__
    assert f"jax.config.{name}" in report().names
    for bad in ([], object()):
        with pytest.raises(ArgumentError, match=f"{name} must be .*{kind.split('|')[0]}"):
            CONFIG.update(name, bad)
    assert CONFIG.read(name) == others[-1]


def test_most_settings_have_one_of_the_tested_kinds():
    assert len(MEANINGLESS) > 80 and "jax_transfer_guard" not in MEANINGLESS
    assert "jax_threefry_partitionable" in MEANINGLESS


def test_precisions_by_all_of_jaxs_names():
    try:
        for name in SETTINGS["jax_default_matmul_precision"].kind.split("|"):
            CONFIG.update("jax_default_matmul_precision", name)
        CONFIG.update("jax_default_matmul_precision", "float32")
        assert plait.config.default_matmul_precision == "highest"
        with pytest.raises(PlaitError, match="no precision 'exact'"):
            CONFIG.update("jax_default_matmul_precision", "exact")
        CONFIG.update("jax_default_matmul_precision", None)
        assert plait.config.default_matmul_precision == "default"
    finally:
        plait.config.default_matmul_precision = "default"


def test_settings_that_plait_spells_differently():
    before = plait.config.cache_dir
    try:
        CONFIG.update("jax_enable_compilation_cache", True)
        assert plait.config.cache_dir == before
        CONFIG.update("jax_enable_compilation_cache", False)
        assert plait.config.cache_dir is None
        CONFIG.update("jax_enable_custom_prng", True)
        assert CONFIG.jax_enable_custom_prng is True
        assert plait.dtypes.issubdtype(key_types.PRNGKey(0).dtype, plait.dtypes.prng_key)
        with key_types.enable_custom_prng(False):
            assert key_types.PRNGKey(0).dtype == np.uint32
        CONFIG.update("jax_num_cpu_devices", -1)
    finally:
        plait.config.cache_dir = before
        CONFIG.update("jax_enable_custom_prng", False)
    assert key_types.PRNGKey(0).dtype == np.uint32


def test_settings_of_the_cache_on_disk(tmp_path, recwarn):
    """They are Plait's, and each can be read as it was written."""
    names = ("cache_dir", "cache_size", "cache_seconds")
    before = {name: getattr(plait.config, name) for name in names}
    try:
        CONFIG.update("jax_compilation_cache_dir", str(tmp_path))
        CONFIG.update("jax_enable_compilation_cache", False)
        assert plait.config.cache_dir is None and CONFIG.jax_enable_compilation_cache is False
        CONFIG.update("jax_enable_compilation_cache", True)
        assert plait.config.cache_dir == str(tmp_path) and CONFIG.jax_enable_compilation_cache
        for seconds in (0, 2.5):
            CONFIG.update("jax_persistent_cache_min_compile_time_secs", seconds)
            assert plait.config.cache_seconds == seconds
            assert CONFIG.jax_persistent_cache_min_compile_time_secs == seconds
        CONFIG.update("jax_compilation_cache_max_size", 1 << 20)
        assert plait.config.cache_size == CONFIG.jax_compilation_cache_max_size == 1 << 20
        CONFIG.update("jax_compilation_cache_max_size", -1)
        assert plait.config.cache_size > 1 << 50 and CONFIG.jax_compilation_cache_max_size == -1
        CONFIG.update("jax_persistent_cache_min_entry_size_bytes", -1)
        CONFIG.update("jax_persistent_cache_min_entry_size_bytes", 0)
        assert not recwarn
    finally:
        for name, value in before.items():
            setattr(plait.config, name, value)


def test_a_setting_is_a_block_of_its_name(jax, monkeypatch):
    monkeypatch.setattr(settings, "_warned", {"jax_softmax_custom_jvp"})
    with jax.softmax_custom_jvp(True):
        assert jax.config.jax_softmax_custom_jvp is True
    assert jax.config.jax_softmax_custom_jvp is False
    with jax.thread_guard(False), jax.no_tracing(False):
        assert jax.config.read("jax_thread_guard") is False
    assert jax.config.values["jax_threefry_partitionable"] is True


def test_no_tracing_refuses_new_types_only(jax):
    x = jax.numpy.ones(3)
    traced = []

    def twice(v):
        traced.append(v.shape)
        return v * 2

    f = jax.jit(twice)
    f(x)
    with jax.no_tracing():
        assert jax.config.jax_no_tracing is True
        assert f(x).tolist() == [2, 2, 2] and (x + jax.numpy.sin(x)).shape == (3,)
        for other in (jax.numpy.ones(4), 1, x.astype("bfloat16")):
            with pytest.raises(RuntimeError, match="twice.*traced for new types"):
                f(other)
    assert jax.config.jax_no_tracing is False
    assert f(jax.numpy.ones(4)).shape == (4,) and traced == [(3,), (4,)]


def test_guards_of_transfers(jax):
    x = jax.numpy.ones(2)
    with jax.transfer_guard("disallow"):
        assert jax.config.jax_transfer_guard == "disallow"
        assert jax.config.jax_transfer_guard_device_to_host == "disallow"
        with pytest.raises(RuntimeError, match="host to a device"):
            jax.jit(lambda x: x)(np.ones(2, np.float32))
        with jax.transfer_guard_device_to_host("allow"):
            assert float(x[0]) == 1
    jax.config.update("jax_transfer_guard", "disallow")
    try:
        assert plait.config.transfer_guard_device_to_device == "disallow"
    finally:
        jax.config.update("jax_transfer_guard", None)
    assert plait.config.transfer_guard_device_to_host == "allow"


def test_settings_by_variables(run):
    code = """
        import jax
        c = jax.config
        print(c.jax_debug_nans, c.jax_disable_jit, c.jax_platforms, c.jax_default_matmul_precision,
              c.jax_numpy_rank_promotion, c.jax_pgle_profiling_runs)
    """
    told = {"JAX_DEBUG_NANS": "yes", "JAX_DISABLE_JIT": "1", "JAX_PLATFORMS": "cpu,cuda",
            "JAX_DEFAULT_MATMUL_PRECISION": "float32", "JAX_NUMPY_RANK_PROMOTION": "raise",
            "PLAIT_NUMPY_RANK_PROMOTION": "warn"}  # fmt: skip
    out = run(code, "-m", "plait_jax", **told)
    assert out == "True True cpu highest warn 3\n"
    failed = run(code, "-m", "plait_jax", status=1, JAX_DEBUG_NANS="perhaps")
    assert "JAX_DEBUG_NANS must be a value of type bool, got 'perhaps'" in failed


def test_whole_tracebacks():
    for how, ours in (("off", "full"), ("remove_frames", "filtered"), ("auto", "filtered")):
        CONFIG.update("jax_traceback_filtering", how)
        assert plait.config.traceback == ours
        assert CONFIG.jax_traceback_filtering == ("off" if how == "off" else "auto")
    with pytest.raises(PlaitError, match="'traceback' cannot be 'all'"):
        CONFIG.update("jax_traceback_filtering", "all")


@pytest.mark.parametrize("wide", ["0", "1"])
def test_numpys_scalars_have_jaxs_rule(run, wide):
    """They are strong: float32 without 64 bits, float64 with them."""
    out = run(
        "import plait_jax; plait_jax.install()\n"
        "import numpy as np, jax.numpy as jnp\n"
        "x, half = jnp.ones(2, 'float32'), jnp.ones(2, 'float16')\n"
        "print((x * np.float64(2)).dtype, (half * np.float64(2)).dtype, (half * 2.0).dtype)",
        JAX_ENABLE_X64=wide,
    )
    assert out.strip() == {"0": "float32 float32 float16", "1": "float64 float64 float16"}[wide]
