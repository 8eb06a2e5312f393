"""vmap of contractions against a Python loop.

Invariant: as in conftest: every axis, none, size 1, nested.
"""

import numpy as np
import pytest

from plait.lax import dot_general
from plait.numpy import dot, matmul, outer, tensordot, vdot


@pytest.mark.sampled(10)
@pytest.mark.parametrize("contract, shared, shapes", [
    (((1,), (0,)), ((), ()), ((2, 3), (3, 4))),
    (((0,), (1,)), ((1,), (0,)), ((3, 2), (2, 3))),
    (((2, 0), (0, 1)), ((1,), (2,)), ((2, 4, 3), (3, 2, 4))),
    (((), ()), ((0,), (1,)), ((2, 3), (3, 2))),
])  # fmt: skip
def test_dot_general(mapped, contract, shared, shapes):
    mapped(lambda x, y: dot_general(x, y, (contract, shared)), *shapes)


@pytest.mark.wide
def test_vectors_and_stacks(mapped):
    mapped(lambda x, y: [dot(x, y), outer(x, y), vdot(x, y)], (3,), (3,))
    mapped(lambda x, y: matmul(x, y), (2, 1, 2, 3), (4, 3, 1))
    mapped(lambda x, y: tensordot(x, y, 2), (2, 3, 2), (3, 2, 1))


def test_other_dtypes(mapped):
    mapped(lambda x, y: matmul(x, y, preferred_element_type=np.int32), (2, 3), (3,),
           dtypes=np.int8)  # fmt: skip
