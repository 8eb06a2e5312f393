"""Types that say along which axes of a mesh values vary, and the derivatives that go by them.

The judge is the same function of all pieces at once, on one device: its axis bound by vmap, its
results added where each device has one of its own, and its derivatives by finite differences.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait.errors import AxisError, TypeRule
from plait.numpy import sin
from plait_sharding import P, make_mesh, shard_map

R = np.random.default_rng(3)
V = R.uniform(0.5, 1.5, size=(8, 3)).astype(np.float32)
W = np.float32(0.7)


def mesh_of_two():
    return make_mesh((2, 4), ("x", "y"))


def psum(v):
    return lax.psum(v, "i")


@plait.custom_vjp
def doubled(x):
    return 2 * x


doubled.defvjp(lambda x: (2 * x, None), lambda _, ct: (2 * ct,))


@plait.custom_jvp
def cubed(x):
    return x**3


cubed.defjvp(lambda p, t: (p[0] ** 3, 3 * p[0] ** 2 * t[0]))


def times(w, v):
    """A custom rule whose operands vary along different axes."""
    f = plait.custom_vjp(lambda w, v: w * v)
    f.defvjp(lambda w, v: (w * v, (w, v)), lambda r, ct: ((ct * r[1]).sum(), ct * r[0]))
    return f(w, v)


def scanned(w, v):
    return lax.scan(lambda c, x: (c * w + x, c * x), 0.5, v)[1].sum()


def carried(w, v):
    """The carry is the same on all devices at first, and differs after a turn."""
    return lax.fori_loop(0, 3, lambda i, c: c * w + v.sum() * i, 1.0)


def shifted(w, v):
    """What one carry is, the next is a turn later."""
    turn = lambda c, x: ((v.sum() * w, c[0], c[1], c[2], c[3] * w), c[4])  # noqa: E731
    return lax.scan(turn, (1.0, 1.0, 1.0, 1.0, w), None, 7)[1].sum()


VARIES = {
    "product": lambda w, v: (w * v).sum(),
    "own": lambda w, v: sin(w * v).sum() * w,
    "psum inside": lambda w, v: (psum(v * w) * v).sum(),
    "psum twice": lambda w, v: (psum(v * psum(v * w)) * v).sum(),
    "of what does not vary": lambda w, v: (psum(w) * v).sum(),
    "pmean": lambda w, v: (lax.pmean(w * v, "i") ** 2 * v).sum(),
    "all_gather": lambda w, v: (lax.all_gather(v * w, "i") ** 2).sum() * v[0],
    "psum_scatter": lambda w, v: (lax.psum_scatter(pnp.outer(pnp.arange(8.0), v * w), "i")
                                  ** 2).sum(),
    "ppermute": lambda w, v: (lax.ppermute(w * w, "i", [(0, 1), (1, 5)]) * v).sum(),
    "all_to_all": lambda w, v: (lax.all_to_all(pnp.outer(pnp.arange(8.0), v * w), "i", 0, 0)
                                ** 2).sum(),
    "axis_index": lambda w, v: w * w * lax.axis_index("i"),
    "groups": lambda w, v: (lax.psum(w * v, "i", axis_index_groups=[[0, 1, 2, 7], [3, 4, 5, 6]])
                            * v).sum(),
    "custom_vjp": lambda w, v: (doubled(w) * doubled(v * w)).sum(),
    "custom_vjp of psum": lambda w, v: (doubled(psum(w * v)) * v).sum(),
    "custom_vjp of both": lambda w, v: times(w, v).sum(),
    "custom_jvp": lambda w, v: (cubed(w) * cubed(v * w)).sum(),
    "checkpoint": lambda w, v: plait.checkpoint(lambda w: sin(w * v) * psum(w))(w).sum(),
    "jit": lambda w, v: plait.jit(lambda w: sin(w * v) * w)(w).sum(),
    "scan": scanned,
    "carried": carried,
    "shifted": shifted,
    "while": lambda w, v: lax.while_loop(lambda c: c.sum() < 9, lambda c: c * w * 3, v,
                                         max_steps=9).sum(),
    "cond": lambda w, v: lax.cond(v[0] > 1, lambda w: (w * w * v).sum(), lambda w: w * 2, w),
    "cond of all": lambda w, v: lax.cond(w > 0, lambda w: (w * w * v).sum(), lambda w: w * 2, w),
    "cond within": lambda w, v: lax.cond(v[0] > 1, lambda w: sin(w * 3) * w, lambda w: w, w),
    "vmap": lambda w, v: plait.vmap(lambda u: sin(u * w) * psum(w * v).sum())(v).sum(),
    "indexing": lambda w, v: (w * pnp.arange(8.0))[lax.axis_index("i")] * v.sum(),
    "sorting": lambda w, v: (pnp.sort(v * w) * pnp.arange(3.0)).sum(),
    "matmul": lambda w, v: (pnp.outer(v, v) @ (w * pnp.ones(3))).sum() * w,
    "inner gradient": lambda w, v: plait.grad(lambda u: (u**3 * w * v).sum())(v[1]) * w,
}  # fmt: skip
ALIKE = {
    "sum": lambda w, v: psum((w * v).sum()),
    "nonlinear": lambda w, v: sin(psum((w * v).sum())) * w,
    "mean": lambda w, v: lax.pmean(cubed(w * v).sum(), "i") * w,
    "scan": lambda w, v: psum(scanned(w, v)),
    "sum in scan": lambda w, v: lax.scan(lambda c, x: (sin(psum(w * x)) * c, None), w, v)[0],
    "custom_vjp": lambda w, v: doubled(psum((w * v).sum())) * doubled(w),
    "checkpoint": lambda w, v: plait.checkpoint(lambda w: psum((sin(w * v)).sum()) * w)(w),
    "pmax": lambda w, v: lax.pmax((w * v).max(), "i"),
    "nothing": lambda w, v: w * w,
}


def whole(f, varies):
    """The function of all pieces."""
    lanes = plait.vmap(f, (None, 0), axis_name="i")
    return plait.jit(lambda w, v: lanes(w, v).sum() if varies else lanes(w, v)[0])


def slopes(f, *xs):
    """Finite differences with respect to w, and to v in a direction."""
    h, d = 1e-2, np.cos(np.arange(V.size)).reshape(V.shape).astype(np.float32)
    at = lambda a, b: float(f(W + a * h, V + b * h * d))  # noqa: E731
    five = lambda g: (8 * (g(1) - g(-1)) - (g(2) - g(-2))) / (12 * h)  # noqa: E731
    return five(lambda k: at(k, 0)), five(lambda k: at(0, k)), d


@pytest.mark.sampled(12)
@pytest.mark.parametrize("varies, name", [(True, n) for n in VARIES] + [(False, n) for n in ALIKE])
def test_gradients(varies, name):
    f = (VARIES if varies else ALIKE)[name]
    mesh = make_mesh((8,), "i")
    one = lambda w, v: f(w, v[0])  # noqa: E731
    over = lambda g, outs: shard_map(g, mesh=mesh, in_specs=(P(), P("i")), out_specs=outs)  # noqa: E731
    dw, dv, d = slopes(whole(f, varies))
    near = lambda got, want: np.testing.assert_allclose(got, want, rtol=3e-3, atol=3e-3)  # noqa: E731
    # inside: of a value that all devices use, and of one that each has of its own
    near(plait.jit(over(plait.grad(one), P()))(W, V), dw)
    near((plait.jit(over(plait.grad(one, 1), P("i")))(W, V) * d).sum(), dv)
    # of the whole
    outs = P("i") if varies else P()
    total = over((lambda w, v: one(w, v)[None]) if varies else one, outs)
    near(plait.jit(plait.grad(lambda w, v: total(w, v).sum()))(W, V), dw)
    near((plait.jit(plait.grad(lambda w, v: total(w, v).sum(), 1))(W, V) * d).sum(), dv)
    if name != "while":
        again = plait.grad(lambda w: plait.checkpoint(total)(w, V).sum())
        near(plait.jit(again)(W), dw)
    tangent = plait.jvp(lambda w: total(w, V).sum(), (W,), (np.float32(1),))[1]
    near(tangent, dw)
    # mapped, and the derivative of the derivative against that of the plain program
    many = np.float32([W, W])
    near(plait.jit(plait.vmap(over(plait.grad(one), P()), (0, None)))(many, V), [dw, dw])
    curve = lambda g: plait.jvp(lambda w: g(w, V), (W,), (np.float32(1),))[1]  # noqa: E731
    near(curve(over(plait.grad(one), P())), curve(plait.grad(whole(f, varies))))


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", ["gathered", "of both", *ALIKE])
def test_derivatives_of_derivatives(name):
    """By reverse mode twice, where results that are one value may be of a type that varies: each
    device's cotangent counts."""
    gathered = lambda w, v: (lax.all_gather(v * w, "i") ** 3).sum()  # noqa: E731
    more = {"gathered": gathered, "of both": lambda w, v: gathered(w, v) * psum(v * w).sum() * w}
    f = {**more, **ALIKE}[name]
    over = lambda w, v: f(w, v[0])  # noqa: E731
    total = shard_map(over, mesh=make_mesh((8,), "i"), in_specs=(P(), P("i")), out_specs=P())
    d = np.cos(np.arange(V.size)).reshape(V.shape).astype(np.float32)
    one = whole(f, False)

    def twice(g):
        slope = lambda w, v: (plait.grad(g, 1)(w, v) * d).sum()  # noqa: E731
        return plait.jit(plait.grad(slope, (0, 1)))(W, V)

    h = 1e-2
    at = lambda a, b: float((plait.grad(one, 1)(W + a * h, V + b * h * d) * d).sum())  # noqa: E731
    five = lambda g: (8 * (g(1) - g(-1)) - (g(2) - g(-2))) / (12 * h)  # noqa: E731
    by_w, by_v = twice(total)
    near = lambda got, want: np.testing.assert_allclose(got, want, rtol=3e-3, atol=2e-2)  # noqa: E731
    near(by_w, five(lambda k: at(k, 0)))
    near((by_v * d).sum(), five(lambda k: at(0, k)))


