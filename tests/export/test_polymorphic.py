"""Every primitive with symbolic sizes: staged and exported once, saved, read, and run at sizes.

Invariant: results are compared with numpy or scipy, at sizes 1, 2 and 5 of each symbol, and the
table speaks of every primitive of core, or says why not.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.special as sp

import plait
from plait import _control
from plait._core.primitive import primitives
from plait._ops import (
    argreduction,
    contraction,
    convolution,
    cumulative,
    dynamic_slicing,
    reduction,
    sorting,
)
from plait._ops import elementwise as el
from plait._ops import shape as sh
from plait._ops.composed import floor_divide
from plait._ops.keys import FRY
from plait.ext.ir import programs_in
from plait.ext.ops import control_flow
from plait.ext.ops.elementwise import bitcast_
from plait.ext.ops.opaque import unwrap_, wrap_
from plait.ext.ops.random import (
    random_bits,
    random_clone,
    random_fold_in,
    random_seed,
    random_split,
    rng_bit_generator,
    threefry2x32,
)
from plait.testing.references.rng import _generator
from plait_export import deserialize, export, symbolic_args_specs
from plait_numpy.ext.attention import attention_, attention_cotangent, attention_tangent

SIZES = ({"b": 1, "c": 5}, {"b": 2, "c": 1}, {"b": 5, "c": 2})
F32, I32 = np.float32, np.int32


class Case(NamedTuple):
    """`f` of arrays is `reference` of numpy arrays of these shapes and kinds.

    Kinds: n normal, u in (0, 1), i small integers, k places 0 to 2, w words of 32 bits, ? booleans,
    z complex numbers.
    """

    f: Callable
    reference: Callable
    shapes: tuple[str, ...]
    kinds: str
    constraints: tuple[str, ...] = ()
    sizes: tuple[dict, ...] = SIZES


def made(shape: tuple[int, ...], kind: str, rng: np.random.Generator) -> np.ndarray:
    """Random elements of a kind."""
    if kind == "u":
        return rng.uniform(0.05, 0.95, shape).astype(F32)
    if kind == "i":
        return rng.integers(-9, 10, shape).astype(I32)
    if kind == "k":
        return rng.integers(0, 3, shape).astype(I32)
    if kind == "w":
        return rng.integers(0, 2**32, shape, dtype=np.uint32)
    if kind == "?":
        return rng.integers(0, 2, shape).astype(bool)
    x = rng.normal(size=shape)
    if kind == "z":
        return (x + 1j * rng.normal(size=shape)).astype(np.complex64)
    return x.astype(F32)


def each(*fs: Callable) -> Callable:
    """All of them on the same arguments."""
    return lambda *xs: [f(*xs) for f in fs]


def rows(x, start, size):
    """The box of numpy's dynamic slice along axis 0."""
    start = min(max(int(start), 0), x.shape[0] - size)
    return x[start : start + size]


# ---- elementwise ---------------------------------------------------------------------------

UNARY = {
    "n": [
        (el.neg, np.negative), (el.abs_, np.abs), (el.sign, np.sign), (el.floor, np.floor),
        (el.ceil, np.ceil), (el.round_even, np.round), (el.is_finite, np.isfinite),
        (el.round_away, lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5)), (el.exp, np.exp),
        (el.expm1, np.expm1), (el.sin, np.sin), (el.cos, np.cos), (el.tan, np.tan),
        (el.atan, np.arctan), (el.sinh, np.sinh), (el.cosh, np.cosh), (el.tanh, np.tanh),
        (el.asinh, np.arcsinh), (el.logistic, sp.expit), (el.erf, sp.erf), (el.erfc, sp.erfc),
        (el.cbrt, np.cbrt), (el.stop, lambda x: x),
        (lambda x: el.integer_pow(x, exponent=3), lambda x: x**3),
        (lambda x: el.reduce_precision(x, exponent_bits=8, mantissa_bits=23), lambda x: x),
    ],
    "u": [
        (el.relu, lambda x: np.maximum(x, 0)),
        (el.log, np.log), (el.log1p, np.log1p), (el.asin, np.arcsin), (el.acos, np.arccos),
        (el.atanh, np.arctanh), (el.sqrt, np.sqrt), (el.rsqrt, lambda x: 1 / np.sqrt(x)),
        (el.erf_inv, sp.erfinv), (el.lgamma, sp.gammaln), (el.digamma, sp.digamma),
        (lambda x: el.acosh(x + 1), lambda x: np.arccosh(x + 1)),
        (lambda x: el.integer_pow(x, exponent=-2), lambda x: x**-2.0),
    ],
    "i": [
        (el.not_, np.invert), (el.population_count, lambda x: np.bitwise_count(x.view(np.uint32))),
        (el.clz, lambda x: 32 - np.ceil(np.log2(x.view(np.uint32) + 1.0)).astype(I32)),
        (lambda x: sh.convert(x, F32), lambda x: x.astype(F32)),
        (lambda x: bitcast_.bind(x, dtype=np.dtype(np.float32)), lambda x: x.view(F32)),
        (lambda x: bitcast_.bind(x, dtype=np.dtype(np.uint16)),
         lambda x: x[..., None].view(np.uint16)),
    ],
    "z": [(el.real, np.real), (el.imag, np.imag), (el.conj, np.conj), (el.abs_, np.abs)],
}  # fmt: skip
BINARY = {
    "nn": [
        (el.add, np.add), (el.sub, np.subtract), (el.mul, np.multiply), (el.div, np.divide),
        (el.maximum, np.maximum), (el.minimum, np.minimum), (el.atan2, np.arctan2),
        (el.nextafter, np.nextafter), (el.rem, np.fmod), (el.eq, np.equal), (el.ne, np.not_equal),
        (el.lt, np.less), (el.le, np.less_equal), (el.gt, np.greater), (el.ge, np.greater_equal),
        (el.complex_, lambda x, y: x + 1j * y), (floor_divide, np.floor_divide),
        (lambda x, y: el.select(el.lt(x, y), x, 2.0), lambda x, y: np.where(x < y, x, F32(2))),
        (lambda x, y: el.clamp(-0.5, x, 0.5), lambda x, y: np.clip(x, -0.5, 0.5)),
    ],
    "un": [(el.pow_, np.power)],
    "ik": [
        (el.and_, np.bitwise_and), (el.or_, np.bitwise_or), (el.xor, np.bitwise_xor),
        (el.shift_left, np.left_shift), (el.shift_right_arithmetic, np.right_shift),
        (el.shift_right_logical, lambda x, y: (x.view(np.uint32) >> y.view(np.uint32)).view(I32)),
    ],
}  # fmt: skip


