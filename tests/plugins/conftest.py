"""Hostile distributions, built and put on the search path of a Python of their own.

Invariant: they are real wheels, found through the same metadata as everybody's, and no test's
process but the one that asked for them sees them.
"""

import os
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

DISTRIBUTIONS = Path(__file__).parent / "distributions"


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """`installed(name)`: the folder into which the wheel of a hostile distribution is unpacked."""
    made = {}

    def install(name: str) -> Path:
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
            subprocess.run(build, cwd=DISTRIBUTIONS / name, check=True, capture_output=True)
            (wheel,) = folder.glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder / "site")
            made[name] = folder / "site"
        return made[name]

    return install


@pytest.fixture
def beside(installed):
    """`beside(names, code, **env)`: what `code` prints in a Python that has these installed.

    `code` may use `plait` and `caught(f)`, which gives the text of the error that `f()` raises.
    """

    def run(names: str, code: str, **env: str) -> str:
        folders = [n if "/" in n else str(installed(n)) for n in names.split()]
        start = """
            import sys
            import plait

            def caught(f):
                try:
                    return f"no error, but {f()}"
                except Exception as error:
                    return f"{type(error).__mro__[0].__name__}: {error}"
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(start) + textwrap.dedent(code)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), **env},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
