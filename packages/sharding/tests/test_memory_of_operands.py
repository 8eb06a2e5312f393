"""The memory of operands of programs on several devices: what is kept, and what is given away.

Invariant: how often an array travels is counted (a copy that is kept does not travel again);
values are those of numpy.
"""

import numpy as np
import pytest

import plait
from plait.errors import DeletedArrayError
from plait.events import counting
from plait_sharding import device_put


def travels(f, *args):
    with counting() as n:
        f(*args)
    return n["transfer"]


@pytest.mark.parametrize("size, again", [(1, 0), (1 << 12, 0), ((1 << 12) + 1, 1), (1 << 18, 1)])
def test_copies_of_large_arrays_are_not_kept(lies, size, again):
    """A copy that is kept travels once; one of more than 16 KiB would be one per device."""
    x = device_put(np.ones((8, 8), np.float32), lies("x", "y"))
    y = plait.numpy.asarray(np.arange(size, dtype=np.float32))
    f = plait.jit(lambda a, b: a + b[-1])
    f(x, y)
    assert [travels(f, x, y) for _ in range(3)] == [again] * 3
    np.testing.assert_array_equal(f(x, y), np.ones((8, 8)) + size - 1)


def test_large_arrays_are_divided_as_they_are_used(lies):
    """No device gets more than its piece of what is added to a piece; of what all need, all."""
    host = np.arange(1 << 16, dtype=np.float32).reshape(256, 256)
    x, large = device_put(host, lies("x", "y")), plait.numpy.asarray(host + 1)
    f = plait.jit(lambda a, b, c: (a + b, c["k"] @ c["k"] + a))
    compiled = f.lower(x, large, {"k": large}).compile()
    given = compiled.memory_analysis().argument_size_in_bytes
    assert given <= host.nbytes // 8 * 2 + host.nbytes
    for run in (f, f, compiled, compiled):
        one, other = run(x, large, {"k": large})
        np.testing.assert_array_equal(one, 2 * host + 1)
        np.testing.assert_allclose(other, (host + 1) @ (host + 1) + host, rtol=1e-5)
        assert one.sharding == x.sharding


def test_large_constants_are_divided(lies):
    """Those that a function closes over, and keys; nothing is divided that one device has."""
    host = np.arange(1 << 16, dtype=np.float32).reshape(256, 256)
    x, large = device_put(host, lies("x", "y")), plait.numpy.asarray(host + 1)
    f = plait.jit(lambda a: a * large)
    np.testing.assert_array_equal(f(x), host * (host + 1))
    assert f.lower(x).compile().memory_analysis().argument_size_in_bytes == 2 * host.nbytes // 8
    keys = plait.random.split(plait.random.key(1), 4096)
    got = plait.jit(lambda k, a: (k, a + 1))(keys, x)[0]
    np.testing.assert_array_equal(plait.random.key_data(got), plait.random.key_data(keys))
    assert plait.jit(lambda a: a * large)(host).devices() == {plait.devices()[0]}


@pytest.mark.parametrize("donated", [0, 1, (0, 1)])
def test_an_array_that_is_donated_and_used_is_refused(lies, told, donated):
    f = plait.jit(lambda a, b: (a + 1, b * 2), donate_argnums=donated)
    host = np.arange(64, dtype=np.float32).reshape(8, 8)
    x = device_put(host, lies("x", "y"))
    told(lambda: f(x, x), "argument `a`", "argument `b`", "donated", "x.copy()")
    np.testing.assert_array_equal(x, host)  # nothing was run, nothing was taken
    y, z = f(x, x.copy())
    np.testing.assert_array_equal(y, host + 1)
    np.testing.assert_array_equal(z, host * 2)


def test_in_trees_and_closures(lies, told):
    host = np.ones((8, 8), np.float32)
    x, other = device_put(host, lies("x", "y")), device_put(host, lies("x", "y"))
    f = plait.jit(lambda t, u: {k: v + u for k, v in t.items()}, donate_argnums=0)
    told(lambda: f({"a": other, "b": x}, x), "`t['b']`", "`u`")
    told(lambda: f({"a": x, "b": x}, other), "`t['a']`", "`t['b']`")
    g = plait.jit(lambda a: a + x, donate_argnums=0)
    told(lambda: g(x), "argument 0", "array 0", "closes over")
    np.testing.assert_array_equal(g(other), host + 1)


def test_of_arrays_without_elements(lies, told):
    """They share no memory; the same one twice is refused as others are."""
    x, y = [device_put(np.ones((0, 8), np.float32), lies(None, "y")) for _ in range(2)]
    f = plait.jit(lambda a, b: (a + 1, b * 2), donate_argnums=0)
    told(lambda: f(x, x), "argument `a`", "argument `b`")
    assert [z.shape for z in f(x, y)] == [(0, 8)] * 2


def test_a_failed_run_leaves_the_next_one_alone(lies):
    """Of deleted arrays, and of callbacks that fail."""
    host = np.ones((8, 8), np.float32)
    x, gone = device_put(host, lies("x", "y")), device_put(host, lies("x", "y"))
    gone.delete()
    f = plait.jit(lambda a: a * 2)

    def fails(_):
        raise ValueError("as it was told")

    g = plait.jit(lambda a: plait.pure_callback(fails, plait.ShapeDtypeStruct((8, 8), a.dtype), a))
    for _ in range(2):
        with pytest.raises(DeletedArrayError):
            f(gone)
        with pytest.raises(ValueError, match="as it was told"):
            np.asarray(g(x))
        np.testing.assert_array_equal(f(x), 2 * host)
