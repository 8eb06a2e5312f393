"""shard_map is a loop over pieces: compared with numpy on the pieces."""

import io

import ml_dtypes
import numpy as np
import pytest

import plait
from plait import io_callback, pure_callback
from plait.events import counting
from plait.ext.errors import AxisError, PlaitError, TreeMismatch, TypeRule
from plait.ext.ops.elementwise import sin
from plait.lax import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    cond,
    fori_loop,
    pmax,
    pmean,
    pmin,
    ppermute,
    psum,
    psum_scatter,
    scan,
    while_loop,
)
from plait_sharding import (
    AbstractMesh,
    Mesh,
    MissingMesh,
    NamedSharding,
    P,
    device_put,
    make_mesh,
    shard_map,
    with_sharding_constraint,
)

A = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
COLUMNS = A.reshape(8, 4, 4)  # the pieces along "y" are COLUMNS[:, i]
RING = [(i, (i + 1) % 4) for i in range(4)]


def on(mesh, ins=P("x", "y"), outs=P("x", "y"), **options):
    """Decorator: shard_map over a mesh."""
    return shard_map(mesh=mesh, in_specs=ins, out_specs=outs, **options)


def lines(file):
    return sorted(file.getvalue().splitlines())


# ---- collectives ---------------------------------------------------------------------------

