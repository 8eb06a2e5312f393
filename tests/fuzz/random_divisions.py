"""Random operations on operands that are divided over devices, at random, against the same
undivided.

Run as a script, `python -m tests.fuzz.random_divisions`, it goes on for `--minutes`, from a seed
that it prints, and says what differs; `--seed S --count 1` runs one again, and `--only NAMES` some
of the families.  The compiler ends the process for some divisions that it mistakes, so each block
of seeds runs in a process of its own.

Invariant: a program and its division follow from the seed and the family alone.
"""

import os
import random
import sys
import traceback

import numpy as np

import plait
import plait.numpy as pnp
from plait import lax

from .random_convolutions import (
    MESHES,
    check_alone,
    check_convolution,
    check_examples,
    divided,
    expect_close,
    numbers,
)
from .seeds import options, seeds

WAYS = ("operands", "operands and results", "constraints")


def some(r, low=1, high=3):
    return numbers(r, *[r.choice([2, 3, 4, 6, 8, 12]) for _ in range(r.randint(low, high))])


def axis(r, x):
    return r.randrange(x.ndim)


def indices(r, n, *shape):
    return np.random.default_rng(r.getrandbits(32)).integers(0, n, shape).astype(np.int32)


def matrices(r):
    n = r.choice([2, 4, 8])
    stack = [r.choice([2, 4, 6])] * r.randint(0, 1)
    return numbers(r, *stack, n, n) * 0.1 + 2 * np.eye(n, dtype=np.float32), stack, n


def window(r, shape):
    """Keywords of a reduction by windows."""
    return dict(
        window_dimensions=[min(n, r.choice([1, 1, 2, 3])) for n in shape],
        window_strides=[r.choice([1, 1, 2, 3]) for _ in shape],
        padding=[(r.randint(0, 2), r.randint(0, 2)) for _ in shape],
    )


# ---- families: r -> (function, operands) -----------------------------------------------------


def sorting(r):
    x, k = some(r), r.randrange(3)
    a = axis(r, x)
    return [
        lambda x: pnp.sort(x, a), lambda x: pnp.argsort(x, a), lambda x: lax.top_k(x, 2)
    ][k], [x]  # fmt: skip


def cumulative(r):
    x, reverse = some(r), r.random() < 0.5
    f, a = r.choice([lax.cumsum, lax.cummax, lax.cumprod, lax.cumlogsumexp]), axis(r, x)
    return lambda x: f(x, a, reverse), [x]


def associative(r):
    x = some(r)
    a = axis(r, x)
    return lambda x: lax.associative_scan(pnp.add, x, axis=a), [x]


def reductions(r):
    x = some(r)
    f, a = r.choice([pnp.sum, pnp.prod, pnp.max, pnp.var, pnp.argmax, pnp.median]), axis(r, x)
    return lambda x: f(x, a), [x]


def sums_of_windows(r):
    x = some(r)
    how = window(r, x.shape)
    if r.random() < 0.5:
        how["base_dilation"] = [r.choice([1, 2]) for _ in x.shape]
        how["window_dilation"] = [r.choice([1, 2]) for _ in x.shape]
        how["padding"] = [(a + 2, b + 2) for a, b in how["padding"]]
    return lambda x: lax.reduce_window(x, 0.0, lax.add, **how), [x]


def maxima_of_windows(r):
    x = some(r)
    how = window(r, x.shape)
    f = lambda x: lax.reduce_window(x, -np.inf, lax.max, **how)  # noqa: E731
    return (f if r.random() < 0.3 else plait.grad(lambda x: (f(x) ** 2).sum())), [x]


def maxima_of_each(r):
    x = some(r, 2)
    how = window(r, x.shape[1:])
    f = lambda x: (lax.reduce_window(x, -np.inf, lax.max, **how) ** 2).sum()  # noqa: E731
    return plait.vmap(plait.grad(f)), [x]


def transforms(r):
    x, count = some(r), r.randint(1, 3)
    axes = tuple(range(max(-count, -x.ndim), 0))
    a = axis(r, x)
    return r.choice([
        lambda x: pnp.fft.ifftn(pnp.fft.fftn(x, axes=axes) * 2, axes=axes),
        lambda x: abs(pnp.fft.rfft(x, axis=a)),
        lambda x: pnp.fft.irfft(pnp.fft.rfft(x, axis=a) * 2, n=x.shape[a], axis=a),
        plait.grad(lambda x: (abs(pnp.fft.fftn(x, axes=axes)) ** 2).sum()),
    ]), [x]  # fmt: skip


def padding(r):
    x = some(r)
    config = [(r.randint(-1, 3), r.randint(-1, 3), r.choice([0, 0, 1, 2])) for _ in x.shape]
    return lambda x: lax.pad(x, 1.5, config), [x]


def joining(r):
    x = some(r)
    a = axis(r, x)
    y = numbers(r, *[r.choice([1, 2, 3, 4, 8]) if i == a else n for i, n in enumerate(x.shape)])
    return lambda x, y: pnp.concatenate([x, y, x], a), [x, y]


def turning(r):
    x, k = some(r), r.randint(-5, 5)
    a = axis(r, x)
    f = r.choice(
        [lambda x: pnp.flip(x, a), lambda x: pnp.roll(x, k, a), lambda x: pnp.repeat(x, 2, a)]
    )
    return f, [x]


def slices(r):
    x = some(r)
    starts = [r.randrange(n) for n in x.shape]
    limits = [r.randint(s + 1, n) for s, n in zip(starts, x.shape)]
    strides = [r.choice([1, 2, 3]) for _ in x.shape]
    return lambda x: lax.slice(x, starts, limits, strides), [x]


