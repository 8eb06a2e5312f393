"""Optimisers of optax over trees with piles: as over trees with the list of the elements.

Norms of gradients combine all leaves; lengths and hidden rows must not count in them.
"""

import numpy as np
import optax
import pytest

import plait
from plait import Pile, pile_axis
from plait import numpy as pnp

RNG = np.random.default_rng(0)
EXAMPLES = [RNG.normal(size=(n, 3)).astype(np.float32) for n in (3, 0, 5, 1)]
OPTIMISERS = {
    "adam": lambda: optax.adam(0.1),
    "clipped": lambda: optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(0.1)),
    "if finite": lambda: optax.apply_if_finite(optax.sgd(0.1), 3),
    "normalised": lambda: optax.chain(optax.normalize_by_update_norm(), optax.sgd(0.1)),
}


def trained(optimiser, elements, loss):
    params = {"elements": elements, "weight": pnp.float32(0.5)}
    state = optimiser.init(params)

    @plait.jit
    def step(params, state):
        updates, state = optimiser.update(plait.grad(loss)(params), state, params)
        return optax.apply_updates(params, updates), state

    for _ in range(4):
        params, state = step(params, state)
    return params


def of_pile(params):
    one = lambda x: ((x * params["weight"] - 1) ** 2).sum()  # noqa: E731
    return plait.vmap(one, pile_axis)(params["elements"]).sum()


def of_list(params):
    return sum([((x * params["weight"] - 1) ** 2).sum() for x in params["elements"]])


@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("capacity", [None, (64, 16)])
def test_a_pile_is_trained_as_its_elements(name, capacity):
    got = trained(OPTIMISERS[name](), Pile.from_list(EXAMPLES, capacity=capacity), of_pile)
    want = trained(OPTIMISERS[name](), [pnp.asarray(x) for x in EXAMPLES], of_list)
    np.testing.assert_allclose(got["weight"], want["weight"], rtol=1e-4, atol=1e-5)
    for x, y in zip(got["elements"].to_list(), want["elements"], strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def test_updates_that_are_made_of_shapes_are_refused():
    """Shapes have no lengths, so an update of zeros cannot be that of a pile."""
    params = {"elements": Pile.from_list(EXAMPLES)}
    steps = optax.MultiSteps(optax.sgd(0.1), every_k_schedule=2)
    state = steps.init(params)
    with pytest.raises(plait.PlaitError, match="ShapeDtypeStruct is not an array"):
        steps.update(params, state, params)
