"""Gradients outside of jit, which are recorded, and compiled as one program when they come again.

Invariant: what a recorded gradient is compared with is a formula, finite differences, or the same
function without recording (`eager_programs=False`), which does one operation after the other.
"""

import gc
import weakref

import numpy as np
import pytest

import plait
import plait.numpy as pnp
import plait_autodiff.recording as recording
from plait import lax
from plait._jit import found_programs
from plait.errors import MissingRule, PlaitError, UnexpectedTracerError
from plait.ext.ir import primitive
from plait.ext.rules import lower_rules

F32 = np.float32
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True, params=[1, 8], ids=["at once", "after some"])
def _when(request, monkeypatch):
    """A structure is compiled when it is seen first, or in the midst of the calls of a test."""
    monkeypatch.setattr(found_programs, "_SIGHTS", request.param)
    found_programs.forget_found()


def each(*calls):
    """What gradients give in ten calls with these arguments in turn, and without recording."""
    f, *arguments = calls
    for i in range(10):
        args = arguments[i % len(arguments)]
        got = plait.value_and_grad(f)(*args)
        with plait.config(eager_programs=False):
            want = plait.value_and_grad(f)(*args)
        alike(got, want)


def alike(got, want):
    gs, tree = plait.tree.flatten(got)
    ws, wanted = plait.tree.flatten(want)
    assert tree == wanted
    for g, w in zip(gs, ws, strict=True):
        assert repr(plait.typeof(g)) == repr(plait.typeof(w))
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=2e-5, atol=1e-6)


def mlp(weights, x):
    for w, b in weights:
        x = pnp.tanh(x @ w + b)
    return pnp.mean(x**2)


WEIGHTS = [
    (pnp.asarray(RNG.normal(size=(5, 5)).astype(F32)), pnp.asarray(RNG.normal(size=5).astype(F32)))
    for _ in range(3)
]
X = pnp.asarray(RNG.normal(size=(4, 5)).astype(F32))


def test_a_network():
    each(mlp, (WEIGHTS, X), (WEIGHTS[:2], X), ([(w, 2 * b) for w, b in WEIGHTS], X))


def test_one_program_runs_where_the_structure_is_known():
    """Nothing is traced, lowered or compiled for it again; and it is one launch."""
    g = plait.value_and_grad(mlp)
    for _ in range(9):
        g(WEIGHTS, X)
    with plait.events.counting() as n:
        g(WEIGHTS, X)
    assert not n["lower"] and not n["compile"] and not n["trace"]
    assert [w.used for w in found_programs._compiled.values()] == [True]


def test_structures_that_change_at_every_call_are_not_compiled(monkeypatch):
    """Forty gradients, each of another program of the same operations: few of them are."""
    monkeypatch.setattr(found_programs, "_SIGHTS", 8)

    def f(x, n):
        for i in range(n):
            x = pnp.sin(x) if (n >> (i % 5)) % 2 else x * x
        return pnp.sum(x)

    x = pnp.asarray(np.linspace(0.1, 0.9, 4, dtype=F32))
    for n in range(4, 44):
        got = plait.grad(f)(x, n)
        with plait.config(eager_programs=False):
            np.testing.assert_allclose(got, plait.grad(f)(x, n), rtol=1e-4, atol=1e-6)
    assert len(found_programs._compiled) <= 4


def test_the_users_code_runs_once_a_call():
    runs = []

    def f(x):
        runs.append(len(runs))
        return pnp.sum(pnp.sin(x) * x)

    for i in range(12):
        plait.grad(f)(X)
        assert len(runs) == i + 1


def test_numbers_and_arrays_that_python_closes_over_are_read_at_each_call():
    rate, table = [1.0], np.ones(3, F32)
    x = pnp.asarray(np.array([1.0, 2.0, 3.0], F32))
    f = lambda x: pnp.sum(x * x * rate[0] * table)  # noqa: E731
    for i in range(12):
        rate[0] = [1.0, 2.5, -0.0, 0.0][i % 4]
        table[:] = i
        np.testing.assert_array_equal(plait.grad(f)(x), 2 * np.asarray(x) * rate[0] * i)


