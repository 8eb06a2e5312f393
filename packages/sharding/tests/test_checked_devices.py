"""Checks on several devices: what a loop over the pieces finds first.

Invariant: which device fails is told by a plain loop over the pieces, in the order of the mesh.
"""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import checks, dtypes, lax
from plait.checks import check, check_error, checkify, debug_check
from plait_sharding import P, make_mesh, shard_map

GOOD = np.arange(1, 17, dtype=np.float32)
BAD = [np.where(np.isin(np.arange(16), at), -GOOD, GOOD) for at in ((11,), (5, 13), (0, 15))]


def positive(v):
    check((v > 0).all(), "min {}", v.min())
    return v * 2


def first(x, pieces, words):
    """What a loop over the pieces says, the first of them that fails."""
    for i, v in enumerate(np.split(x, pieces)):
        if not (v > 0).all():
            return f"min {v.min()}, on the device at {words(i)}"
    return None


def at_xy(i):
    return f"x={i // 4}, y={i % 4}"


CASES = {
    "both": (P(("x", "y")), 8, at_xy),
    "slow": (P("x"), 2, lambda i: f"x={i}"),
    "fast": (P("y"), 4, lambda i: f"y={i}"),
}
WAYS = {
    "as it is": checkify,
    "compiled": lambda f: plait.jit(checkify(f)),
    "of a compiled function": lambda f: checkify(plait.jit(f)),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("spec, pieces, words", CASES.values(), ids=CASES)
@pytest.mark.parametrize("typed", [True, False], ids=["typed", "untyped"])
def test_the_first_device_that_found_something_is_named(mesh, spec, pieces, words, typed, way):
    f = shard_map(positive, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=typed)
    g = way(f)
    for x in (GOOD, *BAD):
        error, y = g(x)
        assert error.get() == first(x, pieces, words)
        np.testing.assert_array_equal(y, 2 * x)


def test_what_all_devices_have_names_none(mesh):
    f = checkify(shard_map(positive, mesh=mesh, in_specs=P(), out_specs=P()))
    assert f(BAD[0])[0].get() == "min -12.0"

    def total(v):
        s = lax.psum(v.sum(), ("x", "y"))
        check(s > 0, "total {}", s)
        return s

    g = checkify(shard_map(total, mesh=mesh, in_specs=P(("x", "y")), out_specs=P()))
    assert g(-GOOD)[0].get() == f"total {-GOOD.sum()}"
    one = make_mesh((1,), ("x",))
    h = checkify(shard_map(positive, mesh=one, in_specs=P("x"), out_specs=P("x")))
    assert h(BAD[0])[0].get() == "min -12.0"


def turns(v):
    def body(c, t):
        check(t > 0, "turn {}", t)
        return c + t, c

    return lax.scan(body, pnp.zeros(()), v)[1]


def until(v):
    def body(c):
        check((c > 0).all(), "min {}", c.min())
        return c + 50

    return lax.while_loop(lambda c: c.max() < 60, body, v)


def branches(v):
    return lax.cond(v.sum() > 0, lambda v: v, positive, v)


def rows(v):
    return lax.map(lambda t: (check(t > 0, "turn {}", t), t)[1], v)


def minimum(x, pieces=8):
    return next((f"{v.min()}, on the device at {at_xy(i)}" for i, v in enumerate(
        np.split(x, pieces)) if v.min() <= 0), None)  # fmt: skip


@pytest.mark.parametrize("f", [turns, until, branches, rows], ids=lambda f: f.__name__)
def test_control_flow_inside(mesh, f):
    """Pieces have two elements, of which one is negative where the piece fails."""
    spec = P(("x", "y"))
    g = plait.jit(checkify(shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)))
    for x in (GOOD, *BAD):
        want = minimum(x)
        if f is branches and want is not None:  # only of those whose sum is negative
            sums = [v.sum() for v in np.split(x, 8)]
            want = next((f"{v.min()}, on the device at {at_xy(i)}" for i, v in enumerate(
                np.split(x, 8)) if sums[i] <= 0), None)  # fmt: skip
        got = g(x)[0].get()
        assert (got and got.partition(" ")[2]) == want


