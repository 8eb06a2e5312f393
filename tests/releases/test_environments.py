"""Environments to work in: `uv sync` and `hatch env create` make them, with all packages editable.

Invariant: they are made in a clone, by tools that are here or that uv brings.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = (
    "import plait, plait.numpy as pnp, plait.ext, pytest, hypothesis;"
    "print(plait.vmap(plait.grad(lambda x: x * x))(pnp.ones(2)).tolist(), plait.__file__)"
)


@pytest.mark.skipif("PLAIT_TEST_ENVIRONMENTS" not in os.environ, reason="run by `nox -s workplace`")
@pytest.mark.skipif(shutil.which("uv") is None, reason="needs uv")
@pytest.mark.parametrize(
    "make, run",
    [
        (["sync", "--quiet"], ["run", "--no-sync"]),
        (["tool", "run", "hatch", "env", "create"], ["tool", "run", "hatch", "run"]),
    ],
    ids=["uv", "hatch"],
)
def test_an_environment_to_work_in(make, run, tmp_path):
    folder = tmp_path / "plait"
    subprocess.run(
        ["git", "clone", "-q", "--depth", "1", f"file://{ROOT}", str(folder)], check=True
    )
    hidden = ("VIRTUAL_ENV", "PYTHONPATH", "UV_PROJECT_ENVIRONMENT")
    env = {k: v for k, v in os.environ.items() if k not in hidden}
    env["HATCH_DATA_DIR"] = str(tmp_path / "hatch")

    def uv(*args: str) -> str:
        done = subprocess.run(["uv", *args], cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    uv(*make)
    assert uv(*run, "python", "-c", PROGRAM).split("] ")[0] == "[2.0, 2.0"
    doctor = uv(*run, "python", "-m", "plait", "doctor")
    assert "nothing is wrong" in doctor and "plait-jax" in doctor
    left = subprocess.run(
        ["git", "status", "--short"], cwd=folder, capture_output=True, text=True, check=True
    )
    assert not left.stdout, "files of the environment are not ignored"
