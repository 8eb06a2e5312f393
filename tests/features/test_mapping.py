"""What is promised of vmap: its axes, its messages, what programs it makes.

Invariant: values are those of numpy or of a Python loop over the elements.
"""

import gc
import itertools
import weakref

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait._core.lift_higher_order import lift_program
from plait.ext.errors import AxisError, MissingRule, TreeMismatch, TypeRule
from plait.ext.values import Array
from plait_batching.ext import Batch, batching_rules

pnp = plait.numpy
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def names(program):
    """The primitives of a program with the types of their results."""
    return [(e.prim.name, e.outputs[0].aval.shape) for e in program.eqns]


# ---- axes ------------------------------------------------------------------------------------


@pytest.mark.feature("B01")
def test_elements_lack_the_mapped_axis():
    seen = []
    plait.vmap(lambda x: (seen.append(x.shape), x)[1])(np.zeros((3, 4)))
    plait.vmap(lambda x: (seen.append(x.shape), x)[1], 1)(np.zeros((3, 4)))
    assert seen == [(4,), (3,)]
    plait.vmap(lambda x, c: (seen.append(c), x)[1], (0, None))(X, pnp.ones(2))
    assert seen[-1].__class__ is Array  # what does not vary is passed as it is
    prim = ext.Primitive("features.wrong", lambda x: x)
    ext.lower_rules.rule(prim)(lambda e, xs, ins, outs: xs[0])
    batching_rules.rule(prim)(lambda b, xs, dims: (xs[0], 1))
    with pytest.raises(AxisError, match="axis 1 of f32.2,3. is the mapped one, of size 2"):
        plait.vmap(lambda x: prim(x))(X)


@pytest.mark.feature("B02")
def test_an_escaped_value_tells_its_line():
    kept = []
    plait.vmap(lambda x: (kept.append(x * 2), x)[1])(X)
    line = test_an_escaped_value_tells_its_line.__code__.co_firstlineno + 3
    with pytest.raises(plait.errors.UnexpectedTracerError) as e:
        kept[0] + 1
    assert "<Batch f32[3]>" in str(e.value)
    assert f"created on line {__file__}:{line}" in str(e.value)


@pytest.mark.feature("B03")
def test_an_operation_without_rules():
    prim = ext.Primitive("features.unknown", lambda x: x)
    ext.lower_rules.rule(prim)(lambda e, xs, ins, outs: xs[0])
    with pytest.raises(MissingRule, match="features.unknown") as e:
        plait.vmap(lambda x: prim(x))(X)
    assert isinstance(e.value, NotImplementedError) and "batching" in str(e.value)
    np.testing.assert_array_equal(plait.vmap(lambda x: prim(3.0) + x)(X), X + 3)


@pytest.mark.feature("B04")
def test_the_innermost_axis_of_a_name():
    f = plait.vmap(
        lambda x: plait.vmap(lambda y: lax.psum(y, "i"), axis_name="i")(x), axis_name="i"
    )
    np.testing.assert_array_equal(f(X), np.repeat(X.sum(1, keepdims=True), 3, 1))
    g = plait.vmap(
        lambda x: plait.vmap(lambda y: lax.psum(y, "o"), axis_name="i")(x), axis_name="o"
    )
    np.testing.assert_array_equal(plait.jit(g)(X), np.repeat(X.sum(0)[None], 2, 0))


@pytest.mark.feature("B05")
def test_what_does_not_vary_is_not_mapped():
    program = plait.make_program(plait.vmap(lambda x, c: (x, lax.sin(c)), (0, None)))(X, 1.0)
    assert ("core.sin", ()) in names(program)
    assert [e.prim.name for e in program.eqns if e.outputs[0].aval.shape == (2,)] == [
        "core.broadcast_in_dim"
    ]


