"""Attention, one query and head after the other; derivatives by complex steps.

Invariant: a step of 1e-30 along the imaginary axis loses no digit of a derivative (Squire and
Trapp, "Using Complex Variables to Estimate Derivatives of Real Functions", 1998).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from plait.ext.ir import Primitive

from ..samples import Reference, Sample, ordinary

__all__ = ["REFERENCES"]

_STEP = 1e-30


def _of(xs: Sequence[Any], scale: float, causal: bool, window: Any) -> Any:
    q, k, v = xs
    if q.ndim > 3:  # each entry of a leading axis is a batch of its own
        out = np.zeros((*q.shape[:-1], v.shape[-1]), np.clongdouble)
        for b in range(len(q)):
            out[b] = _of((q[b], k[b], v[b]), scale, causal, window)
        return out
    out = np.zeros((*q.shape[:2], v.shape[2]), np.clongdouble)
    shared = q.shape[1] // k.shape[1]
    places = np.arange(len(k))
    for i, h in np.ndindex(q.shape[:2]):
        seen = np.ones(len(k), bool) if not causal else places <= i
        if window is not None:
            seen &= (places >= i - window[0]) & (places <= i + window[1])
        if not seen.any():
            continue
        x = scale * k[seen, h // shared] @ q[i, h]
        e = np.exp(x - x.real.max())
        out[i, h] = e @ v[seen, h // shared] / e.sum()
    return out


def _along(xs: Sequence[Any], ts: Sequence[Any], how: dict) -> np.ndarray:
    return _of([x + _STEP * 1j * t for x, t in zip(xs, ts)], **how).imag / _STEP


def _wide(xs: Sequence[Any]) -> list[np.ndarray]:
    # Derivatives are differences of far larger terms, which lose a hundred places in 64 bits.
    return [np.asarray(x).astype(np.longdouble) for x in xs]


def _value(q: Any, k: Any, v: Any, **how: Any) -> np.ndarray:
    return _of(_wide((q, k, v)), **how).real.astype(v.dtype)


def _tangent(q: Any, k: Any, v: Any, dq: Any, dk: Any, dv: Any, **how: object) -> np.ndarray:
    return _along(_wide((q, k, v)), _wide((dq, dk, dv)), how).astype(v.dtype)


def _cotangent(q: Any, k: Any, v: Any, ct: Any, **how: object) -> list[np.ndarray]:
    xs, (ct,) = _wide((q, k, v)), _wide((ct,))
    results = []
    for n, x in enumerate((q, k, v)):
        found = np.zeros(x.shape)
        for at in np.ndindex(x.shape):
            ts = [np.zeros(y.shape) for y in xs]
            ts[n][at] = 1
            found[at] = (ct * _along(xs, ts, how)).sum()
        results.append(found.astype(x.dtype))
    return results


_PLAIN = {"scale": 0.5, "causal": False, "window": None}


def _samples(tangents: bool, cotangent: bool) -> Any:
    def samples(prim: Primitive) -> Iterator[Sample]:
        def args(dtype: str, queries: int, heads: int, keys: int, groups: int) -> tuple:
            shapes = [(queries, heads, 3), (keys, groups, 3), (keys, groups, 2)]
            if tangents:
                shapes *= 2
            if cotangent:
                shapes.append((queries, heads, 2))
            return tuple([ordinary(dtype, s, i) for i, s in enumerate(shapes)])

        yield Sample(args("float64", 2, 1, 3, 1), _PLAIN)
        for dtype in ("float32", "float64", "bfloat16", "float16"):
            yield Sample(args(dtype, 3, 2, 4, 1), {**_PLAIN, "causal": True})
        yield Sample(args("float32", 4, 2, 3, 2), {**_PLAIN, "window": (1, 0)})
        yield Sample(args("float32", 4, 1, 2, 1), {**_PLAIN, "causal": True, "window": (0, 0)})
        batches = [np.stack([x, 2 * x]) for x in args("float64", 2, 2, 3, 1)]
        yield Sample(tuple(batches), {**_PLAIN, "causal": True})
        yield Sample(args("float32", 0, 1, 2, 1), _PLAIN)
        yield Sample(args("float32", 2, 1, 0, 1), _PLAIN)

    return samples


REFERENCES = {
    "nn.attention": Reference(_value, _samples(False, False), 16, whole=True),
    "nn.attention_tangent": Reference(_tangent, _samples(True, False), 64, whole=True),
    "nn.attention_cotangent": Reference(_cotangent, _samples(False, True), 64, whole=True),
}
"""The Reference of each primitive of the family."""
