"""Broadcasting, reshaping, slicing, padding, concatenating, iota and conversion in numpy.

Invariant: moves of elements keep every bit; conversions saturate, and round to the nearest, ties to
even.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from plait.dtypes import finfo, iinfo
from plait.ext.ir import Primitive
from plait.ext.types import BOOLEAN, COMPLEX, FLOATING, INTEGER, category
from plait.typing import ArrayLike

from ..operands import DTYPES, NARROW, edges
from ..samples import Reference, Sample, ordinary, stored

__all__ = ["REFERENCES"]


def _broadcast(x: np.ndarray, shape: tuple, dims: tuple) -> np.ndarray:
    sizes = [1] * len(shape)
    for n, k in zip(x.shape, dims):
        sizes[k] = n
    order = np.argsort(dims)
    return np.broadcast_to(x.transpose(order).reshape(sizes), shape)


def _slice(x: np.ndarray, starts: tuple, limits: tuple, strides: tuple) -> np.ndarray:
    return x[tuple(map(slice, starts, limits, strides))]


def _pad(x: np.ndarray, value: ArrayLike, low: tuple, high: tuple, interior: tuple) -> np.ndarray:
    """Pad by positive widths, then cut by negative ones."""
    inner = [n + max(n - 1, 0) * i for n, i in zip(x.shape, interior)]
    grown = [(max(a, 0), max(b, 0)) for a, b in zip(low, high)]
    full = np.full([a + n + b for n, (a, b) in zip(inner, grown)], value, x.dtype)
    at = [slice(a, a + n, i + 1) for n, (a, _), i in zip(inner, grown, interior)]
    full[tuple(at)] = x
    cut = [slice(max(-a, 0), n - max(-b, 0)) for a, b, n in zip(low, high, full.shape)]
    return full[tuple(cut)]


def _iota(shape: tuple, axis: int, dtype: np.dtype) -> np.ndarray:
    sizes = [n if i == axis else 1 for i, n in enumerate(shape)]
    return np.broadcast_to(np.arange(shape[axis]).astype(dtype).reshape(sizes), shape)


# ---- conversion ----------------------------------------------------------------------------


def converted(x: np.ndarray, dtype: Any) -> np.ndarray:
    """Convert `x` to another dtype: for integers cut towards zero and saturated, nan becoming 0."""
    dtype = np.dtype(dtype)
    have, want = category(x.dtype), category(dtype)
    if want == BOOLEAN:
        return np.asarray(x != 0)
    if have == COMPLEX and want != COMPLEX:
        x, have = np.real(x), FLOATING
    with np.errstate(all="ignore"):
        if want == INTEGER and have == FLOATING:
            return _whole(x.astype(np.float64), dtype)
        if want == INTEGER:
            return _wrapped(x, dtype)
        return x.astype(dtype)


def _whole(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    low, high = int(iinfo(dtype).min), int(iinfo(dtype).max)
    whole = [0 if v != v else low if v <= low else high if v >= high else int(v)
             for v in x.ravel().tolist()]  # fmt: skip
    return _held(whole, low, dtype).reshape(x.shape)


def _wrapped(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return integers modulo 2 ** bits."""
    low, high = int(iinfo(dtype).min), int(iinfo(dtype).max)
    whole = [(int(v) - low) % (high - low + 1) + low for v in x.ravel().astype(object)]
    return _held(whole, low, dtype).reshape(x.shape)


def _held(whole: list, low: int, dtype: np.dtype) -> np.ndarray:
    return np.array(whole, np.int64 if low else np.uint64).astype(dtype)


def _convert(x: np.ndarray, dtype: np.dtype, weak: bool) -> np.ndarray:
    return converted(x, dtype)


# ---- samples -------------------------------------------------------------------------------


def _moved(params: dict, other: Callable, *shapes: tuple) -> Callable:
    """Return samples: an ordinary matrix with `params`, edges as vectors with `other(their
    number)`, and arrays of other shapes with parameters of their own."""

    def samples(prim: Primitive) -> Iterator[Sample]:
        yield Sample((ordinary("float32"),), params)
        for x in stored():
            yield Sample((x,), other(x.size))
        for size, given in shapes:
            yield Sample((ordinary("float32", size),), given)

    return samples


def _padded(prim: Primitive) -> Iterator[Sample]:
    wide = lambda n: {"low": (2,) * n, "high": (-1,) * n, "interior": (1,) * n}  # noqa: E731
    yield Sample((ordinary("float32"), np.float32(7)), wide(2))
    for x in stored():
        yield Sample((x, x[0]), wide(1))
    empty = {"low": (1, 0), "high": (0, 2), "interior": (1, 0)}
    yield Sample((ordinary("float32", (0, 1)), np.float32(-0.0)), empty)