@pytest.mark.feature("B06")
def test_in_axes():
    for axis, want in [(-1, X.T), (1, X.T), (-2, X), (0, X)]:
        np.testing.assert_array_equal(plait.vmap(lambda x: x * 1, axis)(X), want)
    y = np.ones((4, 3, 2), np.float32)  # each counts from the end of its own argument
    got = plait.vmap(lambda x, y, c: x.sum() + y.sum() + c, (-1, -2, None))(X, y, 1.0)
    np.testing.assert_array_equal(got, X.sum(0) + 8 + 1)
    for axis in (2, -3):
        with pytest.raises(AxisError, match=rf"axis {axis} of argument `x` of type f32.2,3."):
            plait.vmap(lambda x: x, axis)(X)


@pytest.mark.feature("B07")
def test_out_axes():
    f = lambda x, y: (x + y, y * 2.0)  # noqa: E731
    two = np.arange(2, dtype=np.float32)
    one, other = plait.vmap(f, in_axes=(0, None), out_axes=(0, None))(two, 4.0)
    np.testing.assert_array_equal(one, [4, 5])
    assert other.shape == () and other.item() == 8
    one, other = plait.vmap(f, in_axes=(0, None), out_axes=0)(two, 4.0)
    np.testing.assert_array_equal(one, [4, 5])
    np.testing.assert_array_equal(other, [8, 8])
    for axis in range(-3, 3):
        got = plait.vmap(lambda x: pnp.stack([x, x]), out_axes=axis)(X)
        np.testing.assert_array_equal(got, np.stack([np.stack([r, r]) for r in X], axis))
    both = lambda c: plait.vmap(lambda x, c: x * c, (0, None))(X[:, 0], c).sum()  # noqa: E731
    assert (
        plait.grad(both)(2.0).item() == X[:, 0].sum()
    )  # cotangents of what does not vary are summed


# ---- messages --------------------------------------------------------------------------------


@pytest.mark.feature("B08")
def test_a_result_that_varies_where_it_must_not():
    with pytest.raises(ValueError, match="varies along the mapped axis, and its out_axes says"):
        plait.vmap(lambda x: x, out_axes=None)(X)
    text = r"varies along the mapped axis \(axis_name='i'\), and its out_axes says"
    with pytest.raises(ValueError, match=text):
        plait.vmap(lambda x: x, out_axes=None, axis_name="i")(X)


@pytest.mark.feature("B09")
def test_a_result_that_is_no_array():
    with pytest.raises(TypeError, match=r"the result\['a'\] of f, <object .* of type object is"):

        def f(x):
            return {"a": object()}

        plait.vmap(f)(X)


@pytest.mark.feature("B10")
@pytest.mark.parametrize(
    ("call", "kind", "texts"),
    [
        (lambda: plait.vmap(lambda x: x)(1.0), AxisError, ("axis 0 of argument `x`", "f32[]")),
        (lambda: plait.vmap(lambda x: x, [0, 1])(X), AxisError, ("in_axes has 2 entries for 1",)),
        (lambda: plait.vmap(lambda x: x, [1.0])(X), TreeMismatch, ("in_axes", "1.0")),
        (lambda: plait.vmap(lambda x: x, 1.0), TypeRule, ("in_axes is one axis for all", "1.0")),
        (lambda: plait.vmap(lambda x: x, None)(X), AxisError, ("nothing is mapped",)),
        (lambda: plait.vmap(lambda x: x, 1)(X[0]), AxisError, ("axis 1 of argument `x`", "f32[3]")),
        (
            lambda: plait.vmap(lambda x: (x, x), out_axes=(0, 0, 0))(X),
            TreeMismatch,
            ("out_axes does not fit", "tree prefix"),
        ),
        (
            lambda: plait.vmap(lambda x, y, z: x, (0, None, 0))(X, None, np.zeros(3)),
            AxisError,
            ("the mapped axes differ in size", "`x` has 2", "`z` has 3"),
        ),
        (
            lambda: plait.vmap(lambda x, y: x, (0, 0), axis_size=4)(X, X),
            AxisError,
            ("differ in size", "axis_size=4"),
        ),
    ],
)
def test_messages(call, kind, texts):
    with pytest.raises(kind) as e:
        call()
    assert all(t in e.value.what + e.value.fix for t in texts), str(e.value)
    assert e.value.fix and __file__ in e.value.where


# ---- calls, maps in maps ---------------------------------------------------------------------


