"""Where the extremes of piles' rows are, also where a compiler computes the rows in two places.

Invariant: what is found is compared with numpy, example after example.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait_batching import vmap

LENGTHS = [13, 1, 20, 6]
PLACES = {"argmax": (pnp.argmax, np.argmax), "argmin": (pnp.argmin, np.argmin)}


def turned(x, corner):
    """A product and a sum, which a loop may round once and another one twice."""
    return (x * 1.3).swapaxes(0, 1).swapaxes(0, 1) + 0.7 * corner


@pytest.mark.sampled(10)
@pytest.mark.parametrize("tier", ["full", "fast"])
@pytest.mark.parametrize("width", [1, 4, 17])
@pytest.mark.parametrize("name", PLACES)
def test_places_in_what_is_computed_twice(name, width, tier):
    ours, theirs = PLACES[name]
    draw = np.random.RandomState(width).randn
    rows = [draw(n, width).astype("float32") for n in LENGTHS]
    corner = draw(1, 1).astype("float32")
    f = vmap(lambda x, c: ours(turned(x, c), 0), (plait.pile_axis, None))
    got = np.asarray(plait.jit(f, tier=tier)(plait.Pile.from_list(rows), corner))
    for x, places in zip(rows, got, strict=True):
        exact = x.astype("float64") * 1.3 + 0.7 * corner
        # rounding may make the second best the best; it is as good, then
        chosen = np.take_along_axis(exact, places[None], 0)[0]
        best = np.take_along_axis(exact, theirs(exact, 0)[None], 0)[0]
        np.testing.assert_allclose(chosen, best, rtol=1e-6)
