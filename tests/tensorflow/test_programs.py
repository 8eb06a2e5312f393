"""The programs that other readers are given, in TensorFlow: as one operation that runs StableHLO,
and as graphs of its ordinary operations.

Invariant: values, first and second derivatives are those of the function here; what has none, as
integers, is said to have none.
"""

import os
import re

import numpy as np
import pytest

import plait
from plait import tree
from plait.ext.errors import PlaitError
from plait_export.tensorflow import to_tf

from ..export.portable_programs import CASES, expected

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow", reason="run by `nox -s tensorflow`")

WAYS = {"natively": False, "as a graph": True}


def converted(case, graph):
    """A function of TensorFlow's, for the sizes that the program names."""
    names = case.names if case.names is None or len(case.names) > 1 else case.names[0]
    how = {"polymorphic_shapes": names, "polymorphic_constraints": case.constraints}
    taken = [tf.TensorSpec(shape_of(x, text), x.dtype) for x, text in zip(
        tree.leaves(case.args), case.names or [None] * len(case.args), strict=True)]  # fmt: skip
    f = to_tf(case.fun, enable_graph=graph, **(how if case.names else {}))
    return tf.function(f, input_signature=taken, autograph=False)


def shape_of(x, text):
    """A shape, in which what is known by a name only is not known."""
    if text is None:
        return np.shape(x)
    return [None if re.search("[a-z]", n) else int(n) for n in text.split(",")]


def close(got, want, tolerance):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", WAYS)
def test_values(name, way):
    case = CASES[name]
    f = converted(case, WAYS[way])
    for args in (case.args, *case.others):
        found, want = tf.nest.flatten(f(*args)), expected(case, args)
        for y, w in zip(found, want, strict=True):
            close(y, w, case.tolerance)


def weights(shape, dtype, seed):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def along(fun, rest):
    """The sum of all results that vary, each with weights of its own, of the first argument."""

    def total(x):
        found = [y for y in tree.leaves(fun(x, *rest)) if y.dtype.kind == "f"]
        return sum((y * weights(y.shape, y.dtype, i)).sum() for i, y in enumerate(found))

    return total


def of_tensorflow(f, x, rest, direction, often):
    """[gradient of that sum, the gradient of its product with a direction], by tapes."""
    x, found = tf.constant(x), []
    with tf.GradientTape() as second:
        second.watch(x)
        with tf.GradientTape() as first:
            first.watch(x)
            ys = [y for y in tf.nest.flatten(f(x, *rest)) if y.dtype.is_floating]
            total = [tf.reduce_sum(y * weights(y.shape, y.dtype.as_numpy_dtype, i))
                     for i, y in enumerate(ys)]  # fmt: skip
        found.append(first.gradient(total, x, unconnected_gradients="zero"))
        part = tf.reduce_sum(found[0] * direction)
    if often > 1:
        found.append(second.gradient(part, x, unconnected_gradients="zero"))
    return found


VARY = [n for n, c in CASES.items() if c.args[0].dtype == np.float32 and n != "int8"]
DERIVATIVES = {"lstm_grad": "lstm", "attention_grad": "attention"}
"""Programs of which the first derivative is the second one of others."""
ONCE = {"as a graph": {"solve", "cholesky"}, "natively": set()}
"""What is differentiated twice in `test_graph`, too."""


@pytest.mark.parametrize("name", [n for n in VARY if n != "while" and n not in DERIVATIVES])
@pytest.mark.parametrize("way", WAYS)
def test_two_derivatives(name, way):
    case = CASES[name]
    x, *rest = case.args
    direction = weights(x.shape, x.dtype, 9)
    first = plait.jit(plait.grad(along(case.fun, rest)))
    again = plait.jit(plait.grad(lambda x: (first(x) * direction).sum()))
    # the same function of known sizes is differentiated twice, where there is one
    once = name in ONCE[way] or name.removesuffix("_poly") in {*VARY} - {name}
    f, often = converted(case, WAYS[way]), 1 if once else 2
    for got, derivative in zip(of_tensorflow(f, x, rest, direction, often), (first, again)):
        close(got, derivative(x), max(case.tolerance, 1e-5))


@pytest.mark.parametrize("way", WAYS)
def test_a_loop_of_unknown_length_has_none(way):
    case = CASES["while"]
    with pytest.raises(PlaitError, match="while_loop cannot be differentiated in reverse"):
        of_tensorflow(converted(case, WAYS[way]), *case.args, (), 1.0, 1)


def test_what_is_named_is_there():
    assert {*DERIVATIVES} | {*DERIVATIVES.values()} | ONCE["as a graph"] <= {*VARY}
