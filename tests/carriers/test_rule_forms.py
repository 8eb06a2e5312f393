"""Custom rules whose results have other forms under a carrier than those of their functions.

A diagonal matrix cannot hold the elements of an array: such a rule is refused by its name.  A stack
can be held along any axis.

Invariant: results are compared with numpy's for dense matrices.
"""

import numpy as np
import pytest
from plait_structured import Diagonal, structured

import plait
import plait.numpy as pnp
from plait import lax

D = np.float32([[1, 2], [3, 4], [5, 6]])
EACH = np.stack([np.diag(d) for d in D])


def square(d):
    return d @ d


def mapped(function, rule):
    f = plait.custom_vmap(function)
    f.def_vmap(rule)
    return f


def each_square(size, stacked, d):
    return pnp.einsum("nij,njk->nik", d, d), True


def ones(size, stacked, d):
    return pnp.ones((2, 2)), False


def stack_of_ones(size, stacked, d):
    return pnp.ones((size, 2, 2)), True


AROUND = {
    "eager": lambda f: lambda d: structured(f)(Diagonal(d)),
    "jit inside": lambda f: lambda d: structured(plait.jit(f))(Diagonal(d)),
    "jit outside": lambda f: lambda d: plait.jit(structured(f))(Diagonal(d)),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("rule", [each_square, ones, stack_of_ones], ids=lambda f: f.__name__)
def test_mapping_rules_that_give_arrays_for_a_diagonal(rule, around):
    f = AROUND[around](mapped(square, rule))
    with pytest.raises(plait.errors.MissingRule, match=f"the rule {rule.__name__} returns"):
        plait.vmap(f)(D)


@pytest.mark.parametrize("around", AROUND)
def test_mapping_rules_that_give_diagonals(around):
    """For an array, which holds them."""
    f = mapped(lambda d: d @ pnp.eye(2), lambda size, stacked, d: (-d, stacked[0]))
    np.testing.assert_array_equal(plait.vmap(AROUND[around](f))(D), -EACH)


@pytest.mark.parametrize("around", AROUND)
def test_derivatives_that_give_arrays_for_a_diagonal(around):
    f = plait.custom_jvp(square)

    @f.defjvp
    def slopes(primals, tangents):
        return pnp.sin(primals[0]) + 1, tangents[0]

    with pytest.raises(plait.errors.MissingRule, match="the rule slopes returns"):
        plait.jvp(lambda d: AROUND[around](f)(d), (D[0],), (D[0],))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rules_that_move_the_mapped_axis(axis):
    """The function leaves it where it is, and its rule moves it to the front."""
    f = plait.custom_jvp(lambda x: x * 2)

    @f.defjvp
    def _(primals, tangents):
        return [lax.transpose(v, (1, 0)) for v in (primals[0] * 2, tangents[0])]

    x = np.arange(12, dtype=np.float32).reshape(2, 2, 3).transpose(np.roll([0, 1, 2], axis + 1))
    rows = np.moveaxis(x, axis, 0)
    for run in (
        plait.vmap(f, axis),
        plait.vmap(plait.jit(f), axis),
        plait.jit(plait.vmap(f, axis)),
    ):
        y, t = plait.jvp(run, (x,), (x,))
        np.testing.assert_array_equal(y, 2 * rows.transpose(0, 2, 1))
        np.testing.assert_array_equal(t, rows.transpose(0, 2, 1))
