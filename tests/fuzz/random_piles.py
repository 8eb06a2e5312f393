"""Random programs over piles, against the loop over examples.

A program is a few dozen operations on arrays whose sizes are n, m, and what becomes of them (n + m,
n // 2, n * m, 2 n, n - 1, max(n, m)), among them all `pile_families`; some arguments are ragged,
some each example has its own of, one all share. It is applied to one example after the other, in
numpy, equation by equation; and to the pile of all, with garbage beyond the last row, in one of the
`WAYS`: its values, its gradients inside and outside of the map, second derivatives, in a scan, in a
checkpoint, in another map. In half of the programs the lengths are known, and in half they are
traced. Most piles are computed by numpy, too, by what the operation on all examples says with other
operations, as this is ten times faster than to compile it; every eighth program is compiled, or
applied as it is.

Run as a script, `python -m tests.fuzz.random_piles`, it goes on for `--minutes`, from a seed that
it prints, and says what differs; `--seed S --count 1` runs one again, and `--families` all of
`pile_families`, at all vectors of lengths, with gradients, and with infinities among the rows.

Invariant: a program follows from its seed alone; the other side knows of no piles.
"""

import argparse
import math
import os
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from functools import partial

import numpy as np

import plait
import plait.numpy as pnp
from plait import lax, nn
from plait._xla.physical import laid_out
from plait.errors import MissingRule
from plait.ext.ir import evaluate, programs_in
from plait.ext.ops.indexing import FILL
from plait.ext.rules import eager_rules, expand_rules
from plait.ext.trace import staged, use
from plait.ext.values import Array, as_value
from plait.sharding import PartitionSpec as P
from plait.testing.oracle import ArrayOracle
from plait.testing.references import all_references
from plait.testing.references.indexing import _nothing as OUTSIDE

from ..composition import pile_checks
from ..composition.pile_families import FAMILIES, WITHOUT_DERIVATIVE, WITHOUT_INFINITIES

VECTORS = [
    ((3, 0, 4, 1), (2, 5, 3, 0)),
    ((0, 0), (3, 0)),
    ((0, 0, 0), (0, 0, 0)),
    ((1,), (4,)),
    ((5, 5, 5), (5, 1, 9)),
    ((0, 2, 6), (1, 0, 3)),
    ((1, 1), (1, 1)),
    ((), ()),
    ((70, 1, 0, 2), (33, 2, 4, 0)),
    ((2, 31, 32, 33), (64, 1, 0, 7)),
]
LIKELY = [6, 3, 1, 2, 4, 4, 2, 0.4, 0.6, 0.4]  # the last ones take numpy long


# ---- operations: (name, what the array must be, what is done to it)


def bounded(x):
    """So that numbers neither grow nor vanish."""
    return pnp.sin(x) if x.dtype.kind == "f" else x


def rowwise(x):
    """Each row as a vector; -1 has no answer where there are none."""
    return x.reshape(x.shape[0], math.prod(x.shape[1:]))


def above(x):
    return pnp.concatenate([pnp.ones((1, *x.shape[1:]), x.dtype), x])


def scanned(x, rng):
    reverse = rng.random() < 0.5
    which = rng.randrange(2)
    start = pnp.zeros(x.shape[1:], x.dtype)
    return lax.scan(lambda c, r: (pnp.sin(c * 0.5 + r), c + r), start, x, reverse=reverse)[which]


def branched(x, rng):
    return lax.cond(x.sum() > 0.3, lambda v: v * 1.5, lambda v: pnp.flip(v, 0) - 1, x)


def turned(x, rng):
    return lax.fori_loop(0, 2, lambda i, c: pnp.sin(c) + x * i, x)


def gathered(x, rng):
    x = above(x)
    at = (pnp.arange(3) * 7 + rng.randrange(5)) % x.shape[0]
    return x[at]


def permuted(x, rng):
    key = pnp.argsort(rowwise(x).sum(1)) if rng.random() < 0.5 else None
    order = pnp.arange(x.shape[0]) * 3 % (x.shape[0] + 1) if key is None else key
    return pnp.take(x, order, axis=0, mode="clip")


def added(x, rng):
    k = rng.randrange(2, 5)
    return pnp.zeros((k, *x.shape[1:]), x.dtype).at[pnp.arange(x.shape[0]) % k].add(x)