def threefry(k0, k1, x0, x1):
    """Salmon and others, "Parallel random numbers: as easy as 1, 2, 3", 2011: 20 rounds."""
    keys = [k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA)]
    x0, x1 = x0 + k0, x1 + k1
    for i in range(5):
        for r in ((13, 15, 26, 6), (17, 29, 16, 24))[i % 2]:
            x0 = x0 + x1
            x1 = (x1 << np.uint32(r) | x1 >> np.uint32(32 - r)) ^ x0
        x0, x1 = x0 + keys[(i + 1) % 3], x1 + keys[(i + 2) % 3] + np.uint32(i + 1)
    return [x0, x1]


def of_keys(w):
    keys, b = wrap_(w, dtype=FRY), w.shape[0]
    made = [random_split.bind(keys, shape=(b,)), random_fold_in.bind(keys, w[:, 1]),
            random_seed.bind(w[:, 0], dtype=FRY)]  # fmt: skip
    drawn = random_bits.bind(random_clone.bind(keys)[::-1], shape=(2, b), dtype=np.dtype(np.uint32))
    return [*map(unwrap_.bind, made), drawn]


def of_keys_by_hand(w):
    b, none = len(w), np.zeros(len(w), np.uint32)
    each = lambda k, n: threefry(k[:, :1], k[:, 1:], np.uint32(0) * n, n)  # noqa: E731
    drawn = np.bitwise_xor(*each(w[::-1], np.arange(2 * b, dtype=np.uint32)[None]))
    return [np.stack(each(w, np.arange(b, dtype=np.uint32)[None]), -1),
            np.stack(threefry(w[:, 0], w[:, 1], none, w[:, 1]), -1),
            np.stack([none, w[:, 0]], -1), drawn.reshape(b, 2, b)]  # fmt: skip


def elementwise(shapes: tuple[str, ...], kinds: str, pairs: list) -> Case:
    fs, references = zip(*pairs)
    return Case(each(*fs), each(*references), shapes, kinds)


GENERATED = {"dtype": np.dtype(np.uint32), "algorithm": "three_fry"}

CASES: dict[str, Case] = {
    **{f"unary {k}": elementwise(("b, 3",), k, pairs) for k, pairs in UNARY.items()},
    **{f"binary {k}": elementwise(("b, 3", "b, 3"), k, p) for k, p in BINARY.items()},
    "broadcasting": Case(
        lambda x, y, z: [x + y, x * z, x + 1, y - z], lambda x, y, z: [x + y, x * z, x + 1, y - z],
        ("b, c", "b, 1", "c"), "nnn",
    ),
    "threefry": Case(
        lambda k, x: threefry2x32(k, k[::-1], x, x.T.reshape(x.shape)),
        lambda k, x: threefry(k, k[::-1], x, x.T.reshape(x.shape)), ("b, 3", "b, 3"), "ww",
    ),
    "keys": Case(of_keys, of_keys_by_hand, ("b, 2",), "w"),
    "the device's generator": Case(
        lambda w: rng_bit_generator.bind(w[0], shape=(w.shape[0],), **GENERATED),
        lambda w: _generator(w[0], (len(w),), **GENERATED),
        ("b, 4",), "w",
    ),
}  # fmt: skip

# ---- shapes --------------------------------------------------------------------------------


LOOKS = {"scale": 0.5, "causal": True, "window": None}


