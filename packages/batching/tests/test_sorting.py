"""vmap of sorting against a Python loop.

Invariant: as in conftest: every axis, none, size 1, nested.
"""

import numpy as np
import pytest

from plait import lax
from plait.lax import top_k
from plait.numpy import argsort, sort


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_every_axis(mapped, dtype):
    mapped(lambda x: [sort(x, 0), argsort(x, 1), argsort(x, 0, descending=True), sort(x, None)],
           (4, 3), dtypes=dtype)  # fmt: skip
    mapped(lambda x: top_k(x, 2), (3, 4), dtypes=dtype)
    mapped(lambda x: top_k(x, 2, axis=0), (3, 4), dtypes=dtype)


def test_several_operands(mapped):
    mapped(lambda x, y, z: lax.sort((x, y, z), dimension=0, num_keys=2), (5,), (5,), (5,),
           dtypes=(np.int32, np.int8, np.float64))  # fmt: skip
