"""Piles as arrays: operators, functions of elements, reductions, choosing and joining.

Invariant: the reference is numpy's function of each element, or of the rows of all.
"""

import operator

import numpy as np
import pytest

import plait
import plait.numpy as pnp
from plait import Pile, pile_axis
from plait.errors import AxisError, NotAnArrayError, ShapeError, SubscriptError

XS = [np.random.default_rng(n).standard_normal((n, 2)) for n in (3, 0, 5, 1)]
EACH = np.arange(1.0, 5.0)[:, None, None]
WRAPS = {"eager": lambda f: f, "jit": plait.jit}


def pile():
    return Pile.from_list(XS)


def same(got, want):
    if isinstance(got, Pile):
        for x, y in zip(got.to_list(), want, strict=True):
            assert x.shape == np.shape(y)
            np.testing.assert_allclose(x, y, rtol=1e-6)
    else:
        assert got.shape == np.shape(want)
        np.testing.assert_allclose(got, want, rtol=1e-6)


def of_each(f):
    return [f(x) for x in XS]


OPERATORS = {
    "number": lambda x: 1 - x * 2,
    "numpy number": lambda x: np.float64(2) * x,
    "row": lambda x: np.array([1.0, 2.0]) * x,
    "array": lambda x: pnp.array([1.0, 2.0]) / (x + 9),
    "product": lambda x: x @ np.ones((2, 3)),
    "signs": lambda x: -abs(x),
    "comparison": lambda x: (x > 0) & (x <= 1) | ~(x < 2),
    "power": lambda x: x**2 % 3 // 2,
    "two": lambda x: x * (x > 0),
    "quotient": lambda x: divmod(x, 2)[0],
    "remainder of a number": lambda x: divmod(1, x + 9)[1],
}
CALLS = {
    **{f"of {k}": (f, of_each(lambda x, f=f: np.asarray(f(x)))) for k, f in OPERATORS.items()},
    "an axis of elements": (lambda p: EACH * p, [w * x for w, x in zip(EACH, XS)]),
    "astype": (lambda p: p.astype("int32"), of_each(lambda x: x.astype("int32"))),
    "where": (lambda p: pnp.where(p > 0, p, 0.0), of_each(lambda x: np.where(x > 0, x, 0.0))),
    "clip": (lambda p: pnp.clip(p, -1, 0.5), of_each(lambda x: np.clip(x, -1, 0.5))),
    "less": (lambda p: pnp.less(0.5, p), of_each(lambda x: x > 0.5)),
    "relu": (plait.nn.relu, of_each(lambda x: np.maximum(x, 0))),
    "kept axis": (
        lambda p: p - p.sum(axis=1, keepdims=True), of_each(lambda x: x - x.sum(0, keepdims=True))
    ),
    "all elements": (lambda p: p.mean(axis=(0, 1)), np.concatenate(XS).mean(0)),
    "variance": (lambda p: p.var(axis=(0, 1)), np.concatenate(XS).var(0)),
    "slice": (lambda p: p[1:3], XS[1:3]),
    "reversed": (lambda p: p[::-1], XS[::-1]),
    "none": (lambda p: p[4:], []),
    "numbers": (lambda p: p[np.array([2, 0, -2])], [XS[2], XS[0], XS[2]]),
    "a mask": (lambda p: p[np.array([True, False, True, True])], [XS[0], *XS[2:]]),
    "sorted": (lambda p: p[pnp.argsort(p.lengths)], [XS[i] for i in (1, 3, 0, 2)]),
    "columns": (lambda p: p[:, :, 0], of_each(lambda x: x[:, 0])),
    "last": (lambda p: p[..., 1], of_each(lambda x: x[:, 1])),
    "batches": (lambda p: pnp.concatenate([p, p[::-1]]), XS + XS[::-1]),
    "rows": (
        lambda p: pnp.concatenate([p, p + 1], axis=1),
        of_each(lambda x: np.concatenate([x, x + 1])),
    ),
    "an element": (lambda p: (p[2] * 2).sum(), 2 * XS[2].sum()),
    "a traced element": (lambda p: p[pnp.argmax(p.lengths)].sum(), XS[2].sum()),
}  # fmt: skip
for name in ("sum", "prod", "max", "min", "mean", "var", "std"):
    numpys = getattr(np, name)
    CALLS[f"{name} of all"] = getattr(pnp, name), numpys(np.concatenate(XS))
    CALLS[f"{name} of columns"] = (
        lambda p, name=name: getattr(p, name)(axis=-1), of_each(lambda x, f=numpys: f(x, 1))
    )  # fmt: skip
