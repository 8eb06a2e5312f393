"""From one sharding to another: between the same devices, others, and some of them.

Invariant: values are numpy's; that nothing goes by way of the host is seen by forbidding it.
"""

import itertools

import numpy as np
import pytest

import plait
from plait_sharding import (
    GSPMDSharding,
    Mesh,
    NamedSharding,
    P,
    SingleDeviceSharding,
    device_put,
    make_mesh,
    with_sharding_constraint,
)
from plait_sharding.resharding import stations

A = np.arange(8 * 12, dtype=np.float32).reshape(8, 12)


@pytest.fixture
def no_host(monkeypatch):
    """Nothing is brought to the host or from it, while this function is called."""

    def run(f):
        def refused(*args, **kw):
            raise AssertionError("by way of the host")

        with monkeypatch.context() as m:
            m.setattr("plait._core.buffers.get", refused)
            m.setattr("plait._core.buffers.put", refused)
            return f()

    return run


def layouts():
    """Eight devices, the same backwards, the first and last four, two rows of three, one."""
    two = make_mesh((2, 4), ("x", "y"))
    back = Mesh(np.arange(8)[::-1].reshape(2, 4), ("x", "y"))
    first, last = (make_mesh((2, 2), ("x", "y"), devices=plait.devices()[k:]) for k in (0, 4))
    six = make_mesh((2, 3), ("x", "y"), devices=plait.devices()[1:])
    for mesh in (two, back, first, last, six):
        for spec in (P("x", "y"), P("y", "x"), P(None, "x"), P()):
            if mesh is not six or spec != P("y", "x"):  # eight rows are not three times anything
                yield NamedSharding(mesh, spec)
    yield GSPMDSharding(plait.devices(), "{devices=[4,1,2]7,1,2,0,4,3,6,5 last_tile_dim_replicate}")
    yield SingleDeviceSharding(5)


def expect_at(x, where):
    """Whether every device of a sharding has its slice of A."""
    assert x.sharding == where
    np.testing.assert_array_equal(x, A)
    want = where.devices_indices_map(A.shape)
    assert {s.device for s in x.addressable_shards} == set(want)
    for shard in x.addressable_shards:
        np.testing.assert_array_equal(shard.data, A[want[shard.device]])


@pytest.mark.sampled(8)
@pytest.mark.parametrize("i", range(21))
def test_every_sharding_from_every_other(i, no_host):
    every = list(layouts())
    assert len(every) == 21
    start = every[i]
    for where in every:
        x = device_put(A, start)
        several = len(start.device_set) > 1
        y = no_host(lambda: device_put(x, where)) if several else device_put(x, where)  # noqa: B023
        expect_at(y, where)
        x.delete()  # the result has memory of its own
        np.testing.assert_array_equal(y, A)


def test_between_the_same_devices_a_program_does_it(lies, no_host):
    x = device_put(A[:, :4], lies("x", "y"))  # of a shape that no other test has
    with plait.events.counting() as n:
        y = no_host(lambda: device_put(x, lies("y", "x")))
        again = no_host(lambda: with_sharding_constraint(x, lies("y", "x")))
    assert n["compile"] == 1 and n["transfer"] == 0
    np.testing.assert_array_equal(y, A[:, :4])
    np.testing.assert_array_equal(again, A[:, :4])
    f = plait.jit(lambda v: v, in_shardings=lies("x", "y"), out_shardings=lies("y", "x"))
    assert "collective-permute" in f.lower(A[:, :4]).compile().as_text()


SPECS = [P("x", "y"), P("y", "x"), P("x"), P(None, "y"), P(("x", "y")), P(None, ("y", "x"))]


@pytest.mark.sampled(10)
@pytest.mark.parametrize("i", range(len(SPECS)))
def test_no_device_has_more_than_a_piece(i, lies, no_host):
    """What a device is sent, and all memory of the program, is no larger than pieces are."""
    B = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    x = device_put(B, lies(*SPECS[i]))
    for spec in SPECS:
        want, seen = lies(*spec), []
        with plait.events.listening(lambda name, what: seen.append((name, what))):  # noqa: B023
            y = no_host(lambda: device_put(x, want))  # noqa: B023
        assert y.sharding == want and "transfer" not in dict(seen) or want == x.sharding
        np.testing.assert_array_equal(y, B)
        way = (*stations(x.sharding, want, plait.typeof(x)), want)
        compiled = plait.jit(lambda v: go(v, way)).lower(x).compile()  # noqa: B023
        piece = max(np.prod(s.shard_shape(B.shape)) * 4 for s in (x.sharding, want))
        for c in compiled.collectives():
            assert c.bytes <= piece, (spec, c)
            assert all(size(r) <= piece for r in c.results), (spec, c)


def go(x, way):
    for sharding in way:
        x = with_sharding_constraint(x, sharding)
    return x


def size(text):
    """The bytes of "f32[4,8]"."""
    return 4 * int(np.prod([int(n) for n in text[4:-1].split(",")]))


def test_what_can_not_be_divided_further(lies, no_host):
    """Then it goes another way."""
    C = np.arange(2 * 4, dtype=np.float32).reshape(2, 4)
    x = device_put(C, lies("x"))
    y = no_host(lambda: device_put(x, lies(None, "y")))
    np.testing.assert_array_equal(y, C)
    odd = np.arange(4.0 * 2).reshape(4, 2)
    z = no_host(lambda v=device_put(odd, lies("y")): device_put(v, lies(None, "x")))
    np.testing.assert_array_equal(z, odd)


@pytest.mark.parametrize("dtype", ["bool", "int8", "complex64", "bfloat16"])
def test_elements_of_other_kinds(dtype, no_host):
    given = plait.numpy.asarray(A % 3).astype(dtype)
    want = np.asarray(given)
    first, last = list(layouts())[0], list(layouts())[12]
    y = device_put(no_host(lambda x=device_put(want, first): device_put(x, last)), first)
    np.testing.assert_array_equal(y, want)


def test_keys_and_nothing(no_host):
    first, last = list(layouts())[0], list(layouts())[12]
    keys = plait.random.split(plait.random.key(3), (8, 12))
    there = no_host(lambda x=device_put(keys, first): device_put(x, last))
    want = np.asarray(plait.random.key_data(keys))
    np.testing.assert_array_equal(plait.random.key_data(there), want)
    none = np.zeros((8, 0), np.float32)
    for a, b in itertools.permutations((first, last, SingleDeviceSharding(2)), 2):
        assert device_put(device_put(none, a), b).shape == (8, 0)


def test_an_axis_that_is_left_to_the_compiler(lies):
    x = device_put(A, lies("x", "y"))
    y = with_sharding_constraint(x, lies(P.UNCONSTRAINED, "x"))
    np.testing.assert_array_equal(y, A)
    assert y.sharding == lies(None, "x")


def test_what_was_donated_is_gone(lies, no_host):
    x = device_put(A, lies("x", "y"))
    y = no_host(lambda: device_put(x, lies("y"), donate=True))
    assert x.is_deleted()
    np.testing.assert_array_equal(y, A)
    with pytest.raises(RuntimeError, match="donated or deleted"):
        device_put(x, lies("x"))
    with pytest.raises(RuntimeError, match="donated or deleted"):
        device_put(x, SingleDeviceSharding(5))
