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
