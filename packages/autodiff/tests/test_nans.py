"""Nans in derivatives are reported with the line that is differentiated."""

import numpy as np
import pytest

import weft as wf
from weft import numpy as jnp


def norm(x):
    total = (x * x).sum()
    return jnp.sqrt(total)


def guarded(x):
    return jnp.where(x > 0, jnp.log(x), 0.0)


CASES = {
    "reverse": lambda: wf.grad(norm)(np.zeros(3, np.float32)),
    "reverse, compiled": lambda: wf.jit(wf.grad(norm))(np.zeros(3, np.float32)),
    "forward": lambda: wf.jvp(norm, (np.zeros(3, np.float32),), (np.ones(3, np.float32),)),
    "a branch that is not chosen": lambda: wf.grad(guarded)(0.0),
    "in a scan": lambda: wf.jit(
        wf.grad(lambda x: wf.lax.scan(lambda c, r: (c + norm(r), None), 0.0, x)[0])
    )(np.zeros((2, 3), np.float32)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_line_of_the_operation(name):
    of = guarded if "branch" in name else norm
    line = of.__code__.co_firstlineno + (2 if name == "forward" else 1)
    with pytest.raises(FloatingPointError, match="gave nan") as error:
        with wf.debug.nans():
            CASES[name]()
    assert f"test_nans.py:{line}" in str(error.value)


def test_what_is_fine_stays_as_it_is():
    x = np.float32([3.0, 4.0])
    with wf.debug.nans():
        inside = wf.grad(norm)(x), wf.jit(wf.hessian(norm))(x)
    for a, b in zip(inside, (wf.grad(norm)(x), wf.hessian(norm)(x)), strict=True):
        np.testing.assert_array_equal(a, b)
