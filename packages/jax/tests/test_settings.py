"""Settings of JAX's that are blocks of Plait's: they stay open until they are written again.

Invariant: what was written is taken back, for settings belong to the process.
"""

import numpy as np
import pytest

import plait
from plait.errors import ArgumentError, PlaitError
from plait_jax.settings import CONFIG

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


def test_names_that_are_none():
    with pytest.raises(PlaitError, match="no setting 'jax_debug_nanz'"):
        CONFIG.update("jax_debug_nanz", True)
    assert "jax_debug_nans" in dir(CONFIG)


def test_settings_with_one_value():
    CONFIG.update("jax_threefry_partitionable", True)
    assert CONFIG.jax_threefry_partitionable is True
    with pytest.raises(ArgumentError, match="False is asked for"):
        CONFIG.jax_threefry_partitionable = False


def test_whole_tracebacks():
    for how, ours in (("off", "full"), ("remove_frames", "filtered"), ("auto", "filtered")):
        CONFIG.update("jax_traceback_filtering", how)
        assert plait.config.traceback == ours
        assert CONFIG.jax_traceback_filtering == ("off" if how == "off" else "auto")
    with pytest.raises(PlaitError, match="'traceback' can not be 'all'"):
        CONFIG.update("jax_traceback_filtering", "all")
