"""What a batching rule returns is checked before it is believed.

Invariant: an axis that is not the mapped one is refused.
"""

import numpy as np
import pytest

import plait
import plait_batching.ext
from plait import ext
from plait.ext.errors import AxisError
from plait.ext.ops.elementwise import mul

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


X = [1.0, 2.0]


# ---- rules of tables -------------------------------------------------------------------------


def party(name):
    """A stranger's primitive: its operand, said by its own expand rule."""
    p = ext.Primitive(f"batching_boundaries.{name}", lambda x: x)
    ext.expand_rules.rule(p)(lambda x: mul.bind(x, ext.Literal(1.0, x.aval)))
    return p


def test_batching_rule():
    """A batching rule that names an axis which is not the mapped one."""
    for k, axis in enumerate([1, 2, -1]):
        p = party(f"mapped{k}")
        plait_batching.ext.batching_rules.rule(p)(lambda b, xs, dims, a=axis, p=p: (p.bind(*xs), a))
        for wrap in (lambda f: f, plait.jit):
            with pytest.raises(AxisError, match="batching rule"):
                plait.vmap(wrap(lambda x, p=p: p(x)))(f32([X, X, X]))