def test_types():
    mesh, seen = mesh_of_two(), {}

    def f(w, v):
        seen.update(
            w=w, v=v, product=w * v, sum=lax.psum(v, "x"), all=lax.psum(v, ("x", "y")),
            gathered=lax.all_gather(v, "x"), place=lax.axis_index("y"), const=pnp.ones(3),
            carry=lax.scan(lambda c, _: (c + v.sum(), None), w, None, 2)[0],
            cast=lax.pcast(w, "y", to="varying"),
            pcast=lax.pcast(w, ("x", "y"), to="varying"), sent=lax.ppermute(w, "y", [(0, 1)]),
        )  # fmt: skip
        return w

    shard_map(f, mesh=mesh, in_specs=(P(), P("x")), out_specs=P())(W, V)
    found = {k: "".join(sorted(plait.typeof(x).vma)) for k, x in seen.items()}
    assert found == {
        "w": "", "v": "x", "product": "x", "sum": "", "all": "", "gathered": "x", "place": "y",
        "const": "", "carry": "x", "cast": "y", "pcast": "xy", "sent": "y",
    }  # fmt: skip
    shard_map(f, mesh=mesh, in_specs=(P(), P("x")), out_specs=P(), check_vma=False)(W, V)
    assert not any(plait.typeof(x).vma for x in seen.values())
    plait.vmap(
        lambda v: seen.update(v=lax.pcast(v, "i", to="varying") * lax.axis_index("i")),
        axis_name="i",
    )(V)
    assert not plait.typeof(seen["v"]).vma


