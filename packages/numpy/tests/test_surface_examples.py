"""The examples in the docstrings of what users call.

Invariant: each module of the surfaces is here by being imported from its package.
"""

import doctest
import importlib
import pkgutil

import pytest

import plait.lax
import plait.nn
import plait.numpy
import plait.numpy.linalg
import plait.random
import plait.scipy.linalg
import plait.scipy.special
import plait.scipy.stats

PACKAGES = (
    plait.numpy,
    plait.lax,
    plait.nn,
    plait.numpy.linalg,
    plait.scipy.linalg,
    plait.scipy.stats,
    plait.random,
)
MODULES = ["plait.scipy.special", "plait.tree", "plait.tree_util", "plait.dtypes", "plait.debug"]
MODULES += [
    "plait._api.scopes",
    "plait._jit.jittable",
    "plait._jit.jitted",
    "plait._jit.programs",
    "plait._jit.shapes",
    "plait._jit.stages",
    "plait._api.hardware",
    "plait._jit.tracing",
]
MODULES += ["plait.typing", "plait._core.array", "plait._ops.operators"]
NO_EXAMPLES = ("plait.numpy.linalg", "plait.numpy.fft")
MODULES += [
    name
    for p in PACKAGES
    for m in pkgutil.iter_modules(p.__path__)
    if (name := f"{p.__name__}.{m.name}") not in NO_EXAMPLES
]
"""But two that hold nothing that is not in another one."""


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
