"""Functions of arrays whose size n is known by name only, and may be 0: traced once, then called
with arrays of each size.

Invariant: results are those of numpy at each size, or of a loop of Python.  Where numpy refuses an
empty array, which cannot be done when a function is traced for all sizes, the result has the shape
that the others have.
"""

import numpy as np
import pytest
import scipy.linalg
import scipy.signal

import plait
import plait.numpy as pnp
from plait import lax, nn, ops, random
from plait.ext.sizes import Scope, symbolic_dims
from plait_export import deserialize, export

F32, I32 = np.float32, np.int32
SIZES = (0, 1, 3)
MAY_BE_EMPTY = Scope([], lower=0)
V, M, Q = "n", "n, 4", "n, n"


def exported(f, shapes, kind):
    """`f` exported for arrays of these shapes, with n >= 0, and read again."""
    sizes = [symbolic_dims(s, MAY_BE_EMPTY) for s in shapes]
    made = export(f)(*[plait.ShapeDtypeStruct(s, kind) for s in sizes])
    return deserialize(made.serialize())


def given(text, n, kind, seed):
    shape = [d if isinstance(d, int) else d.substitute({"n": n, "m": n + 2})
             for d in symbolic_dims(text, MAY_BE_EMPTY)]  # fmt: skip
    x = np.random.default_rng(seed + n).normal(size=shape) * 3
    return (np.abs(x) if kind == I32 else x).astype(kind)


def leaves(tree):
    return [np.asarray(v) for v in plait.tree.leaves(tree)]


def check(name, ours, theirs, shapes, kind=F32):
    artifact = exported(ours, shapes, kind)
    for n in SIZES:
        xs = [given(s, n, kind, i) for i, s in enumerate(shapes)]
        got = leaves(artifact.call(*xs))
        try:
            with np.errstate(all="ignore"):
                wanted = [np.asarray(v) for v in plait.tree.leaves(theirs(*xs))]
        except (ValueError, IndexError, ZeroDivisionError):
            assert n == 0, f"{name}: numpy refuses n = {n}"
            continue
        assert len(got) == len(wanted), (name, n)
        for g, w in zip(got, wanted, strict=True):
            assert g.shape == w.shape, (name, n, g.shape, w.shape)
            np.testing.assert_allclose(g, w, 2e-4, 2e-5, err_msg=f"{name} with n = {n}")


def half(x):
    return x.shape[0] // 2


def changed(x, at, value, how="set"):
    """A copy written by numpy."""
    x = x.copy()
    if how == "add":
        np.add.at(x, at, value)
    else:
        x[at] = value
    return x


# ---- the same function of both modules -------------------------------------------------------

