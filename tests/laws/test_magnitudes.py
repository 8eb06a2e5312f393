"""Derivatives at every magnitude, on a small sample of `magnitudes`, whose `main` is the wide run.

Invariant: a function is judged by its name and by all dtypes alike; none is left out but where a
quotient of a quotient is compiled, which numpy judges.
"""

import numpy as np
import pytest

from .magnitudes import ONE, beside, complexes, judged


def test_operation_by_operation():
    assert not judged(np.float32, 6, compiled=False)


@pytest.mark.wide
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_compiled(dtype):
    table = {**ONE, **beside(dtype), **(complexes(dtype) if dtype is np.float32 else {})}
    assert not judged(dtype, 4, table.keys(), order=1)


def test_second_derivatives_of_float16():
    names = {
        "arctan",
        "arcsinh",
        "arctan2(x, far)",
        "x ** -2",
        "dawsn",
        "log_ndtr",
        "x / (1 + |x|)",
    }
    assert not judged(np.float16, 4, names)
