"""Classes that are differentiated, although they are not trees.

Invariant: derivatives are those of formulas, in numpy.
"""

import numpy as np
import pytest

import plait
from plait.errors import NotAnArrayError, RegistrationError, TreeMismatch, TypeRule

pytestmark = pytest.mark.feature("B21")
A, B = np.float32([1, 2, 3]), np.float32([4, 5, 6])


class Point:
    """Two arrays and a name; no tree."""

    def __init__(self, name, x, y):
        self.name, self.x, self.y = name, x, y

    def to_parts(self):
        return (self.x, self.y), self.name

    @classmethod
    def from_parts(cls, static, parts):
        return cls(static, *parts)


@pytest.fixture(autouse=True)
def registered():
    plait.register_adable(Point)
    yield
    plait.unregister_adable(Point)
    with pytest.raises(NotAnArrayError, match="Point"):
        plait.grad(area)(Point("p", A, B))


def area(p):
    return (p.x * p.y**2).sum()


def turned(p):
    return Point(p.name, p.y**2, p.x * p.y)


def is_point(p, x, y):
    assert type(p) is Point and p.name == "p"
    np.testing.assert_allclose(np.asarray(p.x), x, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(p.y), y, rtol=1e-6)


P = Point("p", A, B)
T = Point("p", A + 1, B - 1)


def test_grad():
    is_point(plait.grad(area)(P), B**2, 2 * A * B)
    value, (g, h) = plait.value_and_grad(lambda p, t: area(p) * t["s"], (0, 1))(P, {"s": 3.0})
    is_point(g, 3 * B**2, 6 * A * B)
    np.testing.assert_allclose(float(value), 3 * (A * B**2).sum(), rtol=1e-6)
    np.testing.assert_allclose(np.asarray(h["s"]), (A * B**2).sum(), rtol=1e-6)
    in_tree = plait.grad(lambda t: area(t["p"][0]))({"p": [P]})
    is_point(in_tree["p"][0], B**2, 2 * A * B)


def test_jvp():
    out, dot = plait.jvp(turned, (P,), (T,))
    is_point(out, B**2, A * B)
    is_point(dot, 2 * B * T.y, T.x * B + A * T.y)
    with pytest.raises(TreeMismatch):
        plait.jvp(turned, (P,), (A,))
    with pytest.raises(TreeMismatch):
        plait.jvp(turned, (P,), (Point("q", A, B),))


def test_vjp_and_linearize():
    out, pull = plait.vjp(turned, P)
    is_point(out, B**2, A * B)
    (ct,) = pull(T)
    is_point(ct, T.y * B, 2 * B * T.x + A * T.y)
    out, push = plait.linearize(turned, P)
    is_point(push(T), 2 * B * T.y, T.x * B + A * T.y)
    with pytest.raises(TreeMismatch):
        pull((A, B))


def test_linear_transpose():
    f = lambda p: Point("p", p.y * 2, p.x + p.y)  # noqa: E731
    (ct,) = plait.linear_transpose(f, P)(T)
    is_point(ct, T.y, 2 * T.x + T.y)


def test_higher_orders_and_auxiliary_results():
    g, aux = plait.grad(lambda p: (area(p), Point("p", p.x * 2, p.y)), has_aux=True)(P)
    is_point(g, B**2, 2 * A * B)
    is_point(aux, 2 * A, B)
    curved = plait.jvp(plait.grad(area), (P,), (T,))[1]
    is_point(curved, 2 * B * T.y, 2 * B * T.x + 2 * A * T.y)


@pytest.mark.parametrize("jacobian", [plait.jacfwd, plait.jacrev])
def test_jacobians(jacobian):
    """A point at each leaf of the result, which is a point, too."""
    blocks = jacobian(turned)(P)
    is_point(blocks.x, 0 * np.eye(3), 2 * np.diag(B))
    is_point(blocks.y, np.diag(B), np.diag(A))
    second = plait.hessian(area)(P)
    is_point(second.x, 0 * np.eye(3), 2 * np.diag(B))
    is_point(second.y, 2 * np.diag(B), 2 * np.diag(A))


def test_parts_that_can_not_be_differentiated():
    """Integers beside floats have derivatives of dtype float0; integers alone have none."""
    integers = np.arange(3, dtype=np.int32)
    got = plait.grad(lambda p: p.x.sum())(Point("p", A, integers))
    assert got.y.dtype == plait.float0
    np.testing.assert_array_equal(np.asarray(got.x), np.ones_like(A))
    with pytest.raises(TypeRule, match="i32"):
        plait.grad(lambda p: 1.0 * p.x.sum())(Point("p", integers, integers))


def test_it_is_no_tree():
    assert plait.tree.leaves([P]) == [P] and plait.is_adable(P) and not plait.is_adable(A)
    with pytest.raises(RegistrationError, match="told of Point already"):
        plait.register_adable(Point)
