"""Random programs over piles, against the loop over examples.

A program is a few dozen operations on arrays whose sizes are n, m, and what becomes of them (n + m,
n // 2, n * m, 2 n, n - 1, max(n, m)); it is run on one example after the other, and on the pile of
all, jitted, with garbage beyond the last row; so are its gradients.  Loops, branches and inner maps
have small programs of their own.

Run as a script it goes on for `--minutes`, from a seed that it prints, and says what differs;
`--seed S --count 1` runs one again, and `--families` all of `tests/composition/pile_families.py`,
at all vectors of lengths, with gradients.

Invariant: a program follows from its seed alone; the other side knows of no piles.
"""

import argparse
import math
import random
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

import plait
import plait.numpy as pnp
from plait import lax, nn

VECTORS = [
    ((3, 0, 40, 1), (2, 5, 35, 0)),
    ((0, 0), (3, 0)),
    ((1,), (4,)),
    ((5, 5, 5), (5, 1, 9)),
    ((70, 1, 0, 2), (33, 2, 4, 0)),
    ((2, 31, 32, 33), (64, 1, 0, 7)),
]


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


ALONE = {
    "scan": (scanned, 1), "cond": (branched, 1), "loop": (turned, 0), "gather": (gathered, 1),
    "permute": (permuted, 1), "scatter": (added, 1), "window": (windowed, 1), "pad": (padded, 1),
    "map": (mapped, 1), "move": (moved, 1), "accumulate": (accumulated, 1), "reduce": (reduced, 1),
    "shape": (shaped, 2), "size": (sized, 1),
}  # fmt: skip
ROWS = ("scan", "cond", "loop", "gather", "permute", "window", "pad", "move")  # other rows, or none
WEIGHTS = {"move": 4, "accumulate": 3, "reduce": 3, "shape": 3, "size": 2, "loop": 0.5, "scan": 1}


def program(seed, length):
    """A function of two arrays, [n, 4] and [m, 4], and a vector of each example."""

    def f(x, y, k):
        rng = random.Random(seed)
        # each with whether it is [?, 4]: a program must not ask for sizes that differ
        made, loss = [(x, True), (y, True), (k, False), (x, True), (y, True)], []
        for _ in range(length):
            if rng.random() < 0.35:
                out, is_tall = crossed(rng.choice(made), rng.choice(made), rng), False
            else:
                names = list(ALONE)
                name = rng.choices(names, [WEIGHTS.get(q, 1) for q in names])[0]
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


def given(seed, vector):
    rng = np.random.default_rng(seed)
    ns, ms = vector
    xs = [rng.standard_normal((n, 4)) for n in ns]
    ys = [rng.standard_normal((m, 4)) for m in ms]
    return xs, ys, rng.standard_normal((len(ns), 4))


def poisoned(pile, seed):
    """With garbage beyond the last row."""
    rows, lengths = plait.tree.leaves(pile)
    bad = np.array(rows)
    bad[int(np.asarray(lengths).sum()) :] = np.random.default_rng(seed).choice(
        [np.nan, 1e30, np.inf]
    )
    return plait.tree.unflatten(plait.tree.structure(pile), [pnp.asarray(bad), lengths])


def check(seed, length, gradients=True):
    """Raise AssertionError if the pile differs from the loop."""
    f = program(seed, length)
    xs, ys, k = given(seed, VECTORS[seed % len(VECTORS)])
    px, py = (poisoned(plait.Pile.from_list(v), seed) for v in (xs, ys))
    p = plait.pile_axis
    examples = [tuple(map(pnp.asarray, e)) for e in zip(xs, ys, k)]
    one = plait.value_and_grad(f, (0, 1, 2), has_aux=True) if gradients else f
    want = [plait.jit(one, tier="fast")(*e) for e in examples]
    got = plait.jit(plait.vmap(one, (p, p, 0), p), tier="fast")(px, py, pnp.asarray(k))
    leaves = plait.tree.leaves(got, is_leaf=lambda v: isinstance(v, plait.Pile))
    columns = zip(*[plait.tree.leaves(w) for w in want])
    for i, (g, column) in enumerate(zip(leaves, columns, strict=True)):
        for b, (v, w) in enumerate(zip(g.to_list(), column, strict=True)):
            w = np.asarray(w)
            assert v.shape == w.shape and v.dtype == w.dtype, (i, b, v.shape, w.shape)
            np.testing.assert_allclose(
                v, w, rtol=1e-6, atol=1e-7, err_msg=f"result {i} of example {b}"
            )


def check_families():
    """All families at all vectors; the number of those that fail."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "composition"))
    from pile_checks import VECTORS, check
    from pile_families import FAMILIES, WITHOUT_DERIVATIVE

    failed = 0
    for name, (f, *kinds) in FAMILIES.items():
        for of, vector in VECTORS.items():
            try:
                check(f, kinds, vector, gradient=name not in WITHOUT_DERIVATIVE)
            except Exception as e:
                failed += 1
                print(f"{name!r} of {of!r}: {type(e).__name__}: {str(e)[:400]}", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--length", type=int, default=0, help="of each program; by default any")
    parser.add_argument("--values", action="store_true", help="no gradients")
    parser.add_argument("--families", action="store_true", help="the families, nothing random")
    a = parser.parse_args()
    warnings.simplefilter("ignore")
    if a.families:
        raise SystemExit(check_families() > 0)
    end, run, failed = time.monotonic() + 60 * a.minutes, 0, 0
    for seed in range(a.seed, a.seed + a.count):
        if time.monotonic() > end:
            break
        length = a.length or random.Random(seed).randrange(1, 25)
        run += 1
        if run % 50 == 0:
            plait.clear_caches()  # the kernel allows a process some 65,000 mappings of memory
        try:
            check(seed, length, not a.values)
        except Exception as e:
            failed += 1
            print(
                f"--seed {seed} --length {length}: {type(e).__name__}: {str(e)[:400]}", flush=True
            )
            if a.count == 1:
                traceback.print_exc()
    print(f"{run} programs from seed {a.seed}, {failed} failed")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