def test_refusals():
    over = lambda f: shard_map(f, mesh=make_mesh((8,), "i"), in_specs=P("i"), out_specs=P("i"))  # noqa: E731
    with pytest.raises(AxisError, match="no axis named 'z' is bound here"):
        over(lambda v: lax.pcast(v, "z", to="varying"))(V)
    with pytest.raises(AxisError, match="no axis named 'i' is bound here"):
        lax.pcast(V, "i", to="varying")
    with pytest.raises(TypeRule, match="pcast to 'alike'"):
        over(lambda v: lax.pcast(v, "i", to="alike"))(V)
    with pytest.raises(AxisError, match=r"do not divide the result of type f32\[\]\{i\} over 'i'"):
        shard_map(lambda v: v.sum(), mesh=make_mesh((8,), "i"), in_specs=P("i"), out_specs=P())(V)


def collectives(f, *xs):
    text = plait.jit(f).lower(*xs).compile().as_text()
    return text.count(" all-reduce("), text.count(" all-gather("), text.count(" reduce-scatter(")


def test_gradients_communicate_no_more_than_they_must():
    mesh = make_mesh((8,), "i")
    over = lambda g, i, o: shard_map(g, mesh=mesh, in_specs=i, out_specs=o)  # noqa: E731
    sharded = plait.device_put(V, plait.NamedSharding(mesh, P("i")))
    loss = over(lambda v: lax.psum((v**2).sum(), "i"), P("i"), P())
    assert collectives(plait.grad(loss), sharded) == (0, 0, 0)  # each has its own
    own = over(lambda w, v: plait.grad(lambda w: (w * v).sum())(w), (P(), P("i")), P())
    assert collectives(own, W, sharded) == (1, 0, 0)
    # a weight that every step uses: its gradient is summed once, not in every step
    steps = over(lambda w, v: lax.psum(scanned(w, v[0]), "i"), (P(), P("i")), P())
    assert collectives(plait.grad(steps), W, sharded) == (1, 0, 0)
    cell = plait.jit(lambda c, w: sin(c * w))
    turn = lambda w: lambda c, x: (cell(c, w) + x, None)  # noqa: E731
    deep = over(lambda w, v: lax.psum(lax.scan(turn(w), v[0, 0], v[0])[0], "i"), (P(), P("i")), P())
    assert collectives(plait.grad(deep), W, sharded) == (1, 0, 0)
    gather = over(lambda v: (lax.all_gather(v, "i") ** 2).sum()[None], P("i"), P("i"))
    got = collectives(plait.grad(lambda v: gather(v).sum()), sharded)
    assert got[0] + got[2] == 1 and got[1] == 1


