"""Functions of TensorFlow's in programs of Plait's: by StableHLO, and by calling TensorFlow.

Invariant: values and derivatives are compared with TensorFlow's own.
"""

import os

import numpy as np
import pytest

import plait
from plait import numpy as pnp
from plait.ext.errors import PlaitError
from plait_export import symbolic_args_specs
from plait_export.tensorflow import call_tf, from_tf

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow", reason="run by `nox -s tensorflow`")

F32 = np.float32
X = np.linspace(-1, 1, 12, dtype=F32).reshape(4, 3)
W = np.linspace(0, 1, 6, dtype=F32).reshape(3, 2)


def layer(x, more):
    return {"y": tf.tanh(tf.matmul(x, W) * more["scale"]), "n": tf.shape(x)[0]}


def slope(x, scale):
    inner = 1 - np.tanh(x @ W * scale) ** 2
    return (inner * scale) @ W.T


WAYS = {"read": from_tf, "called": call_tf}


@pytest.mark.parametrize("way", WAYS)
def test_trees_values_and_gradients(way):
    f = WAYS[way](layer)
    for g in (f, plait.jit(f)):
        out = g(X, {"scale": F32(2)})
        assert sorted(out) == ["n", "y"] and int(out["n"]) == 4
        np.testing.assert_allclose(out["y"], np.tanh(X @ W * 2), rtol=1e-5)
        found = plait.grad(lambda x, g=g: g(x, {"scale": F32(2)})["y"].sum())(X)
        np.testing.assert_allclose(found, slope(X, 2), rtol=1e-4)


@pytest.mark.parametrize("way", WAYS)
def test_derivatives_of_the_second_order(way):
    f = WAYS[way](lambda x: tf.reduce_sum(x**4))
    again = plait.grad(lambda x: (plait.grad(f)(x) ** 2).sum())(X)
    np.testing.assert_allclose(again, 2 * 4 * X**3 * 12 * X**2, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_examples_are_mapped(way):
    pytest.importorskip("plait_batching")
    f = WAYS[way](lambda x, k: tf.nn.softmax(x) * tf.cast(k, tf.float32))
    k = np.arange(4, dtype=np.int32)
    exp = np.exp(X)
    want = exp / exp.sum(1, keepdims=True) * k[:, None]
    np.testing.assert_allclose(plait.vmap(f)(X, k), want, rtol=1e-5)
    total = lambda x, k: (f(x, k) ** 2).sum()  # noqa: E731
    each = np.stack([plait.grad(total)(x, n) for x, n in zip(X, k)])
    np.testing.assert_allclose(plait.vmap(plait.grad(total))(X, k), each, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("way", WAYS)
def test_complex_gradients(way):
    z = np.complex64([1 + 2j, -0.5 + 0.25j])
    f = WAYS[way](lambda z: tf.exp(z) * z)
    weigh = lambda f: lambda z: pnp.real(f(z) * (0.5 - 2j)).sum()  # noqa: E731
    want = plait.grad(weigh(lambda z: pnp.exp(z) * z))(z)
    np.testing.assert_allclose(plait.grad(weigh(f))(z), want, rtol=1e-5)


def test_variables_are_read_and_are_arguments():
    w, b, fixed = tf.Variable(W), tf.Variable([0.5, -0.5]), tf.constant([2.0, 3.0])
    f = from_tf(lambda x: tf.tanh(x @ w + b) * fixed)
    np.testing.assert_allclose(f(X), np.tanh(X @ W + [0.5, -0.5]) * [2, 3], rtol=1e-5)
    held = f.variables(X)
    assert [v.shape for v in held] == [(3, 2), (2,)]
    found = plait.grad(lambda held: f.of(held, X).sum())(held)
    inner = (1 - np.tanh(X @ W + [0.5, -0.5]) ** 2) * [2, 3]
    np.testing.assert_allclose(found[0], X.T @ inner, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1], inner.sum(0), rtol=1e-5)
    b.assign([0.0, 0.0])
    np.testing.assert_allclose(f(X), np.tanh(X @ W) * [2, 3], rtol=1e-5)
    with pytest.raises(PlaitError, match="reads 2 variables, and 1 values are given"):
        f.of(held[:1], X)


def test_loops_and_convolutions_are_read():
    def f(x):
        y = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), [0, x])[1]
        return tf.nn.conv2d(y, tf.ones((2, 2, 1, 1)), 1, "SAME")

    x = np.random.default_rng(0).normal(size=(1, 4, 4, 1)).astype(F32)
    wide = np.pad(8 * x[0, :, :, 0], ((0, 1), (0, 1)))
    want = wide[:-1, :-1] + wide[1:, :-1] + wide[:-1, 1:] + wide[1:, 1:]
    np.testing.assert_allclose(from_tf(f)(x)[0, :, :, 0], want, rtol=1e-5, atol=1e-5)


