"""`import jax` is Plait's answer in this folder, where libraries that need it are tested.

Invariant: it is installed before any library is imported, and never beside a real jax.
"""

from importlib.util import find_spec

if find_spec("plait_jax") is not None:
    import plait_jax

    plait_jax.install()
