"""References by JAX's names, in a process that imports jax from Plait."""

import os
import subprocess
import sys
import textwrap


def test_jax_names():
    program = """
        import jax, jax.numpy as jnp
        from jax._src.state.types import AbstractRef
        ref = jax.new_ref(jnp.arange(5))
        ref[3] = 100
        jax.ref.addupdate(ref, 2, 10)
        print(ref, isinstance(ref, jax.Ref), isinstance(ref, jax.Array))
        print(isinstance(jax.typeof(ref), AbstractRef | jax.Ref))
        print(isinstance(jax.typeof(jnp.ones(2)), AbstractRef))
        print(jax.ref.swap(ref, 0, 7), jax.ref.get(ref, slice(0, 2)), jax.freeze(ref))
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PLAIT_JAX": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "Ref([  0,   1,  12, 100,   4], dtype=int32) True False",
        "True",
        "False",
        "0 [7 1] [  7   1  12 100   4]",
    ]
