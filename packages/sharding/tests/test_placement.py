"""Arrays in pieces: where the pieces are, and that computing with them gives the same."""

import itertools
import pickle

import numpy as np
import pytest

import plait
from plait.errors import PlacementError
from plait.events import counting
from plait.ext.devices import Placed, boxes, layout_of
from plait.ext.errors import AxisError, TreeMismatch, TypeRule
from plait.ext.ops.elementwise import sin
from plait.ext.types import Aval
from plait.lax import scan
from plait_sharding import (
    Mesh,
    NamedSharding,
    P,
    SingleDeviceSharding,
    device_put,
    make_mesh,
    sharding_of,
    with_sharding_constraint,
)
from plait_sharding.ext import constraint

R = np.random.default_rng(0)
A = R.normal(size=(8, 16)).astype(np.float32)
B = R.normal(size=(16, 4)).astype(np.float32)
SPECS = [(), ("x",), (None, "y"), ("y", "x"), (("x", "y"),), (("y", "x"),), (None, ("x", "y"))]


def piece(mesh, entries, x, device):
    """The piece of `x` that a device has, by slicing along one mesh axis after the other."""
    where = dict(zip(mesh.axis_names, np.argwhere(mesh.device_ids == device)[0]))
    for axis, entry in enumerate(entries):
        for name in () if entry is None else (entry,) if isinstance(entry, str) else entry:
            x = np.split(x, mesh.shape[name], axis)[where[name]]
    return x


# ---- where pieces are ----------------------------------------------------------------------


@pytest.mark.parametrize("entries", SPECS)
def test_pieces(mesh, lies, entries):
    a = device_put(A, lies(*entries))
    assert a.sharding == sharding_of(a) == lies(*entries)
    np.testing.assert_array_equal(a, A)
    seen = []
    for shard in a.addressable_shards:
        want = piece(mesh, entries, A, shard.device.id)
        np.testing.assert_array_equal(shard.data, want)
        np.testing.assert_array_equal(A[shard.index], want)
        for cut, n, m in zip(shard.index, A.shape, want.shape, strict=True):
            assert (cut == slice(None)) == (n == m)  # what is whole is said to be
        assert shard.data.sharding == SingleDeviceSharding(shard.device)
        assert shard.data.shape == a.sharding.shard_shape(A.shape)
        seen.append((str(shard.index), shard.replica_id))
    assert len(set(seen)) == 8 and a.devices() == set(plait.devices())


def test_every_division_is_told_from_its_tiles():
    for order in ((0, 1, 2, 3, 4, 5, 6, 7), (5, 2, 7, 0, 1, 3, 4, 6)):
        mesh = Mesh(np.array(order).reshape(2, 2, 2), ("a", "b", "c"))
        some = [(), *itertools.permutations("abc", 1), *itertools.permutations("abc", 2)]
        for p, q in itertools.product(some, some):
            if set(p) & set(q):
                continue
            sharding = NamedSharding(mesh, P(p, q))
            key = Placed(Aval((8, 8), np.int32), sharding)
            x = np.arange(64, dtype=np.int32).reshape(8, 8)
            for device, box in zip(order, boxes(layout_of(key), (8, 8)), strict=True):
                np.testing.assert_array_equal(x[box], piece(mesh, (p, q), x, device))
            tiles = tiles_of(key)
            assert sharding.place.placement(tiles, 2) == sharding


def tiles_of(key):
    """(tiles along each axis, then copies; devices in the order of the tiles), from the boxes."""
    cut = boxes(layout_of(key), key.aval.shape)
    corners = [tuple([s.start for s in box]) for box in cut]
    if len(set(corners)) == 1:
        return None
    counts = [len({c[k] for c in corners}) for k in range(2)]
    order = sorted(range(len(corners)), key=lambda i: (corners[i], i))
    copies = len(corners) // len(set(corners))
    return (*counts, copies) if copies > 1 else tuple(counts), tuple(order)


