"""Guards of transfers between devices, and the explicit transfers of `device_put`.

Invariant: arrays are placed by what users write, and results are compared with numpy.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import TransferError

HOST = np.arange(4, dtype=np.float32)


@pytest.fixture
def sharding():
    return plait.NamedSharding(plait.make_mesh((2,), ("d",)), plait.P("d"))


def test_device_put_is_explicit(sharding):
    x = pnp.zeros(4)
    tree = {"host": HOST, "number": 2.0, "array": x}
    with plait.transfer_guard("disallow"):
        plait.device_put(HOST)
        put = plait.device_put(tree, plait.devices()[1])
        divided = plait.device_put(HOST, sharding)
    np.testing.assert_array_equal(np.asarray(put["host"]), HOST)
    np.testing.assert_array_equal(np.asarray(divided), HOST)
    with plait.transfer_guard("disallow_explicit"):
        pytest.raises(TransferError, plait.device_put, HOST)
        pytest.raises(TransferError, plait.device_put, HOST, sharding)
        pytest.raises(TransferError, plait.device_put, x, plait.devices()[1])


def test_implicit_moves_between_devices(sharding):
    divided, whole = plait.device_put(HOST, sharding), pnp.ones(4)
    add, inside = plait.jit(lambda a, b: a + b), plait.jit(lambda a: a + 1, in_shardings=sharding)
    for _ in range(2):
        with plait.transfer_guard_device_to_device("disallow"):
            np.testing.assert_array_equal(np.asarray(add(divided, divided)), 2 * HOST)
            np.testing.assert_array_equal(np.asarray(inside(divided)), HOST + 1)
            fresh = pnp.asarray(HOST)
            with pytest.raises(TransferError, match="would be copied to other devices") as e:
                add(divided, fresh)
            assert f"at {__file__}:" in str(e.value)
            pytest.raises(TransferError, inside, fresh)
    np.testing.assert_array_equal(np.asarray(add(divided, whole)), HOST + 1)


def test_arguments_that_are_divided_come_from_the_host(sharding):
    f = plait.jit(lambda a: a + 1, in_shardings=sharding)
    f(HOST)
    with plait.transfer_guard_host_to_device("disallow"):
        with pytest.raises(TransferError, match="from the host to a device"):
            f(HOST)
