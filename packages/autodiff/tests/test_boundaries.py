"""Tangents and cotangents are checked before they are believed.

Invariant: a differential of another type, number or structure is refused.
"""

import numpy as np
import pytest

import plait
from plait.ext.errors import TreeMismatch, TypeRule

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def f64(x):
    return pnp.asarray(np.asarray(x, np.float64))


def pullback(f, fwd, bwd):
    g = plait.custom_vjp(f)
    g.defvjp(fwd, bwd)
    return g


def direction(f, rule):
    g = plait.custom_jvp(f)
    g.defjvp(rule)
    return g


X = [1.0, 2.0]


def test_cotangents_of_another_structure():
    """Their number and structure are those of the arguments."""
    for bwd in (lambda x, ct: 2 * x * ct, lambda x, ct: (ct, ct), lambda x, ct: ((ct, ct),)):
        f = pullback(lambda x: x * x, lambda x: (x * x, x), bwd)
        with pytest.raises(TreeMismatch):
            plait.grad(lambda x, f=f: f(x).sum())(f32(X))


def test_python_numbers_are_tangents():
    """A Python number stands for a scalar differential of any precision."""
    f = direction(lambda x: x * 2, lambda p, t: (p[0] * 2, 2.0))
    assert plait.jvp(f, (f64(1),), (f64(1),))[1].dtype == np.float64
    g = pullback(lambda x: x * 2, lambda x: (x * 2, None), lambda _, ct: (2.0,))
    assert plait.grad(g)(f64(1)).dtype == np.float64


OTHERS = {
    "shape": lambda x: (x * x)[None],
    "dtype": lambda x: f64(1) * x * x,
    "number of results": lambda x: (x * x, x),
}


@pytest.mark.parametrize("other", OTHERS)
def test_checks_compare_rules_with_functions(other):
    """Where only the rule is run, the setting `checks` runs the function too, and compares."""
    wrong = OTHERS[other]
    f = pullback(lambda x: x * x, lambda x: (wrong(x), x), lambda x, ct: (x,))
    g = direction(lambda x: x * x, lambda p, t: (wrong(p[0]), wrong(t[0])))
    with plait.config(checks=True):
        with pytest.raises(TypeRule, match="the forward rule"):
            plait.vjp(f, f32(X))
        with pytest.raises(TypeRule, match="the derivative rule"):
            plait.jvp(g, (f32(X),), (f32(X),))


# ---- rules of tables -------------------------------------------------------------------------


def test_cotangents_given_by_users():
    """What users give is checked too."""
    _, pull = plait.vjp(lambda x: x * x, f32(X))
    for wrong in (f32(1.0), f64(X), pnp.asarray(np.int32([1, 2]))):
        with pytest.raises(TypeRule):
            pull(wrong)
    with pytest.raises(TypeRule):
        plait.jvp(lambda x: x * x, (f32(X),), (f32(1.0),))