def test_trailing_entries_and_equality(mesh):
    assert NamedSharding(mesh, P("x", None)) == NamedSharding(mesh, P("x"))
    assert hash(NamedSharding(mesh, P("x", None))) == hash(NamedSharding(mesh, P("x")))
    assert NamedSharding(mesh, P("x")) != NamedSharding(mesh, P("y"))
    assert SingleDeviceSharding(1) == SingleDeviceSharding(plait.devices()[1])
    assert SingleDeviceSharding(1) != SingleDeviceSharding(2)


@pytest.mark.parametrize(
    "entries", [(), ("x",), ("x", None), (None, None), (("x", "y"), None, None)]
)
def test_a_spec_is_kept_as_it_was_given(mesh, entries):
    """Entries can be added behind it, and then divide the axes that they are written for; those of
    arrays do not depend on which of several equal shardings came first."""
    s = NamedSharding(mesh, P(*entries))
    assert s.spec == P(*entries) and tuple(s.spec) == entries
    assert pickle.loads(pickle.dumps(s)).spec == s.spec and s.with_spec(s.spec).spec == s.spec
    shape = (8, 8, 8)[: max(len(entries), 1)]
    x = device_put(np.zeros(shape, np.float32), s)
    shortest = entries[:1] if entries[:1] != (None,) else ()
    assert tuple(x.sharding.spec) == shortest and x.sharding == s
    more = NamedSharding(mesh, P(*s.spec, None))
    assert len(more.spec) == len(entries) + 1 and more == s
    with pytest.raises(ValueError):
        s.check_compatible_aval((8,) * (len(entries) - 1)) if entries else P("x", "x")


def test_questions(mesh, lies):
    s = lies("x", "y")
    assert s.device_set == set(plait.devices()) and s.shard_shape((8, 16)) == (4, 4)
    assert not s.is_fully_replicated and lies().is_fully_replicated
    assert SingleDeviceSharding(0).is_fully_replicated
    flat = NamedSharding(make_mesh((8,), "i"), P("i"))
    assert flat.is_equivalent_to(lies(("x", "y")), 2)
    assert not flat.is_equivalent_to(lies("x"), 2)
    assert not flat.is_equivalent_to(lies(("y", "x")), 2)
    assert s.devices_indices_map((8, 16))[plait.devices()[5]] == (slice(4, 8), slice(4, 8))
    assert sharding_of(plait.device_put(A)) == SingleDeviceSharding(0)
    odd = NamedSharding(make_mesh((1, 2), ("one", "two")), P("one", "two"))
    assert device_put(A, odd).sharding == odd


# ---- device_put ----------------------------------------------------------------------------


def test_round_trips(lies):
    places = [
        lies("x"),
        plait.devices()[3],
        lies(None, "y"),
        NamedSharding(Mesh([5, 2, 7, 0], "k"), P("k")),
        lies(),
        NamedSharding(Mesh([1, 2, 3, 4], "k"), P("k")),
        SingleDeviceSharding(0),
        lies(("y", "x")),
    ]
    a = device_put(A)
    for place in places:
        b = device_put(a, place)
        want = SingleDeviceSharding(place) if isinstance(place, plait.Device) else place
        assert b.sharding == want
        np.testing.assert_array_equal(b, A)
        np.testing.assert_array_equal(a, A)
        a = b


def test_it_copies(lies):
    for where in (None, lies("x"), plait.devices()[2]):
        x = device_put(A, where)
        y = device_put(x, where)
        assert y is not x
        x.delete()
        np.testing.assert_array_equal(y, A)
    host = A.copy()
    x, y = device_put(host), device_put(host, lies("x"))
    host[:] = 0
    np.testing.assert_array_equal(x, A)
    np.testing.assert_array_equal(y, A)
    scalar = device_put(1.0)
    scalar.delete()
    assert float(device_put(1.0)) == 1.0 and float(plait.jit(lambda v: v)(1.0)) == 1.0


