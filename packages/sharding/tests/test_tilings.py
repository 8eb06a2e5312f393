"""GSPMDSharding: shardings without names of axes.

Invariant: which device has which piece is said by numpy, of the grid of devices that a text means.
"""

import pickle

import numpy as np
import pytest

import plait
from plait import lax
from plait.errors import AxisError, PlacementError, TypeRule
from plait_sharding import GSPMDSharding, NamedSharding, P, device_put

A = np.arange(64, dtype=np.float32).reshape(8, 8)
NUMBERS = np.arange(8)
TEXTS = {
    "{devices=[2,4]<=[8]}": NUMBERS.reshape(2, 4, 1),
    "{devices=[2,4]<=[4,2]T(1,0)}": NUMBERS.reshape(4, 2).T[:, :, None],
    "{devices=[8,1]3,1,2,0,4,7,6,5}": np.array([3, 1, 2, 0, 4, 7, 6, 5])[:, None, None],
    "{devices=[2,1,4]<=[8] last_tile_dim_replicate}": NUMBERS.reshape(2, 1, 4),
    "{replicated}": NUMBERS.reshape(1, 1, 8),
}
"""For tiles of a matrix the grid (tiles, tiles, copies) of the numbers of devices."""


def pieces(grid):
    """Of each device its slice of A."""
    m, n, _ = grid.shape
    found = {}
    for i, rows in enumerate(np.split(A, m)):
        for j, tile in enumerate(np.split(rows, n, 1)):
            found |= dict.fromkeys(grid[i, j].tolist(), tile)
    return found


@pytest.mark.parametrize("text", TEXTS)
def test_which_device_has_which_piece(text):
    s, want = GSPMDSharding(plait.devices(), text), pieces(TEXTS[text])
    x = device_put(A, s)
    assert x.sharding == s and len(x.addressable_shards) == 8
    for shard in x.addressable_shards:
        np.testing.assert_array_equal(shard.data, want[shard.device.id])
        np.testing.assert_array_equal(A[shard.index], want[shard.device.id])
    assert s.shard_shape(A.shape) == want[0].shape
    assert s.is_fully_replicated == (text == "{replicated}")
    for back in (pickle.loads(pickle.dumps(s)), GSPMDSharding(range(8), text)):
        assert back == s and hash(back) == hash(s) and repr(back) == repr(s)


@pytest.mark.feature("S28")
@pytest.mark.parametrize("text", TEXTS)
def test_programs_run_there(text, close):
    s = GSPMDSharding(plait.devices(), text)
    turned = GSPMDSharding(plait.devices(), "{devices=[1,4,2]<=[8] last_tile_dim_replicate}")
    doubled, product = plait.jit(lambda x: (x * 2, x @ x.T))(device_put(A, s))
    assert doubled.sharding == s
    close(doubled, A * 2)
    close(product, A @ A.T)
    f = plait.jit(lambda x: plait.numpy.sin(x), in_shardings=s, out_shardings=turned)
    assert f(A).sharding == turned
    close(f(A), np.sin(A))
    close(lax.with_sharding_constraint(device_put(A, s), turned), A)
    compiled = f.lower(plait.ShapeDtypeStruct((8, 8), "float32")).compile()
    assert compiled.input_shardings[0] == (s,) and compiled.output_shardings == turned


def test_beside_names(mesh, close):
    """Tiles in another order than the mesh's, and the names of the mesh for what it can say."""
    s = GSPMDSharding(plait.devices(), "{devices=[2,4]<=[4,2]T(1,0)}")
    named = NamedSharding(mesh, P("y", "x"))
    x, w = device_put(A, s), device_put(A, named)
    out, same = plait.jit(lambda x, w: (x @ w, w + 1))(x, w)
    close(out, A @ A)
    assert same.sharding == named
    equal = GSPMDSharding(plait.devices(), "{devices=[4,2]<=[2,4]T(1,0)}")
    assert equal.is_equivalent_to(named, 2) and not s.is_equivalent_to(named, 2)
    close(plait.jit(lambda v: v * 2, in_shardings=named)(device_put(A, equal)), A * 2)


def test_what_no_spec_says(mesh, lies):
    """The mesh of another operand has no words for how the result lies."""
    text = "{devices=[8,1]3,1,2,0,4,7,6,5}"
    x, w = device_put(A, GSPMDSharding(plait.devices(), text)), device_put(A, lies("x"))
    for f in (lambda x, w: (x * 2, w), lambda w, x: (x * 2, w)):
        given = (x, w) if f.__code__.co_varnames[0] == "x" else (w, x)
        y, same = plait.jit(f)(*given)
        assert y.sharding == x.sharding and same.sharding == lies("x")
        for shard in y.addressable_shards:
            np.testing.assert_array_equal(shard.data, pieces(TEXTS[text])[shard.device.id] * 2)


def test_what_happens_once(capfd):
    """One device prints for all, and calls Python."""
    x = device_put(A, GSPMDSharding(plait.devices(), "{devices=[2,4]<=[4,2]T(1,0)}"))

    @plait.jit
    def f(x):
        plait.debug.print("sum {}", x.sum(), ordered=True)
        like = plait.ShapeDtypeStruct((8, 8), "float32")
        return plait.pure_callback(lambda v: v + 1, like, x) * 2

    np.testing.assert_array_equal(f(x), (A + 1) * 2)
    assert capfd.readouterr().out == f"sum {float(A.sum())}\n"


@pytest.mark.feature("S30")
def test_copies_of_one_tile_are_whole():
    two = plait.devices()[:2]
    whole = GSPMDSharding(two, "{replicated}")
    assert GSPMDSharding(two, "{devices=[1,1,2]0,1 last_tile_dim_replicate}") == whole
    assert GSPMDSharding.get_replicated(two) == whole != GSPMDSharding(two, "{devices=[2]<=[2]}")


def test_mistakes(told):
    d = plait.devices()
    texts = (
        "rows", "{maximal device=2}", "{manual}", "{devices=[3]<=[8]}", "{devices=[2,-1]<=[8]}",
        "{devices=[2,4]<=[2,4]T(0)}", "{devices=[8]<=[2,4]T(1,1)}", "{devices=[0]<=[0]}",
        "{devices=[]}", "{devices=[2,4]0,1}", "{{replicated},{replicated}}", "{devices=[8]<=[8]",
    )  # fmt: skip
    for bad in (*texts, 3, None):
        told(lambda: GSPMDSharding(d, bad), "does not say", kind=TypeRule)  # noqa: B023
    for text in ("{devices=[2,2]<=[4]}", "{devices=[2,2]0,1,2,9}"):
        told(lambda: GSPMDSharding(d, text), "4 devices", "8 are", kind=AxisError)  # noqa: B023
    told(lambda: GSPMDSharding([d[0], d[0]], "{replicated}"), "[0, 0]", kind=AxisError)
    rows = GSPMDSharding(d, "{devices=[8]<=[8]}")
    told(lambda: device_put(A, rows), "1 axes", "f32[8,8]", kind=AxisError)
    told(lambda: device_put(A[0, :6], rows), "8 equal pieces", kind=AxisError)
    x = device_put(A[0], GSPMDSharding(d, "{devices=[8]7,6,5,4,3,2,1,0}"))
    told(lambda: plait.jit(lambda v: v, in_shardings=rows)(x), "in_shardings", kind=PlacementError)
