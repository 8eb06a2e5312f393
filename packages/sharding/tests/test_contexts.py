"""Meshes in context: what PartitionSpecs alone speak of, per thread and task.

Invariant: results are compared with numpy, and places with the same sharding said in full.
"""

import asyncio
import contextlib
import sys
import threading

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import AxisError, PlaitError
from plait.sharding import AbstractMesh, get_abstract_mesh, get_mesh, use_abstract_mesh, use_mesh
from plait_sharding import NamedSharding, P, make_mesh, set_mesh

X = np.arange(16.0, dtype=np.float32)


@pytest.fixture
def meshes():
    return make_mesh((2, 4), ("x", "y")), make_mesh((4, 2), ("x", "y"))


@pytest.fixture
def no_mesh():
    """What is set for good in a test does not outlive it."""
    yield
    set_mesh(None)


def everywhere():
    """A function for each place that takes a PartitionSpec alone."""
    spec = P("x")
    return {
        "arguments": plait.jit(lambda v: v * 2, in_shardings=spec),
        "arguments in a tree": plait.jit(lambda v: v["a"] * 2, in_shardings=({"a": spec},)),
        "results": plait.jit(lambda v: v * 2, out_shardings=spec),
        "within": plait.jit(lambda v: plait.with_sharding_constraint(v * 2, spec)),
        "eagerly": lambda v: plait.with_sharding_constraint(v, spec) * 2,
        "within another": plait.jit(
            plait.jit(lambda v: plait.lax.with_sharding_constraint(v * 2, spec))
        ),
        "in a loop": plait.jit(
            lambda v: plait.lax.scan(
                lambda c, _: (plait.with_sharding_constraint(c * 2, spec), None), v, None, length=1
            )[0]
        ),
        "put": lambda v: plait.device_put(v, spec) * 2,
        "by hand": plait.shard_map(lambda w: w * 2, in_specs=spec, out_specs=spec),
        "by hand, compiled": plait.jit(
            plait.shard_map(lambda w: w * 2, in_specs=spec, out_specs=spec)
        ),
        "static": plait.jit(
            lambda k, v: plait.with_sharding_constraint(v * k, spec), static_argnums=0
        ),
    }


def call(name, f):
    x = pnp.asarray(X)
    return f(2, x) if name == "static" else f({"a": x}) if "tree" in name else f(x)


@pytest.mark.feature("S25")
@pytest.mark.parametrize("enter", [lambda m: m, set_mesh, use_mesh], ids=["with", "set", "use"])
def test_specs_alone_speak_of_the_mesh_in_context(meshes, enter):
    """One function, in one context and the other, and again: what is found is never another's."""
    for name, f in everywhere().items():
        for _ in range(3):
            for mesh in meshes:
                with enter(mesh) as entered:
                    assert entered is mesh is get_mesh()
                    out = call(name, f)
                    assert get_abstract_mesh() == mesh.abstract_mesh
                np.testing.assert_array_equal(out, X * 2, err_msg=name)
                assert out.sharding == NamedSharding(mesh, P("x")), name
    assert get_abstract_mesh().empty and get_mesh() == AbstractMesh((), ())


@pytest.mark.feature("S25")
def test_without_a_mesh(meshes, told):
    """Before a mesh was in context, and after: nothing of it is left."""
    text = r"was given alone, and no mesh is in context whose axes it could mean"
    for name, f in everywhere().items():
        said = "needs a mesh, and none is in context" if "by hand" in name else text
        for _ in range(2):
            with pytest.raises(RuntimeError, match=said) as e:
                call(name, f)
            assert isinstance(e.value, plait.PlaitError), name
            with meshes[0]:
                call(name, f)
    told(lambda: plait.device_put(X, P("x")), "PartitionSpec('x')", "with mesh", kind=AxisError)


@pytest.mark.feature("S25")
def test_leaves_that_are_no_specs(meshes, told):
    spec = P("x")
    for how in ("in_shardings", "out_shardings"):
        text = f"{how} places arrays, and 'x' is not a placement"
        told(lambda: plait.jit(lambda x: x, **{how: "x"})(X), text, kind=TypeError)
    with meshes[0]:
        for bad in ("x", 3, [spec, "x"], {"a": spec}):
            for f in (
                lambda: plait.jit(lambda x: x, in_shardings=bad)(X),
                lambda: plait.jit(lambda x: x, out_shardings=bad)(X),
                lambda: plait.with_sharding_constraint(X, bad),
                lambda: plait.device_put(X, bad),
                lambda: plait.shard_map(lambda x: x, in_specs=bad, out_specs=spec)(X),
                lambda: plait.shard_map(lambda x: x, in_specs=spec, out_specs=bad)(X),
            ):
                told(f, kind=TypeError)