def test_cotangents_are_summed_where_they_are_small():
    """What is broadcast on each device is summed over all when it is small again."""
    mesh = make_mesh((8,), "i")
    f = shard_map(lambda w, v: plait.grad(lambda w: (sin(v) * w * 2).sum())(w),
                  mesh=mesh, in_specs=(P(), P("i")), out_specs=P())  # fmt: skip
    text = plait.jit(f).lower(W, V).compile().as_text()
    (line,) = [x for x in text.splitlines() if " all-reduce(" in x]
    assert "f32[] all-reduce(" in line


def test_piles_on_each_device():
    """What rows of different lengths share is summed over them, and over devices."""
    mesh, lengths = make_mesh((8,), "i"), np.array([2, 0, 1], np.int32)

    def local(w, v):
        each = plait.vmap(lambda x: (sin(x * w) * w).sum(), in_axes=plait.pile_axis)
        return each(plait.Pile(v[0], lengths)).sum()

    over = lambda g: shard_map(g, mesh=mesh, in_specs=(P(), P("i")), out_specs=P())  # noqa: E731
    at = V.astype(float)
    want = (np.sin(at * W) + at * W * np.cos(at * W)).sum()
    np.testing.assert_allclose(plait.jit(over(plait.grad(local)))(W, V), want, rtol=1e-4)
    total = over(lambda w, v: lax.psum(local(w, v), "i"))
    np.testing.assert_allclose(plait.jit(plait.grad(total))(W, V), want, rtol=1e-4)


def test_a_weight_is_divided_along_one_axis_and_data_along_another():
    """Sums are along those axes only along which a weight is whole."""
    mesh = mesh_of_two()
    w = R.normal(size=(3, 8)).astype(np.float32)
    data = R.normal(size=(4, 3)).astype(np.float32)
    local = lambda w, v: (sin(v @ w) ** 2).sum()  # noqa: E731
    specs = {"mesh": mesh, "in_specs": (P(None, "y"), P("x")), "out_specs": P(None, "y")}
    got = plait.jit(shard_map(plait.grad(local), **specs))(w, data)
    z = data @ w
    np.testing.assert_allclose(got, data.T @ np.sin(2 * z), rtol=1e-4, atol=1e-4)


def test_spmd_axis_name_varies_too():
    """The elements of a batch that a vmap divides over an axis: what they share is summed."""
    mesh = mesh_of_two()
    inner = shard_map(lambda w, v: w * v, mesh=mesh, in_specs=(P(), P("y")), out_specs=P("y"))
    batch = R.normal(size=(4, 8)).astype(np.float32)
    f = plait.vmap(inner, (None, 0), spmd_axis_name="x")
    got = plait.jit(plait.grad(lambda w: f(w, batch).sum()))(W)
    np.testing.assert_allclose(got, batch.sum(), rtol=1e-4)


