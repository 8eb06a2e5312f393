"""What is read off the text of compiled programs about their collectives.

Invariant: groups and bytes are counted by hand.
"""

import pytest

from plait._jit.communication import _bytes, _groups


@pytest.mark.parametrize(
    "text, want",
    [
        ("replica_groups={{0,4},{1,5}}, x", [(0, 4), (1, 5)]),
        ("replica_groups={}, x", []),
        ("source_target_pairs={{0,1},{1,0}}", [(0, 1), (1, 0)]),
        ("replica_groups=[2,4]<=[8], x", [(0, 1, 2, 3), (4, 5, 6, 7)]),
        ("replica_groups=[4,2]<=[2,4]T(1,0), x", [(0, 4), (1, 5), (2, 6), (3, 7)]),
        ("replica_groups=mesh['a'=2,'b'=2] {'a'}, x", [(0, 2), (1, 3)]),
        ("replica_groups=mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'a'}", [(0, 1), (2, 3)]),
        ("replica_groups=mesh['a'=2,'b'=2] {'a','b'}", [(0, 1, 2, 3)]),
        ("replica_groups=mesh['a'=4,'b'=2] {'a':(1)2}", None),
        ("replica_groups=something new", None),
    ],
)
def test_groups_in_every_form(text, want):
    assert _groups(text) == want


def test_bytes():
    kinds = {"f32[4,8]": 128, "bf16[3]": 6, "pred[5]": 5, "s4[3]": 2, "c64[]": 8, "f8e4m3fn[2]": 2}
    assert {text: _bytes(text) for text in kinds} == kinds