def test_a_context_is_asked_only_by_who_needs_it(meshes):
    """Functions that do not ask are traced and compiled once, whatever is around."""
    plain = plait.jit(lambda v: v * 3 + 1)
    nested = plait.jit(lambda v: plain(v) - 1)
    asks = plait.jit(lambda v: v * get_abstract_mesh().size)
    outer = plait.jit(lambda v: asks(v) + 1)  # asks, by a function whose trace is found again
    with plait.events.counting() as counted:
        for _ in range(3):
            for mesh in (None, *meshes):
                with mesh or plait.config():
                    np.testing.assert_allclose(plain(X), X * 3 + 1, rtol=1e-6)
                    np.testing.assert_allclose(nested(X), X * 3, rtol=1e-5)
    assert counted["trace"] == 2, counted
    sizes = {None: 0, **dict.fromkeys(meshes, 8), make_mesh((2,), ("x",)): 2}
    for _ in range(3):
        for mesh, size in sizes.items():
            with mesh or plait.config():
                np.testing.assert_array_equal(outer(X), X * size + 1)
                np.testing.assert_array_equal(asks(X), X * size)
                np.testing.assert_array_equal(asks(pnp.asarray(X)), X * size)
                np.testing.assert_array_equal(outer(pnp.asarray(X)), X * size + 1)
    with plait.events.counting() as counted:
        for mesh in sizes:
            with mesh or plait.config():
                outer(X), asks(X)
    assert not counted["trace"] and not counted["compile"], counted


def test_calls_without_a_context_cost_what_they_did(meshes):
    """Calls of Python and C per call of a jitted function: none is for contexts, before a mesh was
    in one and after; and a function that asks pays two calls for finding what is around."""

    def calls(f, x):
        made = 0

        def count(frame, event, arg):
            nonlocal made
            made += event in ("call", "c_call")

        f(x), f(x)
        sys.setprofile(count)
        try:
            f(x)
        finally:
            sys.setprofile(None)
        return made

    x = pnp.asarray(X)
    f = plait.jit(lambda v: v * 2)
    before = calls(f, x)
    with meshes[0]:
        assert calls(f, x) == before
        g = plait.jit(lambda v: plait.with_sharding_constraint(v, P("x")))
        full = NamedSharding(meshes[0], P("x"))
        same = calls(plait.jit(lambda v: plait.with_sharding_constraint(v, full)), x)
        # one for finding what is around, one for the table, one for the call form's function
        assert calls(g, x) <= same + 6
    assert calls(f, x) == before


def test_the_reason_for_another_trace_is_told(meshes, caplog):
    f = plait.jit(lambda v: plait.with_sharding_constraint(v, P("x")))
    with plait.config(explain_cache_misses=True), caplog.at_level("WARNING", "plait"):
        for mesh in (meshes[0], make_mesh((8,), ("x",))):
            with mesh:
                f(X)
    assert "mesh Mesh('x': 8), and mesh Mesh('x': 2, 'y': 4) before" in caplog.text


# ---- blocks ----------------------------------------------------------------------------------


def test_a_lowered_function_knows_the_mesh_that_was_in_context():
    m = make_mesh((8,), ("x",))
    f = plait.jit(lambda v: v, in_shardings=P("x"))
    with m:
        compiled = f.lower(plait.ShapeDtypeStruct((8,), np.float32)).compile()
    assert compiled.input_shardings[0] == (NamedSharding(m, P("x")),)


@pytest.mark.parametrize("kind", [lambda m: m, set_mesh, use_mesh])
def test_blocks_may_end_in_any_order(kind):
    """What is in context is the mesh of a block that is still open."""
    m, n = make_mesh((8,), ("x",)), make_mesh((2,), ("y",))
    for first, second, left in (("m", "n", n), ("n", "m", m)):
        blocks = {}
        for name, mesh in (("m", m), ("n", n)):
            blocks[name] = kind(mesh)
            blocks[name].__enter__()
        assert get_mesh() == n
        blocks[first].__exit__(None, None, None)
        assert get_mesh() == left
        blocks[second].__exit__(None, None, None)
        assert get_mesh().empty


