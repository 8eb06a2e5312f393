"""Draws, values and densities of probabilistic programs, under every transformation."""

import math

import numpy as np
import pytest
from plait_handlers import (
    bernoulli,
    condition,
    log_density,
    normal,
    replay,
    sample,
    seed,
    substitute,
    trace,
)  # fmt: skip

import plait
import plait.numpy as pnp
from plait import lax, random

KEY = random.key(7)
XS = np.float32([1.0, 2.0, 3.0])
YS = np.float32([1.1, 1.9, 3.2])


def model(xs):
    """A line through points."""
    slope = sample("slope", normal(0.0, 2.0))
    return sample("y", normal(slope * xs, 0.5))


def walk(steps):
    """A random walk, seen through noise."""

    def step(x, i):
        x = sample("x", normal(x, 1.0))
        sample("seen", normal(x, 0.5))
        return x, x * 2

    return lax.scan(step, np.float32(0), pnp.arange(steps))


def mixture(heads):
    """Which of two widths depends on a coin."""
    z = sample("z", normal())
    return lax.cond(
        heads, lambda z: sample("w", normal(z, 1.0)), lambda z: sample("w", normal(z, 3.0)), z
    )


def lp(x, loc=0.0, scale=1.0):
    """The logarithm of normal densities, summed."""
    x, loc = np.float64(x), np.float64(loc)
    return float(np.sum(-(((x - loc) / scale) ** 2) / 2 - math.log(scale * math.sqrt(2 * math.pi))))


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, atol=1e-5)


def test_draws_have_their_distribution():
    def draws(keys):
        return plait.vmap(lambda k: seed(lambda: sample("z", normal(3.0, 2.0)), k)())(keys)

    zs = np.asarray(plait.jit(draws)(random.split(KEY, 20000)))
    assert abs(zs.mean() - 3) < 0.08 and abs(zs.std() - 2) < 0.08
    coins = np.asarray(seed(lambda: sample("c", bernoulli(np.full(20000, 0.3))), KEY)())
    assert set(np.unique(coins)) == {0.0, 1.0} and abs(coins.mean() - 0.3) < 0.02
    path = plait.vmap(lambda k: trace(seed(walk, k))(4)[1]["x"])(random.split(KEY, 20000))
    assert (abs(np.asarray(path).var(0) / [1, 2, 3, 4] - 1) < 0.08).all()


def test_a_key_says_it_all():
    first, again = (seed(model, KEY)(XS) for _ in range(2))
    other = seed(model, random.key(8))(XS)
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    close(plait.jit(lambda k: seed(model, k)(XS))(KEY), first)
    close(seed(plait.jit(model), KEY)(XS), first)
    close(seed(plait.checkpoint(model), KEY)(XS), first)


def test_traces_replay():
    out, values = trace(seed(model, KEY))(XS)
    assert sorted(values) == ["slope", "y"]
    close(out, values["y"])
    close(replay(model, values)(XS), out)
    close(seed(substitute(model, {"slope": 2.0, "y": YS}), KEY)(XS), YS)


def test_data_are_no_latent_values():
    out, values = trace(seed(condition(model, {"y": YS}), KEY))(XS)
    close(out, YS)
    assert list(values) == ["slope"]


@pytest.mark.parametrize("compiled", [False, True])
def test_densities(compiled):
    maybe = plait.jit if compiled else lambda f: f
    joint = maybe(lambda s, y: log_density(model, {"slope": s, "y": y})(XS))
    close(joint(1.5, YS), lp(1.5, 0, 2) + lp(YS, 1.5 * XS, 0.5))
    given = maybe(lambda s: log_density(condition(model, {"y": YS}), {"slope": s})(XS))
    close(given(1.5), lp(1.5, 0, 2) + lp(YS, 1.5 * XS, 0.5))
    slope = lambda s: -s / 4 + (XS * (YS - s * XS)).sum() / 0.25  # by hand
    close(plait.grad(given)(1.5), slope(1.5))
    close(plait.vmap(plait.grad(given))(XS), [slope(s) for s in XS])
    close(plait.grad(plait.grad(given))(1.5), -1 / 4 - (XS**2).sum() / 0.25)
    close(plait.checkpoint(plait.grad(given))(1.5), slope(1.5))
    coin = maybe(lambda c: log_density(lambda: sample("c", bernoulli(0.25)), {"c": c})())
    close([coin(1.0), coin(0.0)], [math.log(0.25), math.log(0.75)])


@pytest.mark.parametrize("compiled", [False, True])
def test_a_scan_has_a_value_for_each_step(compiled):
    maybe = plait.jit if compiled else lambda f: f
    (last, doubled), values = maybe(lambda k: trace(seed(walk, k))(4))(KEY)
    assert values["x"].shape == values["seen"].shape == (4,)
    x, seen = np.asarray(values["x"]), np.asarray(values["seen"])
    close(doubled, 2 * x)
    close(last, x[-1])
    assert len(np.unique(x - np.append(0, x[:-1]))) == 4  # each step draws anew
    want = lp(x, np.append(0, x[:-1])) + lp(seen, x, 0.5)
    close(maybe(lambda v: log_density(walk, v)(4))(values), want)
    close(replay(walk, values)(4)[1], 2 * x)
    by_seen = plait.grad(lambda s: log_density(condition(walk, {"seen": s}), {"x": x})(4))(seen)
    close(by_seen, (x - seen) / 0.25)
    assert list(trace(seed(condition(walk, {"seen": seen}), KEY))(4)[1]) == ["x"]


