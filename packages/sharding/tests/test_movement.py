"""device_put: when it copies, shares and deletes; and to what places arrays are committed."""

import numpy as np
import pytest

import plait
from plait.errors import DeletedArrayError, PlacementError
from plait.events import counting
from plait.ext.errors import TypeRule
from plait_sharding import Mesh, NamedSharding, P, SingleDeviceSharding, device_put, make_mesh

A = np.arange(16, dtype=np.float32).reshape(4, 4)


def fresh():
    return plait.numpy.asarray(A)


def places(mesh):
    """Targets where an array of the default place is not, and ones where it is."""
    return {
        "nowhere": None,
        "here": plait.devices()[0],
        "other": plait.devices()[2],
        "pieces": NamedSharding(mesh, P("x")),
    }


@pytest.mark.feature("S31")
@pytest.mark.parametrize("where", ["nowhere", "here", "other", "pieces"])
def test_shared_and_deleted_is_refused(mesh, where, told):
    x = fresh()
    text = "told both to donate an array and that the result may alias it"
    told(lambda: device_put(x, places(mesh)[where], may_alias=True, donate=True), text)
    with pytest.raises(TypeRule, match=text):
        device_put((x, x), None, may_alias=True, donate=(False, True))
    assert not x.is_deleted()


@pytest.mark.feature("S32")
def test_shared(mesh):
    x = fresh()
    assert device_put(x, may_alias=True) is x
    for where in places(mesh).values():
        once = device_put(x, where)
        again = device_put(once, where, may_alias=True, donate=False)
        assert again is once and not x.is_deleted()
    here = device_put(x, plait.devices()[0], may_alias=True)  # told where to be: another array
    assert here.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    np.testing.assert_array_equal(here, A)


@pytest.mark.feature("S33", "S35")
@pytest.mark.parametrize("alias", [False, None])
def test_deleted(mesh, alias):
    for where in places(mesh).values():
        x = fresh()
        y = device_put(x, where, may_alias=alias, donate=True)
        assert x.is_deleted() and not y.is_deleted()
        np.testing.assert_array_equal(y, A)
        with pytest.raises(DeletedArrayError):
            x + 1


@pytest.mark.feature("S34")
def test_copied(mesh):
    x = fresh()
    for where in places(mesh).values():
        y = device_put(x, where, may_alias=False, donate=False)
        z = device_put(y, where, may_alias=False, donate=False)
        assert y is not x and z is not y and not x.is_deleted()
        if len(y.devices()) == 1:
            pointers = {v.unsafe_buffer_pointer() for v in (x, y, z)}
            assert len(pointers) == 3
        y.delete()
        np.testing.assert_array_equal(z, A)


@pytest.mark.feature("S36", "S37")
def test_the_default_is_a_setting(mesh):
    for where in places(mesh).values():
        x = device_put(fresh(), where)
        assert plait.config.default_copy and device_put(x, where) is not x
        with plait.config(default_copy=False):
            assert device_put(x, where) is x
            assert device_put(x, where, may_alias=False) is not x
            device_put(x, where, donate=True)
        assert x.is_deleted()


@pytest.mark.feature("S39")
def test_the_memory_of_what_moved_is_free(mesh):
    for name, where in places(mesh).items():
        x = fresh()
        runtime = x.buffer()
        y = device_put(x, where, donate=True)
        assert runtime.is_deleted(), name
        pieces = device_put(y, NamedSharding(mesh, P("x")))
        runtime = pieces.buffer()
        device_put(pieces, plait.devices()[1], donate=True)
        assert runtime.is_deleted(), name


@pytest.mark.feature("S40")
def test_prefixes(mesh):
    x, y, z = fresh(), fresh(), fresh()
    where = NamedSharding(mesh, P("x"))
    out = device_put((x, {"y": y, "z": z}), where, donate=(True, False))
    assert [v.is_deleted() for v in (x, y, z)] == [True, False, False]
    assert [v.sharding for v in plait.tree.leaves(out)] == [where] * 3
    same = device_put((y, {"z": z}), None, may_alias=(True, {"z": False}))
    assert same[0] is y and same[1]["z"] is not z
    with pytest.raises(plait.errors.TreeMismatch, match="donate"):
        device_put((y, z), None, donate=(True,))


@pytest.mark.feature("S42")
def test_deleted_arrays_are_named_wherever_they_go(mesh):
    x = device_put(np.ones(8, np.float32), NamedSharding(make_mesh((4,), "i"), P("i")))
    x.delete()
    turned = NamedSharding(Mesh([3, 2, 1, 0], "i"), P("i"))
    for where in (turned, *places(mesh).values()):
        for options in ({}, {"donate": True}, {"may_alias": True}):
            with pytest.raises(RuntimeError, match=r"this array, f32\[8\], was donated or deleted"):
                device_put(x, where, **options)


# ---- committed, and not ----------------------------------------------------------------------


def test_results_of_functions_that_compute_nothing():
    x, y = fresh(), plait.numpy.ones(3)
    outs = plait.jit(lambda x, y: (y, 1, x))(x, y)
    assert not any(o.committed for o in outs)
    assert [o.sharding for o in outs] == [SingleDeviceSharding(0)] * 3
    np.testing.assert_array_equal(outs[2], A)
    assert (
        not plait.jit(lambda x: x)(x).committed
        and not plait.jit(lambda: plait.numpy.ones(2))().committed
    )
    there = plait.jit(lambda x: (x, 1))(device_put(x, plait.devices()[1]))
    assert [o.sharding for o in there] == [SingleDeviceSharding(1)] * 2 and there[0].committed


