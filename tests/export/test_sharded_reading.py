"""Artifacts of functions that several devices run, read back: values and derivatives.

The judge is numpy: each function is written again for whole arrays, and its derivatives are
differences of that in double precision.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait import numpy as pnp
from plait.ext.lower import lock, mlir
from plait_export import ArtifactError, NotReadable, deserialize, export
from plait_export.portable import artifact_of
from plait_export.reader import Reading
from plait_sharding import Mesh, NamedSharding, P, make_mesh, shard_map

F32 = np.float32
RNG = np.random.default_rng(5)
X = RNG.uniform(0.3, 1.2, (8, 16)).astype(F32)
W = RNG.uniform(0.3, 1.2, (16, 4)).astype(F32)
SIZES, NAMES = (4, 2), ("x", "y")


def mesh():
    return make_mesh(SIZES, NAMES)


def over(ins, outs, **how):
    return lambda f: shard_map(f, mesh=mesh(), in_specs=ins, out_specs=outs, **how)


# ---- functions: by pieces, and of whole arrays ---------------------------------------------

CASES = {}


def case(ins, outs, whole, **how):
    """A program of one device; `whole` is the same of whole arrays, in numpy."""

    def add(f):
        CASES[f.__name__] = (over(ins, outs, **how)(f), whole)
        return f

    return add


def blocks(x, n=4):
    """The pieces along the first axis, along a new one."""
    return x.reshape(n, -1, *x.shape[1:])


@case((P("x", "y"), P("y")), (P("x"), P()),
      lambda x, w: (np.sin(x) @ w, (np.sin(x) @ w).sum()))  # fmt: skip
def product(x, w):
    y = lax.psum(pnp.sin(x) @ w, "y")
    return y, lax.psum(y.sum(), "x")


@case((P("x"), P()), P(("x", "y")), lambda x, w: np.tile(blocks(x).sum(0) @ w, (8, 1)))
def summed_for_all(x, w):
    return lax.psum(x, "x") @ w


@case((P("x"), P()), P("x"), lambda x, w: np.tile((x**3) @ w, (4, 1)))
def gathered(x, w):
    return (lax.all_gather(x, "x", tiled=True) ** 3) @ w


@case((P(("y", "x")), P()), P(), lambda x, w: (x**3) @ w)
def gathered_in_another_order(x, w):
    return (lax.all_gather(x, ("y", "x"), tiled=True) ** 3) @ w


@case((P(("x", "y")), P()), P(), lambda x, w: (x**3) @ w)
def gathered_along_both(x, w):
    return (lax.all_gather(x, ("x", "y"), tiled=True) ** 3) @ w


@case((P(None, "x"), P("x")), P("x"), lambda x, w: np.sin(x) @ w)
def scattered(x, w):
    return lax.psum_scatter(pnp.sin(x) @ w, "x", scatter_dimension=0, tiled=True)


@case((P("x"), P()), P(None, "x"), lambda x, w: x**2 + w.sum())
def turned(x, w):
    return lax.all_to_all(x, "x", 1, 0, tiled=True) ** 2 + w.sum()


@case((P(("x", "y")), P()), P(None, ("x", "y")), lambda x, w: x**2 + w.sum())
def turned_along_both(x, w):
    return lax.all_to_all(x, ("x", "y"), 1, 0, tiled=True) ** 2 + w.sum()


@case((P("x"), P()), P("x"), lambda x, w: np.roll(blocks(x), 1, 0).reshape(8, 16) * x @ w)
def sent_around(x, w):
    return (lax.ppermute(x, "x", [(i, (i + 1) % 4) for i in range(4)]) * x) @ w


def _some_sent(x, w):
    got = np.zeros_like(blocks(x))
    got[2], got[0] = blocks(x)[0], blocks(x)[3]
    return got.reshape(8, 16) * x @ w


@case((P("x"), P()), P("x"), _some_sent)
def sent_by_some(x, w):
    return (lax.ppermute(x, "x", [(0, 2), (3, 0)]) * x) @ w


@case((P(("x", "y")), P()), P(("x", "y")),
      lambda x, w: np.roll(x, 3, 0) * x @ w)  # fmt: skip
def sent_along_both(x, w):
    return (lax.ppermute(x, ("x", "y"), [(i, (i + 3) % 8) for i in range(8)]) * x) @ w


def _paired(x, w):
    y = blocks(x)
    return np.stack([y[0] + y[2], y[1] + y[3]] * 2).reshape(8, 16) ** 2 @ w


@case((P("x"), P()), P("x"), _paired)
def summed_in_groups(x, w):
    return lax.psum(x, "x", axis_index_groups=[[0, 2], [1, 3]]) ** 2 @ w


def _paired_gather(x, w):
    y = blocks(x)
    pairs = [[2, 0], [3, 1], [2, 0], [3, 1]]
    return np.concatenate([np.concatenate([y[i] for i in p]) for p in pairs]) ** 2 @ w


@case((P("x"), P()), P("x"), _paired_gather)
def gathered_in_groups(x, w):
    groups = [[2, 0], [3, 1]]
    return lax.all_gather(x, "x", tiled=True, axis_index_groups=groups) ** 2 @ w


@case((P("x", "y"), P()), P("x", "y"),
      lambda x, w: x**2 * (1 + np.arange(4).repeat(2)[:, None] + 10 * np.arange(2).repeat(8))
      + w.sum())  # fmt: skip
def where_we_are(x, w):
    scale = 1 + lax.axis_index("x") + 10 * lax.axis_index("y")
    return x**2 * scale.astype(F32) + w.sum()


@case((P(("x", "y")), P()), P(("x", "y")),
      lambda x, w: x**2 * np.arange(8)[:, None] + w.sum())  # fmt: skip
def the_number_of_the_device(x, w):
    return x**2 * lax.axis_index(("x", "y")).astype(F32) + w.sum()


@case((P("x"), P()), P("x"), lambda x, w: np.sin(x * (1 + np.arange(4).repeat(2)[:, None])) @ w,
      axis_names={"x"})  # fmt: skip
def the_compiler_divides_the_rest(x, w):
    return pnp.sin(x * (1 + lax.axis_index("x")).astype(F32)) @ w


@case((P("x"), P()), P("x"), lambda x, w: np.sin(x) @ w, axis_names={"x"})
def regions_in_each_other(x, w):
    inner = over((P(None, "y"), P("y")), P(), axis_names={"y"})
    return inner(lambda x, w: lax.psum(pnp.sin(x) @ w, "y"))(x, w)


@case((P("x"), P()), P(), lambda x, w: np.exp(-blocks(x)).sum(0) @ w * 3)
def in_a_loop(x, w):
    def turn(c, _):
        return c + lax.psum(pnp.exp(-x), "x") @ w, None

    return lax.scan(turn, pnp.zeros((2, 4), F32), None, length=3)[0]


def _ring(x, w):
    y = blocks(x)
    return np.stack([
        sum((np.sin(y[i]) * y[(i - k) % 4] * (k + 1)) for k in range(4)) for i in range(4)
    ]).reshape(8, 16) @ w  # fmt: skip


@case((P("x"), P()), P("x"), _ring)
def a_ring(x, w):
    around = [(i, (i + 1) % 4) for i in range(4)]

    def turn(k, state):
        total, there = state
        total = total + pnp.sin(x) * there * (k + 1).astype(F32)
        return total, lax.ppermute(there, "x", around)

    total, _ = lax.fori_loop(0, 4, turn, (pnp.zeros_like(x), x))
    return total @ w


def _chosen(x, w):
    y = blocks(x)
    return np.concatenate([np.sin(y[0]), np.sin(y[1]), y[2] ** 3, y[3] ** 3]) @ w


@case((P("x"), P()), P("x"), _chosen)
def a_choice(x, w):
    return lax.cond(lax.axis_index("x") < 2, pnp.sin, lambda x: x**3, x) @ w


@case((P("x"), P()), P(), lambda x, w: np.max(x, 0) @ w + np.min(x * x))
def extremes(x, w):
    return lax.pmax(x.max(0), "x") @ w + lax.pmin((x * x).min(), "x")


@case((P("x"), P()), P("x"), lambda x, w: np.sin(np.sin(x)) @ w * x.sum())
def functions_in_it(x, w):
    twice = plait.jit(lambda x: pnp.sin(x))
    total = plait.jit(lambda x: lax.psum(x.sum(), "x"))
    return twice(twice(x)) @ w * total(x)


@case((P("x"), P()), P(), lambda x, w: blocks(x).mean(0) @ w, check_vma=False)
def unchecked(x, w):
    return lax.pmean(x, "x") @ w


@case((P("x"), P()), P("x"), lambda x, w: 2 * x * w.sum())
def a_gradient_inside(x, w):
    return plait.grad(lambda x: lax.psum((x * x).sum(), "x") * w.sum())(x)


CASES["pmap"] = (
    lambda x, w: plait.pmap(lambda x: lax.psum(x, "i") * x @ w, axis_name="i")(x),
    lambda x, w: x.sum(0) * x @ w,
)
CASES["regions and constraints"] = (
    lambda x, w: lax.with_sharding_constraint(
        CASES["scattered"][0](x, w) * 2, NamedSharding(mesh(), P(None, "y"))
    ),
    lambda x, w: 2 * np.sin(x) @ w,
)


# ---- what is asked of each -----------------------------------------------------------------


def leaves(out):
    return out if isinstance(out, tuple) else (out,)


def number(out):
    """A number that depends on every element of results, with second derivatives."""
    scales = [np.cos(np.arange(y.size)).astype(F32).reshape(y.shape) for y in leaves(out)]
    return sum((c * y + 0.02 * y * y).sum() for c, y in zip(scales, leaves(out)))


def differences(whole, x, w, v, u):
    """First and second derivatives, by differences, of the number along directions."""
    x, w, v, u = (a.astype(np.float64) for a in (x, w, v, u))
    at = lambda s, t: number(whole(x + s * v + t * u, w))  # noqa: E731
    h = 1e-4
    first = (at(h, 0) - at(-h, 0)) / (2 * h)
    return first, (at(h, h) - at(h, -h) - at(-h, h) + at(-h, -h)) / (4 * h * h)


def near(x, y, rtol=2e-4):
    np.testing.assert_allclose(np.asarray(x, np.float64), y, rtol=rtol, atol=1e-3)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name):
    f, whole = CASES[name]
    again = deserialize(export(f)(X, W).serialize())
    program = again.program()
    # The same in any order of cases: a step along some directions changes the extreme element.
    directions = np.random.default_rng(7)
    v, u = (directions.normal(size=X.shape).astype(F32) for _ in range(2))
    rows = np.stack([X, X[::-1], X * 0.5])

    @plait.jit
    def everything(x, w):
        f = lambda x: number(again.call(x, w))  # noqa: E731
        slope = lambda x: (plait.grad(f)(x) * v).sum()  # noqa: E731
        return (
            plait.ext.ir.evaluate(program, [x, w]), plait.jvp(f, (x,), (v,))[1], slope(x),
            plait.jvp(slope, (x,), (u,))[1], (plait.grad(slope)(x) * u).sum(),
            leaves(plait.vmap(lambda x: again.call(x, w))(rows)),
        )  # fmt: skip

    values, forward, back, twice, back_twice, mapped = everything(X, W)
    for y, want in zip(values, leaves(whole(X, W)), strict=True):
        near(y, want)
    first, second = differences(whole, X, W, v, u)
    near(forward, first)
    near(back, first)
    near(twice, second, 2e-3)
    near(back_twice, second, 2e-3)
    for y, *want in zip(mapped, *[leaves(whole(x, W)) for x in rows], strict=True):
        near(y, np.stack(want))


# ---- devices -------------------------------------------------------------------------------


def exported(name="product", **how):
    f = CASES[name][0]
    return export(f, **how)(X, W)


def slope_of_product(x, w):
    """Of the sum over all results, with 3 of the last."""
    return np.cos(x) * (4 * w.sum(1))


def total_of(again):
    return lambda x: (lambda y, s: y.sum() + 3 * s)(*again.call(x, W))


ORDERS = [list(range(8)), list(range(8))[::-1], [3, 1, 4, 0, 5, 2, 6, 7]]


@pytest.mark.parametrize("order", ORDERS, ids=["in order", "backwards", "mixed"])
def test_derivatives_on_other_devices(order):
    again = deserialize(exported().serialize())
    for sizes, names in ((SIZES, NAMES), ((8,), ("all",)), ((2, 2, 2), ("a", "b", "c"))):
        there = Mesh(np.array(order).reshape(sizes), names)
        given = plait.device_put(X, NamedSharding(there, P(names[0])))
        for grad in (plait.grad(total_of(again)), plait.jit(plait.grad(total_of(again)))):
            got = grad(given)
            near(got, slope_of_product(X, W))
            assert got.sharding.place.devices == tuple(order)
    near(plait.grad(total_of(again))(X), slope_of_product(X, W))


def test_a_mesh_in_context_changes_nothing():
    again = deserialize(exported().serialize())
    backwards = Mesh(np.arange(8)[::-1].reshape(SIZES), NAMES)
    with backwards:
        near(plait.grad(total_of(again))(X), slope_of_product(X, W))
    near(plait.grad(total_of(again))(X), slope_of_product(X, W))
    there = plait.device_put(X, NamedSharding(backwards, P("x")))
    plait.config.mesh = backwards
    try:
        assert deserialize(exported().serialize()).program().eqns[0].params["mesh"] != backwards
        near(plait.jit(lambda x: again.call(x, W)[1] + total_of(again)(x))(X),
             (np.sin(X) @ W).sum() * 5)  # fmt: skip
    finally:
        plait.config.mesh = None
    with mesh():
        assert plait.grad(total_of(again))(there).sharding.place.devices == tuple(range(8))[::-1]


def test_other_numbers_of_devices_are_told():
    again = deserialize(exported().serialize())
    four = plait.device_put(X, NamedSharding(Mesh(np.arange(4), ("x",)), P("x")))
    with pytest.raises(plait.errors.PlaitError, match="devices") as e:
        plait.grad(total_of(again))(four)
    assert e.value.fix


def test_programs_keep_names_of_axes():
    text = str(deserialize(exported("where_we_are").serialize()).program())
    assert text.count("core.axis_index") == 2 and "core.div" not in text
    (e,) = deserialize(exported("gathered_in_another_order").serialize()).program().eqns
    assert e.params["mesh"] == plait.sharding.AbstractMesh(SIZES, NAMES) and e.params["typed"]
    assert [i.params["name"] for i in e.params["program"].eqns if "name" in i.params] == [
        ("y", "x")
    ]


def test_axes_of_a_single_place():
    """Along which nothing varies, and of which a module says nothing."""
    f = lambda x: lax.psum(pnp.sin(x) * lax.axis_index("y").astype(F32) + x, ("x", "y"))  # noqa: E731
    one = make_mesh((8, 1), NAMES)
    again = deserialize(
        export(shard_map(f, mesh=one, in_specs=P("x", "y"), out_specs=P("y")))(X).serialize()
    )
    (e,) = [e for e in again.program().eqns if "mesh" in e.params]
    assert e.params["typed"]
    near(plait.grad(lambda x: (again.call(x) ** 2).sum())(X), np.tile(2 * X.sum(0), (8, 1)))


def test_weights_platforms_and_derivatives_that_are_saved():
    f = lambda x: CASES["product"][0](x, W)  # noqa: E731
    made = export(f, weights=1, platforms=["tpu", "cpu"])(X)
    for blob in (made.serialize(), made.serialize(1), made.specialize(platform="cpu").serialize()):
        again = deserialize(blob)
        total = lambda x, again=again: again.call(x)[1]  # noqa: E731
        slope = np.cos(X) * W.sum(1)
        near(plait.grad(total)(X), slope)
        near(plait.grad(lambda x: (plait.grad(total)(x) * X).sum())(X), -np.sin(X) * X * W.sum(1))
        twice = again.with_weights({"W": 2 * W})
        near(plait.grad(lambda x: twice.call(x)[1])(X), 2 * slope)


def test_sizes_known_by_name():
    types = plait.export.symbolic_args_specs((X, W), ("8*b, 16", None))
    again = deserialize(export(CASES["product"][0])(*types).serialize())
    for n in (8, 16):
        x = np.concatenate([X, 2 * X])[:n]
        near(again.call(x, W)[1], (np.sin(x) @ W).sum())
        near(plait.grad(total_of(again))(x), slope_of_product(x, W))
    rows = plait.vmap(lambda x: again.call(x, W)[0])(np.stack([X, -X]))
    near(rows, [np.sin(X) @ W, np.sin(-X) @ W])


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("platforms", [["cpu"], ["tpu", "cpu"]], ids=len)
def test_sizes_that_a_region_computes_with(platforms, order):
    """Inside of it they are not numbers to who puts sizes into a module."""

    def local(x, w):
        rows = x.reshape(-1) * x.shape[0]
        return rows.reshape(x.shape) @ w, lax.psum(rows.sum(), "x")

    f = over((P("x"), P()), (P("x"), P()))(local)
    types = plait.export.symbolic_args_specs((X, W), ("4*b, 16", None))
    again = deserialize(export(f, platforms=platforms)(*types).serialize(order))
    for x in (X, np.concatenate([X, X])):
        rows = len(x) // 4
        y, total = again.call(x, W)
        near(y, rows * x @ W)
        near(total, rows * x.sum())
        near(plait.grad(lambda x: (again.call(x, W)[0] ** 2).sum())(x), 2 * rows**2 * x @ W @ W.T)
        fixed = deserialize(again.specialize({"b": rows}, "cpu").serialize(order))
        near(fixed.call(x, W)[0], rows * x @ W)
    near(again.compile({"b": 2}).call(X, W)[0], 2 * X @ W)


def test_an_artifact_of_all_sizes_in_a_region():
    """jaxlib ends the process over sizes that are asked for there."""
    sizes = plait.export.symbolic_args_specs
    inner = deserialize(export(lambda x: x.reshape(-1) * x.shape[0])(sizes(X, "c, 16")).serialize())
    f = over(P("x"), P("x"))(inner.call)
    again = deserialize(export(f)(sizes(X, "4*b, 16")).serialize())
    for g in (f, again.call):
        near(g(X), 2 * X.reshape(-1))
        near(plait.grad(lambda x, g=g: (g(x) ** 2).sum())(X), 8 * X)


def test_what_can_not_be_put_in_is_told():
    """Sizes inside of a region, beside a function that nobody can read back."""
    theirs = plait.ffi.ffi_call("theirs", plait.ShapeDtypeStruct((16,), F32))
    local = lambda x: x.reshape(-1) * x.shape[0] + theirs(x[0]).sum()  # noqa: E731
    inner = export(lambda x: x.reshape(-1))(plait.export.symbolic_args_specs(X, "c, 16"))
    f = over(P("x"), P("x"))(lambda x: inner.call(x) + local(x))
    made = export(f, custom_calls=["theirs"])(plait.export.symbolic_args_specs(X, "4*b, 16"))
    with pytest.raises(ArtifactError, match="what each device does computes with sizes") as e:
        made.call(X)
    assert "theirs is a function outside StableHLO" in e.value.what and e.value.fix


# ---- modules that others may write -----------------------------------------------------------


def changed(f, old, new):
    """What is read of an artifact whose module has another text."""
    made = export(f)(X)
    text = made.mlir_module().replace(old, new)
    assert text != made.mlir_module()
    with lock:
        code = mlir.bytecode(mlir.parse(text))
    program = Reading("f", artifact_of(code, False, True), ("cpu",), False).program
    return program(made.in_avals, made.out_avals)


GROUPS = "[[0, 1], [2, 3], [4, 5], [6, 7]]"


@pytest.mark.parametrize(
    "old, new, text",
    [
        (GROUPS, "[[0, 2], [1, 3], [4, 5], [6, 7]]", "no axes, of 'x' and 'y', tell from others"),
        ("stablehlo.add %", "stablehlo.subtract %", "not a sum or extreme"),
        ('manual_axes={"x", "y"}', 'manual_axes={"x"}', "no axes, of 'x' and 'y'"),
        ('"y"=2]', '"y"=2], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]', "out of their order"),
    ],
)
def test_what_no_axes_say_is_refused(old, new, text):
    f = over(P("x"), P("x"))(lambda x: lax.psum(x, "y"))
    with pytest.raises(NotReadable, match=text):
        changed(f, old, new)


def test_groups_in_another_order():
    f = over(P("x"), P("x"))(lambda x: lax.psum(x, "y"))
    (e,) = changed(f, GROUPS, "[[5, 4], [3, 2], [0, 1], [7, 6]]").eqns
    assert [i.params["axes"] for i in e.params["program"].eqns if i.prim.name == "core.psum"] == [
        ("y",)
    ]


def test_numbers_of_devices_that_are_no_places():
    f = over(P(("x", "y")), P(("x", "y")))(lambda x: x * lax.axis_index("x").astype(F32))
    program = changed(f, "dense<2> : tensor<ui32>", "dense<3> : tensor<ui32>")
    (y,) = plait.jit(lambda x: plait.ext.ir.evaluate(program, [x]))(X)
    near(y, X * (np.arange(8) // 3)[:, None])
