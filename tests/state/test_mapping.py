"""vmap, shard_map and export of functions with references, against loops of Python."""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import lax
from plait.errors import ArgumentError, MissingRule, OperandTypeError


def histogram(xs):
    """How often each number is among some, and their sum so far."""
    counts, total = plait.new_ref(pnp.zeros(4)), plait.new_ref(0.0)

    def body(_, x):
        counts[x] += 1
        lax.cond(x % 2 == 0, lambda: total.write(total[...] + x), lambda: None)
        return None, total[...]

    _, totals = lax.scan(body, None, xs)
    return counts[...], totals


def histogram_in_python(xs):
    counts, total, totals = [0.0] * 4, 0.0, []
    for x in xs:
        counts[x] += 1
        total += x if x % 2 == 0 else 0
        totals.append(total)
    return counts, totals


XS = np.random.default_rng(0).integers(0, 4, (3, 5)).astype(np.int32)


@pytest.mark.parametrize("staged", [False, True])
def test_references_of_each_example(staged):
    f = plait.vmap(histogram)
    counts, totals = (plait.jit(f) if staged else f)(XS)
    for k, xs in enumerate(XS):
        want = histogram_in_python(xs)
        assert (counts[k].tolist(), totals[k].tolist()) == want


def test_maps_of_maps():
    counts, _ = plait.vmap(plait.vmap(histogram), in_axes=1)(XS.reshape(3, 1, 5).repeat(2, 1))
    for k, xs in enumerate(XS):
        assert counts[0, k].tolist() == counts[1, k].tolist() == histogram_in_python(xs)[0]


def test_a_predicate_that_differs_between_examples():
    def f(x):
        q, n = plait.new_ref(x), plait.new_ref(0)

        def body(c):
            q[...] *= 2
            n[...] += 1
            return c

        lax.while_loop(lambda c: q[...] < 10, body, 0)
        return q[...], n[...]

    values, turns = plait.vmap(f)(pnp.array([1.0, 3.0, 20.0]))
    assert (values.tolist(), turns.tolist()) == ([16, 12, 20], [4, 2, 0])


def test_what_is_read_of_outside_is_the_same_for_all():
    q = plait.new_ref(pnp.arange(3.0))
    xs = pnp.array([2, 0])
    for f in (lambda i: q[i] + q[...], plait.jit(lambda i: q[i] + q[...])):
        got = plait.vmap(f)(xs)
        assert got.tolist() == [[2, 3, 4], [0, 1, 2]]
    got = plait.vmap(lambda r, x: r[x], in_axes=(None, 0))(q, xs)
    assert got.tolist() == [2, 0]


WRITES = {
    "mapped": lambda q, x: q.write(x),
    "unmapped": lambda q, x: q.write(1.0),
    "added": lambda q, x: plait.ref.addupdate(q, ..., 1.0),
    "in jit": lambda q, x: plait.jit(lambda: q.write(1.0))(),
    "in scan": lambda q, x: lax.scan(lambda c, _: (c, q.write(c)), x, None, 2)[1],
    "in cond": lambda q, x: lax.cond(x > 0, lambda: q.write(1.0), lambda: None),
}


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("what", WRITES)
def test_one_value_is_not_written_for_many(what, staged):
    """As JAX: what is written would be one value for each example."""
    q = plait.new_ref(0.0)
    f = plait.vmap(lambda x: WRITES[what](q, x))
    with pytest.raises(ArgumentError, match="a reference of outside in vmap of") as e:
        (plait.jit(f) if staged else f)(pnp.arange(3.0))
    assert "return what is written" in e.value.fix and float(q[...]) == 0


def test_references_of_examples_in_piles():
    pile = plait.Pile.from_list([np.ones(2, "float32"), np.full(3, 2, "float32")])

    def f(x):
        q = plait.new_ref(1.0)
        q[...] += x.sum()
        return q[...]

    assert plait.vmap(f, in_axes=plait.pile_axis)(pile).tolist() == [3, 7]
    outside = plait.new_ref(2.0)
    scaled = plait.vmap(lambda x: (x * outside[...]).sum(), in_axes=plait.pile_axis)
    assert scaled(pile).tolist() == [4, 12]
    with pytest.raises(plait.errors.ArgumentError, match="writing a reference of outside"):
        plait.vmap(lambda x: outside.write(1.0), in_axes=plait.pile_axis)(pile)


