"""Executables of one operation are not kept without bound.

Invariant: forgetting some changes no result.
"""

import numpy as np

import plait
from plait import ext

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def test_executables_of_one_operation():
    """Executables of an operation on many shapes are not kept without bound."""
    prim = ext.Primitive(
        "core_executables.twice", lambda x: x, traits=(ext.Linear, ext.Elementwise)
    )
    ext.lower_rules.rule(prim)(lambda e, xs, ins, outs: e.op("stablehlo.add", [*xs, *xs], *outs))
    prim.compiled.update({("stands for another shape", i): None for i in range(100_000)})
    np.testing.assert_array_equal(prim(f32([1, 2])), [2, 4])
    np.testing.assert_array_equal(prim(f32([1, 2])), [2, 4])
    assert len(prim.compiled) < 10_000
