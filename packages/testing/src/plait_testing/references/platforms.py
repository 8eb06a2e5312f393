"""The index of the platform that a program runs on.

Invariant: the platform is that of the process, as the runtime reports it.
"""

from collections.abc import Iterator

import numpy as np

from plait.ext.devices import platform
from plait.ext.ir import Primitive

from ..samples import Reference, Sample

__all__ = ["REFERENCES"]


def _index(platforms: tuple) -> np.ndarray:
    here = platform()
    return np.array([not p or here in p for p in platforms].index(True), np.int32)


def _platforms(prim: Primitive) -> Iterator[Sample]:
    for places in ((("tpu",), ()), (("cuda",), ("cpu", "tpu"), ()), (("cpu",), ("cuda",), ())):
        yield Sample((), {"platforms": places})


REFERENCES = {"core.platform_index": Reference(_index, _platforms)}
"""The Reference of each primitive of the family."""