@pytest.mark.feature("S43")
def test_functions_that_do_nothing_say_nothing_of_places():
    """Results lie on the default device, because nobody said where; each has memory of its own, so
    that what came out twice can be donated twice."""
    x, y = fresh(), plait.numpy.arange(5.0)
    outs = plait.jit(lambda x, y: (y, 1, x, y))(x, y)
    assert [o.committed for o in outs] == [False] * 4
    assert {o.sharding for o in outs} == {SingleDeviceSharding(0)}
    first, _, same, again = outs
    step = plait.jit(lambda a, b: (a + 1, b + 2), donate_argnums=(0, 1))
    np.testing.assert_array_equal(step(first, again)[1], np.arange(5.0) + 2)
    assert first.is_deleted() and again.is_deleted() and not y.is_deleted()
    there = device_put(x, plait.devices()[2])
    assert plait.jit(lambda v: v)(there).sharding == there.sharding
    np.testing.assert_array_equal(same, A)


@pytest.mark.feature("S44")
def test_a_device_commits():
    x = fresh()
    assert not x.committed and not device_put(x).committed
    y = device_put(x, plait.devices()[0])
    assert y.committed and y.sharding == x.sharding and not x.committed
    assert device_put(y).committed and (y * 2).committed


@pytest.mark.feature("S45")
def test_commitment_compiles_nothing():
    f = plait.jit(lambda x: x * 2.5 + 7)
    given = [fresh(), device_put(fresh(), plait.devices()[0]), plait.numpy.zeros((4, 4))]
    with counting() as n:
        outs = [f(x) for x in given]
    assert n["compile"] == 1 == n["trace"]
    assert [o.committed for o in outs] == [False, True, False]


@pytest.mark.feature("S46")
def test_no_device_and_two():
    x = device_put(fresh(), plait.devices()[3])
    assert device_put(x, may_alias=True) is x and device_put(x).sharding == x.sharding
    host = device_put(A)
    assert not host.committed and host.sharding == SingleDeviceSharding(0)
    y = device_put(fresh(), plait.devices()[2])
    for call in (lambda: x + y, lambda: plait.jit(lambda x, y: x * y)(x, y)):
        with pytest.raises(ValueError, match="received arrays on incompatible devices") as e:
            call()
        assert isinstance(e.value, PlacementError) and "device=2" in str(e.value)
    assert (x + host).sharding == x.sharding


# ---- in functions ----------------------------------------------------------------------------


@pytest.mark.feature("S24")
def test_pieces_by_their_old_names(mesh):
    x = device_put(A, NamedSharding(mesh, P("x")))
    assert [b.shape for b in x.device_buffers] == [(2, 4)] * 8
    one = device_put(A, plait.devices()[1])
    np.testing.assert_array_equal(one.device_buffers[0], A)
    assert one.device_buffers[0].sharding == SingleDeviceSharding(1) == one.sharding
    assert fresh().device_buffers[0].shape == (4, 4)


@pytest.mark.feature("S28")
def test_places_of_every_kind_without_a_mesh_around(mesh, close):
    f = plait.jit(lambda x: x @ x.T)
    for where in places(mesh).values():
        close(f(device_put(A, where)), A @ A.T)
        s = SingleDeviceSharding(where) if isinstance(where, plait.Device) else where
        close(plait.jit(lambda x: x @ x.T, in_shardings=s)(A), A @ A.T)


@pytest.mark.feature("S29")
def test_what_is_not_said_follows_the_arguments(lies, close):
    """None leaves the choice open, for all or for some, with and without a mesh."""
    f = lambda x, y: (x * 2, x @ y)  # noqa: E731
    here, there = device_put(A, plait.devices()[1]), device_put(A, lies("x"))
    for ins, outs in ((None, None), ((None, None), None), (None, (None, None))):
        g = plait.jit(f, in_shardings=ins, out_shardings=outs)
        for x, want in ((A, SingleDeviceSharding(0)), (here, SingleDeviceSharding(1))):
            assert [o.sharding for o in g(x, A)] == [want] * 2
        one, other = g(there, A)
        assert one.sharding == lies("x") and other.sharding.device_set == set(plait.devices())
        close(other, A @ A)
    one, other = plait.jit(f, in_shardings=(lies("x"), None), out_shardings=(None, lies()))(A, A)
    assert one.sharding == lies("x") and other.sharding == lies()


@pytest.mark.feature("S30")
def test_replicated_in_other_words(mesh):
    whole = NamedSharding(mesh, P())
    thin = make_mesh((1, 8), ("one", "many"))
    for other in (NamedSharding(mesh, P(None, None)), NamedSharding(thin, P("one"))):
        assert other.is_equivalent_to(whole, 2) and whole.is_equivalent_to(other, 2)
        assert other.is_fully_replicated
    assert not NamedSharding(thin, P("many")).is_equivalent_to(whole, 2)


def test_no_partition_spec_without_a_mesh(told):
    for call in (
        lambda: plait.jit(lambda x: x, in_shardings=P("x"))(A),
        lambda: plait.jit(lambda x: x, out_shardings=P("x"))(A),
    ):
        told(call, "PartitionSpec('x')", "NamedSharding")
    told(lambda: plait.jit(lambda x: x, in_shardings="x")(A), "in_shardings places arrays")
