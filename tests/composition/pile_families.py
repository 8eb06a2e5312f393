"""Programs of one example, family by family: what `pile_programs` leaves out.

Each is a function, and the types of its arguments: "n 4" an array of n rows of its own for each
example, "2 m:int32" integers of another number of columns, "each 3" one that every example has its
own of, "all 4 4" one that all share, "key" a key of random bits for each.

Invariant: nothing here knows of piles; a program is an ordinary function of arrays.
"""

import numpy as np

import plait
import plait.numpy as pnp
from plait import lax, nn, random
from plait.ext.ops import cumulative

F, I = "n 4", "n 4:int32"


def rows(x):
    return x.shape[0]


def at_least(x, least=1):
    """With as many rows of ones in front."""
    return pnp.concatenate([pnp.ones((least, *x.shape[1:]), x.dtype), x])


@plait.custom_jvp
def bent(x):
    return pnp.sin(x).sum(0)


@bent.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return pnp.sin(x).sum(0), (2 * pnp.cos(x) * t).sum(0)


@plait.custom_vjp
def clipped(x):
    return pnp.sin(x) * x.shape[0]


clipped.defvjp(lambda x: (clipped(x), x), lambda x, ct: (pnp.clip(ct * pnp.cos(x), -1, 1),))


def swapped(x, i):
    """Rows of one array, where another says."""
    return pnp.take(at_least(x), pnp.abs(i) % (1 + rows(x)), axis=0)


def pooled(reducer, start, window, strides, padding):
    def f(x):
        return lax.reduce_window(x, start, reducer, (window, 1), (strides, 1), padding)

    return f


def convolved(**how):
    def f(x, w):
        return lax.conv_general_dilated(
            x.T[None], w[:, :, None] * pnp.array([1.0, 2.0, 3.0]), **how
        )[0]

    return f


def two_states(x):
    def step(c, r):
        a, b = c
        a = pnp.tanh(a + r)
        return (a, b + a.sum()), (a * 2, b)

    return lax.scan(step, (pnp.zeros(4, "float64"), np.float64(0)), x, reverse=True)


def growing(x):
    """A loop whose carry is ragged and whose length each example has its own."""
    return lax.fori_loop(0, rows(x), lambda i, c: c * 0.5 + x + i, x)


def searched(x):
    """As many turns as the data say."""
    return lax.while_loop(lambda s: s[0] * s[0] < s[1], lambda s: (s[0] + 1, s[1]),
                          (0.0, (x * x).sum()))[0]  # fmt: skip


@plait.custom_batching.custom_vmap
def bowed(x):
    return pnp.sin(x) * 2


@bowed.def_vmap
def _(axis_size, in_batched, x):
    return pnp.sin(x) * 2, True


one_by_one = plait.custom_batching.sequential_vmap(lambda x: pnp.sin(x).cumsum(0))
policies = plait.checkpoint_policies


def deep(x, w):
    return pnp.tanh(plait.ad_checkpoint.checkpoint_name(pnp.sin(x @ w), "deep") @ w)


def called(x, how):
    """What Python computes on the host."""
    like = plait.ShapeDtypeStruct(x.shape, x.dtype)
    return plait.pure_callback(lambda v: np.asarray(v) * 2, like, x, vmap_method=how)


def positive(x):
    """A symmetric matrix with eigenvalues that are positive, and apart."""
    n = rows(x)
    return pnp.tanh(x @ x.T / 4) / (n + 1) + pnp.diag(pnp.arange(n, dtype=x.dtype) * 2 + 2)


def composed(x):
    """What a singular value decomposition and its singular vectors make."""
    u, s, vt = pnp.linalg.svd(positive(x))
    return (u * pnp.sin(s)) @ vt


