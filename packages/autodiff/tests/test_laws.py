"""The laws of this package's tables: they hold for what is right, and find what is wrong."""

import numpy as np
import pytest

from plait.ext.errors import PlaitError
from plait.ext.ir import Primitive
from plait.ext.ops import control_flow, shape
from plait.ext.ops import elementwise as el
from plait.ext.rules import Linear, lower_rules
from plait.ext.trace import Wiring, staged
from plait.ext.types import Aval
from plait.ext.values import Literal
from plait.testing import Inapplicable, coverage
from plait_autodiff.ext import ZERO, jvp_rules, recompute_rules, transpose_rules
from plait_autodiff.laws import jvp_law, recompute_law, split_law, transpose_law
from plait_autodiff.taylor.laws import jet_law, laplacian_law

X = np.float64([[0.5, -0.25, 0.75], [0.3, 0.9, -0.65]])
Y = np.float64([[1.5, 2, 0.5], [0.25, -3, 1]])
Z, W = X + 1j * Y, Y - 0.5j * X
F32 = np.dtype(np.float32)

CASES = {
    "sin": (el.sin, (X,), {}),
    "abs": (el.abs_, (X,), {}),
    "abs of complex": (el.abs_, (Z,), {}),
    "mul": (el.mul, (X, Y), {}),
    "mul of complex": (el.mul, (Z, W), {}),
    "mul of float32": (el.mul, (X.astype(F32), Y.astype(F32)), {}),
    "div": (el.div, (X, Y), {}),
    "add": (el.add, (X, Y), {}),
    "sub of complex": (el.sub, (Z, W), {}),
    "conj": (el.conj, (Z,), {}),
    "real": (el.real, (Z,), {}),
    "imag": (el.imag, (Z,), {}),
    "complex": (el.complex_, (X, Y), {}),
    "select": (el.select, (X > 0, X, Y), {}),
    "integer_pow": (el.integer_pow, (X,), {"exponent": 3}),
    "floor": (el.floor, (X,), {}),
    "transpose": (shape.transpose_, (X,), {"perm": (1, 0)}),
    "broadcast": (shape.broadcast_in_dim, (X,), {"shape": (2, 4, 3), "dims": (0, 2)}),
    "slice": (shape.slice_, (X,), {"starts": (0, 1), "limits": (2, 3), "strides": (1, 1)}),
    "pad": (shape.pad_, (X, np.float64(2)),
            {"low": (1, -1), "high": (0, 2), "interior": (1, 0)}),
    "concatenate": (shape.concatenate_, (X, Y), {"axis": 1}),
    "convert": (shape.convert_, (X,), {"dtype": F32, "weak": False}),
}  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_differences(name):
    prim, args, params = CASES[name]
    assert jvp_law(prim, args, params) >= 2


@pytest.mark.parametrize("name", CASES)
def test_series_and_laplacians_are_those_of_values(name):
    prim, args, params = CASES[name]
    assert jet_law(prim, args, params) >= (1 if name == "convert" else 4)  # float32 is rough
    assert laplacian_law(prim, args, params) >= 1


LINEAR = {
    "mul": 4, "mul of complex": 4, "mul of float32": 4, "div": 2, "add": 7, "sub of complex": 7,
    "conj": 2, "real": 2, "imag": 2, "complex": 7, "select": 7, "transpose": 2, "broadcast": 2,
    "slice": 2, "pad": 7, "concatenate": 7, "convert": 2,
}  # fmt: skip


@pytest.mark.parametrize("name", LINEAR)
def test_products_with_transposes(name):
    """In two operands together: one product and two staged results; in one: one and one."""
    assert transpose_law(*CASES[name]) == LINEAR[name]


@pytest.mark.parametrize("name", sorted({*CASES} - {*LINEAR}))
def test_what_is_not_linear(name):
    with pytest.raises(Inapplicable, match="linear in no operand"):
        transpose_law(*CASES[name])


def test_what_has_no_derivative():
    with pytest.raises(Inapplicable, match="no operand has a derivative"):
        jvp_law(el.neg, [np.int32([1, 2])], {})
    with pytest.raises(Inapplicable, match="no result has a derivative"):
        jvp_law(el.lt, [X, Y], {})


def told(name):
    """A lowering: the operation of that name, operand for operand."""
    return lambda e, xs, ins, outs: e.op(f"stablehlo.{name}", xs, *outs)


def made(name, *traits):
    p = Primitive(f"testing.{name}", lambda *xs: xs[0], traits)
    lower_rules.rule(p)(told({1: "sine", 2: "multiply"}[1 + name.startswith("mul")]))
    return p


def test_wrong_derivatives_are_found():
    wrong = made("sin_wrong")
    jvp_rules.rule(wrong)(lambda xs, ts: (wrong.bind(*xs), el.mul.bind(ts[0], el.sin.bind(xs[0]))))
    with pytest.raises(AssertionError, match=r"jvp along operands \(0,\)"):
        jvp_law(wrong, [X], {})


def narrow(factor):
    """A square that takes float32 alone, as a function in C may, and a derivative of it."""

    def rule(x):
        if x.dtype != F32:
            raise PlaitError(f"it takes float32, got {x!r}", fix="convert it")
        return x

    p = Primitive(f"testing.narrow{factor}", rule)
    lower_rules.rule(p)(lambda e, xs, ins, outs: e.op("stablehlo.multiply", [*xs, *xs], outs[0]))
    jvp_rules.rule(p)(lambda xs, ts: (p(*xs), ts[0] * xs[0] * float(factor)))
    return p


