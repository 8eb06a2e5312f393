"""Devices, and bringing results back from them.

Invariant: nothing here starts the devices before somebody asks for one.
"""

from dataclasses import dataclass
from typing import Any

from . import buffers
from .tracing import kept_traces_cleared
from .tree import flatten, map_tree
from .types import OPAQUE
from .values import Array
from .xla.execute import forget_executables


@dataclass(frozen=True, slots=True, repr=False)
class Device:
    """One device of this process; `id` is its number, which placements speak of."""

    id: int
    platform: str
    device_kind: str

    def __repr__(self) -> str:
        return f"{self.platform}:{self.id}"


def devices() -> list[Device]:
    """The devices of this process, in order.

    >>> import weft as wf
    >>> wf.devices()[0].platform
    'cpu'
    """
    found = buffers.devices()
    return [Device(i, d.platform, d.device_kind) for i, d in enumerate(found)]


def device_count() -> int:
    """How many devices there are."""
    return len(buffers.devices())


local_devices, local_device_count = devices, device_count


def default_backend() -> str:
    """The platform computations run on: `cpu`, `cuda` or `tpu`."""
    return buffers.platform()


def block_until_ready(x: Any) -> Any:
    """Wait until every array of the tree is computed; returns the tree.

    Raises what the computations raised.
    """
    for leaf in flatten(x)[0]:
        if isinstance(leaf, Array):
            leaf.block_until_ready()
    return x


def device_get(x: Any) -> Any:
    """The tree with numpy arrays for arrays; those of keys stay what they are."""
    number = lambda v: isinstance(v, Array) and v.aval.category != OPAQUE  # noqa: E731
    return map_tree(lambda v: v.numpy() if number(v) else v, x)


def clear_caches() -> None:
    """Drop kept traces and executables; jitted functions keep theirs until `.clear_cache()`."""
    kept_traces_cleared()
    forget_executables()
