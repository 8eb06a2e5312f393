"""pmap: axes in and out, derivatives, maps in maps, and what it says."""

import itertools

import numpy as np
import pytest

import plait
from plait import lax
from plait.events import counting
from plait.ext.errors import AxisError, TreeMismatch

pnp = plait.numpy
R = np.random.default_rng(1)
X = R.normal(size=(2, 2, 2)).astype(np.float32)
Y = R.normal(size=(2, 2, 2)).astype(np.float32)
TWO = np.arange(2, dtype=np.float32)


@pytest.mark.feature("S01")
def test_an_argument_that_all_get(close):
    one, other = plait.pmap(lambda x, y: (x + y, y * 2.0), in_axes=(0, None))(TWO, 4.0)
    close(one, [4, 5])
    close(other, [8, 8])
    tree = plait.pmap(lambda d, y: d["a"] * y + d["b"].sum(), in_axes=({"a": 1, "b": None}, 0))
    close(tree({"a": X[0], "b": Y}, TWO), X[0].T * TWO[:, None] + Y.sum())
    close(plait.pmap(lambda x, *, y: x * y)(TWO, y=TWO), TWO * TWO)
    assert [s.device.id for s in plait.pmap(lambda x: x + 1)(TWO).addressable_shards] == [0, 1]
    where = plait.pmap(lambda x: x + 1, devices=plait.devices()[5:3:-1])(TWO)
    assert where.devices() == set(plait.devices()[4:6])
    with pytest.raises(plait.PlaitError, match="pmap got no devices"):
        plait.pmap(lambda x: x, devices=[])
    close(where, [1, 2])


@pytest.mark.feature("S02")
def test_nested(close):
    z = R.normal(size=(3, 2)).astype(np.float32)
    add = lambda x, y: x + 2 * y  # noqa: E731
    inner = plait.pmap(add, in_axes=(0, None))
    close(plait.pmap(inner, in_axes=(None, 0))(z[:, 0], z[0]), z[:, 0] + 2 * z[0][:, None])
    inner = plait.pmap(add, in_axes=(None, 0))
    close(plait.pmap(inner, in_axes=(0, None))(z[:, 0], z[0]), z[:, 0][:, None] + 2 * z[0])
    sums = plait.pmap(lambda r: plait.pmap(lambda v: v - lax.psum(v, ("i", "j")), "j")(r), "i")
    close(sums(z), z - z.sum())
    own = plait.pmap(lambda r: plait.pmap(lambda v: v - lax.psum(v, "i"), "i")(r), "i")
    close(own(z), z - z.sum(1, keepdims=True))


@pytest.mark.feature("S03")
@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: plait.pmap(lambda x, y: x)(TWO, np.ones(3)), AxisError,
         r"pmap: the mapped axes differ in size: argument `x` has 2 .*`y` has 3"),
        (lambda: plait.pmap(lambda x: x, axis_size=3)(TWO), AxisError, "axis_size=3"),
        (lambda: plait.pmap(lambda x: x, in_axes=None)(TWO), AxisError,
         "pmap: no argument is mapped"),
        (lambda: plait.pmap(lambda x: x)(1.0), AxisError, r"axis 0 of argument `x` of type f32"),
        (lambda: plait.pmap(lambda x: x, in_axes=(0, 0))(TWO), AxisError, "2 entries for 1"),
        (lambda: plait.pmap(lambda x: x)(np.ones(9)), AxisError, "9 elements .* there are 8"),
        (lambda: plait.pmap(lambda x: object())(TWO), TypeError, "is not an array"),
    ],
)  # fmt: skip
def test_messages(call, kind, text):
    with pytest.raises(kind, match=text) as e:
        call()
    assert e.value.fix and __file__ in e.value.where


@pytest.mark.feature("S03")
def test_results_are_stacked_in_front():
    assert plait.pmap(lambda x: x)(X).shape == X.shape
    assert plait.pmap(lambda x: x[0, 0], in_axes=2)(np.ones((4, 3, 2))).shape == (2,)