@pytest.mark.feature("B11")
def test_calls_stay_calls():
    def named(x, c):
        return lax.sin(x) * c

    for f in (plait.vmap(plait.jit(named), (0, None)), plait.jit(plait.vmap(named, (0, None)))):
        np.testing.assert_allclose(f(X, 2.0), np.sin(X) * 2, rtol=1e-5)
    program = plait.make_program(plait.vmap(plait.jit(named), (0, None)))(X, 2.0)
    (e,) = [e for e in program.eqns if e.prim.name == "core.call"]
    assert e.params["program"].name == "named"
    assert [a.shape for a in e.params["program"].in_avals] == [(2, 3), ()]


@pytest.mark.feature("B12")
def test_maps_of_maps():
    """Every axis that two maps can take in and give out, over devices inside, against loops."""
    y = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    mesh = plait.make_mesh((1,), ("d",))
    for a, b, c, d in itertools.product((0, 2), (0, 1), (0, 1), (0, 2)):
        inner = plait.vmap(lambda x: x * 2 + x.sum(), b, c)
        want = np.stack(
            [
                np.stack([s * 2 + s.sum() for s in np.moveaxis(r, b, 0)], c)
                for r in np.moveaxis(y, a, 0)
            ],
            d,
        )
        np.testing.assert_array_equal(plait.vmap(inner, a, d)(y), want)
        if (a, c) == (0, 0):
            spec = plait.P(*[None, "d"][:b], "d") if b else plait.P("d")
            apart = plait.shard_map(inner, mesh=mesh, in_specs=spec, out_specs=plait.P("d"))
            np.testing.assert_array_equal(plait.vmap(apart, a, d)(y), want)


@pytest.mark.feature("B13")
def test_nothing_mapped_but_what_is_closed_over():
    """Calls, loops, maps and devices inside, whose own operands do not vary."""
    mesh = plait.make_mesh((1,), ("d",))
    put = plait.shard_map
    inner = {
        "call": lambda z: plait.jit(lambda c: c * z)(2.0),
        "map": lambda z: plait.vmap(lambda c: c * z, out_axes=1)(np.ones(2, np.float32))[:, 1] * 2,
        "loop": lambda z: lax.scan(lambda c, _: (c * 2 * z, None), 1.0 + 0 * z, None, length=1)[0],
        "devices": lambda z: put(
            lambda c: c * z, mesh=mesh, in_specs=plait.P(), out_specs=plait.P()
        )(np.float32(2)),
        "branch": lambda z: lax.cond(True, lambda: 2 * z, lambda: z),
    }
    for name, f in inner.items():
        np.testing.assert_array_equal(plait.vmap(f)(X), 2 * X, err_msg=name)
        np.testing.assert_array_equal(plait.jit(plait.vmap(f, 1, 1))(X), 2 * X, err_msg=name)
        g = plait.grad(lambda x: plait.vmap(f)(x).sum())
        np.testing.assert_array_equal(g(X), np.full_like(X, 2), err_msg=name)
        both = plait.vmap(plait.grad(lambda z: f(z).sum()))
        np.testing.assert_array_equal(both(X), np.full_like(X, 2), err_msg=name)


def test_numbers_of_elements_are_made_when_asked_for():
    text = plait.jit(plait.vmap(lambda x: lax.sin(x), axis_name="i")).lower(X).as_text()
    assert "iota" not in text
    f = plait.vmap(lambda x: x + lax.axis_index("i") + lax.axis_index("i"), axis_name="i")
    assert plait.jit(f).lower(X[:, 0]).as_text().count("iota") <= 2
    np.testing.assert_array_equal(f(X[:, 0]), X[:, 0] + [0, 2])


# ---- programs --------------------------------------------------------------------------------


def mapped(program, forms, out_forms=None):
    return lift_program(Batch(None, 2, None), program, forms, out_forms)


