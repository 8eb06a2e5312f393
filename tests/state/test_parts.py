"""Functions get parts of references: mapped, as pieces of devices, and with derivatives between.

Invariant: what is expected was computed by numpy, an example after the other, on views of arrays.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait.errors import ArgumentError, AxisError, OperandTypeError, PlaitError

A = np.arange(12, dtype=np.float32).reshape(4, 3) / 4
X = np.array([1.0, -2.0, 3.0, -4.0], np.float32)


def view(x, i, axis=0):
    """A part of an array that can be written, without axes too."""
    at = [slice(None)] * x.ndim
    at[axis] = slice(i, i + 1)
    return x[tuple(at)].reshape(np.delete(x.shape, axis))


def doubled(r, x):
    r[...] = r[...] * 2
    return r[...] + x


def a_part(r, x):
    r[0] = x
    return r[...].sum()


def constant(r, x):
    r[...] = r[...] * 0 + 5
    return x


def only_read(r, x):
    return r[...] * x


def in_a_loop(r, x):
    def turn(i, c):
        r[...] = r[...] + x
        return c + i

    if isinstance(r, np.ndarray):
        for i in range(3):
            turn(i, 0)
        return r[...].sum()
    lax.fori_loop(0, 3, turn, 0)
    return r[...].sum()


def in_a_branch(r, x):
    def yes():
        r[...] = r[...] + x

    if isinstance(r, np.ndarray):
        if x > 0:
            yes()
    else:
        lax.cond(x > 0, yes, lambda: None)
    return x


FUNCTIONS = [doubled, a_part, constant, only_read, in_a_loop, in_a_branch]


HOW = [(0, "", None), (1, "", None), (-1, "inside", None), (0, "outside", None), (1, "outside", 3)]


@pytest.mark.parametrize("axis, staged, chunk", HOW)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_mapped_reference(f, axis, staged, chunk):
    whole = np.moveaxis(A, 0, axis).copy()
    want = [np.array(f(view(whole, i, axis), X[i])) for i in range(4)]
    ref = plait.new_ref(pnp.asarray(np.moveaxis(A, 0, axis)))
    g = plait.vmap(plait.jit(f) if staged == "inside" else f, in_axes=(axis, 0), chunk=chunk)
    got = (plait.jit(g) if staged == "outside" else g)(ref, pnp.asarray(X))
    np.testing.assert_allclose(got, np.stack(want), rtol=1e-6)
    np.testing.assert_allclose(ref[...], whole, rtol=1e-6)


def test_maps_of_maps_and_references_in_trees():
    refs = {"a": plait.new_ref(pnp.asarray(A)), "b": plait.new_ref(pnp.zeros(4))}

    def f(r, x):
        plait.vmap(lambda q, y: q.write(q[...] * y))(r["a"], pnp.arange(3.0))
        r["b"][...] = r["a"][...].sum() + x

    plait.vmap(f, in_axes=({"a": 0, "b": 0}, 0))(refs, pnp.asarray(X))
    want = A * np.arange(3, dtype=np.float32)
    np.testing.assert_allclose(refs["a"][...], want, rtol=1e-6)
    np.testing.assert_allclose(refs["b"][...], want.sum(1) + X, rtol=1e-6)


def test_a_predicate_that_differs_between_examples_writes():
    ref, asked = plait.new_ref(pnp.arange(3.0)), plait.new_ref(pnp.zeros(3))

    def f(r, n):
        def more(_):
            n[...] += 1
            return r[...] < 10

        return lax.while_loop(more, lambda i: (r.addupdate(3.0), i + 1)[1], 0)

    turns = plait.vmap(f)(ref, asked)
    want = [[], [], []]
    for x in (0.0, 1.0, 2.0):
        count, times = 0, 1
        while x < 10:
            x, count, times = x + 3, count + 1, times + 1
        for out, v in zip(want, (count, x, times)):
            out.append(v)
    assert [turns.tolist(), ref[...].tolist(), asked[...].tolist()] == want


def test_references_that_a_mapped_function_returns():
    made, twice = plait.vmap(lambda x: (plait.new_ref(x), 2 * x), out_axes=(1, 0))(pnp.asarray(A))
    assert made[...].tolist() == A.T.tolist() and twice.tolist() == (2 * A).tolist()
    made[0, 0] = 9.0
    assert float(made[0, 0]) == 9.0
    parts = plait.vmap(lambda x: plait.new_ref(x), chunk=3)(pnp.asarray(X))
    assert parts[...].tolist() == X.tolist()


def test_rows_of_examples_beside_a_pile():
    pile = plait.Pile.from_list([np.ones(2, "float32"), np.full(3, 2, "float32")])
    ref = plait.new_ref(pnp.array([10.0, 20.0]))

    def f(x, r):
        r[...] = r[...] + x.sum()
        return r[...]

    got = plait.vmap(f, in_axes=(plait.pile_axis, 0))(pile, ref)
    assert got.tolist() == ref[...].tolist() == [12, 26]
    with pytest.raises(OperandTypeError, match="what is mapped as"):
        plait.vmap(lambda r: r[...], in_axes=plait.pile_axis)(ref)


def test_derivatives_go_through_parts():
    def mapped(x):
        ref = plait.new_ref(x)
        plait.vmap(lambda r: r.write(pnp.sin(r[...])))(ref)
        return (ref[...] * pnp.arange(4.0)).sum()

    def rows(x):
        ref = plait.new_ref(x)

        def step(c, r):
            r[...] = c * pnp.sin(r[...])
            return c + 1.0, None

        lax.scan(step, 1.0, ref)
        return ref[...].sum()

    x = pnp.asarray(X)
    np.testing.assert_allclose(plait.grad(mapped)(x), np.arange(4) * np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(plait.grad(rows)(x), np.arange(1, 5) * np.cos(X), rtol=1e-6)
    inner = plait.vmap(lambda r: plait.grad(lambda y: y * y * r[...])(3.0))
    assert inner(plait.new_ref(x)).tolist() == (6 * X).tolist()


def test_what_is_with_respect_to_a_reference_is_refused():
    ref = plait.new_ref(1.0)
    for d in (plait.grad, plait.jacfwd, plait.jacrev):
        with pytest.raises(OperandTypeError, match="with respect to") as e:
            d(lambda r: r[...] * 2)(ref)
        assert "ref[...]" in e.value.fix


PARTS = {
    "the whole meanwhile": (lambda r: plait.vmap(lambda q: q[...] + r[0])(r), "has its parts"),
    "the whole as another argument": (
        lambda r: plait.vmap(lambda q, w: q[...] + w[0], in_axes=(0, None))(r, r), "has its parts",
    ),
    "twice": (lambda r: plait.vmap(lambda a, b: a[...])(r, r), "given twice"),
    "returned": (lambda r: plait.vmap(lambda q: q)(r), "got it as a part"),
    "an axis that it has not": (lambda r: plait.vmap(lambda q: q[...], in_axes=1)(r), "axis 1"),
    "a size that differs": (
        lambda r: plait.vmap(lambda q, x: x)(r, pnp.ones(5)), "differ in size",
    ),
    "a shape that changes": (lambda r: plait.vmap(lambda q: q.write(pnp.ones(2)))(r), "shape"),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_what_is_no_use_of_a_part(name):
    use, text = PARTS[name]
    ref = plait.new_ref(pnp.zeros(2))
    with pytest.raises(PlaitError, match=text) as e:
        use(ref)
    assert e.value.fix and __file__ in str(e.value)
    assert ref[...].tolist() == [0, 0]  # nothing is lent any more


# ---- several devices -------------------------------------------------------------------------


@pytest.fixture
def mesh():
    return plait.make_mesh((2 if plait.device_count() >= 2 else 1,), ("a",))


P = plait.P


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("check_vma", [False, True])
def test_each_device_writes_its_piece(mesh, check_vma, staged):
    n = mesh.size
    ref, scale = plait.new_ref(pnp.asarray(A)), plait.new_ref(pnp.array([3.0]))

    def f(r, s, x):
        r[0] = r[...].sum(0) * s[0] + lax.axis_index("a")
        return x + r[0]

    f = plait.shard_map(
        f, mesh=mesh, in_specs=(P("a"), P(), P("a")), out_specs=P("a"), check_vma=check_vma
    )
    x = pnp.asarray(A)
    got = (plait.jit(f) if staged else f)(ref, scale, x)
    want = A.copy()
    for k, piece in enumerate(np.split(want, n)):
        piece[0] = piece.sum(0) * 3 + k
    np.testing.assert_allclose(ref[...], want, rtol=1e-6)
    rows = np.repeat(want[:: 4 // n], 4 // n, 0)
    np.testing.assert_allclose(got, A + rows, rtol=1e-6)
    assert scale[...].tolist() == [3]


def test_what_is_not_divided_is_written_alike(mesh):
    ref = plait.new_ref(pnp.zeros(3))

    def f(r, x):
        r[...] = r[...] + lax.psum(x.sum(0), "a")

    over = dict(mesh=mesh, in_specs=(P(), P("a")), out_specs=P())
    plait.shard_map(f, **over)(ref, pnp.asarray(A))
    np.testing.assert_allclose(ref[...], A.sum(0), rtol=1e-6)
    if mesh.size > 1:
        with pytest.raises(OperandTypeError, match="differs from device to device"):
            plait.shard_map(lambda r, x: r.write(x.sum(0)), **over)(ref, pnp.asarray(A))


@pytest.mark.parametrize("staged", [False, True])
def test_a_reference_of_outside_is_whole_on_every_device(mesh, staged):
    ref, count = plait.new_ref(pnp.arange(3.0)), plait.new_ref(pnp.float32(0))

    def f(x):
        count[...] += lax.psum(x.sum(), "a")
        return x * ref[...]

    g = plait.shard_map(f, mesh=mesh, in_specs=P("a"), out_specs=P("a"))
    got = (plait.jit(g) if staged else g)(pnp.asarray(A))
    np.testing.assert_allclose(got, A * np.arange(3), rtol=1e-6)
    np.testing.assert_allclose(count[...], A.sum(), rtol=1e-6)
    assert ref[...].tolist() == [0, 1, 2]


def test_a_reference_of_outside_is_written_where_devices_agree(mesh):
    ref = plait.new_ref(pnp.float32(0))

    def f(x):
        ref[...] = x.sum()
        return x

    over = dict(mesh=mesh, in_specs=P("a"), out_specs=P("a"))
    with pytest.raises(ArgumentError, match="check_vma=False") as e:
        plait.shard_map(f, check_vma=False, **over)(pnp.asarray(A))
    assert "as an argument" in e.value.fix
    if mesh.size > 1:
        with pytest.raises(OperandTypeError, match="differs from device to device"):
            plait.shard_map(f, **over)(pnp.asarray(A))
    assert float(ref[...]) == 0


def test_a_piece_must_be_one(mesh):
    if mesh.size < 2:
        pytest.skip("one device has no pieces")
    ref = plait.new_ref(pnp.zeros(3))
    with pytest.raises(AxisError, match="3"):
        plait.shard_map(lambda r: r.write(r[...]), mesh=mesh, in_specs=P("a"), out_specs=None)(ref)
