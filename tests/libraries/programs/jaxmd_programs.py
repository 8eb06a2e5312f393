"""Programs of jax-md.

Invariant: each returns numbers, and needs no seed but those written here.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax_md import energy, minimize, quantity, simulate, space

rng = np.random.default_rng(0)
BOX = 4.0
R = jnp.asarray(rng.uniform(0, BOX, size=(12, 2)).astype("float32"))
KEY = jax.random.PRNGKey(0)


def readme():
    displacement, shift = space.periodic(BOX)
    soft = energy.soft_sphere_pair(displacement)
    return soft(R), quantity.force(soft)(R)


def potentials():
    displacement, _ = space.periodic(BOX)
    found = []
    for make in (energy.lennard_jones_pair, energy.morse_pair):
        found.append(make(displacement)(R + 0.0) / 1e3)
    return found, space.map_product(space.metric(displacement))(R, R)


def neighbor_lists():
    displacement, _ = space.periodic(BOX)
    neighbors, f = energy.soft_sphere_neighbor_list(displacement, BOX, sigma=1.0)
    nbrs = neighbors.allocate(R)
    nbrs = nbrs.update(R + 0.01)
    return f(R, neighbor=nbrs), jnp.sum(nbrs.idx < 12)


def minimisation():
    displacement, shift = space.periodic(BOX)
    init, step = minimize.fire_descent(energy.soft_sphere_pair(displacement), shift)
    state = init(R)
    for _ in range(5):
        state = jax.jit(step)(state)
    return state.position


def dynamics():
    displacement, shift = space.periodic(BOX)
    init, step = simulate.nve(energy.soft_sphere_pair(displacement), shift, 1e-2)
    state = init(KEY, R, kT=0.1)
    state = jax.lax.fori_loop(0, 5, lambda i, s: step(s), state)
    return state.position, quantity.kinetic_energy(momentum=state.momentum, mass=state.mass)


def thermostats():
    displacement, shift = space.free()
    init, step = simulate.nvt_langevin(
        energy.soft_sphere_pair(displacement), shift, 1e-2, kT=0.1, gamma=0.2
    )
    state = init(KEY, R)
    return jax.lax.fori_loop(0, 3, lambda i, s: step(s), state).position