def test_aliasing_and_donation(lies, told):
    x = device_put(A, lies("x"))
    assert device_put(x, lies("x"), may_alias=True) is x
    y = device_put(x, lies("y"), donate=True)
    assert x.is_deleted() and not y.is_deleted()
    np.testing.assert_array_equal(y, A)
    a, b = device_put((A, A))
    device_put((a, b), lies("x"), donate=(True, False))
    assert a.is_deleted() and not b.is_deleted()
    told(
        lambda: device_put(b, may_alias=True, donate=True),
        "both to donate an array and",
        kind=TypeRule,
    )
    told(lambda: device_put(x, lies("x")), "donated or deleted")


def test_trees_and_prefixes(lies):
    tree = {"w": (A, B), "b": 1.0, "none": None}
    out = device_put(tree, {"w": lies("x"), "b": plait.devices()[1], "none": None})
    assert [x.sharding for x in out["w"]] == [lies("x")] * 2
    assert out["b"].sharding == SingleDeviceSharding(1) and out["b"].weak_type
    assert out["none"] is None
    out = device_put(tree, {"w": (lies("x"), None), "b": None, "none": None})
    assert out["w"][1].sharding == SingleDeviceSharding(0)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float64", "complex64", "bfloat16"])
def test_dtypes(lies, dtype):
    x = (A * 3).astype(plait.numpy.dtype(dtype))
    y = device_put(x, lies("x", "y"))
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(y), x)


def test_settings_hold(lies):
    with plait.config(x64=False):
        assert device_put(A.astype(np.float64), lies("x")).dtype == np.float32


def test_errors(lies, mesh, told):
    told(lambda: device_put(A[:7], lies("x")), "axis 0 of f32[7,16]", "'x'", "multiple of 2")
    told(lambda: device_put(A, lies(None, None, "x")), "3 entries", "2 axes", kind=AxisError)
    told(lambda: device_put(A, P("x")), "PartitionSpec('x') was given alone", "NamedSharding(mesh,")
    told(lambda: device_put({"a": "s"}, lies("x")), "'s' of type str", "['a']", kind=TypeRule)
    told(lambda: device_put((A, A), (lies("x"),)), "does not fit", kind=TreeMismatch)
    told(lambda: NamedSharding(mesh, P("z")), "the axis 'z'", kind=AxisError)
    told(lambda: NamedSharding(P("x"), mesh), "takes a mesh and a PartitionSpec")
    told(lambda: device_put(A, SingleDeviceSharding(9)), "no device number 9", "cpu_devices")
    told(lambda: sharding_of(A), "is not an array", kind=TypeRule)
    told(lambda: with_sharding_constraint(A, P("x")), "was given alone", "NamedSharding(mesh,")
    told(lambda: plait.jit(lambda a: sharding_of(a))(A), "has no placement")


# ---- computing -----------------------------------------------------------------------------


@pytest.mark.parametrize("entries", SPECS[:5])
def test_operations_on_pieces(lies, close, entries):
    a = device_put(A, lies(*entries))
    out = plait.jit(lambda a: a * 2)(a)
    assert out.sharding == lies(*entries)
    close(out, A * 2)
    close(a + a, A * 2)
    close(sin(a), np.sin(A))
    close(a + 1, A + 1)
    close(a * A, A * A)
    close(a[2:4].sum(), A[2:4].sum())
    close(a.T @ a, A.T @ A)


def test_one_trace_and_an_executable_per_layout(lies, close):
    f = plait.jit(lambda a, b: a @ b)
    ways = [(lies("x"), lies()), (lies("x", "y"), lies("y")), (lies("x"), lies())]
    with counting() as n:
        for p, q in ways * 2:
            close(f(device_put(A, p), device_put(B, q)), A @ B)
    assert n["trace"] == 1 and n["lower"] == 2 and n["compile"] == 2
    close(f(A, B), A @ B)
    assert f(A, B).sharding == SingleDeviceSharding(0)
    close(f(device_put(A, lies("x")), B), A @ B)


