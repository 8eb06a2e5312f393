"""The page of all functions against JAX: names that both have, and those that one has alone.

Invariant: a name or a parameter that JAX has and Plait has not is on the page, with a reason.
"""

import importlib
import importlib.util
import inspect
import types
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

jax = pytest.importorskip("jax", reason="run by `nox -s coexistence`")
pytest.importorskip("scipy")

spec = importlib.util.spec_from_file_location(
    "functions", Path(__file__).parents[2] / "docs" / "functions.py"
)
functions = importlib.util.module_from_spec(spec)
spec.loader.exec_module(functions)
MODULES = [m for m in functions.MODULES.split() if m != "."]


def theirs(path):
    """What is at a path of JAX, or None."""
    found = jax
    for i, part in enumerate(path.split(".")[1:], 1):
        if not hasattr(found, part):
            try:
                importlib.import_module(".".join(path.split(".")[: i + 1]))
            except ImportError:
                return None
        found = getattr(found, part, None)
    return found


def left_out(path):
    return any(fnmatchcase(path, p) for ps in functions.LEFT_OUT for p in ps.split())


@pytest.mark.parametrize("short", [".", *MODULES])
def test_names_that_both_have(short):
    ours = {functions.full(short, n): functions.in_jax(functions.full(short, n))
            for n in functions.names(short)}  # fmt: skip
    assert [f"{a} ({b})" for a, b in ours.items() if b and theirs(b) is None] == []
    alone = [a for a, b in ours.items() if b is None]
    assert [a for a in alone if theirs(a.replace("plait", "jax", 1)) is not None] == []


@pytest.mark.parametrize("short", [".", *MODULES])
def test_names_that_jax_has(short):
    owner = functions.module(short)
    other = theirs("jax" if short == "." else f"jax.{short}")
    public = [n for n in dir(other) if n[0] != "_" and hasattr(other, n)]
    if short != ".":
        public = [n for n in public if not isinstance(getattr(other, n), types.ModuleType)]
    missing = [functions.full(short, n).replace("plait", "jax", 1)
               for n in public if not hasattr(owner, n)]  # fmt: skip
    assert [path for path in missing if not left_out(path)] == []


@pytest.mark.parametrize("short", [".", *MODULES])
def test_parameters_that_jax_has(short):
    lost = set()
    for name in functions.names(short):
        path = functions.in_jax(functions.full(short, name))
        if path in functions.ELSEWHERE.values():
            continue
        ours, other = getattr(functions.module(short), name), theirs(path) if path else None
        if other is None or inspect.ismodule(other):
            continue
        mine, others = functions.parameters(ours), functions.parameters(other)
        if mine is not None and others is not None:
            lost |= {(name, p) for p in others - mine if p[0] != "_"}
    assert {(name, p) for name, p in lost if p not in functions.ABSENT} == set()