def test_meshes_are_set_in_each_other_and_for_good(no_mesh):
    m, n = make_mesh((8,), ("x",)), make_mesh((2,), ("y",))
    with m:
        with n:
            assert get_mesh() == n
            with pytest.raises(AxisError, match="'x'"):
                plait.device_put(np.ones(8), P("x"))
            with m, m:
                assert get_mesh() == m
            assert get_mesh() == n
        assert get_mesh() == m
        for kind in (lambda k: k, set_mesh, use_mesh):
            with pytest.raises(ZeroDivisionError), kind(n):
                1 / 0  # noqa: B018
            assert get_mesh() == m
    set_mesh(m)
    assert get_mesh() is m
    with set_mesh(n):
        assert get_mesh() is n
        set_mesh(m)  # until the block ends
        assert get_mesh() is m
    assert get_mesh() is m
    plait.jit(lambda: None if get_mesh() is m else 1 / 0)()
    set_mesh(None)
    assert get_mesh().empty


def test_a_setting_is_below_all_contexts():
    """The setting is the whole process's; what is in context hides it."""
    m, n = make_mesh((8,), ("x",)), make_mesh((2,), ("x",))
    f = plait.jit(lambda v: v, in_shardings=P("x"))
    for _ in range(2):
        with plait.config(mesh=m):
            assert get_mesh() == m and f(X).sharding.mesh == m
            with n:
                assert get_mesh() == n and f(X).sharding.mesh == n
            assert f(X).sharding.mesh == m
    with pytest.raises(plait.PlaitError, match="a mesh or None"):
        plait.config.mesh = "x"


def test_a_block_without_a_mesh_hides_that_of_the_process(no_mesh):
    m = make_mesh((8,), ("x",))
    f = plait.jit(lambda v: plait.lax.with_sharding_constraint(v, P("x")))
    with plait.config(mesh=m):
        assert f(X).sharding.mesh == m
        with set_mesh(None):
            assert get_mesh() == AbstractMesh((), ())
            with pytest.raises(plait.sharding.MissingMesh, match="no mesh is in context"):
                f(X)
            with m:
                assert get_mesh() == m
        assert get_mesh() == m and f(X).sharding.mesh == m


def test_a_region_over_axes_alone_runs_where_its_arguments_lie(no_mesh):
    axes = AbstractMesh((4, 2), ("x", "y"))
    local = lambda v: plait.lax.psum(v, "y") * plait.lax.axis_index("x")  # noqa: E731
    f = plait.shard_map(local, mesh=axes, in_specs=P(("x", "y")), out_specs=P("x"))
    over = lambda f, ins, outs, name: plait.shard_map(  # noqa: E731
        f, mesh=axes, in_specs=ins, out_specs=outs, axis_names={name}
    )
    nested = over(over(local, P("y"), P(), "y"), P("x"), P("x"), "x")
    x = np.arange(16, dtype=np.float32)
    want = x.reshape(4, 2, 2).sum(1) * np.arange(4)[:, None]
    for order in (np.arange(8), np.arange(8)[::-1], np.array([3, 1, 4, 0, 5, 2, 6, 7])):
        mesh = plait.sharding.Mesh(order, ("all",))
        given = plait.device_put(x, plait.NamedSharding(mesh, P("all")))
        for g in (f, plait.jit(f), nested):
            y = g(given)
            np.testing.assert_array_equal(y, want.reshape(-1))
            assert y.sharding.place.devices == tuple(order)
    assert f(x).sharding.place.devices == tuple(range(8))
    few = plait.device_put(x, plait.NamedSharding(make_mesh((4,), ("x",)), P("x")))
    with pytest.raises(plait.errors.PlacementError, match="incompatible devices") as e:
        f(few)
    assert e.value.fix
    with plait.sharding.Mesh(np.arange(8)[::-1].reshape(4, 2), ("x", "y")):
        assert f(x).sharding.place.devices == tuple(range(8))[::-1]


def test_axes_alone_are_those_of_the_mesh_that_is_there_or_of_the_first_devices(no_mesh):
    axes = AbstractMesh((2, 4), ("x", "y"))
    f = plait.jit(lambda v: plait.lax.with_sharding_constraint(v * 2, P(("y", "x"))))
    back = plait.sharding.Mesh(np.arange(8)[::-1].reshape(2, 4), ("x", "y"))
    for mesh in (make_mesh((2, 4), ("x", "y")), back):
        set_mesh(mesh if mesh is back else None)
        with use_abstract_mesh(axes):
            assert get_abstract_mesh() == axes and get_mesh() == mesh
            got = f(X)
        np.testing.assert_array_equal(got, X * 2)
        assert got.sharding == NamedSharding(mesh, P(("y", "x")))
        assert get_abstract_mesh() == (axes if mesh is back else AbstractMesh((), ()))
    with use_abstract_mesh(AbstractMesh((512,), ("x",))):  # which there are not
        lowered = plait.jit(lambda v: v, in_shardings=P("x")).lower(
            plait.ShapeDtypeStruct((1024,), np.float32)
        )
        assert '"x"=512' in lowered.as_text()


