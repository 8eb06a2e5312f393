"""Nans in derivatives that are mapped: the line is that of the operation that is differentiated."""

import numpy as np
import pytest

import weft as wf
from weft import lax
from weft import numpy as wnp

ROWS = np.zeros((2, 3), np.float32)


def norm(x):
    total = (x * x).sum()
    return wnp.sqrt(total)


def summed(rows):
    return lax.scan(lambda c, r: (c + norm(r), None), 0.0, rows)[0]


WAYS = {
    "vmap of grad": lambda: wf.vmap(wf.grad(norm))(ROWS),
    "grad of vmap": lambda: wf.grad(lambda x: wf.vmap(norm)(x).sum())(ROWS),
    "jit of vmap": lambda: wf.jit(wf.vmap(wf.grad(norm)))(ROWS),
    "vmap of scan": lambda: wf.vmap(wf.grad(summed))(ROWS[:, None]),
    "jit of vmap of scan": lambda: wf.jit(wf.vmap(wf.grad(summed)))(ROWS[:, None]),
}


@pytest.mark.parametrize("name", WAYS)
def test_the_line(name):
    line = norm.__code__.co_firstlineno + 1
    with pytest.raises(FloatingPointError, match="core.mul gave nan") as error:
        with wf.debug.nans():
            WAYS[name]()
    assert f"test_nans.py:{line}" in str(error.value)


def test_programs_of_several_devices_are_named_as_a_whole():
    line = test_programs_of_several_devices_are_named_as_a_whole.__code__.co_firstlineno + 4
    with pytest.raises(FloatingPointError, match="sharding.shard_map gave nan") as error:
        with wf.debug.nans():
            wf.pmap(wf.grad(norm))(ROWS)
    assert f"test_nans.py:{line}" in str(error.value)
