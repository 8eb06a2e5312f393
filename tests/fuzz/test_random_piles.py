"""Some hundred of the random programs over piles; `nox -s fuzz` goes on with others.

Invariant: a test that fails says by its seed and its length which program it was.
"""

import pytest

from .random_piles import VECTORS, WAYS, check

BLOCK = 20


@pytest.mark.sampled(10)
@pytest.mark.parametrize("block", range(15))
def test_random_programs(block):
    """As numpy computes them: gradients, scans, checkpoints and maps among them."""
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        check(seed, 2 + seed % 8, "numpy")


@pytest.mark.sampled(8)
@pytest.mark.parametrize("way", WAYS)
def test_compiled(way):
    check(3, 5, "jit", way, VECTORS[0])


@pytest.mark.parametrize("way", ["values", "gradients inside", "gradients outside"])
def test_applied_operation_by_operation(way):
    check(5, 3, "eager", way, VECTORS[0])


@pytest.mark.sampled(8)
@pytest.mark.parametrize("vector", VECTORS[:8])
@pytest.mark.parametrize("way", ["gradients inside", "gradients outside"])
def test_all_vectors_of_lengths(vector, way):
    check(11, 8, "numpy", way, vector)