def test_arrays_of_the_default_place_are_brought_once(lies, close):
    a, w = device_put(A, lies("x")), device_put(A)
    f = plait.jit(lambda a, w: a * w)
    f(a, w)
    with counting() as n:
        for _ in range(3):
            close(f(a, w), A * A)
            close(a * w, A * A)
            close(plait.jit(lambda a: a + w)(a), A + A)
    assert n["transfer"] == 0


def test_an_argument_that_nothing_annotates(lies, close):
    """The compiler may divide an argument that says nothing; then a whole one would not do."""
    a, b = device_put(A, lies("x", "y")), device_put(A)
    close(plait.jit(lambda a, b: (a * b).sum())(a, b), (A * A).sum())
    close(plait.jit(lambda b: with_sharding_constraint(b * 2, lies("y", "x")))(b), A * 2)


def test_in_and_out_shardings(lies, close, told):
    def f(a, b):
        return {"p": a @ b, "q": a.sum()}

    outs = {"p": lies(None, "y"), "q": lies()}
    g = plait.jit(f, in_shardings=(lies("x"), lies()), out_shardings=outs)
    placed = device_put(A, lies("x", None)), device_put(B)
    for r in (g(A, B), g(*placed), plait.jit(g)(A, B)):
        close(r["p"], A @ B)
        close(r["q"], A.sum())
        assert r["p"].sharding == outs["p"] and r["q"].sharding == outs["q"]
    shapes = [plait.ShapeDtypeStruct(x.shape, x.dtype) for x in (A, B)]
    for other in (lies("y"), plait.devices()[3], lies("x", "y")):  # placed so on purpose
        for _ in range(2):
            told(
                lambda: g(device_put(A, other), B),
                "argument of type f32[8,16] was placed by",
                "and in_shardings say NamedSharding",
                "device_put",
                kind=PlacementError,
            )
            g(A, B)
    close(plait.jit(g)(device_put(A, lies("y")), B)["q"], A.sum())  # traced, it is a constraint
    low = g.lower(*shapes)
    assert 'tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}' in low.as_text()
    done = low.compile()
    close(done(A, B)["p"], A @ B)
    told(lambda: done(device_put(A, lies("y")), B), "this executable is for", kind=TypeRule)
    h = plait.jit(lambda n, a: a * n, static_argnums=0, in_shardings=lies("x"))
    assert h(3, A).sharding == lies("x")
    told(lambda: plait.jit(f, in_shardings=(lies("x"),))(A, B), "in_shardings", kind=TreeMismatch)
    told(lambda: plait.jit(f, out_shardings=lies("x"))(A, B), "has 1 entries", kind=AxisError)


def test_out_shardings_are_repeated_by_shapes(lies, mesh):
    """By jit itself: what is called inside says nothing of the results outside."""
    rows, whole = lies("x"), lies()
    f = lambda x: {"a": (x * 2, x[:4]), "b": x + 1}
    where = lambda shapes: [s.sharding for s in plait.tree.leaves(shapes)]
    shape = plait.ShapeDtypeStruct((8,), "float32")
    for out, want in (
        ({"a": rows, "b": None}, [rows, rows, None]),
        ({"a": (None, whole), "b": rows}, [None, whole, rows]),
        (whole, [whole] * 3),
        (None, [None] * 3),
    ):
        g = plait.jit(f, out_shardings=out)
        for x in (A[0, :8], shape):
            for shapes in (
                plait.eval_shape(g, x), g.eval_shape(x), g.lower(x).out_info, g.trace(x).out_info
            ):  # fmt: skip
                assert where(shapes) == want
                assert [s.shape for s in plait.tree.leaves(shapes)] == [
                    s.shape for s in plait.tree.leaves(plait.eval_shape(f, x))
                ]
        assert where(plait.eval_shape(lambda x, g=g: g(x), shape)) == [None] * 3
        assert where(plait.jit(lambda x, g=g: g(x)).eval_shape(shape)) == [None] * 3
    with mesh:
        assert where(plait.jit(lambda x: x, out_shardings=P("x")).eval_shape(shape)) == [rows]
    static = plait.jit(lambda n, x: x[:n], static_argnums=0, out_shardings=whole)
    (got,) = plait.tree.leaves(plait.eval_shape(static, 3, shape))
    assert got.shape == (3,) and got.sharding == whole


