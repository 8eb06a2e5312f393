"""Meshes of devices that belong to several networks, of devices that say so.

Invariant: the numbers of the devices were written down from JAX's function of the same name.
"""

from dataclasses import dataclass

import numpy as np
import pytest

import plait
from plait_sharding import Mesh, create_device_mesh, create_hybrid_device_mesh


@dataclass
class Node:
    """A device of one of four processes, and one of two slices, which are numbered backwards."""

    id: int

    @property
    def process_index(self):
        return self.id // 4

    @property
    def slice_index(self):
        return 1 - self.id // 8


NODES = [Node(i) for i in range(16)]
CASES = {
    "rows": ((2, 4), (2, 1), {}, [*range(8, 16), *range(8)]),
    "processes": (
        (4, 1), (1, 4), {"process_is_granule": True},
        [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15],
    ),
    "as given": (
        (2, 4), (1, 2), {"should_sort_granules_by_key": False},
        [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15],
    ),
    "both ways": ((1, 4), (2, 2), {"process_is_granule": True}, list(range(16))),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_groups_are_blocks(case):
    inner, outer, how, want = CASES[case]
    grid = create_hybrid_device_mesh(inner, outer, NODES, **how)
    assert grid.shape == tuple(np.multiply(inner, outer))
    assert [d.id for d in grid.flat] == want
    mesh = Mesh(grid, ("x", "y"))
    assert mesh.ids == tuple(want)


def test_devices_of_one_process():
    grid = create_hybrid_device_mesh((2, 4), (1, 1))
    assert grid.tolist() == create_device_mesh((2, 4)).tolist()
    assert [d.id for d in grid.flat] == list(range(8))
    few = create_device_mesh((2,), plait.devices()[4:6], contiguous_submeshes=True)
    assert [d.id for d in few] == [4, 5]


def test_mistakes(told):
    told(lambda: create_hybrid_device_mesh((2, 4), (2, 1)), "2 places", "1 slices")
    told(lambda: create_hybrid_device_mesh((2,), (2, 1), NODES), "1 axes", "2")
    told(lambda: create_hybrid_device_mesh((4, 4), (2, 1), NODES), "16 devices", "8 are given")
    told(lambda: create_device_mesh((3,), plait.devices()), "3 devices", "8 are given")