# ---- several devices -------------------------------------------------------------------------


@pytest.fixture
def mesh():
    n = 2 if plait.device_count() >= 2 else 1
    return plait.make_mesh((n,), ("a",))


@pytest.mark.parametrize("staged", [False, True])
def test_shard_map(mesh, staged):
    scale = plait.new_ref(pnp.array([2.0, 3.0]))

    def f(x):
        q = plait.new_ref(x)
        lax.fori_loop(0, 2, lambda i, _: q.write(q[...] * scale[i]), None)
        return q[...] + lax.psum(q[...].sum(), "a")

    f = plait.shard_map(f, mesh=mesh, in_specs=plait.P("a"), out_specs=plait.P("a"))
    x = np.arange(4.0, dtype="float32")
    got = (plait.jit(f) if staged else f)(pnp.asarray(x))
    assert got.tolist() == (6 * x + 6 * x.sum()).tolist()


def test_what_differs_between_devices_is_held_by_a_reference_that_does(mesh):
    def f(x, inside):
        q = plait.new_ref(x if inside else pnp.zeros(()))
        q[...] = x.sum() if not inside else x * 2
        return q[...] + x

    over = dict(mesh=mesh, in_specs=plait.P("a"), out_specs=plait.P("a"))
    got = plait.shard_map(lambda x: f(x, True), **over)(pnp.arange(4.0))
    assert got.tolist() == [0, 3, 6, 9]
    with pytest.raises(OperandTypeError, match="differs from device to device"):
        plait.shard_map(lambda x: f(x, False), **over)(pnp.arange(4.0))


def test_arrays_that_are_placed_stay_placed(mesh):
    there = plait.NamedSharding(mesh, plait.P("a"))
    q = plait.new_ref(plait.device_put(pnp.arange(4.0), there))

    @plait.jit
    def double():
        q[...] *= 2

    double()
    assert q[...].tolist() == [0, 2, 4, 6]
    assert q[...].sharding.is_equivalent_to(there, 1)


# ---- artifacts and checks --------------------------------------------------------------------


def test_export_of_what_makes_references():
    def f(x):
        q = plait.new_ref(x)
        q[0] = q[1] * 3
        return q[...]

    artifact = plait.export.export(plait.jit(f))(plait.ShapeDtypeStruct((2,), "float32"))
    read = plait.export.deserialize(artifact.serialize())
    assert read.call(pnp.array([1.0, 2.0])).tolist() == [6, 2]


def test_artifacts_have_no_references_of_outside():
    q = plait.new_ref(1.0)
    told = "closes over Ref", "is given"
    for f, args, how in zip((lambda x: x + q[...], lambda r: r[...]), ((1.0,), (q,)), told):
        with pytest.raises(plait.export.NotExportable, match=how) as e:
            plait.export.export(plait.jit(f))(*args)
        assert "made at" in str(e.value) and "the array that it holds" in e.value.fix


def test_checks_are_collected_around_references():
    q = plait.new_ref(0.0)

    @plait.jit
    def f(x):
        plait.checks.check(x > 0, "not positive")
        q[...] += x
        return q[...]

    error, out = plait.checks.checkify(f)(2.0)
    assert (error.get(), float(out), float(q[...])) == (None, 2.0, 2.0)
    error, _ = plait.checks.checkify(f)(-1.0)
    assert "not positive" in error.get()


def test_a_solver_reads_a_reference():
    def solved(a):
        q = plait.new_ref(a)
        return lax.custom_linear_solve(
            lambda x: x * q[...], pnp.ones(2), lambda mv, b: b / q[...], symmetric=True
        ).sum()

    for f in (solved, plait.jit(solved)):
        assert float(f(4.0)) == 0.5
        assert float(plait.grad(f)(4.0)) == -2 / 16


def test_a_named_function_reads_nothing_of_outside():
    q = plait.new_ref(2.0)
    with pytest.raises(MissingRule, match="composite has a rule of its own") as e:
        lax.composite(lambda x: x * q[...], "test.scaled")(1.0)
    assert "ref[...]" in e.value.fix
