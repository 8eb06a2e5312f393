"""A sample of `pile_families` on piles; `nox -s fuzz` takes all, at all vectors of lengths.

Invariant: the other side is the program itself, applied to one example after the other.
"""

import pytest

import plait
import plait.numpy as pnp

from .pile_checks import VECTORS, check, check_room
from .pile_families import FAMILIES, WITHOUT_DERIVATIVE

VALUES = [
    "and", "xor bool", "min uint8", "argmax", "argmin whole", "median", "top_k", "sort pairs",
    "sort nan", "sort int8", "sort extremes", "cumsum int reversed", "cumprod reversed",
    "recurrence reversed", "attention causal", "einsum shared both", "take along few",
    "take fill int", "take wrap", "scatter min", "scatter mul", "segment sum",
    "dynamic update each", "pad reflect", "pad interior negative", "strided back",
    "n * m iota", "max(n, m)", "three sizes apart", "n and m sorted",
    "conv dilated", "max window stride", "scan, two piles", "switch", "vmap of scan", "tree",
    "complex", "bfloat16", "random bits", "random normal", "random categorical", "random split",
    "random permutation",
]  # fmt: skip
GRADIENTS = [
    "conv stride", "sum window", "custom vjp", "scatter mul", "singular vectors", "two indices",
    "einsum contracted", "pad edge", "joined three",
]  # fmt: skip
AT_ANY_CAPACITY = [
    "argsort of ties", "cumsum int reversed", "sort pairs", "sum window", "take wrap",
    "joined three", "scan, two piles", "random normal", "recurrence reversed", "conv stride",
]  # fmt: skip
OF_OTHER_LENGTHS = [(v, n) for v in VECTORS if v != "mixed" for n in ("argsort of ties", "rolled")]


@pytest.mark.sampled(15)
@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    """In one program, whatever lies beyond the last row."""
    f, *kinds = FAMILIES[name]
    check(f, kinds, VECTORS["mixed"], tier="fast")


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    f, *kinds = FAMILIES[name]
    check(f, kinds, VECTORS["mixed"], gradient=name not in WITHOUT_DERIVATIVE, tier="fast")


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("vector", "name"), OF_OTHER_LENGTHS)
def test_other_lengths(vector, name):
    f, *kinds = FAMILIES[name]
    check(f, kinds, VECTORS[vector], tier="fast")


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", AT_ANY_CAPACITY)
def test_more_room_changes_no_bit(name):
    f, *kinds = FAMILIES[name]
    check_room(f, kinds, ((3, 0, 9, 1), (2, 5, 7, 0), (1, 2, 3, 4)))


def test_no_examples():
    """Whatever the program is, nothing is taken from where there are no rows."""
    rows, none = pnp.zeros((0, 4)), pnp.zeros(0, "int32")
    pile = plait.Pile(rows, none)

    def f(x):
        return x.sum(0), pnp.argmax(x, 0), x[::-1], x @ x.T, pnp.cumsum(x.reshape(-1)), x.shape[0]

    for wrapped in (lambda g: g, plait.jit):
        outs = wrapped(plait.vmap(f, plait.pile_axis, plait.pile_axis))(pile)
        assert [p.to_list() for p in outs] == [[]] * 6
        assert [p.aval.elt_ty.ndim for p in outs] == [1, 1, 2, 2, 1, 0]
        loss = lambda p: plait.vmap(lambda x: pnp.sin(x).sum(), plait.pile_axis)(p).sum()
        got = wrapped(plait.grad(loss, allow_int=True))(pile)
        assert plait.tree.leaves(got)[0].shape == plait.tree.leaves(pile)[0].shape
    assert plait.vmap(lambda x: x.sum(0), plait.pile_axis)(pile).shape == (0, 4)
    assert pile.data.shape == (0, 4) and pile.to_padded().shape[0] == 0


EMPTY = {
    "rows": (lambda x: (x[::-1], x.sum(0), pnp.cumsum(x, 0), x.reshape(-1), x.T, pnp.sort(x, 0)),
             "n 0"),
    "pairs": (lambda x: ((x @ x.T)[::-1], (x[:, None] + x[None])[::-1]), "n 0"),
    "middle": (lambda x: (x.transpose(1, 0, 2)[::-1], x.reshape(x.shape[1], 0)), "0 n 4"),
    "products": (lambda x: (pnp.prod(x, 0), pnp.prod(x, 1)), "n 4"),
}  # fmt: skip


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", EMPTY)
def test_axes_of_no_elements(name):
    f, *kinds = EMPTY[name]
    check(f, kinds, VECTORS["mixed"], gradient=True, tier="fast")
