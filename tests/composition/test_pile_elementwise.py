"""Functions of numbers, of the array library, take piles: every public one, against a loop.

Invariant: the other side is the function itself, applied to one example after the other; whether a
function is one of numbers is found by trying it on arrays.
"""

import inspect

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Pile, ext, nn, pile_axis
from plait.errors import MissingRule, NotAnArrayError
from plait.scipy import special
from plait_batching.piles.elementwise_names import ELEMENTWISE

LENGTHS = (4, 0, 2)
OPERANDS = {
    "floats": np.linspace(0.15, 0.85, 6),
    "integers": np.arange(1, 7),
    "booleans": np.array([True, False, True, True, False, True]),
    "complex": np.linspace(0.1, 0.9, 6) + 0.3j,
}
SPACES = {"numpy": pnp, "special": special, "nn": nn}
PUBLIC = {
    f"{space}.{name}": getattr(module, name)
    for space, module in SPACES.items()
    for name in sorted(vars(module))
    if not name.startswith("_") and inspect.isfunction(getattr(module, name))
}
CONVERSIONS = {
    "array", "asarray", "astype", "block", "from_dlpack", "place",
    "trim_zeros",
}  # fmt: skip
"""Functions that are given arrays, or make new ones; one that returns a number as it is."""


def rank(f):
    """Return the number of arguments that a call of a function of numbers needs."""
    if f is pnp.where:
        return 3
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(f).parameters.values()
    return len([p for p in parameters if p.default is p.empty and p.kind in kinds])


def operands(f):
    """Yield operands of each kind."""
    for x in OPERANDS.values():
        yield [np.roll(x, k) for k in range(rank(f))]


def results(out):
    return out if isinstance(out, tuple) else (out,)


def taken(f):
    """Return operands that a function takes, and its results."""
    for xs in operands(f):
        try:
            return xs, [np.asarray(y) for y in results(f(*xs))]
        except Exception:
            continue
    raise AssertionError("no operands are taken")


@pytest.mark.sampled(48)
@pytest.mark.parametrize("name", [k for k in PUBLIC if k.partition(".")[2] in ELEMENTWISE])
def test_piles_are_taken(name):
    if name == "numpy.identity":  # a matrix, where nn.identity is a function of numbers
        return
    f = PUBLIC[name]
    xs, want = taken(f)
    got = results(f(*[Pile(x, LENGTHS) for x in xs]))
    for p, y in zip(got, want, strict=True):
        assert [len(e) for e in p.to_list()] == list(LENGTHS) and p.dtype == y.dtype
        np.testing.assert_allclose(p.data, y, rtol=1e-5)


def is_of_numbers(f, xs):
    """Return whether results are those of single numbers."""
    try:
        ys = [np.asarray(y) for y in results(f(*xs))]
        if any(y.shape != (6,) for y in ys):
            return False
        for part, shape in ((slice(2, 3), ()), (slice(2, 4), (2, 1)), ([3, 0, 5, 1, 2, 4], (6,))):
            zs = results(f(*[pnp.asarray(x[part].reshape(shape)) for x in xs]))
            for y, z in zip(ys, zs, strict=True):
                if np.shape(z) != shape:
                    return False
                np.testing.assert_allclose(np.ravel(z), y[part].ravel(), rtol=1e-4)
    except Exception:
        return False
    return True


@pytest.mark.wide
@pytest.mark.parametrize("space", SPACES)
def test_every_function_of_numbers_is_named(space):
    with plait.config(jit=False), np.errstate(all="ignore"):
        found = {
            name.partition(".")[2]
            for name, f in PUBLIC.items()
            if name.startswith(space) and 1 <= rank(f) <= 3
            if any(is_of_numbers(f, xs) for xs in operands(f))
        }
    assert found - CONVERSIONS <= ELEMENTWISE


