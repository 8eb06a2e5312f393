"""Processes that tests start."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest


@pytest.fixture
def process():
    """`process(program, *args, status=0, **environment)`: the finished process of a Python program,
    a text or the path of a file, whose warnings are errors unless PYTHONWARNINGS says otherwise."""

    def run(program: str | Path, *args: str, status: int = 0, **env: str):
        source = [str(program)] if isinstance(program, Path) else ["-c", textwrap.dedent(program)]
        done = subprocess.run(
            [sys.executable, *source, *args],
            env={**os.environ, "PYTHONWARNINGS": "error", **env},
            capture_output=True,
            text=True,
            timeout=250,
        )
        assert done.returncode == status, done.stderr
        return done

    return run
