"""Counters and hashes of random bits: their numbers, and the size of their programs.

Invariant: numpy says which numbers are right, and programs are counted by their equations.
"""

import numpy as np

import plait
from plait import random
from plait._core.staging import staged
from plait._ops.rng import counters
from plait._xla.physical import laid_out

KEY = random.key(42)


def test_counters():
    """Row-major numbers, in two words where one does not do."""
    high, low = plait.jit(lambda: counters((3, 4)))()
    np.testing.assert_array_equal(np.asarray(low), np.arange(12).reshape(3, 4))
    assert not np.asarray(high).any()
    program = staged(lambda: [v[-1, -2:] for v in counters((2**20, 2**13))], [])
    names = [e.prim.name for e in program.eqns]
    assert "core.shift_right_logical" in names
    got = [
        np.asarray(v) for v in plait.jit(lambda: [v[-1, -2:] for v in counters((2**20, 2**13))])()
    ]
    np.testing.assert_array_equal(got[0], [1, 1])
    np.testing.assert_array_equal(got[1], [2**32 - 2, 2**32 - 1])


def test_a_draw_is_one_hash():
    """Tracing a sampler is cheap: the rounds are in one equation, lowered once."""
    program = plait.make_program(lambda k: random.normal(k, (3, 4)))(KEY)
    names = [e.prim.name for e in program.eqns]
    assert names.count("core.random_bits") == 1 and len(names) < 30
    laid = [e.prim.name for e in laid_out(program).eqns]
    assert laid.count("core.threefry2x32") == 1 and len(laid) < 40
    text = plait.jit(lambda k: random.normal(k) + random.uniform(k)).lower(KEY).as_text()
    assert text.count("stablehlo.xor") < 40
