"""Calls of surface functions on arrays: found in a table, and the same as what they are found for.

Invariant: what a call gives is compared with the function's body, which no table is asked for, and
with numpy; how often anything is traced, compiled or called is counted.
"""

import sys

import numpy as np
import pytest

import plait
from plait import random
from plait.errors import PlaitError

pnp = plait.numpy
RNG = np.random.default_rng(0)
DTYPES = ["bool", "int8", "uint8", "int32", "float16", "bfloat16", "float32", "complex64"]
SHAPES = [(), (3,), (2, 3), (0, 3)]


def arrays(shape=(3, 3)):
    for name in DTYPES:
        yield plait.numpy.asarray(RNG.integers(-3, 4, shape)).astype(name)


def same(got, want):
    """Alike in type, weakness and every bit, or alike in a tuple or list of these."""
    if isinstance(want, tuple | list):
        assert type(got) is type(want) and len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w)
        return
    assert type(got) is type(want)
    assert repr(got.aval) == repr(want.aval)
    np.testing.assert_array_equal(
        np.asarray(got.astype("complex64")), np.asarray(want.astype("complex64"))
    )


def outcome(f, *args, **kwargs):
    try:
        return f(*args, **kwargs)
    except Exception as e:
        return type(e), str(e).splitlines()[0]


CALLS = {
    "sum": [((), {}), ((0,), {}), ((), dict(axis=-1, keepdims=True)), (((0, 1),), {}),
            ((), dict(dtype="float32")), ((5,), {}), ((), dict(axis=True))],
    "max": [((), {}), ((0,), {}), ((), dict(keepdims=True)), ((), dict(axis=(1, 0)))],
    "mean": [((), {}), ((1,), {}), ((), dict(axis=0, dtype="float64")), ((), dict(axis="x"))],
    "std": [((), {}), ((1,), {}), ((), dict(ddof=1)), ((), dict(ddof=0.5))],
    "argmax": [((), {}), ((0,), {}), ((), dict(axis=1, keepdims=True))],
    "cumsum": [((), {}), ((1,), {})],
    "any": [((), {}), ((0,), {})],
    "reshape": [((9,), {}), (((3, 3),), {}), (((-1, 3),), {}), ((9, "F"), {}), ((7,), {}),
                (([3, 3],), {})],
    "transpose": [((), {}), (((1, 0),), {}), (((0, 0),), {})],
    "expand_dims": [((0,), {}), (((0, 3),), {}), ((9,), {})],
    "squeeze": [((), {}), ((0,), {})],
    "broadcast_to": [(((2, 3, 3),), {}), (((2, 3),), {})],
    "flip": [((), {}), ((0,), {}), (((0, 1),), {})],
    "swapaxes": [((0, 1), {}), ((0, 2), {})],
    "clip": [((0, 1), {}), ((-1.5, 1.5), {}), ((None, 1), {}), ((300, 301), {}), ((-0.0, 0.0), {}),
             ((0.1, float("nan")), {}), ((float("inf"),), {}), ((2**40,), {}), ((16777217,), {})],
    "round": [((), {}), ((1,), {})],
}  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", sorted(CALLS))
def test_of_one_array_a_call_gives_what_the_body_gives(name, wide):
    f = getattr(pnp, name)
    with plait.enable_x64(wide):
        for x in arrays():
            for args, kwargs in CALLS[name]:
                want = outcome(f.__wrapped__, x, *args, **kwargs)
                for _ in range(2):  # the second one is found
                    got = outcome(f, x, *args, **kwargs)
                    if isinstance(want, tuple) and isinstance(want[0], type):
                        assert got == want
                    else:
                        same(got, want)


NUMBERS = [0, 1, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**40, 300, 16777217, True, False, 0.0, -0.0,
           0.1, 1e-45, 1e300, float("inf"), float("nan"), 1 + 2j, None]  # fmt: skip


@pytest.mark.sampled(10)
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", ["where", "clip"])
def test_python_numbers_count_as_they_do_in_the_body(name, wide):
    """Exact values, weakness, zeros with their sign, and what is refused, beside any dtype."""
    f = getattr(pnp, name)
    mask = pnp.asarray(RNG.integers(0, 2, (3, 3)).astype(bool))
    with plait.enable_x64(wide):
        for x in [*arrays(), *[pnp.zeros(3, d) for d in ("float64", "int64") if wide]]:
            mask = pnp.zeros(x.shape, bool)
            for n in NUMBERS:
                calls = [(mask, x, n), (mask, n, x)] if name == "where" else [(x, n), (x, 0, n)]
                for args in calls:
                    want = outcome(f.__wrapped__, *args)
                    for _ in range(2):
                        got = outcome(f, *args)
                        if isinstance(want, tuple) and isinstance(want[0], type):
                            assert got == want
                        else:
                            same(got, want)
                            assert np.signbit(np.asarray(got.real.astype("float32"))).tolist() == (
                                np.signbit(np.asarray(want.real.astype("float32"))).tolist()
                            )