def test_nested():
    """A shard_map over other axes of the mesh: types inside say of both."""
    mesh, seen = mesh_of_two(), []

    def inner(w, v):
        seen.append(plait.typeof(w * v).vma)
        return plait.grad(lambda w: (w * w * v).sum())(w)

    def outer(w, v):
        f = shard_map(inner, mesh=mesh, in_specs=(P(), P("y")), out_specs=P(), axis_names={"y"})
        g = f(w, v[0])  # of one weight that all devices of both axes use
        seen.append(plait.typeof(g).vma)
        return g

    f = shard_map(outer, mesh=mesh, in_specs=(P(), P("x")), out_specs=P(), axis_names={"x"})
    v = R.normal(size=(2, 8)).astype(np.float32)
    np.testing.assert_allclose(plait.jit(f)(W, v), 2 * W * v.sum(), rtol=1e-4)
    assert [set(s) for s in seen] == [{"x", "y"}, set()]


def test_printed_and_read_again():
    mesh, kept = make_mesh((8,), "i"), []

    def f(v):
        p = plait.make_program(lambda w: sin(w) * 2)(v)
        kept.append((p, v.aval))
        return v

    shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(V)
    ((p, aval),) = kept
    assert repr(aval) == "f32[1,3]{i}" and "f32[1,3]{i}" in str(p)
    again = plait.text.parse(plait.text.show(p))
    assert again.out_avals == p.out_avals and aval in again.in_avals


# ---- sizes that differ from device to device

LENGTHS = np.array([3, 1, 0, 2, 5, 4, 1, 1], np.int32)  # two examples on each of four devices
ROWS = [R.normal(size=(n,)).astype(np.float32) for n in LENGTHS]


def on_four(f):
    """`f(pile of two examples, w)` on each of four devices; what it gives is equal on all."""
    room = max(a + b for a, b in LENGTHS.reshape(4, 2))
    data = np.zeros((4, room), np.float32)
    for i, row in enumerate(data):
        rows = np.concatenate(ROWS[2 * i : 2 * i + 2])
        row[: len(rows)] = rows
    mine = lambda rows, lengths, w: f(plait.Pile(rows[0], lengths), w)  # noqa: E731
    specs = P("d"), P("d"), P()
    mesh = make_mesh((4,), ("d",))
    return shard_map(mine, mesh=mesh, in_specs=specs, out_specs=P())(data, LENGTHS, W)


def over_examples(f):
    return lambda pile, w: plait.vmap(lambda x: f(x, w), in_axes=plait.pile_axis)(pile)


@pytest.mark.parametrize(
    "f", [lambda x, w: w * x.shape[0], lambda x, w: pnp.ones(x.shape).sum(), lambda x, w: x.sum(),
          lambda x, w: lax.scan(lambda c, _: (c + w, None), w, None, length=x.shape[0])[0]],
    ids=["a size as a number", "as a shape", "rows", "how often"],
)  # fmt: skip
def test_what_is_made_of_sizes_differs_as_they_do(f):
    with pytest.raises(AxisError, match="may differ from device to device"):
        on_four(over_examples(f))


SQUARES = {
    "broadcast": lambda x, w: (x * pnp.broadcast_to(w, x.shape) ** 2).sum(),
    "with itself": lambda x, w: (lambda v: (v * (v + x) - v * v).sum())(w * pnp.ones(x.shape)),
    "longer": lambda x, w: (pnp.concatenate([x, x]) * (w * pnp.ones(2 * x.shape[0])) ** 2).sum(),
}