def test_constraints(lies, close):
    f = plait.jit(
        lambda a: with_sharding_constraint({"a": a * 2, "b": a}, {"a": lies("y"), "b": None})
    )
    out = f(device_put(A, lies("x")))
    assert out["a"].sharding == lies("y") and out["b"].sharding == lies("x")
    close(out["a"], A * 2)
    eager = with_sharding_constraint(A, lies("y", "x"))
    assert eager.sharding == lies("y", "x")
    assert with_sharding_constraint(eager, lies("y", "x")) is eager
    half = plait.jit(lambda a: with_sharding_constraint(a * 2, lies(P.UNCONSTRAINED, "y")))
    assert half(device_put(A, lies("x"))).sharding == lies("x", "y")
    assert with_sharding_constraint(A, lies(P.UNCONSTRAINED, "y")).sharding == lies(None, "y")
    moved = plait.jit(lambda a: device_put(a, lies("x")) + 1)(A)
    assert moved.sharding == lies("x")
    close(moved, A + 1)


def test_where_memory_is_not_the_hosts(lies, close, monkeypatch):
    """Pieces of an array on one device are cut there."""
    monkeypatch.setattr("plait_sharding.resharding.platform", lambda: "other")
    for a in (device_put(A), device_put(A, plait.devices()[3]), device_put(A, lies("x", "y"))):
        for entries in SPECS:
            b = device_put(a, lies(*entries))
            assert b.sharding == lies(*entries)
            np.testing.assert_array_equal(b, A)


def test_donation(lies, close):
    f = plait.jit(lambda a, b: (a * 2 + b, b * 1), donate_argnums=0)
    b = device_put(A, lies("x"))
    for a in (device_put(A, lies("x", "y")), device_put(A, lies("x")), device_put(A)):
        out, _ = f(a, b)
        assert a.is_deleted() and not b.is_deleted()
        close(out, A * 3)
        with pytest.raises(plait.PlaitError, match="donated"):
            f(a, b)
    g = plait.jit(
        lambda a: a + 1, donate_argnums=0, in_shardings=lies("x"), out_shardings=lies("x")
    )
    a = device_put(A)
    for k in range(1, 4):
        before, a = a, g(a)
        assert before.is_deleted()
        close(a, A + k)


def test_some_devices_in_another_order(close):
    mesh = Mesh([5, 2, 7, 0], "k")
    a = device_put(A, NamedSharding(mesh, P(None, "k")))
    assert [s.device.id for s in a.addressable_shards] == [5, 2, 7, 0]
    out = plait.jit(lambda a: scan(lambda c, r: (c + r, c), a[0], a)[0])(a)
    close(out, A.sum(0) + A[0])
    assert out.sharding == NamedSharding(mesh, P("k"))


def test_single_devices(close, told):
    x, y = device_put(A, plait.devices()[1]), device_put(A, plait.devices()[2])
    assert (x * 2).sharding == SingleDeviceSharding(1)
    assert plait.jit(lambda a, b: a + b)(A, y).sharding == SingleDeviceSharding(2)
    told(lambda: x + y, "SingleDeviceSharding(device=1)", "device_put")
    close(x + device_put(y, plait.devices()[1]), A * 2)
    here = device_put(A, plait.devices()[0])
    f = plait.jit(lambda a: a * 3 + 5)
    with counting() as n:
        f(device_put(A))
        close(f(here), A * 3 + 5)
    assert n["compile"] == 1 and n["trace"] == 1
    assert f(here).sharding == SingleDeviceSharding(0)
    put = plait.jit(lambda a: a + 1, out_shardings=SingleDeviceSharding(3))
    assert put(A).sharding == SingleDeviceSharding(3)


