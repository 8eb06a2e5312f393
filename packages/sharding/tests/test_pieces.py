"""Pieces of arrays: assembled without a whole, sharing its memory, and gone with it.

Invariant: shapes that were asked for and addresses of memory are what is compared; values are
numpy's.
"""

import numpy as np
import pytest

import plait
from plait.errors import DeletedArrayError
from plait_sharding import (
    SingleDeviceSharding,
    device_put,
    make_array_from_callback,
    make_array_from_single_device_arrays,
    shards_of,
)

HOST = np.arange(64, dtype=np.float32).reshape(8, 8)


def addresses(x):
    return [piece.unsafe_buffer_pointer() for piece in x.buffer()._arrays]


@pytest.mark.parametrize("entries", [("x", "y"), ("y",), (None, ("x", "y")), ()])
@pytest.mark.parametrize("dtype", [None, np.int32])
def test_a_callback_is_asked_once_for_each_slice_and_no_whole_is_made(
    lies, entries, dtype, monkeypatch
):
    asked, made = [], []
    empty = np.empty
    monkeypatch.setattr(np, "empty", lambda *a, **k: made.append(a) or empty(*a, **k))

    def give(index):
        asked.append(tuple([(s.start, s.stop) for s in index]))
        return HOST[index]

    sharding = lies(*entries)
    x = make_array_from_callback((8, 8), sharding, give, dtype)
    assert not made and len(asked) == len(set(asked))
    want = {
        tuple([(s.start, s.stop) for s in box])
        for box in sharding.devices_indices_map((8, 8)).values()
    }
    assert set(asked) == want
    assert x.dtype == (dtype or np.float32) and x.sharding == sharding
    np.testing.assert_array_equal(x, HOST)


@pytest.mark.parametrize("entries", [("x", "y"), ("y",), (None, ("x", "y")), ()])
def test_an_array_of_arrays_is_in_their_memory(lies, entries):
    sharding = lies(*entries)
    parts = [
        device_put(HOST[box], device)
        for device, box in sharding.devices_indices_map((8, 8)).items()
    ]
    x = make_array_from_single_device_arrays((8, 8), sharding, parts[::-1])
    np.testing.assert_array_equal(x, HOST)
    assert addresses(x) == [addresses(p)[0] for p in parts]
    np.testing.assert_array_equal(plait.jit(lambda a: a * 2)(x), HOST * 2)
    np.testing.assert_array_equal(parts[3] + 1, HOST[list(boxes_of(sharding))[3]] + 1)


def boxes_of(sharding):
    return sharding.devices_indices_map((8, 8)).values()


def test_what_shares_one_piece_is_not_donated_beside_it(lies, told):
    """Two arrays that have a single piece in common."""
    x, y = device_put(HOST, lies("x", "y")), device_put(HOST + 1, lies("x", "y"))
    parts = [s.data for s in shards_of(y)]
    parts[5] = shards_of(x)[5].data
    z = make_array_from_single_device_arrays((8, 8), lies("x", "y"), parts)
    f = plait.jit(lambda a, b: (a + 1, b * 2), donate_argnums=0)
    told(lambda: f(x, z), "argument 0", "argument 1", "donated")
    np.testing.assert_array_equal(f(z, x.copy())[1], HOST * 2)


def test_pieces_of_another_shape_are_refused(lies, told):
    parts = [device_put(np.ones((2, 2), np.float32), d) for d in plait.devices()]
    told(
        lambda: make_array_from_single_device_arrays((8, 8), lies("x", "y"), parts),
        "(2, 2)",
        "(4, 2)",
    )


USES = {
    "numpy": lambda p: p.numpy(),
    "print": str,
    "operation": lambda p: p + 1,
    "jit": lambda p: plait.jit(lambda a: a * 2)(p),
    "donated": lambda p: plait.jit(lambda a: a * 2, donate_argnums=0)(p),
    "moved": lambda p: device_put(p, plait.devices()[0]),
    "divided": lambda p: device_put(p, plait.NamedSharding(plait.make_mesh((2,), "z"), plait.P())),
    "copied": lambda p: p.copy(),
    "waited for": lambda p: p.block_until_ready(),
    "assembled": lambda p: make_array_from_single_device_arrays(
        p.shape, SingleDeviceSharding(next(iter(p.devices()))), [p]
    ).numpy(),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("end", ["deleted", "donated"])
def test_a_piece_whose_whole_is_gone(lies, use, end):
    x = device_put(HOST, lies("x", "y"))
    piece = shards_of(x)[3].data
    np.testing.assert_array_equal(piece, HOST[list(boxes_of(lies("x", "y")))[3]])
    x.delete() if end == "deleted" else plait.jit(lambda a: a + 1, donate_argnums=0)(x)
    assert piece.is_deleted()
    with pytest.raises(DeletedArrayError) as e:
        USES[use](piece)
    assert __file__ in e.value.where


def test_pieces_of_an_array_that_was_placed_nowhere_are_placed_nowhere():
    """They move to other arrays by themselves, as the array does."""
    last = plait.devices()[-1]
    (piece,) = plait.numpy.ones(3).addressable_shards
    assert not piece.data.committed
    assert (piece.data + device_put(np.ones(3, np.float32), last)).devices() == {last}
    (piece,) = device_put(plait.numpy.ones(3), last).addressable_shards
    assert piece.data.committed and piece.data.devices() == {last}


def test_the_devices_of_a_sharding_are_in_order(lies):
    backwards = plait.Mesh(np.arange(8)[::-1], ("x",))
    for sharding in (lies("x", "y"), plait.NamedSharding(backwards, plait.P("x"))):
        assert [d.id for d in sharding._device_assignment] == list(sharding.mesh.ids)
