"""Piles against the loop over examples, with all that may surround and be inside of them.

Invariant: the other side is the program itself, applied to one example after the other.
"""

from functools import partial

import numpy as np
import pytest

import plait
import plait.numpy as pnp

from .pile_programs import LOOPS, PROGRAMS

jit = partial(plait.jit, tier="fast")  # most of the time is compilation
LENGTHS = (3, 0, 40)
OTHERS = (0, 5, 35)


def arguments(kinds, lengths=LENGTHS, others=OTHERS, seed=0):
    """For each kind (values of each example or of all, in_axes)."""
    rng = np.random.default_rng(seed)
    made = []
    for kind in kinds:
        if kind in ("n d", "m d"):
            ns = lengths if kind == "n d" else others[: len(lengths)]
            made.append(([pnp.asarray(rng.standard_normal((n, 4))) for n in ns], plait.pile_axis))
        elif kind == "k":
            made.append((pnp.asarray(rng.standard_normal((len(lengths), 12))), 0))
        else:
            made.append((pnp.asarray(rng.standard_normal((4, 4 if kind == "w" else 5))), None))
    return made


def given(args, poison=None):
    """The arguments as vmap takes them, with `poison` beyond the last row."""
    return [
        poisoned(plait.Pile.from_list(x), poison) if a is plait.pile_axis else x for x, a in args
    ]


def poisoned(p, value):
    if value is None:
        return p
    rows, lengths = plait.tree.leaves(p)
    bad = np.array(rows)
    bad[int(np.sum(np.asarray(lengths))) :] = value
    return plait.tree.unflatten(plait.tree.structure(p), [pnp.asarray(bad), lengths])


def examples(args):
    count = next(len(x) for x, a in args if a is plait.pile_axis)
    return [[x if a is None else x[b] for x, a in args] for b in range(count)]


def axes_of(args):
    return tuple(a for _, a in args)


def as_list(out):
    return out.to_list() if isinstance(out, plait.Pile) else list(np.asarray(out))


def agree(got, want, tolerance=1e-9):
    got = as_list(got)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        w = np.asarray(w)
        assert g.shape == w.shape and g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)


ALL = {**PROGRAMS, **LOOPS}
WITH_DERIVATIVE = (
    "where", "cast", "with each", "with shared", "n", "arange", "sum", "mean", "prod", "max",
    "logsumexp", "softmax", "cumsum", "cumsum reversed", "cumprod", "cummin reversed",
    "cumlogsumexp", "sort", "times shared", "times each", "pooled", "contracted", "gram rows",
    "gram whole", "einsum pairs", "attention", "causal", "cross", "cross transposed", "chain",
    "merge minor", "split", "expand", "broadcast", "half", "roll", "pad", "joined to itself",
    "take clipped", "set", "scatter", "dynamic slice", "dynamic update", "checkpoint",
    "scan around", "loop", "cond", "rnn end", "scan reversed", "scan of n", "vmap of columns",
    "conv",
)  # fmt: skip


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", ALL)
def test_values(name):
    """In one program, whatever lies beyond the last row."""
    f, *kinds = ALL[name]
    args = arguments(kinds)
    want = [f(*xs) for xs in examples(args)]
    mapped = jit(plait.vmap(f, axes_of(args), plait.pile_axis))
    for poison in (None, np.nan, 1e30):
        agree(mapped(*given(args, poison)), want)


@pytest.mark.parametrize("name", ["where", "softmax", "attention", "joined", "rnn steps"])
def test_values_eager(name):
    f, *kinds = ALL[name]
    args = arguments(kinds)
    mapped = plait.vmap(f, axes_of(args), plait.pile_axis)
    agree(mapped(*given(args)), [f(*xs) for xs in examples(args)])


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", WITH_DERIVATIVE)
def test_gradients(name):
    """Inside and outside of the map, with nan beyond the last row."""
    f, *kinds = PROGRAMS[name]
    args = arguments(kinds)

    def loss(*xs):
        return (pnp.sin(f(*xs)) * 1.5).sum()

    which = tuple(range(len(args)))
    of_one = jit(plait.grad(loss, which))
    columns = list(zip(*[of_one(*xs) for xs in examples(args)]))
    xs = given(args, np.nan)
    inside = jit(plait.vmap(plait.grad(loss, which), axes_of(args), plait.pile_axis))
    for got, column in zip(inside(*xs), columns):
        agree(got, column)
    for (_, axis), got, column in zip(args, outside(loss, args, xs), columns):
        if axis is None:
            np.testing.assert_allclose(got, sum(map(np.asarray, column)), 1e-9, 1e-9)
        else:
            agree(got, column)


def outside(loss, args, xs):
    """The gradient of the sum over all examples."""

    def total(leaves):
        ys = [y if not isinstance(x, plait.Pile) else with_rows(x, y) for x, y in zip(xs, leaves)]
        return plait.vmap(loss, axes_of(args))(*ys).sum()

    rows = [plait.tree.leaves(x)[0] for x in xs]
    got = jit(plait.grad(total))(rows)
    return [with_rows(x, g) if isinstance(x, plait.Pile) else g for x, g in zip(xs, got)]


def with_rows(p, rows):
    _, lengths = plait.tree.leaves(p)
    return plait.tree.unflatten(plait.tree.structure(p), [rows, lengths])
