"""Arrays made like others, and of values that the setting `x64` narrows."""

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait.errors import TypeRule

LIKE = {
    "zeros_like": lambda x, **o: pnp.zeros_like(x, **o),
    "ones_like": lambda x, **o: pnp.ones_like(x, **o),
    "empty_like": lambda x, **o: pnp.empty_like(x, **o),
    "full_like": lambda x, **o: pnp.full_like(x, 3, **o),
    "full_like of an array": lambda x, **o: pnp.full_like(x, np.int8(3), **o),
}


@pytest.mark.parametrize("name", LIKE)
@pytest.mark.parametrize("number", [2.0, 2])
def test_what_is_made_like_a_number_takes_the_dtype_of_arrays_beside_it(name, number):
    half = np.ones(2, np.float16)
    like = LIKE[name]

    def beside(x, **options):
        return (like(x, **options) + half).dtype, (x + half).dtype

    for run in (lambda f: f(number), lambda f: plait.jit(lambda x: found.append(f(x)))(number)):
        found = []
        for options in ({}, {"shape": (2,)}):
            got = run(lambda x, options=options: beside(x, **options)) or found[-1]
            assert got[0] == got[1] == np.float16
    # An explicit dtype stays, and so does that of an array.
    assert (like(number, dtype=np.float32) + half).dtype == np.float32
    assert (like(np.float32([1, 2])) + half).dtype == np.float32


@pytest.mark.parametrize("make", [pnp.array, pnp.asarray])
@pytest.mark.parametrize("dtype", [np.float32, bool, np.complex64, "float16", np.int8])
def test_numbers_are_converted_before_they_are_narrowed(make, dtype):
    with plait.config(x64=False):
        for x in (np.array([2**40, 3]), np.array(2**40), np.array([2**63], np.uint64)):
            with np.errstate(over="ignore"):
                want = x.astype(dtype)
            got = make(x, dtype=dtype)
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)
        tiny = np.array([1e-300, 0.0])
        np.testing.assert_array_equal(make(tiny, dtype=bool), [True, False])


@pytest.mark.parametrize("dtype", [None, np.float32, object])
def test_none_is_not_a_number(dtype):
    for xs in ([0.0, None], [None], [[1.0], [None]]):
        with pytest.raises(TypeRule):
            pnp.array(xs, dtype=dtype)