@pytest.mark.feature("B41", "B42", "B43")
def test_mapped_programs():
    """Where results vary is found, or told: axes of outputs are any, one program for each."""
    p = plait.make_program(lambda x, c: (x * c, c + 1))(X[0], 1.0)
    q, out = mapped(p, (0, None))
    assert out == (0, None)
    assert [a.shape for a in q.out_avals] == [(2, 3), ()]
    q, out = mapped(p, (1, None))
    assert out == (1, None) and q.in_avals[0].shape == (3, 2) == q.out_avals[0].shape
    q, out = mapped(p, (0, None), (0, 0))
    assert out == (0, 0) and [a.shape for a in q.out_avals] == [(2, 3), (2,)]
    q, out = mapped(p, (0, None), (1, None))
    assert out == (1, None) and [a.shape for a in q.out_avals] == [(3, 2), ()]
    with pytest.raises(AxisError, match="varies along the mapped axis where it must not"):
        mapped(p, (0, None), (None, None))


@pytest.mark.feature("B44")
def test_mapped_programs_are_kept_with_the_program():
    p = plait.make_program(lambda x: lax.sin(x))(X[0])
    q = mapped(p, (0,))[0]
    assert mapped(p, (0,))[0] is q
    assert mapped(p, (1,))[0] is not q
    gone = weakref.ref(q)
    del p, q
    gc.collect()
    assert gone() is None


BODIES = {
    "scan": lambda x: lax.scan(lambda c, v: (lax.psum(c, "i") * v, c), x[0], x)[0],
    "while": lambda x: lax.while_loop(
        lambda s: lax.psum(s[1], "i") < 40, lambda s: (s[0] + 1, lax.psum(s[1], "i")), (0, x.sum())
    )[1],
    "cond": lambda x: lax.cond(
        lax.psum(x[0], "i") > 0, lambda: lax.psum(x[1], "i") * x[0], lambda: x[2]
    ),
    "custom_jvp": lambda x: with_rule(x[1]),
    "checkpoint": lambda x: plait.checkpoint(lambda v: lax.psum(v, "i") * v)(x[2]),
}


def with_rule(v):
    f = plait.custom_jvp(lambda v: lax.psum(v, "i") * v)
    f.defjvp(lambda p, t: (f(p[0]), t[0]))
    return f(v)


def looped(name):
    a = X.sum(0)
    if name == "scan":
        c = X[:, 0]
        for v in X.T:
            c = c.sum() * v
        return c
    if name == "while":
        s = X.sum(1)
        while s.sum() < 40:
            s = np.full(2, s.sum())
        return s
    k, column = {"cond": (1, 0), "custom_jvp": (1, 1), "checkpoint": (2, 2)}[name]
    return a[k] * X[:, column]


@pytest.mark.feature("B45")
@pytest.mark.parametrize("name", BODIES)
def test_collectives_in_bodies(name):
    f = plait.vmap(BODIES[name], axis_name="i")
    np.testing.assert_allclose(f(X), looped(name))
    np.testing.assert_allclose(plait.jit(f)(X), looped(name))


@pytest.mark.feature("B46")
def test_several_names_in_every_order():
    y = np.arange(24, dtype=np.float32).reshape(2, 3, 4) ** 2
    which = {"i": 0, "j": 1, "k": 2}
    pairs = [p for n in (1, 2, 3) for p in itertools.permutations("ijk", n)]
    reduced = [(lax.psum, np.sum), (lax.pmax, np.max), (lax.pmin, np.min)]

    def f(x):
        return [x - r(x, p if len(p) > 1 else p[0]) for r, _ in reduced for p in pairs]

    want = [y - r(y, tuple(which[n] for n in p), keepdims=True) for _, r in reduced for p in pairs]
    for order in (("i", "j", "k"), ("k", "i", "j")):
        g = f
        for depth in (2, 1, 0):  # the innermost map first
            outer = sorted(order[:depth], key="ijk".index)
            rest = [n for n in "ijk" if n not in outer]
            axis = rest.index(order[depth])
            g = plait.vmap(g, axis, axis, axis_name=order[depth])
        for got, expected in zip(plait.jit(g)(y), want, strict=True):
            np.testing.assert_array_equal(got, expected)


