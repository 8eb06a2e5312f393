"""Arrays made of pieces, by functions or of arrays that are there.

Invariant: the whole is compared with numpy's, and each piece with its slice of it.
"""

import numpy as np
import pytest

import plait
from plait.ext.errors import AxisError, TypeRule
from plait_sharding import AxisType, Mesh, SingleDeviceSharding, create_device_mesh, make_mesh

WHOLE = np.arange(32, dtype=np.float32).reshape(4, 8)


def check(x, sharding):
    assert x.sharding == sharding
    np.testing.assert_array_equal(x, WHOLE)
    for shard in x.addressable_shards:
        np.testing.assert_array_equal(shard.data, WHOLE[shard.index])


@pytest.mark.parametrize("entries", [("x", "y"), (None, "y"), (("x", "y"),), ()])
def test_pieces_of_a_function(lies, entries):
    where, calls = lies(*entries[:1], *entries[1:]), []
    if entries == (("x", "y"),):
        where = lies(None, ("x", "y"))

    def piece(index):
        calls.append(index)
        return WHOLE[index]

    check(plait.make_array_from_callback(WHOLE.shape, where, piece), where)
    assert len(calls) == len(set(map(str, calls)))


def test_pieces_that_are_there(lies):
    where = lies("x", "y")
    pieces = [plait.device_put(WHOLE[box], d) for d, box in
              where.devices_indices_map(WHOLE.shape).items()]  # fmt: skip
    check(plait.make_array_from_single_device_arrays(WHOLE.shape, where, pieces[::-1]), where)
    with pytest.raises(TypeRule, match="devices"):
        plait.make_array_from_single_device_arrays(WHOLE.shape, where, pieces[1:])
    make = lambda x: plait.make_array_from_single_device_arrays(WHOLE.shape, where, [x])  # noqa: E731
    for call in (lambda: make(WHOLE), lambda: make(1.0), lambda: plait.jit(make)(WHOLE)):
        with pytest.raises(TypeError, match="is of arrays on devices"):
            call()


def test_data_of_the_process(lies):
    where = lies("x")
    tree = plait.make_array_from_process_local_data(where, {"a": WHOLE})
    check(tree["a"], where)
    check(plait.make_array_from_process_local_data(where, WHOLE, WHOLE.shape), where)
    with pytest.raises(AxisError, match="all of the array"):
        plait.make_array_from_process_local_data(where, WHOLE, (8, 8))


def test_mistakes(lies):
    with pytest.raises(AxisError, match="has shape"):
        plait.make_array_from_callback((4, 8), lies("x"), lambda index: WHOLE)
    with pytest.raises(AxisError, match="divided"):
        plait.make_array_from_callback((3, 8), lies("x"), lambda index: WHOLE[index])
    with pytest.raises(TypeRule, match="sharding is needed"):
        plait.make_array_from_callback((4, 8), None, lambda index: WHOLE[index])


def test_types_of_axes():
    auto = make_mesh((2,), ("x",), axis_types=(AxisType.Auto,))
    assert auto == make_mesh((2,), ("x",)) == Mesh(plait.devices()[:2], "x", AxisType.Auto)
    explicit = make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    assert explicit != make_mesh((2, 4), ("x", "y"))
    assert explicit.explicit_axes == ("x",) and explicit.auto_axes == ("y",)
    assert explicit.abstract_mesh.axis_types == explicit.axis_types
    assert "axis_types=(Explicit, Auto)" in repr(explicit)
    with pytest.raises(AxisError, match="2 entries .Explicit, Auto., and the mesh has the 1 axes"):
        make_mesh((2,), ("x",), axis_types=(AxisType.Explicit, AxisType.Auto))
    with pytest.raises(AxisError, match="'automatic' is not a type of an axis"):
        make_mesh((2,), ("x",), axis_types=("automatic",))


def test_devices_for_a_mesh():
    grid = create_device_mesh((2, 4))
    assert Mesh(grid, ("x", "y")) == make_mesh((2, 4), ("x", "y"))
    with pytest.raises(AxisError, match="given"):
        create_device_mesh((2,), plait.devices()[:3])


