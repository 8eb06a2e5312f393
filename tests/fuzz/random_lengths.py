"""Random everyday functions of rows, over piles of known and of traced lengths, against the loop.

A function is a chain of steps, each of which one would write for one array: reads, writes, slices,
reshapes, branches on sizes, sums.  It is applied to one example after the other, and to the pile of
all in one of the `WAYS`.  What the loop refuses must be refused; where lengths are traced, a
question about sizes may be refused, too, and no result may be wrong.

Run as a script, `python -m tests.fuzz.random_lengths`, it goes on for `--minutes`, from a seed that
it prints; `--seed S --count 1` runs one again.

Invariant: a function and its examples follow from the seed alone; the loop sees no piles.
"""

import random
import sys
import traceback

import numpy as np

import plait
import plait.numpy as pnp
from plait import Capacities, Pile, lax, nn, pile_axis, vmap
from plait.checks import FailedCheckError
from plait.errors import ConcretizationError, MissingRule, UndecidedDim

from .seeds import options, seeds

STEPS = {
    "tail": lambda x: x[1:],
    "without ends": lambda x: x[1:-1],
    "head": lambda x: x[:3],
    "end": lambda x: x[-2:],
    "every other": lambda x: x[::2],
    "half": lambda x: x[: x.shape[0] // 2],
    "backwards": lambda x: x[::-1],
    "pairs": lambda x: x[::2] + x[1::2],
    "sums of pairs": lambda x: x.reshape(-1, 2, 4).sum(1),
    "long rows": lambda x: x.reshape(-1, 8)[:, :4],
    "rows of a list": lambda x: x[pnp.array([0, 2, 1])],
    "less the first": lambda x: x - x[0],
    "less the second": lambda x: x - x[1],
    "times the last": lambda x: x * x[-1],
    "write": lambda x: x.at[1].set(0.5),
    "write last": lambda x: x.at[-1].add(1.0),
    "less the greatest": lambda x: x - x.max(0),
    "less the median": lambda x: x - pnp.median(x, 0),
    "scaled": lambda x: x / (1 + pnp.ptp(x, 0)),
    "around the mean": lambda x: x - x.mean(0),
    "slopes": lambda x: pnp.gradient(x, axis=0),
    "differences": lambda x: pnp.diff(x, axis=0),
    "sorted": lambda x: pnp.sort(x, 0),
    "running": lambda x: pnp.cumsum(x, 0) / 4,
    "twice": lambda x: pnp.concatenate([x, x[:2]]),
    "padded": lambda x: pnp.pad(x, ((1, 1), (0, 0)), mode="edge"),
    "shares": lambda x: nn.softmax(x, 0),
    "by size": lambda x: x / x.shape[0],
    "branch": lambda x: x if x.shape[0] > 3 else 2 * x,
    "even": lambda x: x[::2] if x.shape[0] % 2 == 0 else x,
    "number": lambda x: x * len(x),
    "loop": lambda x: x + sum(i * r for i, r in enumerate(x)),
    "window": lambda x: lax.dynamic_slice_in_dim(x, 1, 2),
    "greatest three": lambda x: x * lax.top_k(x[:, 0], 3)[0].sum(),
    "jitted": lambda x: plait.jit(lambda v: v - v[0])(x),
    "place": lambda x: x + pnp.argmax(x, 0),
}
LAST = {
    "rows": lambda x: x,
    "sum": lambda x: x.sum(0),
    "first": lambda x: x[0],
    "greatest": lambda x: x.max(0),
    "number": lambda x: x.sum() * x.shape[0],
    "two": lambda x: (x[:, 0], x.mean()),
}
LENGTHS = ((4, 8, 12, 6), (3, 0, 5, 1), (6, 6), (2, 9, 4), (1, 1, 2), (0, 0), (8, 16))
OPEN = (FailedCheckError, UndecidedDim, ConcretizationError, MissingRule)


def declared(lengths):
    """Return facts that hold for these lengths."""
    return {"at_least": min(lengths), "multiple_of": int(np.gcd.reduce(lengths)) or 1}


def over(f, **facts):
    return plait.jit(lambda rows, n: vmap(f, pile_axis, pile_axis)(Pile(rows, n, **facts)))


def with_room(f, xs):
    with Capacities(rows=96, longest=32, count=len(xs) + 2):
        return vmap(f, pile_axis, pile_axis)(Pile.from_list(xs))


def joined(xs):
    return np.concatenate(xs), np.array([len(x) for x in xs])


WAYS = {  # how all examples are computed, and whether lengths are known
    "known": (lambda f, xs: vmap(f, pile_axis, pile_axis)(Pile.from_list(xs)), True),
    "with room": (with_room, True),
    "traced": (lambda f, xs: over(f)(*joined(xs)), False),
    "declared": (lambda f, xs: over(f, **declared([*map(len, xs)]))(*joined(xs)), False),
}


def function(r):
    """Return (names of its steps, function of an array [n, 4])."""
    names = [r.choice(list(STEPS)) for _ in range(r.randint(1, 3))]
    last = r.choice(list(LAST))

    def f(x):
        for name in names:
            x = STEPS[name](x)
        return LAST[last](x)

    return [*names, last], f


def check(seed, way=None):
    """Raise AssertionError where a result is wrong, or is not refused; return what was run."""
    r = random.Random(seed)
    names, f = function(r)
    lengths, way = r.choice(LENGTHS), way or r.choice(list(WAYS))
    rng = np.random.default_rng(seed)
    xs = [np.round(rng.standard_normal((n, 4)) * 4, 2) for n in lengths]
    told = f"{names} of {lengths}, {way}"
    run, known = WAYS[way]
    try:
        want, refusal = (
            [list(map(np.asarray, plait.tree.leaves(f(pnp.asarray(x))))) for x in xs],
            "",
        )
    except Exception as e:
        want, refusal = None, f"{type(e).__name__}: {e}"
    try:
        out = plait.block_until_ready(run(f, xs))
    except Exception as e:
        fair = refusal or (not known and isinstance(e, (*OPEN, TypeError)))
        assert fair, f"{told}: {type(e).__name__}: {e}"
        return told
    if way == "with room" and not any(lengths):  # there, no element is an example
        return told
    assert not refusal, f"{told}: not refused, {refusal}"
    leaves = plait.tree.leaves(out, is_leaf=lambda v: isinstance(v, Pile))
    for i, column in enumerate(leaves):
        for g, w in zip(column.to_list(), [v[i] for v in want]):
            assert g.shape == w.shape, f"{told}: {g.shape} for {w.shape}"
            np.testing.assert_allclose(g, w, rtol=1e-7, atol=1e-9, err_msg=told)
    return told


def main():
    given = options(__doc__).parse_args()
    failed = run = 0
    with np.errstate(all="ignore"), plait.config(ragged_fallback="auto"):
        for seed in seeds(given):
            run += 1
            try:
                check(seed)
            except Exception:
                failed += 1
                print(
                    f"--seed {seed} --count 1:", traceback.format_exc(limit=-1)[-600:], flush=True
                )
            if run % 100 == 0:
                plait.clear_caches()
                print(f"{run} functions, {failed} failed", flush=True)
    print(f"{run} functions, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