def attention(q, k, v, dq, dk, dv, ct):
    """And its derivatives, forwards and backwards."""
    return [
        attention_.bind(q, k, v, **LOOKS),
        attention_tangent.bind(q, k, v, dq, dk, dv, **LOOKS),
        *attention_cotangent.bind(q, k, v, ct, **LOOKS),
    ]


def attention_by_hand(*xs):
    """One query after the other, in double precision; differences instead of derivatives."""
    q, k, v, dq, dk, dv, ct = (x.astype(np.float64) for x in xs)

    def of(q, k, v):
        out = np.zeros((*q.shape[:2], v.shape[2]))
        for i, h in np.ndindex(q.shape[:2]):
            seen = np.arange(len(k)) <= i
            e = np.exp(0.5 * k[seen, 0] @ q[i, h])
            out[i, h] = e @ v[seen, 0] / e.sum()
        return out

    def slope(*steps):
        ahead, behind = (of(*[x + s * t for x, t in zip((q, k, v), steps)]) for s in (1e-5, -1e-5))
        return (ahead - behind) / 2e-5

    results = [of(q, k, v), slope(dq, dk, dv)]
    for n, x in enumerate((q, k, v)):
        found = np.zeros_like(x)
        for at in np.ndindex(x.shape):
            steps = [np.zeros_like(y) for y in (q, k, v)]
            steps[n][at] = 1
            found[at] = (ct * slope(*steps)).sum()
        results.append(found)
    return [r.astype(F32) for r in results]


