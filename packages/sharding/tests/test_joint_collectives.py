"""Collectives along several axes of a mesh are one operation, and sums of booleans count.

Invariant: compared with numpy, on the pieces in the order that the names give.
"""

import re

import numpy as np
import pytest

import plait
from plait import lax
from plait_sharding import P, make_mesh, shard_map

CUBE = make_mesh((2, 2, 2), ("a", "b", "c"))
X = np.random.default_rng(0).normal(size=(8, 8, 3)).astype(np.float32)
ORDERS = [("a", "b"), ("c", "a"), ("b", "c", "a"), ("a", "b", "c")]
OPERATIONS = {
    "all_gather": "all_gather",
    "psum_scatter": "reduce_scatter",
    "all_to_all": "all_to_all",
    "ppermute": "collective_permute",
    "psum": "all_reduce",
}


def ring(n):
    return [(i, (i + 3) % n) for i in range(n - 1)]


def spoken(kind, names, size):
    """A function of a device's piece (8, 3) that speaks of these axes together."""
    return {
        "all_gather": lambda v: lax.all_gather(v, names),
        "psum_scatter": lambda v: lax.psum_scatter(v[:size], names),
        "all_to_all": lambda v: lax.all_to_all(v[:size], names, 0, 1),
        "ppermute": lambda v: lax.ppermute(v, names, ring(size)),
        "psum": lambda v: lax.psum(v, names),
    }[kind]


def wanted(kind, rows):
    """The same, for the pieces of those who do it together."""
    n = len(rows)
    return {
        "all_gather": [rows] * n,
        "psum_scatter": list(rows[:, :n].sum(0)),
        "all_to_all": [rows[:, i].T for i in range(n)],
        "ppermute": [
            rows[(i - 3) % n] if ((i - 3) % n, i) in ring(n) else 0 * rows[i] for i in range(n)
        ],
        "psum": [rows.sum(0)] * n,
    }[kind]


def by_hand(kind, names):
    """What the eight devices have at the end."""
    place = {d: dict(zip("abc", np.unravel_index(d, (2, 2, 2)))) for d in range(8)}
    number = {
        d: int(sum(p[n] * 2**k for k, n in enumerate(reversed(names)))) for d, p in place.items()
    }
    out = {}
    for d, p in place.items():
        group = [e for e in range(8) if all(place[e][n] == p[n] for n in "abc" if n not in names)]
        group.sort(key=number.get)
        out[d] = wanted(kind, X[group])[group.index(d)]
    return np.stack([out[d] for d in range(8)])


def on_cube(f):
    return shard_map(
        lambda v: f(v[0])[None],
        mesh=CUBE,
        in_specs=P(("a", "b", "c")),
        out_specs=P(("a", "b", "c")),
    )


@pytest.mark.parametrize("names", ORDERS, ids=str)
@pytest.mark.parametrize("kind", OPERATIONS)
def test_one_operation_along_several_axes(kind, names, close):
    f = on_cube(spoken(kind, names, 2 ** len(names)))
    want = by_hand(kind, names)
    close(f(X), want)
    close(plait.jit(f)(X), want)
    text = plait.jit(f).lower(X).as_text()
    counts = {op: len(re.findall(rf"stablehlo\.{op}\b", text)) for op in OPERATIONS.values()}
    assert counts == {op: int(op == OPERATIONS[kind]) for op in OPERATIONS.values()}


@pytest.mark.parametrize("kind", ["all_gather", "psum_scatter", "all_to_all", "ppermute"])
def test_axes_of_two_shard_maps_are_of_one_mesh(kind, close):
    """The outer one divides by a, the inner one by b and c; the collective is along all."""
    names = ("c", "a", "b")
    inner = shard_map(
        lambda v: spoken(kind, names, 8)(v[0])[None],
        mesh=CUBE,
        in_specs=P(("b", "c")),
        out_specs=P(("b", "c")),
        axis_names={"b", "c"},
    )
    f = shard_map(inner, mesh=CUBE, in_specs=P("a"), out_specs=P("a"), axis_names={"a"})
    close(plait.jit(f)(X), by_hand(kind, names))


GROUPS = [[0, 3, 5, 6], [1, 2, 4, 7]]


