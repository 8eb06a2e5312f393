"""vmap(spmd_axis_name=): the mapped axis is divided over axes of the mesh wherever something inside
says how arrays lie.

Invariant: values are compared with numpy or a Python loop; how arrays are constrained is read in
the program, and where results lie is asked of them.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.errors import AxisError
from plait.ext.ir import programs_in
from plait_sharding import NamedSharding, P, make_mesh, shard_map, with_sharding_constraint

pytestmark = pytest.mark.feature("B40")
R = np.random.default_rng(0)
A = R.normal(size=(4, 8)).astype(np.float32)


@pytest.fixture
def here(mesh):
    """here(v, "x"): constrained to lie so."""
    return lambda v, *entries: with_sharding_constraint(v, NamedSharding(mesh, P(*entries)))


def specs(program):
    """What constraints and shard_maps say, outermost first."""
    found = []
    for e in program.eqns:
        if "sharding" in e.params:
            found.append(e.params["sharding"].spec.trimmed)
        for name in ("in_specs", "out_specs"):
            found += [P(*s) for s in e.params.get(name, ())]
        for p in programs_in(e.params):
            found += specs(p)
    return found


def said(f, *args):
    return specs(plait.make_program(f)(*args))


def rows_over(names, f, **how):
    return plait.vmap(f, spmd_axis_name=names, **how)


def test_constraints(here):
    open_ = P.UNCONSTRAINED
    f = lambda v: here(v, "y")  # noqa: E731
    assert said(rows_over("x", f), A) == [P("x", "y")]
    assert said(rows_over("x", f, in_axes=1, out_axes=1), A.T) == [P("y", "x")]
    assert said(rows_over(None, f), A) == [P(open_, "y")]
    assert said(rows_over((), f), A) == [P(None, "y")]
    assert said(rows_over(("x", "y"), lambda v: here(v)), np.ones((8, 3))) == [P(("x", "y"))]
    assert said(rows_over("x", lambda v: here(v, open_)), A) == [P("x", open_)]
    shared = rows_over("x", lambda v, w: v + here(w, "y"), in_axes=(0, None))
    assert said(shared, A, A[0]) == [P("y")]
    twice = rows_over("y", rows_over("x", lambda v: here(v)))
    assert said(twice, np.ones((4, 2, 3))) == [P("y", "x")]


CONTROL = {
    "jit": lambda f: plait.jit(f),
    "scan": lambda f: lambda v: lax.scan(lambda c, _: (f(c), None), v, None, length=2)[0],
    "cond": lambda f: lambda v: lax.cond(True, f, lambda c: c * 2, v),
    "cond, each its own": lambda f: lambda v: lax.cond(v[0] > 0, f, lambda c: c * 2, v),
    "switch": lambda f: lambda v: lax.switch(1, [lambda c: c, f], v),
    "while": lambda f: lambda v: lax.fori_loop(0, 2, lambda i, c: f(c), v),
    "while, each its own": lambda f: lambda v: lax.while_loop(lambda c: c[0] < 2, f, v),
    "map": lambda f: lambda v: lax.map(f, plait.numpy.stack([v, v]))[0],
    "checkpoint": lambda f: plait.checkpoint(f),
}


@pytest.mark.parametrize("name", CONTROL)
def test_through_control_flow(here, name):
    make = CONTROL[name]
    f = rows_over("x", make(lambda v: here(v + 1, "y")))
    found = said(f, A)
    assert found and all(s in (P("x", "y"), P("x", None, "y"), P(None, "x", "y")) for s in found)
    plain = make(lambda v: v + 1)
    want = np.stack([np.asarray(plain(a)) for a in A])
    np.testing.assert_allclose(np.asarray(plait.jit(f)(A)), want, rtol=1e-6)


@pytest.mark.parametrize("maker", ["custom_jvp", "custom_vjp", "custom_vmap"])
def test_through_custom_rules(here, maker):
    f = getattr(plait, maker)(lambda v: here(v * v, "y"))
    if maker == "custom_jvp":
        f.defjvp(lambda xs, ts: (f(*xs), here(2 * xs[0] * ts[0], "y")))
    elif maker == "custom_vjp":
        f.defvjp(lambda v: (f(v), v), lambda v, ct: (here(2 * v * ct, "y"),))
    else:  # a rule says all itself: what it says is of the stack
        f.def_vmap(lambda size, mapped, vs: (here(vs * vs, "x", "y"), True))
    assert P("x", "y") in said(rows_over("x", f), A)
    if maker != "custom_vmap":
        slopes = rows_over("x", plait.grad(lambda v: f(v).sum()))
        found = set(said(slopes, A))  # the constraint of a cotangent of ones does not vary
        assert P("x", "y") in found and found <= {P("x", "y"), P("y")}
        np.testing.assert_allclose(np.asarray(plait.jit(slopes)(A)), 2 * A, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(plait.jit(rows_over("x", f))(A)), A * A, rtol=1e-6)


def test_derivatives(here):
    f = rows_over("x", lambda v: here(plait.numpy.sin(v), "y"))
    assert said(plait.grad(lambda a: f(a).sum()), A) == [P("x", "y")] * 2
    got = plait.jit(plait.grad(lambda a: f(a).sum()))(A)
    np.testing.assert_allclose(np.asarray(got), np.cos(A), rtol=1e-5)


def test_where_results_lie(mesh, here):
    got = plait.jit(rows_over("x", lambda v: here(v * 2, "y")))(A)
    assert got.sharding == NamedSharding(mesh, P("x", "y"))
    np.testing.assert_allclose(np.asarray(got), A * 2)


# ---- shard_map -----------------------------------------------------------------------------


@pytest.fixture
def summed(mesh):
    """Each element plus the sum of its row, one row for all devices along y."""
    f = lambda v: v + lax.psum(v.sum(), "y")  # noqa: E731
    return shard_map(f, mesh=mesh, in_specs=P("y"), out_specs=P("y"))


def test_each_device_has_its_part_of_the_elements(mesh, summed):
    want = A + A.sum(1, keepdims=True)
    for axis in (0, 1):
        f = rows_over("x", summed, in_axes=axis, out_axes=axis)
        a = np.moveaxis(A, 0, axis)
        spec = P("x", "y") if axis == 0 else P("y", "x")
        assert said(f, a)[0] == spec
        assert {n for s in said(f, a) for n in s.names} == {"x", "y"}
        got = plait.jit(f)(a)
        assert (got.sharding.spec[axis], got.sharding.spec[1 - axis]) == ("x", "y")
        np.testing.assert_allclose(np.asarray(got), np.moveaxis(want, 0, axis), rtol=1e-5)
    twice = np.stack([A, -A, 2 * A])
    got = plait.jit(plait.vmap(rows_over("x", summed)))(twice)
    np.testing.assert_allclose(np.asarray(got), twice + twice.sum(2, keepdims=True), rtol=1e-5)


def test_the_program_of_a_device_is_of_its_part(mesh):
    f = shard_map(lambda v: v * 2, mesh=mesh, in_specs=P("y"), out_specs=P("y"))
    for names, shape in (("x", (2, 2)), (None, (4, 2))):
        program = plait.make_program(rows_over(names, f))(A)
        (inner,) = programs_in(program.eqns[0].params)
        assert [v.aval.shape for v in inner.inputs] == [shape]


def test_operands_and_results_that_do_not_vary(mesh):
    f = shard_map(
        lambda v, w: (v + w, lax.psum(w.sum(), "y")),
        mesh=mesh, in_specs=(P("y"), P("y")), out_specs=(P("y"), P()),
    )  # fmt: skip
    g = rows_over("x", f, in_axes=(0, None), out_axes=(0, None))
    assert said(g, A, A[0]) == [P("x", "y"), P("y"), P("x", "y"), P()]
    one, other = plait.jit(g)(A, A[0])
    np.testing.assert_allclose(np.asarray(one), A + A[0], rtol=1e-6)
    np.testing.assert_allclose(np.asarray(other), A[0].sum(), rtol=1e-5)
    none = plait.vmap(f, in_axes=(None, None), axis_size=4, out_axes=None, spmd_axis_name="x")
    np.testing.assert_allclose(np.asarray(none(A[0], A[1])[0]), A[0] + A[1], rtol=1e-6)


@pytest.mark.parametrize("order", ["of the mapped", "mapped"])
def test_derivatives_of_shard_map(mesh, order):
    f = shard_map(
        lambda v: lax.psum(plait.numpy.sin(v) * v, "y").sum(),
        mesh=mesh, in_specs=P("y"), out_specs=P(),
    )  # fmt: skip
    if order == "mapped":
        g = rows_over("x", plait.grad(f))
    else:
        g = plait.grad(lambda a: rows_over("x", f)(a).sum())
    want = np.cos(A) * A + np.sin(A)
    np.testing.assert_allclose(np.asarray(plait.jit(g)(A)), want, rtol=1e-5)
    again = rows_over("x", plait.grad(plait.checkpoint(f)))
    np.testing.assert_allclose(np.asarray(plait.jit(again)(A)), want, rtol=1e-5)


def test_what_is_the_same_on_all_devices_of_an_axis_is_passed_once(mesh, close):
    """Residuals of a shard_map that has nothing to do with an axis are not divided over it."""
    f = shard_map(lambda v: plait.numpy.sin(v), mesh=mesh, in_specs=P("y"), out_specs=P("y"))
    slope = plait.grad(lambda v: f(v).sum())
    assert all("x" not in s.names for s in said(slope, A[0]))
    close(plait.jit(slope)(A[0]), np.cos(A[0]))
    repeated = shard_map(lambda v: plait.numpy.sin(v), mesh=mesh, in_specs=P("y"),
                         out_specs=P(("x", "y")))  # fmt: skip
    weights = np.arange(16, dtype=np.float32)
    got = plait.jit(plait.grad(lambda v: (weights * repeated(v)).sum()))(A[0])
    close(got, np.cos(A[0]) * weights.reshape(2, 8).sum(0))


def test_axes_that_the_compiler_divides(mesh):
    """A shard_map over some axes of the mesh: the others divide its operands from outside."""
    f = shard_map(
        lambda v: v + lax.psum(v.sum(), "y"), mesh=mesh, in_specs=P("y"), out_specs=P("y"),
        axis_names={"y"},
    )  # fmt: skip
    g = rows_over("x", f)
    assert said(g, A) == [P("x", P.UNCONSTRAINED), P(None, "y"), P(None, "y")]
    got = plait.jit(g)(A)
    np.testing.assert_allclose(np.asarray(got), A + A.sum(1, keepdims=True), rtol=1e-5)


# ---- refusals ------------------------------------------------------------------------------


def test_names_that_are_taken(mesh, here, summed):
    along_x = shard_map(lambda v: lax.psum(v, "x"), mesh=mesh, in_specs=P("y"), out_specs=P("y"))
    cases = [
        (rows_over("y", lambda v: here(v, "y")), A),
        (rows_over("x", rows_over("x", lambda v: here(v))), A[..., None]),
        (rows_over(("x", "y"), lambda v: here(v, "y")), np.ones((8, 8))),
        (rows_over("y", summed), A),
        (rows_over("x", along_x), A),
        (rows_over("x", rows_over("x", summed)), np.stack([A, A])),
    ]
    for f, a in cases:
        with pytest.raises(AxisError, match=r"spmd_axis_name") as e:
            f(a)
        assert "leave that name out of one of them" in str(e.value) and __file__ in str(e.value)


def test_other_refusals(mesh, here, summed):
    with pytest.raises(AxisError, match="'q'"):
        rows_over("q", lambda v: here(v, "y"))(A)
    with pytest.raises(AxisError, match="'q'"):
        rows_over("q", summed)(A)
    for f in (lambda v: here(v, "y"), summed):
        with pytest.raises(AxisError, match="cannot be divided in 2 equal"):
            rows_over("x", f)(A[:3])
    collected = shard_map(
        lambda v: v + lax.psum(v, "i"), mesh=mesh, in_specs=P("y"), out_specs=P("y")
    )
    with pytest.raises(AxisError, match="'i'"):
        rows_over("x", collected, axis_name="i")(A)
    some = shard_map(lambda v: v, mesh=mesh, in_specs=P(), out_specs=P(), axis_names={"x"})
    with pytest.raises(AxisError, match="only some of them"):
        rows_over(("x", "y"), some)(np.ones((8, 3)))


def test_one_device_is_no_mesh():
    """A constraint to a device says nothing of axes."""
    f = lambda v: with_sharding_constraint(v, plait.SingleDeviceSharding(0)) * 2  # noqa: E731
    np.testing.assert_array_equal(np.asarray(rows_over("x", f)(A)), A * 2)


def test_traces_are_not_shared_by_other_divisions(here):
    """What was lifted for one division is not taken for another."""
    f = plait.jit(lambda v: here(v + 1, "y"))
    for names, spec in (("x", P("x", "y")), (None, P(P.UNCONSTRAINED, "y")), ((), P(None, "y"))):
        assert said(rows_over(names, f), A) == [spec]


def test_a_mesh_that_is_set():
    with make_mesh((2, 4), ("x", "y")):
        f = rows_over("x", lambda v: with_sharding_constraint(v, P("y")))
        assert said(f, A) == [P("x", "y")]
