"""What tests of derivatives at edges share: slopes as numbers.

Invariant: wanted values are numbers written in the tests, and never computed.
"""

import numpy as np
import pytest

import plait
from plait_autodiff.taylor.laws import numerically


@pytest.fixture(scope="session")
def expect_slopes():
    """(function, points, wanted slopes) -> None: reverse mode gives the slopes, in float32."""

    def check(f, xs, want):
        slopes = plait.grad(f, argnums=tuple(range(len(xs))))
        got = numerically(slopes, *[np.float32(x) for x in xs])
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-5)

    return check