@pytest.mark.parametrize("names", [("a", "b", "c"), ("c", "a", "b")], ids=str)
@pytest.mark.parametrize("kind", ["all_gather", "psum_scatter", "all_to_all", "psum"])
def test_groups_of_positions_along_several_axes(kind, names, close):
    """Positions are counted with the first name slowest."""
    speak = {
        "all_gather": lambda v: lax.all_gather(v, names, axis_index_groups=GROUPS),
        "psum_scatter": lambda v: lax.psum_scatter(v[:4], names, axis_index_groups=GROUPS),
        "all_to_all": lambda v: lax.all_to_all(v[:4], names, 0, 1, axis_index_groups=GROUPS),
        "psum": lambda v: lax.psum(v, names, axis_index_groups=GROUPS),
    }[kind]
    device = np.arange(8).reshape(2, 2, 2).transpose([names.index(n) for n in "abc"])
    device = np.argsort(device.ravel())  # the device at each position
    want = np.empty(8, object)
    for group in GROUPS:
        members = device[group]
        for d, value in zip(members, wanted(kind, X[members])):
            want[d] = value
    want = np.stack(list(want))
    close(on_cube(speak)(X), want)
    close(plait.jit(on_cube(speak))(X), want)


def test_programs_say_it(close):
    """They are read from the text of a program."""
    f = on_cube(
        lambda v: lax.all_gather(v, ("c", "a")).sum(0) + lax.psum_scatter(v, ("a", "b", "c"))
    )
    p = plait.make_program(f)(X)
    assert "name=('c', 'a')" in str(p)
    (inner,) = [e.params["program"] for e in p.eqns if "program" in e.params]
    assert plait.text.same_program(plait.text.parse(str(inner)), inner)
    want = (
        by_hand("all_gather", ("c", "a")).sum(1) + by_hand("psum_scatter", ("a", "b", "c"))[:, None]
    )
    (got,) = plait.ext.evaluate(p, [plait.numpy.asarray(X)])
    close(got, want)


# ---- booleans --------------------------------------------------------------------------------


def test_sums_of_booleans_count(mesh):
    x = X[:, :, 0] > 0
    for names, axis in (("x", 0), (("x", "y"), 0)):
        over = shard_map(
            lambda v, n=names: (
                lax.psum(v[0], n),
                lax.pmean(v[0], n),
                lax.psum_scatter(v[0], n, tiled=True),
            ),
            mesh=make_mesh((8,), "x") if names == "x" else mesh,
            in_specs=P(names),
            out_specs=(P(), P(), P(names)),
        )
        total, mean, scattered = over(x)
        assert total.dtype == np.int32 == scattered.dtype
        np.testing.assert_array_equal(total, x.sum(axis))
        np.testing.assert_allclose(mean, x.mean(axis), rtol=1e-6)
        np.testing.assert_array_equal(scattered, x.sum(axis))
    most = shard_map(
        lambda v: lax.pmax(v[0], "x"), mesh=make_mesh((8,), "x"), in_specs=P("x"), out_specs=P()
    )
    np.testing.assert_array_equal(most(x), x.any(0))
    sent = shard_map(
        lambda v: lax.pbroadcast(v[0], "x", 3),
        mesh=make_mesh((8,), "x"),
        in_specs=P("x"),
        out_specs=P(),
    )
    np.testing.assert_array_equal(sent(x), x[3])
    assert sent(x).dtype == bool


def test_no_spec_is_not_divided(mesh, close):
    f = shard_map(
        lambda x, t: x * t["w"].sum(), mesh=mesh, in_specs=(P("x"), {"w": None}), out_specs=P("x")
    )
    close(f(X, {"w": np.ones(3, np.float32)}), X * 3)
    close(shard_map(lambda x: x * 2, mesh=mesh, in_specs=None, out_specs=P())(X), X * 2)
    close(
        shard_map(lambda x, n: x * 2, mesh=mesh, in_specs=(P("x"), None), out_specs=P("x"))(
            X, None
        ),
        X * 2,
    )


def test_like_a_sharded_array_lies_like_it(lies):
    x = plait.device_put(X, lies("x", None))
    pnp = plait.numpy
    for made in (pnp.zeros_like(x), pnp.ones_like(x), pnp.full_like(x, 2), pnp.empty_like(x)):
        assert made.sharding.is_equivalent_to(lies("x", None), 3)
    assert pnp.zeros_like(x, shape=(3, 3)).shape == (3, 3)
