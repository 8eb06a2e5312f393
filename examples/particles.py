"""Particles in time: systems of different numbers of particles, simulated as one program.

    python examples/particles.py

Each system is a loop over time of forces between all pairs.  The gradient goes through the loop: it
finds initial velocities that bring the particles to rest at the end.

Invariant: energies are compared with those at the start, and positions with numpy's.
"""

import numpy as np

import plait
from plait import Capacities, Pile, lax, pile_axis, vmap

SIZES = Capacities(rows=64, longest=16, count=8)
STEPS, DT = 100, 0.01
COMPILED: list[str] = []


def forces(x):
    """Return the pull of all other particles on each, softened."""
    d = x[None] - x[:, None]
    return (d / ((d**2).sum(-1, keepdims=True) + 0.1) ** 1.5).sum(axis=1)


def energy(x, v):
    """Return kinetic and potential energy."""
    d = x[None] - x[:, None]
    return (v**2).sum() / 2 - ((((d**2).sum(-1) + 0.1) ** -0.5).sum() - x.shape[0] * 0.1**-0.5) / 2


def simulate(x, v):
    """Return positions and velocities at the end (velocity Verlet)."""

    def step(state, _):
        x, v = state
        v = v + DT / 2 * forces(x)
        x = x + DT * v
        return (x, v + DT / 2 * forces(x)), None

    return lax.scan(step, (x, v), None, length=STEPS)[0]


def of_numpy(x, v):
    """Return the same as `simulate`, by numpy."""
    for _ in range(STEPS):
        for half in (0, 1):
            d = x[None] - x[:, None]
            f = (d / ((d**2).sum(-1, keepdims=True) + 0.1) ** 1.5).sum(axis=1)
            v = v + DT / 2 * f
            x = x + DT * v if half == 0 else x
    return x, v


def batch(r):
    """Return positions and velocities of some systems."""
    n = r.integers(2, 11, r.integers(4, 7))
    x, v = ([r.standard_normal((k, 2)).astype("float32") for k in n] for _ in range(2))
    return Pile.from_list(x, capacity=SIZES), Pile.from_list([0.3 * u for u in v], capacity=SIZES)


@plait.jit
def drift(x, v):
    """Return how much the energy of each system changes."""
    COMPILED.append("a program")  # Python runs when a program is made, not for each batch
    return vmap(lambda x, v: energy(*simulate(x, v)) - energy(x, v), pile_axis)(x, v)


@plait.jit
def at_rest(x, v):
    """Return the speeds at the end, and velocities from which they are less."""

    def speeds(v):
        ends = vmap(lambda x, v: simulate(x, v)[1], pile_axis, pile_axis)(x, v)
        return (ends**2).sum()

    value, g = plait.value_and_grad(speeds)(v)
    return value, plait.tree.map(lambda a, b: a - 0.05 * b, v, g)


def main() -> None:
    """Print the drift of the energy, the difference from numpy, and the speeds before and after."""
    r = np.random.default_rng(0)
    most = 0.0
    for _ in range(10):
        most = max(most, float(abs(drift(*batch(r))).max()))
    print(f"the energy changes by {most:.4f} at most")
    print(f"programs for ten batches: {len(COMPILED)}")
    x, v = batch(r)
    ends = vmap(simulate, pile_axis, pile_axis)(x, v)[0].to_list()
    each = zip(ends, x.to_list(), v.to_list(), strict=True)
    off = max(abs(e - of_numpy(a, b)[0]).max(initial=0) for e, a, b in each)
    print(f"positions differ from numpy's by {off:.1e}")
    first = last = float(at_rest(x, v)[0])
    for _ in range(20):
        last, v = at_rest(x, v)
    print(
        f"speeds at the end: {first:.2f}, and {float(last):.2f} after 20 steps of gradient descent"
    )


if __name__ == "__main__":
    main()
