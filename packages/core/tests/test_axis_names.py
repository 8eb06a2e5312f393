"""einsum in lists: what names an axis may be anything that can be hashed.

Invariant: what is expected was computed by numpy, with letters or numbers in place of the names.
"""

import numpy as np
import pytest

import plait.numpy as pnp
from plait.errors import PlaitError

RNG = np.random.default_rng(7)
X = RNG.normal(size=(2, 3)).astype("float32")
Y = RNG.normal(size=(3, 4)).astype("float32")
Z = RNG.normal(size=(5, 3, 3)).astype("float32")


class Axis:
    """A name that has no order."""


A, B, C = Axis(), Axis(), Axis()

CASES = {
    "words": ((X, ["row", "col"], Y, ["col", "out"], ["out", "row"]), "ab,bc->ca"),
    "words in their order": ((X, ["row", "col"], Y, ["col", "out"]), "rc,co->or"),
    "pairs": ((X, [(1, 2), "b"][:1] + [(0, 0)], [(0, 0), (1, 2)]), "ab->ba"),
    "objects": ((X, [A, B], Y, [B, C], [C, A]), "ab,bc->ca"),
    "a diagonal": ((Z, [..., "i", "i"], [..., "i"]), "...ii->...i"),
    "great numbers": ((X, [1000, 70], Y, [70, 53]), "bc,ca->ab"),
    "negative numbers": ((X, [-1, -2], Y, [-2, -3], [-1, -3]), "ab,bc->ac"),
    "mixed, with a result": ((X, ["a", 1], Y, [1, "b"], ["b", "a"]), "ab,bc->ca"),
}


@pytest.mark.parametrize("name", CASES)
def test_names_of_axes(name):
    args, text = CASES[name]
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    got = pnp.einsum(*args)
    want = np.einsum(text, *arrays)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_digits_and_letters_of_any_alphabet_are_subscripts():
    np.testing.assert_allclose(pnp.einsum("12,23->31", X, Y), (X @ Y).T, rtol=1e-5)
    np.testing.assert_allclose(pnp.einsum("αβ,βγ", X, Y), X @ Y, rtol=1e-5)


@pytest.mark.parametrize(
    "args, text",
    [
        ((X, [A, B], Y, [B, C]), "no order"),
        ((X, ["a", 1], Y, [1, 2]), "no order"),
        ((X, ["a", "b"], ["c"]), "no operand has the axis"),
        ((X, ["a"]), "names 1 axes"),
        ((np.zeros((1,) * 53, "float32"), list(range(53))), "53 axes"),
    ],
    ids=["objects", "mixed", "result", "rank", "many"],
)
def test_names_that_do_not_do(args, text):
    with pytest.raises(PlaitError, match=text) as e:
        pnp.einsum(*args)
    assert e.value.fix


def test_signs_are_no_subscripts():
    with pytest.raises(PlaitError, match="letters or digits"):
        pnp.einsum("a+,+b", X, Y)
