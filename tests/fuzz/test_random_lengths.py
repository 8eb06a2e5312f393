"""Some dozen of the random functions of rows; `python -m tests.fuzz.random_lengths` makes others.

Invariant: a test that fails says by its seed which function it was.
"""

import numpy as np
import pytest

from .random_lengths import WAYS, check


@pytest.mark.parametrize("way", WAYS)
def test_random_functions(way):
    with np.errstate(all="ignore"):
        for seed in range(8):
            assert check(seed, way)
