"""With the core and this package only: reading and calling, in a process that imports no other."""

import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import plait_export

GOLDEN = Path(__file__).with_name("golden") / "format1_symbolic.plait"

PROGRAM = """
import sys
import numpy as np
import plait

exported = plait.export.deserialize(open(sys.argv[1], "rb").read())
x = np.arange(8, dtype=np.float32).reshape(2, 4)
np.testing.assert_array_equal(exported.call(x, x[0])[2], np.sort(x, 0))
again = plait.export.export(plait.jit(lambda x, y: exported.call(x, y)[0]))(x, x[0])
np.testing.assert_array_equal(again.call(x, x[0]), x.sum(0) + x[0])
loaded = {m.partition(".")[0] for m in sys.modules}
others = {"plait_autodiff", "plait_batching", "plait_sharding", "jax", "flatbuffers", "scipy"}
assert not loaded & others, loaded & others
print("done")
"""


def run(code: str, *args: str, plugins: str = "export") -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        env={"PLAIT_PLUGINS": plugins, "PLAIT_CACHE_DIR": "", "PATH": ""},
        capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.timeout(120)
def test_a_process_with_core_and_export_only():
    done = run(PROGRAM, str(GOLDEN))
    assert done.stdout == "done\n", done.stderr


def test_a_process_that_does_not_admit_it_says_what_to_install():
    done = run("import plait; plait.export", plugins="off")
    assert "plait.export belongs to plait-export" in done.stderr


def test_importing_it_starts_nothing():
    done = run("import plait_export, sys; print('jaxlib.mlir.ir' in sys.modules)")
    assert done.stdout == "False\n", done.stderr


WITH_SIBLINGS = {"derivatives", "mapping"}
"""Modules that tables of siblings load, and that need these."""


@pytest.mark.parametrize(
    "name", [m.name for m in pkgutil.iter_modules(plait_export.__path__)
             if m.name not in WITH_SIBLINGS]
)  # fmt: skip
def test_examples_run(name):
    module = importlib.import_module("plait_export." + name)
    assert not doctest.testmod(module).failed


def test_what_is_public_is_documented():
    for name in plait_export.__all__:
        thing = getattr(plait_export, name)
        assert thing.__doc__ if not hasattr(thing, "doc") else thing.doc, name
