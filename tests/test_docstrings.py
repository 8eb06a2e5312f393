"""The examples in docstrings of core and of the array library that need plugins.

Their other examples are run by the tests of the package, where no plugin is installed.

Invariant: the text of the docstrings says what is right.
"""

import doctest
import importlib

import pytest

import plait


@pytest.mark.parametrize("name", ["plait._api.blocks", "plait_numpy.scipy.optimize"])
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted and not result.failed


def test_what_minimisers_compute_with_is_not_judged():
    """Strict settings concern the operands that users give."""
    with plait.config(numpy_rank_promotion="raise", numpy_dtype_promotion="strict"):
        result = doctest.testmod(importlib.import_module("plait_numpy.scipy.optimize"))
    assert result.attempted and not result.failed
