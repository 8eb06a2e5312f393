"""Mapped programs have no larger arrays than a peer's, and at most two equations more.

The bounds are of JAX 0.10.2's jaxprs of the same programs, mapped over the same axes: their number
of equations, calls counted as what they call, and the most elements of an array that they make; of
loops, which are told only when they are lowered what their predicates ask, of what they become.

Invariant: bounds are the peer's, and no number is taken from our own programs.
"""

import re

import numpy as np
import pytest

import plait
from plait import lax, nn
from plait.ext.ir import programs_in
from plait.ext.ops.control_flow import call

jnp = plait.numpy
N, B = 128, 64
R = np.random.default_rng(0)
W = R.normal(size=(N, N)).astype(np.float32)
X = R.normal(size=(B, N)).astype(np.float32)
S, I = X[:, 0], np.arange(B, dtype=np.int32)
KERNEL = R.normal(size=(4, 1, 3)).astype(np.float32)


def layers(x, w):
    return jnp.tanh(w @ jnp.tanh(w @ x))


def convolved(x, k):
    return lax.conv_general_dilated(x[None, None], k, (1,), "SAME")


def either(p, x, w):
    return lax.cond(p, lambda x: w @ x, lambda x: x, x)


def slope_of_either(p, x, w):
    return plait.grad(lambda w: either(p, x, w).sum())(w).sum()


def one_of(i, x, w):
    return lax.switch(i % 3, [lambda x: w @ x, lambda x: x, lambda x: w.T @ x], x)


def turns(m, x, w):
    return lax.while_loop(lambda c: c[0] < m, lambda c: (c[0] + 1, w @ c[1]), (0, x))[1]


def steps(x, w):
    return lax.scan(lambda c, _: (jnp.tanh(w @ c), None), x, None, length=5)[0]


def system(x, w):
    return jnp.linalg.solve(w @ w.T + jnp.eye(N), x)


def triangle(x, w):
    low = jnp.tril(w) + 9 * jnp.eye(N)
    return plait.scipy.linalg.solve_triangular(low, x, lower=True)


