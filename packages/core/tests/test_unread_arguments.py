"""Arguments that a program does not read: calls that leave them out act as others do.

Invariant: every function has at least ten arguments that it does not read.
"""

import sys

import numpy as np
import pytest

import plait
from plait import lax
from plait.errors import DeletedArrayError
from plait.ext.values import from_numpy


def arrays(n=14, start=0):
    return [from_numpy(np.arange(3, dtype="float32") + 10 * i) for i in range(start, start + n)]


@pytest.mark.parametrize("read", [(), (5,), (11, 2), (3, 7, 3)])
def test_values(read):
    f = plait.jit(lambda *xs: [lax.add(xs[i], float(j)) for j, i in enumerate(read)] + [xs[0].ndim])
    for start in (0, 3, 3):
        xs = arrays(start=start)
        got = f(*xs)
        assert got[-1] == 1
        for j, (i, y) in enumerate(zip(read, got)):
            np.testing.assert_array_equal(np.asarray(y), np.asarray(xs[i]) + j)


def test_forms_of_arguments():
    f = plait.jit(lambda t, *, k: lax.sub(t["b"][1], k))
    xs = arrays()
    want = np.asarray(xs[3]) - 2
    for k in (xs[0], np.asarray(xs[0]), xs[0]):
        tree = {"a": xs[2:], "b": (xs[1], xs[3])}
        np.testing.assert_array_equal(np.asarray(f(tree, k=2.0)), want)
        np.testing.assert_array_equal(np.asarray(f(tree, k=k)), np.asarray(xs[3]) - np.asarray(k))
    numbers = plait.jit(lambda *xs: lax.add(xs[9], 1.0))
    for _ in range(3):
        assert float(numbers(*map(float, range(12)))) == 10
        assert float(numbers(*map(np.float32, range(12)))) == 10


def test_other_types_in_one_form():
    """A table of calls of one form holds programs that read different arguments."""
    f = plait.jit(lambda *xs: lax.neg(xs[1] if xs[0].dtype == np.float32 else xs[2]))
    floats = arrays()
    whole = [from_numpy(np.asarray(x).astype("int32")) for x in floats]
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(f(*floats)), -np.asarray(floats[1]))
        np.testing.assert_array_equal(np.asarray(f(*whole)), -np.asarray(whole[2]))


def test_donated():
    f = plait.jit(lambda *xs: lax.add(xs[12], 1.0), donate_argnums=(4, 12))
    for again in range(3):
        xs = arrays()
        want = np.asarray(xs[12]).copy() + 1
        if again:
            got = f(*xs)
        else:
            with pytest.warns(UserWarning, match="donated"):
                got = f(*xs)
        np.testing.assert_array_equal(np.asarray(got), want)
        assert [x.is_deleted() for x in xs] == [i in (4, 12) for i in range(14)]


def test_deleted():
    f = plait.jit(lambda *xs: lax.add(xs[1], 1.0))
    xs = arrays()
    f(*xs)
    xs[8].delete()
    with pytest.raises(DeletedArrayError):
        f(*xs)


def test_order_of_effects():
    seen = []
    f = plait.jit(lambda *xs: plait.debug.callback(lambda x: seen.append(float(x)), xs[6][0]))
    for start in range(3):
        f(*arrays(start=start))
    plait.effects_barrier()
    assert seen == [60.0, 70.0, 80.0]


def test_runtime_gets_what_is_read():
    programs = []
    with plait.events.listening(lambda name, what: programs.append(what) if name == "lower" else 0):
        plait.jit(lambda *xs: lax.add(xs[1], 7.5))(*arrays())
        plait.jit(lambda *xs: lax.add(xs[1], 7.5))(*arrays(5))
    assert [len(p.inputs) for p in programs] == [1, 5]


def test_numpy_arrays():
    """jaxlib takes those that are read by itself, in one call of Python."""
    f = plait.jit(lambda *xs: [lax.sub(xs[9], xs[2]), lax.add(xs[2], 1.0)])
    for dtype in ("float32", "int32", "float32"):
        for start in range(3):
            xs = [np.arange(3, dtype="float32") + 10 * (start + i) for i in range(14)]
            xs[4] = xs[4].astype(dtype)  # which is not read
            difference, more = f(*xs)
            np.testing.assert_array_equal(difference, xs[9] - xs[2])
            np.testing.assert_array_equal(more, xs[2] + 1)
    called = []
    sys.setprofile(lambda frame, event, arg: called.append(frame) if event == "call" else None)
    f(*xs)
    sys.setprofile(None)
    assert len(called) <= 6
