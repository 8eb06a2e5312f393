"""Reading bits as another dtype is constant to derivatives.

Invariant: also there and back, through integers and through floats.
"""

import numpy as np
import pytest

from plait.lax import bitcast_convert_type
from plait_autodiff import grad, jvp


@pytest.mark.parametrize("through", ["int64", "float32", "uint8"])
def test_no_derivative(through):
    x = np.array([1.0, 2.0, 3.0])
    f = lambda v: bitcast_convert_type(bitcast_convert_type(v, through), "float64") * v  # noqa: E731
    np.testing.assert_array_equal(np.asarray(grad(lambda v: f(v).sum())(x)), x)
    out, dot = jvp(f, (x,), (np.ones(3),))
    np.testing.assert_array_equal(np.asarray(out), x * x)
    np.testing.assert_array_equal(np.asarray(dot), x)
