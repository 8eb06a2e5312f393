"""Last places of values, on a small sample of `last_places`, whose `main` is the wide run.

Invariant: programs are compiled as users' are: the fast tier may have other last places.
"""

import numpy as np
import pytest

import plait

from .last_places import judged
from .last_places_of_pairs import broken


@pytest.fixture(autouse=True)
def full_tier():
    before, plait.config.tier = plait.config.tier, "full"
    yield
    plait.config.tier = before


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_keep_their_promises(dtype):
    assert not judged(dtype, 40)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_two_arguments_keep_their_promises(dtype):
    assert not broken(dtype, 25)
