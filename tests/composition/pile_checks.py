"""A program of one example, on piles and on one example after the other.

Types of arguments are written as in `pile_families`.

Invariant: what is compared is shape, dtype, and every value; what lies beyond the last row is
poison.
"""

import numpy as np

import plait
import plait.numpy as pnp

VECTORS = {  # of n, m and l, for each example
    "mixed": ((3, 0, 40, 1), (2, 5, 35, 0), (1, 2, 3, 4)),
    "none": ((0, 0), (3, 0), (1, 1)),
    "one": ((1,), (4,), (2,)),
    "equal": ((5, 5, 5), (5, 1, 9), (0, 2, 2)),
    "long first": ((70, 1, 0, 2), (33, 2, 4, 0), (2, 0, 1, 3)),
}


SPECIAL = (np.nan, np.inf, -np.inf)


def argument(kind, vector, rng, special=False):
    """(examples and their ragged axes, or an array; the entry of in_axes); `special`: with some
    infinities and nans among the rows of examples."""
    shape, _, dtype = kind.partition(":")
    first, *rest = shape.split()
    count, names = len(vector[0]), dict(zip("nml", vector))

    def drawn(shape, special=False):
        if "int" in dtype:
            return rng.integers(-9, 9, shape).astype(dtype)
        x = rng.standard_normal(shape)
        return np.where(rng.random(shape) < 0.07, rng.choice(SPECIAL, shape), x) if special else x

    if first == "key":
        return plait.random.split(plait.random.key(3), count), 0
    if first == "all":
        return pnp.asarray(drawn(tuple(map(int, rest)))), None
    if first == "each":
        return pnp.asarray(drawn((count, *map(int, rest)))), 0
    sizes = [first, *rest]
    axes = tuple([i for i, d in enumerate(sizes) if d in names])
    shapes = [[names[d][b] if d in names else int(d) for d in sizes] for b in range(count)]
    return ([drawn(tuple(s), special) for s in shapes], axes), plait.pile_axis


def poisoned(elements, axes):
    """A pile, with nan, infinity and the greatest and least numbers where there are no rows."""
    pile = plait.Pile.from_list(elements, axis=axes)
    rows, *lengths = plait.tree.leaves(pile)
    if len(axes) > 1:
        return pile  # in tiles, not in rows
    bad = np.array(rows)
    beyond = np.ones(bad.shape, bool)
    cut = (slice(None),) * axes[0]
    beyond[(*cut, slice(0, int(np.asarray(lengths[0]).sum())))] = False
    kinds = np.iinfo(bad.dtype) if bad.dtype.kind in "iu" else None
    poison = (kinds.min, kinds.max) if kinds else (np.nan, 1e30, -np.inf)
    bad[beyond] = np.resize(np.array(poison, bad.dtype), beyond.sum())
    return plait.tree.unflatten(plait.tree.structure(pile), [pnp.asarray(bad), *lengths])


def check(f, kinds, vector, gradient=False, tier=None, special=False):
    """Raise AssertionError if the values differ, or the gradients."""
    rng = np.random.default_rng(0)
    given = [argument(k, vector, rng, special) for k in kinds]
    axes = tuple([a for _, a in given])
    examples = [[_example(x, a, b) for x, a in given] for b in range(len(vector[0]))]
    xs = [poisoned(*x) if a is plait.pile_axis else x for x, a in given]
    _agree(f, axes, xs, examples, 1e-9, tier)
    which = [i for i, k in enumerate(kinds) if ":" not in k and k != "key"]
    if gradient and which:
        _agree(plait.grad(_loss(f), which), axes, xs, examples, 1e-6, tier)


def check_room(f, kinds, vector):
    """Raise AssertionError if results have other bits where there is room for half as many rows
    again, or for four times as many; lengths are traced, so rows are all that is known."""
    rng = np.random.default_rng(0)
    given = [argument(k, vector, rng) for k in kinds]
    axes = tuple([a for _, a in given])
    at = [x[1][0] if a is plait.pile_axis else None for x, a in given]

    def run(xs, lengths):
        piles = [x if n is None else plait.Pile(x, n, k) for x, n, k in zip(xs, lengths, at)]
        return plait.vmap(f, axes, plait.pile_axis)(*piles)

    def elements(more):
        xs, lengths = [], []
        for (x, _), k in zip(given, at):
            rows = x if k is None else np.concatenate(x[0], k)
            if k is not None:
                room = [(0, int(rows.shape[k] * more) * (a == k)) for a in range(rows.ndim)]
                rows = pnp.asarray(np.pad(rows, room, constant_values=7))
            xs.append(rows)
            lengths.append(None if k is None else pnp.asarray([e.shape[k] for e in x[0]]))
        got = plait.jit(run)(xs, lengths)
        piles = plait.tree.leaves(got, is_leaf=lambda p: isinstance(p, plait.Pile))
        return [np.asarray(e) for p in piles for e in p.to_list()]

    plain = elements(0)
    for more in (0.5, 3):
        for a, b in zip(plain, elements(more), strict=True):
            assert a.tobytes() == b.tobytes(), (a, b)


def _example(x, axis, b):
    if axis is None:
        return x
    return pnp.asarray(x[0][b]) if axis is plait.pile_axis else x[b]


def _loss(f):
    def loss(*xs):
        outs = [y for y in plait.tree.leaves(f(*xs)) if np.issubdtype(y.dtype, np.inexact)]
        return sum([(pnp.sin(pnp.real(y)) * 1.5).sum() for y in outs], np.float64(0))

    return loss


def _agree(f, axes, xs, examples, tolerance, tier):
    want = [plait.tree.map(np.asarray, f(*e)) for e in examples]
    got = plait.jit(plait.vmap(f, axes, plait.pile_axis), tier=tier)(*xs)
    piles = plait.tree.leaves(got, is_leaf=lambda p: isinstance(p, plait.Pile))
    columns = list(zip(*[plait.tree.leaves(w) for w in want]))
    for pile, column in zip(piles, columns, strict=True):
        for p, q in zip(pile.to_list(), column, strict=True):
            assert p.shape == q.shape and p.dtype == q.dtype, (p.shape, q.shape, p.dtype, q.dtype)
            if q.dtype.kind in "biu":
                np.testing.assert_array_equal(p, q)
                continue
            exact = {"float64": 0, "complex128": 0, "float32": 1e-5}.get(q.dtype.name, 1e-2)
            if q.dtype.kind not in "fc":
                p, q = p.astype("float32"), q.astype("float32")
            np.testing.assert_allclose(p, q, max(exact, tolerance), max(exact, tolerance))
