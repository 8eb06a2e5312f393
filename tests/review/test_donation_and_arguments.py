"""What jit does with arguments: donated, static, keyword, out of range, and of odd kinds."""

import functools

import numpy as np
import pytest

import plait
from plait import lax
from plait.errors import (
    ConcretizationError,
    DeletedArrayError,
)
from plait.ext.errors import (
    TypeRule,
)

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


ones = np.ones(4, np.float32)


# ---- donation --------------------------------------------------------------------------------


def test_captured_array_that_was_donated():
    """A compiled function whose closed-over array has been donated elsewhere: our error."""
    x = f32(ones)
    uses = plait.jit(lambda y: y + x)
    uses(f32(ones))
    plait.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    for call in (
        lambda: uses(f32(ones)),
        lambda: plait.jit(lambda y: y * x)(f32(ones)),
        lambda: plait.grad(lambda y: (y * x).sum())(f32(ones)),
        lambda: lax.scan(lambda c, _: (c + x, None), f32(ones), None, length=2),
        lambda: x + 1,
        lambda: np.asarray(x),
    ):
        with pytest.raises(DeletedArrayError):
            call()


def test_donated_twice():
    """One array for two donated arguments, or for a donated and another one."""
    x = f32(ones)
    try:
        out, _ = plait.jit(lambda a, b: (a + b, a - b), donate_argnums=(0, 1))(x, x)
    except plait.PlaitError:
        pass
    else:
        np.testing.assert_array_equal(out, 2 * ones)
    y = f32(ones)
    try:
        out = plait.jit(lambda a, b: a + b, donate_argnums=0)(y, y)
    except plait.PlaitError:
        pass
    else:
        np.testing.assert_array_equal(out, 2 * ones)


def test_donated_argument_is_gone():
    """A donated argument is deleted, and says so; under a transformation nothing is donated."""
    f = plait.jit(lambda x: x * 2.0, donate_argnums=0)
    x = f32(ones)
    np.testing.assert_array_equal(f(x), 2 * ones)
    assert x.is_deleted() and "deleted" in repr(x)
    with pytest.raises(DeletedArrayError):
        f(x)
    y = f32(ones)
    np.testing.assert_array_equal(plait.grad(lambda y: f(y).sum())(y), 2 * ones)
    np.testing.assert_array_equal(plait.vmap(f)(y), 2 * ones)
    np.testing.assert_array_equal(y, ones)


def test_donating_in_a_loop():
    """State that is passed through a donating step."""
    step = plait.jit(lambda s, k: (s[0] + k, s[1] * 2), donate_argnums=0)
    state = f32(0), f32(1)
    for i in range(5):
        state = step(state, f32(i))
    assert [s.item() for s in state] == [10, 32]


# ---- static arguments ------------------------------------------------------------------------


def test_partial_with_static_arguments():
    """jit of functools.partial and of other callables, with static arguments."""
    f = functools.partial(lambda n, x: x * n)
    assert plait.jit(f, static_argnums=0)(2, f32(1)).item() == 2
    g = functools.partial(lambda k, n, x: x * n + k, 10)
    assert plait.jit(g, static_argnums=0)(2, f32(1)).item() == 12
    assert plait.jit(functools.partial(lambda x, n: x * n, n=3))(f32(1)).item() == 3

    class Scale:
        def __call__(self, x, n):
            return x * n if isinstance(n, int) else 0

    assert plait.jit(Scale(), static_argnums=1)(f32(1), 3).item() == 3
    assert plait.jit(Scale(), static_argnames="n")(f32(1), n=3).item() == 3


def test_static_from_the_end():
    """Negative positions count from the end of the signature."""
    f = lambda x, n: x * (2 if n else 1)  # noqa: E731
    assert plait.jit(f, static_argnums=-1)(f32(1), True).item() == 2
    assert plait.jit(f, static_argnums=(-1,))(f32(1), False).item() == 1
    assert plait.jit(lambda n, x: x * n, static_argnums=-2)(3, f32(2)).item() == 6


def test_static_name_given_by_position():
    """A name is a position too, and a position a name."""
    f = lambda x, n: x * n if isinstance(n, int) else "traced"  # noqa: E731
    assert plait.jit(f, static_argnames="n")(f32(1), 3).item() == 3
    assert plait.jit(f, static_argnames="n")(f32(1), n=3).item() == 3
    assert plait.jit(f, static_argnums=1)(f32(1), n=3).item() == 3
    assert plait.jit(f, static_argnums=1)(f32(1), 3).item() == 3
    mixed = plait.jit(lambda a, b, c: a * b + c, static_argnames=("b",), static_argnums=(2,))
    assert mixed(f32(2), 3, 4).item() == mixed(f32(2), b=3, c=4).item() == 10


