"""What an expand rule returns is checked before it is believed.

Invariant: a result of another type than the primitive's is an error, eager and staged.
"""

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait.ext.errors import TypeRule

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def f64(x):
    return pnp.asarray(np.asarray(x, np.float64))


X = [1.0, 2.0]

OTHERS = {
    "shape": lambda x: (x * x)[None],
    "dtype": lambda x: f64(1) * x * x,
    "number of results": lambda x: (x * x, x),
}


# ---- rules of tables -------------------------------------------------------------------------


EXPANDED = {
    "eager": lambda p: p(f32(X)),
    "jit": lambda p: plait.jit(lambda x: p(x))(f32(X)),
    "scan": lambda p: lax.scan(lambda c, _: (p(c), None), f32(X), None, length=2),
}


@pytest.mark.parametrize("way", EXPANDED)
@pytest.mark.parametrize("other", ("shape", "dtype"))
def test_expand_rule(other, way):
    """What an expand rule says must have the type of the primitive."""
    p = ext.Primitive(f"core_boundaries.said_{other}_{way}", lambda x: x)
    ext.expand_rules.rule(p)(OTHERS[other])
    with pytest.raises(TypeRule, match="'expand' rule"):
        EXPANDED[way](p)
