"""Programs of arrays whose sizes are known by name only: arithmetic of sizes, indexing, reductions,
convolutions, loops, linear algebra, random numbers, networks and their gradients.

Invariant: every program has sizes to be tried with, and arguments follow from them and a seed.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import plait
import plait.core
import plait.image
import plait.numpy as pnp
import plait.ops
import plait.scipy
from plait import lax, nn, random
from plait.export import symbolic_args_specs

ORDINARY = ({"b": 1, "c": 5}, {"b": 4, "c": 2}, {"b": 5, "c": 1})
F32 = np.float32


class Program(NamedTuple):
    """A function of arrays of these shapes and kinds, for sizes under constraints.

    Kinds: f numbers, i integers, k integers from 0 to 2, z complex numbers, h bfloat16, ? booleans.
    """

    fun: Callable[..., Any]
    shapes: tuple[str, ...]
    sizes: tuple[dict[str, int], ...] = ORDINARY
    constraints: tuple[str, ...] = ()
    kinds: str = "ffff"

    def arguments(self, sizes: dict[str, int], seed: int = 0) -> tuple[np.ndarray, ...]:
        """Arrays of these sizes."""
        rng = np.random.default_rng(seed)
        scope = plait.Scope(self.constraints)
        shapes = [plait.symbolic_dims(text, scope) for text in self.shapes]
        return tuple(
            [
                drawn([d if isinstance(d, int) else d.substitute(sizes) for d in shape], kind, rng)
                for shape, kind in zip(shapes, self.kinds)
            ]
        )

    def types(self) -> tuple:
        """What it is exported for."""
        like = self.arguments(self.sizes[0])
        return symbolic_args_specs(like, self.shapes, self.constraints)


def drawn(shape: list[int], kind: str, rng: np.random.Generator) -> np.ndarray:
    """Random elements of a kind."""
    x = rng.normal(size=shape)
    if kind == "k":
        return rng.integers(0, 3, shape).astype(np.int32)
    if kind == "i":
        return rng.integers(-9, 9, shape).astype(np.int32)
    if kind == "z":
        return (x + 1j * rng.normal(size=shape)).astype(np.complex64)
    if kind == "?":
        return x > 0
    return x.astype(ml_dtypes.bfloat16 if kind == "h" else F32)


def dim_divmod(x):
    q, r = divmod(x.shape[0], 2)
    return pnp.arange(q + r + 1)


def dim_range_loop_static(x):
    s = 0
    for i in range(x.ndim):
        s = s + x.sum(i).sum()
    return s


def attention(q, k):
    s = pnp.einsum("bhtd,bhsd->bhts", q, k) / pnp.sqrt(4.0)
    m = pnp.tril(pnp.ones((q.shape[2], q.shape[2]), bool))
    s = pnp.where(m, s, -1e9)
    return nn.softmax(s, -1) @ k


def conv_same_valid(x):
    k = pnp.ones((3, 3, 3, 2)) * 0.1
    dn = ("NHWC", "HWIO", "NHWC")
    return (
        lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=dn),
        lax.conv_general_dilated(x, k, (2, 2), "VALID", dimension_numbers=dn),
        lax.conv_general_dilated(x, k, (2, 1), "SAME", rhs_dilation=(1, 1), dimension_numbers=dn),
    )


def conv_transpose(x):
    k = pnp.ones((3, 3, 3, 2)) * 0.1
    return lax.conv_transpose(x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def conv_grad(x):
    k = pnp.ones((3, 3, 3, 2)) * 0.1
    f = lambda x, k: (
        lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        ** 2
    ).sum()
    return plait.grad(f, (0, 1))(x, k)


def resize(x):
    return plait.image.resize(x, (x.shape[0], 4, 4, 3), "bilinear")


def nested_jit(x):
    inner = plait.jit(lambda y: y.sum(0) * y.shape[0])
    return (inner(x) + inner(x * 2), inner(pnp.concatenate([x, x])))


def chol(x):
    a = x @ x.T + pnp.eye(x.shape[0]) * 5
    return pnp.linalg.cholesky(a)


def solve(x):
    a = x @ x.T + pnp.eye(x.shape[0]) * 5
    return (pnp.linalg.solve(a, x), pnp.linalg.inv(a), pnp.linalg.det(a), pnp.linalg.slogdet(a))


def eigh(x):
    a = x @ x.T + pnp.eye(x.shape[0]) * 5
    return pnp.linalg.eigvalsh(a)


def rand(x):
    k = random.key(0)
    return (
        random.normal(k, x.shape),
        random.uniform(k, (x.shape[0],)),
        random.bernoulli(k, 0.5, x.shape),
        random.randint(k, (x.shape[1],), 0, 10),
    )


def layernorm_mlp(x):
    w = pnp.ones((4, 8)) * 0.1
    y = (x - x.mean(-1, keepdims=True)) / pnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return nn.gelu(y @ w) @ w.T


def xent_grad(x, y):
    f = lambda x: -pnp.take_along_axis(nn.log_softmax(x), y[:, None], 1).mean()
    return plait.value_and_grad(f)(x)


def custom_jvp(x):

    @plait.custom_jvp
    def g(x):
        return pnp.sin(x)

    @g.defjvp
    def _(p, t):
        return (g(p[0]), t[0] * 10)

    return plait.grad(lambda x: g(x).sum())(x)


PROGRAMS = {
    "dim_times_float": Program(lambda x: x * (x.shape[0] * 0.5), ("b, 3",)),
    "dim_rdiv": Program(lambda x: x * (1.0 / x.shape[0]), ("b, 3",)),
    "dim_truediv": Program(lambda x: x.sum() / (x.shape[0] * x.shape[1]), ("b, 3",)),
    "dim_sqrt": Program(lambda x: x / pnp.sqrt(x.shape[0]), ("b, 3",)),
    "dim_pow_float": Program(lambda x: x * x.shape[0] ** 0.5, ("b, 3",)),
    "dim_asarray": Program(
        lambda x: pnp.array(x.shape[0]) + pnp.asarray(x.shape[0], dtype=pnp.float32), ("b, 3",)
    ),
    "dim_neg_index": Program(lambda x: (x[-1], x[x.shape[0] - 1]), ("b, 3",)),
    "dim_x_size": Program(
        lambda x: (pnp.full((3,), x.size), x.ndim, pnp.asarray(x.nbytes)), ("b, 3",)
    ),
    "dim_max_min": Program(
        lambda x: (
            pnp.arange(max(x.shape[0], 0)),
            pnp.zeros((plait.core.max_dim(x.shape[0], x.shape[1]),)),
        ),
        ("b, c",),
    ),
    "dim_floordiv_mod": Program(
        lambda x: (pnp.arange(x.shape[0] * x.shape[1] // 3 + 1), pnp.arange(x.shape[0] % 2 + 1)),
        ("b, c",),
    ),
    "dim_square": Program(lambda x: pnp.arange(x.shape[0] ** 2 + x.shape[1]), ("b, c",)),
    "dim_divmod": Program(dim_divmod, ("b, c",)),
    "dim_range_loop_static": Program(dim_range_loop_static, ("b, c",)),
    "reshape_flat": Program(
        lambda x: (x.reshape(-1), x.ravel(), x.reshape(x.shape[0] * x.shape[1])), ("b, c",)
    ),
    "reshape_minus1_4": Program(lambda x: pnp.concatenate([x] * 4, 1).reshape(-1, 4), ("b, c",)),
    "reshape_half": Program(
        lambda x: (x.reshape(2, -1), x.reshape(x.shape[0] // 2, 2, x.shape[1])),
        ("b, c",),
        sizes=({"b": 2, "c": 3}, {"b": 6, "c": 1}),
        constraints=("mod(b, 2) == 0",),
    ),
    "reshape_split_heads": Program(
        lambda x: x.reshape(x.shape[0], 2, 4).transpose(1, 0, 2), ("b, 8",)
    ),
    "concat_self": Program(
        lambda x: (
            pnp.concatenate([x, x[:1], x]),
            pnp.vstack([x, x]),
            pnp.hstack([x, x]),
            pnp.stack([x, x], 1),
        ),
        ("b, c",),
    ),
    "concat_two": Program(
        lambda x, y: pnp.concatenate([x, y]),
        (
            "b, 3",
            "c, 3",
        ),
    ),
    "split_half": Program(lambda x: pnp.split(pnp.concatenate([x, x]), 2), ("b, c",)),
    "pad_things": Program(
        lambda x: (
            pnp.pad(x, ((1, 2), (0, 1))),
            pnp.pad(x, ((0, x.shape[0]), (0, 0))),
            pnp.pad(x, 1, mode="edge"),
            pnp.pad(x, ((1, 1), (0, 0)), mode="wrap"),
        ),
        ("b, c",),
    ),
    "tile_repeat": Program(
        lambda x: (pnp.tile(x, (2, 3)), pnp.repeat(x, 3, axis=0), pnp.tile(x, (x.shape[0], 1))),
        ("b, c",),
    ),
    "roll_flip": Program(
        lambda x: (
            pnp.roll(x, 1, 0),
            pnp.roll(x, x.shape[1] - 1, 1),
            pnp.flip(x),
            x[::-1],
            pnp.rot90(x),
        ),
        ("b, c",),
    ),
    "strided": Program(lambda x: (x[::2], x[1::3, ::-1], x[-1:], x[:-1], x[1:]), ("b, c",)),
    "diag_tri": Program(
        lambda x: (
            pnp.tril(x),
            pnp.triu(x, 1),
            pnp.eye(x.shape[0]),
            pnp.eye(x.shape[0], x.shape[1]),
            pnp.trace(x),
            pnp.tri(x.shape[0]),
        ),
        ("b, c",),
    ),
    "diag_sq": Program(lambda x: (pnp.diag(x), pnp.diagonal(x), pnp.diag(x[0])), ("b, b",)),
    "meshgrid_ind": Program(
        lambda x: (pnp.meshgrid(x[:, 0], x[0]), pnp.indices((x.shape[0], x.shape[1]))), ("b, c",)
    ),
    "linspace_logspace": Program(
        lambda x: (
            pnp.linspace(0, 1, x.shape[0]),
            pnp.linspace(0.0, 1.0, x.shape[1] + 1, endpoint=False),
            pnp.arange(0, x.shape[0], 2),
            pnp.arange(x.shape[0], dtype=pnp.float32),
            pnp.arange(x.shape[0])[::-1],
        ),
        ("b, c",),
    ),
    "squeeze_expand": Program(
        lambda x: (
            pnp.expand_dims(x, 1),
            x[:, None, :, None],
            pnp.squeeze(x[:, None]),
            pnp.moveaxis(x, 0, 1),
            pnp.swapaxes(x, 0, 1),
        ),
        ("b, c",),
    ),
    "bcast": Program(
        lambda x: (pnp.broadcast_to(x[None], (2,) + x.shape), pnp.broadcast_arrays(x, x[:1])),
        ("b, c",),
    ),
    "same_dim": Program(
        lambda x, y: (x + y, pnp.outer(x, y), pnp.dot(x, y)),
        (
            "b",
            "b",
        ),
    ),
    "bias": Program(
        lambda x, y: (x + y, x @ y),
        (
            "b, c",
            "c",
        ),
    ),
    "take_idx": Program(
        lambda x: (
            x[pnp.array([0, 0, -1])],
            pnp.take(x, pnp.array([0, 5, -1]), axis=0, mode="clip"),
            pnp.take(x, pnp.arange(x.shape[0])[::-1], axis=0),
        ),
        ("b, c",),
    ),
    "take_along": Program(lambda x: pnp.take_along_axis(x, pnp.argsort(x, 1), 1), ("b, c",)),
    "gather_dyn": Program(
        lambda x, i: (x[i], x[:, i % 2], x[i, 0]),
        (
            "b, c",
            "d",
        ),
        sizes=({"b": 3, "c": 5, "d": 1}, {"b": 4, "c": 2, "d": 6}),
        kinds="fk",
    ),
    "scatter_set": Program(
        lambda x: (
            x.at[0].set(1.0),
            x.at[-1].add(2.0),
            x.at[:, 0].mul(3.0),
            x.at[pnp.arange(x.shape[0])].set(0.0),
        ),
        ("b, c",),
    ),
    "scatter_dyn": Program(
        lambda x, i: (x.at[i].add(1.0), x.at[i, 0].max(2.0)),
        (
            "b, c",
            "d",
        ),
        sizes=({"b": 3, "c": 5, "d": 1}, {"b": 4, "c": 2, "d": 6}),
        kinds="fk",
    ),
    "where3": Program(
        lambda x: (
            pnp.where(x > 0, x, -x),
            pnp.clip(x, -1, 1),
            pnp.select([x > 0, x < -1], [x, 2 * x], 0.0),
        ),
        ("b, c",),
    ),
    "dyn_slice": Program(
        lambda x: (
            lax.dynamic_slice(x, (x.shape[0] - 1, 0), (1, x.shape[1])),
            lax.dynamic_update_slice(x, x[:1] * 2, (0, 0)),
            lax.dynamic_index_in_dim(x, 0, 0),
        ),
        ("b, c",),
    ),
    "mask_bool": Program(
        lambda x: pnp.sum(pnp.where(pnp.arange(x.shape[0])[:, None] < 2, x, 0)), ("b, c",)
    ),
    "nonzero_size": Program(
        lambda x: (
            pnp.nonzero(x > 0, size=3, fill_value=-1),
            pnp.argwhere(x > 0, size=x.shape[0], fill_value=0),
        ),
        ("b, c",),
    ),
    "onehot": Program(
        lambda x: (nn.one_hot(pnp.argmax(x, 1), x.shape[1]), nn.one_hot(pnp.arange(x.shape[0]), 4)),
        ("b, c",),
    ),
    "searchsorted": Program(
        lambda x: (
            pnp.searchsorted(pnp.sort(x[:, 0]), x[0]),
            pnp.searchsorted(pnp.array([-1.0, 0.0, 1.0]), x),
        ),
        ("b, c",),
    ),
    "digitize": Program(lambda x: pnp.digitize(x, pnp.array([-1.0, 0.0, 1.0])), ("b, c",)),
    "interp": Program(
        lambda x: pnp.interp(x[0], pnp.arange(x.shape[0], dtype=pnp.float32), x[:, 0]), ("b, c",)
    ),
    "histogram": Program(
        lambda x: (
            pnp.histogram(x, bins=4, range=(-2, 2))[0],
            pnp.bincount(pnp.arange(x.shape[0]) % 3, length=3),
        ),
        ("b, c",),
    ),
    "unique_size": Program(
        lambda x: pnp.unique((x > 0).astype(pnp.int32), size=2, fill_value=-1), ("b, c",)
    ),
    "reductions": Program(
        lambda x: (
            x.mean(),
            x.mean(0),
            x.var(1),
            x.std(),
            x.max(0),
            x.prod(1),
            pnp.median(x, axis=0),
            pnp.linalg.norm(x),
            x.all(),
            x.any(0),
        ),
        ("b, c",),
    ),
    "quantile": Program(
        lambda x: (
            pnp.quantile(x, 0.3, axis=0),
            pnp.percentile(x, 50),
            pnp.nanmean(x),
            pnp.average(x, axis=0),
        ),
        ("b, c",),
    ),
    "sorts": Program(
        lambda x: (
            pnp.sort(x, 0),
            pnp.argsort(x, 1),
            pnp.sort(x)[::-1],
            lax.top_k(x, 1),
            pnp.lexsort((x[:, 0],)),
        ),
        ("b, c",),
    ),
    "topk2": Program(
        lambda x: (lax.top_k(x, 2), pnp.partition(x, 1, axis=1)[:, 1]),
        ("b, c",),
        sizes=({"b": 1, "c": 5}, {"b": 4, "c": 2}),
        constraints=("c >= 2",),
    ),
    "cums": Program(
        lambda x: (
            pnp.cumsum(x, 0),
            pnp.cumprod(x, 1),
            lax.cummax(x, 0),
            lax.cumlogsumexp(x, axis=1),
            pnp.diff(x, axis=0),
        ),
        ("b, c",),
    ),
    "assoc_scan": Program(lambda x: lax.associative_scan(pnp.add, x), ("b, c",)),
    "argm": Program(lambda x: (pnp.argmax(x), pnp.argmin(x, 0), pnp.nanargmax(x, 1)), ("b, c",)),
    "cov": Program(lambda x: ((x - x.mean(0)).T @ (x - x.mean(0)) / x.shape[0],), ("b, c",)),
    "cov_np": Program(
        lambda x: (pnp.cov(x, rowvar=False), pnp.corrcoef(x, rowvar=False)),
        ("b, c",),
        sizes=({"b": 2, "c": 5}, {"b": 4, "c": 2}),
        constraints=("b >= 2",),
    ),
    "matmul": Program(
        lambda x, y: (x @ y, pnp.einsum("bc,cd->db", x, y), pnp.tensordot(x, y, 1), lax.dot(x, y)),
        (
            "b, c",
            "c, d",
        ),
        sizes=({"b": 1, "c": 5, "d": 2}, {"b": 4, "c": 2, "d": 3}),
    ),
    "attention": Program(
        attention,
        (
            "b, h, t, 4",
            "b, h, t, 4",
        ),
        sizes=({"b": 1, "h": 2, "t": 3}, {"b": 2, "h": 1, "t": 5}),
    ),
    "dpa": Program(
        lambda q: nn.dot_product_attention(q, q, q, is_causal=True),
        ("b, t, 2, 4",),
        sizes=({"b": 1, "t": 3}, {"b": 2, "t": 5}),
    ),
    "conv_same_valid": Program(
        conv_same_valid,
        ("b, h, w, 3",),
        sizes=({"b": 1, "h": 7, "w": 8}, {"b": 2, "h": 5, "w": 6}),
        constraints=(
            "h >= 3",
            "w >= 3",
        ),
    ),
    "conv_transpose": Program(
        conv_transpose,
        ("b, h, w, 3",),
        sizes=({"b": 1, "h": 7, "w": 8}, {"b": 2, "h": 5, "w": 6}),
        constraints=(
            "h >= 3",
            "w >= 3",
        ),
    ),
    "pools": Program(
        lambda x: (
            lax.reduce_window(x, -pnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
            lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME"),
        ),
        ("b, h, w, 3",),
        sizes=({"b": 1, "h": 7, "w": 8}, {"b": 2, "h": 5, "w": 6}),
        constraints=(
            "h >= 3",
            "w >= 3",
        ),
    ),
    "maxpool_grad": Program(
        lambda x: plait.grad(
            lambda x: lax.reduce_window(
                x, -pnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
            ).sum()
        )(x),
        ("b, h, w, 3",),
        sizes=({"b": 1, "h": 7, "w": 8}, {"b": 2, "h": 5, "w": 6}),
        constraints=(
            "h >= 3",
            "w >= 3",
        ),
    ),
    "conv_grad": Program(
        conv_grad,
        ("b, h, w, 3",),
        sizes=({"b": 1, "h": 7, "w": 8}, {"b": 2, "h": 5, "w": 6}),
        constraints=(
            "h >= 3",
            "w >= 3",
        ),
    ),
    "conv1d_np": Program(
        lambda x: (
            pnp.convolve(x, pnp.array([1.0, 2.0, 1.0]), mode="same"),
            pnp.convolve(x, pnp.array([1.0, 2.0]), mode="full"),
        ),
        ("n",),
        sizes=({"n": 3}, {"n": 8}),
    ),
    "fft": Program(
        lambda x: (pnp.fft.fft(x), pnp.fft.rfft(x), pnp.fft.ifft(x)),
        ("n",),
        sizes=({"n": 4}, {"n": 8}),
    ),
    "fft_freq": Program(
        lambda x: (pnp.fft.fftfreq(x.shape[0]), pnp.fft.fftshift(x)),
        ("n",),
        sizes=({"n": 4}, {"n": 8}),
    ),
    "fft_batch": Program(
        lambda x: (pnp.fft.rfft(x), pnp.fft.irfft(pnp.fft.rfft(x), n=8)), ("b, 8",)
    ),
    "resize": Program(resize, ("b, 8, 8, 3",)),
    "resize_sym": Program(
        lambda x: plait.image.resize(
            x, (x.shape[0], 2 * x.shape[1], 2 * x.shape[2], 3), "bilinear"
        ),
        ("b, h, w, 3",),
        sizes=({"b": 1, "h": 7, "w": 8}, {"b": 2, "h": 5, "w": 6}),
    ),
    "scan_rows": Program(
        lambda x: lax.scan(lambda c, r: (c + r, c * 2), pnp.zeros(x.shape[1]), x), ("b, c",)
    ),
    "scan_len": Program(
        lambda x: lax.scan(lambda c, _: (c + 1, c), 0, None, length=x.shape[0]), ("b, c",)
    ),
    "scan_rev_unroll": Program(
        lambda x: lax.scan(lambda c, r: (c + r.sum(), c), 0.0, x, reverse=True), ("b, c",)
    ),
    "scan_unroll2": Program(
        lambda x: lax.scan(lambda c, r: (c + r.sum(), c), 0.0, x, unroll=2), ("b, c",)
    ),
    "scan_grad": Program(
        lambda x: plait.grad(
            lambda x: lax.scan(lambda c, r: (pnp.tanh(c + r), c), pnp.zeros(x.shape[1]), x)[0].sum()
        )(x),
        ("b, c",),
    ),
    "fori_dim": Program(
        lambda x: lax.fori_loop(0, x.shape[0], lambda i, a: a + x[i], pnp.zeros(x.shape[1])),
        ("b, c",),
    ),
    "fori_grad": Program(
        lambda x: plait.grad(lambda x: lax.fori_loop(0, 3, lambda i, a: pnp.sin(a) * 2, x).sum())(
            x
        ),
        ("b, c",),
    ),
    "fori_grad_dim": Program(
        lambda x: plait.grad(
            lambda x: lax.fori_loop(
                0, x.shape[0], lambda i, a: pnp.sin(a) + x[i].sum(), pnp.float32(0.0)
            )
        )(x),
        ("b, c",),
    ),
    "while_dim": Program(
        lambda x: lax.while_loop(
            lambda s: s[0] < x.shape[0], lambda s: (s[0] + 1, s[1] * 1.5), (0, x)
        ),
        ("b, c",),
    ),
    "cond": Program(
        lambda x: (
            lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: -x, x),
            lax.switch(pnp.int32(1), [lambda x: x, lambda x: x + 1], x),
        ),
        ("b, c",),
    ),
    "cond_grad": Program(
        lambda x: plait.grad(
            lambda x: lax.cond(x.sum() > 0, lambda x: (x * x).sum(), lambda x: x.sum(), x)
        )(x),
        ("b, c",),
    ),
    "map": Program(
        lambda x: (lax.map(lambda r: r.sum(), x), lax.map(lambda r: r * 2, x, batch_size=1)),
        ("b, c",),
    ),
    "map_batch2": Program(lambda x: lax.map(lambda r: r.sum(), x, batch_size=2), ("b, c",)),
    "checkpoint": Program(
        lambda x: plait.grad(plait.checkpoint(lambda x: pnp.sin(pnp.cos(x)).sum()))(x), ("b, c",)
    ),
    "vmap": Program(
        lambda x: (
            plait.vmap(lambda r: r / r.sum())(x),
            plait.vmap(plait.vmap(lambda s: s * 2))(x),
            plait.vmap(plait.grad(lambda r: (r**3).sum()))(x),
        ),
        ("b, c",),
    ),
    "jac": Program(
        lambda x: (
            plait.jacfwd(lambda x: (x**2).sum(1))(x),
            plait.jacrev(lambda x: (x**2).sum(0))(x),
        ),
        ("b, c",),
    ),
    "hess": Program(
        lambda x: plait.hessian(lambda x: (x**3).sum())(x), ("b",), sizes=({"b": 1}, {"b": 4})
    ),
    "nested_jit": Program(nested_jit, ("b, c",)),
    "chol": Program(chol, ("b, b",), sizes=({"b": 1}, {"b": 4})),
    "solve": Program(solve, ("b, b",), sizes=({"b": 1}, {"b": 4})),
    "eigh": Program(eigh, ("b, b",), sizes=({"b": 1}, {"b": 4})),
    "svd_qr": Program(
        lambda x: (
            pnp.linalg.svd(x, full_matrices=False)[1],
            pnp.abs(pnp.linalg.qr(x)[1]),
            pnp.linalg.svd(x, compute_uv=False),
        ),
        ("b, c",),
        sizes=({"b": 2, "c": 3}, {"b": 4, "c": 2}),
    ),
    "pinv_lstsq": Program(
        lambda x: (pnp.linalg.pinv(x), pnp.linalg.matrix_rank(x)),
        ("b, c",),
        sizes=({"b": 2, "c": 3}, {"b": 4, "c": 2}),
    ),
    "batch_linalg": Program(
        lambda x: (
            pnp.linalg.inv(x + 5 * pnp.eye(3)),
            pnp.linalg.det(x),
            pnp.linalg.cholesky(x @ x.transpose(0, 2, 1) + 3 * pnp.eye(3)),
        ),
        ("b, 3, 3",),
    ),
    "batch_eig": Program(
        lambda x: (pnp.linalg.eigvalsh(x @ x.transpose(0, 2, 1)), pnp.linalg.svd(x)[1]),
        ("b, 3, 3",),
    ),
    "expm": Program(
        lambda x: plait.scipy.linalg.expm(x * 0.1), ("b, b",), sizes=({"b": 1}, {"b": 4})
    ),
    "matpow": Program(
        lambda x: pnp.linalg.matrix_power(x, 3), ("b, b",), sizes=({"b": 2}, {"b": 4})
    ),
    "tri_solve": Program(
        lambda x, y: plait.scipy.linalg.solve_triangular(
            pnp.tril(x) + 3 * pnp.eye(x.shape[0]), y, lower=True
        ),
        (
            "b, b",
            "b",
        ),
        sizes=({"b": 2}, {"b": 4}),
    ),
    "rand": Program(rand, ("b, c",)),
    "rand_split": Program(
        lambda x: plait.vmap(lambda k: random.normal(k, (2,)))(
            random.split(random.key(0), x.shape[0])
        ),
        ("b, c",),
    ),
    "rand_perm": Program(
        lambda x: (
            random.permutation(random.key(0), x.shape[0]),
            random.permutation(random.key(1), x),
        ),
        ("b, c",),
    ),
    "rand_cat": Program(
        lambda x: (
            random.categorical(random.key(0), x),
            random.gumbel(random.key(0), x.shape),
            random.exponential(random.key(3), x.shape),
        ),
        ("b, c",),
    ),
    "rand_choice": Program(
        lambda x: (
            random.choice(random.key(0), x.shape[0], (3,)),
            random.choice(random.key(0), x, (2,)),
        ),
        ("b, c",),
    ),
    "rand_gamma": Program(
        lambda x: (
            random.gamma(random.key(0), 2.0, x.shape),
            random.truncated_normal(random.key(0), -1.0, 1.0, x.shape),
        ),
        ("b, c",),
    ),
    "rand_gamma_dist": Program(
        lambda x: (
            random.beta(random.key(0), 2.0, 3.0, x.shape),
            random.poisson(random.key(0), 3.0, x.shape),
        ),
        ("b, c",),
    ),
    "nn": Program(
        lambda x: (
            nn.softmax(x),
            nn.log_softmax(x, 0),
            nn.gelu(x),
            nn.silu(x),
            nn.relu(x),
            nn.logsumexp(x, 1),
            nn.standardize(x),
        ),
        ("b, c",),
    ),
    "layernorm_mlp": Program(
        layernorm_mlp, ("b, t, 4",), sizes=({"b": 1, "t": 3}, {"b": 2, "t": 5})
    ),
    "batchnorm": Program(lambda x: (x - x.mean(0)) / pnp.sqrt(x.var(0) + 1e-5), ("b, 5",)),
    "xent_grad": Program(
        xent_grad,
        (
            "b, 5",
            "b",
        ),
        kinds="fk",
    ),
    "embed": Program(
        lambda i: (pnp.arange(30.0).reshape(10, 3)[i],),
        ("b, t",),
        sizes=({"b": 1, "t": 3}, {"b": 2, "t": 5}),
        kinds="k",
    ),
    "segsum": Program(
        lambda x, i: plait.ops.segment_sum(x, i, 3),
        (
            "b",
            "b",
        ),
        kinds="fk",
    ),
    "segsum_sym": Program(
        lambda x, i: pnp.zeros((x.shape[0] + 3,)).at[i].add(x),
        (
            "b",
            "b",
        ),
        kinds="fk",
    ),
    "con_ge": Program(
        lambda x: (x[: x.shape[1]], x[x.shape[0] - x.shape[1] :]),
        ("b, c",),
        sizes=({"b": 5, "c": 2}, {"b": 3, "c": 3}),
        constraints=("b >= c",),
    ),
    "con_eq": Program(
        lambda x: x.reshape(2, x.shape[1], x.shape[1]),
        ("b, c",),
        sizes=({"b": 4, "c": 2}, {"b": 2, "c": 1}),
        constraints=("b == 2*c",),
    ),
    "con_le": Program(
        lambda x: pnp.pad(x, ((0, 8 - x.shape[0]), (0, 0))),
        ("b, c",),
        sizes=({"b": 4, "c": 2}, {"b": 8, "c": 1}),
        constraints=("b <= 8",),
    ),
    "lin_spec": Program(lambda x: x[::2], ("2*b, b + 1",), sizes=({"b": 1}, {"b": 4})),
    "lin_two": Program(
        lambda x: x * 2, ("a + b, a + 2*b",), sizes=({"a": 1, "b": 2}, {"a": 4, "b": 1})
    ),
    "spec_square": Program(lambda x: x * 2, ("a*a",), sizes=({"a": 2}, {"a": 3})),
    "spec_square_both": Program(
        lambda x: x.reshape(-1).reshape(x.shape[0], x.shape[0], -1),
        ("a, a*a",),
        sizes=({"a": 2}, {"a": 3}),
    ),
    "spec_floordiv": Program(lambda x: x * 2, ("floordiv(b, 2), b",), sizes=({"b": 2}, {"b": 5})),
    "eq_dims_true": Program(
        lambda x, y: (x,) if x.shape[0] == y.shape[0] else (y,),
        (
            "b",
            "c",
        ),
    ),
    "b_eq_1": Program(
        lambda x: (x * 2,) if x.shape[0] == 1 else (x,), ("b",), sizes=({"b": 1}, {"b": 4})
    ),
    "stack_same_sq": Program(lambda x: x @ x.T + pnp.ones((x.shape[0], x.shape[0])), ("b, c",)),
    "block": Program(lambda x: pnp.block([[x, x], [x, x]]), ("b, c",)),
    "kron": Program(lambda x: pnp.kron(x, pnp.ones((2, 2))), ("b, c",)),
    "polyfit": Program(
        lambda x: (
            pnp.polyval(pnp.array([1.0, 2.0]), x),
            pnp.vander(x[:, 0], 3),
            pnp.cross(pnp.ones((x.shape[0], 3)), pnp.ones((x.shape[0], 3)) * 2),
        ),
        ("b, c",),
    ),
    "apply_along": Program(
        lambda x: (
            pnp.apply_along_axis(lambda r: r.sum(), 1, x),
            pnp.vectorize(lambda a, b: a + b, signature="(n),(n)->(n)")(x, x),
        ),
        ("b, c",),
    ),
    "packbits": Program(
        lambda x: (
            pnp.packbits(x > 0, axis=1),
            pnp.unpackbits(pnp.ones((x.shape[0], 2), pnp.uint8), axis=1),
        ),
        ("b, c",),
    ),
    "gradient": Program(lambda x: (pnp.ediff1d(x.ravel()), pnp.trapezoid(x, axis=0)), ("b, c",)),
    "npgradient": Program(
        lambda x: pnp.gradient(x),
        ("b, c",),
        sizes=({"b": 2, "c": 3}, {"b": 4, "c": 2}),
        constraints=(
            "b>=2",
            "c>=2",
        ),
    ),
    "cummax_grad": Program(lambda x: plait.grad(lambda x: pnp.cumsum(x, 0).prod())(x), ("b, c",)),
    "sort_grad": Program(lambda x: plait.grad(lambda x: pnp.sort(x, 0)[0].sum())(x), ("b, c",)),
    "gather_grad": Program(
        lambda x: plait.grad(lambda x: (x[pnp.array([0, 0])] ** 2).sum())(x), ("b, c",)
    ),
    "einsum_grad": Program(
        lambda x: plait.grad(lambda x: pnp.einsum("bc,dc->bd", x, x).sum())(x), ("b, c",)
    ),
    "lu": Program(
        lambda x: plait.grad(lambda x: pnp.linalg.slogdet(x.T @ x + pnp.eye(x.shape[1]))[1])(x),
        ("b, c",),
    ),
    "custom_jvp": Program(custom_jvp, ("b, c",)),
    "complex": Program(
        lambda x: (pnp.abs(x), x.real, pnp.conj(x) @ x.T, pnp.angle(x)), ("b, c",), kinds="z"
    ),
    "bf16": Program(lambda x: (x @ x.T, nn.softmax(x), x.sum(0)), ("b, c",), kinds="h"),
    "bool": Program(
        lambda x: (x & ~x, pnp.any(x, 0), pnp.sum(x), pnp.logical_xor(x, x)), ("b, c",), kinds="?"
    ),
    "int": Program(
        lambda x: (x // 3, x % 3, x << 1, pnp.bitwise_count(x), pnp.cumsum(x, 1)),
        ("b, c",),
        kinds="i",
    ),
}
