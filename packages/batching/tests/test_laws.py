"""The law of the batching table: it holds for what is right, and finds what is wrong."""

import numpy as np
import pytest

from plait.ext.ir import Primitive
from plait.ext.ops import elementwise as el
from plait.ext.ops import shape
from plait.ext.rules import lower_rules
from plait.ext.types import Aval
from plait.testing import Inapplicable
from plait_batching.ext import batching_rules
from plait_batching.laws import batching_law

X = np.float32([[0.5, -0.25, 0.75], [0.3, 0.9, -0.65]])
Y = np.float32([[1.5, 2, 0.5], [0.25, -3, 1]])

CASES = {
    "sin": (el.sin, (X,), {}),
    "mul": (el.mul, (X, Y), {}),
    "scalars": (el.mul, (np.float32(2), np.float32(3)), {}),
    "integers": (el.and_, (np.int32([1, 2, 3]), np.int32([3, 5, 1])), {}),
    "select": (el.select, (X > 0, X, Y), {}),
    "transpose": (shape.transpose_, (X,), {"perm": (1, 0)}),
    "reshape": (shape.reshape_, (X,), {"shape": (3, 2)}),
    "slice": (shape.slice_, (X,), {"starts": (0, 1), "limits": (2, 3), "strides": (1, 1)}),
    "pad": (shape.pad_, (X, np.float32(2)),
            {"low": (1, -1), "high": (0, 2), "interior": (1, 0)}),
    "concatenate": (shape.concatenate_, (X, Y), {"axis": 1}),
}  # fmt: skip


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", CASES)
def test_mapping_is_a_stack_of_singles(name):
    assert batching_law(*CASES[name]) >= 10


def test_an_operation_without_operands():
    with pytest.raises(Inapplicable, match="no operand"):
        batching_law(shape.iota_, (), {"shape": (3,), "axis": 0, "dtype": np.dtype(np.int32)})


def flipped(name, rule):
    """Reversal of axis 0, with a rule under judgement."""
    p = Primitive(f"testing.{name}", lambda x: x)
    lower_rules.rule(p)(
        lambda e, xs, ins, outs: lower_rules[shape.rev](e, xs, ins, outs, axes=(0,))
    )
    batching_rules.rule(p)(rule)
    return p


def test_a_right_rule():
    p = flipped("flip", lambda b, xs, ds: (shape.rev.bind(xs[0], axes=(int(ds[0] == 0),)), ds[0]))
    assert batching_law(p, [X], {}) >= 10


@pytest.mark.parametrize(
    ("name", "rule", "text"),
    [
        ("elements", lambda b, xs, ds: (shape.rev.bind(xs[0], axes=(0,)), ds[0]), "vmap over axes"),
        ("front", lambda b, xs, ds: (shape.rev.bind(xs[0], axes=(1,)), 0), "axis 0 of"),
        ("all", lambda b, xs, ds: (shape.rev.bind(xs[0], axes=(0, 1)), ds[0]), "vmap over axes"),
    ],
)
def test_wrong_rules_are_found(name, rule, text):
    with pytest.raises((AssertionError, ValueError), match=text):
        batching_law(flipped("flip_" + name, rule), [X], {})


def test_a_rule_that_forgets_where_the_axis_of_another_operand_is():
    p = Primitive("testing.product", lambda x, y: x)
    lower_rules.rule(p)(lambda e, xs, ins, outs: e.op("stablehlo.multiply", xs, *outs))

    @batching_rules.rule(p)
    def _(batch, xs, dims):
        if None in dims:
            return el.mul(*xs), next(d for d in dims if d is not None)
        return p.bind(*xs), dims[0]

    square = np.arange(9, dtype=np.float32).reshape(3, 3)
    with pytest.raises(AssertionError, match="vmap over axes"):
        batching_law(p, [square, square + 1], {})


def test_promised_orders_are_kept():
    """Indices that are said to be sorted are the same in every element."""
    seen = []
    p = Primitive("testing.places", lambda x, *, indices_are_sorted: x)
    lower_rules.rule(p)(lambda e, xs, ins, outs, indices_are_sorted: xs[0])

    @batching_rules.rule(p)
    def _(batch, xs, dims, **params):
        if dims[0] == 0 and not hasattr(xs[0], "by"):
            seen.append(np.asarray(xs[0]))
        return p.bind(*xs, **params), dims[0]

    batching_law(p, [np.int32([0, 1, 2])], {"indices_are_sorted": True})
    assert seen and all((x == x[0]).all() for x in seen if len(x))
    seen.clear()
    batching_law(p, [np.int32([0, 1, 2])], {"indices_are_sorted": False})
    assert any((x != x[0]).any() for x in seen if len(x))


def test_wrong_types_of_nothing_are_found():
    p = Primitive("testing.narrow", lambda x: x)
    lower_rules.rule(p)(lambda e, xs, ins, outs: xs[0])

    @batching_rules.rule(p)
    def _(batch, xs, dims):
        if batch.size == 0:
            return shape.convert_.bind(xs[0], dtype=np.dtype(np.float64), weak=False), dims[0]
        return xs[0], dims[0]

    want = Aval((0, 2, 3), np.float32)
    with pytest.raises(
        (AssertionError, TypeError), match=f"(not {want!r}|f64)".replace("[", r"\[")
    ):
        batching_law(p, [X], {})
