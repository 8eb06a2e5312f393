"""Values inside of a transformation that depend on nothing that it transforms are numbers there.

Invariant: they are what numpy computes; what depends on the argument is refused, since its
derivative, or the other elements, would be lost.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.errors import ConcretizationError

pnp = plait.numpy
ONES = np.ones(3, np.float32)


@plait.jit
def plus_one(y):
    return y + 1


VALUES = {
    "function of a number": (lambda: pnp.log(3.0), np.log(3)),
    "made here": (lambda: pnp.ones(3).sum(), 3),
    "array of outside": (lambda: pnp.asarray(ONES).sum(), 3),
    "a number": (lambda: pnp.asarray(3.0), 3),
    "zeros": (lambda: pnp.zeros(()), 0),
    "jit": (lambda: plus_one(3.0), 4),
    "jit of an array": (lambda: plus_one(ONES[0]), 2),
    "loop": (lambda: lax.fori_loop(0, 3, lambda i, c: c * 2, 1.0), 8),
    "branch": (lambda: lax.cond(pnp.ones(()) > 0, lambda: 1.5, lambda: 2.5), 1.5),
    "custom": (lambda: plait.nn.relu(pnp.exp(0.0)), 1),
    "linspace": (lambda: pnp.linspace(0, 1, 3)[1], 0.5),
    "integer": (lambda: pnp.arange(3).sum(), 3),
    "gradient": (lambda: plait.grad(lambda y: y * y)(pnp.exp(0.0)), 2),
}
TO_PYTHON = {
    "float": float,
    "complex": lambda x: complex(x).real,
    "item": lambda x: x.item(),
    "tolist": lambda x: x.tolist(),
    "asarray": lambda x: np.asarray(x)[()],
    "asarray as": lambda x: np.asarray(x, np.float64)[()],
    "bytes": lambda x: np.frombuffer(x.tobytes(), x.dtype)[0],
    "int": lambda x: float(int(x)) + float(x % 1),
    "math": lambda x: np.exp(np.log(float(x) + 1)) - 1,
}
SURROUNDINGS = {
    "vmap": lambda f: plait.vmap(f)(np.ones(2, np.float32))[0],
    "grad": lambda f: plait.grad(f)(1.0),
    "jvp": lambda f: plait.jvp(f, (1.0,), (1.0,))[1],
    "linearize": lambda f: plait.linearize(f, 1.0)[1](1.0),
    "vjp": lambda f: plait.vjp(f, 1.0)[1](1.0)[0],
    "vmap of grad": lambda f: plait.vmap(plait.grad(f))(np.ones(2, np.float32))[0],
    "grad of vmap": lambda f: plait.grad(lambda x: plait.vmap(f)(x).sum())(np.ones(2, np.float32))[
        0
    ],
}


@pytest.mark.parametrize("around", SURROUNDINGS)
def test_independent(around):
    """All ways to take them out, twice: by the recording, and by what is known of it."""
    for name, (make, want) in VALUES.items():
        for way, take in TO_PYTHON.items():
            got = SURROUNDINGS[around](lambda x, m=make, t=take: x * t(m()))
            np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=f"{name}, {way}")


@pytest.mark.parametrize("way", [way for way in TO_PYTHON if way != "int"])
@pytest.mark.parametrize("around", SURROUNDINGS)
def test_dependent(around, way):
    """A value that depends on the argument stays in, even if it does not vary at another level."""
    with pytest.raises(ConcretizationError, match="would take it out"):
        SURROUNDINGS[around](lambda x: x * TO_PYTHON[way](pnp.sin(x) + pnp.exp(0.0)))


def test_other_level():
    """Values that vary under the outer transformation and not under the inner one."""
    for outer in (plait.grad, plait.vmap):
        with pytest.raises(ConcretizationError):
            outer(lambda x: plait.grad(lambda y: y * float(x * 2))(1.0))(
                1.0 if outer is plait.grad else ONES
            )


def test_traced():
    """Under jit nothing has a value, nor in a Jacobian, whose columns are one program."""
    for around in (plait.jit, plait.jacfwd):
        with pytest.raises(ConcretizationError):
            around(lambda x: x * float(pnp.sin(x)))(1.0)