def reading_at(r):
    """At positions that may lie outside."""
    x = some(r)
    sizes, at = [r.randint(1, n) for n in x.shape], indices(r, 19, x.ndim) - 9
    return lambda x, at: lax.dynamic_slice(x, list(at), sizes), [x, at]


def writing_at(r):
    x = some(r)
    y, at = numbers(r, *[r.randint(1, n) for n in x.shape]), indices(r, 19, x.ndim) - 9
    return lambda x, y, at: lax.dynamic_update_slice(x, y, list(at)), [x, y, at]


def gathering(r):
    x = some(r)
    a = axis(r, x)
    i = indices(r, x.shape[a], r.choice([2, 4, 6]))
    j = indices(r, x.shape[a], *[3 if k == a else n for k, n in enumerate(x.shape)])
    if r.random() < 0.5:
        return lambda x, i: pnp.take(x, i, a), [x, i]
    return lambda x, j: pnp.take_along_axis(x, j, a), [x, j]


def gathering_of_each(r):
    x = some(r, 2)
    i = indices(r, x.shape[1], x.shape[0], 4)
    f = lambda x, i: x[i]  # noqa: E731
    g = plait.grad(lambda x, i: (x[i] ** 2).sum())
    return plait.vmap(f if r.random() < 0.5 else g), [x, i]


def scattering(r):
    x, n = some(r), r.choice([2, 4, 6])
    how = r.choice(["add", "max", "min", "multiply"])
    i, y = indices(r, x.shape[0], n), numbers(r, n, *x.shape[1:])
    return lambda x, i, y: getattr(x.at[i], how)(y), [x, i, y]


def scattering_of_each(r):
    x = some(r, 2)
    i, y = indices(r, x.shape[1], x.shape[0], 4), numbers(r, x.shape[0], 4, *x.shape[2:])
    return plait.vmap(lambda x, i, y: x.at[i].add(y)), [x, i, y]


def factors(r):
    x, _, _ = matrices(r)
    good = lambda x: x @ pnp.swapaxes(x, -1, -2)  # noqa: E731
    return r.choice([
        lambda x: pnp.linalg.cholesky(good(x)), lambda x: abs(pnp.linalg.qr(x)[1]),
        lambda x: pnp.linalg.eigvalsh(good(x)), pnp.linalg.inv,
    ]), [x]  # fmt: skip


def solving(r):
    x, stack, n = matrices(r)
    y = numbers(r, *stack, n, r.choice([2, 4]))
    lower = lambda x, y: lax.linalg.triangular_solve(x, y, left_side=True, lower=True)  # noqa: E731
    return r.choice([lower, pnp.linalg.solve]), [x, y]


def products(r):
    x, k = some(r, 3, 3), r.choice([2, 4, 8])
    y = numbers(r, x.shape[1], x.shape[2], k)
    return lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((2,), (1,)))), [x, y]


def loops(r):
    x = some(r, 2)
    return lambda x: lax.scan(lambda c, v: (c + v, c * v), pnp.zeros(x.shape[1:]), x), [x]


FAMILIES = (
    sorting, cumulative, associative, reductions, sums_of_windows, maxima_of_windows,
    maxima_of_each, transforms, padding, joining, turning, slices, reading_at, writing_at,
    gathering, gathering_of_each, scattering, scattering_of_each, factors, solving, products, loops,
)  # fmt: skip
CONVOLUTIONS = check_alone, check_convolution, check_examples


def check(family, seed):
    """One operation of a family on divided operands, against the same on one device."""
    r = random.Random(f"{family.__name__} {seed}")
    f, args = family(r)
    want = plait.tree.leaves(plait.jit(f)(*args))
    mesh, way = plait.make_mesh(*r.choice(MESHES)), r.choice(WAYS)
    even = way != "constraints"  # only these may divide unevenly
    shardings = [divided(r, mesh, x.shape, even=even) for x in args]
    outs = [divided(r, mesh, x.shape) for x in want]
    told = lambda xs, how: list(map(plait.with_sharding_constraint, xs, how))  # noqa: E731

    def run(*xs):
        xs = told(xs, shardings) if way == "constraints" else xs
        ys = plait.tree.leaves(f(*xs))
        return told(ys, outs) if way == "operands and results" else ys

    if way != "constraints":
        args = [plait.device_put(x, s) for x, s in zip(args, shardings)]
    expect_close(plait.jit(run)(*args), want, f"{family.__name__} {seed}, {way}")


# ---- as a script ----------------------------------------------------------------------------


def checks(only):
    found = {f.__name__.removeprefix("check_"): f for f in CONVOLUTIONS}
    found |= {f.__name__: lambda seed, f=f: check(f, seed) for f in FAMILIES}
    return {n: f for n, f in found.items() if not only or n in only}


def in_a_process(start, stop, only):
    """Return whether all seeds of a block are right; print those that are not."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    wrong = 0
    for seed in range(start, stop):
        for name, f in checks(only).items():
            try:
                f(seed)
            except Exception:
                print(f"{name}, seed {seed}:\n{traceback.format_exc(limit=-3)}", flush=True)
                wrong += 1
    os._exit(min(wrong, 1))


def main():
    parser = options("run random operations on divided operands for some minutes", 1.0)
    parser.add_argument("--only", nargs="*", help="families", default=())
    given, done, bad = parser.parse_args(), 0, []
    for seed in seeds(given):
        if not in_a_process(seed, seed + 1, given.only):
            bad.append(seed)
        done += 1
    print(f"{done} seeds, wrong: {bad}")
    return bool(bad)


if __name__ == "__main__":
    plait.config.cpu_devices = 8
    sys.exit(main())
