"""Programs written for JAX run with `import plait as jax`, and give what they give there.

Each file of `programs` is run as it is written, and once more with `plait` for `jax` in its
imports and in nothing else; numbers, shapes and dtypes of what its `main` returns are compared.

Invariant: a program is not adapted to either library: no name in it says which one runs it.
"""

import ast
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="run by `nox -s coexistence`")

PROGRAMS = sorted(Path(__file__).parent.glob("programs/*.py"))


class ForPlait(ast.NodeTransformer):
    """The imports of a program, with the other library in them."""

    def visit_Import(self, node: ast.Import) -> ast.Import:
        for alias in node.names:
            top, dot, rest = alias.name.partition(".")
            if top == "jax":
                assert alias.asname or not dot, f"`import {alias.name}` without `as`"
                alias.name, alias.asname = "plait" + dot + rest, alias.asname or "jax"
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        top, dot, rest = (node.module or "").partition(".")
        if top == "jax":
            node.module = "plait" + dot + rest
        return node


def run(path: Path, for_plait: bool):
    """What the program's `main` returns."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if for_plait:
        tree = ForPlait().visit(tree)
    module = ModuleType(path.stem)
    exec(compile(tree, str(path), "exec"), vars(module))
    return module.main()


def compare(theirs, ours, where="", *, rtol=1e-5, atol=1e-5):
    """Trees of numbers agree; `where` is what messages begin with."""
    assert isinstance(ours, (list, tuple, dict)) == isinstance(theirs, (list, tuple, dict)), where
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys(), where
        for k in theirs:
            compare(theirs[k], ours[k], f"{where}[{k!r}]", rtol=rtol, atol=atol)
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), where
        for i, (a, b) in enumerate(zip(theirs, ours)):
            compare(a, b, f"{where}[{i}]", rtol=rtol, atol=atol)
    elif theirs is None:
        assert ours is None, where
    else:
        a, b = np.asarray(theirs), np.asarray(ours)
        assert a.shape == b.shape, f"{where}: {a.shape} and {b.shape}"
        assert a.dtype == b.dtype, f"{where}: {a.dtype} and {b.dtype}"
        np.testing.assert_allclose(b, a, rtol, atol, equal_nan=True, err_msg=where)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_a_program_for_jax_runs(path):
    compare(run(path, for_plait=False), run(path, for_plait=True))
