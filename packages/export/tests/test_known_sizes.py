"""Arithmetic on sizes in modules, read back: every folded operation, in every integer dtype.

Invariant: the judge is numpy's arithmetic of the dtype, which wraps.
"""

import numpy as np
import pytest

import plait
from plait import lax
from plait.ext.ir import evaluate
from plait_export import export, symbolic_args_specs

DTYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SIZES = (1, 3, 8, 13, 200)


def number(n, dtype):
    return np.array(n).astype(dtype)


FOLDED = {
    "add": lambda m, n, k: m.add(n, k(100)),
    "subtract": lambda m, n, k: m.sub(n, k(8)),
    "multiply": lambda m, n, k: m.mul(n, k(3)),
    "divide": lambda m, n, k: m.div(m.sub(n, k(8)), k(3)),
    "remainder": lambda m, n, k: m.rem(m.sub(n, k(8)), k(3)),
    "negate": lambda m, n, k: m.neg(n),
    "maximum": lambda m, n, k: m.max(m.sub(n, k(8)), k(2)),
    "minimum": lambda m, n, k: m.min(m.sub(n, k(8)), k(2)),
    "and": lambda m, n, k: m.bitwise_and(n, k(5)),
    "or": lambda m, n, k: m.bitwise_or(n, k(5)),
    "not": lambda m, n, k: m.bitwise_not(n),
    "not of a number": lambda m, n, k: m.bitwise_not(k(5)),
    "abs": lambda m, n, k: m.abs(m.sub(n, k(8))),
    "sign": lambda m, n, k: m.sign(m.sub(n, k(8))),
    "clamp": lambda m, n, k: m.clamp(k(2), m.sub(n, k(8)), k(4)),
    "select": lambda m, n, k: m.select(m.lt(m.sub(n, k(8)), k(2)), n, k(1)),
    "compare": lambda m, n, k: m.gt(m.sub(n, k(8)), k(100)),
    "convert": lambda m, n, k: m.convert_element_type(m.sub(n, k(8)), "int64"),
}


class Numpy:
    """The functions of `lax` in numpy, for integers of one dtype."""

    add, sub, mul, neg, max, min = (
        np.add, np.subtract, np.multiply, np.negative, np.maximum, np.minimum,
    )  # fmt: skip
    bitwise_and, bitwise_or, bitwise_not = np.bitwise_and, np.bitwise_or, np.invert
    abs, sign, lt, gt, rem = np.abs, np.sign, np.less, np.greater, np.fmod

    def div(self, x, y):
        quotient = abs(int(x)) // abs(int(y))
        return number(quotient if (x < 0) == (y < 0) else -quotient, x.dtype)

    def select(self, which, x, y):
        return x if which else y

    def clamp(self, low, x, high):
        return np.minimum(np.maximum(low, x), high)

    def convert_element_type(self, x, dtype):
        return x.astype(dtype)


def results(m, n, dtype):
    return [f(m, n, lambda k: number(k, dtype)) for f in FOLDED.values()]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", DTYPES)
def test_folded_sizes(dtype):
    types = symbolic_args_specs((np.zeros(3, np.float32),), ("b",))
    size = lambda x: lax.convert_element_type(x.shape[0], dtype)  # noqa: E731
    exported = export(lambda x: results(lax, size(x), dtype))(*types)
    program = exported.program(lose_custom_rules=True)
    again = export(lambda x: evaluate(program, [x]))(*types)
    for n in SIZES:
        x = np.zeros(n, np.float32)
        (aval,) = [plait.typeof(x)]
        of_numbers = exported.read_for([aval])
        with np.errstate(all="ignore"):
            want = dict(zip(FOLDED, results(Numpy(), number(n, dtype), dtype), strict=True))
        for read in (
            exported.call(x),
            again.call(x),
            evaluate(of_numbers, [plait.numpy.asarray(x)]),
        ):
            for (name, w), got in zip(want.items(), read, strict=True):
                np.testing.assert_array_equal(got, w, err_msg=f"{name} of {n}")
                assert got.dtype == w.dtype, name