def exchanged(x, split, concat, tiled):
    """What each of two times three lanes gets, in numpy; the lanes are the first axes."""
    lanes = x.reshape(6, *x.shape[2:])
    out = []
    for k in range(6):
        pieces = [np.split(lane, 6, split)[k] for lane in lanes]
        if tiled:
            out.append(np.concatenate(pieces, concat))
        else:
            out.append(np.stack([p.squeeze(split) for p in pieces], concat))
    return np.stack(out).reshape(2, 3, *out[0].shape)


@pytest.mark.feature("B47")
def test_exchange_over_several_names():
    """By maps in maps, over devices, and derivatives: the exchange is linear."""
    mesh = plait.make_mesh((2, 3), ("i", "j"))
    spec = plait.P("i", "j")
    for tiled in (False, True):
        x = np.arange(2 * 3 * 6 * 6, dtype=np.float32).reshape(2, 3, 6, 6)
        x = x.repeat(2, 2) if tiled else x
        for split, concat in ((0, 0), (0, 1), (1, 0), (1, 1)):
            f = lambda v, s=split, c=concat, t=tiled: lax.all_to_all(v, ("i", "j"), s, c, tiled=t)  # noqa: E731
            want = exchanged(x, split, concat, tiled)
            nested = plait.vmap(plait.vmap(f, axis_name="j"), axis_name="i")
            np.testing.assert_array_equal(nested(x), want)
            apart = plait.shard_map(
                lambda v, f=f: f(v[0, 0])[None, None], mesh=mesh, in_specs=spec, out_specs=spec
            )
            np.testing.assert_array_equal(plait.jit(apart)(x), want)
            (back,) = plait.linear_transpose(nested, x)(want)
            np.testing.assert_array_equal(back, x)
    x = np.arange(2 * 6 * 3 * 3, dtype=np.float32).reshape(2, 6, 3, 3)
    groups = [[0, 2, 4], [5, 3, 1]]
    for split, concat in ((0, 0), (0, 1), (1, 0), (1, 1)):
        g = lambda v, s=split, c=concat: lax.all_to_all(v, "j", s, c, axis_index_groups=groups)  # noqa: E731
        want = np.empty_like(x)
        for members in groups:
            for k, member in enumerate(members):
                parts = [np.take(x[:, m], k, split + 1) for m in members]
                want[:, member] = np.stack(parts, concat + 1)
        got = plait.vmap(plait.vmap(g, axis_name="j"), axis_name="i")(x)
        np.testing.assert_array_equal(got, want)
    f = lambda v: lax.all_to_all(v, ("i", "j"), 0, 0)  # noqa: E731
    with pytest.raises(AxisError, match="does not have size 6"):
        plait.vmap(plait.vmap(f, axis_name="j"), axis_name="i")(np.ones((2, 3, 7)))


@pytest.mark.feature("B48")
def test_cotangents_meet_on_different_axes():
    """Sums of cotangents that vary along different axes, and zeros of either."""
    y = np.arange(12, dtype=np.float32).reshape(3, 4)

    def f(x, u):  # its uses put the mapped axis at different places
        return (x * u).sum() + (x.T * u.T).sum() + (x[:, None] * 2).sum() + 0 * x.sum()

    u = np.float32([[1, 2, 3, 4]] * 2)
    got = plait.vmap(plait.grad(lambda x, u: f(x[None], u[None])), (1, None))(
        y, np.ones(3, np.float32)
    )
    np.testing.assert_array_equal(got, np.full((4, 3), 4))
    g = lambda x, u: f(pnp.stack([x, x]), pnp.stack([u, u]))  # noqa: E731
    got = plait.vmap(plait.grad(g), (0, None))(y, u[0])
    np.testing.assert_allclose(got, np.stack([2 * (2 * u[0] + 2)] * 3))
    got = plait.vmap(plait.grad(g, 1), (None, 1))(y[0], np.stack([u[0]] * 2, 1))
    np.testing.assert_allclose(got, np.stack([4 * y[0]] * 2))
    got = plait.vmap(plait.grad(lambda x: f(x * 0, y[0][None])))(y)
    np.testing.assert_array_equal(got, np.zeros_like(y))