def test_sums_that_are_not_done_are_refused(told):
    for how in ("unreduced", "reduced"):
        told(lambda how=how: P("x", **{how: {"y"}}), f"{how} along {{'y'}}", "psum")
    assert P("x", unreduced=frozenset(), reduced=set()) == P("x")
    assert P("x").unreduced == P("x").reduced == frozenset()
    assert P("x", None).partitions == ("x", None) and P("x").update(("y", None)) == P("y", None)
    assert P("x", "y").update(reduced=set()) == P("x", "y")
    told(lambda: P("x").update(reduced={"y"}), "reduced along {'y'}", "psum")


def test_what_is_no_mesh(told):
    told(lambda: use_abstract_mesh(make_mesh((8,), ("x",))), "AbstractMesh", "abstract_mesh")
    for enter in (set_mesh, use_mesh):
        told(lambda: enter("x"), "needs a mesh, not 'x'", "make_mesh", kind=TypeError)
        told(lambda: enter(AbstractMesh((2,), ("x",))), "needs a mesh", kind=TypeError)
    assert get_mesh().empty


# ---- threads and tasks -----------------------------------------------------------------------


def test_a_constraint_by_none_is_refused(lies):
    x = plait.numpy.ones(8)
    for constrain in (plait.with_sharding_constraint, plait.jit(plait.with_sharding_constraint)):
        with pytest.raises(ValueError, match="not a sharding"):
            constrain(x, None)


def test_threads_have_contexts_of_their_own(meshes):
    """Four threads call the same functions in turns, in two meshes, a setting and none."""
    fs = everywhere()
    start, wrong = threading.Barrier(4), []

    def work(k):
        try:
            for _ in range(3):
                for name, f in fs.items():
                    start.wait(60)
                    if k >= 2:
                        assert get_mesh().empty
                        with pytest.raises(RuntimeError):
                            call(name, f)
                        continue
                    with meshes[k]:
                        start_sharding = NamedSharding(meshes[k], P("x"))
                        out = call(name, f)
                        assert out.sharding == start_sharding, name
                        np.testing.assert_array_equal(out, X * 2)
        except BaseException as e:
            wrong.append(e)
            start.abort()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong


def test_tasks_have_contexts_of_their_own(meshes):
    f = plait.jit(lambda v: v * 2, out_shardings=P("x"))

    async def task(mesh, turns):
        for _ in range(turns):
            with mesh:
                await asyncio.sleep(0)
                assert get_mesh() is mesh
                assert f(X).sharding.mesh == mesh
                await asyncio.sleep(0)
            assert get_mesh().empty

    async def main():
        await asyncio.gather(*[task(meshes[k % 2], 4) for k in range(6)])

    asyncio.run(main())


def test_a_generator_that_is_left_alone_leaves_its_mesh_to_who_made_it():
    m, n = make_mesh((8,), ("x",)), make_mesh((2,), ("y",))

    def rows():
        with m:
            yield 1
            yield 2

    g = rows()
    next(g)
    assert get_mesh() is m
    with n:
        g.close()
        assert get_mesh() is n
    assert get_mesh().empty


# ---- shardings -------------------------------------------------------------------------------


def test_what_is_asked_of_shardings(lies, mesh):
    s = lies("x")
    assert s.with_spec(P(None, "y")) == lies(None, "y") == s.with_spec((None, "y"))
    assert s.addressable_devices == set(plait.devices()) and s.num_devices == 8
    assert s.memory_kind == plait.devices()[0].default_memory().kind
    with pytest.raises(AxisError, match="'q'"):
        s.with_spec(P("q"))


def test_a_sharding_over_an_abstract_mesh_is_over_the_one_in_context(meshes):
    sizes = AbstractMesh((8,), ("x",))
    mesh = plait.make_mesh((8,), ("x",), devices=plait.devices()[::-1])
    assert NamedSharding(sizes, P("x")).mesh == plait.make_mesh((8,), ("x",))
    with use_mesh(mesh):
        sharding = NamedSharding(sizes, P("x"))
        assert sharding.mesh == mesh
        x = plait.jit(lambda v: plait.with_sharding_constraint(v, NamedSharding(sizes, P("x"))))(
            np.arange(8.0)
        )
        assert x.sharding == sharding
    assert {s.device.id: s.data.item() for s in x.addressable_shards} == {
        i: 7.0 - i for i in range(8)
    }
    with pytest.raises(PlaitError, match="takes a mesh"):
        NamedSharding(AbstractMesh((), ()), P())


