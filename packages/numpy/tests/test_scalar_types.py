"""The classes that stand for dtypes: `plait.numpy.float32` and its kin.

Invariant: the other side is numpy's dtype of the same name.
"""

import copy
import pickle

import numpy as np
import pytest

import plait
from plait import numpy as pnp

NAMES = ["bool_", "int8", "uint32", "int64", "float16", "bfloat16", "float32", "complex64", "int4"]


@pytest.mark.parametrize("name", NAMES)
def test_a_scalar_type_is_a_class_that_stands_for_its_dtype(name):
    kind = getattr(pnp, name)
    dtype = np.dtype(kind)
    assert isinstance(kind, type) and kind == dtype == kind.dtype and hash(kind) == hash(dtype.type)
    assert pickle.loads(pickle.dumps(kind)) is copy.deepcopy(kind) is kind
    assert kind.__name__ == dtype.name and repr(kind) == f"plait.numpy.{dtype.name}"
    assert isinstance(dtype.type(1), kind) and not isinstance(object(), kind)
    assert not issubclass(kind, np.generic) and (kind | None) is not None

    class Mine(kind):
        """A library's own class."""

        ONE = kind(1)

    assert np.dtype(Mine) == dtype and Mine.ONE.dtype == dtype and Mine(1).dtype == dtype


def test_lists_of_traced_values_become_arrays():
    def f(x):
        return pnp.float32([x.sum()]), pnp.int32([x[0], 1]), pnp.bool_([[x[0] > 0], [True]])

    got = plait.jit(f)(np.arange(3))
    for g, w in zip(got, (np.float32([3]), np.int32([0, 1]), np.array([[False], [True]]))):
        assert g.dtype == w.dtype
        np.testing.assert_array_equal(g, w)
