"""A function that was traced with a value that has changed since: the next call warns.

Invariant: results are those of the first trace; each warning is expected.
"""

import random
import types
import warnings

import numpy as np
import pytest

import plait
from plait.errors import PurityWarning

X = np.float32([1, 2])
rate = 1.0
table = {"a": 1}


@pytest.fixture(autouse=True)
def on():
    with plait.config(purity_warning=True):
        yield


def warned(f, *args):
    """Return the texts of the warnings of a call."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        f(*args)
    return [str(w.message) for w in found if w.category is PurityWarning]


class Model:
    def __init__(self):
        self.scale, self.weights, self.calls = 1.0, np.float32([1, 1]), 0

    def __call__(self, x):
        self.calls += 1
        return x * self.scale + self.weights

    def step(self, x):
        return x * self.scale


def test_a_global():
    global rate
    f = plait.jit(lambda x: x * rate)
    assert warned(f, X) == []
    rate = 2.0
    (text,) = warned(f, X)
    assert "`rate` was 1.0; now it is 2.0" in text
    assert f"{__file__}:" in text
    assert warned(f, X) == []  # once for each change
    np.testing.assert_array_equal(f(X), X)


def test_a_variable_around_it():
    k = 1

    def f(x):
        return x * k

    jitted = plait.jit(f)
    assert warned(jitted, X) == []
    k = 2
    assert "the variable `k` was 1; now it is 2" in warned(jitted, X)[0]


@pytest.mark.parametrize("of", [lambda m: m, lambda m: m.step, lambda m: lambda x: x * m.scale])
def test_attributes(of):
    model = Model()
    f = plait.jit(of(model))
    assert warned(f, X) == []
    model.scale = 3.0
    (text,) = warned(f, X)
    assert ".scale` was 1.0; now it is 3.0" in text


def test_elements_of_an_array_of_numpy():
    model = Model()
    f = plait.jit(model)
    f(X)
    model.weights[0] = 7
    assert ".weights` was" in warned(f, X)[0]


def test_a_module_of_the_user():
    settings = types.ModuleType("settings")
    settings.__file__ = __file__
    settings.factor = 2
    f = plait.jit(lambda x: x * settings.factor)
    f(X)
    settings.factor = 3
    assert "`settings.factor` was 2" in warned(f, X)[0]


@pytest.mark.parametrize("draws", [lambda x: x * np.random.rand(), lambda x: x * random.random()])
def test_random_numbers(draws):
    f = plait.jit(draws)
    assert warned(f, X) == []
    assert "were drawn once" in warned(f, X)[0]
    assert warned(f, X) == []


def test_seen_at_calls_of_other_types():
    k = 1
    f = plait.jit(lambda x: x + k)
    f(X)
    f(X)
    k = 2
    assert warned(f, X) == []  # this call costs nothing more
    assert "`k` was 1" in warned(f, np.float32([1]))[0]


def test_what_a_function_writes_is_its_own():
    calls = 0

    def f(x):
        nonlocal calls
        calls += 1
        return x

    jitted = plait.jit(f)
    jitted(X)
    calls = 10
    assert warned(jitted, X) == []


def test_containers_and_functions_are_left_alone():
    seen = []
    f = plait.jit(lambda x: (seen.append(1), x * table["a"], len(seen))[1])
    f(X)
    seen.append(2)
    assert warned(f, X) == []


def test_off():
    k = 1
    f = plait.jit(lambda x: x * k)
    with plait.config(purity_warning=False):
        f(X)
        k = 2
        assert warned(f, X) == []


def test_each_call_in_a_block():
    k = 1
    inner = lambda x: x * k  # noqa: E731
    f = plait.jit(lambda x: inner(x))
    with plait.debug.checking_purity():
        for _ in range(3):
            assert warned(f, X) == []
        k = 2  # read by a function that the jitted one calls
        assert "`k` was 1; now it is 2" in warned(f, X)[0]
        np.testing.assert_array_equal(f(X), X)
    assert warned(f, X) == []


def test_fast_calls_return_the_same():
    k = 3
    f = plait.jit(lambda x, y: (x * k, y))
    for _ in range(4):
        a, b = f(X, {"y": X})
        np.testing.assert_array_equal(a, 3 * X)
        np.testing.assert_array_equal(b["y"], X)


@pytest.mark.parametrize(
    "file", ["<stdin>", "<ipython-input-1-a>", "<python-input-0>", "<console>"]
)
def test_functions_typed_into_consoles_are_looked_at(file):
    scope = {"plait": plait}
    lines = "rate = 0.1", "f = plait.jit(lambda x: x * rate)", "f(1.0)", "rate = 0.2"
    for line in lines:
        exec(compile(line, file, "exec"), scope)
    with plait.config(purity_warning=True), pytest.warns(PurityWarning, match="global `rate` was"):
        exec(compile("f(1.0)", file, "exec"), scope)
