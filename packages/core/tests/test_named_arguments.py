"""Errors name the argument that they are about, as the signature of the called function has it.

Invariant: the name is one of the function that user code called; errors about nothing that the user
gave, and about operands of operators, have none.
"""

import pickle

import pytest

import plait
from plait._base import argument_names
from plait.errors import PlaitError
from plait.ext.surface import fused

ONE = plait.lax.full((3,), 1.0)


@fused(numbers=("scale",))
def scaled(x, offset=0.0, scale=1.0):
    return plait.lax.add(plait.lax.mul(x, scale), offset)


def told(call):
    with pytest.raises(PlaitError) as caught:
        call()
    assert __file__ in caught.value.where
    return caught.value.what


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: plait.lax.add(ONE, "a"), "(argument `y`)"),
        (lambda: plait.lax.add(x="a", y=ONE), "(argument `x`)"),
        (lambda: plait.lax.add("a", "a"), "(argument `x` or `y`)"),
        (lambda: plait.lax.add(1.0, None), "(argument `y`)"),
        (lambda: plait.lax.concatenate([ONE, "a"], 0), "(argument `operands[1]`)"),
        (lambda: plait.lax.broadcast(ONE, ("a",)), "(argument `sizes"),
        (lambda: plait.lax.full((2, "a"), 1.0), "(argument `shape"),
        (lambda: plait.lax.full((2,), 1.0, "int33"), "(argument `dtype`)"),
        (lambda: ONE.at[0].set("a"), "(argument `values`)"),
        (lambda: plait.lax.argmax(ONE, "a", "int32"), "an integer, not 'a' (argument `axis`)"),
        (lambda: plait.jit(lambda x: plait.lax.add(x, "a"))(ONE), "(argument `y`)"),
        (lambda: plait.jit(lambda n: plait.lax.neg(n))("a"), "(jit: argument `n`)"),
        (lambda: plait.jit(plait.lax.neg)("a"), "(jit: argument `x`)"),
        (lambda: plait.lax.scan(lambda c, x: (c, x), "a", ONE), "(`init`)"),
        (lambda: plait.lax.scan(lambda c, x: (c, x), [ONE, "a"], ONE), "(`init[1]`)"),
        (lambda: plait.lax.cond(True, lambda v: v, lambda v: v, "a"), "(argument `operands[0]`)"),
        (lambda: plait.lax.map(lambda v: v, {"k": "a"}), "(`xs['k']`)"),
    ],
)
def test_the_name_is_that_of_the_called_function(call, name):
    said = told(call)
    assert name in said
    assert said.count("`) (") == 0, said


@pytest.mark.parametrize("under", [lambda f: f, plait.jit])
def test_functions_that_are_compiled_whole_name_their_arguments(under):
    run = under(lambda: scaled("a", 1.0))
    assert "a" in told(run) and "xs" not in told(run)


def test_operands_have_no_names():
    assert "argument" not in told(lambda: ONE + "a").lower()


def test_a_long_sequence_is_not_searched(monkeypatch):
    asked = []
    walk = argument_names.calls_of_arrays
    monkeypatch.setattr(argument_names, "calls_of_arrays", lambda t: asked.append(0) or walk(t))
    for numbers in ([0.5] * 1000, (0.5,) * 1000):
        told(lambda numbers=numbers: ONE + numbers)
        told(lambda numbers=numbers: plait.lax.add(ONE, numbers))
    assert 0 < len(asked) < 40


def test_errors_that_plait_catches_look_for_no_name(monkeypatch):
    """Text among what is printed is found by the error of its conversion."""
    asked = []
    monkeypatch.setattr(argument_names, "calls_of_arrays", lambda *_: asked.append(0) or [])
    plait.debug.print("{} {}", "a", ONE)
    assert not asked
    told(lambda: plait.lax.neg("a"))
    assert asked


def test_a_name_is_found_in_what_is_printed_pickled_and_kept():
    errors = []
    for read in (str, repr, lambda e: str(pickle.loads(pickle.dumps(e)))):
        try:
            plait.lax.add(ONE, "a")
        except PlaitError as e:
            assert "(argument `y`)" in read(e)
            errors.append(e)
    assert all("(argument `y`)" in str(e) for e in errors)
