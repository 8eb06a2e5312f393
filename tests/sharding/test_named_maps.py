"""xmap: rows of what is required of it, with numpy, a loop or the mapped program to compare with.

Invariant: every result is compared with one that knows no mesh.
"""

import re
import warnings

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Mesh, lax, xmap
from plait.sharding import SerialLoop

D = np.array(plait.devices())
SQUARE = Mesh(D[:4].reshape(2, 2), ("x", "y"))
WIDE = Mesh(D.reshape(4, 2), ("x", "y"))


def A(*shape):
    return (np.sin(np.arange(np.prod(shape)) * 0.37) + 0.1).astype(np.float32).reshape(shape)


LAYOUTS = {
    "lanes": {},
    "one axis": {"a": "x"},
    "other axis": {"a": "y"},
    "two axes": {"a": ("x", "y")},
    "two axes, turned": {"a": ("y", "x")},
}


# ---- on devices ------------------------------------------------------------------------------


@pytest.mark.feature("S12")
def test_on_a_mesh_of_real_devices(close):
    f = xmap(
        lambda a, b: (a * 2, b * 4),
        in_axes=[{0: "a", 1: "b"}, ["c", ...]],
        out_axes=({0: "a", 1: "b"}, ["c", ...]),
        axis_resources={"a": "x", "b": "y", "c": "x"},
    )
    a, b = A(4, 6, 3), A(8, 2)
    with SQUARE:
        c, d = f(a, b)
    close(c, a * 2)
    close(d, b * 4)
    assert c.sharding.is_equivalent_to(plait.NamedSharding(SQUARE, plait.P("x", "y")), 3)
    assert d.sharding.is_equivalent_to(plait.NamedSharding(SQUARE, plait.P("x")), 2)
    with pytest.raises(plait.errors.AxisError, match="2 axes, and the names"):
        Mesh(D[:4].reshape(2, 2), ("x",))


@pytest.mark.feature("S12")
def test_axes_on_one_resource_that_do_not_meet(close):
    """Side by side in operations with programs, too."""

    def body(a, b):
        two = plait.jit(lambda a, b: (a * 2, b * 4))(a, b)
        (c, d), _ = lax.scan(
            lambda s, _: ((s[0] + 1, s[1] - lax.psum(s[1], "c")), None), two, None, 2
        )
        return lax.cond(lax.axis_size("a") == 16, lambda: (c, d), lambda: (c * 0, d * 0))

    f = xmap(
        body,
        (["a", ...], ["c", ...]),
        (["a", ...], ["c", ...]),
        axis_resources={"a": ("x", "y"), "c": "x"},
    )
    a, b = A(16, 3), A(8, 2)
    with SQUARE:
        c, d = f(a, b)
    close(c, a * 2 + 2)
    once = b * 4 - (b * 4).sum(0)
    close(d, once - once.sum(0))


@pytest.mark.feature("S12")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_places_of_named_axes(close, layout):
    """Names at any axis of arguments and results, as lists and dicts, in trees."""
    how = {"axis_resources": LAYOUTS[layout]}
    x, w = A(3, 16, 5), A(5)
    with WIDE:
        f = lambda t: {"r": t["x"] * t["w"], "s": [t["x"].sum()]}  # noqa: E731
        for named, moved in (({1: "a"}, 1), ({-2: "a"}, 1), ([None, "a", None], 1)):
            for out, at in (({0: "a"}, 0), ({-1: "a"}, 2), ([None, "a", ...], 1)):
                g = xmap(f, ({"x": named, "w": {}},), {"r": out, "s": [["a"]]}, **how)
                got = g({"x": x, "w": w})
                close(got["r"], np.moveaxis(x * w, moved, at))
                close(got["s"][0], x.sum((0, 2)))
        # one naming is for all arguments, and all results
        close(xmap(lambda p, q: p - q, {1: "a"}, {0: "a"}, **how)(x, x * 3), -2 * x.swapaxes(0, 1))
        # results that do not vary along the axis that they have, and arguments that lack it
        close(
            xmap(lambda p, q: q, (["a", ...], {}), {1: "a"}, **how)(A(16, 2), w),
            w[:, None] + 0 * A(16)[None],
        )
        close(xmap(lambda p: p.sum() * 0 + 1, {1: "a"}, ["a"], **how)(x), np.ones(16))
        two = xmap(lambda p: p, [None, "a", "b"], {0: "b", -1: "a"}, **how)
        close(two(x), x.transpose(2, 0, 1))