FAMILIES = {
    # ---- reductions
    "and": (lambda x: pnp.bitwise_and.reduce(x, 0), I),
    "or": (lambda x: pnp.bitwise_or.reduce(x, 0), I),
    "xor": (lambda x: pnp.bitwise_xor.reduce(x, 0), I),
    "and whole": (lambda x: pnp.bitwise_and.reduce(x, axis=None), I),
    "and other": (lambda x: lax.reduce_and(x, (1,)), I),
    "xor bool": (lambda x: lax.reduce_xor(x > 0, (0,)), F),
    "all bool": (lambda x: pnp.all(x > -1, 0), F),
    "any whole": (lambda x: pnp.any(x > 1), F),
    "sum int8": (lambda x: pnp.sum(x.astype("int8"), 0, dtype="int8"), I),
    "max int": (lambda x: pnp.max(x, 0, initial=-100), I),
    "min uint8": (lambda x: pnp.min(x.astype("uint8"), 0, initial=255), I),
    "prod complex": (lambda x: pnp.prod(1 + 1j * x / 50, 0), F),
    "sum bfloat16": (lambda x: pnp.sum(pnp.round(x).astype("bfloat16"), 0), F),
    "max bool": (lambda x: pnp.max(x > 0, 0, initial=False), F),
    "argmax": (lambda x: pnp.argmax(at_least(x), 0), F),
    "argmin whole": (lambda x: pnp.argmin(at_least(x)), F),
    "argmax int": (lambda x: pnp.argmax(at_least(x), 0), I),
    "mean": (lambda x: pnp.mean(at_least(x), 0), F),
    "var": (lambda x: pnp.var(at_least(x), 0), F),
    "std": (lambda x: pnp.std(at_least(x, 2), 0, ddof=1), F),
    "median": (lambda x: pnp.median(at_least(x), 0), F),
    "quantile": (lambda x: pnp.quantile(at_least(x), 0.3, axis=0), F),
    "norm": (lambda x: pnp.linalg.norm(x, axis=0), F),
    "norm other": (lambda x: pnp.linalg.norm(x, axis=1), F),
    "nansum": (lambda x: pnp.nansum(pnp.where(x > 1, pnp.nan, x), 0), F),
    "count": (lambda x: pnp.count_nonzero(x > 0, 0), F),
    "ptp": (lambda x: pnp.ptp(at_least(x), 0), F),
    "average": (lambda x: pnp.average(at_least(x), 0, weights=at_least(x)[:, 0] ** 2), F),
    "cov": (lambda x: pnp.cov(at_least(x, 2), rowvar=False), F),
    "histogram": (lambda x: pnp.histogram(x, bins=4, range=(-2.0, 2.0))[0], F),
    "bincount": (lambda x: pnp.bincount(pnp.abs(x[:, 0]) % 5, length=5), I),
    "middle": (lambda x: pnp.sin(x).sum((0, 2)), "3 n 4"),
    # ---- order
    "top_k": (lambda x: lax.top_k(at_least(x, 3).T, 3), F),
    "top_k other": (lambda x: lax.top_k(x, 2), F),
    "sort pairs": (lambda x: lax.sort((x, pnp.cos(x), -x), dimension=0, num_keys=1), F),
    "sort two keys": (lambda x: lax.sort((pnp.round(x), x * 2), dimension=0, num_keys=2), F),
    "sort nan": (lambda x: pnp.sort(pnp.where(x > 1, pnp.nan, x), 0), F),
    "sort int8": (lambda x: pnp.sort(x.astype("int8"), 0), I),
    "sort extremes": (
        lambda x: pnp.sort(pnp.where(x > 3, pnp.iinfo("int32").max, x), 0), I
    ),
    "sort descending": (lambda x: pnp.sort(x, 0, descending=True), F),
    "argsort of ties": (lambda x: pnp.argsort(x % 3, 0, stable=True), I),
    "sort bool": (lambda x: pnp.sort(x > 0, 0), F),
    "lexsort": (lambda x: pnp.lexsort((x[:, 0], x[:, 1] % 3)), I),
    "searchsorted": (lambda x: pnp.searchsorted(pnp.sort(x[:, 0]), pnp.array([0.0, 1.0])), F),
    "searchsorted other": (lambda x: pnp.searchsorted(pnp.array([0.0, 1.0]), x[:, 0]), F),
    "sort whole": (lambda x: pnp.sort(x, None), F),
    # ---- cumulative
    "cumsum int": (lambda x: lax.cumsum(x, 0), I),
    "cumsum int reversed": (lambda x: lax.cumsum(x, 0, reverse=True), I),
    "cumprod reversed": (lambda x: lax.cumprod(1 + x / 40, 0, reverse=True), F),
    "cummax int8 reversed": (lambda x: lax.cummax(x.astype("int8"), 0, reverse=True), I),
    "cummin bool": (lambda x: lax.cummin(x.astype("int32"), 0), I),
    "cumlogsumexp reversed": (lambda x: lax.cumlogsumexp(x, 0, reverse=True), F),
    "cumsum complex": (lambda x: pnp.cumsum(x * 1j, 0), F),
    "cumsum middle": (lambda x: pnp.cumsum(x, 1), "3 n 4"),
    "cumsum whole": (lambda x: pnp.cumsum(x), F),
    "associative scan": (lambda x: lax.associative_scan(pnp.add, x), F),
    "associative scan reversed": (lambda x: lax.associative_scan(pnp.maximum, x, reverse=True), F),
    "associative scan of pairs": (
        lambda x: lax.associative_scan(
            lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (pnp.cos(x), x)
        ), F
    ),
    "recurrence": (lambda x: cumulative.recurrence.bind(pnp.cos(x), x, axis=0, reverse=False), F),
    "recurrence reversed": (
        lambda x: cumulative.recurrence.bind(pnp.cos(x), x, axis=0, reverse=True), F
    ),
    # ---- contractions
    "attention": (
        lambda x: nn.dot_product_attention(*[x.reshape(rows(x), 2, 2)] * 3), F
    ),
    "attention causal": (
        lambda x: nn.dot_product_attention(*[x.reshape(rows(x), 2, 2)] * 3, is_causal=True), F
    ),
    "cross attention": (
        lambda x, y: nn.dot_product_attention(
            x.reshape(rows(x), 2, 2), *[at_least(y).reshape(1 + rows(y), 2, 2)] * 2
        ), F, "m 4"
    ),
    "einsum shared": (lambda x, y: pnp.einsum("nd,nd->n", x, y), F, F),
    "einsum shared both": (lambda x, y: pnp.einsum("nd,ne->nde", x, y), F, "n 3"),
    "einsum contracted": (lambda x, y: pnp.einsum("nd,ne->de", x, y), F, "n 3"),
    "einsum three": (lambda x, y, w: pnp.einsum("nd,de,me->nm", x, w, y), F, "m 4", "all 4 4"),
    "einsum whole": (lambda x, y: pnp.einsum("nd,md->", x, y), F, "m 4"),
    "einsum triple": (lambda x: pnp.einsum("nd,md,kd->nmk", x, x, x), "n 2"),
    "batched": (lambda x, y: pnp.matmul(x[:, None, :], y[:, :, None])[:, 0, 0], F, F),
    "heads": (lambda x: pnp.einsum("nhd,mhd->hnm", *[x.reshape(rows(x), 2, 2)] * 2), F),
    "int product": (lambda x: x.T @ x, I),
    "int rows": (lambda x: (x @ x.T).sum(0), I),
    "complex product": (lambda x: (x * 1j) @ (x + 1j).T, F),
    "diagonal": (lambda x: pnp.diagonal(x @ x.T), F),
    "trace": (lambda x: pnp.trace(x @ x.T), F),
    "tril": (lambda x: pnp.tril(x @ x.T), F),
    "eye": (lambda x: x @ x.T + pnp.eye(rows(x)), F),
    "square chain": (lambda x: (x @ x.T) @ (x @ x.T), F),
    "square chain other": (lambda x, y: (x @ y.T) @ (y @ x.T), F, "m 4"),
    "tensordot": (lambda x: pnp.tensordot(x, x, ((0, 2), (0, 2))), "n 2 3"),
    "kron": (lambda x: pnp.kron(x[:, 0], pnp.array([1.0, 2.0])), F),
    "outer other": (lambda x, y: pnp.outer(x[:, 0], y[:, 1]), F, "m 4"),
    "vdot": (lambda x: pnp.vdot(x, pnp.sin(x)), F),
    # ---- positions that are values
    "take each": (lambda x, i: at_least(x)[pnp.abs(i) % (1 + rows(x))], F, "each 3:int32"),
    "take one": (lambda x, i: at_least(x)[i % (1 + rows(x))], F, "each:int32"),
    "take ragged": (swapped, F, "m:int32"),
    "take along": (lambda x: pnp.take_along_axis(x, pnp.argsort(x, 0), 0), F),
    "take along other": (lambda x: pnp.take_along_axis(x, pnp.argsort(x, 1), 1), F),
    "take along few": (
        lambda x, i: pnp.take_along_axis(at_least(x), i % (1 + rows(x)), 0), F, "each 2 4:int32"
    ),
    "take wrap": (
        lambda x, i: pnp.take(at_least(x), i, axis=0, mode="wrap"), F, "each 3:int32"
    ),
    "take clip": (lambda x, i: pnp.take(x, i, axis=0, mode="clip"), F, "n:int32"),
    "take fill": (
        lambda x, i: pnp.take(at_least(x), i, axis=0, mode="fill", fill_value=5.0), F, "m:int32"
    ),
    "take fill int": (lambda x, i: pnp.take(at_least(x), i, axis=0, mode="fill"), I, "m:int32"),
    "table": (lambda i, w: w[i % 4], "n:int32", "all 4 4"),
    "table each": (lambda i, w: w[i % 3], "n:int32", "each 3 4"),
    "one hot": (lambda i: nn.one_hot(i % 4, 4), "n:int32"),
    "two indices": (lambda x, i: x[pnp.arange(rows(x)), i % 4], F, "n:int32"),
    "choose": (
        lambda x: pnp.choose(pnp.arange(rows(x))[:, None] % 2, [x, -x], mode="clip"), F
    ),
    "select": (lambda x: pnp.select([x > 1, x > 0], [x * 2, x * 3], 7.0), F),
    "where mask": (lambda x, y: pnp.where(x > y, x, y * 2).sum(0), F, F),
    "where rows": (lambda x: pnp.where(x[:, :1] > 0, x, 0.0).sum(0), F),
    "scatter add": (lambda x, i: pnp.zeros((3, 4)).at[i % 3].add(x), F, "n:int32"),
    "scatter mul": (lambda x, i: pnp.ones((3, 4)).at[i % 3].mul(1 + x / 9), F, "n:int32"),
    "scatter min": (lambda x, i: pnp.zeros((3, 4)).at[i % 3].min(x), F, "n:int32"),
    "scatter max": (lambda x, i: pnp.zeros((3, 4)).at[i % 3].max(x), F, "n:int32"),
    "scatter set": (lambda x: pnp.zeros((50, 4)).at[pnp.arange(rows(x))].set(x, mode="drop"), F),
    "scatter among rows": (lambda x, i: at_least(x).at[i % (1 + rows(x))].add(2.0), F, "m:int32"),
    "scatter apply": (lambda x: at_least(x).at[0].set(9.0), F),
    "scatter last": (lambda x: at_least(x).at[-1].multiply(9.0), F),
    "scatter columns": (lambda x: x.at[:, 1].set(3.0), F),
    "scatter rows back": (
        lambda x, i: pnp.zeros((rows(x) + 1, 4)).at[i % (rows(x) + 1)].add(x), F, "n:int32"
    ),
    "segment sum": (
        lambda x, i: plait.ops.segment_sum(x, i % 3, num_segments=3), F, "n:int32"
    ),
    "dynamic slice each": (
        lambda x, i: lax.dynamic_slice_in_dim(at_least(x, 3), i, 2), F, "each:int32"
    ),
    "dynamic slice other": (
        lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, axis=1), F, "each:int32"
    ),
    "dynamic index": (
        lambda x, i: lax.dynamic_index_in_dim(at_least(x), i, 0, keepdims=False), F, "each:int32"
    ),
    "dynamic update each": (
        lambda x, i, k: lax.dynamic_update_slice_in_dim(at_least(x, 3), k, i, 0), F, "each:int32",
        "each 2 4"
    ),
    # ---- rows that move
    "pad edge": (lambda x: pnp.pad(at_least(x), ((2, 1), (0, 0)), mode="edge"), F),
    "pad reflect": (lambda x: pnp.pad(at_least(x, 3), ((2, 1), (0, 0)), mode="reflect"), F),
    "pad symmetric": (lambda x: pnp.pad(at_least(x, 3), ((2, 1), (0, 0)), mode="symmetric"), F),
    "pad wrap": (lambda x: pnp.pad(at_least(x, 3), ((2, 1), (0, 0)), mode="wrap"), F),
    "pad negative": (lambda x: lax.pad(at_least(x, 2), 7.0, ((-1, -1, 0), (0, 0, 0))), F),
    "pad interior": (lambda x: lax.pad(x, 7.0, ((1, 0, 2), (0, 0, 0))), F),
    "pad interior negative": (lambda x: lax.pad(at_least(x), 7.0, ((-1, 2, 1), (0, 1, 0))), F),
    "pad each": (lambda x, k: lax.pad(x, k, ((1, 2, 0), (0, 0, 0))), F, "each"),
    "strided": (lambda x: x[1::3], F),
    "strided back": (lambda x: x[::-2], F),
    "last half": (lambda x: x[rows(x) // 2 :], F),
    "thirds": (lambda x: x[: rows(x) // 3], F),
    "last two": (lambda x: at_least(x, 2)[-2:], F),
    "rolled": (lambda x: pnp.roll(x, 2, 0), F),
    "rolled back": (lambda x: pnp.roll(x, -1, (0,)), F),
    "flipped both": (lambda x: pnp.flip(x), F),
    "rotated": (lambda x: pnp.rot90(x), F),
    "stacked": (lambda x: pnp.stack([x, x * 2], 1), F),
    "stacked front": (lambda x: pnp.stack([x, x * 2]), F),
    "columns": (lambda x: pnp.column_stack([x, x[:, :1]]), F),
    "repeated": (lambda x: pnp.repeat(x, 3, 0), F),
    "repeated other": (lambda x: pnp.repeat(x, 2, 1), F),
    "tiled": (lambda x: pnp.tile(x, (3, 1)), F),
    "append": (lambda x, y: pnp.append(x, y, axis=0), F, "m 4"),
    "diff": (lambda x: pnp.diff(at_least(x), axis=0), F),
    "gradient": (lambda x: pnp.gradient(at_least(x, 2), axis=0), F),
    "meshgrid": (lambda x, y: pnp.meshgrid(x[:, 0], y[:, 0]), F, "m 4"),
    "swapaxes": (lambda x: pnp.swapaxes(pnp.sin(x), 0, 1), "3 n 4"),
    "moved": (lambda x: pnp.moveaxis(x, 1, 2)[:, ::-1], "3 n 4"),
    "raveled": (lambda x: pnp.ravel(x) * pnp.arange(3 * 4 * x.shape[1]), "3 n 4"),
    "joined three": (lambda x, y: pnp.concatenate([x, y, x, y[1:]]), F, "m 4"),
    "joined pairs": (lambda x, y: pnp.concatenate([x @ y.T, y @ y.T]), F, "m 4"),
    "joined pairs other": (lambda x, y: pnp.concatenate([x @ x.T, x @ y.T], 1), F, "m 4"),
    "array split": (lambda x: pnp.split(pnp.concatenate([x, x * 2]), 2)[1], F),
    "unstack": (lambda x: pnp.unstack(x, axis=1)[2], F),
    # ---- sizes
    "n + m": (lambda x, y: pnp.arange(rows(x) + rows(y)) * 2, F, "m 4"),
    "n * 2": (lambda x: pnp.arange(rows(x) * 2) + 1.5, F),
    "n // 2": (lambda x: pnp.ones((rows(x) // 2, 2)) * x.sum(), F),
    "n * m": (lambda x, y: (x @ y.T).reshape(-1), F, "m 4"),
    "n * m iota": (lambda x, y: pnp.arange(rows(x) * rows(y)).reshape(rows(x), rows(y)), F, "m 4"),
    "max(n, m)": (
        lambda x, y: pnp.zeros(plait.core.max_dim(rows(x), rows(y))) + x.sum(), F, "m 4"
    ),
    "linspace": (lambda x: pnp.linspace(0.0, 1.0, rows(x)), F),
    "full": (lambda x: pnp.full((rows(x), 2), rows(x) * 3), F),
    "zeros like": (lambda x: pnp.zeros_like(x) + x.sum(0), F),
    "three sizes": (lambda x, y, z: pnp.concatenate([x, y, z]).sum(1), F, "m 4", "l 4"),
    "three sizes apart": (
        lambda x, y, z: x[:, None, None, 0] + y[:, None, 1] * z[:, 2], F, "m 4", "l 4"
    ),
    "n and m": (lambda x: pnp.sin(x).sum(0), "n m"),
    "m and n": (lambda x: pnp.cumsum(x, 1) * pnp.arange(x.shape[0])[:, None], "n m"),
    "n and m transposed": (lambda x: x.T[::-1], "n m"),
    "n and m flat": (lambda x: x.reshape(-1), "n m"),
    "n and m times": (lambda x, y: x @ y, "n m", "m 4"),
    "n and m joined": (lambda x, y: pnp.concatenate([x, y]), "n m", "l m"),
    "n and m sorted": (lambda x: pnp.sort(x, 1), "n m"),
    "n and m mean": (lambda x: (x - x.sum(1, keepdims=True)) / (1 + x.shape[1]), "n m"),
    # ---- convolution, windows
    "conv stride": (
        convolved(window_strides=(2,), padding=[(1, 1)]), F, "all 5 4"
    ),
    "conv dilated": (
        convolved(window_strides=(1,), padding=[(2, 2)], rhs_dilation=(2,)), F, "all 5 4"
    ),
    "conv spread": (
        convolved(window_strides=(1,), padding=[(2, 2)], lhs_dilation=(2,)), F, "all 5 4"
    ),
    "conv same": (convolved(window_strides=(1,), padding="SAME"), F, "all 5 4"),
    "conv same stride": (convolved(window_strides=(2,), padding="SAME"), F, "all 5 4"),
    "conv each": (convolved(window_strides=(1,), padding=[(1, 1)]), F, "each 5 4"),
    "convolve": (lambda x: pnp.convolve(at_least(x)[:, 0], pnp.array([1.0, 2.0, 3.0])), F),
    "convolve same": (
        lambda x: pnp.convolve(at_least(x, 3)[:, 0], pnp.array([1.0, 2.0, 3.0]), "same"), F
    ),
    "max window": (pooled(lax.max, -np.inf, 3, 1, "SAME"), F),
    "max window stride": (pooled(lax.max, -np.inf, 2, 2, [(0, 1), (0, 0)]), F),
    "sum window": (pooled(lax.add, 0.0, 3, 2, [(1, 1), (0, 0)]), F),
    "min window": (pooled(lax.min, np.inf, 2, 1, [(1, 0), (0, 0)]), F),
    "max window other": (
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2), (1, 2), "VALID"), F
    ),
    # ---- control flow
    "scan, two states": (lambda x: two_states(x), F),
    "scan, two piles": (
        lambda x, y: lax.scan(
            lambda c, r: (c + r[0] * r[1], c), pnp.zeros(4, "float64"), (x, y)
        ), F, F
    ),
    "scan over arange": (
        lambda x: lax.scan(
            lambda c, i: (c + i * x.sum(0), c), pnp.zeros(4, "float64"), pnp.arange(rows(x))
        ), F
    ),
    "scan of ragged carry": (
        lambda x: lax.scan(lambda c, r: (c * 0.5 + r, c.sum()), x, x), F
    ),
    "scan of no xs": (
        lambda x: lax.scan(lambda c, _: (c * 0.9 + 1, c), x.sum(0), None, length=rows(x)), F
    ),
    "scan of columns": (lambda x: lax.scan(lambda c, r: (c + r, r * c), x[:, 0], x.T), F),
    "scan ints": (lambda x: lax.scan(lambda c, r: (c ^ r, c), pnp.zeros(4, "int32"), x), I),
    "fori n": (growing, F),
    "while each": (searched, F),
    "while ragged": (
        lambda x: lax.while_loop(
            lambda s: ((s[1] * s[1]).sum() < 90.0) & (s[0] < 6), lambda s: (s[0] + 1, s[1] * 1.5),
            (0, x)), F),
    "cond two": (
        lambda x, y: lax.cond(x.sum() > y.sum(), lambda a, b: (a.sum(0), b * 2),
                              lambda a, b: (b.sum(0), b), x, y), F, "m 4"),
    "switch": (
        lambda x, i: lax.switch(
            pnp.abs(i) % 3, [lambda v: v * 2, pnp.sin, lambda v: v[::-1]], x), F, "each:int32"
    ),
    "cond of n": (
        lambda x: lax.cond(pnp.asarray(rows(x)) > 2, lambda v: v * 2, lambda v: v - 1, x), F
    ),
    "map": (lambda x: lax.map(lambda r: pnp.sort(r) * r.sum(), x), F),
    "vmap rows": (lambda x: plait.vmap(lambda r: pnp.sort(r))(x), F),
    "vmap columns": (lambda x: plait.vmap(lambda c: pnp.cumsum(c), 1, 1)(x), F),
    "vmap pairs": (
        lambda x, y: plait.vmap(lambda a: plait.vmap(lambda b: pnp.sin(a * b).sum())(y))(x),
        F, "m 4",
    ),
    "vmap in and out": (lambda x: plait.vmap(lambda r: r * 2, 0, 1)(x), F),
    "vmap of scan": (
        lambda x: plait.vmap(lambda r: lax.scan(lambda c, v: (c + v, c * v), 0.0, r)[1])(x), F
    ),
    "jit inside": (lambda x: plait.jit(lambda v: (v.sum(0), v[::-1]))(x), F),
    "custom jvp": (bent, F),
    "custom vjp": (clipped, F),
    "custom jvp rows": (lambda x: plait.vmap(lambda r: bent(r[:, None]))(x), F),
    "grad inside": (lambda x: plait.grad(lambda v: pnp.sin(v @ v.T).sum())(x), F),
    "jvp inside": (lambda x: plait.jvp(lambda v: pnp.sin(v).sum(0), (x,), (x * 2,)), F),
    "hessian of n": (lambda x: plait.jvp(plait.grad(lambda v: (v**3).sum()), (x,), (x,))[1], F),
    "tree": (lambda x: {"a": x * 2, "b": (x.sum(0), x[1:])}, F),
    # ---- matrices
    "cholesky": (lambda x: pnp.linalg.cholesky(positive(x)), F),
    "solve": (lambda x: pnp.linalg.solve(positive(x), x), F),
    "solve of each": (lambda x, k: pnp.linalg.solve(positive(k) + pnp.eye(4), x.T), F, "each 4 4"),
    "triangular solve": (
        lambda x: plait.scipy.linalg.solve_triangular(positive(x), x, lower=True), F
    ),
    "inverse": (lambda x: pnp.linalg.inv(positive(x)), F),
    "det": (lambda x: pnp.linalg.det(positive(x) / (2 + 2 * rows(x))), F),
    "slogdet": (lambda x: pnp.linalg.slogdet(positive(x)), F),
    "lu": (lambda x: plait.scipy.linalg.lu(positive(x)), F),
    "qr": (lambda x: pnp.linalg.qr(positive(x)), F),
    "qr of rows": (
        lambda x: pnp.abs(pnp.linalg.qr(at_least(x, 4) + pnp.eye(4 + rows(x), 4))[1]), F
    ),
    "eigenvalues": (lambda x: pnp.linalg.eigvalsh(positive(x)), F),
    "eigenvectors": (lambda x: pnp.abs(pnp.linalg.eigh(positive(x))[1]), F),
    "singular values": (lambda x: pnp.linalg.svd(positive(x), compute_uv=False), F),
    "singular vectors": (composed, F),
    "matrix power": (lambda x: pnp.linalg.matrix_power(positive(x) / (1 + rows(x)), 3), F),
    "fft": (lambda x: pnp.fft.fft(at_least(x), axis=0), F),
    "fft back": (lambda x: pnp.fft.ifft(at_least(x) * 1j, axis=0), F),
    "rfft": (lambda x: pnp.fft.rfft(at_least(x), axis=0), F),
    "irfft": (lambda x: pnp.fft.irfft(at_least(x, 2) + 0j, axis=0), F),
    "fft other": (lambda x: pnp.fft.fft(x, axis=1), F),
    # ---- types
    "complex": (lambda x: pnp.exp(1j * x).conj(), F),
    "bool": (lambda x: (x > 0) & (x < 1), F),
    "bfloat16": (lambda x: x.astype("bfloat16") * 2, F),
    "float16": (lambda x: pnp.exp(x.astype("float16")), F),
    "int64": (lambda x: x.astype("int64") * np.int64(2**40), I),
    "bitcast": (lambda x: lax.bitcast_convert_type(x.astype("float32"), "int32"), F),
    "unsigned": (lambda x: x.astype("uint8") // 3, I),
    "divmod": (lambda x: pnp.divmod(x, 3), I),
    "clip of each": (lambda x, k: pnp.clip(x, k, k + 1), F, "each 4"),
    "polyval": (lambda x: pnp.polyval(pnp.array([1.0, 2.0, 3.0]), x), F),
    "interp": (lambda x: pnp.interp(x[:, 0], pnp.array([-1.0, 0, 1]), pnp.array([1.0, 5, 2])), F),
    "isclose": (lambda x: pnp.isclose(x, pnp.round(x), atol=0.2), F),
    "unwrap": (lambda x: pnp.unwrap(at_least(x) * 4, axis=0), F),
    "trapezoid": (lambda x: pnp.trapezoid(at_least(x), axis=0), F),
    "digitize": (lambda x: pnp.digitize(x, pnp.array([-1.0, 0.0, 1.0])), F),
    "nanmax": (lambda x: pnp.nanmax(pnp.where(at_least(x) > 1.5, pnp.nan, at_least(x)), 0), F),
    "allclose": (lambda x: pnp.allclose(x, x), F),
    "array_equal": (lambda x: pnp.array_equal(x, x * 1), F),
    "layer norm": (lambda x: nn.standardize(x, axis=-1), F),
    "gelu": (lambda x: nn.gelu(x), F),
    "log_softmax": (lambda x: nn.log_softmax(at_least(x), 0), F),
    "glu": (lambda x: nn.glu(x), F),
    # ---- transformations inside
    "custom mapping": (lambda x, k: bowed(x) * bowed(k), F, "each 4"),
    "custom mapping of rows": (lambda x: plait.vmap(bowed)(x), F),
    "sequential mapping": (lambda x: one_by_one(x), F),
    "linearize inside": (
        lambda x: plait.linearize(lambda v: pnp.cumsum(pnp.sin(v), 0), x)[1](x * 2), F
    ),
    "vjp inside": (lambda x: plait.vjp(lambda v: pnp.cumsum(pnp.sin(v), 0), x)[1](x + 1)[0], F),
    "transpose inside": (
        lambda x: plait.linear_transpose(lambda v: pnp.cumsum(v * 3, 0)[::-1], x)(x)[0], F
    ),
    "transpose of a contraction": (
        lambda x, k: plait.linear_transpose(lambda v: x @ v, k)(x[:, 0])[0], F, "each 4"
    ),
    "hessian inside": (
        lambda x, k: plait.hessian(lambda v: pnp.tanh(x @ v).sum() ** 2)(k), F, "each 4"
    ),
    "jacfwd inside": (lambda x, k: plait.jacfwd(lambda v: pnp.tanh(x * v))(k), F, "each 4"),
    "jacrev inside": (lambda x, k: plait.jacrev(lambda v: pnp.tanh(x @ v))(k), F, "each 4"),
    "jacobian of rows": (
        lambda x: plait.jacrev(lambda v: pnp.cumsum(pnp.tanh(v)))(x[:, 0]), F
    ),
    "checkpoint": (lambda x, w: plait.checkpoint(deep)(x, w), F, "all 4 4"),
    "checkpoint of products": (
        lambda x, w: plait.checkpoint(deep, policy=policies.dots_saveable)(x, w), F, "all 4 4"
    ),
    "checkpoint by name": (
        lambda x, w: plait.checkpoint(deep, policy=policies.save_only_these_names("deep"))(x, w),
        F, "all 4 4"
    ),
    "checkpoint of steps": (
        lambda x: lax.scan(
            plait.checkpoint(lambda c, r: (pnp.tanh(c * 0.5 + r), c)), pnp.zeros(4, x.dtype), x
        )[1], F
    ),
    "branches of steps": (
        lambda x: lax.scan(
            lambda c, r: (lax.cond(r.sum() > 0, pnp.sin, lambda a: a * 2, c) + r, c),
            pnp.zeros(4, x.dtype), x,
        ), F
    ),
    "steps in a branch": (
        lambda x: lax.cond(
            x.sum() > 0, lambda v: lax.scan(lambda c, r: (c + r, c * r), v.sum(0), v)[1],
            lambda v: v * 2, x,
        ), F
    ),
    "bounded while": (
        lambda x: lax.while_loop(
            lambda s: (s * s).sum() < 30, lambda s: s * 1.3 + 0.1, x, max_steps=6
        ), F
    ),
    "while in while": (
        lambda x: lax.while_loop(
            lambda s: s[1] < rows(x),
            lambda s: (
                lax.while_loop(lambda t: (t**2).sum() > 1, lambda t: t * 0.5, s[0]) + x, s[1] + 1
            ), (x, 0),
        )[0], F
    ),
    "while of a constant": (
        lambda x, k: lax.while_loop(
            lambda s: s.sum() < 10, lambda s: s + 1 + (x * x).sum(0), k
        ), F, "each 4"
    ),
    "associative scan of matrices": (
        lambda x: lax.associative_scan(pnp.matmul, x.reshape(rows(x), 2, 2) * 0.7, reverse=True), F
    ),
    "associative scan of pairs reversed": (
        lambda x: lax.associative_scan(
            lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (pnp.cos(x), x), reverse=True
        ), F
    ),
    "mean over inner rows": (
        lambda x: plait.vmap(lambda r: r - lax.pmean(r, "j"), axis_name="j")(at_least(x)), F
    ),
    "gathered inner rows": (
        lambda x: plait.vmap(
            lambda r: pnp.sin(lax.all_gather(r, "j")).sum(0) * r, axis_name="j"
        )(x), F
    ),
    "chunks": (lambda x: lax.map(lambda r: pnp.sin(r) * 2, x, batch_size=2), F),
    "callback": (lambda x: called(x, "sequential") + 1, F),
    "callback of each": (lambda x, k: x * called(k, "broadcast_all"), F, "each 4"),
    "callback of pairs": (lambda x: called(x @ x.T, "expand_dims").sum(1), F),
    "debug callback": (lambda x: (plait.debug.callback(lambda v: None, x), x * 2)[1], F),
    "root": (
        lambda x: lax.custom_root(
            lambda y: y**3 + y - x, x * 0,
            lambda f, g: lax.fori_loop(0, 30, lambda i, y: y - f(y) / (3 * y**2 + 1), g),
            lambda g, y: y / g(pnp.ones_like(y)),
        ), F
    ),
    "linear solve": (
        lambda x: lax.custom_linear_solve(
            lambda v: v * (1 + x**2), x, lambda _, b: b / (1 + x**2), symmetric=True
        ), F
    ),
    "fft scaled": (lambda x: pnp.fft.fft(at_least(x), axis=0, norm="ortho"), F),
    "fft of pairs": (lambda x: pnp.fft.fft2(at_least(x)), F),
    "conv in groups": (
        lambda x, w: lax.conv_general_dilated(
            x.T[None], w.reshape(4, 1, 3), (2,), [(1, 1)], feature_group_count=4
        )[0], F, "all 4 3"
    ),
    "conv transposed": (
        lambda x, w: lax.conv_transpose(
            x[None], pnp.stack([w, w * 2, -w]), (2,), "SAME",
            dimension_numbers=("NWC", "WIO", "NWC"),
        )[0], F, "all 4 4"
    ),
    "conv along both": (
        lambda x, w: lax.conv_general_dilated(
            x[None, None], w[None, None], (1, 1), [(1, 1), (1, 1)]
        )[0, 0], "n m", "all 3 3"
    ),
    "window along both": (
        lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), [(1, 1), (1, 1)]), "n m"
    ),
    "window spread": (
        lambda x: lax.reduce_window(
            x, 0.0, lax.add, (2, 1), (1, 1), [(2, 2), (0, 0)], base_dilation=(2, 1)
        ), F
    ),
    "scatter promised": (
        lambda x, i: at_least(x).at[pnp.abs(i) % (1 + rows(x))].add(2.5, mode="promise_in_bounds"),
        F, "each 2:int32"
    ),
    "scatter clipped": (lambda x, i: at_least(x).at[i].max(2.5, mode="clip"), F, "each 2:int32"),
    "scatter rows of others": (
        lambda x, y, i: at_least(x).at[i[: rows(y)]].add(y, mode="drop"), F, "m 4", "m:int32"
    ),
    "positions of some": (
        lambda x: pnp.nonzero(x[:, 0] > 0, size=rows(x), fill_value=-1)[0], F
    ),
    "sorted once": (lambda x: pnp.unique(pnp.round(x[:, 0]), size=rows(x), fill_value=9.0), F),
}  # fmt: skip


def drawn(f):
    """Random numbers with a row for each of x, and with columns for each."""
    return lambda key, x: (f(key, (rows(x),)), f(key, (2, rows(x))))


RANDOM = {
    "bits": random.bits,
    "uniform": random.uniform,
    "normal": random.normal,
    "bernoulli": lambda k, s: random.bernoulli(k, 0.3, s),
    "randint": lambda k, s: random.randint(k, s, 0, 7),
    "exponential": random.exponential,
    "gumbel": random.gumbel,
    "laplace": random.laplace,
    "logistic": random.logistic,
    "cauchy": random.cauchy,
    "truncated_normal": lambda k, s: random.truncated_normal(k, -1.0, 1.0, s),
    "rademacher": random.rademacher,
    "maxwell": random.maxwell,
    "double_sided_maxwell": lambda k, s: random.double_sided_maxwell(k, 0.0, 1.0, s),
    "rayleigh": lambda k, s: random.rayleigh(k, 2.0, s),
    "pareto": lambda k, s: random.pareto(k, 2.0, s),
    "weibull_min": lambda k, s: random.weibull_min(k, 1.0, 2.0, s),
    "wald": lambda k, s: random.wald(k, 1.0, s),
    "triangular": lambda k, s: random.triangular(k, 0.0, 0.5, 1.0, s),
    "lognormal": lambda k, s: random.lognormal(k, 1.0, s),
    "geometric": lambda k, s: random.geometric(k, 0.3, s),
    "categorical": lambda k, s: random.categorical(k, pnp.array([0.1, 0.5, 0.4]), shape=s),
    "choice": lambda k, s: random.choice(k, 5, s),
    "generalized_normal": lambda k, s: random.generalized_normal(k, 2.0, s),
    "gamma": lambda k, s: random.gamma(k, 2.0, s),
    "loggamma": lambda k, s: random.loggamma(k, 2.0, s),
    "beta": lambda k, s: random.beta(k, 2.0, 3.0, s),
    "dirichlet": lambda k, s: random.dirichlet(k, pnp.array([1.0, 2.0]), s),
    "chisquare": lambda k, s: random.chisquare(k, 3.0, s),
    "f": lambda k, s: random.f(k, 3.0, 5.0, s),
    "t": lambda k, s: random.t(k, 3.0, s),
    "poisson": lambda k, s: random.poisson(k, 3.0, s),
    "binomial": lambda k, s: random.binomial(k, 9, 0.3, s),
    "ball": lambda k, s: random.ball(k, 3, 2.0, s),
    "multivariate_normal": lambda k, s: random.multivariate_normal(
        k, pnp.zeros(2), pnp.eye(2), s, method="cholesky"
    ),
}
OF_KEYS = {
    "split": lambda k, x: random.key_data(random.split(k, rows(x))),
    "permutation": lambda k, x: random.permutation(k, rows(x)),
    "permutation of rows": lambda k, x: random.permutation(k, x),
    "fold_in": lambda k, x: random.normal(random.fold_in(k, rows(x)), (rows(x),)),
    "dropout": lambda k, x: pnp.where(random.bernoulli(k, 0.5, x.shape), x * 2, 0.0),
    "keys of rows": lambda k, x: plait.vmap(lambda q: random.normal(q, (2,)))(
        random.split(k, rows(x))
    ),
}
for _name, _f in RANDOM.items():
    FAMILIES[f"random {_name}"] = (drawn(_f), "key", F)
for _name, _f in OF_KEYS.items():
    FAMILIES[f"random {_name}"] = (_f, "key", F)

# Which two of three are multiplied first is nobody's word, and tells where infinities become nan.
# And of a product with ones and zeros the compiler makes a choice, in which a nan plays no part.
WITHOUT_INFINITIES = {"einsum three", "jacrev inside"}

# loops whose length the data say, and calls of Python
WITHOUT_DERIVATIVE = {
    "while each", "while ragged", "fori n", "while in while", "while of a constant", "callback",
    "callback of each", "callback of pairs",
}  # fmt: skip