def test_arguments_by_name_and_beside_numbers():
    p, q = Pile(OPERANDS["floats"], LENGTHS), Pile(OPERANDS["floats"][::-1].copy(), LENGTHS)
    x, y = p.data, q.data
    for got, want in (
        (pnp.power(p, 2), np.power(x, 2)),
        (pnp.power(2.0, p), np.power(2.0, x)),
        (pnp.round(p, decimals=1), np.round(x, 1)),
        (special.betainc(p, 2.0, q), special.betainc(x, 2.0, y)),
        (nn.gelu(p, approximate=False), nn.gelu(x, approximate=False)),
        (pnp.isclose(p, b=q, atol=0.2), np.isclose(x, y, atol=0.2)),
    ):
        np.testing.assert_allclose(got.data, want, rtol=1e-6)
        assert got.lengths.tolist() == list(LENGTHS)


def test_functions_of_users_are_left_alone():
    """Also if they have the name of a function of numbers, and refuse a pile."""

    @plait.jit
    def square(p):
        return pnp.sort(p)

    with pytest.raises(NotAnArrayError, match="map over it"):
        square(Pile(OPERANDS["floats"], LENGTHS))
    trees = Pile.from_list([{"a": np.ones(2)}])
    for f in (lambda p: p.sum(), lambda p: pnp.sum(p), pnp.square):
        with pytest.raises(NotAnArrayError, match="are trees"):
            f(trees)


def test_random_functions_of_the_same_name_refuse_piles():
    """A key shared by all elements would give them the same numbers."""
    with pytest.raises(NotAnArrayError):
        plait.random.gamma(plait.random.key(0), Pile(OPERANDS["floats"], LENGTHS))


@pytest.mark.parametrize("wrap", [lambda f: f, plait.jit])
def test_arrays_like_piles_are_piles(wrap):
    p = Pile.from_list([np.ones((n, 2)) for n in LENGTHS])
    for f, number in (
        (pnp.zeros_like, 0),
        (pnp.ones_like, 1),
        (lambda p, **how: pnp.full_like(p, 7, **how), 7),
    ):
        got = wrap(f)(p)
        assert got.dtype == np.float64 and got.lengths.tolist() == list(LENGTHS)
        for y, n in zip(got.to_list(), LENGTHS, strict=True):
            np.testing.assert_array_equal(y, np.full((n, 2), number))
        assert wrap(lambda p, f=f: f(p, dtype="int32"))(p).dtype == np.int32
        assert wrap(lambda p, f=f: f(p, shape=(3,)))(p).tolist() == [number] * 3
    assert wrap(lambda p: pnp.zeros_like(p, "int32"))(p).dtype == np.int32


# ---- primitives of strangers ---------------------------------------------------------------------


@ext.primitive("stranger.squash", traits=(ext.Elementwise,))
def squash(x: ext.Aval) -> ext.Aval:
    """Apply a function of single numbers that no table of piles has a name for."""
    return x


@ext.lower_rules.rule(squash)
def _(e, xs, ins, outs):
    return e.op("stablehlo.tanh", xs, outs[0])


@ext.primitive("stranger.cube")
def cube(x: ext.Aval) -> ext.Aval:
    """Apply the same kind of function without declaring it."""
    return x


@ext.lower_rules.rule(cube)
def _(e, xs, ins, outs):
    return e.op("stablehlo.tanh", xs, outs[0])


LAYOUTS = {  # flat rows, tiles of pairs, padded elements
    "flat": lambda x: x,
    "tiles": lambda x: x[:, None] * x[None, :],
    "padded": lambda x: x[:, None, None] * x[None, :, None] * x[None, None, :],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_primitive_goes_through_by_its_trait(layout):
    """`Elementwise` is all that its author declares; lengths are traced, so groups cannot help."""
    over = plait.jit(
        lambda rows, n: plait.vmap(lambda x: squash.bind(LAYOUTS[layout](x)), pile_axis, pile_axis)(
            Pile(rows, n)
        )
    )
    x = OPERANDS["floats"]
    got = over(x, np.array(LENGTHS)).to_list()
    for g, part in zip(got, np.split(x, np.cumsum(LENGTHS)[:-1]), strict=True):
        np.testing.assert_allclose(g, np.tanh(LAYOUTS[layout](part)), rtol=1e-12)


def test_a_primitive_that_declares_nothing_is_refused():
    with pytest.raises(MissingRule, match="stranger.cube"):
        plait.jit(lambda rows, n: plait.vmap(cube.bind, pile_axis, pile_axis)(Pile(rows, n)))(
            OPERANDS["floats"], np.array(LENGTHS)
        )
