"""Partial evaluation as a tool: programs and functions divided into what is known and what is not.

Invariant: the halves together are compared with the whole, run on the same numbers; what the
second half reads and repeats is counted.
"""

import gc
import itertools
import weakref

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait.ext.values import from_numpy
from plait_autodiff.ext import PartialVal, partial_eval, partial_trace, split_program

keep = plait.checkpoint_policies
V = np.float64([0.5, -0.3, 0.8])


def names(program):
    return [e.prim.name.rpartition(".")[2] for e in program.eqns]


def put_together(d, unknown, inst, xs):
    """All results of a divided program, from its two halves; known ones from the first."""
    known = [x for x, u in zip(xs, unknown) if not u]
    outs = ext.evaluate(d.known, known)
    n = len(outs) - d.residuals
    late = ext.evaluate(d.staged, [*outs[n:], *(x for x, i in zip(xs, inst) if i)])
    first, second = iter(outs[:n]), iter(late)
    results = []
    for u, i in zip(d.out_unknown, d.out_inst):
        again = next(second) if i else None
        now = None if u else next(first)
        if i and not u:
            np.testing.assert_array_equal(again, now)
        results.append(again if u else now)
    return results


# ---- values ------------------------------------------------------------------------------------


@pytest.mark.feature("A20")
def test_partial_values():
    aval = ext.Aval((3,), np.dtype(np.float32))
    late, now = PartialVal.unknown(aval), PartialVal.known(np.float32([1, 2]))
    assert not late.is_known() and late.get_known() is None and late.get_aval() is aval
    assert now.is_known() and now.get_aval().shape == (2,)
    np.testing.assert_array_equal(now.get_known(), [1, 2])
    assert PartialVal.unknown(plait.ShapeDtypeStruct((3,), np.float32)).get_aval() is aval
    for bad in ((), None, "x"):
        with pytest.raises(plait.PlaitError):
            PartialVal.known(bad)
        with pytest.raises(plait.PlaitError, match="is none"):
            PartialVal.unknown(bad)


def test_functions():
    """Python runs once; what is known is computed, the rest waits for its argument."""
    late = PartialVal.unknown(plait.ShapeDtypeStruct((3,), np.float64))
    now = PartialVal.known(V)

    def f(x, y):
        if (x.sum() > 0).item():  # known, hence a number
            x = lax.sin(x)
        return [x * 2, x * y, lax.cos(x)]

    p, outs, residuals = partial_trace(f, [now, late], [False, False, True])
    assert [o.is_known() for o in outs] == [True, False, False]
    np.testing.assert_allclose(outs[0].get_known(), np.sin(V) * 2)
    y = from_numpy(V + 1)
    got = ext.evaluate(p, [*residuals, y])
    np.testing.assert_allclose(got[0], np.sin(V) * (V + 1))
    np.testing.assert_allclose(got[1], np.cos(np.sin(V)))
    assert names(p) == ["mul"]
    with pytest.raises(plait.PlaitError, match="needs PartialVals"):
        partial_trace(f, [now, 1.0])
    with pytest.raises(plait.PlaitError, match="instantiate has 1 marks"):
        partial_trace(f, [now, late], [False])


# ---- programs --------------------------------------------------------------------------------


def body(c, x):
    return c * lax.sin(x), lax.cos(c) + lax.sin(lax.sin(x))


def turning(x, n):
    return lax.fori_loop(0, n, lambda i, v: lax.sin(v), x)


@plait.custom_jvp
def cube(x):
    return x * x * x


cube.defjvp(lambda xs, ts: (cube(*xs), 3 * xs[0] ** 2 * ts[0]))

halved = plait.custom_vjp(lambda x: x / 2)
halved.defvjp(lambda x: (x / 2, None), lambda _, ct: (ct / 2,))


@plait.custom_ivjp
def doubled(x, y):
    return x * 2, y + lax.sin(x)


@doubled.defivjp
def _(xs, ys, cts):
    x = ys[0] / 2
    return (x, ys[1] - lax.sin(x)), (2 * cts[0] + lax.cos(x) * cts[1], cts[1])


