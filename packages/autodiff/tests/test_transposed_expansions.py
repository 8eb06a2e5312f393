"""Linear primitives without a transpose rule are transposed by what their `expand` rule says.

Invariant: the references are transposed matrices of numpy.
"""

import numpy as np
import pytest

import plait
import plait_autodiff.ext
from plait import ext, lax
from plait.ext.errors import MissingRule

A = np.arange(6.0).reshape(2, 3)
X = np.array([1.0, -2.0, 0.5])
D = np.array([3.0, -1.0])


def linear(name, rule, **options):
    """A primitive that differentiates as a linear one, and has no transpose rule."""
    p = ext.Primitive(f"transposed_expansions.{name}", rule, **options)

    @plait_autodiff.ext.jvp_rules.rule(p)
    def _(xs, ts, **params):
        return p.bind(*xs, **params), p.bind(*ts, **params)

    return p


apply_a = linear("apply_a", lambda x: x.with_shape((2,)))
ext.expand_rules.rule(apply_a)(lambda x: (plait.numpy.asarray(A) * x).sum(axis=1))
combined = linear("combined", lambda x, y, *, k: x)
ext.expand_rules.rule(combined)(lambda x, y, *, k: x * k - y * (k + 1))
both = linear("both", lambda x: [x, x], many=True)
ext.expand_rules.rule(both)(lambda x: [x * 2.0, x * -3.0])


def cotangent(f, ct, *xs):
    return [np.asarray(c) for c in plait.vjp(f, *xs)[1](ct)]


WAYS = {
    "eager": lambda f: f,
    "jit": plait.jit,
    "scan": lambda f: lambda *xs: lax.scan(lambda c, _: (c, f(*xs)), 0.0, None, length=1)[1][0],
}


@pytest.mark.parametrize("way", WAYS)
def test_a_matrix(way):
    got = cotangent(WAYS[way](lambda x: apply_a(x)), D, X)
    np.testing.assert_allclose(got[0], A.T @ D)


@pytest.mark.parametrize("way", WAYS)
def test_two_operands_and_a_parameter(way):
    ct = np.array([1.0, 2.0, -1.0])
    got = cotangent(WAYS[way](lambda x, y: combined(x, y, k=4.0)), ct, X, X * 2)
    np.testing.assert_allclose(got[0], 4 * ct)
    np.testing.assert_allclose(got[1], -5 * ct)


@pytest.mark.parametrize("way", WAYS)
def test_many_results(way):
    """Each result has a cotangent of its own; one that nobody uses has none."""
    f = WAYS[way](lambda x: plait.numpy.stack(both(x)))
    ct = np.array([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]])
    np.testing.assert_allclose(cotangent(f, ct, X)[0], 2 * ct[0] - 3 * ct[1])
    g = WAYS[way](lambda x: both(x)[1])
    np.testing.assert_allclose(cotangent(g, ct[0], X)[0], -3 * ct[0])


def test_without_either():
    """What has neither rule says which to write."""
    p = linear("neither", lambda x: x)
    ext.lower_rules.rule(p)(lambda e, xs, ins, outs: xs[0])
    with pytest.raises(MissingRule, match="'transpose' rule .*transposed_expansions.neither"):
        plait.grad(lambda x: p(x))(1.0)
