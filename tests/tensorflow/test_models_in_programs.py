"""Models of TensorFlow and of Plait in programs: every source, under every transformation.

Invariant: values and derivatives are compared with numpy's.
"""

import os

import numpy as np
import pytest

import plait
from plait import numpy as pnp
from plait.ext.errors import PlaitError
from plait_export import symbolic_args_specs
from plait_export.tensorflow import call_tf, from_tf, save, to_tf

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow", reason="run by `nox -s tensorflow`")

F32 = np.float32
W = np.linspace(-1, 1, 6, dtype=F32).reshape(3, 2)
X = np.linspace(-1, 1, 12, dtype=F32).reshape(4, 3)
TYPES = symbolic_args_specs((W, X), (None, "batch, 3"))
SPEC = tf.TensorSpec((None, 3), tf.float32)


def saved(function, folder):
    module = tf.Module()
    module.f, module.w = function, tf.Variable(W)
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, str(folder), options=options)
    return tf.saved_model.load(str(folder)).f


def of_tensorflow(folder):
    return tf.function(lambda x: tf.tanh(x @ W), input_signature=[SPEC])


def with_its_own_gradient(folder):
    """A function whose derivative by its operations would be another one."""

    @tf.custom_gradient
    def tanh(x):
        y = tf.tanh(tf.stop_gradient(x))
        return y, lambda ct: ct * (1 - tf.tanh(x) ** 2)

    return tf.function(lambda x: tanh(x @ W), input_signature=[SPEC])


def converted(folder, **how):
    f = to_tf(lambda x: pnp.tanh(x @ W), polymorphic_shapes=["batch, 3"], **how)
    return tf.function(f, input_signature=[SPEC], autograph=False)


def saved_here(folder, **how):
    save(str(folder), {"f": lambda w, x: pnp.tanh(x @ w)}, W, {"f": (TYPES[1],)}, **how)
    model = tf.saved_model.load(str(folder))
    return lambda x: model.f(x)["out"]


SOURCES = {
    "a function of TensorFlow": (of_tensorflow, 2),
    "a SavedModel of TensorFlow": (lambda d: saved(of_tensorflow(d), d), 2),
    "a custom gradient": (with_its_own_gradient, 2),
    "a converted function": (converted, 2),
    "a converted graph": (lambda d: converted(d, enable_graph=True), 2),
    "a SavedModel of a converted function": (lambda d: saved(converted(d), d), 1),
    "a SavedModel of Plait": (saved_here, 1),
    "a SavedModel of Plait's graphs": (lambda d: saved_here(d, enable_graph=True), 2),
}
"""Functions, and the order of the derivatives that TensorFlow has of them."""


def slope(x):
    return (1 - np.tanh(x @ W) ** 2) @ W.T


def curvature(x):
    """The derivative of the sum of slopes."""
    y = np.tanh(x @ W)
    return (-2 * y * (1 - y**2) * W.sum(0)) @ W.T


def total(f):
    return lambda x: f(x).sum()


WAYS = {"read": from_tf, "called": call_tf}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("source", SOURCES)
def test_values_and_first_derivatives(source, way, tmp_path):
    f = WAYS[way](SOURCES[source][0](tmp_path / "m"))
    close = lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)  # noqa: E731
    rows = np.stack([X, 2 * X])
    for x in (X, X[:2]):
        close(f(x), np.tanh(x @ W))
        close(plait.jit(f)(x), np.tanh(x @ W))
    close(plait.grad(total(f))(X), slope(X))
    close(plait.jit(plait.grad(total(f)))(X), slope(X))
    close(plait.vmap(f)(rows), np.tanh(rows @ W))
    close(plait.vmap(plait.grad(total(f)))(rows), [slope(X), slope(2 * X)])
    scanned = lambda xs: plait.lax.scan(lambda c, x: (c + f(x).sum(), f(x)), 0.0, xs)  # noqa: E731
    close(scanned(rows)[1], np.tanh(rows @ W))
    close(plait.jit(plait.grad(lambda xs: scanned(xs)[0]))(rows), [slope(X), slope(2 * X)])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("source", SOURCES)
def test_second_derivatives(source, way, tmp_path):
    make, order = SOURCES[source]
    f = WAYS[way](make(tmp_path / "m"))
    twice = plait.grad(lambda x: plait.grad(total(f))(x).sum())
    if order == 1:  # TensorFlow saves custom derivatives of one order
        with pytest.raises(PlaitError, match="TensorFlow does not differentiate") as e:
            twice(X)
        assert "lose_custom_rules=True" in e.value.fix
        f = from_tf(make(tmp_path / "m"), lose_custom_rules=True)
        twice = plait.grad(lambda x: plait.grad(total(f))(x).sum())
    for found in (twice(X), plait.jit(twice)(X), plait.vmap(twice)(X[None])[0]):
        np.testing.assert_allclose(found, curvature(X), rtol=1e-4, atol=1e-5)


def test_derivatives_of_variables(tmp_path):
    """Second derivatives of a model whose functions hold derivatives of their own."""
    f = from_tf(saved_here(tmp_path / "m"))
    (held,) = f.variables(X)
    np.testing.assert_array_equal(held, W)
    found = plait.grad(lambda w: f.of([w], X).sum())(held)
    np.testing.assert_allclose(found, X.T @ (1 - np.tanh(X @ W) ** 2), rtol=1e-4)


@pytest.mark.parametrize("name", ["params", "signatures", "variables", "name", "", 3])
def test_names_that_no_function_of_a_model_has(name, tmp_path):
    with pytest.raises(PlaitError, match="a function") as e:
        save(str(tmp_path / "m"), {name: lambda w, x: x @ w}, W, {name: (TYPES[1],)})
    assert e.value.fix
