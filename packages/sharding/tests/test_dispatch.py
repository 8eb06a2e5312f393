"""Calls on several devices: what Python does for each, and that none hangs.

Invariant: numbers of calls are counted by the interpreter's own profiling hook, results are
compared with numpy.
"""

import sys
import threading

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait_sharding import NamedSharding, P, device_put, make_mesh, shard_map

X = np.arange(8, dtype=np.float32)


@pytest.fixture
def line():
    return NamedSharding(make_mesh((8,), ("x",)), P("x"))


def python_calls(f):
    """How many Python functions a call of `f` enters, itself not counted."""
    for _ in range(3):
        plait.block_until_ready(f())
    count, before = 0, sys.getprofile()

    def entered(frame, event, arg):
        nonlocal count
        count += event == "call"

    sys.setprofile(entered)
    try:
        out = f()
    finally:
        sys.setprofile(before)
    plait.block_until_ready(out)
    return count - 1


def total(line):
    return plait.jit(
        shard_map(lambda v: lax.psum(v, "x"), mesh=line.mesh, in_specs=P("x"), out_specs=P())
    )


@pytest.fixture
def unchecked():
    with plait.config(checks=False):
        yield


@pytest.mark.parametrize("count", [1, 10, 100])
def test_arrays(line, unchecked, count):
    """Nothing is waited for where no device waits for another: there is `jitted`, and before
    Python 3.12 its two comprehensions."""
    xs = [device_put(X + i, line) for i in range(count)]
    f = plait.jit(lambda *xs: xs[0] + xs[-1], keep_unused=True)
    assert python_calls(lambda: f(*xs)) <= (1 if count == 1 else 3)
    np.testing.assert_array_equal(f(*xs), 2 * X + count - 1)


def test_collectives(line, unchecked):
    """`jitted`, one that takes the turn of the devices, one that waits for the last such run; and
    to wait for the result is one."""
    f, x = total(line), device_put(X, line)
    assert python_calls(lambda: f(x)) == 3
    assert python_calls(lambda: f(x).block_until_ready()) == 4
    np.testing.assert_array_equal(f(x), [28])


def test_host_arrays(line, unchecked):
    """Each is brought where it belongs, without looking at the others."""
    f = plait.jit(lambda *xs: xs[0] - xs[-1], in_shardings=line)
    one, ten = ([X * i for i in range(n)] for n in (1, 10))
    first = python_calls(lambda: f(*one))
    each = (python_calls(lambda: f(*ten)) - first) / 9
    assert each == int(each) <= 20 and first - each <= 3
    with plait.events.counting() as n:
        np.testing.assert_array_equal(f(*ten), -9 * X)
    assert n == {"transfer": 10}


def test_what_is_brought_is_what_was_given(line, told):
    f = plait.jit(lambda x, y=1.0: (x * 2, y), in_shardings=line)
    host = X.copy()
    for k in range(4):  # the memory is the user's, who writes to it
        host[:] = k
        np.testing.assert_array_equal(f(host)[0], np.full(8, 2 * k))
    for other in (X.astype(np.int16), np.ones(16, np.float32), X[::-1], X.astype(">f4")):
        for _ in range(3):
            got = f(other)[0]
            assert got.shape == other.shape and len(got.sharding.device_set) == 8
            np.testing.assert_array_equal(got, other * 2)
    for _ in range(3):  # arrays that were placed nowhere on purpose are brought, too
        np.testing.assert_array_equal(f(pnp.asarray(X))[0], 2 * X)
        np.testing.assert_array_equal(f(device_put(X, line))[0], 2 * X)
    assert f(X, 2 * X)[1].sharding == line
    told(lambda: f(X, y=X), "in_shardings", "`y` by name")
    elsewhere = device_put(X, NamedSharding(line.mesh, P()))
    told(lambda: f(elsewhere), "in_shardings", "PartitionSpec()")
    told(lambda: f(np.ones(7, np.float32)), "7", "8")
    told(lambda: f("x"), "type str")


def test_what_is_brought_with_static_arguments(line):
    f = plait.jit(lambda x, n, t: [x * n, t["a"]], static_argnums=1, in_shardings=line)
    for n in (2, 2, 3, 3, 2):
        got = f(X, n, {"a": X + 1})
        np.testing.assert_array_equal(got[0], X * n)
        np.testing.assert_array_equal(got[1], X + 1)


def test_what_is_brought_follows_the_mesh_in_context():
    f = plait.jit(lambda x: x + 1, in_shardings=P("x"))
    for k in (8, 4, 2, 8, 4):
        mesh = make_mesh((k,), ("x",))
        for _ in range(2):
            with mesh:
                got = f(X)
            np.testing.assert_array_equal(got, X + 1)
            assert len(got.sharding.device_set) == k


def test_threads(line):
    """Several programs, some of which meet: two runs of these at once could wait for ever."""
    sums = [total(line), plait.jit(lambda x: x / x.sum() + 0 * x)]
    plain = [plait.jit(lambda x, k=k: x + k) for k in range(3)]
    x, failures, done = device_put(X, line), [], []

    def work(i):
        try:
            for j in range(60):
                k, f = (i + j) % 3, sums[(i + j) % 2]
                got = f(plain[k](x))
            want = (X + k).sum() if f is sums[0] else (X + k) / (X + k).sum()
            np.testing.assert_allclose(got, np.broadcast_to(want, got.shape), rtol=1e-5)
            done.append(i)
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(timeout=120)
    assert not failures and len(done) == 16
