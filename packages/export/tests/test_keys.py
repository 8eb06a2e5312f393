"""Exported functions of keys: what runs takes words, what is called takes keys.

Invariant: an artifact that is read back draws what the function drew.
"""

import numpy as np
import pytest

import plait
from plait import random
from plait.ext.errors import TypeRule
from plait.text import parse, show
from plait_export import deserialize, export

KEY = random.key(42)
KEYS = random.split(KEY, 3)


def host(x):
    is_key = plait.dtypes.issubdtype(x.dtype, plait.dtypes.prng_key)
    return np.asarray(random.key_data(x) if is_key else x)


def turns(k):
    return plait.lax.scan(
        lambda c, k: (random.fold_in(c, 2), random.bits(k)), k, random.split(k, 3)
    )


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_read_back(impl):
    key = random.key(42, impl=impl)
    saved = export(plait.jit(turns))(key).serialize()
    again = deserialize(saved)
    assert again.in_avals[0].dtype is key.dtype and "key<" in repr(again)
    for f in (again.call, plait.jit(again.call)):
        for a, b in zip(f(key), turns(key), strict=True):
            np.testing.assert_array_equal(host(a), host(b))


def test_of_any_number_of_keys():
    (n,) = plait.symbolic_dims("n")
    f = lambda ks: plait.map_axes(lambda k: random.normal(k, (2,)), 0)(ks[::-1])  # noqa: E731
    again = deserialize(export(f)(plait.ShapeDtypeStruct((n,), KEY.dtype)).serialize())
    for keys in (KEYS, KEYS[:1]):
        np.testing.assert_array_equal(again.call(keys), f(keys))


def test_keys_and_words_are_told_apart():
    again = deserialize(export(random.normal)(KEY).serialize())
    for wrong in (random.key_data(KEY), 0, random.key(0, impl="rbg")):
        with pytest.raises(TypeRule, match="was exported as key<fry>"):
            again.call(wrong)


def test_text_of_a_program_with_symbolic_keys():
    (n,) = plait.symbolic_dims("n")
    program = plait.make_program(lambda k: k[::-1])(plait.ShapeDtypeStruct((n,), KEY.dtype))
    assert show(parse(show(program))) == show(program) and "key<fry>[n]" in show(program)