def test_a_scan_in_a_scan():
    def grid():
        element = lambda c, _: (c, sample("z", normal(c, 1.0)))
        row = lambda c, _: lax.scan(element, c, None, length=3)
        return lax.scan(row, 0.0, None, length=2)[1]

    out, values = trace(seed(grid, KEY))()
    assert values["z"].shape == (2, 3) and len(np.unique(values["z"])) == 6
    close(out, values["z"])
    close(log_density(grid, values)(), lp(values["z"]))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_loop_draws_at_every_turn(compiled):
    maybe = plait.jit if compiled else lambda f: f
    turn = lambda s: (s[0] + 1, s[1].at[s[0]].set(sample("z", normal())))
    f = lambda: lax.while_loop(lambda s: s[0] < 5, turn, (0, pnp.zeros(5)))[1]
    zs = np.asarray(maybe(lambda k: seed(f, k)())(KEY))
    assert len(np.unique(zs)) == 5 and abs(zs).max() < 5
    step = lambda s: (s[0] + 1, s[1] + sample("z", normal(s[1])))
    walk = lambda: lax.while_loop(lambda s: s[0] < 3, step, (0, 0.0))[1]
    density = maybe(lambda k: log_density(lambda: seed(walk, k)(), {})())
    assert np.isfinite(density(KEY)) and not np.array_equal(density(KEY), density(random.key(1)))


def test_every_device_draws():
    mesh = plait.make_mesh((8,), ("d",))
    draw = lambda: sample("z", normal(pnp.zeros(1)))
    f = plait.shard_map(draw, mesh=mesh, in_specs=(), out_specs=plait.P("d"))
    out, values = trace(seed(f, KEY))()
    assert len(np.unique(out)) == 8
    close(values["z"], np.asarray(out)[:, None])
    close(replay(f, values)(), out)
    close(log_density(f, values)(), lp(out))


def test_the_branch_that_is_taken_counts():
    density = lambda heads: log_density(mixture, {"z": 0.5, "w": 2.0})(heads)
    for f in (density, plait.jit(density)):
        close([f(True), f(False)], [lp(0.5) + lp(2, 0.5, 1), lp(0.5) + lp(2, 0.5, 3)])
    out, values = trace(seed(mixture, KEY))(True)
    close(out, values["w"])
    far = seed(substitute(mixture, {"z": 0.0}), KEY)(False)
    close(far, 3 * seed(substitute(mixture, {"z": 0.0}), KEY)(True))  # one draw, scaled


def test_mapped_inside():
    wide = lambda xs: plait.vmap(lambda x: sample("z", normal(x, 1.0)))(xs)
    out, values = trace(seed(wide, KEY))(XS)
    close(out, values["z"])
    assert len(np.unique(np.asarray(out) - XS)) == 3
    close(log_density(wide, {"z": YS})(XS), lp(YS, XS))


def test_reparametrised_gradients():
    draw = lambda loc, scale: seed(lambda: sample("z", normal(loc, scale)), KEY)()
    noise = np.asarray(draw(0.0, 1.0))
    close(plait.grad(draw, argnums=(0, 1))(2.0, 3.0), [1.0, noise])
    close(draw(2.0, 3.0), 2 + 3 * noise)


def test_on_eight_devices(rows):
    mesh, cut = rows
    xs = np.arange(8, dtype=np.float32)
    local = lambda x: log_density(lambda: sample("z", normal(pnp.ones_like(x), 2.0)), {"z": x})()
    total = lambda x: lax.psum(local(x), "d")
    close(plait.shard_map(total, mesh=mesh, in_specs=cut, out_specs=plait.P())(xs), lp(xs, 1, 2))


def test_exported():
    f = plait.jit(lambda s: log_density(condition(model, {"y": YS}), {"slope": s})(XS))
    file = plait.export.export(f)(np.float32(1.5)).serialize()
    got = plait.export.deserialize(file).call(np.float32(1.5))
    close(got, lp(1.5, 0, 2) + lp(YS, 1.5 * XS, 0.5))


def test_wrong_input(told):
    z = lambda name="z": sample(name, normal())
    told(lambda: model(XS), "nobody decides", "'slope'", "seed(f, key)")
    told(lambda: plait.jit(model)(XS), "nobody decides", "'slope'")
    told(lambda: log_density(model, {"slope": 1.0})(XS), "'y' has no value")
    told(lambda: seed(substitute(model, {"slop": 1.0}), KEY)(XS), "'slop'", "['slope', 'y']")
    told(lambda: log_density(model, {"slope": 1.0, "y": 1.0})(XS), "(3,)", "each step")
    told(lambda: seed(lambda: (z(), z()), KEY)(), "two sites", "'z'")
    told(lambda: trace(seed(lambda: lax.cond(True, z, lambda: z("w")), KEY))(), "['w'], ['z']")
    turn = lambda: lax.while_loop(lambda x: x < 3, lambda x: x + z(), 0.0)
    told(lambda: trace(seed(turn, KEY))(), "trace", "'z'")
    told(lambda: substitute(turn, {"z": 1.0})(), "['z']", "lax.scan")
    told(lambda: sample("z", "normal"), "no distribution")
    told(lambda: sample("z", ("nromal", 1.0)), "no distribution")
    told(lambda: sample("z", normal(XS, XS[:2])), "(3,) and (2,)")
    told(lambda: seed(plait.grad(lambda x: sample("z", normal(x))), KEY)(1.0), "handlers.draw")
