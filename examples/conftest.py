"""What tests of the sample packages share: eight virtual devices, checked rules, errors in parts.

Invariant: the number of devices is set before any array is made.
"""

import pytest

import plait

plait.config.cpu_devices = 8


@pytest.fixture(autouse=True)
def checked():
    """Every rule and every program is checked."""
    with plait.config(checks=True):
        yield


@pytest.fixture
def told():
    """told(f, *texts): f() raises an error with the three parts, in which these texts are."""

    def check(f, *texts, line=None):
        with pytest.raises(plait.PlaitError) as e:
            f()
        said = str(e.value)
        assert all(t in said for t in texts), said
        assert e.value.fix and "/tests/test_" in e.value.where, said
        assert line is None or e.value.where.endswith(f":{line}"), said

    return check


@pytest.fixture
def rows():
    """A mesh of eight devices, and the partition specification of what is in eight pieces."""
    return plait.make_mesh((8,), ("d",)), plait.P("d")