def sizes_as_numbers(x):
    b, c = x.shape
    return [x / b, x * c + b, sh.iota(F32, (b, c), 1), x.sum() / (b * c), (x > 0) * b,
            el.maximum(x, b - 1), b - x, 2 * b + x * (c // 2), x + (b % 2)]  # fmt: skip


def sizes_as_numbers_of(x):
    b, c = x.shape
    counted = np.broadcast_to(np.arange(c, dtype=F32), (b, c))
    return [x / b, x * c + b, counted, x.sum() / (b * c), (x > 0) * b, np.maximum(x, b - 1), b - x,
            2 * b + x * (c // 2), x + (b % 2)]  # fmt: skip


CASES |= {
    "sizes as numbers": Case(sizes_as_numbers, sizes_as_numbers_of, ("b, c",), "n"),
    "reshape": Case(
        lambda x: [sh.reshape(x, (-1,)), sh.reshape(x, (x.shape[0] * 2, -1)), x.reshape(-1, 4),
                   sh.reshape(x, (2, x.shape[0], 2, -1))],
        lambda x: [x.reshape(-1), x.reshape(x.shape[0] * 2, -1), x.reshape(-1, 4),
                   x.reshape(2, x.shape[0], 2, -1)],
        ("b, 4, c",), "n",
    ),
    "divided": Case(
        lambda x: x.reshape(4, -1).sum(0), lambda x: x.reshape(4, -1).sum(0), ("b",), "n",
        ("mod(b, 8) == 0",), ({"b": 8}, {"b": 16}, {"b": 24}),
    ),
    "transpose": Case(
        lambda x: [x.T, sh.moveaxis(x, 0, 1), sh.transpose(x, (1, 2, 0))],
        lambda x: [x.T, np.moveaxis(x, 0, 1), np.transpose(x, (1, 2, 0))], ("b, c, 3",), "n",
    ),
    "axes": Case(
        lambda x: [sh.expand_dims(x, 1), sh.squeeze(sh.expand_dims(x, 0), 0), sh.rev.bind(
            x, axes=(0, 1)), sh.barrier.bind(x, x)[1], el.once.bind(x)],
        lambda x: [x[:, None], x, x[::-1, ::-1], x, x], ("b, c",), "n",
    ),
    "broadcast_to": Case(
        lambda x, y: [sh.broadcast_to(x, (3, *x.shape)), sh.broadcast_to(y, x.shape)],
        lambda x, y: [np.broadcast_to(x, (3, *x.shape)), np.broadcast_to(y, x.shape)],
        ("b, c", "1, c"), "nn",
    ),
    "slices": Case(
        lambda x: [x[1:], x[:-1], x[::2], x[::-1], x[::-2], x[-1], x[0, 1:], x[:, : x.shape[0]],
                   x[x.shape[0] - 1], x[:2], x[-3:], sh.slice_in_dim(x, 0, x.shape[0], 2)],
        lambda x: [x[1:], x[:-1], x[::2], x[::-1], x[::-2], x[-1], x[0, 1:], x[:, : x.shape[0]],
                   x[x.shape[0] - 1], x[:2], x[-3:], x[::2]],
        ("b, 6",), "n",
    ),
    "pad": Case(
        lambda x: [sh.pad(x, 7.0, [(1, 2, 0), (0, 0, 1)]), sh.pad(x, 0.0, [(x.shape[0], 0, 1),
                   (-1, 1, 0)])],
        lambda x: [padded(x, 7, 1, 2, 0, 0, 0, 1), padded(x, 0, x.shape[0], 0, 1, -1, 1, 0)],
        ("b, 3",), "n",
    ),
    "concatenate": Case(
        lambda x, y: [sh.concatenate([x, y]), sh.concatenate([x, x, x[:, :1]], 1),
                      sh.stack([x, x]), sh.stack([x, -x], 2)],
        lambda x, y: [np.concatenate([x, y]), np.concatenate([x, x, x[:, :1]], 1),
                      np.stack([x, x]), np.stack([x, -x], 2)],
        ("b, 3", "c, 3"), "nn",
    ),
    "iota": Case(
        lambda x: [sh.iota(I32, (x.shape[0] + 1, 2), 0), sh.iota(F32, x.shape, 1),
                   sh.fill(3, x.aval), sh.iota(I32, (x.shape[0] * x.shape[1],))],
        lambda x: [np.broadcast_to(np.arange(x.shape[0] + 1)[:, None], (x.shape[0] + 1, 2)),
                   np.broadcast_to(np.arange(x.shape[1]), x.shape), np.full(x.shape, 3),
                   np.arange(x.size)],
        ("b, c",), "n",
    ),
}  # fmt: skip


def padded(x, value, *config):
    """StableHLO's pad of a matrix: (low, high, interior) of both axes."""
    for axis in (0, 1):
        low, high, inner = config[3 * axis : 3 * axis + 3]
        n = x.shape[axis]
        wide = list(x.shape)
        wide[axis] = n + max(n - 1, 0) * inner
        spread = np.full(wide, value, x.dtype)
        spread[(slice(None),) * axis + (slice(None, None, inner + 1),)] = x
        spread = np.take(spread, range(max(-low, 0), wide[axis] - max(-high, 0)), axis)
        around = [(0, 0), (0, 0)]
        around[axis] = max(low, 0), max(high, 0)
        x = np.pad(spread, around, constant_values=value)
    return x


# ---- reductions, contractions, convolutions, sorting ----------------------------------------


def correlated(x, k, stride, low, high):
    """1-d cross-correlation: (batch, in, n) with (out, in, w)."""
    x = np.pad(x, ((0, 0), (0, 0), (low, high)))
    w = k.shape[2]
    places = range(0, x.shape[2] - w + 1, stride)
    return np.stack([np.einsum("biw,oiw->bo", x[:, :, p : p + w], k) for p in places], -1)


def same(n, w, stride):
    total = max((-(-n // stride) - 1) * stride + w - n, 0)
    return total // 2, total - total // 2


CASES |= {
    "reductions": Case(
        lambda x: [x.sum(), x.sum(0), x.prod(1), x.max(0), x.min(), x.mean(), x.mean(0),
                   x.mean(1, keepdims=True), x.argmax(0), x.argmin(1), x.argmax()],
        lambda x: [x.sum(), x.sum(0), x.prod(1), x.max(0), x.min(), x.mean(), x.mean(0),
                   x.mean(1, keepdims=True), x.argmax(0), x.argmin(1), x.argmax()],
        ("b, c",), "n",
    ),
    "extremes": Case(
        lambda x: [argreduction.is_max.bind(x, axes=(0,)),
                   argreduction.is_min.bind(x, axes=(0, 1))],
        lambda x: [x == x.max(0), x == x.min()],
        ("b, c",), "n",
    ),
    "logic": Case(
        lambda p, i: [reduction.any_(p, 0), reduction.all_(p), *[
            getattr(reduction, f"reduce_{n}").bind(i, axes=(0,)) for n in ("and", "or", "xor")]],
        lambda p, i: [p.any(0), p.all(), np.bitwise_and.reduce(i), np.bitwise_or.reduce(i),
                      np.bitwise_xor.reduce(i)],
        ("b, c", "b, 3"), "?i",
    ),
    "running": Case(
        lambda x: [cumulative.cumsum(x, 0), cumulative.cumprod(x, 1), cumulative.cummax(x, 0),
                   cumulative.cummin(x, 1, True), cumulative.cumlogsumexp(x, 0),
                   cumulative.cumsum(x), cumulative.linear_recurrence(x * 0 + 0.5, x, 0)],
        lambda x: [np.cumsum(x, 0), np.cumprod(x, 1), np.maximum.accumulate(x, 0),
                   np.minimum.accumulate(x[:, ::-1], 1)[:, ::-1], np.logaddexp.accumulate(x, 0),
                   np.cumsum(x), recurrence(x)],
        ("b, c",), "n",
    ),
    "attention": Case(
        attention, attention_by_hand,
        ("b, 2, 3", "c, 1, 3", "c, 1, 2", "b, 2, 3", "c, 1, 3", "c, 1, 2", "b, 2, 2"), "nnnnnnn",
    ),
    "contractions": Case(
        lambda x, y, z: [x @ y, x.T @ x, contraction.matmul(z, y), contraction.vdot(x, x),
                         contraction.outer(x[:, 0], y[0]), contraction.contracted(
                             z, z, ((2,), (2,)), ((0,), (0,)))],
        lambda x, y, z: [x @ y, x.T @ x, z @ y, np.vdot(x, x), np.outer(x[:, 0], y[0]),
                         np.einsum("bij,bkj->bik", z, z)],
        ("b, c", "c, 4", "b, 2, c"), "nnn",
    ),
    "convolutions": Case(
        lambda x, k: [convolution.conv(x, k, (1,), "SAME"), convolution.conv(x, k, (2,), "VALID"),
                      convolution.conv(x, k, (1,), [(2, 1)])],
        lambda x, k: [correlated(x, k, 1, *same(7, 3, 1)), correlated(x, k, 2, 0, 0),
                      correlated(x, k, 1, 2, 1)],
        ("b, 2, 7", "4, 2, 3"), "nn",
    ),
    "convolutions over a size": Case(
        lambda x, k: [convolution.conv(x, k, (1,), "SAME"), convolution.conv(x, k, (2,), "SAME"),
                      convolution.conv(x, k, (1,), [(2, 1)])],
        lambda x, k: [correlated(x, k, 1, *same(x.shape[2], 3, 1)),
                      correlated(x, k, 2, *same(x.shape[2], 3, 2)), correlated(x, k, 1, 2, 1)],
        ("3, 2, b", "c, 2, 3"), "nn",
    ),
    "sorting": Case(
        lambda x, i: [sorting.sort(x, 0), sorting.argsort(x, 0), sorting.sort(
                          x, 1, descending=True), *sorting.sort_together([i, x[:, :3]], 0),
                      sorting.argsort(i, 1)],
        lambda x, i: [np.sort(x, 0), np.argsort(x, 0, kind="stable"), -np.sort(-x, 1),
                      *together(i, x[:, :3]), np.argsort(i, 1, kind="stable")],
        ("b, 4", "b, 3"), "ni",
    ),
    "several keys": Case(
        lambda i, x: sorting.sort_together([i, x], 0, 2), lambda i, x: lexicographic(i, x),
        ("b", "b"), "kn",
    ),
    "top_k": Case(
        lambda x, y: [*sorting.top_k(x, 2), *sorting.top_k(y, 2)],
        lambda x, y: [*best(x, 2), *best(y, 2)], ("b, 4", "2, b + 1"), "nn",
    ),
}  # fmt: skip


def recurrence(x):
    out, y = [], 0.0
    for row in x:
        y = 0.5 * y + row
        out.append(y)
    return np.stack(out)


def together(i, x):
    order = np.argsort(i, 0, kind="stable")
    return [np.take_along_axis(i, order, 0), np.take_along_axis(x, order, 0)]


def lexicographic(i, x):
    order = np.lexsort((x, i))
    return [i[order], x[order]]


def best(x, k):
    order = np.argsort(-x, -1, kind="stable")[..., :k]
    return [np.take_along_axis(x, order, -1), order]


# ---- indexing ------------------------------------------------------------------------------

CASES |= {
    "boxes": Case(
        lambda x, i: [dynamic_slicing.dynamic_slice(x, (i[0], 0), (1, 3)),
                      dynamic_slicing.dynamic_slice(x, (0, i[0]), (x.shape[0], 2)),
                      dynamic_slicing.dynamic_update_slice(x, x[:1] * 2, (i[0], 0)),
                      dynamic_slicing.dynamic_update_slice(x, x[:, :1] * 2, (0, i[0])), x[i[0]]],
        lambda x, i: [rows(x, i[0], 1), rows(x.T, i[0], 2).T, replaced(x, i[0]),
                      replaced(x.T, i[0]).T, x[min(i[0], x.shape[0] - 1)]],
        ("b, 3", "2"), "nk",
    ),
    "gather": Case(
        lambda x, i: [x[i], x[:, i], x[i][:, i], x[i % x.shape[0]]],
        lambda x, i: [x[i], x[:, i], x[i][:, i], x[i % x.shape[0]]],
        ("b + 2, c + 2", "b"), "nk",
    ),
    "reading outside": Case(
        lambda x, i: [x.at[i].get(mode="fill", fill_value=-1.0), x.at[i].get(mode="clip")],
        lambda x, i: [np.where((i < x.shape[0])[:, None], x[np.minimum(i, x.shape[0] - 1)], -1),
                      x[np.minimum(i, x.shape[0] - 1)]],
        ("b, c", "3"), "nk",
    ),
    "scatter": Case(
        lambda x, i, v: [x.at[i].add(v), x.at[:, 0].set(1.0), x.at[i].multiply(2.0),
                         x.at[i].min(v), x.at[i].max(v), x.at[i].set(0.0), x.at[1:].add(1.0),
                         x.at[i].add(v, mode="clip")],
        lambda x, i, v: scattered(x, i, v),
        ("b + 2, c", "b", "b, c"), "nkn",
    ),
}  # fmt: skip


def replaced(x, i):
    x = x.copy()
    i = min(max(int(i), 0), x.shape[0] - 1)
    x[i : i + 1] = x[:1] * 2
    return x


def scattered(x, i, v):
    """What numpy's unbuffered operations give."""
    out = [x.copy() for _ in range(8)]
    np.add.at(out[0], i, v)
    out[1][:, 0] = 1
    np.multiply.at(out[2], i, F32(2))
    np.minimum.at(out[3], i, v)
    np.maximum.at(out[4], i, v)
    out[5][i] = 0
    out[6][1:] += 1
    np.add.at(out[7], i, v)
    return out


# ---- loops, branches, calls ----------------------------------------------------------------


def scanned(x):
    """Sums along rows, forth and back, with a number of steps that is a size."""
    forth = _control.scan(lambda c, r: (c + r, c * 2), x[0] * 0, x)
    back = _control.scan(lambda c, r: (c + r, c), x[0] * 0, x, reverse=True)
    unrolled = _control.scan(lambda c, r: (c + r, None), x[0] * 0, x, unroll=2)[0]
    fixed = _control.scan(lambda c, k: (c * k, c.sum()), x, sh.iota(F32, (4,)))
    return [*forth, *back, unrolled, *fixed, _control.map_(lambda r: r.max(), x)]


def scanned_of(x):
    before = np.cumsum(x, 0) - x
    after = np.cumsum(x[::-1], 0)[::-1] - x
    fixed = np.array([x.sum(), 0, 0, 0], F32)
    return [x.sum(0), 2 * before, x.sum(0), after, x.sum(0), x * 0, fixed, x.max(1)]


def looped(x, n):
    turns = _control.while_loop(lambda s: s[0] < n[0], lambda s: (s[0] + 1, s[1] * 2), (0, x))[1]
    known = _control.fori_loop(0, x.shape[0], lambda i, y: y + i, x)
    return [turns, known, _control.fori_loop(0, n[0], lambda i, y: y + 1, x)]


def looped_of(x, n):
    b, n = x.shape[0], max(int(n[0]), 0)
    return [x * 2**n, x + b * (b - 1) // 2, x + n]


def branched(x, p):
    by_size = _control.cond(x.sum() > 0, lambda y: y * y.shape[0], lambda y: -y, x)
    three = [lambda y: y, lambda y: y + y.shape[0], lambda y: y * 0]
    return [by_size, _control.switch(p[0], three, x)]


def branched_of(x, p):
    b = x.shape[0]
    return [x * b if x.sum() > 0 else -x, [x, x + b, x * 0][int(p[0])]]


def called(x):
    inner = plait.jit(lambda y: (y * y.shape[0]).sum(0))
    return [inner(x), inner(x.T), inner(x), _control.map_axes(lambda r: r.sum(), 1)(x)]


CASES |= {
    "scan": Case(scanned, scanned_of, ("b, c",), "n"),
    "loops": Case(looped, looped_of, ("b, 3", "1"), "nk"),
    "branches": Case(branched, branched_of, ("b, c", "1"), "nk"),
    "calls": Case(
        called, lambda x: [x.shape[0] * x.sum(0), x.shape[1] * x.sum(1), x.shape[0] * x.sum(0),
                           x.sum(0)], ("b, c",), "n",
    ),
}  # fmt: skip

# ---- sizes that are found from several axes -------------------------------------------------

CASES |= {
    "twice a size": Case(
        lambda x: x.reshape(-1, 2).sum(1) / (x.shape[0] // 2),
        lambda x: x.reshape(-1, 2).sum(1) / (x.shape[0] // 2), ("2*b",), "n",
    ),
    "sums of sizes": Case(
        lambda x, y: [x.sum() / (2 * x.shape[0] - y.shape[0]), y[: x.shape[0]] + x],
        lambda x, y: [x.sum() / (2 * x.shape[0] - y.shape[0]), y[: x.shape[0]] + x],
        ("b + c", "b + 2*c"), "nn",
    ),
    "products of sizes": Case(
        lambda x, y: x.reshape(y.shape[0], -1).sum(0),
        lambda x, y: x.reshape(y.shape[0], -1).sum(0),
        ("b*c", "b"), "nn",
    ),
}  # fmt: skip


# ---- special functions, transforms, linear algebra ------------------------------------------

pnp, linalg = plait.numpy, plait.lax.linalg
EYE = np.eye(3, dtype=F32)


def slope(f, a, x, h=1e-4):
    """The derivative in `a`, in double precision."""
    a, x = np.float64(a), np.float64(x)
    return (f(a + h, x) - f(a - h, x)) / (2 * h)


def gamma_density(a, x):
    return np.exp((a - 1) * np.log(x) - x - sp.gammaln(a))


def whole(matrix):
    """Matrices that are symmetric and positive definite, and others that can be inverted."""
    return pnp.matmul(matrix, pnp.matrix_transpose(matrix)) + 3 * EYE, matrix + 4 * EYE


def again(x):
    """What factorisations are factors of."""
    a, g = whole(x)
    lower = linalg.cholesky(a, symmetrize_input=False)
    lu, pivots, order = linalg.lu(g)
    left, right = pnp.tril(lu, -1) + EYE, pnp.triu(lu)
    inverse = pnp.argsort(order, axis=-1)
    product = pnp.take_along_axis(left @ right, inverse[..., None], axis=-2)
    q, r = linalg.qr(g)
    w, v = pnp.linalg.eigh(a)
    u, d, vh = pnp.linalg.svd(g)
    values, vectors = pnp.linalg.eig(g)
    t, z = linalg.schur(g)
    root = plait.scipy.linalg.sqrtm(a)
    sylvester = plait.scipy.linalg.solve_sylvester(a, a, g)
    mt = pnp.matrix_transpose
    return [
        lower @ mt(lower), product, linalg.lu_pivots_to_permutation(pivots, 3) - order,
        q @ r, (v * w[..., None, :]) @ mt(v), (u * d[..., None, :]) @ vh,
        pnp.real(vectors @ (values[..., None] * pnp.linalg.inv(vectors))), z @ t @ mt(z),
        root @ root, a @ sylvester + sylvester @ a,
    ]  # fmt: skip


def again_of(x):
    a, g = x @ np.swapaxes(x, -1, -2) + 3 * EYE, x + 4 * EYE
    return [a, g, np.zeros(x.shape[:-1], I32), g, a, g, g, g, a, g]


def reduced(x):
    """Similar matrices of a simple form, which keep traces of squares."""
    a, g = whole(x)
    h, taus = linalg.hessenberg(g)
    hess = pnp.triu(h, -1)
    _, d, e, _ = linalg.tridiagonal(a)[:4]
    return [pnp.trace(hess @ hess, axis1=-2, axis2=-1), (d**2).sum(-1) + 2 * (e**2).sum(-1)]


def reduced_of(x):
    a, g = x @ np.swapaxes(x, -1, -2) + 3 * EYE, x + 4 * EYE
    return [np.trace(g @ g, axis1=-2, axis2=-1), np.trace(a @ a, axis1=-2, axis2=-1)]


def solved(x):
    a, g = whole(x)
    low = pnp.tril(g)
    band = pnp.ones(x.shape[:-1], F32)
    edge = band * np.array([0, 1, 1], F32)
    r = linalg.tridiagonal_solve(edge, band * 5, pnp.flip(edge, -1), x)
    return [
        low @ linalg.triangular_solve(low, x, left_side=True, lower=True),
        g @ pnp.linalg.solve(g, x), r, pnp.linalg.det(g), *pnp.linalg.slogdet(g),
        pnp.linalg.pinv(g) @ g, plait.map_axes(lambda m, c: pnp.linalg.lstsq(m, c)[0], 0)(g, x),
        linalg.householder_product(*qr_raw(g)),
    ]  # fmt: skip


def qr_raw(g):
    h, taus = pnp.linalg.qr(g, mode="raw")
    return pnp.matrix_transpose(h), taus


def solved_of(x):
    g = x + 4 * EYE
    tri = 5 * EYE + np.eye(3, k=1, dtype=F32) + np.eye(3, k=-1, dtype=F32)
    q = np.linalg.qr(g)[0]
    sign, log = np.linalg.slogdet(g)
    return [x, x, np.linalg.solve(np.broadcast_to(tri, g.shape), x), np.linalg.det(g), sign, log,
            np.broadcast_to(EYE, g.shape), np.linalg.solve(g, x), q]  # fmt: skip


lax, special = plait.lax, plait.scipy.special
CASES |= {
    "special functions": Case(
        lambda x: [
            lax.zeta(x + 1.5, x + 0.5), lax.polygamma(1.0, x + 0.5), lax.igamma(x + 1, x),
            lax.igammac(x + 1, x), lax.betainc(x + 0.5, x + 1, x), lax.bessel_i0e(x),
            lax.bessel_i1e(x), special.log_ndtr(x), special.ndtri(x), special.expn(2, x),
            special.expi(x), special.spence(x), special.betaln(x, x + 1),
        ],
        lambda x: [
            sp.zeta(x + 1.5, x + 0.5), sp.polygamma(1, x + 0.5), sp.gammainc(x + 1, x),
            sp.gammaincc(x + 1, x), sp.betainc(x + 0.5, x + 1, x), sp.i0e(x), sp.i1e(x),
            sp.log_ndtr(x), sp.ndtri(x), sp.expn(2, x), sp.expi(x), sp.spence(x),
            sp.betaln(x, x + 1),
        ],
        ("b, c",), "u",
    ),
    "special functions of physics": Case(
        lambda x: [
            special.dawsn(x), special.erfcx(x), *special.fresnel(x), *special.sici(x + 0.1),
            special.owens_t(x, x + 1), pnp.real(special.wofz(x + 0.5j)),
            special.bessel_jn(x + 1, v=2, n_iter=50)[2], special.hyp1f1(1.5, 2.5, x),
            special.hyp2f1(0.5, 1.5, 2.5, x / 4),
        ],
        lambda x: [
            sp.dawsn(x), sp.erfcx(x), *sp.fresnel(x), *sp.sici(x + 0.1), sp.owens_t(x, x + 1),
            sp.wofz(x + 0.5j).real, sp.jv(2, x + 1), sp.hyp1f1(1.5, 2.5, x),
            sp.hyp2f1(0.5, 1.5, 2.5, x / 4),
        ],
        ("b, c",), "u",
    ),
    "what depends on the platform, and asks for accuracy": Case(
        lambda x: [
            lax.platform_dependent(x, cpu=lambda v: v + 1, default=lambda v: v - 1),
            lax.exp(x, accuracy=lax.AccuracyMode.HIGHEST),
            lax.composite(lambda v: v * 2, "plait.doubled")(x),
        ],
        lambda x: [x + 1, np.exp(x), x * 2],
        ("b, c",), "u",
    ),
    "derivatives of the incomplete gamma function": Case(
        lambda a, x: [lax.igamma_grad_a(a + 1, x), lax.random_gamma_grad(a + 1, x)],
        lambda a, x: [slope(sp.gammainc, a + 1, x),
                      -slope(sp.gammainc, a + 1, x) / gamma_density(a + 1.0, x)],
        ("b, c", "b, c"), "uu",
    ),
    "fourier": Case(
        lambda x: [pnp.abs(pnp.fft.fft(x)), pnp.fft.irfft(pnp.fft.rfft(x)),
                   pnp.real(pnp.fft.fftn(x, axes=(-1,)))],
        lambda x: [np.abs(np.fft.fft(x)), x, np.real(np.fft.fftn(x, axes=(-1,)))],
        ("b, 8",), "n",
    ),
    "gamma": Case(
        lambda a: plait.random.gamma(plait.random.key(3), a + 1),
        lambda a: np.asarray(plait.random.gamma(plait.random.key(3), a + 1)), ("b, c",), "u",
    ),
    "factorisations": Case(again, again_of, ("b, 3, 3",), "u"),
    "reductions to a form": Case(reduced, reduced_of, ("b, 3, 3",), "u"),
    "solutions": Case(solved, solved_of, ("b, 3, 3",), "u"),
}  # fmt: skip


# ---- the test ------------------------------------------------------------------------------


def arrays_for(case: Case, sizes: dict[str, int], rng) -> list[np.ndarray]:
    scope = plait.Scope(case.constraints)
    dims = [plait.symbolic_dims(s, scope) for s in case.shapes]
    shapes = [tuple(d if isinstance(d, int) else d.substitute(sizes) for d in ds) for ds in dims]
    return [made(s, k, rng) for s, k in zip(shapes, case.kinds, strict=True)]


def flat(out: Any) -> list:
    return list(out) if isinstance(out, list | tuple) else [out]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.feature("E05", "E06", "E07")
def test_primitives_with_symbolic_sizes(name):
    case, rng = CASES[name], np.random.default_rng(0)
    types = symbolic_args_specs(
        tuple(arrays_for(case, case.sizes[0], rng)), case.shapes, case.constraints
    )
    exported = deserialize(export(case.f)(*types).serialize())
    for sizes in case.sizes:
        xs = arrays_for(case, sizes, rng)
        got, want = flat(exported.call(*xs)), flat(case.reference(*xs))
        assert len(got) == len(want)
        for i, (g, w) in enumerate(zip(got, want)):
            w = np.asarray(w)
            assert g.shape == w.shape, (i, sizes)
            if w.dtype.kind in "fc":
                np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-5, err_msg=f"{i} at {sizes}")
            else:
                np.testing.assert_array_equal(g, w, err_msg=f"{i} at {sizes}")


NO_MEANING = {
    "core.host": "calls Python",
    "core.check": "is refused unless it is collected; tested with plait.checks",
    **dict.fromkeys(
        ("linalg.geqp3", "linalg.ormqr"), "calls LAPACK by a name of which nothing is promised"
    ),
    "core.select_and_scatter_add": "its windows need known sizes",
    "core.foreign": "is told the sizes of its results",
    **dict.fromkeys(
        ("core.axis_index", "core.psum", "core.pmax", "core.pmin", "core.ppermute",
         "core.all_gather", "core.all_to_all", "core.psum_scatter", "core.pvary"),
        "speaks of an axis that a mesh binds",
    ),
}  # fmt: skip


def used(program, found: set[str]) -> set[str]:
    for e in program.eqns:
        found.add(e.prim.name)
        for inner in programs_in(e.params):
            used(inner, found)
    return found


@pytest.mark.feature("E07")
def test_the_table_speaks_of_every_primitive():
    found: set[str] = set()
    for case in CASES.values():
        rng = np.random.default_rng(0)
        like = tuple(arrays_for(case, case.sizes[0], rng))
        types = symbolic_args_specs(like, case.shapes, case.constraints)
        used(plait.make_program(case.f)(*types), found)
    core = {
        n for n, p in primitives().items() if p.namespace in ("core", "linalg", "special", "nn")
    }
    assert control_flow.scan.name in found
    assert core - found - NO_MEANING.keys() == set()