@pytest.mark.parametrize(("a", "b"), [(0.0, -0.0), (1, True), (1, 1.0), (float("nan"), 1.0)])
def test_numbers_that_are_equal_and_not_the_same(a, b):
    def f(x, n):
        return pnp.sum(1 / (x * n)) if n is not True else pnp.sum(x * 7)

    for n in (a, b) * 6:
        got = plait.grad(f)(X, n)
        with plait.config(eager_programs=False):
            np.testing.assert_allclose(got, plait.grad(f)(X, n), rtol=1e-5)


def test_branches_of_python():
    f = lambda x: pnp.sum(pnp.sin(x)) if pnp.sum(x) > 0 else pnp.sum(x**3)  # noqa: E731
    for sign in (1.0, -1.0) * 6:
        x = pnp.asarray(np.array([1.0, 2.0], F32) * F32(sign))
        want = np.cos(x) if sign > 0 else 3 * np.asarray(x) ** 2
        np.testing.assert_allclose(plait.grad(f)(x), want, rtol=1e-6)


def test_loops_of_python_until_a_value_is_small():
    def root(a):
        x = a
        while abs(x * x - a) > 1e-5:
            x = (x + a / x) / 2
        return x

    for a in (2.0, 9.0, 0.5, 2.0) * 3:
        np.testing.assert_allclose(plait.grad(root)(a), 0.5 / np.sqrt(a), rtol=1e-4)


def test_effects_come_in_order_and_once(capsys):
    def f(x):
        print("before")
        y = pnp.sum(pnp.sin(x))
        plait.debug.print("value {}", y)
        print("after")
        return y * 2

    for _ in range(10):
        plait.grad(f)(pnp.zeros(2))
        assert capsys.readouterr().out.split() == ["before", "value", "0.0", "after"]


def test_rules_of_the_user_may_branch():
    @plait.custom_vjp
    def clipped(x):
        return x * 1.0

    def backward(x, ct):
        return (ct if float(np.asarray(x)) < 1 else 0 * ct,)

    clipped.defvjp(lambda x: (clipped(x), x), backward)
    for x in (0.5, 2.0) * 6:
        got = plait.grad(lambda x: clipped(pnp.sin(x) + x))(x)
        want = (np.cos(x) + 1) if np.sin(x) + x < 1 else 0
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_what_is_returned_beside_the_value():
    kept = object()

    def f(x, y):
        z = pnp.sin(x)
        return pnp.sum(z * y["a"]), {"z": z, "y": y["a"], "n": 3, "kept": kept, "x": x}

    x, y = X, {"a": X + 1}
    for _ in range(10):
        (value, aux), g = plait.value_and_grad(f, has_aux=True)(x, y)
        np.testing.assert_allclose(value, np.sum(np.sin(x) * np.asarray(y["a"])), rtol=1e-5)
        np.testing.assert_allclose(g, np.cos(x) * np.asarray(y["a"]), rtol=1e-5)
        np.testing.assert_allclose(aux["z"], np.sin(x), rtol=1e-6)
        assert aux["n"] == 3 and aux["kept"] is kept and aux["y"] is y["a"]
        np.testing.assert_array_equal(aux["x"], x)


def test_weak_numbers_integers_and_complex_ones():
    each(lambda x: x**3 * 2, (2.0,), (pnp.float32(2),), (pnp.asarray(F32(2)),), (np.float32(2),))
    each(lambda x: x * 2.5, (pnp.asarray(2.0, "bfloat16"),), (np.float64(3),))
    each(lambda z: pnp.real(z * z), (pnp.asarray(1 + 2j),), (3 - 1j,))
    f = lambda n, x: pnp.sum(x) * n  # noqa: E731
    for _ in range(10):
        g = plait.grad(f, (0, 1), allow_int=True)(pnp.asarray(3), X)
        assert g[0].dtype == plait.dtypes.float0
        np.testing.assert_array_equal(g[1], np.full((4, 5), 3, F32))
        z = plait.grad(lambda z: z**2, holomorphic=True)(pnp.asarray(1 + 2j))
        np.testing.assert_allclose(z, 2 + 4j)


