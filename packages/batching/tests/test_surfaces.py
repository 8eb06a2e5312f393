"""Mapping what users call, plait.numpy, plait.nn and plait.lax, against a Python loop.

Invariant: the reference applies the function to each row and stacks; rows are mapped along the
first and the last axis, alone and inside jit.
"""

import numpy as np
import pytest

import plait
from plait_batching import vmap

pnp, nn, lax = plait.numpy, plait.nn, plait.lax
rng = np.random.default_rng(0)
XS = rng.permutation(60).reshape(5, 3, 4) / 17.0 - 1.3
XS32 = XS.astype(np.float32)
KS = rng.integers(-4, 5, (5, 3, 4))
V = np.array([0.3, -1.2, 2.0, 0.7])

NUMBERS = {
    "mean": lambda x: pnp.mean(x, 0),
    "var": lambda x: pnp.var(x, axis=1, ddof=1),
    "nanmax": lambda x: pnp.nanmax(pnp.where(x > 1, np.nan, x), 1),
    "nanargmin": lambda x: pnp.nanargmin(pnp.where(x < -1, np.nan, x), 1),
    "median": lambda x: pnp.median(x, 1),
    "quantile": lambda x: pnp.quantile(x, V[[0, 3]], axis=0),
    "average": lambda x: pnp.average(x, weights=x**2, returned=True),
    "argmax": lambda x: pnp.argmax(x, 1),
    "ptp": lambda x: pnp.ptp(x),
    "any": lambda x: pnp.any(x > 1),
    "cumsum": lambda x: pnp.cumsum(x),
    "count": lambda x: pnp.count_nonzero(x > 0, axis=0),
    "sort": lambda x: pnp.sort(x, axis=0),
    "argsort": lambda x: pnp.argsort(x, axis=-1),
    "lexsort": lambda x: pnp.lexsort((x[0], x[1] > 0)),
    "unique": lambda x: pnp.unique(x, size=13),
    "nonzero": lambda x: pnp.nonzero(x > 0, size=7, fill_value=-1),
    "searchsorted": lambda x: pnp.searchsorted(pnp.sort(x[0]), x[1]),
    "searchsorted long": lambda x: pnp.searchsorted(pnp.sort(pnp.tile(x.ravel(), 4)), x[1]),
    "digitize": lambda x: pnp.digitize(x, V[[1, 0, 2]]),
    "interp": lambda x: pnp.interp(V, pnp.sort(x[0]), x[1]),
    "histogram": lambda x: pnp.histogram(x, 4, range=(-1.0, 1.0))[0],
    "bincount": lambda x: pnp.bincount((x > 0).ravel() * 2, length=4),
    "isin": lambda x: pnp.isin(x, x[0, :2]),
    "intersect": lambda x: pnp.intersect1d(x[0], x[1], size=3),
    "take": lambda x: pnp.take(x, pnp.argmax(x, 1), axis=1),
    "take fixed": lambda x: pnp.take(x, np.array([0, -1]), axis=1),
    "take of fixed": lambda x: pnp.take(V, pnp.argmax(x, 1)),
    "take_along_axis": lambda x: pnp.take_along_axis(x, pnp.argsort(x, axis=1), 1),
    "put_along_axis": lambda x: pnp.put_along_axis(x, pnp.argmax(x, 1)[:, None], 0.0, 1),
    "compress": lambda x: pnp.compress(x[0] > 0, x, axis=1, size=3),
    "where": lambda x: pnp.where(x > 0, x, 0.0),
    "where of rows": lambda x: pnp.where(x[0] > 0, x, x[:, :1]),
    "select": lambda x: pnp.select([x > 1, x > 0], [x, 1.0], -1.0),
    "choose": lambda x: pnp.choose((x > 0).astype(np.int32), [x, -x], mode="clip"),
    "clip": lambda x: pnp.clip(x, x.min(1, keepdims=True) / 2, 0.5),
    "hypot": lambda x: pnp.hypot(x, x[0]),
    "floor_divide": lambda x: pnp.floor_divide(x, 0.3),
    "power": lambda x: pnp.power(pnp.abs(x), x),
    "isclose": lambda x: pnp.isclose(x, x + 1e-9),
    "array_equal": lambda x: pnp.array_equal(x, x),
    "round": lambda x: pnp.round(x, 1),
    "modf": lambda x: pnp.modf(x),
    "frexp": lambda x: pnp.frexp(x),
    "nan_to_num": lambda x: pnp.nan_to_num(pnp.log(x)),
    "signbit": lambda x: pnp.signbit(x),
    "reshape": lambda x: pnp.reshape(x, (2, 6), order="F"),
    "transpose": lambda x: pnp.transpose(x),
    "squeeze": lambda x: pnp.squeeze(x[:1]),
    "concatenate": lambda x: pnp.concatenate([x, x[:1] * 0]),
    "stack": lambda x: pnp.stack([x, V * x], -1),
    "block": lambda x: pnp.block([[x], [x]]),
    "split": lambda x: pnp.split(x, 2, 1),
    "tile": lambda x: pnp.tile(x, (1, 2)),
    "repeat": lambda x: pnp.repeat(x, np.array([1, 0, 2]), axis=0),
    "repeat traced": lambda x: pnp.repeat(x[0], (x[0] > 0) * 2, total_repeat_length=5),
    "flip": lambda x: pnp.flip(x),
    "rot90": lambda x: pnp.rot90(x),
    "roll": lambda x: pnp.roll(x, 1, 1),
    "roll traced": lambda x: pnp.roll(x, pnp.argmax(x[0]), 1),
    **{
        "pad " + m: (lambda x, m=m: pnp.pad(x, 2, m))
        for m in ("constant", "edge", "reflect", "wrap", "mean", "linear_ramp")
    },
    "tril": lambda x: pnp.tril(x, 1),
    "diag": lambda x: pnp.diag(x[0], 1),
    "diagonal": lambda x: pnp.diagonal(x, -1),
    "trace": lambda x: pnp.trace(x),
    "vander": lambda x: pnp.vander(x[0]),
    "meshgrid": lambda x: pnp.meshgrid(x[0], V),
    "linspace": lambda x: pnp.linspace(x[0], x[1], 3, axis=1),
    "full_like": lambda x: pnp.full_like(x, 2.0),
    "matmul": lambda x: x @ x.T,
    "dot": lambda x: pnp.dot(x, V),
    "outer": lambda x: pnp.outer(x[0], V),
    "einsum": lambda x: pnp.einsum("ij,kj,ij->k", x, x, x),
    "einsum diagonal": lambda x: pnp.einsum("ii->i", x @ x.T),
    "kron": lambda x: pnp.kron(x, x[:2]),
    "cross": lambda x: pnp.cross(x[:, 1:], V[:3]),
    "convolve": lambda x: pnp.convolve(x[0], x[1]),
    "cov": lambda x: pnp.cov(x),
    "polyval": lambda x: pnp.polyval(x[0], V),
    "diff": lambda x: pnp.diff(x, axis=0),
    "gradient": lambda x: pnp.gradient(x, axis=1),
    "unwrap": lambda x: pnp.unwrap(x * 4),
    "apply_along_axis": lambda x: pnp.apply_along_axis(lambda r: r[::-1].cumsum(), 1, x),
    "vectorize": lambda x: pnp.vectorize(lambda a, b: a * b + 1)(x, V),
    "fill_diagonal": lambda x: pnp.fill_diagonal(x, 7.0),
    "delete": lambda x: pnp.delete(x, 1, axis=0),
    "insert": lambda x: pnp.insert(x, 1, V, axis=0),
    "piecewise": lambda x: pnp.piecewise(x, [x > 0], [pnp.sin, pnp.cos]),
    "softmax": lambda x: nn.softmax(x, where=x > 0),
    "logsumexp": lambda x: nn.logsumexp(x, 1, b=x),
    "gelu": nn.gelu,
    "standardize": nn.standardize,
    "one_hot": lambda x: nn.one_hot(pnp.argmax(x, 1), 4),
    "attention": lambda x: nn.dot_product_attention(
        *(x.reshape(1, 3, 2, 2) * k for k in (1, 2, 3)), is_causal=True
    ),
    "reduce": lambda x: lax.reduce(x, 1.0, lambda a, b: a * b + 0.0, (1,)),
    "reduce_window": lambda x: lax.reduce_window(x, -9.0, lax.max, (2, 2), (1, 2), "SAME"),
    "top_k": lambda x: lax.top_k(x, 2),
    "dynamic_slice": lambda x: lax.dynamic_slice(x, (pnp.argmax(x[:, 0]), 1), (2, 2)),
    "sort_key_val": lambda x: lax.sort_key_val(x, x * 2),
    "cummax": lambda x: lax.cummax(x, 1),
    "associative_scan": lambda x: lax.associative_scan(lax.mul, x),
    "map": lambda x: lax.map(lambda r: r.sum(), x),
    "cond": lambda x: lax.cond(x[0, 0] > 0, lambda v: v, lambda v: -v, x),
    "dot_general": lambda x: lax.dot_general(x, x, (((1,), (1,)), ((), ()))),
    "clamp": lambda x: lax.clamp(-0.5, x, 0.5),
}
WHOLE = {
    "gcd": lambda k: pnp.gcd(k, k[0]),
    "bits": lambda k: pnp.bitwise_count(k) + pnp.right_shift(k, 1),
    "divmod": lambda k: pnp.divmod(k, 3),
    "round": lambda k: pnp.round(k, -1),
    "unravel": lambda k: pnp.unravel_index(k, (3, 4)),
    "bincount": lambda k: pnp.bincount(k.ravel(), length=5),
    "select_n": lambda k: lax.select_n(k % 3, k, k * 2, -k),
    "choose": lambda k: pnp.choose(k % 2, [k, V.astype(int)], mode="clip"),
    "setdiff": lambda k: pnp.setdiff1d(k[0], k[1], size=4),
}


