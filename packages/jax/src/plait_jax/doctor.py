"""A small program that works where this package does: `python -m plait doctor --check` runs it.

Invariant: it needs the core and the distributions that this package requires, and one device.
"""

import subprocess
import sys

__all__ = ["check"]

_PROGRAM = """
import plait_jax
plait_jax.install()
import jax
assert int(jax.jit(jax.numpy.sum)(jax.numpy.arange(4))) == 6
"""


def check() -> None:
    """Add numbers by JAX's names, in a process of its own: they stay where they are installed."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr.strip().splitlines()[-1]
