"""Functions as files of TensorFlow Lite: every one is run and compared, by `to_tflite` and here.

Invariant: values are those of the function; what has no file is an error that says why, and no
file is returned that computes something else.
"""

import os
import re
import warnings

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.ext.errors import ArgumentError
from plait_export import NotExportable
from plait_export.tensorflow import tflite, to_tflite

from ..export.portable_programs import CASES, expected

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow", reason="run by `nox -s tensorflow`")

PROGRAMS = ("mlp", "mlp_grad", "conv", "conv_grad", "maxpool", "lstm", "attention", "sort", "topk",
            "cumsum", "gather", "cond", "while", "scatter", "fft", "gelu")  # fmt: skip
REFUSED = {"sort": "BitwiseAnd", "fft": "fft"}
"""What has no file, and what the converter says."""


def computed(blob, *args):
    """The results of a file, in the order of their names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interpreter = tf.lite.Interpreter(model_content=blob)
    runner = interpreter.get_signature_runner("serving_default")
    names = sorted(runner.get_input_details())
    found = runner(**dict(zip(names, args, strict=True)))
    return [found[name] for name in sorted(found)]


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in REFUSED])
def test_files_compute_what_the_function_computes(name):
    case = CASES[name]
    found = computed(to_tflite(case.fun, *case.args), *case.args)
    for got, want in zip(found, expected(case, case.args), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_file_is_refused_in_words(name):
    case = CASES[name]
    with pytest.raises(NotExportable, match="no file of TensorFlow Lite's computes") as e:
        to_tflite(case.fun, *case.args)
    assert re.search(REFUSED[name], e.value.what) and "as StableHLO: " in e.value.what


def test_a_file_of_another_shape_is_not_returned():
    """TensorFlow converts the gradient of a convolution to one of another shape, silently."""
    case = CASES["conv_grad"]
    with pytest.raises(NotExportable, match=r"its out is float32\[2, 10, 10, 3\], and not"):
        to_tflite(case.fun, *case.args, enable_graph=False)


def test_a_file_of_other_numbers_is_not_returned(monkeypatch):
    run = tflite._run
    twice = lambda blob, args: {k: 2 * v for k, v in run(blob, args).items()}  # noqa: E731
    monkeypatch.setattr(tflite, "_run", twice)
    with pytest.raises(NotExportable, match="its out differs by up to 1, and 0.0001 is allowed"):
        to_tflite(lambda x: x * 1.0, np.float32([1, -0.5]), enable_graph=True)


def test_names_and_trees():
    def layer(params, x):
        return {"y": pnp.tanh(x @ params["w"]), "n": x.sum()}

    params, x = {"w": np.ones((3, 2), np.float32)}, np.float32([[1, 2, 3]])
    blob = to_tflite(layer, params, x, names=["weights", "input"])
    interpreter = tf.lite.Interpreter
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runner = interpreter(model_content=blob).get_signature_runner("serving_default")
    found = runner(weights=params["w"], input=x)
    np.testing.assert_allclose(found["y"], np.tanh(x @ params["w"]), rtol=1e-6)
    assert found["n"] == 6


def test_mistakes():
    with pytest.raises(ArgumentError, match="no arguments"):
        to_tflite(lambda: plait.numpy.ones(3))
    with pytest.raises(ArgumentError):
        to_tflite(lambda x: x, np.ones(3), names=["x", "y"])
