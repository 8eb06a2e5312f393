"""What Plait exports, called by `jax.export`: modules follow the convention that it has.

Invariant: jax compiles and calls our StableHLO, and results are compared with numpy's.
"""

import dataclasses

import numpy as np
import pytest

from plait import numpy as pnp
from plait_export import export, symbolic_args_specs

jax = pytest.importorskip("jax", reason="run by `nox -s coexistence`")
theirs = pytest.importorskip("jax.export", reason="run by `nox -s coexistence`")

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def ours(x):
    return pnp.sort(pnp.tanh(x @ x.T), 0)


@pytest.mark.parametrize("sizes", [None, "b, 3"])
def test_jax_calls_what_was_exported_here(sizes):
    types, their_types = X, X
    if sizes is not None:
        types, their_types = symbolic_args_specs(X, sizes), theirs.symbolic_args_specs(X, sizes)
    # a function of the same types, of which the module is taken away
    shell = theirs.export(jax.jit(lambda x: x @ x.T))(their_types)
    module = export(ours)(types).mlir_module_serialized
    exported = dataclasses.replace(shell, mlir_module_serialized=module)
    for x in (X,) if sizes is None else (X, X[:1], np.concatenate([X, -X])):
        found = jax.jit(exported.call)(x)
        np.testing.assert_allclose(found, np.sort(np.tanh(x @ x.T), 0), rtol=1e-5, atol=1e-6)
