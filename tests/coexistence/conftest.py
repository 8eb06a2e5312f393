"""What both libraries are told before either of them computes.

Invariant: every test here finds as many devices in both.
"""

import pytest

import plait

DEVICES = 4


@pytest.fixture(scope="session", autouse=True)
def devices():
    """As many virtual devices for both; they cannot be had later."""
    jax = pytest.importorskip("jax", reason="run by `nox -s coexistence`")
    jax.config.update("jax_num_cpu_devices", DEVICES)
    jax.config.update("jax_disable_most_optimizations", True)  # it compiles in half the time
    plait.config.cpu_devices = DEVICES