def test_static_that_cannot_be():
    """A list can not be hashed, an argument can not be out of range."""
    with pytest.raises(TypeRule, match="hashable"):
        plait.jit(lambda n, x: x * n[0], static_argnums=0)([1], f32(1))
    with pytest.raises(TypeRule, match="out of range"):
        plait.jit(lambda x: x, static_argnums=3)
    with pytest.raises(TypeRule, match="no argument"):
        plait.jit(lambda x: x, static_argnames="y")


def test_method():
    """A method decorated with jit says that `self` is no array."""

    class Model:
        k = 2.0

        @plait.jit
        def f(self, x):
            return x * self.k

        def g(self, x):
            return x * self.k

    model = Model()
    with pytest.raises(TypeRule, match="Model"):
        model.f(f32(1))
    assert plait.jit(model.g)(f32(1)).item() == 2


# ---- numbers that do not fit -----------------------------------------------------------------


def test_python_numbers_that_do_not_fit():
    """A Python integer that the array's dtype can not hold: our error, or the sum modulo the range
    of a dtype; never an exception of numpy's, nor a saturated or random number."""
    one = {t: pnp.asarray(np.dtype(t).type(1)) for t in ("int8", "uint8", "int32", "uint32")}
    for f, want in (
        (lambda: one["int8"] + 300, 301),
        (lambda: 300 + one["int8"], 301),
        (lambda: one["uint8"] + (-1), 0),
        (lambda: one["uint8"] - 2, -1),
        (lambda: one["int32"] + 2**40, 2**40 + 1),
        (lambda: one["uint32"] + (2**32 - 1), 2**32),
        (lambda: plait.jit(lambda x: x + 300)(one["int8"]), 301),
        (lambda: plait.vmap(lambda x: x + 300)(one["int8"][None])[0], 301),
    ):
        try:
            out = f()
        except plait.PlaitError:
            continue
        assert (out.item() - want) % 2 ** (8 * out.dtype.itemsize) == 0


def test_python_floats():
    """Floats round as numpy's do: to infinity where that is the nearest."""
    half = pnp.asarray(np.float16(1))
    assert (half * 70000.0).item() == np.inf
    assert (half * 70000.0).dtype == np.float16
    assert (pnp.asarray(True) + 1).dtype == np.int32
    assert (pnp.asarray(np.int8(7)) + 1).dtype == np.int8


# ---- numpy and tracers -----------------------------------------------------------------------


def test_numpy_functions_of_tracers():
    """numpy's own functions would drop what a transformation carries: an error, always."""
    attempts = (
        lambda x: np.sin(x) * x,
        lambda x: np.stack([x, x]).sum(),
        lambda x: np.asarray(x).sum(),
        lambda x: float(x) * x,
        lambda x: complex(x).real * x,
        lambda x: np.float32(x),
        lambda x: x.item() * x,
        lambda x: x.tolist() * x,
        lambda x: np.dot(np.ones(2), pnp.stack([x, x])),
    )
    for f in attempts:
        for run in (plait.grad, plait.jit, lambda f: lambda x: plait.vmap(f)(x[None])):
            with pytest.raises((ConcretizationError, TypeError)):
                run(f)(f32(1))


def test_numpy_operands_of_tracers():
    """numpy's arrays and scalars beside a tracer leave the operation to it."""
    assert plait.grad(lambda x: np.float64(2) * x)(f32(1)).item() == 2
    assert plait.grad(lambda x: (np.ones(2, np.float32) * x).sum())(f32(1)).item() == 2
    assert plait.grad(lambda x: np.ones(2, np.float32) @ pnp.stack([x, x]))(f32(1)).item() == 2
    assert plait.grad(lambda x: (np.ones(2, np.float32) - x).sum())(f32(1)).item() == -2

    def in_place(x):
        a = np.ones(2, np.float32)
        a += x
        return a.sum()

    try:
        assert plait.grad(in_place)(f32(1)).item() == 2
    except TypeError:
        pass
    assert plait.grad(lambda x: sum([x, x * x]))(f32(2)).item() == 5
    assert plait.grad(lambda x: max(x, 2.0 * x))(f32(1)).item() == 2
    assert plait.grad(lambda x: pnp.array([x, x]).sum())(f32(1)).item() == 2
    np.testing.assert_array_equal(plait.jit(lambda x: pnp.array([x, x]))(f32(1)), [1, 1])


def test_comparison_and_hash():
    """Arrays compare elementwise, so they are no keys."""
    assert f32(1) in [f32(2), f32(1)]
    with pytest.raises(TypeError):
        {f32(1): 1}