@pytest.mark.feature("S12")
def test_sizes_without_an_argument(close):
    for layout in LAYOUTS.values():
        f = xmap(
            lambda: lax.axis_index("a") * 2, [], ["a"], axis_sizes={"a": 16}, axis_resources=layout
        )
        with WIDE:
            close(f(), np.arange(16) * 2)
    f = xmap(lambda x: x + lax.axis_index("a"), {}, ["a", ...], axis_sizes={"a": 3})
    close(f(A(2)), A(2) + np.arange(3)[:, None])


# ---- collectives -----------------------------------------------------------------------------


def sums(body, x):
    return np.stack([body(i, x) for i in range(len(x))])


COLLECTIVES = {
    "psum": (lambda a: lax.psum(a * 2, "a"), lambda i, x: (x * 2).sum(0)),
    "pmean": (lambda a: a - lax.pmean(a, "a"), lambda i, x: x[i] - x.mean(0)),
    "pmax": (lambda a: lax.pmax(a, "a"), lambda i, x: x.max(0)),
    "pmin": (lambda a: lax.pmin(a, "a"), lambda i, x: x.min(0)),
    "size": (lambda a: a * lax.axis_size("a"), lambda i, x: x[i] * len(x)),
    "index": (lambda a: a + lax.axis_index("a"), lambda i, x: x[i] + i),
    "gather": (lambda a: lax.all_gather(a, "a")[::-1], lambda i, x: x[::-1]),
    "joined": (lambda a: lax.all_gather(a, "a", tiled=True), lambda i, x: x.ravel()),
    "scatter": (lambda a: lax.psum_scatter(a, "a"), lambda i, x: x.sum(0)[i]),
    "ring": (
        lambda a: lax.ppermute(a, "a", [(i, (i + 3) % 16) for i in range(16)]),
        lambda i, x: x[(i - 3) % 16],
    ),
    "some": (
        lambda a: lax.ppermute(a, "a", [(1, 0), (7, 2), (2, 15)]),
        lambda i, x: {0: x[1], 2: x[7], 15: x[2]}.get(i, 0 * x[0]),
    ),
    "broadcast": (lambda a: lax.pbroadcast(a, "a", 5), lambda i, x: x[5]),
    "scan": (
        lambda a: lax.scan(lambda c, v: (c + lax.psum(v, "a"), c * v), a[0], a)[1],
        lambda i, x: (x[i, 0] + np.cumsum(x.sum(0)) - x.sum(0)) * x[i],
    ),
    "gather in a scan": (
        lambda a: lax.scan(
            lambda c, v: (c, lax.all_gather(v, "a")[lax.axis_index("a")] * 2), 0.0, a
        )[1],
        lambda i, x: x[i] * 2,
    ),
    "permute in a loop": (
        lambda a: lax.fori_loop(
            0, 3, lambda i, c: lax.ppermute(c, "a", [(i, (i + 1) % 16) for i in range(16)]), a
        ),
        lambda i, x: x[(i - 3) % 16],
    ),
    "cond": (
        lambda a: lax.cond(lax.psum(a.sum(), "a") > 0, lambda a: lax.psum(a, "a"), lambda a: a, a),
        lambda i, x: x.sum(0) if x.sum() > 0 else x[i],
    ),
    "while": (
        lambda a: lax.while_loop(lambda c: lax.pmax(c.max(), "a") < 9, lambda c: c * 2, a),
        lambda i, x: x[i] * 2.0 ** np.ceil(np.log2(9 / x.max())),
    ),
}


