"""What is mapped is named where a lowered program is read with its locations.

Invariant: names are looked for in the text; without locations nothing is there, and the code is
that of the same operations without vmap.
"""

import re

import numpy as np
import pytest

import plait

pytestmark = pytest.mark.feature("B18")
X = np.ones((3, 2), np.float32)


def names(f, *args):
    """The names in front of the locations of operations."""
    text = plait.jit(f).lower(*args).as_text(debug_info=True)
    return set(re.findall(r'loc\("(\S*)"\(#loc\d+\)\)', text)) - functions(text)


def functions(text):
    """Names of Python functions, whose locations are lines of files."""
    lines = set(re.findall(r'(#loc\d*) = loc\("[^"]*":\d+', text))
    return {n for n, at in re.findall(r'loc\("(\S*)"\((#loc\d+)\)\)', text) if at in lines}


def double(v):
    return plait.numpy.sin(v) * 2


def test_the_function_that_is_mapped():
    assert names(lambda x: plait.vmap(double)(x) + 1, X) == {"vmap(double)"}
    assert names(lambda x: plait.numpy.sin(x), X) == set()
    assert names(lambda x: plait.vmap(double, chunk=2)(x), X) == {"vmap(double)"}


def test_maps_of_maps():
    row = plait.vmap(double)
    assert names(lambda x: plait.vmap(row)(x), X) == {"vmap(double)/vmap(double)"}
    outer = lambda v: row(v) + v.sum()  # noqa: E731
    assert names(lambda x: plait.vmap(outer)(x), X) == {
        "vmap(<lambda>)/vmap(double)",
        "vmap(<lambda>)",
    }


def test_among_names_that_users_give():
    def mid(v):
        with plait.named_scope("in"):
            return plait.vmap(double)(v)

    def f(x):
        with plait.named_scope("out"):
            return plait.vmap(mid)(x)

    assert names(f, X) == {"out/vmap(mid)/in/vmap(double)"}


def test_loops_are_named_as_a_whole():
    steps = lambda v: plait.lax.scan(lambda c, _: (c * 2, None), v, None, length=3)[0]  # noqa: E731
    assert names(lambda x: plait.vmap(steps)(x), X) >= {"vmap(<lambda>)"}


def test_the_code_has_no_names():
    mapped = plait.jit(lambda x: plait.vmap(plait.numpy.sin)(x)).lower(X)
    plain = plait.jit(lambda x: plait.numpy.sin(x)).lower(X)
    assert mapped.as_text() == plain.as_text() and "vmap" not in mapped.as_text()


def test_where_nothing_is_recorded_nothing_is_named():
    with plait.debug.nans(), plait.named_scope("eager"):
        np.testing.assert_allclose(np.asarray(plait.vmap(double)(X)), np.sin(X) * 2, rtol=1e-6)


def test_an_error_keeps_its_line():
    with pytest.raises(plait.errors.DimMismatch) as e:
        plait.jit(plait.vmap(lambda v: v + np.ones(5)))(X)
    assert __file__ in str(e.value)


def test_positions_are_made_where_they_are_asked_for():
    """An axis with a name alone makes no iota."""

    def text(f):
        return plait.jit(plait.vmap(f, axis_name="i")).lower(X).as_text()

    at = plait.lax.axis_index
    assert "iota" not in text(lambda v: plait.lax.psum(v, "i") * 2)
    assert text(lambda v: v * at("i")).count("stablehlo.iota") == 1
