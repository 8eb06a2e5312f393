"""Costs by line: an operation that is lowered by other ones keeps the line that the user wrote.

Invariant: each function is one line, so that any other line of this file in a table is wrong.
"""

import inspect

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax, nn

rng = np.random.default_rng(0)
X = rng.normal(size=(2, 48, 2, 16)).astype(np.float32)
FUNCTIONS = {
    "attention": lambda x: nn.dot_product_attention(x, x, x, is_causal=True).sum(),
    "top_k": lambda x: lax.top_k(x.reshape(2, -1), 5)[0].sum(),
    "contraction": lambda x: pnp.einsum("abcd,ebcd->ae", x, x).sum(),
    "sums": lambda x: pnp.cumsum(x, 1).sum(),
    "logsumexp": lambda x: nn.logsumexp(x, 1).sum(),
    "solve": lambda x: pnp.linalg.solve(x[0, 0] @ x[0, 0].T + 3 * pnp.eye(2), x[0, 0]).sum(),
    "special": lambda x: plait.scipy.special.gammaln(pnp.abs(x) + 1).sum(),
    "convolution": lambda x: lax.conv(x, x[:, :, :1, :3], (1, 1), "SAME").sum(),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("transformed", ["jit", "grad"])
def test_each_cost_is_of_the_line(name, transformed):
    f = FUNCTIONS[name]
    line = f"{__file__}:{inspect.getsourcelines(f)[1]}"
    of = plait.jit(f if transformed == "jit" else plait.grad(f))
    table = plait.profiler.by_line(of, repeat=1)(X)
    assert {row.where for row in table} - {"<unknown>"} <= {line}, str(table)
    assert any(row.seconds for row in table if row.where == line)