SAME = {
    "x[0]": (lambda m, x: x[0], M),
    "x[-1]": (lambda m, x: x[-1], M),
    "x[n//2]": (lambda m, x: x[half(x)], M),
    "x[n - 1]": (lambda m, x: x[x.shape[0] - 1], M),
    "x[1:]": (lambda m, x: x[1:], M),
    "x[:-1]": (lambda m, x: x[:-1], M),
    "x[::2]": (lambda m, x: x[::2], M),
    "x[1::2]": (lambda m, x: x[1::2], M),
    "x[::-1]": (lambda m, x: x[::-1], M),
    "x[::-2]": (lambda m, x: x[::-2], M),
    "x[:3]": (lambda m, x: x[:3], M),
    "x[-2:]": (lambda m, x: x[-2:], M),
    "x[n//2:]": (lambda m, x: x[half(x):], M),
    "x[1:-1:2]": (lambda m, x: x[1:-1:2], M),
    "x[:n - 1]": (lambda m, x: x[: x.shape[0] - 1], V),
    "x[1:] + x[:-1]": (lambda m, x: x[1:] + x[:-1], M),
    "x[[0, -1]]": (lambda m, x: x[m.asarray([0, -1])], M),
    "x[:, n//2]": (lambda m, x: x[:, half(x)], Q),
    "halves": (lambda m, x: m.concatenate([x[: half(x)], x[half(x):]]) + x, V),
    "evens and odds": (lambda m, x: m.concatenate([x[::2], x[1::2]]) + x, V),
    "convolve full": (lambda m, x: m.convolve(x, m.asarray([1.0, 2, 4], F32)), V),
    "convolve same": (lambda m, x: m.convolve(x, m.asarray([1.0, 2, 4], F32), mode="same"), V),
    "convolve valid": (lambda m, x: m.convolve(m.asarray([1.0, 2], F32), x, mode="valid"), V),
    "convolve two": (lambda m, x, y: [m.convolve(x, y, mode=k) for k in ("full", "same", "valid")],
                     V, "n + 2"),
    "correlate": (lambda m, x: [m.correlate(x, m.asarray([1.0, 2, 4, 8], F32), mode=k)
                                for k in ("full", "same", "valid")], V),
    "correlate two": (lambda m, x, y: [m.correlate(x, y, mode=k)
                                       for k in ("full", "same", "valid")], V, "n + 1"),
    "linspace to n": (lambda m, x: m.linspace(0, 1, x.shape[0]) + x, V),
    "linspace open": (lambda m, x: m.linspace(x[:1], 1, x.shape[0], endpoint=False), "n + 1"),
    "arange by steps": (
        lambda m, x: [m.arange(0, x.shape[0], 2), m.arange(x.shape[0], 0, -1),
                      m.arange(5, x.shape[0], -3), m.arange(1, x.shape[0], 5)], V),
    "fftfreq": (lambda m, x: [m.fft.fftfreq(x.shape[0]), m.fft.fftfreq(x.shape[0], 0.3),
                              m.fft.rfftfreq(x.shape[0], 2.0)], "n + 1"),
    "logspace": (lambda m, x: m.logspace(0, 1, x.shape[0]), V),
    "geomspace": (lambda m, x: m.geomspace(1, 16, x.shape[0]), V),
    "interp": (lambda m, x, y: m.interp(m.asarray([-9, -1, 0.5, 9], F32), m.sort(x), y), V, V),
    "median": (lambda m, x: m.median(x, axis=0), "n + 1, 4"),
    "quantile": (lambda m, x: m.quantile(x, 0.3, axis=0), "n + 1, 4"),
    "mean, var, std": (lambda m, x: [f(x, axis=0) for f in (m.mean, m.var, m.std)], "n + 1, 4"),
    "mean over n": (lambda m, x: m.mean(x, axis=1), M),
    "max and min": (lambda m, x: [m.max(x, axis=0), m.min(x)], M),
    "max from 0": (lambda m, x: m.max(x, axis=0, initial=0), M),
    "argmax, argmin": (lambda m, x: [m.argmax(x, axis=0), m.argmin(x, axis=0)], M),
    "sum, prod, any": (lambda m, x: [m.sum(x, 0), m.prod(x, 0), m.any(x > 0, 0)], M),
    "cumsum, cumprod": (lambda m, x: [m.cumsum(x, 0), m.cumprod(x, axis=0), m.cumsum(x)], M),
    "sort": (lambda m, x: [m.sort(x, axis=0), m.argsort(x, axis=0), m.sort(x, axis=None)], M),
    "outer": (lambda m, x, y: m.outer(x, y), V, "n + 1"),
    "einsum": (lambda m, x, y: [m.einsum("nd,md->nm", x, y), m.einsum("nd,nd->d", x, x)], M,
               "m, 4"),
    "concatenate": (lambda m, x, y: m.concatenate([x, y, x]), M, "m, 4"),
    "reshape": (lambda m, x: [x.reshape(-1), x.reshape(x.shape[0] * 4).reshape(x.shape[0], 4)], M),
    "reshape -1": (lambda m, x: x.reshape(x.shape[0], 2, -1), M),
    "reshape 2n": (lambda m, x: m.concatenate([x, x]).reshape(2, x.shape[0], 4), M),
    "stack": (lambda m, x: [m.stack([x, x], i) for i in (0, 1, 2)], M),
    "flip, roll": (lambda m, x: [m.flip(x, 0), m.roll(x, 1, 0), m.roll(x, half(x), 0)], M),
    "diff": (lambda m, x: [m.diff(x, axis=0), m.diff(x, n=2, axis=0)], M),
    "ediff1d": (lambda m, x: m.ediff1d(x), V),
    "gradient": (lambda m, x: m.gradient(x, axis=0), "n + 2, 4"),
    "repeat, tile": (lambda m, x: [m.repeat(x, 2, 0), m.tile(x, (2, 3))], M),
    "triangles": (lambda m, x: [m.triu(x), m.tril(x, -1), m.triu(x, 1)], Q),
    "diagonals": (lambda m, x: [m.diagonal(x), m.diagonal(x, 1), m.diagonal(x, -2), m.trace(x)],
                  M),
    "diag": (lambda m, x: [m.diag(x), m.diag(x, 1), m.diag(x, -2)], V),
    "eye, arange, ones": (lambda m, x: [m.eye(x.shape[0]), m.arange(x.shape[0]),
                                        m.ones((x.shape[0], 5)), m.zeros(x.shape), m.tri(
                                            x.shape[0], k=1), m.full((3, x.shape[0]), 2.5)], V),
    "take": (lambda m, x: m.take(x, m.asarray([0, -1]), axis=0), "n + 1, 4"),
    "take_along_axis": (lambda m, x: [m.take_along_axis(x, m.argsort(x, axis=i), axis=i)
                                      for i in (0, 1)], M),
    "searchsorted": (lambda m, x: m.searchsorted(m.sort(x), m.asarray([-1, 0, 2], F32)), V),
    "digitize": (lambda m, x, y: m.digitize(x, m.sort(y)), V, V),
    "histogram": (lambda m, x: [v.astype(F32) for v in m.histogram(x, 4)], V),
    "histogram between": (lambda m, x: m.histogram(x, 3, (-2.0, 2.0))[0].astype(F32), V),
    "isin": (lambda m, x, y: m.isin(m.round(x), m.round(y)), V, "m"),
    "cov": (lambda m, x: m.cov(x.T), "n + 2, 4"),
    "corrcoef": (lambda m, x: m.corrcoef(x), "n + 2, 4"),
    "unwrap": (lambda m, x: m.unwrap(x, axis=0), M),
    "vander": (lambda m, x: m.vander(x, 3), V),
    "polyval, polyadd": (lambda m, x: [m.polyval(x, 0.5), m.polyadd(x, m.ones(3, F32))], V),
    "polyder": (lambda m, x: m.polyder(x), "n + 1"),
    "trapezoid": (lambda m, x: m.trapezoid(x, axis=0), M),
    "array_split": (lambda m, x: m.array_split(x, 3), M),
    "split": (lambda m, x: [m.split(x, 2, axis=1), m.split(x, [1, 3], axis=0)], M),
    "where": (lambda m, x: m.where(x > 0, x, x.shape[0]), M),
    "meshgrid, kron": (lambda m, x: [m.meshgrid(x, x), m.kron(x, m.ones(2, F32))], V),
    "matrices": (lambda m, x: [x @ x.T, m.linalg.norm(x, axis=0), m.inner(x, x)], M),
    "divided by n": (lambda m, x: [x.sum(0) / (x.shape[0] + 1), 7 // (m.int32(x.shape[0]) + 1)],
                     M),
    **{
        name: (lambda m, x, name=name: getattr(m, name)(x.shape[0]).astype(F32), M)
        for name in ("bartlett", "blackman", "hamming", "hanning")
    },
    "kaiser": (lambda m, x: m.kaiser(x.shape[0], 2.5).astype(F32), M),
    "whole floats": (lambda m, x: m.arange(1.0, x.shape[0] + 1, dtype=F32), M),
    **{
        f"pad {mode}": (lambda m, x, mode=mode: m.pad(x, ((3, 2), (0, 1)), mode=mode), M)
        for mode in ("constant", "edge", "wrap", "symmetric", "reflect", "maximum", "minimum",
                     "mean", "linear_ramp")
    },
}  # fmt: skip


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", SAME)
def test_numpy_says_the_same(name):
    f, *shapes = SAME[name]
    check(name, lambda *xs: f(pnp, *xs), lambda *xs: f(np, *xs), shapes)


# ---- what numpy says otherwise ---------------------------------------------------------------


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis, keepdims=True)