@pytest.mark.parametrize("name", SQUARES)
def test_gradients_of_what_all_share_through_rows_of_each(name):
    """Inside of the map: each example's is summed over the devices."""
    loss = SQUARES[name]
    got = on_four(over_examples(lambda x, w: plait.grad(lambda w: loss(x, w))(w)))
    slope = {"broadcast": 2 * W, "with itself": 1, "longer": 4 * W}[name]
    want = np.array([slope * x.sum() for x in ROWS]).reshape(4, 2).sum(0)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_rows_that_all_devices_have_are_summed():
    """Of a pile that all have, each with a factor; of piles that differ that is refused."""
    mesh, pile = make_mesh((4,), ("d",)), plait.Pile(np.concatenate(ROWS[4:6]), LENGTHS[4:6])
    each = lambda x, m: (lax.psum(x * m, "d"), lax.pmax(x * m, "d"))  # noqa: E731
    f = lambda p, m: plait.vmap(  # noqa: E731
        lambda x: each(x, m[0]), in_axes=plait.pile_axis, out_axes=plait.pile_axis
    )(p)
    factors = np.arange(4, dtype=np.float32)
    total, most = shard_map(f, mesh=mesh, in_specs=(P(), P("d")), out_specs=P())(pile, factors)
    for a, b, x in zip(total.to_list(), most.to_list(), ROWS[4:6], strict=True):
        np.testing.assert_allclose(a, 6 * x, rtol=1e-6)
        np.testing.assert_allclose(b, np.maximum(3 * x, 0), rtol=1e-6)
    with pytest.raises(plait.errors.MissingRule, match="differ"):
        mine = over_examples(lambda x, w: lax.psum(x, "d").sum())
        on_four(lambda p, w: lax.psum(mine(p, w), "d"))


# ---- what users transpose themselves ---------------------------------------------------------

LINEAR = {
    "scaled": lambda v: v * 3,
    "sums": lambda v: pnp.cumsum(v * 3)[::-1],
    "product": lambda v: pnp.arange(6.0).reshape(2, 3) @ v,
    "gathered": lambda v: lax.all_gather(v, "x"),
}
ON_X = {"in_specs": P("x"), "out_specs": P("x")}


def transposed_twice(f, v):
    """The function, applied, and what its transpose makes of that."""
    return plait.linear_transpose(f, v)(f(v))[0]


@pytest.mark.parametrize("name", LINEAR)
def test_transposed_where_values_vary(name):
    """linear_transpose of what differs from device to device: its value, and derivatives of that
    made inside and outside."""
    f, on = LINEAR[name], make_mesh((4,), ("x",))
    rows = V[:4]

    def of_rows(v):
        one = lambda r: pnp.sin(transposed_twice(f, r))
        return plait.vmap(one, axis_name="x", axis_size=4)(v)

    def of_devices(v):
        return shard_map(lambda r: pnp.sin(transposed_twice(f, r[0]))[None], mesh=on, **ON_X)(v)

    np.testing.assert_allclose(of_devices(rows), of_rows(rows), rtol=1e-5)
    along = (rows,), (np.cos(rows),)
    np.testing.assert_allclose(
        plait.jvp(of_devices, *along)[1], plait.jvp(of_rows, *along)[1], rtol=1e-4, atol=1e-5
    )
    want = plait.grad(lambda v: of_rows(v).sum())(rows)
    for back in (plait.grad, lambda g: plait.jit(plait.grad(g))):
        got = back(lambda v: of_devices(v).sum())(rows)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_transposed_at_a_constant_that_varies():
    on, rows = make_mesh((4,), ("x",)), V[:4]

    def back(v):
        at = lax.pcast(pnp.zeros(3, "float32"), "x", to="varying")
        return plait.linear_transpose(lambda u: u * 3, at)(v[0])[0][None]

    np.testing.assert_allclose(shard_map(back, mesh=on, **ON_X)(rows), 3 * rows, rtol=1e-6)


@pytest.mark.parametrize("by", ["vjp", "linear_transpose", "shapes"])
def test_cotangents_that_vary_of_results_that_do_not(by):
    """Nobody has said whether they are to be added up."""

    def back(v, c):
        if by == "vjp":
            return plait.vjp(lambda w: w * 3, c)[1](v)[0] + 0 * v
        like = c if by == "linear_transpose" else plait.ShapeDtypeStruct(c.shape, c.dtype)
        return plait.linear_transpose(lambda w: w * 3, like)(v)[0] + 0 * v

    on = make_mesh((4,), ("x",))
    f = shard_map(back, mesh=on, in_specs=(P("x"), P()), out_specs=P("x"))
    with pytest.raises(TypeRule, match=r"along 'x', and the result.*\n.*\n.*lax.psum\(ct, 'x'\)"):
        f(V[:4], V[:1])
    added = shard_map(
        lambda v, c: plait.vjp(lambda w: w * 3, c)[1](lax.psum(v, "x"))[0] + 0 * v,
        mesh=on, in_specs=(P("x"), P()), out_specs=P("x"),
    )  # fmt: skip
    np.testing.assert_allclose(added(V[:4], V[:1])[0], 3 * V[:4].sum(0), rtol=1e-6)
