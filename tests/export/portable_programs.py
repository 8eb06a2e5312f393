"""Programs that other readers of StableHLO are given: layers, loops, sorts, linear algebra,
gradients, random numbers, and sizes known by name only.

Invariant: every program has arguments, and references are numpy's.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import plait
import plait.numpy as pnp
from plait import lax, nn, random
from plait.export import Exported, export, symbolic_args_specs

F32 = np.float32
R = np.random.default_rng(0)


def normal(*shape):
    return R.normal(size=shape).astype(F32)


class Case(NamedTuple):
    """A function, the arguments that it is exported for, names of their sizes, and arguments of
    other sizes."""

    fun: Callable[..., Any]
    args: tuple
    names: Any = None
    others: tuple = ()
    constraints: tuple = ()
    tolerance: float = 1e-5


# ---- the functions -------------------------------------------------------------------------

W1, W2, EMBEDDING = normal(3, 16) * F32(0.5), normal(16, 2) * F32(0.5), normal(10, 4)
FILTERS = normal(3, 3, 3, 4) * F32(0.3)
WX, WH = normal(3, 16) * F32(0.5), normal(4, 16) * F32(0.5)
PIXELS, ROWS, WORDS = normal(2, 8, 8, 3), normal(4, 3), normal(2, 5, 4)
SQUARE, SEED = normal(4, 4), np.array([1, 2], np.uint32)


def mlp(x):
    return pnp.tanh(x @ W1) @ W2


def attention(q):
    scores = pnp.einsum("btd,bsd->bts", q, q) / 2
    mask = pnp.tril(pnp.ones((q.shape[1], q.shape[1]), bool))
    return nn.softmax(pnp.where(mask, scores, -1e9), -1) @ q


def lstm(xs):
    def step(carry, x):
        h, s = carry
        i, f, g, o = pnp.split(x @ WX + h @ WH, 4, axis=-1)
        s = nn.sigmoid(f) * s + nn.sigmoid(i) * pnp.tanh(g)
        h = nn.sigmoid(o) * pnp.tanh(s)
        return (h, s), h

    start = pnp.zeros((xs.shape[1], 4), F32)
    return lax.scan(step, (start, start), xs)


def convolved(x):
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, FILTERS, (2, 2), "SAME", dimension_numbers=numbers)


def pooled(x):
    window = (1, 2, 2, 1)
    return lax.reduce_window(x, -np.inf, lax.max, window, window, "VALID")


def slope(f):
    return plait.grad(lambda x: plait.tree.leaves(f(x))[-1].sum())


def standard(x, axis):
    centred = x - x.mean(axis, keepdims=True)
    return centred / pnp.sqrt(x.var(axis, keepdims=True) + 1e-5)


def positive(x):
    return x @ x.T + pnp.eye(4, dtype=F32)


def drawn(key, shape):
    return random.normal(random.wrap_key_data(key), shape)


CASES = {
    "mlp": Case(mlp, (ROWS,)),
    "mlp_grad": Case(slope(mlp), (ROWS,)),
    "mlp_poly": Case(mlp, (ROWS,), ("b, 3",), ((normal(1, 3),), (normal(7, 3),))),
    "mlp_grad_poly": Case(slope(mlp), (ROWS,), ("b, 3",), ((normal(1, 3),),)),
    "conv": Case(convolved, (PIXELS,)),
    "conv_poly": Case(convolved, (PIXELS,), ("b, 8, 8, 3",), ((normal(1, 8, 8, 3),),)),
    "conv_poly_hw": Case(convolved, (PIXELS,), ("b, h, w, 3",), ((normal(1, 6, 7, 3),),),
                         ("h >= 3", "w >= 3")),
    "conv_grad": Case(slope(convolved), (PIXELS,)),
    "maxpool": Case(pooled, (PIXELS,)),
    "maxpool_grad": Case(slope(pooled), (PIXELS,)),
    "attention": Case(attention, (WORDS,)),
    "attention_poly": Case(attention, (WORDS,), ("b, t, 4",), ((normal(1, 3, 4),),)),
    "attention_grad": Case(slope(attention), (WORDS,)),
    "lstm": Case(lstm, (normal(5, 2, 3),)),
    "lstm_poly": Case(lstm, (normal(5, 2, 3),), ("t, b, 3",), ((normal(3, 1, 3),),)),
    "lstm_grad": Case(slope(lstm), (normal(5, 2, 3),)),
    "while": Case(lambda x: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 1.5 + 1, x),
                  (normal(3),)),
    "cond": Case(lambda x: lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: -x, x),
                 (np.ones(3, F32),), None, ((-np.ones(3, F32),),)),
    "sort": Case(lambda x: (pnp.sort(x, 0), pnp.argsort(x, 1)), (ROWS,)),
    "sort_poly": Case(lambda x: pnp.sort(x, 0), (ROWS,), ("b, 3",), ((normal(6, 3),),)),
    "topk": Case(lambda x: lax.top_k(x, 2), (ROWS,)),
    "cumsum": Case(lambda x: pnp.cumsum(x, 0), (ROWS,)),
    "cumsum_poly": Case(lambda x: pnp.cumsum(x, 0), (ROWS,), ("b, 3",), ((normal(6, 3),),)),
    "gather": Case(lambda i: pnp.asarray(EMBEDDING)[i], (np.array([1, 2, 9], np.int32),)),
    "gather_poly": Case(lambda i: pnp.asarray(EMBEDDING)[i], (np.array([1, 2, 9], np.int32),),
                        ("b",), ((np.array([0], np.int32),),)),
    "scatter": Case(lambda x: x.at[np.array([0, 2])].add(1.0), (ROWS,)),
    "embedding_grad": Case(lambda e, i: plait.grad(lambda e: (e[i] ** 2).sum())(e),
                           (EMBEDDING, np.array([1, 1, 3], np.int32))),
    "fft": Case(lambda x: pnp.abs(pnp.fft.fft(x)), (normal(8),)),
    "cholesky": Case(lambda x: pnp.linalg.cholesky(positive(x)), (SQUARE,)),
    "solve": Case(lambda x: pnp.linalg.solve(positive(x), x), (SQUARE,)),
    "random": Case(lambda k: drawn(k, (4,)), (SEED,)),
    "random_poly": Case(lambda k, x: drawn(k, x.shape), (SEED, normal(4)), ("2", "b"),
                        ((SEED, normal(7)),)),
    "gelu": Case(lambda x: nn.gelu(x, approximate=False), (ROWS,)),
    "special": Case(lambda x: plait.scipy.special.gammaln(abs(x) + 1), (ROWS,)),
    "logsumexp": Case(lambda x: nn.logsumexp(x, 1), (ROWS,)),
    "bf16": Case(lambda x: (x.astype("bfloat16") @ x.T.astype("bfloat16")).astype(F32), (ROWS,),
                 tolerance=1e-2),
    "int8": Case(lambda x: (x.astype(np.int8) * 2).astype(np.int32), (ROWS * 3,)),
    "f64": Case(lambda x: x.astype(np.float64) * 2, (ROWS,)),
    "layernorm_poly": Case(lambda x: standard(x, -1), (normal(2, 3, 4),), ("b, t, 4",),
                           ((normal(1, 2, 4),),)),
    "batchnorm_poly": Case(lambda x: standard(x, 0), (ROWS,), ("b, 3",), ((normal(2, 3),),)),
    "dynamic_slice": Case(lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 3)), (ROWS, np.int32(1))),
    "round": Case(lambda x: pnp.clip(pnp.round(x * 3), -2, 2), (ROWS,)),
    "vmap_of_grad": Case(lambda x: plait.vmap(slope(mlp))(x), (ROWS,)),
    "hessian": Case(lambda x: plait.hessian(lambda r: mlp(r).sum())(x), (normal(3),)),
    "pad_poly": Case(lambda x: pnp.pad(x, ((0, x.shape[0]), (1, 0))), (ROWS,), ("b, 3",),
                     ((normal(2, 3),),)),
    "concatenate_poly": Case(lambda x: pnp.concatenate([x, x[:1]]).reshape(-1), (ROWS,),
                             ("b, 3",), ((normal(2, 3),),)),
    "arange_poly": Case(lambda x: x + pnp.arange(x.shape[0])[:, None], (ROWS,), ("b, 3",),
                        ((normal(2, 3),),)),
    "scan_poly": Case(lambda x: lax.scan(lambda c, r: (c + r, c), pnp.zeros(3, F32), x), (ROWS,),
                      ("b, 3",), ((normal(2, 3),),)),
}  # fmt: skip

REFERENCES = {
    "mlp": lambda x: np.tanh(x @ W1) @ W2,
    "sort": lambda x: (np.sort(x, 0), np.argsort(x, 1)),
    "cumsum": lambda x: np.cumsum(x, 0),
    "fft": lambda x: np.abs(np.fft.fft(x)),
    "cholesky": lambda x: np.linalg.cholesky(x @ x.T + np.eye(4)),
    "solve": lambda x: np.linalg.solve(x @ x.T + np.eye(4), x),
    "gather": lambda i: EMBEDDING[i],
    "int8": lambda x: (x.astype(np.int8) * 2).astype(np.int32),
    "batchnorm_poly": lambda x: (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5),
    "pad_poly": lambda x: np.pad(x, ((0, x.shape[0]), (1, 0))),
}


# ---- as other readers take them ------------------------------------------------------------


def types_of(case: Case) -> tuple:
    """What it is exported for."""
    if case.names is None:
        return case.args
    return symbolic_args_specs(case.args, case.names, case.constraints)


def artifacts(case: Case) -> Iterator[tuple[Exported, tuple]]:
    """(an artifact of sizes that are numbers and without libraries, arguments) for each of the
    arguments."""
    exported = export(case.fun, libraries=False)(*types_of(case))
    for args in (case.args, *case.others):
        sizes = {
            str(name): n
            for aval, x in zip(exported.in_avals, plait.tree.leaves(args), strict=True)
            for name, n in zip(aval.shape, np.shape(x), strict=True)
            if not isinstance(name, int)
        }
        yield exported.specialize(sizes), args


def expected(case: Case, args: tuple) -> list[np.ndarray]:
    """What the function gives here, flat."""
    return [np.asarray(y) for y in plait.tree.leaves(plait.jit(case.fun)(*args))]