def windows(x, size, step):
    return [x[i : i + size] for i in range(0, len(x) - size + 1, step)]


def products(x):
    """The products of each matrix with all before it."""
    out = x.copy()
    for i in range(1, len(x)):
        out[i] = out[i] @ out[i - 1]
    return out


def attention(x):
    return softmax(x @ x.T / 2, 1) @ x


def filled(x, at, value):
    return x[at] if at < len(x) else np.full(x.shape[1:], value, x.dtype)


OTHERS = {
    "map by blocks": (lambda x: [lax.map(lambda r: r * 2 + r[0], x, batch_size=k)
                                 for k in (1, 2, 9)],
                      lambda x: [x * 2 + x[:, :1]] * 3, M),
    "unique of n": (lambda x: pnp.unique(pnp.round(x), size=x.shape[0], fill_value=99),
                    lambda x: np.append(u := np.unique(np.round(x)),
                                        np.full(len(x) - len(u), 99)).astype(F32), V),
    "set": (lambda x: x.at[0].set(5.0), lambda x: changed(x, slice(0, 1), 5), M),
    "add": (lambda x: x.at[-1].add(5.0), lambda x: changed(x, [-1], 5, "add") if len(x) else x, M),
    "set half": (lambda x: x.at[half(x)].set(1.0),
                 lambda x: changed(x, slice(half(x), half(x) + 1), 1), M),
    "set a row": (lambda x: x.at[::2].set(1.0), lambda x: changed(x, slice(None, None, 2), 1), M),
    "add to the rest": (lambda x: x.at[1:].add(1.0),
                        lambda x: changed(x, slice(1, None), 1, "add"), M),
    "get outside": (lambda x: x.at[1].get(mode="fill", fill_value=9.0),
                    lambda x: filled(x, 1, 9), M),
    "drop outside": (lambda x: x.at[2].set(1.0, mode="drop"),
                     lambda x: changed(x, slice(2, 3), 1), M),
    "read outside": (lambda x: x.at[pnp.asarray([0, 5])].get(mode="fill", fill_value=-1.0),
                     lambda x: np.stack([filled(x, 0, -1), filled(x, 5, -1)]), M),
    "index_in_dim": (lambda x: lax.index_in_dim(x, -1, keepdims=False), lambda x: x[-1], M),
    "associative_scan": (lambda x: lax.associative_scan(lambda a, b: a + b, x),
                         lambda x: np.cumsum(x, 0), M),
    "associative products": (
        lambda x: lax.associative_scan(lambda a, b: b @ a, x.reshape(-1, 2, 2)),
        lambda x: products(x.reshape(-1, 2, 2)), M),
    "scan": (lambda x: lax.scan(lambda c, r: (c + r, c * r), pnp.zeros(4), x),
             lambda x: [x.sum(0), (np.cumsum(x, 0) - x) * x], M),
    "fori_loop": (lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], pnp.zeros(4)),
                  lambda x: x.sum(0), M),
    "map, vmap": (lambda x: [lax.map(lambda r: r.sum(), x), lax.rev(x, (0,))],
                  lambda x: [x.sum(1), x[::-1]], M),
    "segment_sum": (
        lambda x: ops.segment_sum(x, pnp.arange(x.shape[0]) % 3, 3),
        lambda x: np.stack([x[i::3].sum(0) for i in range(3)]), M),
    "segment_sum to n": (
        lambda x: ops.segment_sum(x, pnp.zeros(x.shape[0], I32), x.shape[0]),
        lambda x: np.concatenate([x.sum(0, keepdims=True), x[1:] * 0])[: len(x)], M),
    "cummax, cumlogsumexp": (
        lambda x: [lax.cummax(x), lax.cumlogsumexp(x)],
        lambda x: [np.maximum.accumulate(x), np.logaddexp.accumulate(x)], V),
    "top_k": (lambda x: lax.top_k(x, 2), lambda x: [np.sort(x)[::-1][:2], np.argsort(-x)[:2]],
              "n + 2"),
    "logsumexp": (lambda x: nn.logsumexp(x, axis=0), lambda x: np.log(np.exp(x).sum(0)), M),
    "softmax": (lambda x: [nn.softmax(x, 0), nn.softmax(x, 1)],
                lambda x: [softmax(x, 0), softmax(x, 1)], M),
    "one_hot": (lambda x: nn.one_hot(pnp.asarray([0, 2, 1]), x.shape[0]),
                lambda x: (np.array([0, 2, 1])[:, None] == np.arange(len(x))).astype(F32), V),
    "standardize": (lambda x: nn.standardize(x, axis=1), lambda x: (
        x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5), M),
    "attention": (lambda x: nn.dot_product_attention(x[:, None], x[:, None], x[:, None])[:, 0],
                  attention, M),
    "conv": (
        lambda x: lax.conv_general_dilated(x[None, None], pnp.ones((1, 1, 3)), (2,), "VALID")[0, 0],
        lambda x: np.array([w.sum() for w in windows(x, 3, 2)], F32), V),
    "conv same": (
        lambda x: lax.conv_general_dilated(x[None, None], pnp.ones((1, 1, 3)), (1,), "SAME")[0, 0],
        lambda x: np.array([w.sum() for w in windows(np.pad(x, 1), 3, 1)], F32), V),
    "reduce_window": (lambda x: lax.reduce_window(x, -np.inf, lax.max, (2,), (2,), "VALID"),
                      lambda x: np.array([w.max() for w in windows(x, 2, 2)], F32), V),
    "lax.pad": (lambda x: lax.pad(x, 0.5, [(1, 2, 2), (0, 0, 0)]),
                lambda x: spread(x, 1, 2, 2), M),
    "unique": (lambda x: pnp.unique(pnp.round(x), size=8, fill_value=99),
               lambda x: np.concatenate([np.unique(np.round(x)), np.full(8, 99, F32)])[:8], V),
    "nonzero": (lambda x: pnp.nonzero(x > 0, size=8, fill_value=-1)[0],
                lambda x: np.concatenate([np.nonzero(x > 0)[0], np.full(8, -1)])[:8], V),
    "nonzero of two axes": (
        lambda x: pnp.nonzero(x > 0, size=30, fill_value=-1),
        lambda x: [np.concatenate([i, np.full(30, -1)])[:30] for i in np.nonzero(x > 0)], M),
    "fill_diagonal": (lambda x: pnp.fill_diagonal(x, 7.0, inplace=False),
                      lambda x: x * (1 - np.eye(*x.shape, dtype=F32)) + 7 * np.eye(*x.shape), M),
    "indices": (lambda x: [pnp.indices(x.shape)[0], pnp.diag_indices(x.shape[0])[1]],
                lambda x: [np.indices(x.shape)[0], np.arange(len(x))], M),
}  # fmt: skip


