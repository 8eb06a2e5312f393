"""Second derivatives of every family of operations, mapped over piles, against the loop over
examples: with respect to what is ragged, to a number that each example has its own of, and to one
that all share.

Both sides are computed by numpy, operation by operation; `tests/fuzz/random_piles.py` says how.

Invariant: the other side knows of no piles.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp

from ..fuzz.random_piles import UNSAID, in_numpy
from . import pile_checks
from .pile_families import FAMILIES, WITHOUT_DERIVATIVE

LENGTHS = (3, 0, 4, 1), (2, 5, 3, 0), (1, 2, 3, 4)  # of n, m and l, for each example


def moves(kinds):
    """The numbers of the arguments that are arrays of real numbers."""
    return [i for i, k in enumerate(kinds) if ":" not in k and k != "key"]


LEFT = {*WITHOUT_DERIVATIVE, *UNSAID}
NAMES = [q for q, (_, *k) in FAMILIES.items() if q not in LEFT and moves(k)]


def turned(x):
    """A direction that differs from place to place."""
    return pnp.cos(x + 0.3)


def slope_of(f, moving):
    """How a number made of the results of f changes in a direction: a function of (each, shared,
    *arguments), by which those of them that are real numbers, `moving`, are multiplied."""

    def of(each, shared, *xs):
        def scaled(each, shared, *floats):
            given = list(xs)
            for i, x in zip(moving, floats, strict=True):
                given[i] = x * each * shared
            return pile_checks._loss(f)(*given)

        at = each, shared, *[xs[i] for i in moving]
        slopes = plait.grad(scaled, tuple(range(len(at))))(*at)
        return sum((s * turned(x)).sum() for s, x in zip(slopes, at, strict=True))

    return of


def keyed(f, kinds):
    """With the words of keys for keys, which numpy has none of."""
    made = lambda k, x: plait.random.wrap_key_data(x) if k == "key" else x
    return lambda *xs: f(*map(made, kinds, xs))


def words(x):
    is_key = lambda v: (
        hasattr(v, "dtype") and plait.dtypes.issubdtype(v.dtype, plait.dtypes.prng_key)
    )
    return plait.random.key_data(x) if is_key(x) else x


def second(f, moving):
    """The gradient of that; the derivative of the gradient is the same, by symmetry, and is asked
    of in the random programs."""
    return plait.grad(slope_of(f, moving), (0, 1, *[2 + i for i in moving]))


def given(kinds):
    rng = np.random.default_rng(1)
    found = [pile_checks.argument(k, LENGTHS, rng) for k in kinds]
    found = [(words(x), a) for x, a in found]
    axes = tuple([a for _, a in found])
    piles = [pile_checks.poisoned(*x) if a is plait.pile_axis else x for x, a in found]
    examples = [[pile_checks._example(x, a, b) for x, a in found] for b in range(4)]
    return axes, piles, examples


@pytest.mark.sampled(20)
@pytest.mark.parametrize(
    "name, where", [(q, "outside") for q in NAMES] + [(q, "inside") for q in NAMES[::5]]
)
def test_second_derivatives(name, where):
    f, *kinds = FAMILIES[name]
    moving = moves(kinds)
    axes, piles, examples = given(kinds)
    f = keyed(f, kinds)
    axes = 0, None, *axes
    each, shared = pnp.asarray([0.9, 1.1, 0.8, 1.2], "float64"), pnp.asarray(1.1, "float64")
    if where == "inside":
        mapped = plait.vmap(second(f, moving), axes, plait.pile_axis)
    else:
        total = lambda *xs: plait.vmap(slope_of(f, moving), axes)(*xs).sum()
        mapped = plait.grad(total, (0, 1, *[2 + i for i in moving]))
    got = in_numpy(mapped, (each, shared, *piles))
    programs = {}
    want = [
        in_numpy(second(f, moving), (each[b], shared, *example), programs)
        for b, example in enumerate(examples)
    ]
    for i, (g, column) in enumerate(zip(got, zip(*want, strict=True), strict=True)):
        summed = where == "outside" and (i == 1 or (i > 1 and kinds[moving[i - 2]][:3] == "all"))
        rows = [g] if summed else g.to_list() if hasattr(g, "to_list") else g
        column = [sum(map(np.asarray, column))] if summed else column
        for p, q in zip(rows, column, strict=True):
            p, q = np.asarray(p), np.asarray(q)
            assert p.shape == q.shape and p.dtype == q.dtype, (i, p.shape, q.shape)
            np.testing.assert_allclose(p, q, rtol=1e-6, atol=1e-8)
