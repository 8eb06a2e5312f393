"""Consoles at breakpoints, printed keys and encoded labels under transformations.

Invariant: the oracle is the text, or the array, of the function that is not transformed.
"""

import io

import numpy as np
import pytest

import plait
import plait.numpy as pnp

X = np.float32([1, 2])


def talk(text):
    """Input for a console that stops twice, and what it says."""
    return {"stdin": io.StringIO(text * 2), "stdout": io.StringIO()}


def said(files):
    text = files["stdout"].getvalue().replace("(plait) ", "\n")
    return [line.strip() for line in text.split("\n")]


def test_a_breakpoint_stops_at_each_element_of_a_map():
    files = talk("p x\nc\n")

    def element(x):
        plait.debug.breakpoint(**files)
        return x

    plait.vmap(element)(X)
    plait.effects_barrier()
    assert sorted(s for s in said(files) if s in ("1.0", "2.0")) == ["1.0", "2.0"]


def test_a_breakpoint_shows_values_under_derivatives():
    files = talk("p x\nc\n")

    def f(x):
        plait.debug.breakpoint(**files)
        return pnp.sum(x * x)

    np.testing.assert_array_equal(plait.grad(f)(X), 2 * X)
    assert "[1. 2.]" in said(files)


def test_one_hot_along_a_named_axis():
    """Each position has its own element."""
    labels = np.array([0, 2, 5])
    f = lambda i: plait.nn.one_hot(labels, 3, axis="i") + 0 * i  # noqa: E731
    got = plait.vmap(f, axis_name="i")(np.zeros(3, np.float32))
    np.testing.assert_array_equal(got, (np.arange(3)[:, None] == labels).astype(np.float32))
    with pytest.raises(plait.errors.AxisError, match="has size 3, and there are 4 classes"):
        plait.vmap(lambda i: plait.nn.one_hot(0, 4, axis="i"), axis_name="i")(np.zeros(3))


def test_printed_keys(capsys):
    """A key is shown by the numbers that it holds, under every transformation."""
    keys = plait.random.split(plait.random.key(3), 2)
    plait.debug.print("{}", keys[0])
    plait.jit(lambda k: plait.debug.print("{k}", k=k))(keys[0])
    plait.vmap(lambda k: plait.debug.print("{}", k))(keys)
    plait.effects_barrier()
    shown = [str(row) for row in np.asarray(plait.random.key_data(keys))]
    assert capsys.readouterr().out.splitlines() == [shown[0], shown[0], *shown]