def spread(x, low, high, between):
    """lax.pad of the first axis with 0.5, by a loop."""
    n = len(x)
    out = np.full((low + n + max(n - 1, 0) * between + high, *x.shape[1:]), 0.5, F32)
    for i in range(n):
        out[low + i * (between + 1)] = x[i]
    return out


def pooled(x, size, step, identity=-np.inf, combine=np.max):
    """lax.reduce_window of the first axis with "SAME", by a loop."""
    out = np.full((-(-len(x) // step), *x.shape[1:]), identity, x.dtype)
    low = max((len(out) - 1) * step + size - len(x), 0) // 2
    for i in range(len(out)):
        rows = x[max(i * step - low, 0) : i * step - low + size]
        out[i] = combine(rows, axis=0, initial=identity)
    return out


def greatest(x, k):
    order = np.argsort(-x, axis=1, kind="stable")[:, :k]
    return [np.take_along_axis(x, order, 1), order]


def heads(q):
    return softmax(q @ q.T / np.sqrt(F32(q.shape[1])), 1) @ q


patterns = plait.scipy.linalg
OTHERS |= {
    **{
        f"SAME pooling by {size}, {step}": (
            lambda x, w=size, s=step: lax.reduce_window(
                x, -np.inf, lax.max, (w, 1), (s, 1), "SAME"),
            lambda x, w=size, s=step: pooled(x, w, s), M)
        for size, step in ((2, 2), (3, 2), (4, 3), (1, 2))
    },
    "sums of SAME windows": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 1), (2, 1), "SAME"),
        lambda x: pooled(x, 3, 2, 0, np.sum), M),
    "top_k of a size": (lambda x: lax.top_k(x.T, x.shape[0]),
                        lambda x: greatest(x.T, x.shape[0]), M),
    "top_k of half": (lambda x: lax.top_k(x.T, half(x)), lambda x: greatest(x.T, half(x)), M),
    "toeplitz": (lambda x: patterns.toeplitz(x), scipy.linalg.toeplitz, V),
    "toeplitz of two": (lambda x, y: patterns.toeplitz(x, y), scipy.linalg.toeplitz, V, "m"),
    "hankel": (lambda x: patterns.hankel(x), scipy.linalg.hankel, V),
    "circulant": (lambda x: patterns.circulant(x), scipy.linalg.circulant, V),
    "detrend": (lambda x: plait.scipy.signal.detrend(x, axis=0),
                lambda x: scipy.signal.detrend(x, axis=0), M),
    "attention of heads": (
        lambda x: nn.dot_product_attention(*[x.T[None, :, None]] * 3)[0, :, 0],
        lambda x: heads(x.T) if len(x) else x.T, M),
}  # fmt: skip


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", OTHERS)
def test_numpy_says_it_otherwise(name):
    ours, theirs, *shapes = OTHERS[name]
    check(name, ours, theirs, shapes)


