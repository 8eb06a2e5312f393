"""Formats of arrays: numbers are formatted as Python's are, and arrays only as texts are.

Invariant: what is expected is what Python shows of the number or of the text.
"""

import numpy as np
import pytest

import plait.numpy as pnp
from plait.errors import OperandTypeError

SPECS = ("", ".2f", "e", "g", "10.3f", "+.1f", "%", ">12")


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("number", [1.5, 3, 2 + 1j, True])
def test_a_number_is_formatted_as_pythons(number, spec):
    try:
        expected = format(number, spec)
    except ValueError as e:
        with pytest.raises(ValueError, match=str(e).split("'")[0]):
            format(pnp.array(number), spec)
    else:
        assert format(pnp.array(number), spec) == expected


@pytest.mark.parametrize("spec", ["", "30", ">30", "<30", "^30s"])
def test_an_array_is_formatted_as_its_text(spec):
    assert format(pnp.ones(2), spec) == format(str(np.ones(2)), spec)


@pytest.mark.parametrize("spec", [".2f", "e", "d", "x", "%", ",", "5.1f"])
@pytest.mark.parametrize("shape", [(0,), (1,), (2, 3)])
def test_the_format_of_a_number_is_refused_for_an_array(spec, shape):
    with pytest.raises(OperandTypeError, match="is one of a number") as e:
        format(pnp.ones(shape), spec)
    assert "test_formats.py" in str(e.value) and repr(spec) in str(e.value.fix)