ROWS = np.concatenate([COLUMNS[:4].sum(1), COLUMNS[4:].sum(1)])
COLLECTIVES = {
    "psum": (lambda v: psum(v, "y"), P("x"), ROWS),
    "psum of both": (lambda v: psum(v, ("x", "y")), P(), ROWS[:4] + ROWS[4:]),
    "psum of both, turned": (lambda v: psum(v, ("y", "x")), P(), ROWS[:4] + ROWS[4:]),
    "pmax": (lambda v: pmax(v, "y"), P("x"), COLUMNS.max(1)),
    "pmin": (lambda v: pmin(v, "x"), P(None, "y"), A.reshape(2, 4, 16).min(0)),
    "pmean": (lambda v: pmean(v, "y"), P("x"), COLUMNS.mean(1)),
    "all_gather": (lambda v: all_gather(v, "y", axis=1, tiled=True), P("x"), A),
    "all_gather, stacked": (lambda v: all_gather(v, "x"), P(None, None, "y"), A.reshape(2, 4, 16)),
    "ppermute": (
        lambda v: ppermute(v, "y", RING),
        P("x", "y"),
        np.roll(COLUMNS, 1, 1).reshape(8, 16),
    ),
    "ppermute, to one": (
        lambda v: ppermute(v, "y", [(0, 2)]),
        P("x", "y"),
        np.stack([A[:, :4] * 0, A[:, :4] * 0, A[:, :4], A[:, :4] * 0], 1).reshape(8, 16),
    ),
    "ppermute, to nobody": (lambda v: ppermute(v, "y", []), P("x", "y"), A * 0),
    "psum_scatter": (lambda v: psum_scatter(v, "y", tiled=True), P(("x", "y")), ROWS),
    "psum_scatter, one each": (
        lambda v: psum_scatter(v, "y")[None],
        P(("x", "y")),
        ROWS,
    ),
    "all_to_all, tiled": (lambda v: all_to_all(v, "y", 0, 1, tiled=True), P(("x", "y")), A),
    "all_to_all": (
        lambda v: all_to_all(v, "y", 0, 0),
        P("x", "y"),
        COLUMNS.reshape(2, 4, 4, 4).transpose(0, 2, 1, 3).reshape(8, 16),
    ),
    "axis_index": (
        lambda v: v * 0 + axis_index("x") * 10 + axis_index("y"),
        P("x", "y"),
        np.add.outer(np.arange(8) // 4 * 10, np.arange(16) // 4),
    ),
    "axis_size": (lambda v: v * axis_size("y") + axis_size("x"), P("x", "y"), A * 4 + 2),
    "a number": (lambda v: v * 0 + psum(1, "y") + psum(1.0, ("x", "y")), P("x", "y"), A * 0 + 12),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(mesh, lies, close, name):
    f, outs, want = COLLECTIVES[name]
    m = on(mesh, P("x", "y"), outs)(f)
    out = m(A)
    close(out, want)
    assert out.sharding == NamedSharding(mesh, outs)
    close(plait.jit(m)(device_put(A, lies("y"))), want)


PAIRS = {
    "ring": [(i, (i + 1) % 8) for i in range(8)],
    "back": [(i, 7 - i) for i in range(8)],
    "across": [(i, (3 * i + 2) % 8) for i in range(8)],
    "some": [(0, 5), (5, 0), (3, 3), (6, 1)],
    "one": [(7, 0)],
    "nobody": [],
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nan_is_the_greatest_of_all_devices(mesh, lies, dtype):
    """In the pieces and between them; the compiler and its library lose it."""
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)

    @plait.jit
    @on(mesh, outs=(P("x"), P("x"), P()))
    def f(v):
        ends = lambda v: (v.max(), v.min())  # noqa: E731
        return pmax(v, "y"), pmin(v, "y"), [g(e, ("x", "y")) for g, e in zip((pmax, pmin), ends(v))]

    for n in (16, 20_000):
        x = np.zeros((4, n), dtype)
        x[0, 2], x[3, -1] = np.nan, np.inf
        x[1, 1] = -0.0
        pieces = np.asarray(x, np.float64).reshape(4, 4, n // 4)
        high, low, *ends = [np.asarray(v, np.float64) for v in plait.tree.leaves(f(x))]
        np.testing.assert_array_equal(high, pieces.max(1))
        np.testing.assert_array_equal(low, pieces.min(1))
        assert np.signbit(low[low == 0]).sum() == 1
        assert np.isnan(ends).all()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "ends", [("x", None), (None, "x"), ("x", "y"), (("x", "y"), None)], ids=str
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_nan_is_the_greatest_of_a_divided_array(lies, dtype, ends):
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    axes = (None, 0, 1)
    f = plait.jit(lambda v: [(v.max(a), v.min(a)) for a in axes])
    for n in (16, 8192):
        for place in ((0, 0), (5, n // 3), (7, n - 1)):
            x = np.ones((8, n), dtype)
            x[place], x[2, 3] = np.nan, -np.inf
            for a, found in zip(axes, f(plait.device_put(x, lies(*ends))), strict=True):
                wide = np.asarray(x, np.float64)
                for got, want in zip(found, (wide.max(a), wide.min(a)), strict=True):
                    np.testing.assert_array_equal(np.asarray(got, np.float64), want)


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("names", [("x", "y"), ("y", "x")])
def test_ppermute_over_two_axes(mesh, close, pairs, names):
    """Positions are counted as everywhere: the first name varies slowest."""
    perm = PAIRS[pairs]
    rows = np.arange(24, dtype=np.float32).reshape(8, 3) - 11.5
    want = np.zeros_like(rows)
    for source, target in perm:
        want[target] = rows[source]
    f = shard_map(
        lambda v: ppermute(v, names, perm), mesh=mesh, in_specs=P(names), out_specs=P(names)
    )
    close(f(rows), want)
    close(plait.jit(f)(rows), want)
    refused = [(0, 8)], [(0, 1), (0, 2)], [(0, 1), (2, 1)]
    for wrong in refused:
        with pytest.raises(ValueError, match="ppermute"):
            shard_map(
                lambda v, w=wrong: ppermute(v, names, w), mesh=mesh, in_specs=P(names),
                out_specs=P(names),
            )(rows)  # fmt: skip


@pytest.mark.parametrize("name", ["all_to_all", "all_gather", "ppermute", "axis_index", "pmax"])
def test_collectives_on_other_devices(close, name):
    """The order of the mesh counts, not the numbers of the devices."""
    f, outs, want = COLLECTIVES[name]
    mesh = Mesh(np.array([3, 6, 0, 1, 7, 5, 4, 2]).reshape(2, 4), ("x", "y"))
    close(on(mesh, P("x", "y"), outs)(f)(A), want)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float16", "float64", "complex64", "int64"])
def test_sums_of_dtypes(mesh, dtype):
    x = (A * 3).astype(dtype) if dtype != "uint8" else abs(A * 3).astype(dtype)
    out = on(mesh, outs=P("x"))(lambda v: psum(v, "y"))(x)
    assert out.dtype == dtype
    np.testing.assert_allclose(out, x.reshape(8, 4, 4).sum(1, dtype=dtype), rtol=1e-2)


def test_one_device(close):
    mesh = make_mesh((1, 1), ("x", "y"))
    for f, outs, want in (
        (lambda v: psum(v, "y") + axis_index("x"), P("x"), A),
        (lambda v: all_gather(v, "x", tiled=True), P(None, "y"), A),
        (lambda v: psum_scatter(v, "y", tiled=True), P("x", "y"), A),
        (lambda v: ppermute(v, "x", [(0, 0)]), P("x", "y"), A),
    ):
        m = on(mesh, P("x", "y"), outs)(f)
        close(m(A), want)
        close(plait.jit(m)(device_put(A, NamedSharding(mesh, P("x")))), want)


# ---- what is around and inside -------------------------------------------------------------


def test_trees_prefixes_and_copies(mesh, close):
    @on(mesh, (P("x"), {"w": P(None, "y"), "b": P()}), {"out": P("x", "y"), "n": P()})
    def f(a, p):
        assert a.shape == (4, 16) and p["w"].shape == (16, 2) and p["b"].shape == ()
        return {"out": a @ p["w"] + p["b"], "n": psum(a.sum(), "x")}

    w = A.T.copy()
    out = f(A, {"w": w, "b": 2.5})
    close(out["out"], A @ w + 2.5)
    close(out["n"], A.sum())
    first = on(mesh, [P("x"), P()], (P("x"),))(lambda a, b: [a + b[0, 0]])
    close(first(A, A)[0], A + A[0, 0])
    nothing = on(mesh, (), P())(lambda: psum(axis_index("x"), "x"))
    close(nothing(), 1)
    close(plait.jit(nothing)(), 1)


def test_what_it_closes_over_is_whole(mesh, lies, close):
    k, c = device_put(A, lies("x", "y")), device_put(np.float32(3))
    f = on(mesh)(lambda v: v + psum(k[:1, :4] * c, "y"))
    want = A + np.tile(12 * A[:1, :4], (8, 4))
    close(f(A), want)
    close(plait.jit(f)(A), want)
    g = on(mesh)(lambda v: scan(lambda s, _: (s + k[:1, :4], None), v, None, length=3)[0])
    close(g(A), A + 3 * np.tile(A[:1, :4], (8, 4)))
    close(plait.jit(lambda a, t: on(mesh)(lambda v: v * t[0, 0])(a))(A, A), A * A[0, 0])


def test_control_flow_inside_and_around(mesh, close):
    @on(mesh, P("x"), P("x"))
    def steps(v):
        v, _ = scan(lambda c, _: (c + psum(c.sum(0), "x"), None), v, None, length=2)
        return cond(psum(v.sum(), "x") > 0, lambda u: u * 2, lambda u: u - 1, v)

    def loop(x):
        for _ in range(2):
            x = x + x.sum(0)
        return x * 2 if x.sum() > 0 else x - 1

    close(steps(A), loop(A))
    close(steps(-A), loop(-A))
    around = plait.jit(lambda a: scan(lambda c, _: (steps(c) * 0.1, None), a, None, length=3)[0])
    want = A
    for _ in range(3):
        want = loop(want) * 0.1
    close(around(A), want)
    chosen = plait.jit(lambda a: cond(a.sum() > 0, steps, lambda a: a, a))
    close(chosen(A), loop(A) if A.sum() > 0 else A)
    close(plait.jit(lambda a: fori_loop(0, 3, lambda _, c: steps(c) * 0.1, a))(A), want)


def test_a_loop_of_each_devices_own_length(close):
    mesh = make_mesh((8,), "i")
    f = on(mesh, P("i"), P("i"))(
        lambda v: while_loop(lambda c: c[0] < v[0], lambda c: c + 2, v * 0)
    )
    close(f(np.arange(8)), (np.arange(8) + 1) // 2 * 2)


def test_one_function_under_meshes_of_several_sizes(mesh, close):
    mean = plait.jit(lambda v: v / axis_size("x"))
    close(on(mesh, P("x"), P("x"))(mean)(A), A / 2)
    close(on(make_mesh((4,), "x"), P("x"), P("x"))(mean)(A), A / 4)
    with pytest.raises(AxisError):
        mean(A)


@pytest.mark.parametrize("sizes", [(2, 2, 2), (1, 8, 1), (4, 1, 2), (1, 1, 1)])
def test_the_place_along_each_axis(sizes):
    """Also where axes around it have one place only, or are left to the compiler."""
    over = make_mesh(sizes, ("x", "y", "z"))
    for axis, want in zip("xyz", np.indices(sizes)):
        place = lambda v: v + axis_index(axis)  # noqa: B023, E731
        found = on(over, P(*"xyz"), P(*"xyz"))(place)(np.zeros(sizes, np.int32))
        np.testing.assert_array_equal(found, want)
        alone = on(over, P(), P(axis), axis_names={axis})(lambda v: place(v)[None])
        found = plait.jit(alone)(np.int32(0))
        np.testing.assert_array_equal(found, np.arange(len(found)))


def test_a_mesh_without_devices(close):
    """It is the one in context with these axes, or the first devices, be they there or not."""
    sizes = AbstractMesh((2, 4), ("x", "y"))
    turned = Mesh(np.arange(8)[::-1].reshape(2, 4), ("x", "y"))
    total = shard_map(lambda v: psum(v, "x"), mesh=sizes, in_specs=P("x"), out_specs=P())
    close(total(A), A.reshape(2, 4, 16).sum(0))
    assert plait.jit(total)(A).sharding.mesh.ids == tuple(range(8))
    with turned:
        assert plait.jit(total)(A).sharding.mesh == turned
    with make_mesh((8,), "x"):
        assert total(A).sharding.mesh.shape["y"] == 4
    far = shard_map(lambda v: psum(v, "x"), mesh=AbstractMesh((4096,), "x"), in_specs=P("x"),
                    out_specs=P())  # fmt: skip
    lowered = plait.jit(far).lower(plait.ShapeDtypeStruct((4096,), "float32"))
    assert '"x"=4096' in lowered.as_text()
    with pytest.raises(PlaitError, match="there is no device number 4095"):
        lowered.compile()
    with pytest.raises(MissingMesh, match="none is in context"):
        shard_map(lambda v: v, mesh=plait.sharding.get_abstract_mesh(), in_specs=P(), out_specs=P())


def test_two_meshes_in_one_program(mesh, close):
    g = plait.jit(lambda v: psum(v, "x"))
    flat = make_mesh((8,), "x")

    def f(a):
        b = on(mesh, P(("x", "y")), P("y"))(g)(a)
        c = on(flat, P("x"), P())(g)(a)
        return b, c, on(flat, P("x"), P("x"))(lambda v: v * axis_index("x"))(a)

    b, c, d = plait.jit(f)(A)
    close(b, A.reshape(2, 4, 16).sum(0))
    close(c, A.sum(0, keepdims=True))
    close(d, A * np.arange(8)[:, None])
    assert b.sharding == NamedSharding(mesh, P("y")) and d.sharding == NamedSharding(flat, P("x"))


def test_it_is_traced_once(mesh):
    f = on(mesh)(lambda v: v * 2)
    with counting() as n:
        for _ in range(3):
            f(A)
    assert n["trace"] == 1 and n["lower"] == 1
    with counting() as n:
        f(A.astype(np.int32))
        f(A[:4])
    assert n["trace"] == 2


def test_many_runs_at_once(mesh, lies, close):
    """Nobody waits for the results of any; virtual devices share few threads."""
    f = plait.jit(on(mesh, outs=P("x"))(lambda v: psum(v, "y")))
    g = plait.jit(lambda a: a.sum())
    a = device_put(A, lies("x", "y"))
    outs = [(f(a), g(a)) for _ in range(100)]
    for rows, total in outs:
        close(rows, ROWS)
        close(total, A.sum())


def test_programs(mesh):
    f = on(mesh, (P("x", "y"), P("x")), (P("x"), P()))(
        lambda a, b: (psum(a, "y"), psum(b.sum(), "x"))
    )
    p = plait.make_program(lambda a, b: f(a, b)[0])(A, A)
    (e,) = p.eqns
    assert e.prim.name == "sharding.shard_map" and p.axes == frozenset()
    assert "core.psum(%0; axes=('y',))" in str(p)


def test_symbolic_sizes(mesh, told):
    (b,) = plait.symbolic_dims("b")
    like = lambda n: plait.ShapeDtypeStruct((n, 16), np.float32)  # noqa: E731
    whole = on(mesh, P(None, "y"), P())(lambda v: psum(v, "y"))
    assert plait.make_program(whole)(like(b)).out_avals[0].shape == (b, 4)
    text = plait.jit(whole).lower(like(b)).as_text()
    assert "tensor<?x4xf32>" in text
    rows = on(mesh, P("y"), P())(lambda v: psum(v, "y"))
    assert plait.make_program(rows)(like(4 * b)).out_avals[0].shape == (b, 16)
    told(lambda: plait.make_program(rows)(like(b)), "f32[b,16]", "4 equal pieces")


# ---- some axes by hand ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["psum", "all_gather", "ppermute", "psum_scatter", "all_to_all, tiled", "pmax"]
)
def test_other_axes_are_the_compilers(mesh, lies, close, name):
    f, _, _ = COLLECTIVES[name]
    whole = {"psum": P(), "pmax": P(), "all_gather": P(), "ppermute": P(None, "y")}
    outs = whole.get(name, P("y"))
    want = on(make_mesh((4,), "y"), P(None, "y"), outs)(f)(A)
    half = plait.jit(on(mesh, P(None, "y"), outs, axis_names={"y"})(f))
    close(half(device_put(A, lies("x"))), want)
    close(half(A), want)


def test_places_where_other_axes_are_the_compilers(mesh, lies, close):
    f = on(mesh, P(None, "y"), P(None, "y"), axis_names={"y"})(lambda v: v * axis_index("y"))
    close(plait.jit(f)(device_put(A, lies("x"))), A * (np.arange(16) // 4))


def test_nested(mesh, lies, close, told):
    inner = on(mesh, P("x"), P(), axis_names={"x"})(lambda v: psum(v, ("x", "y")))
    outer = on(mesh, P(None, "y"), P(), axis_names={"y"})(inner)
    close(plait.jit(outer)(A), A.reshape(2, 4, 4, 4).sum((0, 2)))
    held = on(mesh, P(None, "y"), P(), axis_names={"y"})(
        lambda v: with_sharding_constraint(psum(v, "y"), lies("x"))
    )
    out = plait.jit(held)(A)
    close(out, COLUMNS.sum(1))
    assert out.sharding == lies("x")
    both = on(mesh, P("x"), P("x"))(lambda v: v)
    told(lambda: on(mesh)(both)(A), "inside a shard_map", "axis_names")
    called = plait.jit(both)
    called(A)  # staged outside, met inside
    told(lambda: on(mesh, P(), P())(lambda v: called(v))(A), "inside a shard_map")


# ---- effects -------------------------------------------------------------------------------


def test_each_piece_prints_once(mesh):
    for wrap in (plait.jit, lambda f: f):
        out = io.StringIO()
        f = wrap(on(mesh)(lambda v: (plait.debug.print("{:.4f}", v[0, 0], file=out), v)[1]))
        f(A)
        assert lines(out) == sorted(f"{v:.4f}" for v in A[::4, ::4].ravel())


def test_without_results(mesh):
    out = io.StringIO()
    f = on(mesh, P("x", "y"), ())(lambda v: (plait.debug.print("{}", v[0, 0], file=out), ())[1])
    plait.jit(lambda a: (f(a), a * 2)[1])(A)
    assert len(lines(out)) == 8


def test_outside_one_device_acts_for_all(mesh, lies, close):
    out = io.StringIO()
    say = plait.jit(lambda v: (plait.debug.print("{:.3f}", v.sum(), file=out), v)[1])
    plait.jit(lambda a: say(on(mesh, P(), P())(say)(a)))(A)
    assert lines(out) == [f"{A.sum():.3f}"] * 9
    seen = []
    like = plait.ShapeDtypeStruct((8, 16), np.float32)
    twice = plait.jit(lambda a: io_callback(lambda v: (seen.append(v), v * 2)[1], like, a))
    close(twice(device_put(A, lies("x", "y"))), A * 2)
    assert len(seen) == 1
    close(seen[0], A)


def test_order_outside(lies):
    out = io.StringIO()

    def f(a):
        def step(c, _):
            plait.debug.print("{}", c[0, 0], file=out, ordered=True)
            return c + 1, None

        return scan(step, a, None, length=3)[0]

    plait.jit(f)(device_put(A * 0, lies("x", "y")))
    assert out.getvalue().split() == ["0.0", "1.0", "2.0"]


def test_pure_callbacks(mesh, close):
    like = plait.ShapeDtypeStruct((4, 4), np.float32)
    close(on(mesh)(lambda v: pure_callback(lambda u: np.sin(u), like, v))(A), np.sin(A))


def test_order_inside_is_refused(mesh, told):
    f = on(mesh)(lambda v: (plait.debug.print("{}", v, ordered=True), v)[1])
    told(lambda: f(A), "(debug) cannot be ordered over devices", "ordered=True")


# ---- what may differ -----------------------------------------------------------------------


def test_results_that_differ_are_refused(mesh, close, told):
    told(lambda: on(mesh, outs=P("x"))(lambda v: v)(A), "over 'y'", "psum", kind=AxisError)
    two = on(mesh, outs=(P("x"), P()))(lambda v: (psum(v, "y"), v.sum()))
    told(lambda: two(A), "the result[1]", "'x' and 'y'", "check_vma=False")
    free = on(mesh, P(), P(), check_vma=False)(lambda v: v * (axis_index("x") < 9))
    close(free(A), A)
    told(lambda: on(mesh, P(), P())(lambda v: v * axis_index("x"))(A), "over 'x'")


# ---- errors --------------------------------------------------------------------------------


def test_errors(mesh, lies, told):
    def same(v):
        return v

    told(lambda: on(mesh, P("x", "z"))(same)(A), "the axis 'z'", "'x', 'y'", kind=AxisError)
    told(lambda: on(mesh, P("x", "y", None))(same)(A), "3 entries", "`v`", kind=AxisError)
    told(lambda: on(mesh, (P("x"), P()))(same)(A), "in_specs does not fit", kind=TreeMismatch)
    told(lambda: on(mesh, P("x"), (P("x"), P()))(same)(A), "out_specs does", kind=TreeMismatch)
    told(lambda: on(mesh, P(), None)(same)(A), "out_specs does not", kind=TreeMismatch)
    told(lambda: on(mesh, 3)(same)(A), "in_specs is 3", "PartitionSpec or None", kind=TreeMismatch)
    told(lambda: on(mesh, P(P.UNCONSTRAINED))(same)(A), "to the compiler", kind=AxisError)
    told(lambda: on(mesh)(same)(A[:7]), "axis 0 of argument `v`", "f32[7,16]", kind=AxisError)
    told(lambda: on(mesh)(same)({"a": "s"}), "'s' of type str", "`v['a']`", kind=TypeRule)
    told(lambda: on(mesh)(lambda v: psum(v, "q"))(A), "no axis named 'q'", kind=AxisError)
    told(lambda: on(mesh)(lambda v: "s")(A), "the result", "'s'", kind=TypeRule)
    told(lambda: on(mesh, P("x", "y"), axis_names={"y"})(same)(A), "not in axis_names")
    told(lambda: on(mesh, axis_names={"q"})(same), "axis_names has 'q'", kind=AxisError)
    told(lambda: on(None)(same)(A), "needs a mesh", "make_mesh", kind=RuntimeError)
    told(lambda: on("x")(same), "needs a mesh, not 'x'", "make_mesh", kind=TypeRule)
    told(lambda: shard_map(3, mesh, P(), P()), "needs a function", kind=TypeRule)
    told(lambda: psum(A, "x"), "no axis named 'x'", kind=AxisError)
    inside = on(mesh)(lambda v: with_sharding_constraint(v, lies("x")))
    told(lambda: plait.jit(inside)(A), "inside shard_map", "operands or results")
    other = on(make_mesh((2,), "z"), P("z"), P("z"))(same)
    told(lambda: plait.jit(lambda a: other(on(mesh)(same)(a)))(A), "cannot run on", "device_put")


def test_an_escaped_value_is_named(mesh):
    kept = []
    on(mesh)(lambda v: (kept.append(sin(v)), v)[1])(A)
    with pytest.raises(plait.errors.UnexpectedTracerError, match="shard_map"):
        kept[0] + 1


@pytest.mark.parametrize("empty", [np.ones((0, 2), np.float32), np.ones((0,), np.int32),
                                   np.ones((2, 0), bool)],
                         ids=["rows", "integers", "columns"])  # fmt: skip
def test_of_the_operands_only_those_without_elements_are_used(empty):
    """The compiler does not know such a region again (`produced by GlobalToLocalShape`)."""
    f = shard_map(
        lambda x, e: (plait.numpy.zeros(3), ~e if e.dtype == bool else e * 2),
        mesh=plait.make_mesh((2,), ("d",)), in_specs=(P(), P("d")), out_specs=(P(), P("d")),
    )  # fmt: skip
    for g in (f, plait.jit(f)):
        zeros, out = g(np.ones(3, np.float32), empty)
        assert zeros.tolist() == [0, 0, 0]
        assert (out.shape, out.dtype) == (empty.shape, empty.dtype)


def test_what_is_only_said_to_be_equal_is_the_first_devices():
    mesh = plait.make_mesh((4, 2), ("x", "y"))
    for spec, want in ((P(), [0]), (P("x"), [0, 1, 2, 3]), (P("y"), [0, 1])):
        f = lambda: axis_index("x").reshape(1) if spec != P("y") else axis_index("y").reshape(1)  # noqa: B023
        got = plait.shard_map(f, mesh=mesh, in_specs=(), out_specs=spec, check_vma=False)()
        np.testing.assert_array_equal(got, want)
    got = plait.shard_map(
        lambda: plait.lax.axis_index(("x", "y")).reshape(1), mesh=mesh, in_specs=(),
        out_specs=P("x"), check_vma=False,
    )()  # fmt: skip
    np.testing.assert_array_equal(got, [0, 2, 4, 6])
