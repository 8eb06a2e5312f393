"""What tests of sharding with its siblings share: a mesh, and comparison with numpy.

Invariant: the eight devices are those that the tests of the repository set for all.
"""

import numpy as np
import pytest

import plait
from plait_sharding import NamedSharding, PartitionSpec, make_mesh


@pytest.fixture(autouse=True)
def checked():
    """Every rule and every program is checked."""
    with plait.config(checks=True):
        yield


@pytest.fixture
def mesh():
    """Two rows of four devices."""
    return make_mesh((2, 4), ("x", "y"))


@pytest.fixture
def lies(mesh):
    """lies("x", None): the sharding on that mesh."""
    return lambda *entries: NamedSharding(mesh, PartitionSpec(*entries))


@pytest.fixture
def close():
    """Equality with what numpy says, up to rounding."""

    def check(got, want):
        got, want = np.asarray(got), np.asarray(want)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4 * (1 + abs(want).max()))

    return check


@pytest.fixture
def told():
    """told(f, *texts): f() raises an error with the three parts, in which these texts are."""

    def check(f, *texts, kind=plait.PlaitError):
        with pytest.raises(kind) as e:
            f()
        said = str(e.value)
        assert all(t in said for t in texts), said
        assert e.value.fix and __file__.rpartition("/")[0] in e.value.where, said

    return check