def test_places_do_not_mix(lies, told):
    other = NamedSharding(make_mesh((2,), "z"), P("z"))
    told(
        lambda: device_put(A, lies("x")) + device_put(A, other),
        "cannot run on Mesh('x': 2, 'y': 4)",
        "Mesh('z': 2)",
        "device_put",
    )


def test_meshes_of_the_same_devices_mix(lies, close):
    flat = NamedSharding(make_mesh((8,), "i"), P(None, "i"))
    a, b = device_put(A, lies("x")), device_put(A, flat)
    close(a + b, A * 2)
    out = plait.jit(lambda a, b: (a * b, with_sharding_constraint(a, flat)))(a, b)
    close(out[0], A * A)
    assert out[1].sharding == flat


def test_constants(lies, close):
    k, here = device_put(A, lies("x", "y")), device_put(A)
    close(plait.jit(lambda a: a * k + here)(device_put(A, lies("y"))), A * A + A)
    close(plait.jit(lambda a: a * k)(A), A * A)
    f = plait.jit(lambda a: scan(lambda c, _: (c + k * here, None), a, None, length=2)[0])
    close(f(A), A + 2 * A * A)


def test_the_type_rule_of_constraint(lies, told):
    told(
        lambda: plait.make_program(lambda a: with_sharding_constraint(a, lies(None, None, "x")))(
            A[:7]
        ),
        "f32[7",
    )
    p = plait.make_program(lambda a: with_sharding_constraint(a, lies("x")))(A)
    assert p.eqns[0].prim is constraint and p.out_avals[0].shape == (8, 16)


MADE = {
    "zeros_like": lambda a, **how: plait.numpy.zeros_like(a, **how),
    "ones_like": lambda a, **how: plait.numpy.ones_like(a, **how),
    "empty_like": lambda a, **how: plait.numpy.empty_like(a, **how),
    "full_like": lambda a, **how: plait.numpy.full_like(a, 7, **how),
    "lax.full_like": lambda a, **how: plait.lax.full_like(a, 7, **how),
}


@pytest.mark.parametrize("name", MADE)
def test_arrays_like_others_lie_where_they_do(name, lies):
    for place in (lies("x"), lies(None, "y"), SingleDeviceSharding(plait.devices()[3])):
        a = device_put(A, place)
        b = MADE[name](a)
        assert b.sharding == a.sharding and b.shape == A.shape and b.dtype == A.dtype
        assert MADE[name](a, dtype="int8").sharding == a.sharding
        single = isinstance(
            place, SingleDeviceSharding
        )  # other shapes keep a device, not a division
        there = a.devices() if single else {plait.devices()[0]}
        assert MADE[name](a, shape=(3,)).devices() == there
        np.testing.assert_array_equal(b, np.full(A.shape, np.asarray(b).ravel()[0]))
        assert plait.jit(lambda v: MADE[name](v) + v)(a).sharding == a.sharding
    assert MADE[name](plait.numpy.asarray(A)).devices() == {plait.devices()[0]}


def test_errors_say_which_array_of_a_tree(lies, told):
    """And shapes alone have no dtype."""
    odd = {"w": [np.ones((8, 16), np.float32), np.ones((7, 16), np.float32)]}
    where, at = lies("x"), "`t['w'][1]`"
    text = "axis 0 of f32[7,16] cannot be divided in 2 equal pieces, over 'x' of Mesh("
    told(lambda: device_put(odd, where), text, "(device_put: `x['w'][1]`)")
    told(lambda: plait.jit(lambda t: device_put(t, where))(odd), "(device_put: `x['w'][1]`)")
    told(
        lambda: plait.lax.with_sharding_constraint(odd, where),
        "(with_sharding_constraint: `x['w'][1]`)",
    )
    f = plait.jit(lambda t: t, in_shardings=where)
    for _ in range(2):  # the way of later calls says the same
        f({"w": [odd["w"][0]] * 2})
        told(lambda: f(odd), "f32[7,16]", f"(argument {at}, by in_shardings)")
        there = [odd["w"][0], device_put(odd["w"][0], plait.devices()[3])]
        told(lambda: f({"w": there}), "was placed by", f"(argument {at}, by in_shardings)")  # noqa: B023
    g = plait.jit(lambda x: {"r": x[:7]}, out_shardings=where)
    told(lambda: g(odd["w"][0]), "f32[7,16]", "(out_shardings: the result['r'])")
    done = f.lower({"w": [odd["w"][0]] * 2}).compile()
    told(lambda: done(odd), text, f"(argument {at})")
    other = {"w": [odd["w"][0], np.ones((2, 16), np.float32)]}
    told(lambda: done(other), "this executable is for", f"(argument {at})")
    told(lambda: where.check_compatible_aval((7,)), "axis 0 of an array of shape (7,) cannot be")
    told(lambda: plait.make_mesh((0, 8), ("x", "y")), "(0, 8) has no devices along axis 0")
    told(lambda: plait.NamedSharding(where.mesh, where.spec, memory_kind="moon"), "'moon'")
    assert plait.NamedSharding(where.mesh, where.spec, memory_kind=where.memory_kind) == where


