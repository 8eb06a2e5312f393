"""Operations whose operands are divided over devices, in ways that the compiler does not master.

Invariant: what is right is the same undivided; `python -m tests.fuzz.random_divisions` goes on with
others.
"""

import pytest

import plait

from ..fuzz.random_divisions import (
    FAMILIES,
    check,
    padding,
    reading_at,
    scattering,
    scattering_of_each,
    transforms,
    writing_at,
)


@pytest.fixture(autouse=True)
def quickly():
    """Most of the time is the compiler's."""
    with plait.config(tier="fast"):
        yield


OPERATIONS = [(f, 0) for f in FAMILIES] + [
    (padding, 7), (padding, 24), (padding, 33), (reading_at, 21), (writing_at, 19),
    (transforms, 2), (transforms, 10), (transforms, 16), (scattering, 3), (scattering_of_each, 59),
]  # fmt: skip


@pytest.mark.parametrize("family, seed", OPERATIONS, ids=lambda p: getattr(p, "__name__", p))
def test_operations(family, seed):
    check(family, seed)