def with_rules(x, y):
    """Functions with all kinds of rules, and what is made of them by forward mode."""
    a, b = doubled(x, y)
    z = plait.invertible(lambda a: lax.exp(halved(a)) * 2)(a)
    solve = lambda matvec, b: b / 3  # noqa: E731
    s = lax.custom_linear_solve(lambda v: 3 * v, z, solve, symmetric=True)
    along = plait.jvp(lambda v: halved(v) * cube(v), (x,), (x,))[1]
    return (
        s,
        plait.jvp(doubled, (x, y), (x, x))[1],
        plait.grad(lambda v: halved(v).sum())(y),
        along,
        b,
    )


PROGRAMS = {
    "custom rules": with_rules,
    "bounded while": lambda x, y: lax.while_loop(
        lambda s: s[0][0] < 3, lambda s: (s[0] + 1, lax.sin(s[1])), (x, y), max_steps=5
    ),
    "flat": lambda x, y: (lax.sin(lax.sin(x)), lax.cos(x) * y, lax.sin(y)),
    "call": plait.jit(
        lambda x, y: (plait.jit(body)(x, y), plait.jit(lambda v: lax.sin(lax.sin(v)))(x))
    ),
    "cond": lambda x, y: lax.cond(x[0] > 0, lambda x, y: body(x, y), lambda x, y: (y, x), x, y),
    "scan": lambda x, y: lax.scan(body, x, lax.sin(y[:, None] * np.ones(3))),
    "while": lambda x, y: (lax.while_loop(lambda v: v[0] < 9, lambda v: v + 1, x) * y, lax.sin(x)),
    "checkpoint": lambda x, y: plait.checkpoint(body, policy=keep.dots_saveable)(x, y),
    "custom": lambda x, y: (cube(x) * y, cube(y)),
}


@pytest.mark.sampled(10)
@pytest.mark.feature("A22", "A23")
@pytest.mark.parametrize("name", PROGRAMS)
def test_halves_make_the_whole(name):
    """For every choice of known inputs and two policies; with what is asked for besides."""
    program = plait.make_program(PROGRAMS[name])(V, V + 1)
    xs = [from_numpy(V), from_numpy(V + 1)]
    want = [np.asarray(o) for o in ext.evaluate(program, xs)]
    m = len(program.outputs)
    for unknown, policy in itertools.product(
        itertools.product([False, True], repeat=2), (None, keep.nothing_saveable)
    ):
        for more in (False, True):
            inst = tuple(u or more for u in unknown)
            also = (more,) * m
            d = partial_eval(program, unknown, inst_in=inst, ensure_out_inst=also, policy=policy)
            assert len(d.staged.inputs) == d.residuals + sum(inst)
            assert len(d.staged.outputs) == sum(d.out_inst)
            got = put_together(d, unknown, inst, xs)
            for g, w in zip(got, want, strict=True):
                np.testing.assert_allclose(g, w, rtol=1e-12)


@pytest.mark.feature("A22")
def test_known_inputs_that_are_not_instantiated():
    p = plait.make_program(lambda x, y: lax.sin(x) * x * y)(1.0, 2.0)
    d = partial_eval(p, [False, True])
    assert (d.residuals, len(d.staged.inputs), names(d.staged)) == (1, 2, ["mul"])
    d = partial_eval(p, [False, True], policy=keep.nothing_saveable)
    assert (d.residuals, len(d.staged.inputs)) == (1, 2)  # x itself
    assert names(d.staged) == ["sin", "mul", "mul"] and d.repeats
    d = partial_eval(p, [False, True], inst_in=[True, True], policy=keep.nothing_saveable)
    assert (d.residuals, len(d.staged.inputs)) == (0, 2)
    assert names(d.known) == []


