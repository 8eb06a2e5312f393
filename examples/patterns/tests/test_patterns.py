"""Patterns of axes, through every transformation, against numpy."""

import numpy as np
import pytest
from plait_patterns import rearrange, reduce, repeat

import plait

X = np.random.default_rng(0).standard_normal((2, 6, 4)).astype(np.float32)
CASES = {  # name: (f, the same in numpy)
    "swap": (lambda x: rearrange(x, "b h w -> w b h"), lambda x: x.transpose(2, 0, 1)),
    "join": (lambda x: rearrange(x, "b h w -> b (h w)"), lambda x: x.reshape(2, 24)),
    "split": (
        lambda x: rearrange(x, "b (h two) w -> two b (w h)", two=2),
        lambda x: x.reshape(2, 3, 2, 4).transpose(2, 0, 3, 1).reshape(2, 2, 12),
    ),
    "rest": (lambda x: rearrange(x, "b ... -> ... b"), lambda x: np.moveaxis(x, 0, -1)),
    "one": (lambda x: rearrange(x, "b h w -> 1 b h 1 w"), lambda x: x[None, :, :, None]),
    "same": (lambda x: rearrange(x, "... -> ..."), lambda x: x),
    "sum": (lambda x: reduce(x, "b h w -> w", "sum"), lambda x: x.sum((0, 1))),
    "pool": (
        lambda x: reduce(x, "b (h two) w -> b h w", "mean", two=2),
        lambda x: x.reshape(2, 3, 2, 4).mean(2),
    ),
    "all": (lambda x: reduce(x, "... ->", "max"), lambda x: x.max()),
    "least": (lambda x: reduce(x, "b ... -> b", "min"), lambda x: x.min((1, 2))),
    "product": (lambda x: reduce(x, "b h w -> h b", "prod"), lambda x: x.prod(2).T),
    "repeat": (lambda x: repeat(x, "b h w -> b (h n) w", n=3), lambda x: x.repeat(3, 1)),
    "tile": (lambda x: repeat(x, "... w -> ... (n w)", n=2), lambda x: np.tile(x, (1, 1, 2))),
}
each = pytest.mark.parametrize("name", CASES)


def close(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, atol=1e-5)


def slope(f, x):
    """The derivative of the sum of squares of `f(x)`, by differences of float64 in numpy."""
    x, step = x.astype(np.float64), 1e-6
    total = lambda x: (f(x) ** 2).sum()
    basis = np.eye(x.size).reshape(-1, *x.shape) * step
    return np.array([(total(x + d) - total(x - d)) / (2 * step) for d in basis]).reshape(x.shape)


@each
def test_compiled_and_not(name):
    f, reference = CASES[name]
    close(f(X), reference(X))
    close(f(plait.numpy.asarray(X)), reference(X))
    close(plait.jit(f)(X), reference(X))


@each
def test_derivatives(name):
    f, reference = CASES[name]
    got = plait.grad(lambda x: (f(x) ** 2).sum())(X)
    np.testing.assert_allclose(got, slope(reference, X), rtol=1e-2, atol=1e-3)


@each
def test_mapped_also_over_derivatives(name):
    f, reference = CASES[name]
    stack = np.stack([X, 2 * X, -X])
    close(plait.jit(plait.vmap(f))(stack), np.stack([reference(x) for x in stack]))
    slopes = plait.vmap(plait.grad(lambda x: f(x).sum()))(stack)
    close(slopes, np.stack([plait.grad(lambda x: f(x).sum())(x) for x in stack]))


@each
def test_on_devices(name, rows):
    f, reference = CASES[name]
    mesh, cut = rows
    stack = np.stack([X * k for k in range(8)])
    one = lambda x: f(x[0])[None]
    run = plait.shard_map(one, mesh=mesh, in_specs=cut, out_specs=cut)
    close(plait.jit(run)(stack), np.stack([reference(x) for x in stack]))


@each
def test_exported(name):
    f, reference = CASES[name]
    saved = plait.export.export(plait.jit(f))(X).serialize()
    close(plait.export.deserialize(saved).call(X), reference(X))


def test_exported_for_any_size():
    f = lambda x: reduce(x, "b (h two) w -> b (h w)", "sum", two=2)
    types = plait.export.symbolic_args_specs(X, "b, 2*h, 4")
    saved = plait.export.export(plait.jit(f))(types).serialize()
    call = plait.export.deserialize(saved).call
    close(call(X), X.reshape(2, 3, 2, 4).sum(2).reshape(2, 12))
    close(call(X[:, :2]), X[:, :2].sum(1))


