"""What compiled and traced things are remembered by: never by an equality that hides a difference.

Python says 1 == 1.0 == True and 0.0 == -0.0, and a class may say whatever it likes.

Invariant: a program made for one of them is not used for the other.
"""

import dataclasses
import gc
import weakref

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait._base.freezing import freeze
from plait._jit import call_forms

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


class Same:
    """Equal to everything of its class."""

    def __init__(self, v):
        self.v = v

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1

    def __call__(self, c, _=None):
        return c * self.v, None


@dataclasses.dataclass(frozen=True)
class Power:
    """Equal for 2 and 2.0, which give different dtypes."""

    w: object

    def __call__(self, c, _):
        return c, self.w * np.int32(1)


def test_equal_numbers_of_different_type_in_a_callable():
    """Instances that are equal because 2 == 2.0."""
    kinds = [lax.scan(Power(w), f32(1), None, length=2)[1].dtype.kind for w in (2, 2.0, True, 2)]
    assert kinds == ["i", "f", "i", "i"]


def test_method_of_fresh_instances():
    """A loop over the methods of short-lived instances whose memory is used again."""
    for w in range(2, 30):
        assert lax.scan(Same(float(w)), f32(1), None, length=1)[0].item() == w


def test_static_numbers_by_type():
    """Static arguments 1, 1.0 and True each make a program of their own."""
    f = plait.jit(lambda n, x: x * n, static_argnums=0)
    x = pnp.asarray(np.int32(3))
    for _ in range(2):
        assert f(1, x).dtype == np.int32
        assert f(1.0, x).dtype == np.float32
        assert f(True, x).dtype == np.int32
    by_name = plait.jit(lambda x, n: x * n, static_argnames="n")
    assert [by_name(x, n=n).dtype.kind for n in (1, 1.0, True)] == ["i", "f", "i"]
    nested = plait.jit(lambda n, x: x * n[0][0], static_argnums=0)
    assert [nested(((n,),), x).dtype.kind for n in (1, 1.0, True)] == ["i", "f", "i"]


def test_static_zeros_by_sign():
    """0.0 and -0.0 are different static values, bare and in tuples."""
    f = plait.jit(lambda c, x: x / c, static_argnums=0)
    g = plait.jit(lambda c, x: x / c[0], static_argnums=0)
    for _ in range(2):
        assert f(0.0, f32(1)).item() == np.inf
        assert f(-0.0, f32(1)).item() == -np.inf
        assert g((0.0,), f32(1)).item() == np.inf
        assert g((-0.0,), f32(1)).item() == -np.inf


typed = ext.Primitive("core_cache_keys.typed", lambda x, *, c: ext.Aval(x.shape, type(c)))

ext.expand_rules.rule(typed)(lambda x, *, c: x.astype(np.dtype(type(c))))


def test_type_rules_by_type_of_parameter():
    """The remembered type of a result is that for a parameter of this very type."""
    kinds = [typed(f32(1), c=c).dtype.kind for c in (1, 1.0, True, 1)]
    assert kinds == ["i", "f", "b", "i"]
    staged = [plait.jit(lambda x, c=c: typed(x, c=c))(f32(1)).dtype.kind for c in (1, 1.0, True)]
    assert staged == ["i", "f", "b"]


def test_freeze():
    """The key of a static value tells apart whatever could be told apart."""
    different = [1, 1.0, True, 1 + 0j, (1,), (1.0,), 0, 0.0, -0.0, False, frozenset([1]),
                 frozenset([1.0]), complex(0.0, -0.0), 0j, "1", None]  # fmt: skip
    keys = [freeze(x) for x in different]
    assert len(set(keys)) == len(different)
    assert freeze((1, (2.0, "a"))) == freeze((1, (2.0, "a")))
    assert freeze(float("nan")) == freeze(float("nan"))
    with pytest.raises(TypeError):
        freeze([1])


def test_python_numbers_as_arguments():
    """Python numbers that are equal but not the same are different arguments."""
    f = plait.jit(lambda x: 1.0 / x)
    assert [f(0.0).item(), f(-0.0).item(), f(0.0).item()] == [np.inf, -np.inf, np.inf]
    g = plait.jit(lambda x: x)
    assert [g(x).dtype.kind for x in (1, 1.0, True)] == ["i", "f", "b"]
    assert [(pnp.asarray(1.0) / z).item() for z in (0.0, -0.0)] == [np.inf, -np.inf]
    loop = lambda z: lax.scan(lambda c, _: (c / z, None), f32(1), None, length=1)[0]  # noqa: E731
    assert [loop(z).item() for z in (0.0, -0.0)] == [np.inf, -np.inf]


def test_weak_and_strong_arguments():
    """A weak scalar and a strong one of the same dtype make different programs."""
    f = plait.jit(lambda x: x + np.float16(1))
    assert f(1.0).dtype == np.float16
    assert f(f32(1)).dtype == np.float32
    assert f(1.0).dtype == np.float16


class Counted:
    """A static value of which it is seen whether it is kept."""

    def __init__(self, n, alive):
        self.n = n
        alive.add(self)


KEEPING = {
    "static": lambda x, s, f=plait.jit(lambda x, s: x * 2, static_argnums=1): f(x, s),
    "static in a tuple": lambda x, s, f=plait.jit(lambda x, s: x * 2, static_argnums=1): f(x, (s,)),
    "metadata": lambda x, s, f=plait.jit(lambda t: t.x * 2): f(Held(x, s)),
    "metadata that is mapped": lambda x, s, f=(lambda t: t.x * 2): plait.jit(f)(Held(x, s)),
}


@plait.tree.register_dataclass
@dataclasses.dataclass
class Held:
    x: object
    s: object = plait.tree.static(default=None)


@pytest.mark.parametrize("name", KEEPING)
def test_no_more_static_values_are_kept_than_is_said(name, monkeypatch):
    """Calls with another static value each time, and calls that come again after them."""
    monkeypatch.setattr("plait._jit.caches.MOST", 16)
    monkeypatch.setattr("plait._jit.call_forms._written", call_forms._written.__wrapped__)
    alive, first, x = weakref.WeakSet(), Counted(0, set()), f32(3)
    for n in range(400):  # some more are kept for a while, in tables for all functions
        assert KEEPING[name](x, Counted(n, alive)).item() == 6
        assert KEEPING[name](x, first).item() == 6
    gc.collect()
    assert len(alive) < 320
