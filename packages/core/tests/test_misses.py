"""Why functions are traced, how often, and that nobody pays who does not ask."""

import functools
import gc
import logging
import operator
import weakref

import numpy as np
import pytest

import plait
from plait import lax
from plait.events import counting, counting_of

X = np.arange(3, dtype=np.float32)


@pytest.fixture
def told(caplog):
    """told(f): the lines that calling f logs, with the setting on."""

    def run(f):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "plait"), plait.config(explain_cache_misses=True):
            f()
        return [r.getMessage() for r in caplog.records if r.name == "plait"]

    return run


def scaled(x, y=1.0, *, k=2):
    return x * k


@pytest.mark.feature("C19")
def test_one_text_for_each_cause(told):
    f = plait.jit(lambda *args, **kwargs: scaled(*args, **kwargs))
    (text,) = told(lambda: f(X))
    assert text.startswith(f"jit of <lambda> at {__file__}:") and "was never seen" in text
    assert f"is traced at {__file__}:" in text
    assert not told(lambda: f(X + 1))
    causes = [
        (lambda: f(X, 2.0), "other number of positional arguments: 2, and 1 before"),
        (lambda: f(X, k=3), "other keyword arguments: k, and none before"),
        (lambda: f(X, (2.0,)), "other structure of arguments: "),
        (lambda: f(np.ones(4, np.float32)), "other shape (f32[4], and f32[3] before) of `args[0]`"),
        (lambda: f(np.arange(3)), "other dtype (i64[3], and f32["),
        (lambda: f(np.float32(2)), "other shape (f32[], and f32["),
        (lambda: f(2.0), "other weak type (f32[]*, and f32[] before) of `args[0]`"),
        (lambda: f(X, k=np.float32([1])), "(f32[1], and i32[]* before) of `k`"),
    ]  # fmt: skip
    for call, text in causes:
        (found,) = told(call)
        assert text in found, found
        assert not told(call)


@pytest.mark.feature("C19")
def test_static_values(told):
    f = plait.jit(lambda x, n, *, m=1: x * n, static_argnums=1, static_argnames="m")
    assert "never seen" in told(lambda: f(X, 2))[0]
    (text,) = told(lambda: f(X, 3))
    assert "other static values: args[1] = 3, and args[1] = 2 before" in text
    (text,) = told(lambda: f(X, 3, m=4))
    assert "other static values: args[1] = 3, m = 4, and" in text


@pytest.mark.feature("C19")
def test_settings_and_axes(told):
    f = plait.jit(lambda x: x * 2)
    told(lambda: f(X))
    with plait.config(default_float="float64"):
        (text,) = told(lambda: f(X))
    assert "setting default_float is 'float64', and was 'float32' before" in text
    f.clear_cache()
    (text,) = told(lambda: f(X))
    assert "such a call was traced before, but that trace was not kept" in text


@pytest.mark.feature("C19")
def test_functions_that_are_defined_anew(told):
    fresh = [plait.jit(lambda x: x * 2) for _ in range(3)]
    first, second, third = told(lambda: [f(X) for f in fresh])
    assert first.endswith("this function was never seen")
    assert "another one of the same line was" in second == third
    assert "define it once, outside" in third


@pytest.mark.feature("C18")
def test_functions_without_source(told):
    class Layer:
        def __call__(self, x):
            return x * 2

    for f in (operator.add, functools.partial(operator.add, 1), Layer(), Layer().__call__):
        g, args = plait.jit(f), (42, 24)[: 2 if f is operator.add else 1]
        (text,) = told(lambda: g(*args))
        assert "never seen" in text
        with plait.config(explain_cache_misses=True):
            g(*[np.float32(a) for a in args])


def test_nothing_is_traced_again_for_the_setting():
    f = plait.jit(lambda x: x * 2)
    f(X)
    with counting() as n, plait.config(explain_cache_misses=True):
        f(X)
    f(X)
    assert not n["trace"] + n["lower"] + n["compile"]


def test_what_is_remembered_keeps_no_function(told):
    def used():
        f = lambda x: x * 2  # noqa: E731
        told(lambda: plait.jit(f)(X))
        return weakref.ref(f)

    gone = used()
    gc.collect()
    assert gone() is None


# ---- how often -------------------------------------------------------------------------------


@pytest.mark.feature("C16")
def test_inner_functions_are_traced_once():
    @plait.jit
    def f(x, y):
        return x + y

    def g(x):
        return f(f(x, x), x)

    with counting_of("trace") as n:
        plait.jit(g)(X)
    assert n[f] == 1 and n[g] == 1 and sum(n.values()) == 2
    with counting_of("trace") as n:
        plait.jit(lambda x: f(x, x))(X)
        plait.make_program(lambda x: plait.jit(g)(x))(X)
    assert n[f] == 0 and n[g] == 0
    with counting_of("trace") as n:
        plait.jit(lambda x: lax.sin(f(x, 1.0)))(X)
    assert n[f] == 1


@pytest.mark.feature("C16")
def test_traces_go_with_their_functions():
    def made():
        f = plait.jit(lambda x: x + 1)
        g = plait.jit(lambda x: f(f(x)))
        g(X)
        return (
            weakref.ref(plait._jit.caches.kept(f.__wrapped__)),
            weakref.ref(g.__wrapped__),
            g,
        )

    *gone, g = made()
    assert all(r() is not None for r in gone)
    del g
    gc.collect()
    assert [r() for r in gone] == [None, None]


def test_wrappers_count_as_the_function():
    def f(x, n):
        return x * n

    g = plait.jit(f, static_argnums=1)
    with counting_of("trace") as n:
        g(X, 2), g(X, 3), g(X, 2)
    assert n[f] == n[g] == 2
    with counting_of("compile") as n:
        g(X, 5)
    assert sum(n.values()) == 1
