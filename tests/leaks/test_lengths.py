"""Lengths that are traced, and do not fit: refused when the program runs, by the line of the pile.

Invariant: what is right is what numpy gives for the rows that there are; what is refused outside of
jit is refused inside.
"""

import numpy as np
import pytest

import plait
from plait import Pile, lax, mask, pile_axis, vmap
from plait.checks import FailedCheckError, all_checks, checkify

pnp = plait.numpy
PADDED = np.arange(6, dtype=np.float32).reshape(2, 3)
ROWS = np.arange(6, dtype=np.float32)


def of_padded(n):
    p = Pile.from_padded(PADDED, n)  # the line of the padded one
    return vmap(lambda v: v.sum() + v.shape[0], pile_axis)(p)


def of_rows(n):
    p = Pile(ROWS, n)  # the line of the rows
    return vmap(lambda v: v.sum() + v.shape[0], pile_axis)(p)


def masked(n):
    f = mask(lambda v: v.sum() + v.shape[0], ["n"], "")
    return pnp.stack([f([PADDED[0]], {"n": n[0]}), f([PADDED[1]], {"n": n[1]})])


def numpy_of_rows(n):
    parts = np.split(ROWS[: sum(n)], np.cumsum(n)[:-1])
    return [p.sum() + len(p) for p in parts]


def numpy_of_padded(n):
    return [row[:k].sum() + k for row, k in zip(PADDED, n, strict=True)]


MADE = {
    "padded": (of_padded, numpy_of_padded, [(5, 2), (2, -5)]),
    "rows": (of_rows, numpy_of_rows, [(5, 2), (2, -5)]),
    "mask": (masked, numpy_of_padded, [(1, 4), (2, -5)]),
}
FITTING = [(3, 2), (0, 3), (0, 0)]
AROUND = {
    "jit": lambda f: plait.jit(f),
    "vmap": lambda f: lambda n: vmap(f)(pnp.stack([n, n]))[1],
    "jit of vmap": lambda f: lambda n: plait.jit(vmap(f))(pnp.stack([0 * n, n]))[1],
    "scan": lambda f: lambda n: lax.scan(lambda c, k: (c, f(k)), 0.0, pnp.stack([0 * n, n]))[1][1],
    "grad of jit": lambda f: (
        lambda n: plait.value_and_grad(
            lambda s: (lambda y: (y.sum(), y))(plait.jit(lambda s, n: s * f(n))(s, n)), has_aux=True
        )(1.0)[0][1]
    ),
    "checkpoint": lambda f: plait.jit(plait.checkpoint(f)),
    "cond": lambda f: plait.jit(lambda n: lax.cond(n[0] > -9, f, lambda n: n * 1.0, n)),
    "map over a pile": lambda f: (
        lambda n: plait.jit(
            lambda n: vmap(lambda v: f(n) + 0 * v.sum(), pile_axis)(
                Pile.from_list([[1.0], [1.0, 2.0]])
            )
        )(n)[1]
    ),
}


CASES = [("padded", a) for a in AROUND]
CASES += [(made, a) for made in ("rows", "mask") for a in ("jit", "jit of vmap")]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("made,around", CASES)
def test_traced_lengths(made, around):
    """Those that fit give what numpy gives, others are an error: too large, and negative."""
    f, like, too_large = MADE[made]
    run = AROUND[around](f)
    for n in FITTING:
        np.testing.assert_allclose(run(np.array(n, np.int32)), like(n))
    for n in too_large:
        with pytest.raises(FailedCheckError) as caught:
            np.asarray(run(np.array(n, np.int32)))
        text = str(caught.value)
        assert __file__ in text
        assert "negative" in text or "rows" in text or "n is" in text
        with pytest.raises(ValueError):
            f(np.array(n, np.int32))  # outside of jit, too


@pytest.mark.parametrize("made", MADE)
def test_checkify(made):
    """The error is returned, and nothing is raised."""
    f, like, too_large = MADE[made]
    for g in (checkify(plait.jit(f), errors=all_checks), plait.jit(checkify(f))):
        for n in too_large:
            error, _ = g(np.array(n, np.int32))
            assert "there are" in error.get() or "negative" in error.get() or "n is" in error.get()
        error, out = g(np.array((3, 2), np.int32))
        assert error.get() is None
        np.testing.assert_allclose(out, like((3, 2)))


def test_artifacts():
    """An artifact cannot call Python, so it is made without the check."""
    n = np.array((3, 2), np.int32)
    made = plait.export.export(plait.jit(of_padded))(n).serialize()
    np.testing.assert_allclose(plait.export.deserialize(made).call(n), numpy_of_padded(n))