def test_floats_by_name_are_told_apart_by_their_bits():
    """Of functions that are compiled for each of them: zeros by their sign, and nans are found."""
    f = plait.nn.leaky_relu
    x = pnp.array([-1.0, -2.0, 3.0])
    for slope in (0.0, -0.0, 0.1, float("nan"), float("inf"), -0.0, 0.0):
        got = np.asarray(f(x, negative_slope=slope))
        want = np.where(np.asarray(x) >= 0, x, np.float32(slope) * np.asarray(x))
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got[:2]), np.signbit(want[:2]))
    with plait.events.counting() as n:
        for slope in (0.0, -0.0, float("nan")):
            f(x, negative_slope=slope)
    assert not n["trace"] and not n["lower"]


def test_lists_of_arrays():
    a, b = pnp.ones((2, 3)), pnp.zeros((2, 3), "int32")
    x, y = np.ones((2, 3), np.float32), np.zeros((2, 3), np.int32)
    for _ in range(2):
        for given, plain in (
            ([a, b], [x, y]),
            ((a, b), (x, y)),
            ([a], [x]),
            ([b, b, a], [y, y, x]),
        ):
            np.testing.assert_array_equal(pnp.concatenate(given), np.concatenate(plain))
            np.testing.assert_array_equal(pnp.concatenate(given, 1), np.concatenate(plain, 1))
            np.testing.assert_array_equal(pnp.stack(given, axis=1), np.stack(plain, axis=1))
    np.testing.assert_array_equal(pnp.concatenate([a, 2 * x]), np.concatenate([x, 2 * x]))


def test_what_looks_at_values_is_asked_each_time():
    for values in ([1, 0, 1], [0, 0, 1], [0, 0, 0]):
        (got,) = pnp.where(pnp.array(values))
        np.testing.assert_array_equal(got, np.nonzero(values)[0])


def test_static_arguments_are_told_apart_by_class():
    x = pnp.array([[1, 2], [3, 4]])
    assert pnp.sum(x, axis=1).tolist() == [3, 7]
    assert pnp.sum(x, axis=0).tolist() == [4, 6]
    with pytest.raises((PlaitError, TypeError)):
        pnp.sum(x, axis=1.0)
    with pytest.raises((PlaitError, TypeError)):
        pnp.sum(x, axis=(1.0,))


def test_settings_are_asked():
    """What was found under one setting is forgotten with it."""
    x = pnp.array([1, 2])
    assert pnp.mean(x).dtype == np.float32
    with plait.enable_x64():
        assert pnp.mean(x).dtype == np.float64
    assert pnp.mean(x).dtype == np.float32
    with plait.disable_jit():
        assert pnp.std(x).item() == 0.5


def test_settings_that_come_back_find_what_was_there():
    x = pnp.array([1.0, 2.0, 4.0])

    def both():
        with plait.config(default_matmul_precision="highest"):
            pnp.std(x), x @ x
        pnp.std(x), x @ x

    both()
    with plait.events.counting() as n:
        both()
    assert not n["trace"] and not n["lower"]


def test_deleted_and_donated_arrays():
    x = pnp.ones(3)
    assert pnp.sum(x).item() == 3
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        pnp.sum(x)
    with pytest.raises(RuntimeError, match="deleted"):
        pnp.concatenate([pnp.ones(2), x])
    y = pnp.ones(3)
    assert pnp.concatenate([y]).tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="deleted"):
        pnp.concatenate([y, x])


def test_what_is_given_back_is_what_was_given():
    """No program copies what the body hands on."""
    x = pnp.ones((2, 3))
    for _ in range(2):
        assert pnp.reshape(x, (2, 3)) is pnp.reshape.__wrapped__(x, (2, 3)) is x


def test_errors_are_those_of_the_body_each_time():
    x = pnp.ones((2, 3))
    for _ in range(3):
        with pytest.raises(PlaitError, match="axis"):
            pnp.sum(x, axis=2)
        with pytest.raises(PlaitError):
            x @ x
        with pytest.raises(PlaitError):
            x.reshape(4, 4)


def python_calls(f):
    f(), f(), f()
    count = 0

    def on_call(frame, event, arg):
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(on_call)
    try:
        f()
    finally:
        sys.setprofile(before)
    return count - 1


A, MASK, KEY = pnp.ones((4, 4)), pnp.zeros((4, 4), bool), random.key(0)


@pytest.mark.parametrize(("most", "f"), [
    (2, lambda: pnp.sum(A, axis=0)),
    (2, lambda: A.sum()),
    (2, lambda: pnp.std(A)),
    (2, lambda: pnp.mean(A, axis=(0, 1))),
    (3, lambda: A @ A),
    (2, lambda: pnp.where(MASK, A, A)),
    (4, lambda: pnp.where(MASK, A, 0.0)),
    (6, lambda: pnp.clip(A, 0, 1)),
    (2, lambda: A.reshape(16)),
    (2, lambda: A.T),
    (2, lambda: A.astype(int)),
    (2, lambda: pnp.stack([A, A])),
    (4, lambda: plait.nn.log_softmax(A)),
    (3, lambda: A + A),
    (5, lambda: A + 1),
])  # fmt: skip
def test_python_calls_of_a_call(most, f):
    """The function itself is one, and what says numpy's refusals another."""
    assert python_calls(f) <= most


def test_one_program_for_a_composed_call():
    x = pnp.asarray(np.ones((3, 5, 2), np.float32))
    with plait.events.counting() as n:
        for _ in range(3):
            pnp.std(x, axis=1)
    assert n["lower"] == 1
