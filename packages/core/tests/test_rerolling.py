"""Equal layers as scans: results are those of the same function in numpy, and programs short."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import plait
import plait.numpy as pnp
from plait.errors import ArgumentError, PlaitError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4)).astype(np.float32)
WS = [RNG.normal(size=(4, 4)).astype(np.float32) / 2 for _ in range(9)]


def names(program):
    return [e.prim.name for e in program.eqns]


def scans(f, *args, **options):
    found = plait.make_program(plait.reroll(f, **options))(*args).eqns
    return [(e.params["length"], e.params["carry"]) for e in found if e.prim.name == "core.scan"]


def check(f, *args, size=3, rolled=None, **options):
    """`f(module, *args)` by numpy and, rolled, by Plait, at once and compiled."""
    mine = plait.reroll(lambda *a: f(pnp, *a), size=size, **options)
    want = f(np, *args)
    for got in (mine(*args), plait.jit(mine)(*args)):
        for a, b in zip(plait.tree.leaves(got), plait.tree.leaves(want), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)
    if rolled is not None:
        assert scans(lambda *a: f(pnp, *a), *args, size=size, **options) == rolled


def test_layers_with_weights_of_their_own():
    def f(n, x, ws):
        for w in ws:
            x = n.tanh(x @ w) + x
        return x

    check(f, X, WS, rolled=[(9, 1)])


def test_numbers_that_differ_are_rows():
    def f(n, x, ws):
        for i, w in enumerate(ws):
            x = n.tanh(x @ w) * np.float32(i / 2 + 0.25) + x * (i + 1)
        return x

    check(f, X, WS, rolled=[(9, 1)])


def test_numbers_that_differ_in_sign_of_zero_alone():
    def f(n, x):
        for zero in (0.0, -0.0, 0.0, -0.0, 0.0, -0.0):
            x = n.abs(n.sin(x) * 2) * zero
        return n.copysign(np.float32(1), x)

    check(f, X[0])


def test_shared_weights_are_not_copied():
    def f(n, x, w):
        for _ in range(6):
            x = n.tanh(x @ w) + x
        return x

    check(f, X, WS[0], rolled=[(6, 1)])
    program = plait.make_program(plait.reroll(lambda *a: f(pnp, *a), size=3))(X, WS[0])
    assert names(program) == ["core.scan"]


def test_several_values_are_carried():
    def f(n, x, ws):
        v = x * 0
        for w in ws:
            v = v * np.float32(0.9) + n.sin(x @ w)
            x = x - v * np.float32(0.1)
        return x, v

    check(f, X, WS, size=4, rolled=[(9, 2)])


def test_every_layer_is_read_afterwards():
    def f(n, x, ws):
        seen = []
        for w in ws:
            x = n.tanh(x @ w) + x
            seen.append(n.sum(x))
        return x, seen[3], seen[0] + seen[8], n.stack(seen)

    check(f, X, WS)


def test_the_first_and_the_last_layer_are_others():
    def f(n, x, ws):
        y = n.cos(x @ ws[0])
        for w in ws[1:-1]:
            y = n.tanh(y @ w) + y
        return n.sum(y @ ws[-1], axis=0)

    check(f, X, WS, rolled=[(7, 1)])


def test_a_layer_that_reads_the_one_before_the_last_is_left():
    def f(n, x, ws):
        a, b = x, x
        for w in ws:
            a, b = n.tanh(b @ w) + a, a
        return a + b

    check(f, X, WS)


def test_two_stretches():
    def f(n, x, ws):
        for w in ws[:4]:
            x = n.tanh(x @ w) + x
        x = n.cumsum(x, axis=0)
        for w in ws[4:]:
            x = n.sin(x @ w) * x - w
        return x

    check(f, WS[0], WS, rolled=[(4, 1), (5, 1)])


def test_stretches_of_which_one_goes_on_in_the_other():
    """By the kinds of operations, and not by where operands come from."""

    def f(n, x):
        seen = []
        for _ in range(4):
            x = n.sin(x)
            seen.append(x)
            x = n.cos(x)
        for _ in range(9):
            x = n.tanh(n.sin(x))
        return x, seen

    check(f, X, size=2)
    check(lambda n, x: f(n, n.cos(x)), X, size=1)


def test_layers_that_are_functions():
    layer = plait.jit(lambda x, w: pnp.tanh(x @ w) * 2 - x)

    def f(x, ws):
        for w in ws:
            x = layer(x, w)
        return x

    want = X
    for w in WS:
        want = np.tanh(want @ w) * 2 - want
    assert scans(f, X, WS, size=3) == [(9, 1)]
    np.testing.assert_allclose(plait.reroll(f, size=3)(X, WS), want, rtol=1e-4, atol=1e-5)


def test_layers_within_a_loop():
    def f(x, ws):
        def turn(x, _):
            for w in ws:
                x = pnp.tanh(x @ w) + x
            return x, pnp.sum(x)

        return plait.lax.scan(turn, x, None, length=3)

    program = plait.make_program(plait.reroll(f, size=3))(X, WS)
    (outer,) = (e for e in program.eqns if e.prim.name == "core.scan")
    assert "core.scan" in names(outer.params["body"])
    for a, b in zip(plait.tree.leaves(plait.reroll(f, size=3)(X, WS)), plait.tree.leaves(f(X, WS))):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


def test_layers_of_layers():
    def f(n, x, ws):
        for w in ws[:4]:
            for _ in range(5):
                x = n.tanh(x @ w) + x
            x = n.cos(x) * 2
        return x

    check(f, X, WS, size=3)


def test_keys_are_rows():
    def f(x, keys):
        for k in keys:
            x = pnp.tanh(x + plait.random.normal(k, x.shape)) * 2
        return x

    keys = list(plait.random.split(plait.random.key(0), 6))
    assert (6, 1) in scans(f, X, keys, size=2)
    np.testing.assert_allclose(plait.reroll(f, size=2)(X, keys), f(X, keys), rtol=1e-5)


def test_python_effects_keep_their_order():
    def f(said, x):
        for i in range(6):
            plait.debug.callback(lambda i: said.append(int(i)), np.int32(i), ordered=True)
            x = pnp.tanh(x) * 2 + x
        return x

    one, two = [], []
    f(one, X)
    plait.jit(plait.reroll(lambda x: f(two, x), size=2))(X)
    plait.effects_barrier()
    assert one == two == list(range(6))


def test_sizes_by_name():
    def f(x, w):
        for _ in range(5):
            x = pnp.tanh(x @ w) + x[:, ::-1]
        return x

    x = plait.ShapeDtypeStruct((plait.symbolic_dims("b")[0], 4), np.float32)
    assert scans(f, x, WS[0], size=2) == [(5, 1)]


def test_types_stay_weak():
    def f(x):
        for i in range(5):
            x = pnp.sin(x) * (i + 1.0) + 1
        return x

    assert plait.typeof(plait.reroll(f, size=2)(1.0)) == plait.typeof(f(1.0))
    half = np.float16(0.5)
    assert plait.reroll(f, size=2)(half).dtype == f(half).dtype == np.float16


def test_what_does_not_repeat_is_the_program_itself():
    f = lambda x: pnp.sin(x) * 2 + pnp.cos(x)
    assert str(plait.make_program(plait.reroll(f))(X)) == str(plait.make_program(f)(X))
    three = lambda x: pnp.sin(pnp.sin(pnp.sin(x)))
    assert scans(three, X, size=1) == []
    assert scans(three, X, size=1, times=3) == [(3, 1)]


def test_wrong_arguments():
    for options in ({"times": 1}, {"times": 2.5}, {"size": 0}, {"times": True}):
        with pytest.raises(ArgumentError, match="whole number"):
            plait.reroll(lambda x: x, **options)
    with pytest.raises(ArgumentError, match="needs a function"):
        plait.reroll(3)
    with pytest.raises(PlaitError) as e:
        plait.reroll(lambda x, y: x @ y)(X, X)
    assert __file__ in str(e.value)


OPERATIONS = [
    lambda n, a, b: n.sin(a) + b,
    lambda n, a, b: a * b * np.float32(0.5),
    lambda n, a, b: n.where(a > b, a, -b),
    lambda n, a, b: n.tanh(a - b),
    lambda n, a, b: n.maximum(a, n.cumsum(b)),
]


@pytest.mark.wide
@settings(max_examples=60, deadline=None)
@given(
    st.integers(4, 7),
    st.lists(st.tuples(*[st.integers(0, 9)] * 4), min_size=1, max_size=4),
    st.integers(0, 3),
    st.sets(st.integers(0, 30), max_size=4),
)
def test_any_layers(times, layer, distance, read):
    """Layers of random operations on anything that there is: earlier layers, inputs, weights."""
    weights = [np.float32(RNG.normal(size=3)) for _ in range(times)]

    def f(n, x):
        values = [x, x * 2, n.cos(x)]
        for t in range(times):
            for which, i, j, k in layer:
                recent = values[-len(layer) - 2 :]
                a = recent[i % len(recent)] if k % 3 else values[j % 3]
                b = weights[t] if k % 2 else values[-1 - distance % len(values)]
                values.append(OPERATIONS[which % len(OPERATIONS)](n, a, b))
        return [values[i % len(values)] for i in sorted(read)] + [values[-1]]

    check(f, np.float32(RNG.normal(size=3)), size=1, times=3)


# ---- rows that go from one scan to another ---------------------------------------------------


def transfer(n, x, ws):
    """A network, and what its backward pass reads: weights and values, last layer first."""
    inputs, outputs = [], []
    for w in ws:
        inputs.append(x)
        y = n.tanh(x @ w)
        outputs.append(y)
        x = n.cos(y) * x + y
    found = []
    for w, a, y in zip(ws[::-1], inputs[::-1], outputs[::-1]):
        x = (x * (1 - y * y)) @ w.T + n.sin(a)
        found.append(x.sum(0) * 2)
    return x, found


def test_a_scan_reads_what_another_one_wrote():
    check(transfer, X, WS, rolled=[(9, 1), (9, 1)])
    program = plait.make_program(plait.reroll(lambda *a: transfer(pnp, *a), size=3))(X, WS)
    # One array of the weights, one of the inputs (the first one, and outputs of the first scan);
    # the only rows that are taken out are the results.
    assert names(program).count("core.concatenate") == 2
    assert names(program).count("core.slice") == 9 + 1
    second = [e for e in program.eqns if e.prim.name == "core.scan"][1]
    assert second.params["reverse"]


def test_operations_on_what_each_layer_has_of_its_own_stay():
    """A scan would be longer than the operations: each value goes in and out."""

    def f(n, ws, gs):
        return [(w * np.float32(0.9) - g, g * 2) for w, g in zip(ws, gs)]

    check(f, WS, WS[::-1], size=1, rolled=[])


@pytest.mark.parametrize("of", [lambda r: r, lambda r: r[::-1], lambda r: r[3:] + r[:3]])
def test_rows_in_another_order(of):
    def f(n, x, ws):
        seen = []
        for w in ws:
            x = n.tanh(x @ w) + x
            seen.append(x)
        for a, b in zip(of(seen), seen):
            x = n.sin(x) * n.tanh(a) * np.float32(0.3) + n.cos(b)
        return x

    check(f, X, WS, rolled=[(9, 1), (9, 1)])


def test_layers_that_keep_one_value_several_times():
    """A value is a row of several arrays: these are told apart by identity."""

    def f(n, x):
        rows = []
        for _ in range(6):
            x = n.sin(x)
            rows.append([x, x + 1, x + 1])
        for turn in rows:
            for kept in turn:
                x = x * kept
        return x

    check(f, np.float32(RNG.normal(size=3)), size=1, times=3)


@pytest.mark.wide
@settings(max_examples=40, deadline=None)
@example(6, [(0, 0, 0)] * 4, [(0, 0, 0)] * 2, 0, 1, set())
@given(
    st.integers(4, 6),
    st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=2, max_size=5),
    st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=2, max_size=5),
    st.integers(0, 5),
    st.sampled_from([1, -1]),
    st.sets(st.integers(0, 40), max_size=3),
)
def test_any_layers_after_others(times, first, second, shift, step, read):
    """Layers that read values of earlier layers, in the same order, backwards, or turned."""
    weights = [np.float32(RNG.normal(size=3)) for _ in range(times)]

    def f(n, x):
        rows = [[x]]
        for t in range(times):
            turn = [rows[-1][-1], weights[t]]
            for which, i, j in first:
                turn.append(OPERATIONS[which % 5](n, turn[i % len(turn)], turn[j % len(turn)]))
            rows.append(turn)
        there = rows[1:]
        there = (there[shift % times :] + there[: shift % times])[::step]
        out = [rows[-1][-1]]
        for kept in there:
            turn = [out[-1]]
            for which, i, j in second:
                turn.append(OPERATIONS[which % 5](n, turn[i % len(turn)], kept[j % len(kept)]))
            out.append(turn[-1])
        every = [v for turn in rows for v in turn] + out
        return [every[i % len(every)] for i in sorted(read)] + out[-1:]

    check(f, np.float32(RNG.normal(size=3)), size=1, times=3)
