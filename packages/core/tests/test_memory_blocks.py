"""Programs for CPUs take their memory in blocks that the C library keeps between calls.

Invariant: results do not depend on how memory is taken.
"""

import platform
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import plait
from plait._xla.module import BLOCK, is_split
from plait.ext import Aval

ONE_BLOCK = {"xla_multiheap_size_constraint_per_heap": -1}


def pairs(x):
    """Multiply each product of matrices with another: all are in memory at once."""
    made = [product(x * float(i), x) for i in range(1, 11)]
    return sum(a * b for a, b in zip(made[:5], made[:4:-1], strict=True))


def product(x, y):
    return plait.lax.dot_general(x, y, (((1,), (1,)), ((), ())))


def drawn():
    return np.random.default_rng(0).integers(-2, 3, (1024, 16)).astype(np.float32)


CASES = {
    "little memory": ((4, 4), [(4, 4)] * 9, False),
    "much memory": ((1024, 1024), [(1024, 1024)] * 9, True),
    "an argument larger than a block": ((4096, 4096), [(1024, 1024)] * 9, False),
    "a result larger than a block": ((1024, 1024), [(4096, 4096)] * 9, False),
    "a program too large to keep its memory": ((1024, 1024), [(1024, 1024)] * 999, False),
    "an array of a block": ((BLOCK // 4,), [(BLOCK // 4,)] * 2, True),
}


@pytest.mark.parametrize("case", CASES)
def test_choice(case):
    given, made, split = CASES[case]
    f32 = np.dtype(np.float32)
    assert is_split([Aval(given, f32)], Counter([Aval(s, f32) for s in made])) == split


def test_numbers_of_16_bits_count_as_they_are_computed():
    assert not is_split([], {Aval((BLOCK // 2,), np.dtype(np.float16)): 9})


def test_sizes_that_are_not_known_leave_one_block():
    (n,) = plait.symbolic_dims("n")
    assert not is_split([Aval((n,), np.dtype(np.float32))], {Aval((1 << 22,), np.dtype("f")): 9})


def test_values_with_one_block_and_with_several():
    x = drawn()
    split = plait.jit(pairs)
    whole = plait.jit(lambda x: pairs(x), compiler_options=ONE_BLOCK)
    assert split.lower(x).compile().memory_analysis().temp_size_in_bytes > BLOCK
    made = [np.float64(x * i) @ x.T for i in range(1, 11)]
    want = sum(a * b for a, b in zip(made[:5], made[:4:-1], strict=True))
    np.testing.assert_array_equal(split(x), want)  # whole numbers, which float32 holds
    np.testing.assert_array_equal(whole(x), want)


FAULTS = """
import resource, sys
import numpy as np, plait
sys.path.insert(0, sys.argv[1])
from test_memory_blocks import ONE_BLOCK, drawn, pairs

def faults(f, x):
    for _ in range(3):
        f(x).block_until_ready()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        f(x).block_until_ready()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 10

x = drawn()
print(faults(plait.jit(lambda x: pairs(x), compiler_options=ONE_BLOCK), x))
print(faults(plait.jit(pairs), x))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_pages_are_not_taken_anew_by_each_call():
    here = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", FAULTS, here], capture_output=True, text=True)
    assert done.stderr == ""  # the compiler prints nothing about sizes
    whole, split = map(float, done.stdout.split())
    assert split < whole / 2
