"""The modules that a first call imports, in a process that has imported nothing of Plait.

Invariant: the numbers are upper bounds, a little above what was counted when they were written.
"""

import ast
import importlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CALLS = {
    "import plait": ("", 123),
    "jit": ("plait.jit(lambda x: x + 1)(1.0)", 124),
    "grad": ("plait.grad(lambda x: x * x)(1.0)", 203),
    "vmap": ("plait.vmap(lambda x: x + 1)(numpy.ones(3))", 194),
}
LIBRARY = ("linalg", "special", "nn")
"""The namespaces of primitives of the array library."""
COUNT = """
import json, sys, numpy, plait
{}
print(json.dumps([n for n in sys.modules if n.partition(".")[0].startswith("plait")]))
"""


def imported(code: str) -> set[str]:
    """Our modules that a process has imported after it ran a line."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", COUNT.format(code)],
        capture_output=True, text=True, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {*json.loads(done.stdout)}


@pytest.mark.parametrize("call", CALLS)
def test_a_first_call_imports_what_it_needs(call):
    code, most = CALLS[call]
    found = imported(code)
    assert not [n for n in found if n.startswith(("plait_numpy", "plait.lax"))]
    assert len(found) <= most, sorted(found)


@pytest.mark.parametrize(
    "code, space",
    [
        ("plait.grad(lambda x: plait.lax.igamma(x, x))(1.5)", "special"),
        ("plait.vmap(plait.lax.linalg.cholesky)(numpy.ones((2, 1, 1)))", "linalg"),
    ],
)
def test_a_namespace_is_imported_when_it_is_used(code, space):
    found = imported(code)
    assert {n for n in LIBRARY if f"plait_numpy.primitives.{n}" in found} == {space}


@pytest.mark.parametrize("package", ["plait_autodiff", "plait_batching"])
def test_names_that_are_imported_later_are_those_that_editors_see(package):
    """The imports for type checkers say where each name of the package is."""
    module = importlib.import_module(package)
    tree = ast.parse(Path(module.__file__).read_text("utf-8"))
    (block,) = [n for n in tree.body if isinstance(n, ast.If)]
    told = {a.name: f"{package}.{n.module}" for n in block.body for a in n.names}
    assert {*told} == {*module.__all__} == {*dir(module)}
    for name, home in told.items():
        assert inspect.unwrap(getattr(module, name)) is inspect.unwrap(
            getattr(importlib.import_module(home), name)
        )
    with pytest.raises(AttributeError, match=f"{package} has no 'nothing'"):
        module.nothing  # noqa: B018