@pytest.mark.feature("S04", "S05")
def test_axes_in_and_out(close):
    y = R.normal(size=(3, 2, 4)).astype(np.float32)
    z = R.normal(size=(3, 4, 2)).astype(np.float32)
    f = plait.pmap(lambda x, y: pnp.sin(x * y), in_axes=(1, 2))
    want = np.sin(y.transpose(1, 0, 2) * z.transpose(2, 0, 1))
    close(f(y, z), want)
    close(plait.pmap(lambda x, y: pnp.sin(x * y), in_axes=(-2, -1), out_axes=-1)(y, z),
          np.moveaxis(want, 0, -1))  # fmt: skip
    out = plait.pmap(
        lambda x: {"a": x, "b": (x * 2, x.sum())}, in_axes=1, out_axes={"a": 2, "b": (1, 0)}
    )(y)
    close(out["a"], np.moveaxis(y, 1, 2))
    close(out["b"][0], 2 * y)
    close(out["b"][1], y.sum((0, 2)))


def g(x, y, z):
    return pnp.sin(x * y) * z


@pytest.mark.feature("S04", "S05", "S07", "S09")
def test_derivatives_over_all_axes(close):
    """As of vmap: two orders, every place in and out of it, None too."""
    for a, b, o in [(0, 2, 0), (1, None, 2), (None, 1, 1), (2, 0, -1)]:

        def both(mapped, a=a, b=b, o=o):
            m = mapped(g, in_axes=(a, b, None), out_axes=o)
            loss = lambda x, y: (m(x, y, 2.0) ** 2).sum()  # noqa: E731
            first = plait.grad(loss, (0, 1))
            return plait.jit(lambda x, y: (first(x, y), plait.jvp(first, (x, y), (y, x))[1]))(X, Y)

        for got, want in zip(
            *map(plait.tree.leaves, (both(plait.pmap), both(plait.vmap))), strict=True
        ):
            close(got, want)


@pytest.mark.feature("S06", "S07")
def test_results_that_are_the_same_everywhere(close):
    same = plait.pmap(lambda x, y: y, in_axes=(0, None), out_axes=None)(TWO, X)
    assert same.shape == X.shape and same.sharding.is_fully_replicated
    close(same, X)
    with pytest.raises(AxisError, match="may differ from device to device"):
        plait.pmap(lambda x: x, out_axes=None)(TWO)


@pytest.mark.feature("S06", "S07")
def test_results_of_the_first_device(close):
    """Without the check a result that differs is the first device's, and so are its derivatives."""

    def f(x):
        return {"own": x * x, "sum": lax.psum(x, "i")}, x

    m = plait.pmap(f, axis_name="i", out_axes=({"own": None, "sum": None}, 0), check_vma=False)
    out, rest = m(TWO)
    close(out["own"], TWO[0] ** 2)
    close(out["sum"], TWO.sum(0))
    close(rest, TWO)
    assert out["own"].sharding.is_fully_replicated and out["sum"].sharding.is_fully_replicated
    want = np.zeros_like(TWO)
    want[0] = 2 * TWO[0]
    close(plait.grad(lambda x: m(x)[0]["own"].sum())(TWO), want)
    close(plait.grad(lambda x: m(x)[0]["sum"].sum())(TWO), np.ones_like(TWO))
    inside = plait.pmap(lambda x: m(x)[0]["own"])(np.stack([TWO, TWO + 1]))
    close(inside, np.stack([TWO[0] ** 2, (TWO[0] + 1) ** 2]))


@pytest.mark.feature("S06")
def test_sums_of_all_devices(close):
    total = lambda m: (
        lambda x: (  # noqa: E731
            m(
                lambda v: (lax.psum(v * v, "i"), v * 2),
                in_axes=1,
                out_axes=(None, 0),
                axis_name="i",
            )(x)
        )
    )
    loss = lambda m: lambda x: (total(m)(x)[0] ** 2).sum() + total(m)(x)[1].sum()  # noqa: E731
    for got, want in zip(total(plait.pmap)(X), total(plait.vmap)(X)):
        close(got, want)
    h = lambda m: plait.jit(lambda x: plait.jvp(plait.grad(loss(m)), (x,), (Y,)))(X)  # noqa: E731
    for got, want in zip(h(plait.pmap), h(plait.vmap)):
        close(got, want)
    f = plait.jit(loss(plait.pmap))
    step = 1e-2 * Y  # along a line, by differences
    close((f(X + step) - f(X - step)) / 2, (np.asarray(h(plait.vmap)[0]) * step).sum())