def test_axes_inside_shard_map():
    """Those of its mesh, whichever is in context, and what it divides by hand is Manual."""
    mesh, seen = make_mesh((2, 4), ("x", "y")), []

    def note(x):
        seen.append(get_abstract_mesh())
        return x

    jitted = plait.jit(note)
    x = np.ones((8, 8), np.float32)
    how = dict(mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    whole = plait.shard_map(note, **how)
    some = plait.shard_map(note, **how, axis_names={"x"})
    inner = dict(in_specs=P("y"), out_specs=P("y"), axis_names={"y"})

    def nested(x):
        note(x)
        within = plait.shard_map(note, mesh=get_abstract_mesh(), **inner)(x)
        return note(within)

    for _ in range(2):  # the second time what was kept of the first must not answer
        whole(x)
        assert get_abstract_mesh().empty
    with make_mesh((8,), ("other",)):
        plait.jit(some)(x)
        assert get_abstract_mesh().axis_names == ("other",)
    assert seen[0].manual_axes == ("x", "y") and seen[-1].manual_axes == ("x",)
    assert seen[-1].auto_axes == ("y",) and seen[-1].shape_tuple == (("x", 2), ("y", 4))
    seen.clear()
    plait.jit(plait.shard_map(nested, **how, axis_names={"x"}))(x)
    assert [m.manual_axes for m in seen] == [("x",), ("x", "y"), ("x",)]
    seen.clear()
    jitted(x)
    plait.shard_map(jitted, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)(x)
    jitted(x)
    assert [m.manual_axes for m in seen] == [(), ("x", "y")]
    with pytest.raises(ZeroDivisionError):
        plait.shard_map(lambda x: 1 / 0, **how)(x)
    assert get_abstract_mesh().empty


# ---- inside of shard_map -----------------------------------------------------------------------

ALONE_INSIDE = {
    "shard_map": (
        lambda v: plait.shard_map(
            lambda w: w * (plait.lax.axis_index("y") + 1), in_specs=P("y"), out_specs=P("y")
        )(v),
        X * np.tile([1, 1, 2, 2, 3, 3, 4, 4], 2),
    ),
    "constraint": (lambda v: plait.with_sharding_constraint(v * 2, P("y")), X * 2),
    "jit": (lambda v: plait.jit(lambda w: w * 2, out_shardings=P("y"))(v), X * 2),
}
"""Functions of a piece that name axes and pass no mesh, with their results on all pieces."""


@pytest.mark.parametrize("around", ["nothing", "another mesh"])
@pytest.mark.parametrize("how", ALONE_INSIDE)
def test_names_inside_a_shard_map_mean_its_mesh(meshes, how, around):
    """They mean the axes that it leaves, whatever mesh is in context around it."""
    mesh, another = meshes
    f, want = ALONE_INSIDE[how]
    outer = plait.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    with contextlib.nullcontext() if around == "nothing" else another:
        np.testing.assert_array_equal(plait.jit(outer)(X), want)


ANOTHER_INSIDE = {
    "constraint": lambda s: lambda v: plait.with_sharding_constraint(v * 2, s),
    "arguments": lambda s: plait.jit(lambda v: v * 2, in_shardings=s),
    "results": lambda s: plait.jit(lambda v: v * 2, out_shardings=s),
    "put": lambda s: lambda v: plait.device_put(v * 2, s),
}
"""Functions of a piece that ask for a sharding."""


@pytest.mark.parametrize("devices", ["another shape", "another order", "the same"])
@pytest.mark.parametrize("how", ANOTHER_INSIDE)
def test_shardings_of_other_meshes_are_refused_inside(meshes, how, devices):
    """XLA cannot divide pieces over axes of another mesh, and would end the process."""
    mesh, another = meshes
    other = {
        "another shape": another,
        "another order": plait.Mesh(np.asarray(mesh.devices)[:, ::-1], mesh.axis_names),
        "the same": mesh,
    }[devices]
    f = ANOTHER_INSIDE[how](NamedSharding(other, P("y")))
    outer = plait.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    if devices == "the same":
        np.testing.assert_array_equal(plait.jit(outer)(X), X * 2)
        return
    with pytest.raises(ValueError, match="inside shard_map") as e:
        plait.jit(outer)(X)
    assert e.value.fix and __file__.rpartition("/")[0] in e.value.where