@pytest.mark.sampled(12)
@pytest.mark.feature("S13")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_collectives_along_what_is_laid_out(close, layout):
    x = A(16, 16)
    with WIDE:
        for name, (body, want) in COLLECTIVES.items():
            f = xmap(body, ["a", ...], ["a", ...], axis_resources=LAYOUTS[layout])
            got, wanted = f(x), sums(want, x)
            assert got.shape == wanted.shape, name
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4, err_msg=name)
        total = xmap(
            lambda a: lax.psum(a * 2, "a"), ["a", ...], [...], axis_resources=LAYOUTS[layout]
        )
        close(total(x), (x * 2).sum(0))


@pytest.mark.feature("S13")
def test_collectives_along_several_logical_axes(close):
    x = A(8, 4, 3)
    for layout in ({}, {"a": "x", "b": "y"}, {"a": "y"}, {"b": ("y", "x")}, {"a": ("x", "y")}):
        if layout.get("b") == ("y", "x"):
            continue  # 4 are not divisible by 8
        how = {"axis_resources": layout}
        with WIDE:
            both = xmap(lambda v: lax.psum(v, ("a", "b")), ["a", "b", ...], {}, **how)
            close(both(x), x.sum((0, 1)))
            one = xmap(lambda v: v - lax.psum(v, "b"), ["a", "b", ...], {0: "b", 1: "a"}, **how)
            close(one(x), (x - x.sum(1, keepdims=True)).swapaxes(0, 1))
            at = xmap(
                lambda v: lax.axis_index(("b", "a")) + 0 * v.sum(),
                ["a", "b", ...],
                ["a", "b"],
                **how,
            )
            close(at(x), np.arange(8)[:, None] + 8 * np.arange(4))


@pytest.mark.feature("S17")
def test_one_collective_over_the_product_of_axes(close):
    f = xmap(lambda a: lax.psum(a * 2, "a"), ["a", ...], [...], axis_resources={"a": ("x", "y")})
    x = A(16, 3)
    with WIDE:
        close(f(x), (x * 2).sum(0))
        text = f.lower(x).compile().as_text()
    assert len(re.findall(r" all-reduce(?:-start)?\(", text)) == 1


@pytest.mark.feature("S19")
@pytest.mark.parametrize("resources", [("x", "y"), ("y", "x"), "x", ()])
@pytest.mark.parametrize("split, concat", [(0, 0), (0, 1), (1, 0)])
def test_all_to_all_along_two_axes_of_the_mesh(close, resources, split, concat):
    """Compared with a loop: what position j has for i, joined over all j."""
    x = A(16, 16, 32)
    how = {"axis_resources": {"a": resources}}
    want = np.stack(
        [
            np.concatenate([np.split(x[j], 16, split)[i] for j in range(16)], concat)
            for i in range(16)
        ]
    )
    with WIDE:
        f = xmap(
            lambda v: lax.all_to_all(v, "a", split, concat, tiled=True),
            ["a", ...],
            ["a", ...],
            **how,
        )
        close(f(x), want)
        y = A(16, 16, 3)
        g = xmap(lambda v: lax.all_to_all(v, "a", 0, 1), ["a", ...], ["a", ...], **how)
        close(g(y), np.stack([y[:, i].T for i in range(16)]))


@pytest.mark.feature("S13")
def test_groups_where_the_axis_has_one_part(close):
    x, groups = A(4, 3), [[0, 2], [1, 3]]
    f = lambda v: lax.psum(v, "a", axis_index_groups=groups)  # noqa: E731
    want = x[[2, 3, 0, 1]] + x
    with WIDE:
        for layout in ({}, {"a": "x"}):
            close(xmap(f, ["a", ...], ["a", ...], axis_resources=layout)(x), want)
        with pytest.raises(plait.errors.AxisError, match="axis_index_groups .* along 'a', which"):
            xmap(f, ["a", ...], ["a", ...], axis_resources={"a": "y"})(x)


