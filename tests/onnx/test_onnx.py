"""Functions in ONNX: as graphs of TensorFlow's operations, which tf2onnx converts, and ONNX Runtime
runs.

Invariant: values are compared with those of the function here; what the converter or the runtime
refuse, or compute otherwise, is named with the reason, and is an error when they do so no more.
"""

import os

import numpy as np
import pytest

from plait import tree
from plait_export.tensorflow import to_tf

from ..export.portable_programs import CASES, expected

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow", reason="run by `nox -s onnx`")
onnxruntime = pytest.importorskip("onnxruntime", reason="run by `nox -s onnx`")
InvalidGraph = onnxruntime.capi.onnxruntime_pybind11_state.InvalidGraph
tf2onnx = pytest.importorskip("tf2onnx", reason="run by `nox -s onnx`")

REFUSED = {
    **dict.fromkeys(("sort", "sort_poly", "topk", "random", "random_poly"), "Bitcast"),
    "fft": "FFT",
    "gelu": "Erfc",
    "special": "Lgamma",
}
"""What has no graph in ONNX, and the operation that tf2onnx has no word for."""


def computed(case):
    """(the results of a program in ONNX Runtime, those that are wanted) for its first arguments."""
    args = [np.asarray(x) for x in tree.leaves(case.args)]
    taken = [tf.TensorSpec(x.shape, x.dtype, f"x{i}") for i, x in enumerate(args)]
    f = to_tf(case.fun, enable_graph=True)
    made = tf.function(lambda *xs: tf.nest.flatten(f(*xs)), input_signature=taken, autograph=False)
    model, _ = tf2onnx.convert.from_function(made, input_signature=taken, opset=18)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    want = expected(case, case.args)
    names = [o.name for o in session.get_outputs()][: len(want)]
    found = session.run(names, {f"x{i}": x for i, x in enumerate(args)})
    return found, want


@pytest.mark.filterwarnings("ignore")  # of the converter, which is older than numpy
@pytest.mark.parametrize("name", CASES)
def test_values(name):
    if name in REFUSED:
        with pytest.raises(InvalidGraph, match=f"No Op registered for {REFUSED[name]}"):
            computed(CASES[name])
        return
    found, want = computed(CASES[name])
    for got, w in zip(found, want, strict=True):
        assert got.shape == w.shape and got.dtype == w.dtype
        np.testing.assert_allclose(got, w, rtol=CASES[name].tolerance, atol=CASES[name].tolerance)


def test_what_is_named_is_there():
    assert {*REFUSED} <= {*CASES}