def test_control_flow_around(mesh):
    spec = P(("x", "y"))
    f = shard_map(positive, mesh=mesh, in_specs=spec, out_specs=spec)
    less = shard_map(lambda v: positive(v) - 9, mesh=mesh, in_specs=spec, out_specs=spec)

    def loop(x):  # 2 x - 9: elements below 9 come down to 0 and less
        return lax.fori_loop(0, 3, lambda i, c: less(c), x)

    x, want = GOOD + 2, None
    c = x
    for _ in range(3):
        want = want or first(c, 8, at_xy)
        c = 2 * c - 9
    error, y = plait.jit(checkify(loop))(x)
    assert want is not None and error.get() == want
    np.testing.assert_array_equal(y, c)
    either = checkify(lambda p, x: lax.cond(p, f, lambda x: x, x))
    assert either(True, BAD[1])[0].get() == first(BAD[1], 8, at_xy)
    assert either(False, BAD[1])[0].get() is None


def test_all_that_a_message_shows_is_the_first_devices(mesh):
    def f(v):
        ok = v[0] > 0
        shown = (ok, v[0].astype("int8"), v[0].astype("bfloat16"), v[0] + 1j, v)
        check(ok, "{} {} {} {} {}", *shown)
        check(v[0] < 100, "never {}", v)
        return v

    spec = P(("x", "y"))
    g = plait.jit(checkify(shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)))
    x = np.where(np.arange(16) > 9, -GOOD, GOOD)
    short = np.float32(-11).astype(dtypes.bfloat16)  # its text depends on the version of ml_dtypes
    want = f"False -11 {short} (-11+1j) [-11. -12.], on the device at x=1, y=1"
    assert g(x)[0].get() == want
    assert g(GOOD)[0].get() is None


def test_kinds_of_errors(mesh):
    spec = P(("x", "y"))
    on = lambda f: shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)
    found = lambda f, errors, x: checkify(on(f), errors=errors)(x)[0]
    error = found(pnp.log, checks.nan_checks, BAD[0])
    assert "log gave a nan, on the device at x=1, y=1" in error.get()
    with pytest.raises(checks.NaNError, match=r"test_checked_devices\.py"):
        error.throw()
    assert found(pnp.log, checks.nan_checks, GOOD).get() is None
    error = found(lambda v: 1 / (v - 6), checks.div_checks, GOOD)
    assert error.get() == "division by zero in core.div, on the device at x=0, y=2"
    error = found(lambda v: v[v[0].astype("int32")] + v, checks.index_checks, GOOD - 3)
    assert "index 2 is out of bounds" in error.get() and "x=0, y=2" in error.get()
    both = lambda v: pnp.log(positive(v))
    assert found(both, checks.all_checks, BAD[1]).get() == first(BAD[1], 8, at_xy)
    assert "log gave a nan" in found(lambda v: debugged(v), checks.all_checks, -GOOD).get()


def debugged(v):
    out = pnp.log(v)
    debug_check(v[0] > 0, "late")
    return out


def test_errors_are_handed_on(mesh):
    spec = P(("x", "y"))
    on = lambda f: shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)
    inside = on(lambda v: (check_error(checkify(positive)(v)[0]), v)[1])
    around = lambda x: (check_error(checkify(on(positive))(x)[0]), x)[1]
    for f in (inside, around):
        assert checkify(f)(BAD[0])[0].get() == first(BAD[0], 8, at_xy)
        assert checkify(f)(GOOD)[0].get() is None


def test_one_axis_inside_another(mesh):
    def outer(v):
        inner = shard_map(positive, mesh=mesh, in_specs=P("y"), out_specs=P("y"), axis_names={"y"})
        return inner(v)

    f = shard_map(outer, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    error, _ = plait.jit(checkify(f))(BAD[0])
    assert error.get() == "min -12.0, on the device at y=1, on the device at x=1"
    assert plait.jit(checkify(f))(GOOD)[0].get() is None


def test_strict_settings_and_explicit_axes(lies):
    mesh = make_mesh((2, 4), ("x", "y"), axis_types=plait.sharding.AxisType.Explicit)
    spec = P(("x", "y"))
    f = shard_map(positive, mesh=mesh, in_specs=spec, out_specs=spec)
    x = plait.device_put(BAD[0], plait.NamedSharding(mesh, spec))
    with plait.config(numpy_dtype_promotion="strict", numpy_rank_promotion="raise"):
        error, y = plait.jit(checkify(f))(x)
    assert error.get() == first(BAD[0], 8, at_xy)
    assert y.sharding.spec == spec


def test_without_collecting_it_is_refused(mesh, told):
    f = shard_map(positive, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    told(lambda: f(GOOD), "no checkify collects")