# ---- the device of a call --------------------------------------------------------------------


@pytest.mark.parametrize("entries", [None, ("x",), (None, "y"), ("x", "y")], ids=str)
def test_the_device_of_jit_takes_arguments_from_anywhere(mesh, entries):
    """`in_shardings` refuse what was placed elsewhere; `device` moves it."""
    there = plait.devices()[2]
    x = device_put(A, plait.devices()[1] if entries is None else NamedSharding(mesh, P(*entries)))
    seen = []
    f = plait.jit(lambda v, w: (seen.append(v), v * 3 + w)[1], device=there)
    for given in (x, A):
        out = f(given, 1.0)
        np.testing.assert_allclose(np.asarray(out), A * 3 + 1, atol=1e-5)
        assert out.devices() == {there}
        assert out.sharding == SingleDeviceSharding(there)
    assert f(A, device_put(A, plait.devices()[5])).devices() == {there}
    assert not x.is_deleted() and len(seen) <= 3
    inside = plait.jit(lambda v: f(v, 1.0) + 1)(device_put(A, there))
    np.testing.assert_allclose(np.asarray(inside), A * 3 + 2, atol=1e-5)
    with pytest.raises(PlacementError, match="in_shardings"):
        plait.jit(lambda v: v, in_shardings=SingleDeviceSharding(there))(x)


def test_the_device_of_jit_runs_functions_without_arguments():
    there = plait.devices()[3]
    for f in (lambda: 3.0, lambda: plait.numpy.arange(4) * 2, lambda: plait.numpy.ones(3)):
        got = plait.jit(f, device=there)()
        assert got.devices() == {there} and got.committed
        np.testing.assert_array_equal(got, np.asarray(f()))
    got = plait.jit(lambda k: plait.random.normal(k, (3,)), device=there)(plait.random.key(0))
    assert got.devices() == {there}


def test_in_shardings_are_for_arguments_by_position(lies):
    f = plait.jit(lambda x, y=0: x + y, in_shardings=lies("x"))
    with pytest.raises(ValueError, match="in_shardings.* `?y`? by name"):
        f(A, y=A)
    with pytest.raises(ValueError, match="by name"):
        f(x=A)
    static = plait.jit(lambda x, n: x * n, in_shardings=lies("x"), static_argnames="n")
    assert static(A, n=2).sharding.is_equivalent_to(lies("x"), A.ndim)
    here = plait.devices()[1]
    on_one = plait.jit(lambda x, y: x + y, device=here)
    assert on_one(A, y=1.0).devices() == {here}


def test_a_backend_beside_other_places_is_refused():
    where = plait.SingleDeviceSharding(plait.devices()[0])
    for more in (
        {"in_shardings": where}, {"out_shardings": where}, {"device": plait.devices()[0]}
    ):  # fmt: skip
        with pytest.raises(plait.errors.ArgumentError, match="given backend"):
            plait.jit(lambda x: x, backend="cpu", **more)
    assert plait.jit(lambda x: x + 1, backend="cpu")(1) == 2
