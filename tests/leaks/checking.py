"""The leak checker: what it finds, and what it must not call a leak.

`test_checking.py` runs these tests in a process of their own.

Invariant: whatever is kept here is dropped by the test that kept it.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.debug import checking_leaks
from plait.errors import UnexpectedTracerError

plait.config.cpu_devices = 8
pnp = plait.numpy
X = np.arange(3, dtype=np.float32)
kept: list = []


@pytest.fixture(autouse=True)
def emptied():
    yield
    kept.clear()


def leak(x):
    kept.append(x * 2)  # the line that creates it
    return x


LINE = leak.__code__.co_firstlineno + 1


def over_devices(f):
    return plait.shard_map(
        f, mesh=plait.make_mesh((1,), "i"), in_specs=plait.P("i"), out_specs=plait.P("i")
    )


LEAKS = {
    "jit": lambda: plait.jit(lambda x: leak(x))(X),
    "grad": lambda: plait.grad(lambda x: leak(x).sum())(X),
    "jvp": lambda: plait.jvp(lambda x: leak(x), (X,), (X,)),
    "vmap": lambda: plait.vmap(lambda x: leak(x))(X),
    "shard_map": lambda: over_devices(lambda x: leak(x))(X),
    "scan": lambda: lax.scan(lambda c, _: (leak(c), None), X, None, length=2),
    "cond": lambda: lax.cond(True, lambda x: leak(x), lambda x: x, X),
    "checkpoint": lambda: plait.grad(lambda x: plait.checkpoint(lambda y: leak(y).sum())(x))(X),
    "inner jit": lambda: plait.jit(lambda x: plait.jit(lambda y: leak(y))(x))(X),
    "vmap in jit": lambda: plait.jit(plait.vmap(lambda x: leak(x)))(X),
}


TITLES = {
    "jit": "jit of <lambda>", "grad": "grad of <lambda>", "jvp": "jvp of <lambda>",
    "vmap": "vmap of <lambda>", "shard_map": "shard_map of <lambda>", "scan": "scan of <lambda>",
    "cond": "cond of <lambda>", "checkpoint": "checkpoint of <lambda>",
    "inner jit": "jit of <lambda>", "vmap in jit": "vmap of <lambda>",
}  # fmt: skip


def test_leaks():
    """From every transformation; one look at the process is enough for all."""
    with pytest.raises(UnexpectedTracerError, match="^Leaked values") as e, checking_leaks():
        for run in LEAKS.values():
            run()
    told = e.value.what.splitlines()[1:]
    lines = "\n".join(told[::2])
    assert lines.count(f"created on line {__file__}:{LINE}") == len(LEAKS) == len(kept)
    for name, run in LEAKS.items():
        where = f"{__file__}:{run.__code__.co_firstlineno}"
        assert f"{TITLES[name]} at {where}" in lines, name
    chain = f"    kept by a list of {len(LEAKS)}, of the variables of the module {__name__}"
    assert all(line.startswith(chain) for line in told[1::2]), told
    assert e.value.fix in str(e.value)


def test_who_keeps_it():
    class Holder:
        pass

    holder, local = Holder(), []

    def in_an_object(x):
        holder.seen = {"here": x}
        return x

    def in_a_closure(x):
        local.append((x,))
        return x

    def in_a_function(x):
        kept.append(lambda: x)
        return x

    for f, text in (
        (in_an_object, "kept by a dict of 1, of a Holder"),
        (in_a_closure, "kept by a tuple, of a list of 1, of a variable that a function closes"),
        (in_a_function, "of the function test_who_keeps_it.<locals>.in_a_function.<locals>."),
    ):
        with pytest.raises(UnexpectedTracerError) as e, checking_leaks():
            plait.jit(f)(X)
        assert text in str(e.value), str(e.value)
        holder.__dict__.clear(), local.clear(), kept.clear()


def a_pullback():
    kept.append(plait.vjp(lambda x: pnp.sin(x).sum(), X)[1])


def a_linearized_function():
    kept.append(plait.linearize(lambda x: pnp.sin(x).sum(), X)[1])


def a_jitted_function():
    def f(x):
        inside = [x * 2]
        return inside[0] + 1

    kept.append(plait.jit(plait.vmap(f)))
    kept[-1](X)


def a_failure():
    def f(x):
        y = x * 2
        raise ValueError(y.shape)

    for g in (plait.jit(f), plait.grad(f), plait.vmap(f)):
        try:
            g(X)
        except ValueError as e:
            kept.append(e)


def a_program():
    kept.append(plait.make_program(lambda x: plait.jit(lambda y: y * x)(x))(X))


def types():
    plait.jit(lambda x: (kept.append((x.shape, x.aval)), x)[1])(X)


def a_rule_that_closes_over():
    def f(x):
        g = plait.custom_jvp(lambda y: y * x)
        g.defjvp(lambda p, t: (g(p[0]), t[0] * x))
        return g(x).sum()

    plait.jit(f)(X)
    kept.append(f)


def what_was_put_away_and_taken_back():
    held = {}

    @plait.jit
    def f(x):
        held["x"] = x * 2
        y = held.pop("x")
        return lax.scan(lambda a, _: (a * y, None), x, None, length=2)[0]

    kept.append((f, f(X), plait.grad(lambda x: f(x).sum())(X), held))


def inside_of_another():
    def f(x):
        with checking_leaks():
            y = plait.vmap(lambda v: v * 2)(x)
            z = x * 2
        return y + z

    np.testing.assert_array_equal(plait.jit(f)(X), 4 * X)


def over_several_levels():
    f = plait.vmap(plait.grad(lambda x: lax.cond(x > 0, lax.sin, lax.cos, x)))
    kept.append((plait.jit(over_devices(f))(X), plait.hessian(lambda x: (x**3).sum())(X)))


FINE = [
    a_pullback, a_linearized_function, a_jitted_function, a_failure, a_program, types,
    a_rule_that_closes_over, what_was_put_away_and_taken_back, inside_of_another,
    over_several_levels,
]  # fmt: skip


def test_no_leaks():
    with checking_leaks():
        for use in FINE:
            use()


def test_an_error_in_the_block_stays_that_error():
    with pytest.raises(ValueError, match="mine"), checking_leaks():
        plait.jit(lambda x: leak(x))(X)
        raise ValueError("mine")


def test_what_was_there_before():
    plait.jit(lambda x: leak(x))(X)
    with checking_leaks():
        plait.jit(lambda x: x * 2)(X)


def test_named_maps():
    """A function that differentiates inside, under jit after linearize: no false alarm."""
    with checking_leaks():

        @plait.jit
        def f(x):
            y, lin = plait.linearize(pnp.sin, x)
            g = plait.xmap(plait.grad(lambda v: pnp.sin(v).sum()), ["i", ...], ["i", ...])
            return g(pnp.eye(4) + y) * lin(1.0)

        np.testing.assert_allclose(f(1.0), np.cos(np.eye(4) + np.sin(1.0)) * np.cos(1.0), rtol=1e-5)
        with plait.make_mesh((4, 2), ("x", "y")):
            h = plait.xmap(
                lambda v: v - lax.pmean(v, "i"), ["i", ...], ["i", ...], axis_resources={"i": "x"}
            )
            np.testing.assert_allclose(plait.jit(h)(np.eye(4)), np.eye(4) - 0.25, rtol=1e-6)
