"""What may differ along which axes, against running a program on every device and looking."""

import numpy as np
import pytest

import plait
from plait.lax import (
    all_gather,
    axis_index,
    cond,
    pmax,
    ppermute,
    psum,
    psum_scatter,
    scan,
    while_loop,
)
from plait_sharding import P, make_mesh, shard_map
from plait_sharding.variance import varying

X, Y = frozenset("x"), frozenset("y")
BOTH, NONE = X | Y, frozenset()

# name: (f of `a`, divided over x and y, and `b`, over x), the axes along which it differs
PROGRAMS = {
    "nothing divided": (lambda a, b: 3.0, NONE),
    "both": (lambda a, b: a.sum() + b.sum(), BOTH),
    "one": (lambda a, b: b * 2, X),
    "a sum": (lambda a, b: psum(a, "y") + b, X),
    "a greatest": (lambda a, b: pmax(a, "x"), Y),
    "a sum over both": (lambda a, b: psum(a + b, ("x", "y")), NONE),
    "gathered": (lambda a, b: all_gather(b, "x"), NONE),
    "scattered": (lambda a, b: psum_scatter(psum(a, "x"), "y", tiled=True), Y),
    "sent": (lambda a, b: ppermute(psum(a, ("x", "y")), "y", [(0, 1)]), Y),
    "a place": (lambda a, b: axis_index("y"), Y),
    "called": (lambda a, b: plait.jit(lambda v: psum(v, "y"))(a), X),
    "a predicate": (lambda a, b: cond(b.sum() > 0, lambda: 1.0, lambda: 2.0), X),
    "a carry that comes to differ": (
        lambda a, b: scan(lambda c, _: ((c[1], c[2], b.sum()), None), (0.0, 0.0, 0.0), None, 3)[0][
            0
        ],
        X,
    ),
    "a carry that does not": (
        lambda a, b: scan(lambda c, v: (c + psum(v.sum(), "x"), v), 0.0, b)[0],
        NONE,
    ),
    "a loop of one's own length": (
        lambda a, b: while_loop(lambda c: c[0] < b.sum(), lambda c: (c[0] + 1, c[1] + 1), (0.0, 0))[
            1
        ],
        X,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_differences(name):
    f, want = PROGRAMS[name]
    mesh = make_mesh((2, 4), ("x", "y"))
    a = np.random.default_rng(1).normal(size=(8, 16)).astype(np.float32)
    b = np.linspace(-4, 9, 8, dtype=np.float32)
    ins = (P("x", "y"), P("x"))
    every = P(("x", "y"))
    one = shard_map(lambda a, b: plait.numpy.expand_dims(f(a, b), 0), mesh, ins, every)
    program = plait.make_program(one)(a, b).eqns[0].params["program"]
    assert varying(program, [BOTH, X]) == [want]
    rows = np.asarray(one(a, b))
    rows = rows.reshape(2, 4, -1)
    if "x" not in want:
        np.testing.assert_array_equal(rows[0], rows[1])
    if "y" not in want:
        np.testing.assert_array_equal(rows[:, :1].repeat(4, 1), rows)
    if want:
        assert (rows != rows[0, 0]).any()