def agree(f, xs):
    want = [[np.asarray(o) for o in plait.tree.leaves(f(x))] for x in xs]
    want = [np.stack(column) for column in zip(*want)]
    for axis in (0, -1):
        moved = np.moveaxis(xs, 0, axis)
        for mapped in (vmap(f, in_axes=axis), plait.jit(vmap(f, in_axes=axis))):
            got = plait.tree.leaves(mapped(moved))
            for g, w in zip(got, want, strict=True):
                assert g.shape == w.shape and g.dtype == w.dtype
                np.testing.assert_allclose(np.asarray(g), w, rtol=1e-10, atol=1e-10)


@pytest.mark.sampled(8)
@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("name", NUMBERS)
def test_of_numbers(name):
    agree(NUMBERS[name], XS)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", WHOLE)
def test_of_whole_numbers(name):
    agree(WHOLE[name], KS)


def test_nested_with_unmapped_arguments():
    f = lambda x, y: pnp.where(x > y, pnp.cumsum(x), nn.softmax(y)) @ pnp.tril(pnp.outer(x, y))
    xs, ys = XS[:3, 0], XS[:2, 1]
    got = vmap(vmap(f, (None, 0)), (0, None))(xs, ys)
    want = [[np.asarray(f(x, y)) for y in ys] for x in xs]
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-10)


def test_sizes_one_and_zero():
    for f in (nn.softmax, lambda x: pnp.sort(x, 1), lambda x: pnp.einsum("ij,kj->ik", x, x),
              lambda x: pnp.median(x, 0), lambda x: pnp.pad(x, 1, "edge")):  # fmt: skip
        one = vmap(f)(XS[:1])
        np.testing.assert_allclose(np.asarray(one)[0], np.asarray(f(XS[0])), rtol=1e-10)
        assert vmap(f)(XS[:0]).shape == (0, *one.shape[1:])
