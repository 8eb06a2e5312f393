"""What surrounds calls, by name and per thread: jitted functions that ask for it, and others.

Invariant: what a call gives is what its Python gives in the same surroundings.
"""

import asyncio
import threading
from contextlib import contextmanager

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.ext.trace import surround, surrounding

X = np.arange(4.0, dtype=np.float32)


@contextmanager
def colour(value):
    before = surrounding("colour")
    surround("colour", value)
    try:
        yield
    finally:
        surround("colour", before)


def shade():
    return {None: 1, "red": 2, "blue": 3}[surrounding("colour")]


def f(x):
    return x * shade()


jitted = plait.jit(f)
FORMS = {
    "array": (plait.jit, f, lambda x: (x,)),
    "arrays": (plait.jit, lambda x, y: x * shade() + y, lambda x: (x, x)),
    "tree": (plait.jit, lambda t: {"b": t["a"][0] * shade()}, lambda x: ({"a": [x]},)),
    "large": (
        plait.jit,
        lambda t: [v * shade() for v in t],
        lambda x: ([x] * 200,),
    ),
    "numpy": (plait.jit, f, lambda x: (np.asarray(x),)),
    "number": (plait.jit, lambda x, n: x * n * shade(), lambda x: (x, 2.0)),
    "static": (
        lambda g: plait.jit(g, static_argnums=0),
        lambda k, x: x * k * shade(),
        lambda x: (3, x),
    ),
    "donated": (lambda g: plait.jit(g, donate_argnums=0), f, lambda x: (x + 0,)),
    "inner": (plait.jit, lambda x: jitted(x) + 1, lambda x: (x,)),
    "loop": (
        plait.jit,
        lambda x: plait.lax.fori_loop(0, 3, lambda i, c: c + shade(), x),
        lambda x: (x,),
    ),
    "branch": (
        plait.jit,
        lambda x: plait.lax.cond(x[0] < 1, lambda x: x + shade(), lambda x: x, x),
        lambda x: (x,),
    ),
    "task": (plait.jit, lambda x: asyncio.run(_soon(x)), lambda x: (x,)),
    "inline": (lambda g: plait.jit(g, inline=True), f, lambda x: (x,)),
}


async def _soon(x):
    await asyncio.sleep(0)
    return x * shade()


@pytest.mark.parametrize("name", FORMS)
def test_calls_see_what_surrounds_them(name):
    """The first call, the one that finds it, the fast one: of each colour, and none."""
    make, g, args = FORMS[name]
    fast = make(g)
    for _ in range(4):
        for value in ("red", None, "blue"):
            with colour(value):
                got, want = fast(*args(pnp.asarray(X))), g(*args(pnp.asarray(X)))
            for a, b in zip(plait.tree.leaves(got), plait.tree.leaves(want), strict=True):
                np.testing.assert_array_equal(a, b)
    with plait.events.counting() as counted:
        for value in ("red", None, "blue"):
            with colour(value):
                fast(*args(pnp.asarray(X)))
    assert not counted["trace"] and not counted["compile"], counted


def test_only_some_calls_ask():
    """Of one function: calls that ask and others, in turns."""
    g = plait.jit(lambda x: x * shade() if x.ndim == 1 else x * 5)
    for _ in range(3):
        for value in (None, "red", "blue"):
            with colour(value):
                np.testing.assert_array_equal(g(pnp.asarray(X)), X * shade())
                np.testing.assert_array_equal(g(pnp.ones((2, 2))), np.full((2, 2), 5))
    with plait.events.counting() as counted:
        g(pnp.ones((3, 3))), g(pnp.ones((3, 3)))
        with colour("red"):
            g(pnp.ones((3, 3)))
    assert counted["trace"] == 1, counted


def test_other_settings_and_cleared_caches():
    """What is found for surroundings is forgotten when a setting changes, as everything is."""
    g = plait.jit(lambda x: x * shade() + pnp.asarray(0.5).dtype.itemsize)
    for _ in range(2):
        for wide in (False, True):
            with plait.config(default_float="float64" if wide else "float32"), colour("red"):
                for _ in range(3):
                    np.testing.assert_array_equal(g(pnp.asarray(X)), X * 2 + (8 if wide else 4))
        g.clear_cache()


def test_threads_have_surroundings_of_their_own():
    g = plait.jit(lambda x: x * shade())
    start, wrong = threading.Barrier(3), []

    def work(value):
        try:
            for _ in range(20):
                with colour(value):
                    start.wait(60)
                    np.testing.assert_array_equal(g(pnp.asarray(X)), X * shade())
        except BaseException as e:
            wrong.append(e)
            start.abort()

    with colour("red"):
        threads = [threading.Thread(target=work, args=(v,)) for v in (None, "red", "blue")]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert surrounding("colour") == "red"
    assert not wrong and surrounding("colour") is None, wrong


def test_several_names():
    with colour("red"):
        surround("size", 3)
        assert (surrounding("size"), surrounding("colour")) == (3, "red")
        with colour("blue"):
            assert (surrounding("size"), surrounding("colour")) == (3, "blue")
        surround("size", None)
        assert (surrounding("size"), surrounding("colour")) == (None, "red")