def test_with_errors_as_values():
    def f(x):
        y = rearrange(x, "b h w -> b (h w)")
        plait.checks.check((y > 0).all(), "not positive")
        return y

    error, y = plait.jit(plait.checks.checkify(f))(X)
    assert "not positive" in error.get()
    close(y, X.reshape(2, 24))
    error, _ = plait.checks.checkify(f)(abs(X) + 1)
    assert error.get() is None


def test_piles():
    parts = [X[0, :n] for n in (3, 0, 5)]
    pile = plait.Pile.from_list(parts)
    sums = plait.vmap(lambda x: reduce(x, "n d -> d", "sum"), plait.pile_axis)(pile)
    close(sums, np.stack([part.sum(0) for part in parts]))
    turn = lambda x: rearrange(x, "n (a b) -> n b a", a=2)
    turned = plait.vmap(turn, plait.pile_axis, plait.pile_axis)(pile)
    for got, part in zip(turned.to_list(), parts, strict=True):
        close(got, part.reshape(-1, 2, 2).transpose(0, 2, 1))


def test_in_loops_and_references():
    total = plait.new_ref(np.zeros(4, np.float32))

    @plait.jit
    def add(x):
        total[...] += reduce(x, "h w -> w", "sum")

    for x in X:
        add(x)
    close(total[...], X.sum((0, 1)))
    carried, _ = plait.lax.scan(lambda c, x: (c + reduce(x, "h w -> w", "sum"), None), X[0, 0], X)
    close(carried, X[0, 0] + X.sum((0, 1)))


def test_programs_hold_primitives_alone():
    """No trace of patterns is left in what is compiled."""
    program = plait.make_program(lambda x: rearrange(x, "b h w -> w b h"))(X)
    assert [e.prim.name for e in program.eqns] == ["core.transpose"]
    assert rearrange(1.5, "-> 1 1").tolist() == [[1.5]]


WRONG = {
    "no arrow": (lambda: rearrange(X, "a b c"), "one arrow", "a b c"),
    "two arrows": (lambda: rearrange(X, "a -> b -> a"), "one arrow"),
    "not a text": (lambda: rearrange(X, 3), "one arrow", "3"),
    "lost": (lambda: rearrange(X, "a b c -> a b"), "'c'", "one side", "reduce"),
    "new": (lambda: rearrange(X, "a b c -> a b c d"), "'d'", "one side", "repeat"),
    "reduced anew": (lambda: reduce(X, "a b -> a c", "sum"), "'c'", "right side"),
    "repeated away": (lambda: repeat(X, "a b -> a c", c=2), "'b'", "left side"),
    "twice": (lambda: rearrange(X, "a a b -> b a"), "'a'", "twice"),
    "parenthesis": (lambda: rearrange(X, "a (b c -> c b a"), "'(b'", "parentheses"),
    "nested": (lambda: rearrange(X, "a (b ...) -> a b ..."), "(b ...)"),
    "a sign": (lambda: rearrange(X, "a-b c -> c"), "'a-b'"),
    "rank": (lambda: rearrange(X, "a b -> b a"), "2 axes", "f32[2,6,4]", "write ..."),
    "too many": (lambda: rearrange(X, "a b c d ... -> ..."), "a b c d"),
    "unknown": (lambda: rearrange(X, "a (b c) d -> a b c d"), "'c'", "c=2"),
    "does not fit": (lambda: rearrange(X, "a (b c) d -> a b c d", c=5), "size 6", "c=5"),
    "not one": (lambda: rearrange(X, "a 1 c -> a c"), "size 6"),
    "no size": (lambda: repeat(X, "... -> ... n"), "'n'", "n=2"),
    "no integer": (lambda: repeat(X, "... -> ... n", n=2.5), "n must be an integer", "2.5"),
    "unused": (lambda: rearrange(X, "a b c -> c b a", d=2), "'d'"),
    "reduction": (lambda: reduce(X, "a b c -> a", "median"), "'median'", "mean"),
    "no array": (lambda: rearrange("text", "a -> a"), "text"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_told_in_three_parts(name, told):
    call, *texts = WRONG[name]
    told(call, *texts)
    told(lambda: plait.jit(lambda: call())(), *texts)


def test_the_public_name():
    assert plait.patterns.rearrange is rearrange
    assert {"rearrange", "reduce", "repeat"} <= {*dir(plait.patterns)}
