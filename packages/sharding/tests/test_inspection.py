"""inspect_array_sharding: what is told of values of compiled programs.

Invariant: where a value must lie is said by the program: by a constraint on it, or by operands
whose places leave no choice.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.debug import inspect_array_sharding
from plait.errors import ArgumentError
from plait_sharding import NamedSharding, P, SingleDeviceSharding, device_put, shard_map

A = np.arange(64, dtype=np.float32).reshape(8, 8)


@pytest.fixture
def asked():
    """asked(x) asks, and asked.told is what was answered."""

    def ask(x):
        inspect_array_sharding(x, callback=ask.told.append)
        return x

    ask.told = []
    return ask


def test_of_arrays(lies, asked):
    x = device_put(A, lies("x"))
    asked({"a": x, "b": device_put(A, plait.devices()[3])})
    assert asked.told == [lies("x"), SingleDeviceSharding(3)]


def test_in_programs(lies, asked, close):
    @plait.jit
    def f(x, w):
        y = asked(x @ w)
        z = asked(lax.with_sharding_constraint(x + 1, lies(None, "x")))
        return y, asked(z.sum(0))

    x, w = device_put(A, lies("x")), device_put(A, lies(None, "y"))
    for _ in range(3):
        y, z = f(x, w)
        close(y, A @ A)
        close(z, (A + 1).sum(0))
    assert asked.told == [lies("x", "y"), lies(None, "x"), lies("x")]
    asked.told.clear()
    f.lower(x, w).compile()
    assert len(asked.told) == 3  # each compilation is told
    text = f.lower(x, w).compile().as_text()
    assert "custom-call" not in text


def test_it_changes_nothing(lies, asked):
    def f(x):
        y = x @ x.T
        return asked(y * 2) if asked.on else y * 2

    found = []
    for asked.on in (False, True):
        g = plait.jit(lambda x: f(x))
        x = device_put(A, lies("x", "y"))
        found.append((g(x).sharding, np.asarray(g(x))))
    assert found[0][0] == found[1][0] == asked.told[0]
    np.testing.assert_array_equal(found[0][1], found[1][1])


def test_on_one_device(asked, close):
    f = plait.jit(lambda x: asked(x * 2))
    close(f(A), A * 2)
    assert asked.told == [SingleDeviceSharding(0)]
    close(f(device_put(A, plait.devices()[2])), A * 2)
    assert asked.told[1:] == [SingleDeviceSharding(2)]


def test_in_loops_and_functions(lies, asked, close):
    inner = plait.jit(lambda c: asked(c * 2))
    f = plait.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: inner(c), x))
    close(f(device_put(A, lies("x"))), A * 8)
    assert set(asked.told) == {lies("x")}
    g = plait.jit(lambda x: lax.cond(x[0, 0] > 1, lambda x: asked(x) + 1, lambda x: x, x))
    close(g(device_put(A, lies("y"))), A)


def test_scalars_and_nothing(lies, asked):
    f = plait.jit(lambda x: asked((x.sum(), x[:, :0], x.astype("bfloat16"), x > 1)))
    f(device_put(A, lies("x")))
    assert len(asked.told) == 4 and asked.told[0].is_fully_replicated
    assert asked.told[2] == asked.told[3] == lies("x")


def test_two_programs_of_the_same_code_are_both_told(lies):
    for _ in range(2):
        told = []
        f = plait.jit(lambda x: inspect_array_sharding(x, callback=told.append))  # noqa: B023
        f(device_put(A, lies("x")))
        assert told == [lies("x")]


def test_what_the_callback_raises(lies):
    def no(sharding):
        raise KeyError("mine")

    for x in (A, device_put(A, lies("x"))):
        f = plait.jit(lambda x: inspect_array_sharding(x, callback=no))
        with pytest.raises(KeyError, match="mine"):
            f(x)


def test_mistakes(mesh, told):
    told(lambda: inspect_array_sharding(A, callback=3), "to call", kind=ArgumentError)
    told(lambda: inspect_array_sharding("a", callback=print), "inspect_array_sharding")
    f = shard_map(
        lambda x: (inspect_array_sharding(x, callback=print), x)[1],
        mesh=mesh, in_specs=P("x"), out_specs=P("x"),
    )  # fmt: skip
    told(lambda: plait.jit(f)(A), "inside shard_map")
    assert NamedSharding(mesh, P("x"))
