"""Watching for nans and infinities in piles.

Invariant: places without data are never blamed, whichever numbers they hold; a row with a nan is.
"""

from contextlib import nullcontext

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Pile, grad, pile_axis, vmap
from plait.errors import NanError

EXAMPLES = [np.full((n, 2), 0.25 + n) for n in (2, 0, 3)]

FINITE = {
    "log": lambda x: pnp.log(x),
    "quotient": lambda x: (1 / x).sum(),
    "difference": lambda x: pnp.sqrt(x - 0.5).sum(),
    "norm": lambda x: x / pnp.linalg.norm(x, axis=1, keepdims=True),
    "extreme": lambda x: (1 / x).max(initial=0.0),
    "product": lambda x: (1 / x).prod(),
    "products": lambda x: pnp.cumprod(1 / x, 0),
    "loop": lambda x: plait.lax.scan(lambda c, r: (c + (1 / r).sum(), None), 0.0, x)[0],
    "contraction": lambda x: plait.nn.softmax(x @ x.T, axis=1).sum(),
}


def total(f):
    return lambda p: vmap(lambda x: f(x).sum(), pile_axis)(p).sum()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FINITE)
def test_nothing_beyond_the_last_row_is_blamed(name):
    f, pile = FINITE[name], Pile.from_list(EXAMPLES)
    # The greatest of no numbers is an infinity, with and without a pile.
    infs = nullcontext() if name == "extreme" else plait.debug.infs()
    with plait.debug.nans(), infs:
        value, gradient = plait.value_and_grad(total(f))(pile)
        plait.jit(grad(total(f)))(pile)
    assert np.isfinite(value)
    for x in gradient.to_list():
        assert np.isfinite(x).all()


def test_results_that_are_piles_stay_unblamed():
    pile = Pile.from_list(EXAMPLES)
    with plait.debug.nans(), plait.debug.infs():
        got = vmap(FINITE["log"], pile_axis, pile_axis)(pile)
        again = plait.jit(lambda p: vmap(lambda x: 1 / x, pile_axis, pile_axis)(p))(pile)
    for x, y, z in zip(EXAMPLES, got.to_list(), again.to_list()):
        np.testing.assert_allclose(y, np.log(x), rtol=1e-12)
        np.testing.assert_allclose(z, 1 / x, rtol=1e-12)


ROWS = [x for x in EXAMPLES if len(x)]  # the mean of no numbers is nan
SHRINK = vmap(lambda x: pnp.sqrt(x - 0.5 * x.mean()), pile_axis, pile_axis)
LOOPS = {
    "carry": lambda p, **how: plait.lax.scan(lambda c, _: (SHRINK(c), None), p, None, 2, **how)[0],
    "rows": lambda p, **how: plait.lax.scan(
        lambda c, k: (c + k, SHRINK(p).data * k), pnp.zeros(()), pnp.arange(1.0, 3.0), **how
    )[1].sum(0),
    "fori": lambda p, **how: plait.lax.fori_loop(0, 2, lambda i, c: SHRINK(c), p),
    "cond": lambda p, **how: plait.lax.cond(p.data[0, 0] > 0, SHRINK, lambda c: c, p),
    "loop in loop": lambda p, **how: plait.lax.scan(
        lambda c, _: (plait.lax.scan(lambda d, _: (SHRINK(d), None), c, None, 1)[0], None),
        p, None, 2, **how,
    )[0],
}  # fmt: skip


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", LOOPS)
def test_loops_over_piles_are_not_blamed(name, reverse):
    """A loop that is run again gives what it gave: its last carry, and the rows in their order."""
    pile = Pile.from_list(ROWS)
    count = sum(map(len, ROWS))
    run = lambda p: LOOPS[name](p, reverse=reverse)  # noqa: E731
    rows = lambda out: (out if name == "rows" else out.data)[:count]  # noqa: E731
    want = rows(run(pile))
    assert np.isfinite(want).all()
    with plait.debug.nans():
        np.testing.assert_allclose(rows(run(pile)), want, rtol=1e-12)
        np.testing.assert_allclose(rows(plait.jit(run)(pile)), want, rtol=1e-12)
        slope = plait.jit(grad(lambda p: rows(run(p)).sum()))(pile)
    assert np.isfinite(slope.data[:count]).all()


def test_a_row_is_blamed_in_a_loop():
    pile = Pile.from_list([*ROWS, np.array([[1.0, -9.0]])])
    with plait.debug.nans(), pytest.raises(NanError, match="core.sqrt gave nan"):
        plait.jit(LOOPS["carry"])(pile)


@pytest.mark.parametrize("how", ["value", "grad", "jit"])
def test_a_row_is_blamed(how):
    pile = Pile.from_list([*EXAMPLES, np.array([[1.0, -1.0]])])
    f = total(lambda x: pnp.sqrt(x) * 2)
    run = {"value": f, "grad": grad(f), "jit": plait.jit(f)}[how]
    with plait.debug.nans(), pytest.raises(NanError, match=r"core.sqrt gave nan for f64\["):
        run(pile)


@pytest.mark.parametrize("name", ["extreme", "norm", "difference"])
def test_checks_of_floats_pass_what_holds_no_data(name):
    pile = Pile.from_list(EXAMPLES)
    error, _ = plait.checks.checkify(grad(total(FINITE[name])), errors=plait.checks.float_checks)(
        pile
    )
    assert error.get() is None
