"""Rows of divided arrays sorted on their own devices, against numpy.

Invariant: there are enough rows for a network, which would exchange them between devices.
"""

import numpy as np
import pytest

import plait
from plait.ext.ops.sorting import argsort, sort

X = np.round(np.random.default_rng(0).normal(size=(800, 100)) * 9).astype("float32")


@pytest.mark.full_tier
def test_rows(lies):
    x = plait.device_put(X, lies("x", None))
    f = plait.jit(lambda x: [sort(x), argsort(x)])
    for got, want in zip(f(x), (np.sort(X), np.argsort(X, kind="stable"))):
        np.testing.assert_array_equal(np.asarray(got), want)
    assert "all-gather" not in f.lower(x).compile().as_text()