@pytest.mark.feature("S08")
def test_out_axes_that_do_not_fit():
    f = lambda x: {"a": x, "b": (x, x)}  # noqa: E731
    assert plait.pmap(f, out_axes={"a": 0, "b": 1})(X)["b"][1].shape == X.shape
    for wrong in ({"a": 0}, {"a": 0, "b": (0, 0, 0)}, (0, 0), {"a": 0, "b": "x"}):
        with pytest.raises(TreeMismatch, match="out_axes"):
            plait.pmap(f, out_axes=wrong)(X)
    with pytest.raises(AxisError, match="out_axes"):
        plait.pmap(f, out_axes=5)(X)


@pytest.mark.feature("S09")
def test_under_other_transformations(close):
    """What they add to the results does not disturb where these go."""
    f = lambda m: m(lambda x, c: (x * c, pnp.sin(x).sum()), in_axes=(1, None), out_axes=(2, 0))  # noqa: E731
    p, v = f(plait.pmap), f(plait.vmap)
    uses = [
        lambda h: h(X, 3.0),
        lambda h: plait.jvp(h, (X, 3.0), (Y, 1.0)),
        lambda h: plait.linearize(h, X, 3.0)[1](Y, 1.0),
        lambda h: plait.vjp(h, X, 3.0)[1]((Y, TWO)),
        lambda h: plait.vmap(h, (None, 0), 1)(X, TWO),
        lambda h: plait.grad(plait.checkpoint(lambda x: sum([o.sum() for o in h(x, 2.0)])))(X),
        lambda h: lax.scan(lambda c, x: (h(c, x)[0], h(c, x)[1]), pnp.asarray(X), TWO),
    ]
    each = lambda h: plait.jit(lambda: [use(h) for use in uses])()  # noqa: E731
    for got, want in zip(plait.tree.leaves(each(p)), plait.tree.leaves(each(v)), strict=True):
        close(got, want)


@pytest.mark.feature("S10")
def test_equal_ones_are_compiled_once(close):
    f = lambda x, y: (x + y.T, x * 2)  # noqa: E731
    for a, b, c, d in itertools.product((0, 2), (1,), (0, 1), (0, 2)):
        make = lambda a=a, b=b, c=c, d=d: plait.pmap(f, in_axes=(a, b), out_axes=(c, d))  # noqa: E731
        one, other = make()(X, Y)
        with counting() as n:
            again = make()(X, Y)
        assert n["compile"] == 0, (a, b, c, d)
        x, y = np.moveaxis(X, a, 0), np.moveaxis(Y, b, 0)
        close(one, np.moveaxis(x + y.transpose(0, 2, 1), 0, c))
        close(other, np.moveaxis(2 * x, 0, d))
        close(again[0], one)


@pytest.mark.feature("S11")
def test_donation(close):
    x = plait.pmap(lambda x: x)(np.ones((8, 3), np.float32))
    y = plait.pmap(lambda x: x + x - x, donate_argnums=0)(x)
    assert x.is_deleted() and not y.is_deleted()
    close(y, np.ones((8, 3)))


@pytest.mark.feature("B12")
def test_inside_of_vmap(close):
    big = R.normal(size=(3, 2, 2, 2)).astype(np.float32)
    for d, a, o, e in itertools.product((0, 1, 3), (0, 2), (0, 1), (0, 2)):
        f = plait.pmap(lambda x: pnp.sin(x) + x[0], in_axes=a, out_axes=o)
        rows = np.moveaxis(big, 0, d)
        want = np.stack(
            [np.stack([np.sin(s) + s[0] for s in np.moveaxis(r, a, 0)], o) for r in big],
            e,
        )
        close(plait.vmap(f, d, e)(rows), want)


@pytest.mark.feature("B13")
def test_what_is_closed_over_is_mapped(close):
    f = lambda z: plait.pmap(lambda c: c * z, out_axes=2)(TWO + 1)  # noqa: E731
    want = np.stack([X, 2 * X], -1)
    close(plait.vmap(f)(X), want)
    close(plait.vmap(plait.grad(lambda z: f(z).sum()))(X), np.full_like(X, 3))
    close(
        plait.jit(plait.vmap(lambda z: plait.pmap(lambda c: c * z)(TWO + 1)))(TWO), [[0, 0], [1, 2]]
    )


def test_static_arguments(close):
    f = plait.pmap(lambda x, n, y: x * n + y, in_axes=(0, None, 1), static_broadcasted_argnums=1)
    close(f(TWO, 3, X[0]), (TWO * 3 + X[0]).T)