WHOLE = {
    "bincount": (lambda x: pnp.bincount(x, length=5),
                 lambda x: np.bincount(x[x < 5], minlength=5)[:5]),
    "bincount to n": (lambda x: pnp.bincount(x, length=x.shape[0]),
                      lambda x: np.bincount(x[x < len(x)], minlength=len(x))),
    "convolve": (lambda x: pnp.convolve(x, x[: half(x) + 1]),
                 lambda x: np.convolve(x, x[: half(x) + 1])),
    "convolve with three": (lambda x: pnp.convolve(x, pnp.asarray([1, 2, 4]), mode="same"),
                            lambda x: np.convolve(x, [1, 2, 4], mode="same")),
    "division": (lambda x: [x // 3, x % 3, 7 % (pnp.int32(x.shape[0]) + 1)],
                 lambda x: [x // 3, x % 3, 7 % (len(x) + 1)]),
    "setxor1d": (lambda x: pnp.unique(x, size=12, fill_value=-1),
                 lambda x: np.concatenate([np.unique(x), np.full(12, -1)])[:12]),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_of_integers(name):
    check(name, *WHOLE[name], [V], I32)


# ---- empty axes ------------------------------------------------------------------------------


def test_what_is_read_at_an_empty_axis():
    """0 by position, the fill value with mode "fill"; nothing is written there."""
    f = lambda x: [x[0], x[-1], x[half(x)], x[pnp.asarray([0, -1])], x.at[0].get(mode="clip"),  # noqa: E731
                   x.at[0].get(mode="fill"), x.at[-1].get(mode="fill", fill_value=7.0),
                   lax.dynamic_index_in_dim(x, 0, keepdims=False), x.at[0].set(1.0),
                   x.at[pnp.asarray([0, 3])].add(1.0), pnp.max(x, 0)]  # fmt: skip
    got = leaves(exported(f, [M], F32).call(np.zeros((0, 4), F32)))
    row = np.zeros(4, F32)
    wanted = [row, row, row, np.zeros((2, 4)), row, row + np.nan, row + 7, row,
              np.zeros((0, 4)), np.zeros((0, 4)), row - np.inf]  # fmt: skip
    for g, w in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("f", [
    lambda x: 7 // pnp.int32(x.shape[0]), lambda x: 7 % pnp.int32(x.shape[0]),
    lambda x: lax.div(7, pnp.int32(x.shape[0])), lambda x: lax.rem(7, pnp.int32(x.shape[0])),
    lambda x: pnp.divmod(pnp.arange(3), x.shape[0])[0],
    lambda x: pnp.zeros((4 // (x.shape[0] + 1), 6 % (x.shape[0] + 2))),
], ids=lambda f: None)  # fmt: skip
def test_dividing_integers_by_a_size_that_is_0(f):
    """A division by 0 that is folded ends the process; here it does not, and others are right."""
    artifact = exported(f, [V], F32)
    artifact.call(np.zeros(0, F32))
    for n in (1, 2, 5):
        got = np.asarray(artifact.call(np.zeros(n, F32)))
        np.testing.assert_array_equal(got, np.asarray(f(np.zeros(n, F32))))


# ---- random numbers ----------------------------------------------------------------------------

DRAWS = {
    "normal": lambda key, x: random.normal(key, x.shape),
    "uniform": lambda key, x: random.uniform(key, (x.shape[0], 3)),
    "bits": lambda key, x: random.bits(key, x.shape),
    "bernoulli": lambda key, x: random.bernoulli(key, 0.5, x.shape),
    "randint": lambda key, x: random.randint(key, x.shape, 0, 9),
    "split": lambda key, x: random.key_data(random.split(key, x.shape[0])),
    "permutation": lambda key, x: random.permutation(key, x),
    "permutation of rows": lambda key, x: random.permutation(key, x[:, None] + pnp.zeros(2)),
    "permutation of n": lambda key, x: random.permutation(key, x.shape[0]),
    "choice": lambda key, x: random.choice(key, x, (4,)),
    "choice of n": lambda key, x: random.choice(key, x.shape[0], (4,)),
    "weighted choice": lambda key, x: random.choice(key, x, (4,), p=nn.softmax(x)),
    "categorical": lambda key, x: random.categorical(key, x, shape=(4,)),
}


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_are_those_of_the_size(name):
    """What is drawn for n elements is what is drawn where n is written as a number."""
    f = lambda x: DRAWS[name](random.key(7), x)  # noqa: E731
    artifact = exported(f, [V], F32)
    for n in SIZES:
        x = given(V, n, F32, 0)
        got = np.asarray(artifact.call(x))
        if n:
            np.testing.assert_allclose(got, np.asarray(f(pnp.asarray(x))), 1e-5, 1e-6)
        if name in ("permutation", "permutation of n"):
            np.testing.assert_array_equal(np.sort(got), np.sort(x) if name == "permutation"
                                          else np.arange(n))  # fmt: skip


# ---- what is traced, and not compiled ------------------------------------------------------------


@pytest.mark.parametrize("f", [
    lambda x: pnp.fft.fft(x, axis=0), lambda x: pnp.fft.ifft(x, axis=0, norm="ortho"),
    lambda x: pnp.fft.rfft(x, axis=0), lambda x: pnp.fft.irfft(x, axis=0),
], ids=["fft", "ifft", "rfft", "irfft"])  # fmt: skip
def test_transforms_are_operations_of_size_n(f):
    spec = plait.ShapeDtypeStruct(symbolic_dims(M, MAY_BE_EMPTY), F32)
    program = plait.make_program(f)(spec)
    (eqn,) = [e for e in program.eqns if e.prim.name == "core.fft"]
    assert "n" in str(eqn.params["lengths"])
    for n in (2, 3, 7):
        size = program.out_avals[0].shape[0].substitute({"n": n})
        assert (size, 4) == f(np.ones((n, 4), F32)).shape
    with pytest.raises(plait.errors.ShapeError, match="cannot be compiled for all sizes"):
        export(f)(spec)


@pytest.mark.parametrize("f", [
    lambda x: pnp.linalg.inv(x), lambda x: pnp.linalg.solve(x, x), lambda x: pnp.linalg.det(x),
    lambda x: pnp.linalg.cholesky(x), lambda x: pnp.linalg.eigh(x), lambda x: pnp.linalg.svd(x),
    lambda x: pnp.linalg.qr(x), lambda x: pnp.linalg.pinv(x), lambda x: pnp.linalg.slogdet(x),
    lambda x: pnp.linalg.matrix_rank(x), lambda x: pnp.linalg.lstsq(x, x),
], ids=lambda f: None)  # fmt: skip
def test_linear_algebra_is_traced(f):
    spec = plait.ShapeDtypeStruct(symbolic_dims(Q, MAY_BE_EMPTY), F32)
    shapes = [a.shape for a in plait.make_program(f)(spec).out_avals]
    actual = [v.shape for v in plait.tree.leaves(f(np.eye(3, dtype=F32)))]
    known = [tuple(d if isinstance(d, int) else d.substitute({"n": 3}) for d in s) for s in shapes]
    assert known == actual


@pytest.mark.parametrize("name", ["glorot_normal", "he_uniform"])
def test_initial_values_of_sizes_known_later(name):
    x = np.zeros((60, 40), F32)
    init = getattr(nn.initializers, name)()
    specs = plait.export.symbolic_args_specs((x,), "b, c")
    made = export(lambda x: init(random.key(0), x.shape))(*specs)
    draws = np.asarray(made.call(x))
    want = np.sqrt(2 / (60 + 40) if name == "glorot_normal" else 2 / 60)
    np.testing.assert_allclose(draws.std(), want, 0.05)


@pytest.mark.parametrize("at", [0, 1, -1])
def test_insertion_and_deletion_along_axes_of_sizes_known_later(at):
    for x in (np.arange(3.0), np.arange(5.0)):
        specs = plait.export.symbolic_args_specs((x,), "b")
        made = export(lambda x: (pnp.insert(x, at, 9.0), pnp.delete(x, at)))(*specs)
        inserted, rest = made.call(x)
        np.testing.assert_array_equal(np.asarray(inserted), np.insert(x, at, 9.0))
        np.testing.assert_array_equal(np.asarray(rest), np.delete(x, at))
