"""What the tests share: `import jax` answered for a while, in double precision.

Invariant: afterwards no module by the name of jax is left that Plait made, and the settings are
those of before.
"""

import importlib
import sys

import pytest

import plait
import plait_jax


@pytest.fixture
def load(monkeypatch):
    """Imports a module of JAX's, as libraries get it."""
    for name in [n for n in sys.modules if n.partition(".")[0] == "jax"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    settings = ("x64", "default_float", "default_int", "numpy_scalars", "check_static_indices")
    before = {name: getattr(plait.config, name) for name in settings}
    plait_jax.install()
    try:
        yield importlib.import_module
    finally:
        plait_jax.uninstall()
        for name, value in before.items():
            setattr(plait.config, name, value)


@pytest.fixture
def jax(load):
    """The module jax."""
    return load("jax")