# ---- caches, donation ------------------------------------------------------------------------


@pytest.mark.feature("S14")
def test_the_second_call_compiles_nothing(close):
    calls = []

    def body(a):
        calls.append(1)
        return lax.psum(a * 2, "a")

    f = xmap(body, ["a", ...], [...], axis_resources={"a": "x"})
    x = A(16, 3)
    for mesh in (WIDE, SQUARE):
        with mesh:
            close(f(x), (x * 2).sum(0))
    assert len(calls) == 2  # its Python runs once per types of arguments and mesh
    with plait.events.counting() as counted:
        for mesh in (WIDE, SQUARE):
            with mesh:
                close(f(x), (x * 2).sum(0))
                close(f(pnp.asarray(x)), (x * 2).sum(0))
    assert not counted["compile"] and not counted["trace"], counted
    assert len(calls) == 2


def test_donation():
    f = xmap(lambda a: a * 2, ["a", ...], ["a", ...], axis_resources={"a": "x"}, donate_argnums=0)
    with WIDE:
        x = plait.device_put(A(16, 3), plait.P("x"))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            y = f(x)
    np.testing.assert_allclose(y, A(16, 3) * 2)
    assert x.is_deleted()
    g = xmap(lambda a, b: a + b, ["a", ...], ["a", ...], donate_argnums=(1,))
    x, z = pnp.asarray(A(16, 3)), pnp.asarray(A(16, 3))
    np.testing.assert_allclose(g(x, z), A(16, 3) * 2)
    assert z.is_deleted() and not x.is_deleted()


# ---- loops -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "resources", [SerialLoop(4), ("x", SerialLoop(2)), (SerialLoop(2), "y", "x"), SerialLoop(1)]
)
def test_loops(close, resources):
    x, w = A(16, 4, 3), A(3)
    with WIDE:
        f = xmap(
            lambda v, w: (pnp.sin(v) * w, lax.psum(v, "b"), w.sum()),
            ({0: "a", 1: "b"}, {}),
            ({0: "a", 2: "b"}, {1: "a"}, {}),
            axis_resources={"a": resources},
        )
        one, two, three = f(x, w)
        close(one, (np.sin(x) * w).swapaxes(1, 2))
        close(two, x.sum(1).T)
        close(three, w.sum())
        g = plait.grad(lambda w: (f(x, w)[0] ** 2).sum())
        close(g(w), 2 * w * (np.sin(x) ** 2).sum((0, 1)))


@pytest.mark.parametrize("resources", [SerialLoop(4), ("x", SerialLoop(2))])
def test_a_loop_over_an_axis_that_no_argument_has(close, resources):
    f = xmap(
        lambda v: (v * 2, v.sum()),
        ["b", ...],
        ({0: "a", 1: "b"}, ["b", "a"]),
        axis_sizes={"a": 8},
        axis_resources={"a": resources},
    )
    x = A(3, 4)
    with WIDE:
        one, two = f(x)
    close(one, np.broadcast_to(x * 2, (8, 3, 4)))
    close(two, np.broadcast_to(x.sum(1)[:, None], (3, 8)))


def test_a_loop_does_one_part_at_a_time():
    """The largest array of the program is no larger than what one turn needs."""
    f = xmap(
        lambda v: (v[:, None] * v).sum(), ["a", ...], ["a"], axis_resources={"a": SerialLoop(8)}
    )
    text = f.lower(np.ones((16, 100), np.float32)).as_text()
    sizes = {
        np.prod([int(n) for n in s.split("x")[:-1]]) for s in re.findall(r"<([\dx]+xf32)>", text)
    }
    assert max(sizes) == 2 * 100 * 100, sizes


# ---- in each other, and others ---------------------------------------------------------------


