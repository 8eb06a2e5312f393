"""What the tests share: `import jax` answered for a while, in this process or in another.

Invariant: afterwards the process is as it was: no module by the name of jax is left that Plait
made, and the settings are those of before.
"""

import os
import subprocess
import sys
import textwrap

import pytest

import plait
import plait_jax


@pytest.fixture
def jax():
    """The module, as libraries get it."""
    aside = {n: m for n, m in sys.modules.items() if n.partition(".")[0] == "jax"}
    for name in aside:
        del sys.modules[name]
    settings = ("x64", "default_float", "default_int", "numpy_scalars", "check_static_indices")
    before = {name: getattr(plait.config, name) for name in settings}
    plait_jax.install()
    try:
        import jax

        yield jax
    finally:
        plait_jax.uninstall()
        sys.modules.update(aside)
        for name, value in before.items():
            setattr(plait.config, name, value)


@pytest.fixture
def run(tmp_path):
    """Runs a script, or Python with some arguments; returns what it printed and its errors."""

    def run(code, *before, status=0, **env):
        script = tmp_path / "script.py"
        script.write_text(textwrap.dedent(code), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-W", "error", *before, str(script)],
            env={**os.environ, **env},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == status, done.stderr
        return done.stdout if status == 0 else done.stderr

    return run