@pytest.mark.feature("A23")
def test_results_that_are_to_be_unknown():
    p = plait.make_program(lambda x, y: (lax.sin(x), lax.cos(x)))(1.0, 2.0)
    d = partial_eval(p, False, ensure_out_unknowns=[True, False])
    assert d.out_unknown == d.out_inst == (True, False)
    assert len(d.known.outputs) == 1 + d.residuals
    d = partial_eval(p, False, ensure_out_inst=True)
    assert d.out_unknown == (False, False) and d.out_inst == (True, True)


@pytest.mark.feature("A23")
def test_what_a_loop_carries_comes_to_rest():
    """Unknown in the last of three carries, which each turn hands on to the next."""

    def loop(a, b, c, d):
        step = lambda s, _: ((s[1], s[2], s[2], lax.sin(s[3])), None)  # noqa: E731
        return lax.scan(step, (a, b, c, d), None, length=5)[0]

    p = plait.make_program(loop)(1.0, 2.0, 3.0, 4.0)
    d = partial_eval(p, [False, False, True, False])
    assert d.out_unknown == (True, True, True, False)
    xs = [from_numpy(np.float32(v)) for v in (1, 2, 3, 4)]
    got = put_together(d, (False, False, True, False), (False, False, True, False), xs)
    np.testing.assert_allclose(got[:3], 3)


@pytest.mark.feature("A21")
def test_one_answer_for_one_question():
    p = plait.make_program(lambda x, y: lax.sin(x) * y)(1.0, 2.0)
    one = partial_eval(p, [False, True])
    assert partial_eval(p, (False, True)) is one
    assert partial_eval(p, [True, True]) is not one
    assert split_program(p, (False, True)) is split_program(p, (False, True))
    held = [weakref.ref(one.known), weakref.ref(one.staged), weakref.ref(p)]
    del one, p
    gc.collect()
    assert [r() for r in held] == [None] * 3


@pytest.mark.feature("A24")
def test_nothing_is_kept_in_vain():
    """Of what is known, the first half returns what the second reads, and does no more."""

    def f(x, y):
        unused = lax.exp(x) * y  # would need exp(x)
        return lax.sin(x) * y, unused

    p = plait.make_program(lambda x, y: plait.jit(f)(x, y)[0])(1.0, 2.0)
    d = partial_eval(p, [False, True])
    assert d.residuals == 1
    assert "exp" not in str(d.known) and "exp" not in str(d.staged)
    looped = lambda x, y: lax.scan(lambda c, r: (c, f(r, y)[0]), x, np.ones(4) * x)  # noqa: E731
    d = partial_eval(plait.make_program(looped)(1.0, 2.0), [False, True])
    assert "exp" not in str(d.known) and "exp" not in str(d.staged)


def test_what_acts_acts_once():
    """Effects stay in the first half, also where all else is done again."""
    seen = []

    def f(x, y):
        z = plait.io_callback(lambda v: seen.append(1) or v, x, x)
        return lax.sin(z) * y

    p = plait.make_program(f)(V, V)
    d = partial_eval(p, [False, True], policy=keep.nothing_saveable)
    assert d.known.effects and not d.staged.effects
    got = put_together(d, (False, True), (False, True), [from_numpy(V), from_numpy(V)])
    plait.block_until_ready(got)
    np.testing.assert_allclose(got[0], np.sin(V) * V)
    assert seen == [1]


def test_symbolic_sizes():
    (n,) = plait.symbolic_dims("n")
    p = plait.make_program(PROGRAMS["flat"])(*[plait.ShapeDtypeStruct((n,), np.float64)] * 2)
    d = partial_eval(p, [False, True], policy=keep.nothing_saveable)
    assert all(a.shape == (n,) for a in d.staged.in_avals)


def test_mistakes():
    p = plait.make_program(lambda x, y: lax.sin(x) * y)(1.0, 2.0)
    with pytest.raises(plait.PlaitError, match="unknown has 1 marks, and the program has 2 inputs"):
        partial_eval(p, [True])
    with pytest.raises(plait.PlaitError, match="ensure_out_inst has 3 marks"):
        partial_eval(p, [True, False], ensure_out_inst=[True] * 3)
