"""checkpoint_scan: the values of a scan, in less memory.

Invariant: memory is what the compiler counts; values are those of the plain scan, whose derivatives
other tests compare with finite differences.
"""

import gc
import weakref

import numpy as np
import pytest

import plait
from plait import lax

pnp = plait.numpy
rng = np.random.default_rng(0)


def temporaries(f, *args):
    """Bytes of temporaries of the compiled function."""
    return plait.jit(f).lower(*args).compile().memory_analysis().temp_size_in_bytes


def step(c, x):
    c = lax.sin(c * 0.1) * 0.5 + x
    return lax.cos(c) * 0.5, c.sum()


def scanned(schedule, reverse=False):
    def loss(c, xs):
        if schedule is None:
            c, ys = lax.scan(step, c, xs, reverse=reverse)
        else:
            c, ys = plait.checkpoint_scan(step, c, xs, schedule=schedule, reverse=reverse)
        return c.sum() + (ys * ys * np.arange(ys.size)).sum()

    return loss


@pytest.mark.sampled(6)
@pytest.mark.parametrize("reverse", [False, True])
def test_schedules_change_no_values(reverse):
    """With a length that divides evenly at no level, in both directions; and the second order."""
    c = pnp.asarray(rng.standard_normal(4))
    xs = pnp.asarray(rng.standard_normal(11))
    plain = scanned(None, reverse)
    value, want = plait.jit(plait.value_and_grad(plain, (0, 1)))(c, xs)
    again = plait.jit(plait.grad(lambda c: plait.grad(plain)(c, xs) @ c))(c)
    for schedule in (4, "sqrt", "log"):
        f = scanned(schedule, reverse)
        got, grads = plait.jit(plait.value_and_grad(f, (0, 1)))(c, xs)
        np.testing.assert_allclose(got, value, rtol=1e-12)
        for g, w in zip(grads, want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-10)
        if schedule == "log" and not reverse:
            twice = plait.jit(plait.grad(lambda c, f=f: plait.grad(f)(c, xs) @ c))(c)
            np.testing.assert_allclose(twice, again, rtol=1e-9)


def test_memory_of_schedules():
    """Of n = 256 carries: all of them; some 2 * 16; some 2 * 8."""
    c = pnp.asarray(rng.standard_normal(1000).astype(np.float32))
    xs = pnp.asarray(rng.standard_normal(256).astype(np.float32))
    size = {s: temporaries(plait.grad(scanned(s)), c, xs) / 4000 for s in (None, 1, "sqrt", "log")}
    assert size[None] > 2 * 256
    assert 256 < size[1] < 1.2 * 256
    assert size["sqrt"] < 2.5 * 32
    assert size["log"] < 1.5 * 16


def test_program_of_the_logarithmic_schedule():
    """Its size grows with the logarithm of the length, and so do the traces of the step."""
    traced = [0]

    def counted(c, x):
        traced[0] += 1
        return step(c, x)

    def equations(n):
        f = lambda c: plait.checkpoint_scan(counted, c, np.ones(n), schedule="log")[0].sum()  # noqa: E731
        text = str(plait.make_program(plait.grad(f))(np.ones(3)))
        return text.count("\n")

    sizes = [equations(2**k) for k in (4, 6, 8)]
    assert sizes[2] - sizes[1] <= 1.2 * (sizes[1] - sizes[0]) + 8
    assert traced[0] <= 6


def test_carries_and_rows_are_trees():
    def f(c, x):
        return {"a": c["a"] * x[0], "n": c["n"] + 1}, (c["a"], {"b": x[1]})

    init = {"a": np.float32(2), "n": np.int32(0)}
    xs = (np.ones(5, np.float32) * 2, np.arange(5))
    for schedule in (1, 2, "log"):
        last, (ys, more) = plait.checkpoint_scan(f, init, xs, schedule=schedule)
        assert (float(last["a"]), int(last["n"])) == (64, 5)
        np.testing.assert_array_equal(ys, [2, 4, 8, 16, 32])
        np.testing.assert_array_equal(more["b"], np.arange(5))
        last, _ = plait.checkpoint_scan(
            lambda c, _: (c * 2, None), 1.0, length=6, schedule=schedule
        )
        assert float(last) == 64
        last, ys = plait.checkpoint_scan(
            lambda c, x: (c + x, c), 0.0, np.zeros(0), schedule=schedule
        )
        assert float(last) == 0 and ys.shape == (0,)


def test_mistaken_schedules():
    f = lambda c, x: (c, x)  # noqa: E731
    for bad in ("squirt", 0, True, 2.5, None):
        with pytest.raises(plait.PlaitError, match="checkpoint_scan has no schedule"):
            plait.checkpoint_scan(f, 1.0, np.ones(3), schedule=bad)
    with pytest.raises(plait.PlaitError, match="the leading axes of all xs|differ"):
        plait.checkpoint_scan(f, 1.0, (np.ones(3), np.ones(4)))
    with pytest.raises(plait.PlaitError, match="neither xs nor length"):
        plait.checkpoint_scan(f, 1.0)
    (n,) = plait.symbolic_dims("n")
    rows = plait.ShapeDtypeStruct((n,), np.float32)
    with pytest.raises(plait.PlaitError, match="needs a length that is a number, not n"):
        plait.eval_shape(lambda xs: plait.checkpoint_scan(f, 1.0, xs), rows)
    plait.eval_shape(lambda xs: plait.checkpoint_scan(f, 1.0, xs, schedule=1), rows)


def test_what_is_made_of_a_step_is_found_again():
    """The second call traces nothing; the function is not kept alive."""
    traced = [0]

    def make():
        def f(c, x):
            traced[0] += 1
            return c * x, None

        go = lambda s: plait.checkpoint_scan(f, 1.0, np.ones(9), schedule=s)[0]  # noqa: E731
        with plait.events.counting() as counts:
            for s in ("sqrt", "log", 1):
                go(s)
            before = dict(counts)
            for s in ("sqrt", "log", 1):
                go(s)
        assert dict(counts) == before
        return weakref.ref(f)

    ref = make()
    gc.collect()
    assert ref() is None and traced[0] <= 3