for name in ("sum", "prod"):
    CALLS[f"{name} of rows"] = (
        lambda p, name=name: getattr(p, name)(axis=pile_axis),
        np.stack(of_each(lambda x, f=getattr(np, name): f(x, 0))),
    )


@pytest.mark.sampled(6)
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("name", CALLS)
def test_values(name, wrap):
    f, want = CALLS[name]
    same(WRAPS[wrap](f)(pile()), want)


ALL = np.concatenate(XS)
OPTIONS = [
    ("sum", {"initial": 5.0}),
    ("sum", {"initial": 5.0, "axis": (0, 1)}),
    ("sum", {"initial": 5.0, "axis": 1}),
    ("sum", {"where": lambda x: x > 0}),
    ("sum", {"where": lambda x: x > 0, "axis": 1}),
    ("sum", {"where": lambda x: x > 0, "axis": (0, 1), "initial": 1.0}),
    ("sum", {"where": lambda x: np.array([True, False])}),
    ("prod", {"initial": 2.0}),
    ("max", {"initial": 0.5, "where": lambda x: x < 0}),
    ("min", {"initial": -9.0}),
    ("max", {"axis": (0, 1)}),
    ("mean", {"where": lambda x: x > 0}),
    ("mean", {"axis": (0, 1), "where": lambda x: x > 0}),
    ("mean", {"dtype": "float32"}),
    ("var", {"where": lambda x: x > 0, "ddof": 1}),
    ("var", {"axis": (0, 1), "ddof": 1}),
    ("std", {"axis": (0, 1), "correction": 1}),
    ("std", {}),
    ("any", {"where": lambda x: x > 0}),
    ("all", {"where": lambda x: x > 9}),
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("wrap", "capacity"), [("eager", None), ("jit", plait.Capacities(64, 8, count=7))]
)
@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_reductions_take_the_options_of_arrays(name, options, wrap, capacity):
    """Over the elements, a reduction is that of all rows; empty elements of a capacity are none."""

    def reduced(x, **more):
        kept = {k: v(x) if callable(v) else v for k, v in options.items()}
        return getattr(x, name)(**{**kept, **more})

    got = WRAPS[wrap](reduced)(Pile.from_list(XS, capacity=capacity))
    axis, ddof = options.get("axis"), options.get("correction")
    more = {} if ddof is None else {"ddof": ddof}
    if axis == 1:
        want = np.stack(of_each(lambda x: reduced(x, axis=0)))
        got = got[:4]
    else:
        kept = {k: v(ALL) if callable(v) else v for k, v in options.items() if k != "correction"}
        want = getattr(ALL, name)(**{**kept, **more, "axis": None if axis is None else 0})
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


def test_reductions_of_two_sizes_and_of_no_rows():
    xs = [x @ x.T for x in XS]
    p = Pile.from_list(xs, axis=(0, 1))
    for name in ("sum", "mean", "var", "max"):
        np.testing.assert_allclose(
            getattr(p, name)(), getattr(np.concatenate([x.ravel() for x in xs]), name)()
        )
    none = Pile.from_list([np.zeros((0, 2))] * 2)
    assert none.sum(initial=3.0) == 3 and none.max(initial=1.0) == 1
    with pytest.raises(plait.errors.PlaitError, match="max"):
        none.max()


