"""The dtype that an error of an elementwise function says to convert to: it works, and keeps reals.

Invariant: functions are those of `plait.lax` that take one or two arrays.
"""

import inspect
import re

import numpy as np
import pytest

import plait
from plait import lax
from plait.errors import OperandTypeError, PlaitError
from plait.typing import ArrayLike

DTYPES = ("bool", "int32", "float32", "complex64")


def functions():
    """Return (name, function, number of operands) of functions whose parameters are arrays."""
    found = []
    for name in lax.__all__:
        f = getattr(lax, name)
        if inspect.isfunction(f):
            needed = [p for p in inspect.signature(f).parameters.values() if p.default is p.empty]
            arrays = [p for p in needed if p.annotation == ArrayLike]
            if len(needed) == len(arrays) in (1, 2):
                found.append((name, f, len(needed)))
    return found


@pytest.mark.parametrize(
    ("f", "count"), [pytest.param(f, count, id=name) for name, f, count in functions()]
)
def test_following_the_advice(f, count):
    types = {dtype: plait.ShapeDtypeStruct((3,), dtype) for dtype in DTYPES}
    call = lambda dtype: plait.eval_shape(f, *[types[dtype]] * count)  # noqa: E731
    for dtype in DTYPES:
        try:
            call(dtype)
        except OperandTypeError as e:
            advised = re.search(r"convert with \.astype\('(\w+)'\)", e.fix or "")
            if advised is not None:
                call(advised[1])
                assert advised[1] != "complex64" or f in (lax.real, lax.imag, lax.conj), e.fix
        except PlaitError:
            continue  # of operands whose shape or value it refuses


def test_the_functions_are_there():
    assert len(functions()) > 60


def test_the_opposite_of_booleans():
    with pytest.raises(OperandTypeError, match=r"write ~x for booleans"):
        -lax.full((2,), True, np.dtype(bool))


def test_the_item_of_several_elements():
    x = lax.full((2,), 1.0, np.dtype("float32"))
    with pytest.raises(plait.errors.ShapeError, match="one element, not"):
        x.item()
    assert x.item(1) == 1.0