def test_operations_of_one_dtype_are_judged_in_it():
    x = X.astype(F32)
    assert jvp_law(narrow(2), [x], {}) >= 2
    with pytest.raises(AssertionError):
        jvp_law(narrow(3), [x], {})
    for law in (jet_law, laplacian_law):
        with pytest.raises(Inapplicable, match="double precision"):
            law(narrow(2), [x], {})


def test_wrong_second_derivatives_are_found():
    """A derivative of the right value, whose own derivative is forgotten."""
    wrong = made("sin_stopped")
    jvp_rules.rule(wrong)(
        lambda xs, ts: (wrong.bind(*xs), el.mul.bind(ts[0], el.stop.bind(el.cos.bind(xs[0]))))
    )
    with pytest.raises(AssertionError, match="derivative 2 along a curve"):
        jet_law(wrong, [X], {})
    with pytest.raises(AssertionError, match="Laplacian"):
        laplacian_law(wrong, [X], {})


def test_what_is_not_smooth_is_not_judged():
    zeros = np.zeros(3)
    for law in (jet_law, laplacian_law):
        with pytest.raises(Inapplicable, match="not smooth"):
            law(el.abs_, [zeros], {})
        with pytest.raises(Inapplicable, match="not finite"):
            law(el.sin, [zeros + np.inf], {})
        with pytest.raises(Inapplicable, match="no operand has a derivative"):
            law(el.neg, [np.int32([1, 2])], {})
        assert law(el.abs_, [np.array([0, 1.0])], {})  # where it is smooth, it is judged


def test_a_rule_that_forgets_constant_operands_is_found():
    """Right if all operands vary, wrong if one alone does."""
    wrong = made("mul_wrong")

    @jvp_rules.rule(wrong)
    def _(xs, ts):
        if ZERO in ts:
            return wrong.bind(*xs), ts[0] if ts[1] is ZERO else ts[1]
        left, right = el.mul.bind(ts[0], xs[1]), el.mul.bind(xs[0], ts[1])
        return wrong.bind(*xs), el.add.bind(left, right)

    with pytest.raises(AssertionError, match=r"jvp along operands \(0,\)"):
        jvp_law(wrong, [X, Y], {})


def test_wrong_transposes_are_found():
    wrong = Primitive("test_laws.twice", lambda x: x, (Linear,))
    lower_rules.rule(wrong)(lambda e, xs, ins, outs: e.op("stablehlo.add", xs * 2, outs[0]))
    transpose_rules.rule(wrong)(lambda ct, x: [ct])
    with pytest.raises(AssertionError, match=r"transpose in operands \(0,\)"):
        transpose_law(wrong, [X], {})


def test_a_linear_primitive_without_transpose_is_found():
    lonely = Primitive("testing.lonely", lambda x: x, (Linear,))
    lower_rules.rule(lonely)(told("negate"))
    with pytest.raises(NotImplementedError, match=r"no 'transpose' rule for .*testing\.lonely"):
        transpose_law(lonely, [X], {})


CELL, ROW = Aval((), np.float32), Aval((3,), np.float32)
STEP = staged(lambda c, x: [el.mul.bind(el.sin.bind(c), x), c], [CELL, CELL], "step")
PAIR = staged(lambda x, y: [el.mul.bind(x, y), el.sin.bind(x)], [ROW, ROW], "pair")
SUM = staged(lambda x, y: [el.add.bind(x, y), Literal(1.0, ROW)], [ROW, ROW], "sum")
XS = np.float32([1, 2, 3]), np.float32([0.5, -1, 2])
HIGHER = {
    "call": (control_flow.call, XS, {"program": PAIR}),
    "cond": (control_flow.cond, (np.int32(1), *XS), {"branches": (PAIR, SUM)}),
    "scan": (control_flow.scan, (np.float32(0.5), XS[0]),
             {"body": STEP, "consts": 0, "carry": 1, "length": 3, "reverse": True, "unroll": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", HIGHER)
def test_operations_with_programs(name):
    prim, args, params = HIGHER[name]
    assert jvp_law(prim, args, params) >= 4
    vary = sum(x.dtype == F32 for x in args)
    assert split_law(prim, args, params) == 2**vary * 2
    assert recompute_law(prim, args, params) == 3 * 2 * 2


def test_wrong_repetitions_are_found():
    wrong = Primitive("testing.again_wrong", lambda *xs, program: program.out_avals, many=True,
                      higher=Wiring())  # fmt: skip
    lower_rules.rule(wrong)(lambda e, xs, ins, outs, program: e.call(program, xs))

    @recompute_rules.rule(wrong)
    def _(twice, prim, args, params):
        outs = twice.parent.apply(prim, args, params)
        twice.pair(outs, [twice.twin(a) for a in args])
        return outs

    with pytest.raises(AssertionError, match="done again, where nothing is kept"):
        recompute_law(wrong, XS, {"program": PAIR})


def test_which_tables_ask_for_what():
    cells = coverage("transpose")
    assert cells["core.sin"] == "not applicable" and cells["core.mul"] == "own"
    assert cells["core.neg"] == "own"
    cells = coverage("split")
    assert cells["core.sin"] == "not applicable" and cells["core.scan"] == "own"
    assert coverage("jvp")["core.scan"] == "wiring"