@pytest.mark.feature("S15")
@pytest.mark.parametrize(
    "outer, inner",
    [
        ({}, {}),
        ({"i": "x"}, {"j": "y"}),
        ({"i": "x"}, {}),
        ({}, {"j": ("x", "y")}),
        ({"i": "y"}, {"j": "x"}),
    ],
)
def test_in_each_other(close, outer, inner):
    def body(b, a):
        return b * 2 + lax.psum(b, "j") + a + lax.psum(b.sum(), ("i", "j"))

    g = xmap(body, [["j", ...], {}], ["j", ...], axis_resources=inner)
    f = xmap(lambda a: g(a, a.sum()), ["i", ...], ["i", ...], axis_resources=outer)
    x = A(8, 8, 3)
    want = x * 2 + x.sum(1, keepdims=True) + x.sum((1, 2), keepdims=True) + x.sum()
    with WIDE:
        close(f(x), want)
        close(plait.jit(f)(x), want)


@pytest.mark.feature("S15")
def test_of_one_name_the_inner_axis_is_meant(close):
    g = xmap(lambda b: lax.psum(b, "i"), ["i", ...], {}, axis_resources={"i": "y"})
    f = xmap(lambda a: g(a) + lax.psum(a.sum(), "i"), ["i", ...], ["i"], axis_resources={"i": "x"})
    x = A(8, 4)
    with WIDE:
        close(f(x), x.sum(1) + x.sum())
    h = plait.vmap(lambda v: lax.psum(v, "i"), axis_name="i")
    k = xmap(lambda a: h(a) + lax.psum(a, "i"), ["i", ...], ["i", ...], axis_resources={"i": "x"})
    with WIDE:
        close(k(x), x.sum(1, keepdims=True) + x.sum(0))


@pytest.mark.feature("S15")
def test_logical_axes_named_as_axes_of_the_mesh(close):
    x = A(8, 8)
    both = {"y": "x", "x": "y"}
    f = xmap(
        lambda v: v - lax.pmean(v, "x") + lax.psum(v, ("x", "y")) * lax.axis_index("y"),
        ["x", "y"],
        ["x", "y"],
        axis_resources=both,
    )
    g = xmap(lambda v: lax.psum(v, "j") + lax.psum(v, "i"), ["j"], ["j"], axis_resources={"j": "x"})
    outer = xmap(g, ["i", ...], ["i", ...], axis_resources={"i": "y"})
    inner = xmap(lambda v: lax.psum(v, "x"), ["j"], ["j"], axis_resources={"j": "x"})
    with WIDE:
        close(f(x), x - x.mean(0) + x.sum() * np.arange(8))
        close(outer(x), x.sum(1, keepdims=True) + x.sum(0))
        with pytest.raises(plait.errors.AxisError, match="axis 'x', which is bound outside, and"):
            xmap(inner, ["x", ...], ["x", ...], axis_resources={"x": "y"})(x)


@pytest.mark.feature("S15")
def test_another_mesh_inside(close):
    def body(a):
        with Mesh(D[:2], ("q",)):
            return a

    def same(a):
        with Mesh(D.reshape(4, 2), ("x", "y")):
            return a * 2

    f = xmap(body, ["i", ...], ["i", ...])
    for mesh in (WIDE, plait.config()):
        with (
            mesh,
            pytest.raises(RuntimeError, match=r"Changing the physical mesh is not allowed.*") as e,
        ):
            f(A(8, 4))
        assert isinstance(e.value, plait.PlaitError) and e.value.fix
        assert __file__ in e.value.where
    with WIDE:
        close(xmap(same, ["i", ...], ["i", ...])(A(8, 4)), A(8, 4) * 2)
        taken = xmap(lambda a: a, ["j", ...], ["j", ...], axis_resources={"j": "x"})
        with pytest.raises(
            plait.errors.AxisError, match="'j' is to be laid out on 'x', which axis 'i'"
        ):
            xmap(taken, ["i", ...], ["i", ...], axis_resources={"i": "x"})(A(8, 4))
    close(body(A(8, 4)), A(8, 4))  # nothing is left of what was refused


