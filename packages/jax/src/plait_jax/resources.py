"""`thread_resources.env.physical_mesh`: the mesh in context, under the name that libraries read.

Invariant: without a mesh in context it is `empty`, and has neither axes nor devices.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np

import plait

__all__ = ["THREAD_RESOURCES"]

_NO_MESH = SimpleNamespace(
    empty=True, devices=np.empty((), object), axis_names=(), axis_sizes=(), axis_types=(), shape={},
    size=0, device_ids=np.empty((), int),
)  # fmt: skip


class _Environment:
    """The surroundings that `with mesh:` sets."""

    @property
    def physical_mesh(self) -> Any:
        """The mesh in context, or an object that says that there is none."""
        mesh = plait.sharding.get_mesh()
        return _NO_MESH if mesh.empty else mesh


THREAD_RESOURCES = SimpleNamespace(env=_Environment())