SCALARS = [np.float64(0.1), np.float16(0.1), np.complex128(0.1 + 0.7j), np.complex64(0.1j)]
WAYS = {
    "grad": lambda f, x: plait.grad(f, holomorphic=np.iscomplexobj(x))(x),
    "vjp": lambda f, x: plait.vjp(f, x)[1](np.ones_like(x))[0],
    "jvp": lambda f, x: plait.jvp(f, (x,), (np.ones_like(x),))[1],
    "linearize": lambda f, x: plait.linearize(f, x)[1](np.ones_like(x)),
    "jacfwd": lambda f, x: plait.jacfwd(f, holomorphic=np.iscomplexobj(x))(x),
    "vmap": lambda f, x: plait.vmap(lambda _, x: plait.jvp(f, (x,), (x / x,))[1], (0, None))(
        np.zeros(1), x
    )[0],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("x", SCALARS, ids=lambda x: x.dtype.name)
def test_numpy_scalars_keep_their_dtype(x, way):
    """They are weak, as Python's numbers are, and need not have the dtypes of these."""

    def f(v):
        v = pnp.asarray(v, x.dtype)
        return sum(pnp.sin(v * k) for k in range(1, 6))

    want = sum(k * np.cos(k * x.astype(np.complex128)) for k in range(1, 6))
    for _ in range(10):
        got = np.asarray(WAYS[way](f, x))
        assert got.dtype == x.dtype
        close = 1e-14 if x.dtype.name in ("float64", "complex128") else 5e-3
        np.testing.assert_allclose(got, want if np.iscomplexobj(x) else want.real, rtol=close)


def test_unused_arguments_and_constant_functions():
    each(lambda t: pnp.sum(t["a"]), ({"a": X, "b": X},))
    each(lambda x: 3.0, (X,))
    each(lambda x: x, (2.0,))
    each(lambda x: pnp.sum(lax.stop_gradient(x)), (X,))


def test_loops_and_calls_with_what_they_close_over():
    """Programs in operations are told apart by structure, and by the arrays that they hold."""

    def run(scale):
        held = pnp.full(5, scale)
        turn = plait.jit(lambda c: c * held)

        def f(w):
            return pnp.sum(lax.scan(lambda c, x: (turn(pnp.tanh(c @ w)) + x, None), X[0], X)[0])

        return f

    w = WEIGHTS[0][0]
    for scale in (1.0, 2.0, 3.0) * 4:
        f = run(scale)
        got = plait.grad(f)(w)
        with plait.config(eager_programs=False):
            np.testing.assert_allclose(got, plait.grad(f)(w), rtol=2e-4, atol=1e-5)


def test_inside_and_around_other_transformations():
    f = lambda x: pnp.sum(pnp.sin(x) ** 3)  # noqa: E731
    second = lambda x: 6 * np.sin(x) * np.cos(x) ** 2 - 3 * np.sin(x) ** 3  # noqa: E731
    x = np.linspace(0.1, 1.2, 5, dtype=F32)
    for _ in range(10):
        g = plait.grad(lambda x: pnp.sum(plait.grad(f)(x)))(pnp.asarray(x))
        np.testing.assert_allclose(g, second(x), rtol=1e-4)
        t = plait.jvp(plait.grad(f), (pnp.asarray(x),), (pnp.ones(5),))[1]
        np.testing.assert_allclose(t, second(x), rtol=1e-4)
        j = plait.grad(lambda x: pnp.sum(plait.jit(plait.grad(f))(x)))(pnp.asarray(x))
        np.testing.assert_allclose(j, second(x), rtol=1e-4)
        h = plait.grad(lambda x: plait.jvp(f, (x,), (pnp.ones(5),))[1])(pnp.asarray(x))
        np.testing.assert_allclose(h, second(x), rtol=1e-4)


@pytest.mark.parametrize("early", [False, True])
def test_values_that_escape(early):
    kept = []

    def f(x):
        y = pnp.sin(x)
        if early and pnp.sum(y) > 1e9:
            return y
        kept.append(y)
        return pnp.sum(y)

    for _ in range(10):
        plait.grad(f)(X)
        with pytest.raises(UnexpectedTracerError, match="test_recording.py"):
            kept.pop() + 1


def test_errors_are_said_as_ever():
    nothing = primitive("recorded.nothing")(lambda x: x)
    lower_rules.rule(nothing)(lambda e, xs, ins, outs: xs[0])

    for _ in range(10):
        with pytest.raises(PlaitError, match="one scalar result"):
            plait.grad(lambda x: pnp.sin(x))(X)
        with pytest.raises(PlaitError, match="real"):
            plait.grad(lambda x: pnp.sum(pnp.sin(x) + 1j))(X)
        with pytest.raises(MissingRule, match="test_recording.py"):
            plait.grad(lambda x: pnp.sum(nothing.bind(pnp.sin(x))))(X)
        with pytest.raises(ZeroDivisionError):
            plait.grad(lambda x: pnp.sum(x) * (1 // 0))(X)
        with pytest.raises(PlaitError, match="allow_int"):
            plait.grad(lambda x: x * 2)(3)


def test_deleted_arrays():
    for _ in range(10):
        x = pnp.ones(3) * 2
        plait.grad(lambda x: pnp.sum(x * x))(x)
        x.delete()
        with pytest.raises(RuntimeError, match="deleted"):
            plait.grad(lambda x: pnp.sum(x * x))(x)


def test_settings_are_part_of_what_is_known():
    f = lambda x: pnp.sum(x * np.arange(3)) * 0.1  # noqa: E731
    for i in range(12):
        with plait.enable_x64(i % 2 == 0):
            g = plait.grad(f)(pnp.asarray([1.0, 2.0, 3.0]))
            assert g.dtype == (np.float64 if i % 2 == 0 else np.float32)
    with plait.disable_jit():
        assert plait.grad(lambda x: x * 3.0)(2.0) == 3


@pytest.mark.sampled(6)
def test_nothing_is_kept_of_functions_and_arrays():
    class Data(float):
        pass

    def call():
        data, w = Data(3.0), pnp.asarray(np.ones(3, F32))
        f = lambda x: pnp.sum(pnp.sin(x) * float(data) * w)  # noqa: E731
        plait.grad(f)(X[0, :3])
        return weakref.ref(f), weakref.ref(data), weakref.ref(w)

    for _ in range(10):
        kept = call()
        gc.collect()
        assert [r() for r in kept] == [None] * 3


@pytest.mark.parametrize(("f", "factor"), [
    (lambda x, i: pnp.sum(pnp.sin(x)) if pnp.sum(x) > 0 else pnp.sum(x), lambda i: 1),
    (lambda x, i: pnp.sum(pnp.sin(x)) * (1 + i), lambda i: 1 + i),
], ids=["branching", "changing"])  # fmt: skip
def test_what_never_comes_again_is_recorded_no_more(f, factor, monkeypatch):
    monkeypatch.setattr(found_programs, "_SIGHTS", 8)
    x = np.linspace(0.1, 1, 5, dtype=F32)
    recorded = []

    class Counted(recording.Recording):
        def __init__(self, *args):
            recorded.append(args)
            super().__init__(*args)

    monkeypatch.setattr(recording, "Recording", Counted)
    for i in range(50):
        np.testing.assert_allclose(plait.grad(f)(x, i), np.cos(x) * factor(i), rtol=1e-5)
    assert 8 < len(recorded) < 40


def test_threads():
    from concurrent.futures import ThreadPoolExecutor

    g = plait.grad(mlp)
    with plait.config(eager_programs=False):
        want = g(WEIGHTS, X)
    with ThreadPoolExecutor(4) as pool:
        for got in pool.map(lambda _: g(WEIGHTS, X), range(60)):
            alike(got, want)
