"""`plait-jax` from its wheel: nothing for who does not ask, `import jax` for who does.

Invariant: the folder that `nox -s subsets` installed it into is read as `site` reads one.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SITE = os.environ.get("PLAIT_TEST_SITE")
pytestmark = pytest.mark.skipif(SITE is None, reason="run by `nox -s subsets`")

ASK = """
import sys
found = {m.partition(".")[0] for m in sys.modules if m.startswith("plait")}
try:
    import jax
    answer = float(jax.jit(jax.numpy.cos)(0.0))
except ImportError:
    answer = None
print(sorted(found), answer)
"""


def told(value: str | None) -> str:
    """Return the output of a Python with plait-jax and its requirements, and PLAIT_JAX set so."""
    folders = [str(Path(SITE or "") / package) for package in ("core", "numpy", "jax")]
    code = "import site\n" + "".join(f"site.addsitedir({f!r})\n" for f in folders) + ASK
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PLAIT_JAX")}
    env |= {} if value is None else {"PLAIT_JAX": value}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], env=env, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("value", [None, "", "0"])
def test_who_does_not_ask_gets_nothing(value):
    assert told(value) == "[] None"


def test_who_asks_gets_it_without_a_line_of_code():
    assert told("1") == "['plait_jax'] 1.0"
