"""Keys in pieces: a draw does not depend on where its key is.

Invariant: results are compared with those of keys on one device.
"""

import math

import numpy as np
import pytest

import plait
from plait import lax, random
from plait._core.primitive import primitives
from plait._xla.physical import physical_rules
from plait.ext.errors import TypeRule
from plait.ext.rules import expand_rules

KEYS = random.split(random.key(42), 8)


@pytest.fixture(scope="module")
def mesh():
    return plait.make_mesh((4,), ("x",))


def words(x):
    return np.asarray(random.key_data(x))


def draw(ks):
    return plait.vmap(lambda k: random.normal(k, (2,)))(ks)


def test_divided_keys(mesh):
    rows = plait.NamedSharding(mesh, plait.P("x"))
    divided = plait.device_put(KEYS, rows)
    np.testing.assert_array_equal(words(divided), words(KEYS))
    assert divided.sharding == rows and random.key_data(divided).sharding == rows
    assert [s.data.shape for s in divided.addressable_shards] == [(2,)] * 4
    drawn = plait.jit(draw)(divided)
    assert drawn.sharding == rows
    np.testing.assert_array_equal(drawn, draw(KEYS))
    folded = plait.jit(lambda ks: plait.vmap(lambda k: random.fold_in(k, 1))(ks))(divided)
    assert folded.sharding == rows and folded.dtype is KEYS.dtype
    told = plait.jit(lambda k: plait.with_sharding_constraint(random.split(k, 8), rows))(KEYS[0])
    assert told.sharding == rows
    np.testing.assert_array_equal(words(told), words(random.split(KEYS[0], 8)))
    out = plait.jit(lambda k: random.split(k, 8), out_shardings=rows)(KEYS[0])
    assert out.sharding == rows


def test_inside_shard_map(mesh):
    whole, rows = plait.P(), plait.P("x")
    mapped = plait.shard_map(draw, mesh=mesh, in_specs=rows, out_specs=rows)
    for f in (mapped, plait.jit(mapped)):
        np.testing.assert_array_equal(f(KEYS), draw(KEYS))

    def mine(k):
        return random.fold_in(k, lax.axis_index("x"))[None]

    each = plait.jit(plait.shard_map(mine, mesh=mesh, in_specs=whole, out_specs=rows))(KEYS[0])
    want = [words(random.fold_in(KEYS[0], i)) for i in range(4)]
    np.testing.assert_array_equal(words(each), want)
    ring = [(i, (i + 1) % 4) for i in range(4)]
    moved = plait.shard_map(lambda k: lax.ppermute(k, "x", ring), mesh=mesh, in_specs=rows,
                         out_specs=rows)  # fmt: skip
    np.testing.assert_array_equal(words(plait.jit(moved)(KEYS)), np.roll(words(KEYS), 2, 0))
    every = plait.shard_map(lambda k: lax.all_gather(k, "x", tiled=True), mesh=mesh, in_specs=rows,
                         out_specs=whole)  # fmt: skip
    np.testing.assert_array_equal(words(plait.jit(every)(KEYS)), words(KEYS))
    with pytest.raises(TypeRule, match="psum cannot take key<fry>"):
        plait.shard_map(lambda k: lax.psum(k, "x"), mesh=mesh, in_specs=rows, out_specs=rows)(KEYS)


def test_derivatives_of_divided_draws(mesh):
    rows = plait.P("x")

    def f(x, ks):
        return plait.shard_map(lambda x, ks: x * draw(ks)[:, 0], mesh=mesh, in_specs=(rows, rows),
                            out_specs=rows)(x, ks).sum()  # fmt: skip

    got = plait.grad(f)(np.ones(8, np.float32), KEYS)
    np.testing.assert_array_equal(got, np.asarray(draw(KEYS))[:, 0])


def test_keys_that_vary(mesh):
    f = plait.shard_map(
        lambda k, y: random.normal(lax.pcast(k, ("x",), to="varying"), y.shape) + y, mesh=mesh,
        in_specs=(plait.P(), plait.P("x")), out_specs=plait.P("x"),
    )  # fmt: skip
    for run in (f, plait.jit(f)):
        got = run(KEYS[0], np.zeros((8, 3), np.float32))
        np.testing.assert_array_equal(got, np.tile(random.normal(KEYS[0], (2, 3)), (4, 1)))


def test_operations_on_any_element_take_keys():
    """Each has a rule for the memory of keys, or is written in terms of others, or computes."""
    computing = {f"core.scatter_{how}" for how in ("add", "mul", "min", "max")}
    of_any = [p for p in primitives().values() if p.opaque]
    assert len(of_any) > 20
    assert {str(p) for p in of_any if p.higher is None and not takes_keys(p)} == computing


def takes_keys(p):
    return physical_rules.find(p) is not None or expand_rules.find(p) is not None


@pytest.mark.parametrize(
    ("shape", "entries"),
    [((4, 2), ("x",)), ((2, 4), (None, "x")), ((4, 2), ()), ((8,), ("x",)), ((0, 4), ("x", None))],
)
def test_assembled_keys(mesh, shape, entries):
    """Each function that makes arrays of pieces takes pieces that are keys."""
    where = plait.NamedSharding(mesh, plait.P(*entries))
    keys = KEYS[: math.prod(shape)].reshape(shape)
    boxes = where.devices_indices_map(keys.shape)
    for made in (
        plait.make_array_from_callback(keys.shape, where, lambda index: keys[index]),
        plait.make_array_from_callback(keys.shape, where, lambda i: keys[i], dtype=keys.dtype),
        plait.make_array_from_single_device_arrays(
            keys.shape, where, [plait.device_put(keys[i], d) for d, i in boxes.items()]
        ),
        plait.make_array_from_process_local_data(where, keys),
        plait.make_array_from_process_local_data(where, {"k": keys}, keys.shape)["k"],
    ):
        assert made.dtype == keys.dtype and made.sharding == where and made.shape == keys.shape
        np.testing.assert_array_equal(words(made), words(keys))
        for shard in made.addressable_shards:
            np.testing.assert_array_equal(words(shard.data), words(keys[shard.index]))


def test_assembled_keys_of_other_elements(mesh):
    where = plait.NamedSharding(mesh, plait.P("x"))
    for dtype, piece in [(KEYS.dtype, np.zeros(8)), (np.float32, KEYS)]:
        with pytest.raises(TypeRule):
            plait.make_array_from_callback((8,), where, lambda i, p=piece: p[i], dtype=dtype)
