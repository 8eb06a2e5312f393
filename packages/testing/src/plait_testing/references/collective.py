"""Collectives in numpy: each device's operand and result is a row of the first axis.

Invariant: functions take all rows at once; the binder of the named axis maps rows to devices.
"""

from collections.abc import Callable, Iterator

import numpy as np

from plait.ext.ir import Primitive

from ..samples import Reference, Sample, ordinary

__all__ = ["REFERENCES"]


def _for_all(f: Callable) -> Callable:
    return lambda x, **_: np.broadcast_to(f(x), x.shape)


def _all_gather(x: np.ndarray, name: str, axis: int, size: int) -> np.ndarray:
    return np.stack([np.concatenate(list(x), axis)] * size)


def _psum_scatter(x: np.ndarray, name: str, axis: int, size: int) -> np.ndarray:
    return np.stack(np.split(x.sum(0, x.dtype), size, axis))


def _ppermute(x: np.ndarray, name: str, perm: tuple, size: int) -> np.ndarray:
    out = np.zeros_like(x)
    for source, target in perm:
        out[target] = x[source]
    return out


def _all_to_all(x: np.ndarray, name: str, split: int, concat: int, size: int) -> np.ndarray:
    pieces = [np.split(row, size, split) for row in x]
    return np.stack([np.concatenate([p[k] for p in pieces], concat) for k in range(size)])


NAME, SIZE = "rows", 3


def _rows(*shape: int, **params: object) -> Callable:
    def samples(prim: Primitive) -> Iterator[Sample]:
        for name in ("float32", "int32", "complex64"):
            if name != "complex64" or prim.name not in ("core.pmax", "core.pmin"):
                yield Sample((ordinary(name, (SIZE, *shape)),), params)

    return samples


def _places(prim: Primitive) -> Iterator[Sample]:
    yield Sample((), {"name": NAME})


_ONE = {"name": NAME, "size": SIZE}
REFERENCES = {
    "core.psum": Reference(_for_all(lambda x: x.sum(0, x.dtype)), _rows(2, axes=(NAME,)), 2),
    "core.pvary": Reference(lambda x, axes: x, _rows(2, axes=()), 2),
    "core.pmax": Reference(_for_all(lambda x: x.max(0)), _rows(2, axes=(NAME,))),
    "core.pmin": Reference(_for_all(lambda x: x.min(0)), _rows(2, axes=(NAME,))),
    "core.axis_index": Reference(lambda name: np.arange(SIZE, dtype=np.int32), _places),
    "core.all_gather": Reference(_all_gather, _rows(2, 1, axis=1, **_ONE)),
    "core.psum_scatter": Reference(_psum_scatter, _rows(2, 6, axis=1, **_ONE), 2),
    "core.ppermute": Reference(_ppermute, _rows(2, perm=((0, 2), (2, 1)), **_ONE)),
    "core.all_to_all": Reference(_all_to_all, _rows(6, 2, split=0, concat=1, **_ONE)),
}
"""The Reference of each primitive of the family."""