def test_what_is_sorted_is_differentiated():
    """TensorFlow says the sizes of it once more."""
    x = np.float32([[3, 1, 2], [4, 6, 5]])
    for f, want in (
        (tf.sort, [[3, 1, 2], [1, 3, 2]]),
        (lambda x: tf.math.top_k(x, 3)[0], [[1, 3, 2], [3, 1, 2]]),
    ):
        found = plait.grad(lambda x, f=f: (from_tf(f)(x) * F32([1, 2, 3])).sum())(x)
        np.testing.assert_array_equal(found, want)


@tf.custom_gradient
def clipped(x):
    return x * 1.0, lambda ct: tf.clip_by_value(ct, -1.0, 1.0)


def test_derivatives_of_users_are_kept_or_lost():
    five = lambda f: plait.grad(lambda x: 5 * f(x))(F32(1))  # noqa: E731
    assert five(call_tf(clipped)) == 1
    assert float(from_tf(clipped)(F32(3))) == 3
    assert five(from_tf(clipped)) == 1
    with pytest.raises(PlaitError, match="custom_vjp"):
        plait.jvp(from_tf(clipped), (F32(1),), (F32(1),))
    assert five(from_tf(clipped, lose_custom_rules=True)) == 5


UNSAID = {
    "PyFunc": lambda x: tf.numpy_function(lambda v: v * 2, [x], tf.float32),
    "BesselI0": tf.math.bessel_i0,
    "must be a compile-time constant": lambda x: tf.math.bincount(tf.cast(x[0] + 1, tf.int32)),
}


@pytest.mark.parametrize("why", UNSAID)
def test_what_has_no_stablehlo_is_said_and_called(why):
    f = UNSAID[why]
    with pytest.raises(PlaitError, match=f"cannot be taken from TensorFlow as .*{why}") as e:
        from_tf(f)(X)
    assert "call_tf" in e.value.fix
    if why == "BesselI0":
        np.testing.assert_allclose(call_tf(f)(X), f(X), rtol=1e-6)


def test_what_it_writes_is_not_lost():
    held = tf.Variable(1.0)

    def inner(x):
        held.assign_add(2.0)
        return x * held

    for f in (inner, tf.function(inner)):
        with pytest.raises(PlaitError, match="writes variables, by AssignAddVariableOp"):
            from_tf(f)(X)
    assert held.numpy() == 1


def test_sizes_that_follow_from_values():
    with pytest.raises(PlaitError, match=r"result 0 of .* has the shape \(None, 2\)") as e:
        from_tf(lambda x: tf.where(x > 0))(X)
    assert "padded" in e.value.fix


MISTAKES = {
    "no function to read": (lambda: from_tf(3), "from_tf needs a function, not 3"),
    "no function to call": (lambda: call_tf(3), "call_tf needs a function, not 3"),
    "a type": (lambda: from_tf(tf.identity)(plait.random.key(0)), "TensorFlow has no key"),
    "a size that is not known": (
        lambda: plait.eval_shape(from_tf(tf.identity), *symbolic_args_specs((X,), "b, 3")),
        r"args\[0\] is f32\[b,3\], and TensorFlow says StableHLO of known sizes only",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_say_what_and_what_instead(mistake):
    run, text = MISTAKES[mistake]
    with pytest.raises(PlaitError, match=text) as e:
        run()
    assert e.value.fix
