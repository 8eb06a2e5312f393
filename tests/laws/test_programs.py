"""Every law over operations that hold programs, and over collectives.

Invariant: carries change under the derivative from constants to what varies, and branches differ in
what varies.
"""

import numpy as np
import pytest

import plait
from plait import lax, map_axes

X = np.array([0.4, -0.35, 0.7])
M = np.outer(X, X) + 2 * np.eye(3)
N = "many"


@plait.custom_jvp
def cubed(x):
    return x * x * x


@cubed.defjvp
def _(primals, tangents):
    (x,), (t,) = primals, tangents
    return cubed(x), 3 * x * x * t


def branch(x, k):
    return lax.switch(k, [lax.sin, lambda y: y * y, lambda y: 0 * lax.stop_gradient(y) + 1], x)


def scanned(x, reverse=False):
    return lax.scan(lambda c, r: (lax.sin(c) * r + x[0], c * c), 0.0 * x[0], x, reverse=reverse)


def looped(x):
    """The first turn makes what varies of what does not."""
    turn = lambda s: (s[0] + 1, s[1] * lax.sin(x) + x)  # noqa: E731
    return lax.while_loop(lambda s: s[0] < 3, turn, (0, 0.0 * x + 1), max_steps=4)[1]


def between(f):
    """`f` of one element among three, by the name of the axis."""
    return lambda x: plait.vmap(f, axis_name=N)(x)


CASES = {
    "core.call": (lambda x: plait.jit(lambda y: lax.sin(y) * x)(x), (X,)),
    **{f"core.cond, {k}": (branch, (X, np.int32(k))) for k in range(3)},
    "core.scan": (scanned, (X,)),
    "core.scan, reverse": (lambda x: scanned(x, True), (X,)),
    "core.while": (looped, (X,)),
    "core.composite": (lax.composite(lambda x: lax.sin(x) * x, "tests.product"), (X,)),
    "core.map_axes": (lambda x: map_axes(lambda r: lax.sin(r) * x, 0, 1)(x), (X,)),
    "autodiff.checkpoint": (lambda x: plait.checkpoint(lambda y: lax.sin(y) * x)(x), (X,)),
    "autodiff.custom_jvp_call": (cubed, (X,)),
    "autodiff.linear_call": (lambda r, x: plait.custom_derivatives.linear_call(
        lambda r, x: x * r, lambda r, t: t * r, r, x), (X + 2, X)),
    "autodiff.linear_solve": (lambda a, b: lax.custom_linear_solve(
        lambda v: a * v, b, lambda f, v: v / a, symmetric=True), (X + 2, X)),
    "core.psum": (between(lambda x: x * lax.psum(lax.sin(x), N)), (X,)),
    "core.pmax": (between(lambda x: x * lax.pmax(lax.sin(x), N)), (X,)),
    "core.pmin": (between(lambda x: x * lax.pmin(lax.sin(x), N)), (X,)),
    "core.all_gather": (between(lambda x: x * lax.all_gather(lax.sin(x), N)), (X,)),
    "core.ppermute": (between(lambda x: x * lax.ppermute(
        lax.sin(x), N, [(0, 1), (1, 2)])), (X,)),
    "core.all_to_all": (between(lambda x: lax.all_to_all(lax.sin(x), N, 0, 0) * x), (M,)),
    "core.psum_scatter": (between(lambda x: lax.psum_scatter(lax.sin(x), N) * x[0]), (M,)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::plait.errors.RuleLost")
def test_derivatives(judge):
    judge.derivatives(CASES)


def test_mapping(judge):
    judge.mapping(CASES)