def test_sums_of_narrow_numbers_are_accumulated_once():
    """Rounding for each element would lose what rows of small elements add up to."""
    p = Pile.from_list([np.full(1, 0.1, "float16")] * 4000)
    assert abs(float(p.mean()) - 0.1) < 1e-4


@pytest.mark.parametrize("wrap", WRAPS)
def test_derivatives(wrap):
    """Chosen and joined elements have derivatives; rows that were not chosen have none."""

    def loss(p):
        both = pnp.concatenate([p, p[1:] * 2])
        return (p[0] ** 2).sum() + both[[2, 2, 5]].sum() + pnp.max(p)

    got = WRAPS[wrap](plait.grad(loss))(pile())
    want = [2 * XS[0], 0 * XS[1], 0 * XS[2] + 4, 0 * XS[3]]
    greatest = max(x.max(initial=-9) for x in XS)
    same(got, [w + (x == greatest) for w, x in zip(want, XS)])


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1])
def test_powers_by_an_integer_are_products(exponent):
    f = plait.jit(plait.grad(lambda p: (p**exponent).sum()))
    assert "core.pow" not in str(f.trace(pile()).program)
    same(f(pile()), of_each(lambda x: exponent * x ** (exponent - 1.0)))


@pytest.mark.wide
def test_several_axes_and_piles_of_piles():
    shapes = ((2, 3), (40, 1), (0, 2))
    xs = [np.arange(a * b * 1.0).reshape(a, b) for a, b in shapes]
    two = Pile.from_list(xs, axis=(0, 1))
    for wrap in WRAPS.values():
        same(wrap(lambda p: p[[1, 0]] + 1)(two), [xs[1] + 1, xs[0] + 1])
        same(wrap(lambda p: pnp.concatenate([p, p]))(two), xs + xs)
        same(wrap(lambda p: p.sum(axis=1))(two), [x.sum(0) for x in xs])
        same(wrap(lambda p: p.sum(axis=pile_axis))(two), [x.sum() for x in xs])
    texts = Pile.from_list([Pile.from_list([[1.0, 2.0], [3.0]]), Pile.from_list([[4.0]])])
    for wrap in WRAPS.values():
        turned = wrap(lambda t: pnp.exp(t * 2)[::-1])(texts)
        same(turned[0], [np.exp([8.0])])
        same(turned[1], [np.exp([2.0, 4.0]), np.exp([6.0])])
    trees = Pile.from_list([{"u": np.ones(n), "v": np.ones((n, 2))} for n in (2, 3)])
    assert trees[[1]][0]["v"].shape == (3, 2)


def test_properties():
    p = pile()
    assert len(p) == 4 and p.ndim == 3 and p.dtype == np.float64
    assert p.shape[0] == 4 and p.shape[2] == 2 and str(p.shape[1]) == "n0"
    assert repr(p[:1]).endswith("f64[n0,2])")


REFUSED = {
    "other lengths": (ShapeError, "must be equal", lambda p: p + p[::-1]),
    "trees": (NotAnArrayError, "are trees", lambda p: Pile.from_list([{"a": [1.0]}]) + 1),
    "text": (TypeError, "unsupported operand", lambda p: p + "a"),
    "an order of rows": (NotAnArrayError, "map over it", pnp.sort),
    "elements alone": (AxisError, "whose sizes differ", lambda p: p.sum(axis=0)),
    "an empty example": (AxisError, "example 1", lambda p: p.max(axis=1)),
    "no such element": (SubscriptError, "element 9", operator.itemgetter(9)),
    "other elements": (ShapeError, "is joined", lambda p: pnp.concatenate([p, p[..., 0]])),
    "a matrix of numbers": (ShapeError, "vector of integers", lambda p: p[np.ones((2, 2), int)]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    kind, message, call = REFUSED[name]
    with pytest.raises(kind, match=message):
        call(pile())