def test_shard_map_inside_and_around(close):
    x = A(8, 4)
    with WIDE:
        inner = plait.shard_map(
            lambda v: v * lax.psum(v.sum(), "y"),
            in_specs=plait.P("y"),
            out_specs=plait.P("y"),
            axis_names={"y"},
        )
        f = xmap(inner, ["a", ...], ["a", ...], axis_resources={"a": "x"})
        close(f(x), x * x.sum(1, keepdims=True))
        g = xmap(
            lambda v: v * lax.psum(v.sum(), "a"), ["a", ...], ["a", ...], axis_resources={"a": "x"}
        )
        h = plait.shard_map(
            g, in_specs=plait.P(None, "y"), out_specs=plait.P(None, "y"), axis_names={"y"}
        )
        halves = x.reshape(8, 2, 2)
        close(h(x), (halves * halves.sum((0, 2), keepdims=True)).reshape(8, 4))


def test_pmap_inside_and_around(close):
    """Inside, one device has all elements of the pmap; around, all lanes of the xmap."""
    x = A(8, 4)
    for layout in ({}, {"a": "x"}):
        f = xmap(
            plait.pmap(lambda u: u - lax.pmean(u, "i") + lax.psum(u, "a"), axis_name="i"),
            ["a", ...],
            ["a", ...],
            axis_resources=layout,
        )
        with WIDE:
            close(f(x), x - x.mean(1, keepdims=True) + x.sum(0))
    g = plait.pmap(xmap(lambda v: v - lax.pmean(v, "a"), ["a", ...], ["a", ...]))
    close(g(x), x - x.mean(1, keepdims=True))


def test_without_jit(close):
    f = xmap(
        lambda v: v - lax.pmean(v, "a"), ["a", ...], ["a", ...], axis_resources={"a": ("x", "y")}
    )
    x = A(16, 4)
    with WIDE, plait.disable_jit():
        close(f(x), x - x.mean(0))


def test_nothing_at_all(close):
    """Axes of size 0, on a mesh, in turns and in lanes."""
    for layout in ({}, {"a": "x"}, {"a": SerialLoop(2)}):
        with WIDE:
            f = xmap(lambda v: v * 2, ["a", ...], {1: "a"}, axis_resources=layout)
            assert f(np.zeros((0, 3), np.float32)).shape == (3, 0)
    close(
        xmap(lambda v: lax.psum(v, "a"), ["a", ...], {})(np.zeros((0, 3), np.float32)), np.zeros(3)
    )


def test_keys_and_integers():
    keys = plait.random.split(plait.random.key(0), 8)
    f = lambda k, n: (plait.random.uniform(k, (3,)), n // 2)  # noqa: E731
    want = [f(keys[i], np.int32(i)) for i in range(8)]
    for layout in ({}, {"a": "x"}, {"a": ("x", "y")}):
        with WIDE:
            u, n = xmap(f, ["a", ...], (["a", ...], ["a"]), axis_resources=layout)(
                keys, np.arange(8, dtype=np.int32)
            )
        np.testing.assert_array_equal(u, np.stack([np.asarray(w[0]) for w in want]))
        np.testing.assert_array_equal(n, np.arange(8) // 2)
        assert n.dtype == np.int32


def test_what_is_closed_over(close):
    """Arrays and values of transformations around it."""
    c, x = A(3), A(8, 3)
    with WIDE:

        def total(s):
            f = xmap(lambda a: a * s + c, ["a", ...], ["a", ...], axis_resources={"a": "x"})
            return (f(x) ** 2).sum()

        close(plait.grad(total)(2.0), (2 * (x * 2 + c) * x).sum())
        close(plait.vmap(total)(np.float32([1, 2])), [((x * s + c) ** 2).sum() for s in (1, 2)])
        close(plait.jit(total)(2.0), ((x * 2 + c) ** 2).sum())
