"""The laws judge primitives that numpy does not know, by what is compiled of them."""

import numpy as np

import plait
from plait import ext
from plait_autodiff.ext import jvp_rules


@ext.primitive("others.cube", traits=(ext.Elementwise,))
def cube(x: ext.Aval) -> ext.Aval:
    """x ** 3; nothing else says it."""
    return x


@ext.lower_rules.rule(cube)
def _(e, xs, ins, outs):
    square = e.op("stablehlo.multiply", [*xs, *xs], *outs)
    return e.op("stablehlo.multiply", [square, *xs], *outs)


@jvp_rules.rule(cube)
def _(xs, ts):
    return cube.bind(*xs), ts[0] * 3 * xs[0] ** 2


def test_series_and_laplacians_of_a_primitive_with_a_lowering_alone():
    sample = np.float32([0.5, -1.5])
    report = plait.testing.conformance(cube, [sample], lambda x: x**3)
    assert report.checks["law jet"] >= 4 and report.checks["law laplacian"] >= 1
