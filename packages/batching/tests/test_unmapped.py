"""Arguments that vmap does not map: with None in in_axes they need not be arrays.

Invariant: what is expected is a Python loop over numpy's elements.
"""

import types

import numpy as np
import pytest

import plait
from plait import lax

jnp = plait.numpy
xs = np.arange(3.0, dtype=np.float32)


@pytest.mark.parametrize(
    "given, f",
    [
        (np.sqrt, lambda o, x: x + 1 if o is np.sqrt else x),
        (jnp.sin, lambda o, x: o(x) * 0 + x + 1),
        ("ab", lambda o, x: x + len(o) - 1),
        (types.SimpleNamespace(k=1), lambda o, x: x + o.k),
        (None, lambda o, x: x + 1 if o is None else x),
        ({"f": abs, "c": 1.0}, lambda o, x: o["f"](x) + o["c"]),
        (frozenset([1]), lambda o, x: x + len(o)),
    ],
)
@pytest.mark.parametrize("around", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_what_is_no_array_passes_as_it_is(given, f, around):
    g = around(lambda v: plait.vmap(f, in_axes=(None, 0))(given, v))
    np.testing.assert_array_equal(g(xs), xs + 1)


@pytest.mark.parametrize("around", [lambda f: f, plait.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("options", [{}, {"axis_name": "i"}, {"chunk": 2}], ids=str)
def test_arithmetic_on_numbers_that_are_not_mapped_gives_numbers(around, options):
    rows = np.arange(12.0, dtype=np.float32).reshape(3, 4)

    def f(v, n, d):
        return v[n - 1 : 2 * n].sum() * (d["c"] + 1.0) + jnp.zeros(n + n).sum()

    want = [sum(row[1:4]) * 1.5 for row in rows]
    mapped = plait.vmap(f, (0, None, None), **options)
    np.testing.assert_allclose(around(lambda x: mapped(x, 2, {"c": 0.5}))(rows), want, rtol=1e-6)
    twice = plait.vmap(lambda x, n: mapped(x, n, {"c": 0.5}), (0, None))
    np.testing.assert_allclose(around(lambda x: twice(x, 2))(rows[None]), [want], rtol=1e-6)


def test_a_prefix_says_which_parts_are_mapped():
    f = plait.vmap(lambda m, x: m["f"](x) + m["w"], in_axes=({"f": None, "w": 0}, 0))
    np.testing.assert_allclose(f({"f": jnp.sin, "w": xs}, xs), np.sin(xs) + xs, rtol=1e-6)


def test_what_is_mapped_is_an_array():
    for call in (
        lambda: plait.vmap(lambda o, x: x)("ab", xs),
        lambda: plait.vmap(lambda o, x: x, in_axes=({"a": 0}, 0))({"a": jnp.sin}, xs),
        lambda: plait.vmap(lambda x, o: x)(xs, o="ab"),
    ):
        with pytest.raises(plait.errors.NotAnArrayError, match="in_axes=None"):
            call()
    with pytest.raises(plait.errors.NotAnArrayError, match="the result"):
        plait.vmap(lambda x: "a", out_axes=None)(xs)
    with pytest.raises(plait.errors.AxisError, match="nothing is mapped"):
        plait.vmap(lambda o: o, in_axes=None)("ab")


@pytest.mark.feature("B40")
def test_names_of_axes_of_a_mesh():
    """They concern what says how arrays lie, and nothing else."""
    for names in (None, "r", ("r", "x"), ()):
        np.testing.assert_array_equal(plait.vmap(lambda x: x + 1, spmd_axis_name=names)(xs), xs + 1)
        decorated = plait.vmap(in_axes=1, spmd_axis_name=names)(lambda x: x + 1)
        np.testing.assert_array_equal(decorated(xs[None]), xs[:, None] + 1)
    for wrong in (3, ["r"], ("r", 3)):
        with pytest.raises(plait.errors.ArgumentError, match="spmd_axis_name"):
            plait.vmap(lambda x: x, spmd_axis_name=wrong)
    with pytest.raises(plait.errors.AxisError, match="twice"):
        plait.vmap(lambda x: x, spmd_axis_name=("r", "r"))


def _same(x, y):
    return lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0], c[1] + 1), (y, x))


LEVEL = {
    "cond": lambda x, y: lax.cond(x > 1, lambda v: v, lambda v: v, y),
    "cond of loops": lambda x, y: lax.cond(x > 1, lambda v: _same(x, v)[0], lambda v: v, y),
    "cond of scan": lambda x, y: lax.cond(
        x > 1, lambda v: lax.scan(lambda c, _: (c, None), v, None, 2)[0], lambda v: v, y
    ),
    "cond that acts": lambda x, y: lax.cond(
        x > 1, lambda v: (plait.debug.callback(lambda _: None, x), v)[1], lambda v: v, y
    ),
    "switch": lambda x, y: lax.switch(x.astype(int), [lambda v: v] * 3, y),
    "cond in jit": lambda x, y: plait.jit(lambda x, y: lax.cond(x > 1, *[lambda v: v] * 2, y))(
        x, y
    ),
    "while": lambda x, y: _same(x, y)[0],
    "while that acts": lambda x, y: lax.while_loop(
        lambda c: c[1] < 3,
        lambda c: (plait.debug.callback(lambda _: None, c[1]), (c[0], c[1] + 1))[1],
        (y, x),
    )[0],
    "scan": lambda x, y: lax.scan(lambda c, _: (c, None), (y, x), None, 2)[0][0],
}


@pytest.mark.parametrize("name", LEVEL)
@pytest.mark.parametrize("around", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_a_result_that_is_an_unmapped_operand_stays_unmapped(name, around):
    """The predicate differs between elements, and the result does not: it takes out_axes=None."""
    f = LEVEL[name]
    got = around(plait.vmap(f, (0, None), None))(xs, np.float32(3))
    np.testing.assert_array_equal(got, np.float32(3))
    seen = plait.vmap(lambda x, y: 2 * f(x, y), (0, None))  # as many rows as elements, where asked
    np.testing.assert_array_equal(around(seen)(xs, np.float32(3)), [6, 6, 6])


OTHERS = {
    "branches of two operands": (
        lambda x, y: lax.cond(x > 1, lambda a, b: a, lambda a, b: b, y, -y)
    ),
    "a carry that moves once": lambda x, y: lax.while_loop(
        lambda c: c[1] < 2, lambda c: (c[2], c[1] + 1, c[2]), (y, x, -y)
    )[0],
    "a carry that is exchanged": lambda x, y: lax.while_loop(
        lambda c: c[2] < 2, lambda c: (c[1], c[0], c[2] + 1), (y, -y, x)
    )[0],
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_result_of_several_operands_is_not_one_of_them(name):
    f = OTHERS[name]
    want = [f(x, np.float32(3)) for x in xs]
    assert len({float(w) for w in want}) == 2
    np.testing.assert_array_equal(plait.vmap(f, (0, None))(xs, np.float32(3)), want)
    with pytest.raises(plait.errors.AxisError, match="varies along the mapped axis"):
        plait.vmap(f, (0, None), None)(xs, np.float32(3))
