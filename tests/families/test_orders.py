"""Derivatives of high order: programs stay as small as those of a peer, or smaller.

The bounds are numbers of equations of JAX 0.10.2's jaxprs for the same derivative, orders 1 to 6.
"""

import pytest

import plait
from plait import lax, nn
from plait import numpy as jnp
from plait._simplify import simplify
from plait.ext.ir import inline_calls, programs_in
from plait.ext.ops.control_flow import call

PEER = {
    "sin": (lax.sin, (3, 8, 14, 25, 43, 78)),
    "exp of sin": (lambda x: lax.exp(lax.sin(x)), (5, 15, 41, 106, 267, 668)),
    "tanh": (lax.tanh, (5, 15, 34, 75, 172, 417)),
    "logistic": (nn.sigmoid, (4, 12, 27, 62, 149, 376)),
    "reciprocal": (lambda x: 1 / x, (5, 12, 22, 40, 74, 140)),
    "power": (lambda x: x**2.5, (6, 17, 34, 63, 116, 217)),
    "sqrt": (lax.sqrt, (3, 10, 26, 69, 186, 511)),
    "log": (lax.log, (2, 6, 13, 23, 41, 75)),
    "erf": (lax.erf, (6, 14, 28, 54, 97, 165)),
    "squares": (lambda x: (jnp.cumsum(x * jnp.ones(3)) ** 2).sum(), (13, 23, 24, 25, 26, 27)),
    "scan": (lambda x: lax.scan(lambda c, _: (lax.sin(c), None), x, None, 3)[0], (5, 15, 46, 142)),
}  # fmt: skip


def equations(program):
    """Equations, also of sub-programs; a call is what it calls."""
    return sum(
        (e.prim is not call) + sum(map(equations, programs_in(e.params))) for e in program.eqns
    )


@pytest.mark.parametrize("name", PEER)
def test_orders_one_to_six(name):
    f, bounds = PEER[name]
    for bound in bounds:
        f = plait.grad(f)
        program = plait.make_program(f)(1.5)
        assert equations(simplify(inline_calls(program))) <= bound