def _joined(prim: Primitive) -> Iterator[Sample]:
    x = ordinary("float32")
    yield Sample((x, x[::-1] * 2), {"axis": 1})
    for v in stored():
        yield Sample((v, v[:0], v[::-1].copy()), {"axis": 0})


def _counted(prim: Primitive) -> Iterator[Sample]:
    yield Sample((), {"shape": (2, 3), "axis": 1, "dtype": np.dtype(np.int32)})
    for dtype in (d for d in (*DTYPES, *NARROW) if category(d) != BOOLEAN):
        yield Sample((), {"shape": (5, 1), "axis": 0, "dtype": dtype})
    yield Sample((), {"shape": (0, 2), "axis": 0, "dtype": np.dtype(np.float32)})


def _barred(prim: Primitive) -> Iterator[Sample]:
    yield Sample((ordinary("float32"), ordinary("int32")))
    yield Sample(tuple(stored()))


_TARGETS = (
    "bool int4 int8 uint8 int32 uint64 float8_e4m3fn float8_e5m2 bfloat16 float16 float32 float64 "
    "complex64"
)


def _conversions(prim: Primitive) -> Iterator[Sample]:
    """Return samples from a few dtypes to all, and from all to a few."""
    yield Sample((ordinary("float32"),), {"dtype": np.dtype(np.int32), "weak": False})
    for source in (*DTYPES, *NARROW):
        x = edges(source)
        if category(source) == FLOATING:
            x = np.concatenate([x, _halves(source)])
        wide = source.name in ("float32", "float64", "int64", "float8_e5m2")
        for name in (_TARGETS if wide else "float32 int32 float16 uint4").split():
            yield Sample((x,), {"dtype": edges(name).dtype, "weak": False})


def _halves(dtype: np.dtype) -> np.ndarray:
    """Return numbers between those of narrower dtypes, and around the limits of integers."""
    near = [127, 127.5, 128, 255.5, 256, 2.0**31, 2.0**63, 2.0**64, 1 + 2.0**-8, 1 + 3 * 2.0**-9,
            448, 464, 480, 57344, 61440, 65504, 65520, 2.0**-15, 3 * 2.0**-26]  # fmt: skip
    top = float(finfo(dtype).max)
    return np.array([s * v for v in near for s in (1, -1) if v <= top]).astype(dtype)


_AXES = {"axes": (1, 0)}
REFERENCES = {
    "core.broadcast_in_dim": Reference(
        _broadcast,
        _moved({"shape": (3, 4, 2), "dims": (2, 0)}, lambda n: {"shape": (2, n), "dims": (1,)},
               ((1, 0), {"shape": (5, 0), "dims": (0, 1)}), ((), {"shape": (2,), "dims": ()})),
    ),
    "core.reshape": Reference(
        lambda x, shape: x.reshape(shape),
        _moved({"shape": (3, 1, 2)}, lambda n: {"shape": (1, n, 1)}, ((0, 2), {"shape": (3, 0)}),
               ((), {"shape": (1, 1)})),
    ),
    "core.transpose": Reference(
        lambda x, perm: x.transpose(perm),
        _moved({"perm": (1, 0)}, lambda n: {"perm": (0,)}, ((2, 1, 3), {"perm": (2, 0, 1)}),
               ((0, 2), {"perm": (1, 0)}), ((), {"perm": ()})),
    ),
    "core.rev": Reference(
        lambda x, axes: np.flip(x, axes),
        _moved({"axes": (0, 1)}, lambda n: {"axes": (0,)}, ((0, 2), {"axes": (1,)}),
               ((3, 1), {"axes": ()})),
    ),
    "core.slice": Reference(
        _slice,
        _moved({"starts": (0, 1), "limits": (2, 3), "strides": (1, 2)},
               lambda n: {"starts": (1,), "limits": (n,), "strides": (2,)},
               ((2, 2), {"starts": (1, 2), "limits": (1, 2), "strides": (1, 3)})),
    ),
    "core.squeeze": Reference(
        lambda x, axes: x.squeeze(axes),
        _moved({"axes": ()}, lambda n: {"axes": ()}, ((1, 3, 1), {"axes": (0, 2)}),
               ((1, 0), {"axes": (0,)})),
    ),
    "core.pad": Reference(_pad, _padded),
    "core.concatenate": Reference(lambda *xs, axis: np.concatenate(xs, axis), _joined),
    "core.iota": Reference(_iota, _counted),
    "core.barrier": Reference(lambda *xs: list(xs), _barred),
    "core.convert": Reference(_convert, _conversions),
}  # fmt: skip
"""The Reference of each primitive of the family."""
