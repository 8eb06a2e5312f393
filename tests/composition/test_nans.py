"""Nans in derivatives that are mapped: the line is that of the operation that is differentiated."""

import numpy as np
import pytest

import plait
from plait import lax
from plait import numpy as pnp

ROWS = np.zeros((2, 3), np.float32)


def norm(x):
    total = (x * x).sum()
    return pnp.sqrt(total)


def summed(rows):
    return lax.scan(lambda c, r: (c + norm(r), None), 0.0, rows)[0]


WAYS = {
    "vmap of grad": lambda: plait.vmap(plait.grad(norm))(ROWS),
    "grad of vmap": lambda: plait.grad(lambda x: plait.vmap(norm)(x).sum())(ROWS),
    "jit of vmap": lambda: plait.jit(plait.vmap(plait.grad(norm)))(ROWS),
    "vmap of scan": lambda: plait.vmap(plait.grad(summed))(ROWS[:, None]),
    "jit of vmap of scan": lambda: plait.jit(plait.vmap(plait.grad(summed)))(ROWS[:, None]),
}


@pytest.mark.parametrize("name", WAYS)
def test_the_line(name):
    line = norm.__code__.co_firstlineno + 1
    with pytest.raises(FloatingPointError, match="core.mul gave nan") as error:
        with plait.debug.nans():
            WAYS[name]()
    assert f"test_nans.py:{line}" in str(error.value)


def test_programs_of_several_devices_are_named_as_a_whole():
    line = test_programs_of_several_devices_are_named_as_a_whole.__code__.co_firstlineno + 4
    with pytest.raises(FloatingPointError, match="sharding.shard_map gave nan") as error:
        with plait.debug.nans():
            plait.pmap(plait.grad(norm))(ROWS)
    assert f"test_nans.py:{line}" in str(error.value)