def windowed(x, rng):
    k = rng.randrange(2, 4)
    ones = (1,) * (x.ndim - 1)
    if rng.random() < 0.5:
        return lax.reduce_window(x, -np.inf, lax.max, (k, *ones), (1, *ones), "SAME")
    return lax.reduce_window(
        x, 0.0, lax.add, (k, *ones), (k, *ones), [(0, k - 1)] + [(0, 0)] * len(ones)
    )


def padded(x, rng):
    lo, hi, inside = rng.randrange(-1, 3), rng.randrange(0, 3), rng.randrange(0, 2)
    if lo < 0:
        x = above(x)
    return lax.pad(x, 2.0, ((lo, hi, inside), *((0, 0, 0),) * (x.ndim - 1)))


def mapped(x, rng):
    f = rng.choice([lambda r: pnp.sin(r) * r.sum(), lambda r: pnp.cumsum(r.reshape(-1)), pnp.sum])
    return plait.vmap(f)(x)


def moved(x, rng):
    return rng.choice([
        lambda v: v[1:], lambda v: v[:-1], lambda v: v[::2], lambda v: v[::-1],
        lambda v: v[: v.shape[0] // 2], lambda v: v[v.shape[0] // 2 :], lambda v: v[-2:],
        lambda v: pnp.roll(v, 1, 0), lambda v: pnp.repeat(v, 2, 0), lambda v: above(v),
        lambda v: pnp.tile(v, (2,) + (1,) * (v.ndim - 1)), lambda v: v[1::3],
        lambda v: pnp.diff(above(v), axis=0),
    ])(x)  # fmt: skip


def accumulated(x, rng):
    return rng.choice([
        lambda v: pnp.cumsum(v, 0) / 9, lambda v: lax.cumsum(v, 0, reverse=True) / 9,
        lambda v: lax.cummax(v, 0), lambda v: lax.cumlogsumexp(v, 0, reverse=True),
        lambda v: pnp.cumprod(pnp.cos(v) * 0.9, 0), lambda v: pnp.sort(v, 0),
        lambda v: lax.associative_scan(pnp.maximum, v), lambda v: nn.softmax(v, 0),
        lambda v: pnp.cumsum(v, -1),
    ])(x)  # fmt: skip


def reduced(x, rng):
    axis = rng.randrange(x.ndim)
    return rng.choice([
        lambda v: v.sum(axis), lambda v: pnp.max(v, axis, initial=-3.0),
        lambda v: pnp.prod(pnp.cos(v), axis), lambda v: nn.logsumexp(above(v), 0),
        lambda v: (v**2).sum(axis) / (1 + v.shape[axis]), lambda v: v.sum(),
        lambda v: pnp.argmax(above(v), 0) * 0.25, lambda v: pnp.any(v > 1, axis) * 1.0,
    ])(x)  # fmt: skip


def shaped(x, rng):
    return rng.choice([
        lambda v: v.reshape(-1), lambda v: v.T, lambda v: v[None], lambda v: v[:, None],
        rowwise, lambda v: pnp.broadcast_to(v, (2, *v.shape)),
        lambda v: v.T.reshape(-1), lambda v: pnp.moveaxis(v, 0, -1),
    ])(x)  # fmt: skip


def sized(x, rng):
    n = x.shape[0]
    return rng.choice([
        lambda: pnp.arange(n) * 0.1, lambda: pnp.ones((n, 2)) * x.sum(),
        lambda: pnp.linspace(0.0, 1.0, n), lambda: x * n, lambda: x / (1 + pnp.asarray(n)),
        lambda: pnp.eye(n) * 2, lambda: pnp.arange(n * 2) * 0.1,
        lambda: pnp.zeros(n // 2) + x.sum(),
    ])()  # fmt: skip


def crossed(x, y, rng):
    """Two arrays, of any sizes, as vectors or matrices of four columns."""
    a, b = tall(*x), tall(*y)
    return rng.choice([
        lambda: a @ b.T / 3, lambda: pnp.concatenate([a, b]), lambda: nn.softmax(a @ b.T, -1) @ b,
        lambda: (a @ b.T).sum(rng.randrange(2)) / 3, lambda: a[:, None] * b,
        lambda: a.T @ a + b.T @ b,
        lambda: pnp.concatenate([b, a, b]), lambda: pnp.einsum("nd,md->mn", a, pnp.cos(b)),
        lambda: a * b.sum(0), lambda: (a @ b.T) @ (b @ a.T) / 9, lambda: a @ pnp.sin(b.T @ b),
        lambda: pnp.where(a > 0, a, b.sum()), lambda: pnp.outer(a[:, 0], b[:, 1]),
        lambda: pnp.take(above(b), pnp.arange(a.shape[0]), axis=0, mode="clip") * a,
        lambda: plait.vmap(lambda r: pnp.sin(b @ r).sum())(a),
        lambda: lax.cond(a.sum() > b.sum(), lambda: a * 2, lambda: a + b.sum()),
        lambda: above(b).at[pnp.arange(a.shape[0])].add(a, mode="drop"),
    ])()  # fmt: skip


def tall(x, is_tall):
    """[?, 4]"""
    if is_tall:
        return x
    v = x.reshape(-1) if x.ndim else x[None]
    return v[:, None] * pnp.array([1.0, 0.5, -0.5, 0.25], v.dtype)


# ---- families: operations on arrays of the types that they ask for

ROUNDED = {
    "bfloat16", "float16", "bitcast", "sum bfloat16", "isclose", "gamma", "poisson", "binomial",
    "unwrap",
}  # fmt: skip
"""Whose results are other ones where an operand has another last bit."""
SINGULAR = {"norm", "norm other"}
"""Whose derivative is nan at zero, which is what convolutions make of nothing; and what zeros times
nan are depends on who multiplies."""
UNSAID = {"linear solve"}
"""Whose programs numpy is not told how to put together."""
FINITE = WITHOUT_INFINITIES | {
    "cholesky", "solve", "solve of each", "triangular solve", "inverse", "det", "slogdet", "lu",
    "qr", "qr of rows", "eigenvalues", "eigenvectors", "singular values", "singular vectors",
    "fft", "fft back", "rfft", "irfft", "fft other", "attention causal",
    "convolve", "convolve same", "while each", "while in while", "while of a constant",
}  # fmt: skip
"""Families of programs without infinities.

Loops would never end.  Scipy refuses them, or mixes them among all results.  The reference of
attention leaves out keys that a query does not see; programs weigh them by 0, and get nan for
infinities.  The kernel of a convolution is the shorter operand: the compiler chooses what its nan
and padding make."""


def of_kind(kind, rows, w, numbers, key):
    """An array of a type of `pile_families`, made of what there is; `rows` are three [?, 4]."""
    shape, _, dtype = kind.partition(":")
    if shape == "key":
        return key
    first, *rest = shape.split()
    named = dict(zip("nml", rows))
    if first in ("all", "each"):
        x = pnp.resize(w if first == "all" else numbers, tuple(map(int, rest)))
    elif first not in named:  # the ragged axis is not in front
        x = pnp.stack([named[rest[0]] * (i + 1) for i in range(int(first))])
    elif not rest:
        x = named[first][:, 1]
    elif rest[-1] in named:
        x = named[first] @ named[rest[-1]].T
    else:
        widths = tuple(map(int, rest))
        x = named[first][:, np.arange(math.prod(widths)) % 4]
        x = x.reshape((x.shape[0], *widths))
    return (x * 7).astype(dtype) if dtype else x


def numbers_of(out):
    """A real array of what a family returns."""
    found = [v for v in plait.tree.leaves(out) if hasattr(v, "dtype")]
    v = found[-1]
    v = pnp.real(v) + pnp.imag(v) if v.dtype.kind == "c" else v
    return pnp.where(pnp.isfinite(v), v, 0) if v.dtype.kind == "f" else v


# ---- programs

ALONE = {
    "scan": (scanned, 1), "cond": (branched, 1), "loop": (turned, 0), "gather": (gathered, 1),
    "permute": (permuted, 1), "scatter": (added, 1), "window": (windowed, 1), "pad": (padded, 1),
    "map": (mapped, 1), "move": (moved, 1), "accumulate": (accumulated, 1), "reduce": (reduced, 1),
    "shape": (shaped, 2), "size": (sized, 1),
}  # fmt: skip
ROWS = ("scan", "cond", "loop", "gather", "permute", "window", "pad", "move")  # other rows, or none
WEIGHTS = {"move": 4, "accumulate": 3, "reduce": 3, "shape": 3, "size": 2, "loop": 0.5, "scan": 1}


def program(seed, length, backwards=True, infinite=False, without=()):
    """A function of two arrays, [n, 4] and [m, 4], a vector of each example, a matrix of all, and
    a key of each; it returns a number and some arrays."""
    names = [q for q in FAMILIES if q not in ROUNDED and q.partition(" ")[2] not in ROUNDED]
    names = [q for q in names if not (backwards and q in WITHOUT_DERIVATIVE) and q not in UNSAID]
    names = [q for q in names if not (backwards and q in SINGULAR)]
    names = [q for q in names if not (infinite and q in FINITE) and q not in without]

    def f(x, y, k, w, key):
        rng = random.Random(seed)
        # each with whether it is [?, 4]: a program must not ask for sizes that differ
        made, loss = [(x, True), (y, True), (k, False), (x, True), (y, True)], []
        for i in range(length):
            kind, is_tall = rng.random(), False
            if kind < 0.35:
                g, *kinds = FAMILIES[rng.choice(names)]
                rows = [tall(*rng.choice(made)) for _ in range(3)]
                given = [of_kind(q, rows, w, k, plait.random.fold_in(key, i)) for q in kinds]
                twins = [rows[0] * 0.5 - 1 if j and q == kinds[0] == "n 4" else v
                         for j, (q, v) in enumerate(zip(kinds, given))]  # fmt: skip
                out = numbers_of(g(*twins))
            elif kind < 0.6:
                out = crossed(rng.choice(made), rng.choice(made), rng)
            else:
                names_alone = list(ALONE)
                name = rng.choices(names_alone, [WEIGHTS.get(q, 1) for q in names_alone])[0]
                g, ndim = ALONE[name]
                v, is_tall = rng.choice(made)
                if v.ndim < ndim:
                    v, is_tall = tall(v, is_tall), True
                out = g(v, rng)
                is_tall = is_tall and name in ROWS and out.ndim == 2
            out = bounded(out.astype(x.dtype))
            if rng.random() < 0.8 and out.ndim <= 2:
                made.append((out, is_tall))
            loss.append(pnp.sum(out * 0.7))
        return sum(loss), [v for v, _ in made[-3:]]

    return f


def given(seed, vector, infinite=False):
    """(rows of x, rows of y, of each, shared, keys); `infinite`: some numbers are none."""
    rng = np.random.default_rng(seed)
    ns, ms = vector

    def drawn(n):
        x = rng.standard_normal((n, 4))
        special = rng.choice([np.inf, -np.inf, np.nan], x.shape)
        return np.where(rng.random(x.shape) < 0.1 * infinite, special, x)

    xs, ys = [drawn(n) for n in ns], [drawn(m) for m in ms]
    keys = rng.integers(0, 2**32, (len(ns), 2), dtype="uint32")
    return xs, ys, rng.standard_normal((len(ns), 6)), rng.standard_normal((4, 4)) / 2, keys


def pile_of(rows):
    if rows:
        return plait.Pile.from_list(rows)
    return plait.Pile(pnp.zeros((0, 4), "float64"), pnp.zeros(0, "int32"))


def poisoned(pile, seed):
    """With garbage beyond the last row."""
    rows, lengths = plait.tree.leaves(pile)
    bad = np.array(rows)
    bad[int(np.asarray(lengths).sum()) :] = np.random.default_rng(seed).choice(
        [np.nan, 1e30, np.inf, -np.inf, 0]
    )
    return plait.tree.unflatten(plait.tree.structure(pile), [pnp.asarray(bad), lengths])


# ---- ways: (what is done to all examples, what to one, how they are compared)

AXES = (plait.pile_axis, plait.pile_axis, 0, None, 0)
WRT = (0, 1, 2, 3)


def keyed(f):
    """With a key for the words of one."""
    return lambda x, y, k, w, words: f(x, y, k, w, plait.random.wrap_key_data(words))


def alone(f):
    return lambda *args: f(*args)[0]


def each(of_one):
    """The same function, mapped; and for one."""
    return lambda f: (plait.vmap(of_one(f), AXES, plait.pile_axis), of_one(f))


def gradients(f):
    return plait.value_and_grad(f, WRT, has_aux=True)


def second(f):
    def along(x, *rest):
        slope = plait.grad(lambda v: f(v, *rest)[0])
        return plait.jvp(slope, (x,), (pnp.cos(x),))[1]

    return along


def around(f, wrap=lambda g: g):
    """The gradient of the sum over all examples."""

    def total(*args):
        return plait.vmap(alone(f), AXES)(*args).sum()

    return plait.grad(wrap(total), WRT), plait.grad(alone(f), WRT)


def of_two_matrices(f):
    def of_one(x, y, k, w, words):
        return f(x, y, k, w, words)[0] + f(x, y, k, w.T * 0.5, words)[0]

    return of_one


def in_a_scan(f):
    """With two matrices, one after the other, and the gradient with respect to a pile."""

    def total(x, y, k, w, words):
        g = plait.vmap(alone(f), AXES)
        step = lambda c, m: (c + g(x, y, k, m, words).sum(), None)
        return lax.scan(step, np.float64(0), pnp.stack([w, w.T * 0.5]))[0]

    return plait.grad(total, WRT), plait.grad(of_two_matrices(f), WRT)


def in_a_map(f):
    """Over two matrices."""
    two = lambda w: pnp.stack([w, w.T * 0.5])
    g = plait.vmap(alone(f), AXES)
    mapped = lambda x, y, k, w, words: plait.vmap(lambda m: g(x, y, k, m, words), out_axes=1)(
        two(w)
    )
    of_one = lambda x, y, k, w, words: plait.vmap(lambda m: f(x, y, k, m, words)[0])(two(w))
    return mapped, of_one


def devices():
    return plait.make_mesh((2,), ("d",))


def a_matrix_each(f):
    """Two devices, which both have all examples, and each has a matrix of its own."""

    def total(x, y, k, w, words):
        mine = lambda x, y, k, m, words: plait.vmap(alone(f), AXES)(x, y, k, m[0], words)[None]
        specs = P(), P(), P(), P("d"), P()
        g = plait.shard_map(mine, mesh=devices(), in_specs=specs, out_specs=P("d"))
        return g(x, y, k, pnp.stack([w, w.T * 0.5]), words).sum()

    return plait.grad(total, WRT), plait.grad(of_two_matrices(f), WRT)


def gradients_on_each(f):
    """The same, with the gradients made there: of a loss that differs from device to device, with
    respect to what does not, they are those of the sum of all losses."""

    def total(x, y, k, w, words):
        def mine(x, y, k, m, words):
            of_all = plait.vmap(alone(f), AXES)
            loss = lambda x, y, k: of_all(x, y, k, m[0], words).sum() + 0 * m.sum()
            return plait.grad(loss, WRT[:3])(x, y, k)

        specs = P(), P(), P(), P("d"), P()
        g = plait.shard_map(mine, mesh=devices(), in_specs=specs, out_specs=P())
        return g(x, y, k, pnp.stack([w, w.T * 0.5]), words)

    return total, plait.grad(of_two_matrices(f), WRT[:3])


def half_of_the_examples_each(f):
    """Two devices, which have half of the examples each; all, if they cannot be halved."""

    def total(x, y, k, w, words):
        def mine(x, n, y, m, *rest):
            piles = plait.Pile.from_padded(x, n), plait.Pile.from_padded(y, m)
            return plait.vmap(alone(f), AXES)(*piles, *rest)

        to = P() if len(words) % 2 or not len(words) else P("d")
        g = plait.shard_map(
            mine, mesh=devices(), in_specs=(to, to, to, to, to, P(), to), out_specs=to
        )
        return g(x.to_padded(), x.lengths, y.to_padded(), y.lengths, k, w, words).sum()

    return plait.grad(total, WRT), plait.grad(alone(f), WRT)


SHARED_SUMS = {"gradients outside", "checkpoint", "jit", "scan", "shard_map", "shard_map, halves"}
"""The ways in which what all share has one gradient, of all examples."""
COMPILED = {"shard_map", "shard_map inside", "shard_map, halves"}
"""The ways that are compiled always: numpy has no devices."""
CLIPPED = {"custom vjp"}
"""What clips cotangents: those of what devices share are added up before, and not afterwards."""

WAYS = {
    "values": (each(lambda f: f), 4),
    "gradients inside": (each(gradients), 5),
    "gradients outside": (around, 4),
    "jit inside": (each(lambda f: gradients(plait.jit(f))), 1),
    "checkpoint inside": (each(lambda f: gradients(plait.checkpoint(f))), 1),
    "checkpoint": (partial(around, wrap=plait.checkpoint), 1),
    "jit": (partial(around, wrap=plait.jit), 0.5),
    "second derivatives": (each(second), 1.5),
    "scan": (in_a_scan, 1),
    "map": (in_a_map, 0.7),
    "shard_map": (a_matrix_each, 0.2),
    "shard_map inside": (gradients_on_each, 0.2),
    "shard_map, halves": (half_of_the_examples_each, 0.2),
}


# ---- both sides


def gathered_at_once(x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, **promises):
    """`gather` in numpy: what the oracle does one index after the other."""
    n = dimension_numbers
    lead = indices.shape[:-1]
    dropped = (*n.collapsed_slice_dims, *n.operand_batching_dims)
    kept = [a for a in range(x.ndim) if a not in dropped]
    inside, at = np.ones(lead, bool), []
    for a, size in enumerate(slice_sizes):
        start = np.zeros(lead, np.int64)
        if a in n.start_index_map:
            start = indices[..., n.start_index_map.index(a)].astype(np.int64)
            room = x.shape[a] - size
            inside &= (start >= 0) & (start <= room)
            start = np.clip(start, 0, room)
        elif a in n.operand_batching_dims:
            d = n.start_indices_batching_dims[n.operand_batching_dims.index(a)]
            start = start + np.arange(lead[d]).reshape(
                [-1 if i == d else 1 for i in range(len(lead))]
            )
        window = [size if a == b else 1 for b in kept]
        at.append(start.reshape(*lead, *[1] * len(kept)) + np.arange(size).reshape(window or ()))
    out = x[tuple(at)]
    if mode == FILL:
        missing = OUTSIDE(x.dtype) if fill_value is None else fill_value
        out = np.where(inside.reshape(*lead, *[1] * len(kept)), out, np.asarray(missing, x.dtype))
    others = [i for i in range(out.ndim) if i not in n.offset_dims]
    return np.moveaxis(out, range(out.ndim), [*others, *n.offset_dims])


def remainder_at_once(x, y):
    return np.fmod(x, y) if x.dtype.kind == "i" and np.all(y > 0) else None


def quotient_at_once(x, y):
    return (x - np.fmod(x, y)) // y if x.dtype.kind == "i" and np.all(y > 0) else None


def hashed_at_once(k1, k2, x1, x2):
    """Threefry-2x32 of all words at once, in numpy's uint32, whose sums wrap."""
    keys = k1, k2, k1 ^ k2 ^ np.uint32(0x1BD11BDA)
    a, b = x1 + k1, x2 + k2
    for i in range(5):
        for r in ((13, 15, 26, 6), (17, 29, 16, 24))[i % 2]:
            a = a + b
            b = (b << np.uint32(r) | b >> np.uint32(32 - r)) ^ a
        a, b = a + keys[(i + 1) % 3], b + keys[(i + 2) % 3] + np.uint32(i + 1)
    return [a, b]


FAST = {
    "core.gather": gathered_at_once,
    "core.threefry2x32": hashed_at_once,
    "core.rem": remainder_at_once,
    "core.div": quotient_at_once,
    "autodiff.name": lambda x, name: x,
}
"""What the oracle does element after element; None: it is asked."""


class Expanding(ArrayOracle):
    """numpy, which knows operations on piles by what they say with other operations."""

    def apply(self, prim, args, params):
        fast = FAST.get(prim.name)
        out = fast and fast(*map(as_array, args), **params)
        if out is not None:
            return out
        if all_references().get(prim.name) is not None:
            return super().apply(prim, args, params)
        expand = expand_rules.find(prim)
        if expand is None:  # a checkpoint is what it applies; of a custom rule that comes last
            programs = programs_in(params)
            if programs:
                return evaluate(programs[-1], args)
            with use(self):  # the linear map of a custom rule is its transposed pullback
                return eager_rules.find(prim)([as_value(a) for a in args], params)  # type: ignore[misc]
        says = partial(expand, **params)
        listed = says if prim.many else lambda *xs: [says(*xs)]
        outs = evaluate(staged(listed, [as_value(a).aval for a in args]), args)
        return outs if prim.many else outs[0]


def as_array(x):
    return x.numpy() if isinstance(x, Array) else np.asarray(x)


class Opened:
    """A pile as an array with padding, and the shapes of examples."""

    def __init__(self, pile):
        shape = lambda v: pnp.stack([pnp.asarray(d, "int32") for d in (*v.shape, 0)])
        self.padded, self.shapes = pile.to_padded(), plait.vmap(shape, plait.pile_axis)(pile)

    def to_list(self):
        pairs = zip(self.padded, self.shapes, strict=True)
        return [x[tuple(map(slice, shape[:-1]))] for x, shape in pairs]


def is_pile(v):
    return isinstance(v, plait.Pile)


def numbers_in(program):
    """Return how many numbers the equations of a program make, those of programs inside once."""
    made = 0
    for e in program.eqns:
        sizes = [v.aval.size for v in e.outputs]
        made += sum(n for n in sizes if n.__class__ is int)  # a size by name is counted as none
        made += sum(map(numbers_in, programs_in(e.params)))
    return made


def in_numpy(f, args, of=None):
    """The leaves of what f returns, computed by numpy; `of` keeps programs by the shapes of
    arguments."""
    shapes = tuple([np.shape(a) for a in plait.tree.leaves(args)])
    if of is None or shapes not in of:
        opened = []

        def flat(*xs):
            found = plait.tree.leaves(f(*xs), is_leaf=is_pile)
            opened[:] = [Opened(v) if is_pile(v) else v for v in found]
            return [
                u for v in opened for u in ((v.padded, v.shapes) if isinstance(v, Opened) else (v,))
            ]

        made = laid_out(plait.make_program(flat)(*args)), opened
        if numbers_in(made[0]) > NUMBERS:
            raise MemoryError
        if of is not None:
            of[shapes] = made
    else:
        made = of[shapes]
    program, opened = made
    leaves = [np.asarray(v) for v in plait.tree.leaves(args)]
    with use(Expanding()), np.errstate(all="ignore"):
        got = iter([as_array(v) for v in evaluate(program, leaves)])
    out = []
    for v in opened:
        if isinstance(v, Opened):
            v.padded, v.shapes = next(got), next(got)
        out.append(v if isinstance(v, Opened) else next(got))
    return out


def of_known_lengths(f, *piles):
    """The same function of the rows of these piles, and of other arguments."""
    leaves = [plait.tree.leaves(p) for p in piles]
    kinds = [plait.tree.structure(p) for p in piles]

    def of_rows(*args):
        made = [
            plait.tree.unflatten(kind, [rows, *lengths])
            for kind, rows, (_, *lengths) in zip(kinds, args, leaves)
        ]
        return f(*made, *args[len(piles) :])

    return of_rows, [rows for rows, *_ in leaves]


def run_as_it_is(f, args, how):
    """The leaves of a result for all examples, by numpy, compiled, or operation by operation."""
    if how == "numpy":
        return in_numpy(f, args)
    f = plait.jit(f, tier="fast") if how == "jit" else f
    return plait.tree.leaves(f(*args), is_leaf=is_pile)


def check(seed, length, how=None, way=None, vector=None):
    """Raise AssertionError if the pile differs from the loop; (way, how, whether lengths are known,
    vector) that were taken if they were not given."""
    rng = random.Random(seed)
    way = way or rng.choices(list(WAYS), [w for _, w in WAYS.values()])[0]
    vector = vector or rng.choices(VECTORS, LIKELY)[0]
    how = how or ("numpy" if seed % 8 else "jit" if length > 3 or seed % 16 else "eager")
    how = "jit" if way in COMPILED else how
    known = rng.random() < 0.5
    infinite = way == "values" and seed % 3 == 0
    f = keyed(program(seed, length, way != "values", infinite, CLIPPED if way in COMPILED else ()))
    xs, ys, k, w, words = given(seed, vector, infinite)
    of_all, of_one = WAYS[way][0](f)
    piles = [poisoned(pile_of(v), seed) for v in (xs, ys)]
    if known:
        of_all, piles = of_known_lengths(of_all, *piles)
    programs = {}
    each = [tuple(map(pnp.asarray, (x, y, a, w, b))) for x, y, a, b in zip(xs, ys, k, words)]
    try:
        got = run_as_it_is(of_all, (*piles, *map(pnp.asarray, (k, w, words))), how)
    except MissingRule as e:
        assert each and all(_refused(of_one, args, how, e) for args in each), e
        return way, how, known, vector
    want = [in_numpy(of_one, args, programs) for args in each]
    columns = list(zip(*want))
    found = [v.to_list() if hasattr(v, "to_list") else np.asarray(v) for v in got]
    if not want:
        assert all(len(v) == 0 for v in found if np.shape(v) != (4, 4)), found
        return way, how, known, vector
    # what families make of float32 is rounded so: random numbers by numpy and by XLA, products in
    # another order
    narrow = any("f32[" in str(made) for made, _ in programs.values())
    tolerance = 1e-4 if narrow else 1e-6
    for i, (g, column) in enumerate(zip(found, columns, strict=True)):
        if way in SHARED_SUMS and i == 3:
            g, column = [g], [sum(np.asarray(c) for c in column)]  # of what all share
        for b, (v, one) in enumerate(zip(g, column, strict=True)):
            one = np.asarray(one)
            told = f"result {i} of example {b}, {way}, {how}, {vector}"
            assert v.shape == one.shape and v.dtype == one.dtype, (told, v.shape, one.shape)
            np.testing.assert_allclose(v, one, rtol=tolerance, atol=tolerance / 10, err_msg=told)
    return way, how, known, vector


def _refused(of_one, args, how, error):
    """Return whether an example alone is refused in the same words."""
    try:
        run_as_it_is(of_one, args, how)
    except MissingRule as e:
        return e.what == error.what
    return False


def check_families(special):
    """All families at all vectors; the number of those that fail."""
    failed = 0
    for name, (f, *kinds) in FAMILIES.items():
        if special and name in WITHOUT_INFINITIES:
            continue
        for of, vector in pile_checks.VECTORS.items():
            backwards = not special and name not in WITHOUT_DERIVATIVE
            try:
                pile_checks.check(f, kinds, vector, gradient=backwards, special=special)
            except Exception as e:
                failed += 1
                print(f"{name!r} of {of!r}: {type(e).__name__}: {str(e)[:400]}", flush=True)
    return failed


ROOM, SECONDS, NUMBERS = 6 << 30, 3, 6 * 10**6
"""Bounds of the memory of the process, of the processor time of a program, and of the numbers that
its equations make.  A program beyond one of them, such as one with sizes of sizes, is given up."""


class Late(Exception):
    pass


def late(*_):
    raise Late


def in_a_fresh_process(a, seed, count, minutes, so_far):
    """Go on there: of what is compiled an alarm ends the waiting, and not the computing; all that
    came later would wait for it."""
    sys.stdout.flush()
    signal.setitimer(signal.ITIMER_PROF, 0)  # it would ring before there is a handler again
    given = {"--seed": seed, "--count": count, "--minutes": minutes, "--length": a.length}
    given |= {"--way": a.way, "--how": a.how}
    told = [str(w) for k, v in given.items() if v is not None for w in (k, v)]
    told += ["--so-far", *map(str, so_far)]
    os.execv(sys.executable, [sys.executable, "-m", "tests.fuzz.random_piles", *told])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--length", type=int, default=0, help="of each program; by default any")
    parser.add_argument("--way", choices=WAYS, help="by default any")
    parser.add_argument("--how", choices=["numpy", "jit", "eager"], help="by default any")
    parser.add_argument("--families", action="store_true", help="the families, nothing random")
    parser.add_argument("--so-far", type=int, nargs=3, default=(0, 0, 0), help=argparse.SUPPRESS)
    a = parser.parse_args()
    warnings.simplefilter("ignore")
    plait.config.cpu_devices = 2
    signal.signal(signal.SIGPROF, late)
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    if a.families:
        raise SystemExit(check_families(False) + check_families(True) > 0)
    end, (run, failed, large) = time.monotonic() + 60 * a.minutes, a.so_far
    for seed in range(a.seed, a.seed + a.count):
        if time.monotonic() > end:
            break
        length = a.length or random.Random(seed).randrange(1, 21)
        run += 1
        if run % 50 == 0:
            plait.clear_caches()  # the kernel allows a process some 65,000 mappings of memory
        signal.setitimer(signal.ITIMER_PROF, SECONDS, SECONDS)  # again, if a destructor took it
        try:
            check(seed, length, a.how, a.way)
        except MemoryError:
            large += 1
        except Late:
            minutes, count = (end - time.monotonic()) / 60, a.seed + a.count - seed - 1
            in_a_fresh_process(a, seed + 1, count, minutes, (run, failed, large + 1))
        except Exception as e:
            exhausted = "RESOURCE_EXHAUSTED" in str(e)  # what the runtime says of `ROOM`
            large, failed = large + exhausted, failed + (not exhausted)
            if not exhausted:
                told = f"{type(e).__name__}: {str(e)[:400]}"
                print(f"--seed {seed} --length {length}: {told}", flush=True)
            if a.count == 1:
                traceback.print_exc()
        if run % 500 == 0:
            print(f"{run} programs, {failed} failed, {large} too large", flush=True)
    signal.setitimer(signal.ITIMER_PROF, 0)
    print(f"{run} programs from seed {a.seed}, {failed} failed, {large} too large")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