PROGRAMS = {  # the function, arguments, in_axes; equations and largest array of the peer
    "cond": (either, (S > 0, X, W), (0, 0, None), 19, 1048576),
    "grad of cond": (slope_of_either, (S > 0, X, W), (0, 0, None), 50, 1048576),
    "switch": (one_of, (I, X, W), (0, 0, None), 39, 1048576),
    "while": (turns, (I, X, W), (0, 0, None), None, 8192),
    "fori": (lambda m, x, w: lax.fori_loop(0, m, lambda i, c: w @ c, x), (I, X, W), (0, 0, None),
             None, 8192),
    "scan": (steps, (X, W), (0, None), 4, 8192),
    "layers": (layers, (X, W), (0, None), 5, 8192),
    "gradient of each": (lambda x, w: plait.grad(lambda w: jnp.tanh(w @ x).sum())(w).sum(0),
                         (X, W), (0, None), 13, 1048576),
    "outer product": (lambda x, w: x[:, None] * w[0][None] + w, (X, W), (0, None), 8, 1048576),
    "where": (lambda x, s: jnp.where(x > s, x, 0.0), (X, S), (0, 0), 6, 8192),
    "scaled": (lambda s, w: (s * w).sum(), (S, W), (0, None), 4, 1048576),
    "rows": (lambda i, w: w[i], (I, W), (0, None), 11, 8192),
    "elements": (lambda i, x: x[i], (I, X), (0, 0), 6, 64),
    "added at": (lambda i, x: x.at[i].add(1.0), (I, X), (0, 0), 7, 8192),
    "added to one": (lambda i, w: w.at[i].add(1.0).sum(0), (I, W), (0, None), 10, 1048576),
    "slice": (lambda i, w: lax.dynamic_slice(w, (i, 0), (2, 8)), (I, W), (0, None), 7, 1024),
    "sort": (lambda x, w: jnp.sort(w[0]) + x, (X, W), (0, None), 5, 8192),
    "concatenate": (lambda x, w: jnp.concatenate([x, w[0], w[1]]), (X, W), (0, None), 7, 24576),
    "pad": (lambda x, s: lax.pad(x, s, ((1, 1, 0),)), (X, S), (0, 0), 5, 8320),
    "clamp": (lambda x, low: lax.clamp(low, x, jnp.float32(1)), (X, S), (0, 0), 3, 8192),
    "softmax": (lambda x, w: nn.softmax(w @ x), (X, W), (0, None), 11, 8192),
    "convolution": (convolved, (X, KERNEL), (0, None), 4, 32768),
    "kernels": (convolved, (X, np.stack([KERNEL] * B)), (0, 0), 6, 32768),
    "solve": (system, (X, W), (0, None), 47, 16384),
    "solve_triangular": (triangle, (X, W), (0, None), 20, 16384),
    "einsum": (lambda x, w: jnp.einsum("i,ij,j->", x, w, x), (X, W), (0, None), 2, 8192),
    "cumsum": (lambda x, w: jnp.cumsum(w, 0) * x, (X, W), (0, None), 4, 1048576),
    "argmax": (jnp.argmax, (X,), (0,), 1, 64),
    "custom rules": (lambda x, w: nn.gelu(nn.relu(w @ x)), (X, W), (0, None), None, 8192),
    "random": (lambda k: plait.random.normal(k, (3,)), None, (0,), 16, 12),
    "chosen": (lambda p, x, w: jnp.where(p, x, w[0]), (S > 0, X, W), (0, 0, None), 5, 8192),
    "psum": (lambda x, w: x - lax.psum(w[0], "i"), (X, W), (0, None), 5, 8192),
    "all_gather": (lambda x, w: lax.all_gather(w[0], "i")[0] * x, (X, W), (0, None), 7, 8192),
}  # fmt: skip


def measured(program):
    """(equations, elements of the largest array) of a program and those in it."""
    count, largest = 0, 0
    for e in program.eqns:
        count += e.prim is not call
        largest = max([largest, *(o.aval.size for o in e.outputs)])
        for inner in programs_in(e.params):
            n, size = measured(inner)
            count, largest = count + n, max(largest, size)
    return count, largest


LOWERED = {"while": 16, "fori": 16}
"""The peer's loops whose predicate differs from element to element become what they do only where
they are lowered: these are its StableHLO operations, constants not counted."""

ADDED = {"custom rules": 1}
"""Equations that mapping adds, where the function itself has others: our gelu is exact where the
peer's overflows."""


def arguments(name):
    args = PROGRAMS[name][1]
    return (plait.random.split(plait.random.key(0), 4),) if args is None else args


def mapped(name):
    f, _, axes, *_ = PROGRAMS[name]
    return plait.vmap(f, axes, axis_name="i")


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_larger_and_hardly_longer(name):
    *_, equations, elements = PROGRAMS[name]
    count, largest = measured(plait.make_program(mapped(name))(*arguments(name)))
    assert largest <= elements
    assert equations is not None or name in LOWERED or name in ADDED
    assert equations is None or count <= equations + 2


@pytest.mark.parametrize("name", LOWERED)
def test_loops_are_lowered_to_no_more(name):
    text = plait.jit(mapped(name)).lower(*arguments(name)).as_text()
    done = [o for o in re.findall(r"stablehlo\.(\w+)", text) if o not in ("constant", "return")]
    assert 0 < len(done) <= LOWERED[name]


@pytest.mark.parametrize("name", ADDED)
def test_mapping_adds_no_more(name):
    f, args, axes, *_ = PROGRAMS[name]
    one = [x if a is None else x[0] for x, a in zip(args, axes)]
    alone, _ = measured(plait.make_program(f)(*one))
    count, _ = measured(plait.make_program(mapped(name))(*args))
    assert count - alone <= ADDED[name] + 2
