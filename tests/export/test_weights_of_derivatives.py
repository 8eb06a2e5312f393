"""Derivatives in artifacts whose weights lie beside the module: they share them.

Cotangents are compared with those of the chain rule, written down in numpy.
"""

import numpy as np
import pytest

import plait
from plait import numpy as pnp
from plait_export import deserialize, export, load, symbolic_args_specs

F32 = np.float32
RNG = np.random.default_rng(7)
PARAMS = {
    "w1": RNG.normal(size=(8, 16)).astype(F32),
    "b": RNG.normal(size=16).astype(F32),
    "w2": RNG.normal(size=(16, 4)).astype(F32),
}
X = RNG.normal(size=(3, 8)).astype(F32)
CT = np.cos(np.arange(12, dtype=F32)).reshape(3, 4)
TYPES = symbolic_args_specs(X, "n, 8")
W1, W2 = PARAMS["w1"], PARAMS["w2"]


def model_of(params):
    def model(x):
        return pnp.tanh(x @ params["w1"] + params["b"]) @ params["w2"]

    return model


def by_hand(x, ct, w1, w2):
    """The cotangent of x."""
    y = np.tanh(x @ w1 + PARAMS["b"])
    return ((ct @ w2.T) * (1 - y * y)) @ w1.T


EXPORTED = export(model_of(PARAMS), weights=256)(TYPES)


def close(x, y):
    np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def read(how, tmp_path, saved):
    if how == "mapped":
        (tmp_path / "f").write_bytes(saved)
        return load(tmp_path / "f")
    return deserialize(saved, isolated=how == "isolated")


HOW = ["mapped", "bytes", "isolated"]


@pytest.mark.parametrize("how", HOW)
def test_a_derivative_that_was_saved(how, tmp_path):
    again = read(how, tmp_path, EXPORTED.serialize(1))
    close(again.vjp().call(X, CT)[0], by_hand(X, CT, W1, W2))
    close(plait.grad(lambda x: (again.call(x) * CT).sum())(X), by_hand(X, CT, W1, W2))


@pytest.mark.parametrize("how", ["here", *HOW])
def test_weights_that_are_replaced_are_those_of_the_derivative(how, tmp_path):
    old = EXPORTED if how == "here" else read(how, tmp_path, EXPORTED.serialize(1))
    w1, w2 = np.cos(W1), W2[::-1].copy()
    new = old.with_weights({"params['w1']": w1, "params['w2']": pnp.asarray(w2)})
    close(new.vjp().call(X, CT)[0], by_hand(X, CT, w1, w2))
    close(old.vjp().call(X, CT)[0], by_hand(X, CT, W1, W2))


def test_files_hold_each_weight_once(tmp_path):
    large = {"w1": np.zeros((8, 4096), F32), "w2": np.zeros((4096, 4), F32),
             "b": np.zeros(4096, F32)}  # fmt: skip
    exported = export(model_of(large), weights="separate")(TYPES)
    assert exported.weights == {}  # none of them has a megabyte
    exported = export(model_of(large), weights=1 << 14)(TYPES)
    sizes = [len(exported.serialize(order)) for order in (0, 2)]
    assert sizes[1] - sizes[0] < 6000
    assert sizes[0] > 13 * 4096 * 4
    EXPORTED.save(tmp_path / "f", 2)
    assert (tmp_path / "f").read_bytes() == EXPORTED.serialize(2)
