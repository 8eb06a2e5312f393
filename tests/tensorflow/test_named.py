"""Operations whose derivative is left to TensorFlow: each of them, in value and derivative, as what
it consists of there.

Invariant: values are those of numpy, derivatives are differences of numpy's values in float64; no
operation is trusted that is not here.
"""

import os

import numpy as np
import pytest

from plait.ext.errors import PlaitError
from plait.testing.oracle import in_numpy
from plait.testing.references import all_references
from plait.testing.trials import Job
from plait_export import NotExportable, export

from .test_graph import PRIMITIVES

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow", reason="run by `nox -s tensorflow`")
from plait_export.tensorflow.graph.named import _PLAIN  # noqa: E402  as it needs TensorFlow
from plait_export.tensorflow.operations import Graph  # noqa: E402

TOLERANCE = {"bfloat16": 2e-1, "float32": 2e-4, "float64": 1e-6, "complex64": 2e-4}
"""Of values near 1."""
STEP = 1e-6


def near(x, dtype, seed):
    """Arguments beside those of the sample, as numbers of another dtype."""
    x = np.asarray(x)
    if x.dtype.kind not in "fc":
        return x
    rng = np.random.default_rng(seed)
    x = x + 0.03 * rng.normal(size=x.shape)
    if np.dtype(dtype).kind == "c":
        x = x + 0.1j * rng.normal(size=x.shape)
    return x.astype(dtype)


SAID = {
    "core.stop": lambda reference, xs, i, weights: np.zeros_like(xs[i]),
    "core.reduce_precision": lambda reference, xs, i, weights: weights[0],
}
"""Derivatives that are what they are said to be: none, and that of what is not rounded."""


def cases():
    """(operation, its reference, a sample) of each, in the dtypes that it has."""
    for name in sorted(_PLAIN & PRIMITIVES.keys()):
        prim, known = PRIMITIVES[name], all_references()[name]
        sample = next(iter(known.samples(prim)))
        kinds = {np.asarray(x).dtype.kind for x in sample.args}
        chosen = {n for n in TOLERANCE if name != "core.conj" or n[0] == "c"}
        for dtype in sorted(chosen) if kinds & {"f", "c"} else ["integers"]:
            yield pytest.param(Job(prim, known, sample), dtype, id=f"{name}-{dtype}")


WIDE = {"f": np.float64, "V": np.float64, "c": np.complex128}


def wide(x):
    x = np.asarray(x)
    return x.astype(WIDE.get(x.dtype.kind, x.dtype))


@pytest.mark.parametrize(("job", "dtype"), [*cases()])
def test_values_and_derivatives(job, dtype):
    xs = [near(x, dtype, i) for i, x in enumerate(job.sample.args)]
    try:
        made = Graph(export(lambda *xs: job(*xs), libraries=False)(*xs))
    except PlaitError:
        assert dtype not in ("float32", "integers")  # the operation has no such numbers
        return
    if job.prim.name == "core.atan2" and np.dtype(dtype).kind == "c":
        with pytest.raises(NotExportable, match="stablehlo.atan2 is refused there"):
            made.drawn([tf.constant(x) for x in xs])
        return
    reference = lambda *xs: in_numpy(job.prim)(*xs, **job.sample.params)  # noqa: E731
    tensors = [tf.constant(x) for x in xs]
    vary = [i for i, x in enumerate(tensors) if x.dtype.is_floating or x.dtype.is_complex]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([tensors[i] for i in vary])
        found = tf.function(lambda *xs: made.drawn(xs), autograph=False)(*tensors)
        weights = [np.random.default_rng(i).normal(size=y.shape) for i, y in enumerate(found)]
        parts = [
            tf.reduce_sum(tf.math.real(y) * w.astype(tf.math.real(y).dtype.as_numpy_dtype))
            for y, w in zip(found, weights)
            if y.dtype.is_floating or y.dtype.is_complex
        ]
    tolerance = TOLERANCE.get(dtype, 0)
    for got, want in zip(found, reference(*map(wide, xs)), strict=True):
        np.testing.assert_allclose(wide(got), wide(want), rtol=tolerance, atol=tolerance)
    if not parts or dtype == "bfloat16":
        return
    gradients = tape.gradient(parts, [tensors[i] for i in vary], unconnected_gradients="zero")
    for i, gradient in zip(vary, gradients, strict=True):
        gradient = tf.convert_to_tensor(gradient)
        want = SAID.get(job.prim.name, differences)(reference, [*map(wide, xs)], i, weights)
        scale = max(1, np.abs(want).max(initial=0))
        np.testing.assert_allclose(wide(gradient), want, rtol=0, atol=max(tolerance, 1e-5) * scale)


def differences(reference, xs, at, weights):
    """The gradient of the weighed real parts of the results, by the argument `at`; of a complex
    argument in TensorFlow's convention: by its real part, and i times that by its imaginary one."""

    def total(x):
        found = reference(*xs[:at], x, *xs[at + 1 :])
        return sum((np.real(y) * w).sum() for y, w in zip(found, weights) if y.dtype.kind in "fc")

    x, out = xs[at], np.zeros_like(xs[at])
    for place in np.ndindex(x.shape):
        for unit in (1, 1j) if x.dtype.kind == "c" else (1,):
            step = np.zeros_like(x)
            step[place] = STEP * unit
            out[place] += unit * (total(x + step) - total(x - step)) / (2 * STEP)
    return out


def test_every_name_is_an_operation_or_was_one():
    former = {name for prim in PRIMITIVES.values() for name in prim.formerly}
    assert _PLAIN - PRIMITIVES.keys() == {"core.cholesky", "core.triangular_solve"} <= former
