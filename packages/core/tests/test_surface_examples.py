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

PACKAGES = (weft.numpy, weft.lax, weft.nn)
MODULES = ["weft.tree", "weft.tree_util", "weft.dtypes", "weft.debug"]
MODULES += [f"{p.__name__}.{m.name}" for p in PACKAGES for m in pkgutil.iter_modules(p.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
