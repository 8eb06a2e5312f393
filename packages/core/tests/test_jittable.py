"""Classes that jit takes apart, although they are not trees.

Invariant: what is expected is numpy's; how often Python runs is counted by the functions
themselves.
"""

import logging

import numpy as np
import pytest

import plait
from plait.errors import ArgumentError, NotAnArrayError, RegistrationError, TreeMismatch

pytestmark = pytest.mark.feature("B21")
X = np.float32([1, 2, 3])


class Pair:
    """Two arrays and a name; no tree."""

    def __init__(self, name, a, b):
        self.name, self.a, self.b = name, a, b

    def to_parts(self):
        return (self.a, {"b": self.b}), self.name

    @classmethod
    def from_parts(cls, static, parts):
        a, rest = parts
        return cls(static, a, rest["b"])


class Box:
    def __init__(self, inside):
        self.inside = inside


@pytest.fixture(autouse=True)
def registered():
    plait.register_jittable(Pair)
    plait.register_jittable(Box, lambda b: ((b.inside,), None), lambda _, parts: Box(*parts))
    yield
    plait.unregister_jittable(Pair)
    plait.unregister_jittable(Box)
    with pytest.raises(NotAnArrayError, match="Pair"):
        plait.jit(lambda p: p)(Pair("n", X, X))


def swapped(p):
    return Pair(p.name + "'", p.b, p.a * 2)


def same(p, name, a, b):
    assert type(p) is Pair and p.name == name
    np.testing.assert_array_equal(np.asarray(p.a), a)
    np.testing.assert_array_equal(np.asarray(p.b), b)


def test_arguments_and_results():
    f = plait.jit(swapped)
    for _ in range(3):
        same(f(Pair("n", X, 2 * X)), "n'", 2 * X, 2 * X)
    same(f(p=Pair("n", X, X[0])), "n'", X[0], 2 * X)


def test_python_runs_once_for_each_type_and_static_part():
    runs = []

    @plait.jit
    def f(p):
        runs.append(p.name)
        return p.a + p.b

    for name in ("n", "n", "m", "n"):
        np.testing.assert_array_equal(np.asarray(f(Pair(name, X, X))), 2 * X)
    f(Pair("n", X, X[:1]))
    assert runs == ["n", "m", "n"]


def test_in_trees_and_in_one_another():
    def f(tree, y):
        box = tree["box"]
        assert type(box) is Box and type(box.inside[1]) is Pair
        return [Box(swapped(box.inside[1])), y], {"sum": box.inside[0] + tree["x"]}

    given = {"box": Box([X, Pair("n", X, 5 * X)]), "x": X}
    for run in (plait.jit(f), plait.jit(plait.jit(f)), f):
        (box, y), rest = run(given, 1.0)
        same(box.inside, "n'", 5 * X, 2 * X)
        np.testing.assert_array_equal(np.asarray(rest["sum"]), 2 * X)
        assert y == 1


def test_static_donated_and_placed_arguments():
    runs = []

    def f(p, k, q):
        runs.append(k)
        return Pair(p.name, p.a * k, q.b)

    g = plait.jit(f, static_argnums=1, donate_argnums=0)
    for k in (2, 2, 3):
        p = Pair("n", plait.numpy.array(X), plait.numpy.array(X))
        q = Pair("m", plait.numpy.array(X), plait.numpy.array(X))
        with pytest.warns(UserWarning, match="donated"):
            plait.jit(lambda p: p.a.sum(), donate_argnums=0)(
                Pair("w", plait.numpy.array(X), plait.numpy.array(X))
            )
        same(g(p, k, q), "n", X * k, X)
        assert p.a.is_deleted() and not q.a.is_deleted() and not q.b.is_deleted()
    assert runs == [2, 3]
    static = plait.jit(lambda x, p: x * len(p.name), static_argnames="p")
    np.testing.assert_array_equal(np.asarray(static(X, p=Pair("four", X, X))), 4 * X)


def test_stages_and_shapes():
    f, p = plait.jit(swapped), Pair("n", X, 2 * X)
    compiled = f.lower(p).compile()
    same(compiled(p), "n'", 2 * X, 2 * X)
    with pytest.raises(TreeMismatch):
        compiled(X)
    shape = f.eval_shape(p)
    assert type(shape) is Pair and shape.a.shape == (3,) and shape.b.dtype == np.float32
    assert type(plait.eval_shape(swapped, p)) is Pair
    assert len(plait.make_program(swapped)(p).outputs) == 2
    with plait.disable_jit():
        same(f(p), "n'", 2 * X, 2 * X)


def test_why_it_was_traced_again(caplog):
    f = plait.jit(lambda p: p.a + p.b["x"])
    f(Pair("n", X, {"x": X}))
    with caplog.at_level(logging.WARNING, "plait"), plait.config(explain_cache_misses=True):
        f(Pair("n", X, {"x": X[:1]}))
    assert "other shape (f32[1], and f32[3] before) of `p[1]['b']['x']`" in caplog.text
    assert "['b']['x']" in caplog.text


def test_it_is_no_tree():
    p = Pair("n", X, X)
    assert plait.tree.leaves([p]) == [p] and plait.is_jittable(p)
    assert not plait.is_jittable(X) and not plait.is_jittable(Pair)


def test_mistakes():
    with pytest.raises(RegistrationError, match="told of Pair already"):
        plait.register_jittable(Pair)
    with pytest.raises(RegistrationError, match="not told of int"):
        plait.unregister_jittable(int)
    with pytest.raises(ArgumentError, match="not a class"):
        plait.register_jittable(3)

    class Bare:
        pass

    with pytest.raises(ArgumentError, match="no method 'to_parts'"):
        plait.register_jittable(Bare)
    for parts, what in [(lambda b: (1, [2], 3), "pair"), (lambda b: ((), []), "hashed")]:
        plait.register_jittable(Bare, parts, lambda static, parts: Bare())
        with pytest.raises(ArgumentError, match=what) as e:
            plait.jit(lambda b: 1.0)(Bare())
        assert __file__ in str(e.value)
        plait.unregister_jittable(Bare)
    plait.register_jittable(Bare, lambda b: (("text",), None), lambda static, parts: Bare())
    with pytest.raises(NotAnArrayError, match="text"):
        plait.jit(lambda b: 1.0)(Bare())
    plait.unregister_jittable(Bare)