def test_jit_on_a_device():
    device = plait.devices()[3]
    out = plait.jit(lambda x: x * 2, device=device)(np.float32(2.0))
    assert float(out) == 4.0 and out.devices() == {device}
    assert out.sharding == SingleDeviceSharding(device)


def test_arrays_that_are_made_like_others_lie_where_they_do(lies):
    """On another device, and in pieces; another shape keeps the device, and no pieces."""
    other = plait.devices()[3]
    for x in (plait.device_put(WHOLE, lies("x", "y")), plait.device_put(WHOLE, other)):
        makers = [plait.numpy.zeros_like, plait.numpy.ones_like, plait.numpy.empty_like]
        makers += [lambda v: plait.numpy.full_like(v, 7), lambda v: plait.lax.full_like(v, 7)]
        for make in makers:
            got = make(x)
            assert got.sharding == x.sharding and got.shape == x.shape
            assert plait.jit(make)(x).shape == x.shape
        np.testing.assert_array_equal(got, np.full_like(WHOLE, 7))
        there = {other} if x.devices() == {other} else {plait.devices()[0]}
        assert plait.lax.full_like(x, 1, shape=(2,)).devices() == there


def test_pieces_of_two_dtypes_or_on_one_device(told):
    d = plait.devices()
    where = plait.NamedSharding(plait.make_mesh((2,), ("x",)), plait.P("x"))
    put = lambda x, i: plait.device_put(np.asarray(x, np.float32), d[i])  # noqa: E731
    join = plait.make_array_from_single_device_arrays
    told(
        lambda: join((4,), where, [put([1, 2], 0), plait.device_put(np.arange(2), d[1])]),
        "one dtype, not float32 and int",
        kind=TypeError,
    )
    told(
        lambda: join((4,), where, [put([1, 2], 0), put([5, 6], 0), put([3, 4], 1)]),
        f"two pieces are on {d[0]!r}",
        kind=ValueError,
    )
    np.testing.assert_array_equal(join((4,), where, [put([3, 4], 1), put([1, 2], 0)]), [1, 2, 3, 4])


def test_a_device_or_a_spec_alone_says_where(mesh):
    device = plait.devices()[1]
    x = plait.make_array_from_process_local_data(device, WHOLE)
    assert x.devices() == {device}
    y = plait.make_array_from_callback(WHOLE.shape, device, lambda index: WHOLE[index])
    assert y.devices() == {device}
    with mesh:
        z = plait.make_array_from_process_local_data(plait.P("x"), WHOLE)
    assert z.sharding == plait.sharding.NamedSharding(mesh, plait.P("x"))
    for got in (x, y, z):
        np.testing.assert_array_equal(got, WHOLE)
    with pytest.raises(plait.PlaitError, match="no mesh is in context"):
        plait.make_array_from_process_local_data(plait.P("x"), WHOLE)


def test_a_piece_that_is_traced_is_refused():
    where = plait.SingleDeviceSharding(plait.devices()[1])

    def f(x):
        return plait.make_array_from_callback(x.shape, where, lambda index: x[index])

    for run in (plait.jit(f), lambda x: plait.eval_shape(f, x)):
        with pytest.raises(plait.errors.UnexpectedTracerError, match="is traced and lies") as e:
            run(np.ones(3, np.float32))
        assert "test_assembly.py" in str(e.value) and "outside" in e.value.fix


def test_one_process_has_its_own_part():
    from plait_sharding.distributed.exchange import global_array_to_host_local_array as own

    mesh = plait.make_mesh((8,), ("x",))
    x = plait.device_put(np.arange(8.0), plait.NamedSharding(mesh, plait.P("x")))
    assert own(x, mesh, plait.P("x")) is x
    other = own({"a": x}, mesh, plait.P())["a"]
    assert other.sharding.is_fully_replicated
    np.testing.assert_array_equal(other, np.arange(8.0))
