"""The examples in docstrings under strict settings of promotion: these concern the operands that
users give, and not the values that functions compute with.

Invariant: the text of the docstrings says what is right.
"""

import doctest
import importlib
import io
import pkgutil

import pytest

import plait
import plait.image
import plait.lax
import plait.nn
import plait.random
import plait.scipy

NEED_PLUGINS = {"plait.scipy.optimize"}
MODULES = ["plait.nn", "plait.image", "plait.random", "plait.lax", "plait.nn.initializers"] + [
    m.name
    for m in pkgutil.walk_packages(plait.scipy.__path__, "plait.scipy.")
    if m.name not in NEED_PLUGINS
]
MIXED: set[str] = {"plait.scipy.signal.upfirdn"}
"""Functions whose examples mix dtypes or numbers of axes."""


def _examples(module):
    found = doctest.DocTestFinder(recurse=False)
    for name in getattr(module, "__all__", dir(module)):
        f = getattr(module, name)
        if callable(f) and not isinstance(f, type) and name[0] != "_":
            for test in found.find(
                f, f"{module.__name__}.{name}", module=False, globs=dict(vars(module))
            ):
                if test.examples and test.name not in MIXED:
                    yield test


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", MODULES)
def test_what_functions_compute_with_is_not_judged(name):
    runner, said = doctest.DocTestRunner(verbose=False), io.StringIO()
    with plait.config(numpy_rank_promotion="raise", numpy_dtype_promotion="strict"):
        for test in _examples(importlib.import_module(name)):
            runner.run(test, out=said.write, clear_globs=True)
    assert not runner.failures, said.getvalue()


def test_the_operands_of_users_are_judged():
    one, two = plait.numpy.ones(3), plait.numpy.ones((2, 3))
    calls = {
        "an operator": lambda: one + two, "a function": lambda: plait.numpy.hypot(two, one),
        "jit": lambda: plait.jit(plait.numpy.hypot)(two, one), "vectorize": lambda: (
            plait.numpy.vectorize(plait.numpy.add, signature="(),()->()")(two, one)),
        "a derivative": lambda: plait.jit(lambda x: plait.numpy.where(x > 0, x, two))(one),
    }  # fmt: skip
    for name, call in calls.items():
        call()
        with plait.numpy_rank_promotion("raise"), pytest.raises(TypeError, match="number"):
            call()
        assert call().shape == (2, 3), name
