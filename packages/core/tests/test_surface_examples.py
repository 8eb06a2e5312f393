"""The examples in the docstrings of what users call.

Invariant: each module of the surfaces is here by being imported from its package.
"""

import doctest
import importlib
import pkgutil

import pytest

import weft.lax
import weft.nn
import weft.numpy
import weft.numpy.linalg
import weft.random
import weft.scipy.linalg
import weft.scipy.special
import weft.scipy.stats

PACKAGES = (weft.numpy, weft.lax, weft.nn, weft.numpy.linalg, weft.scipy.linalg, weft.scipy.stats,
            weft.random)
MODULES = ["weft.scipy.special", "weft.tree", "weft.tree_util", "weft.dtypes", "weft.debug"]
MODULES += ["weft.blocks", "weft.scopes", "weft.listing", "weft.hardware", "weft.tracing",
            "weft.typing"]  # fmt: skip
MODULES += [f"{p.__name__}.{m.name}" for p in PACKAGES for m in pkgutil.iter_modules(p.__path__)
            if f"{p.__name__}.{m.name}" not in ("weft.numpy.linalg", "weft.numpy.fft")]  # fmt: skip
"""But two that hold nothing that is not in another one."""


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
