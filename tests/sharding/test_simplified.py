"""What simplification does inside of shard_map: results that nobody asks for are not computed.

Invariant: programs are compared with what was written by hand, equation for equation.
"""

import numpy as np

import plait
from plait._simplify import simplify
from plait.lax import psum
from plait_sharding import P, make_mesh, shard_map

A = np.arange(128, dtype=np.float32).reshape(8, 16)


def test_what_is_not_asked_for_is_dropped():
    mesh = make_mesh((2, 4), ("x", "y"))
    f = shard_map(
        lambda a, b: (psum(a, "y"), psum(b.sum(), "x")), mesh, (P("x", "y"), P("x")), (P("x"), P())
    )
    program = plait.make_program(lambda a, b: f(a, b)[0])(A, A)
    (short,) = simplify(program).eqns
    assert len(short.inputs) == 1 and short.params["in_specs"] == ((("x",), ("y",)),)
    assert len(short.outputs) == 1
