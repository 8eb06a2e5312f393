"""Foreign functions: a LAPACK routine, which every CPU runtime has.

Invariant: the called function is registered in the runtime of CPUs; other platforms have no sample.
"""

from collections.abc import Iterator

import numpy as np

from plait.ext import Aval
from plait.ext.ir import Primitive
from plait.ext.types import INT32

from ..samples import Reference, Sample
from .factorisation import positive

__all__ = ["REFERENCES"]


def _foreign(x: np.ndarray, **how: object) -> list:
    """Return Cholesky's factor, with the other triangle unchanged, and the status of success."""
    low = np.linalg.cholesky(x.astype(np.float64))
    return [(np.tril(low) + np.triu(x, 1)).astype(x.dtype), np.int32(0)]


def _called(prim: Primitive) -> Iterator[Sample]:
    x = positive("float32", (3, 3))
    outs = Aval((3, 3), np.float32), Aval((), INT32)
    yield Sample((x,), {
        "target": "lapack_spotrf_ffi", "outs": outs, "config": "{uplo = 76 : ui8}", "acts": False,
        "vmap_method": None, "in_layouts": ((1, 0),), "out_layouts": ((1, 0), ()),
        "aliases": ((0, 0),),
    })  # fmt: skip


REFERENCES = {"core.foreign": Reference(_foreign, _called, 8, whole=True)}
"""The Reference of each primitive of the family."""
