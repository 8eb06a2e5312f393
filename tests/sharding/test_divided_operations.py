"""Operations whose operands are divided over devices, in ways that the compiler does not master.

Invariant: what is right is the same undivided; `python -m tests.fuzz.random_divisions` goes on with
others.
"""

import numpy as np
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


@pytest.mark.sampled(16)
@pytest.mark.parametrize("family, seed", OPERATIONS, ids=lambda p: getattr(p, "__name__", p))
def test_operations(family, seed):
    check(family, seed)


@pytest.mark.parametrize(("devices", "n"), [(4, 4), (4, 8), (8, 8)])
def test_every_slice_with_strides(devices, n):
    """Slices of one element are among them: the compiler took another one, or refused."""
    mesh = plait.make_mesh((devices,), ("x",))
    x = np.arange(n, dtype=np.float32)
    a = plait.device_put(x, plait.NamedSharding(mesh, plait.P("x")))
    pieces = [slice(i, j, s) for s in (3, 5) for i in range(n) for j in range(i + 1, n + 1)]
    pieces = [p for p in pieces if len(x[p]) == 1 or p.stop in (n, n - 1)]
    for piece, got in zip(pieces, plait.jit(lambda v: [v[p] * 2 for p in pieces])(a), strict=True):
        np.testing.assert_array_equal(got, x[piece] * 2, err_msg=str(piece))
