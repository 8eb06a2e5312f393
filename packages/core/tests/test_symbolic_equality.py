"""Sizes that are written in different ways: equal for all values, for none, or not known to be.

Invariant: what is always so is found by trying all n and m up to a bound with Python's arithmetic,
from the text alone; an answer may be None only where that is said here.
"""

from itertools import combinations, product

import pytest

from plait._types.dims import Scope, decide_eq, decide_ge, symbolic_dims

MAY_BE_EMPTY = Scope([], lower=0)
UP_TO_20 = list(product(range(21), repeat=2))
WORDS = {"max": max, "min": min, "__builtins__": {}}

SIZES = {
    "halves": ["n - n//2", "(n + 1)//2", "-(-n//2)", "n//2 + n%2", "(n + 2)//2 - 1 + n%2"],
    "whole": ["n", "2*(n//2) + n%2", "n//2 + (n + 1)//2", "max(n, 1) - 1 + min(n, 1)",
              "min(n, 3) + max(n - 3, 0)", "3*(n//3) + n%3", "max(n, n//2)", "n + m - m",
              "max(n, 0)", "min(n, n + m)", "(2*n + 1)//2"],
    "without the first": ["max(n, 1) - 1", "max(n - 1, 0)", "n - min(n, 1)"],
    "without two": ["max(n - 2, 0)", "max(max(n, 1) - 2, 0)", "max(max(n - 1, 0) - 1, 0)"],
    "quarters": ["(n + 3)//4", "-(-n//4)", "-(-((n + 1)//2)//2)", "((n + 1)//2 + 1)//2"],
    "quarters down": ["n//4", "n//2//2"],
    "thirds": ["-(-n//3)", "(n + 2)//3", "n - 2*n//3", "(n - (n + n)//3)"],
    "odd places": ["n//2", "-(-max(n - 1, 0)//2)", "max(-(-(n - 1)//2), 0)", "min(n, n//2)"],
    "odd places but the last": ["max(n - 1, 0)//2", "(max(n, 1) - 1)//2", "max((n - 1)//2, 0)",
                                "max((n + 1)//2, 1) - 1"],
    "windows": ["max((n - 3)//2 + 1, 0)", "max(n - 1, 0)//2", "max(n - 1, 0) - max(n, 1)//2"],
    "sums": ["n + m", "max(n, m) + min(n, m)", "m + n//2 + (n + 1)//2"],
    "products": ["n*m", "m*(n//2) + m*((n + 1)//2)", "max(n*m, 0)", "n*m + 0*n"],
    "distance": ["max(n, m) - min(n, m)", "max(n - m, m - n)", "max(n - m, 0) + max(m - n, 0)"],
    "convolved": ["n + 2", "max(n + 3 - 1, 0)"],
    "no": ["0", "n%1", "min(n, 0)", "max(n, 1) - max(n - 1, 0) - 1", "(n%3)//3"],
}  # fmt: skip


def values(text):
    return [eval(text, WORDS, {"n": n, "m": m}) for n, m in UP_TO_20]


def size(text):
    return symbolic_dims(text, MAY_BE_EMPTY)[0]


EVERY = [text for group in SIZES.values() for text in group]


@pytest.mark.parametrize("group", SIZES)
def test_one_size_in_many_words(group):
    first, *others = SIZES[group]
    for text in others:
        assert values(text) == values(first), "the table is wrong"
        assert decide_eq(size(first), size(text)) is True, text
        assert first == text or size(first) == size(text)


@pytest.mark.wide
def test_no_claim_is_false():
    """Of every two of them: equal, at least as large, and the opposites."""
    told = 0
    some = [text for group in SIZES.values() for text in group[:2]]
    for a, b in combinations(some, 2):
        x, y = values(a), values(b)
        equal, above = decide_eq(size(a), size(b)), decide_ge(size(a), size(b))
        told += equal is not None
        assert equal is None or {p == q for p, q in zip(x, y)} == {equal}, (a, b)
        assert above is None or {p >= q for p, q in zip(x, y)} == {above}, (a, b)
    assert told > 40


@pytest.mark.parametrize("text", EVERY)
def test_canonical_forms_have_the_same_values(text):
    d = size(text)
    found = [d if isinstance(d, int) else d.substitute({"n": n, "m": m}) for n, m in UP_TO_20]
    assert found == values(text)
    assert str(size(str(d))) == str(d)


@pytest.mark.parametrize(("text", "written"), [
    ("(n + 1)//2", "n - floordiv(n, 2)"), ("n//2 + (n + 1)//2", "n"),
    ("2*((n + 1)//2) - n", "mod(n, 2)"), ("n - 2*n//3", "floordiv(n + 2, 3)"),
    ("max(n - 1, 0)", "max(n, 1) - 1"), ("max(n, 2*m)//2", "max(floordiv(n, 2), m)"),
    ("((n + 1)//2 + 1)//2", "floordiv(n + 3, 4)"),
])  # fmt: skip
def test_which_words_are_chosen(text, written):
    assert str(size(text)) == written


@pytest.mark.parametrize("pair", [("n", "m"), ("n*m", "n"), ("n//2", "n//3"), ("n", "max(n, 1)")])
def test_what_depends_is_told(pair):
    a, b = map(size, pair)
    assert decide_eq(a, b) is None
