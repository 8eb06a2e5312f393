"""The default device of a block: where arrays are made and computed with.

Invariant: values are numpy's; devices are read off arrays, and never assumed.
"""

import threading

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax, random
from plait.errors import PlacementError

HOST = np.array([1.0, 2.0, 4.0], np.float32)


def on(x):
    """The numbers of the devices that have a piece of the first array of a tree."""
    return {d.id for d in plait.tree.leaves(x)[0].devices()}


def made():
    """Arrays of nothing, of host data and of arrays that are on the first device."""
    x = plait.device_put(HOST)
    jitted = plait.jit(lambda v: v * 2)
    return x, {
        "zeros": (lambda: pnp.zeros(3), np.zeros(3)),
        "many zeros": (lambda: pnp.zeros(10000), np.zeros(10000)),
        "counted": (lambda: pnp.arange(3), np.arange(3)),
        "a list": (lambda: pnp.array([1.0, 2.0]), [1, 2]),
        "host": (lambda: pnp.asarray(HOST), HOST),
        "at once": (lambda: pnp.sin(x), np.sin(HOST)),
        "at once, of host": (lambda: pnp.sin(HOST), np.sin(HOST)),
        "an operator": (lambda: x + 1, HOST + 1),
        "jit": (lambda: jitted(x), 2 * HOST),
        "jit of host": (lambda: jitted(HOST), 2 * HOST),
        "jit of nothing": (lambda: plait.jit(lambda: pnp.ones(3))(), np.ones(3)),
        "a number that is put": (lambda: plait.device_put(2.0), 2),
        "numpy's number that is put": (lambda: plait.device_put(np.int32(2)), 2),
        "a tree that is put": (lambda: plait.device_put([HOST, 2.0]), HOST),
        "a scalar type": (lambda: pnp.float32(2), 2),
        "a scalar type of host": (lambda: pnp.int32(HOST), HOST),
        "keys": (lambda: random.key_data(random.key(7)), [0, 7]),
        "grad": (lambda: plait.grad(lambda v: (v**2).sum())(x), 2 * HOST),
        "vmap": (lambda: plait.vmap(lambda v: v - 1)(x), HOST - 1),
        "scan": (lambda: lax.scan(lambda c, v: (c + v, c), 0.0, x), 7),
        "cond": (lambda: lax.cond(True, pnp.negative, pnp.sin, x), -HOST),
        "a callback": (
            lambda: plait.pure_callback(lambda v: np.asarray(v) * 3,
                                        plait.ShapeDtypeStruct((3,), np.float32), x), 3 * HOST,
        ),
    }  # fmt: skip


def test_everything_is_there():
    x, cases = made()
    for name, (f, want) in cases.items():
        for _ in range(2):
            with plait.default_device(plait.devices()[3]):
                got = f()
            assert on(got) == {3}, name
            np.testing.assert_allclose(plait.tree.leaves(got)[0], want, rtol=1e-6, err_msg=name)
        assert on(f()) == {0}, name  # afterwards nothing is left of it
    assert on(x) == {0}


def test_what_was_placed_stays():
    mesh = plait.make_mesh((8,), ("x",))
    rows = plait.NamedSharding(mesh, plait.P("x"))
    eight = np.arange(8, dtype=np.float32)
    x, y = plait.device_put(eight, rows), plait.device_put(HOST, plait.devices()[5])
    total = plait.shard_map(
        lambda v: lax.psum(v, "x"), mesh=mesh, in_specs=plait.P("x"), out_specs=plait.P()
    )
    with plait.default_device(plait.devices()[3]):
        for got, want in [
            (x + 1, eight + 1),
            (x * eight, eight * eight),
            (plait.device_put(eight, rows), eight),
            (plait.jit(lambda v: v * 2, in_shardings=rows)(eight), 2 * eight),
            (total(eight), [28]),
        ]:
            assert on(got) == set(range(8))
            np.testing.assert_array_equal(got, want)
        assert on(y * 2) == on(y + HOST) == {5}
        assert on(plait.device_put(HOST, plait.devices()[2])) == {2}


def test_blocks_in_each_other():
    a, b = plait.devices()[3], plait.devices()[1]
    with plait.default_device(a):
        with plait.default_device(b):
            assert on(pnp.ones(2)) == {1}
        for first in (None, "cpu", plait.devices()[0]):
            with plait.default_device(first):
                assert on(pnp.ones(2)) == on(pnp.sin(HOST)) == {0}
        assert on(pnp.ones(2)) == {3}

        found = []
        thread = threading.Thread(target=lambda: found.append(on(pnp.ones(2))))
        thread.start()
        thread.join()
        assert found == [{0}]  # it is this thread's


def test_in_what_is_traced_it_says_nothing():
    def f(x):
        with plait.default_device(plait.devices()[5]):
            return x + pnp.ones(3)

    got = plait.jit(f)(HOST)
    assert on(got) == {0}
    np.testing.assert_array_equal(got, HOST + 1)
    with plait.default_device(plait.devices()[2]):
        assert on(plait.jit(f)(HOST)) == {2}


@pytest.mark.parametrize("given", ["tpu", 3, plait.Device(77, "cpu", "cpu")], ids=str)
def test_others_are_refused(given, told):
    told(lambda: plait.default_device(given), "to be made on", "local_devices", kind=PlacementError)
