"""A stranger's primitive may name its parameters as it likes.

Rules that are found by a trait are called with the parameters of primitives that their authors did
not know.  A parameter named like an argument of such a rule, or of a function that hands
parameters on, met "got multiple values for argument".

Invariant: the names are read from the sources, so that a new one is judged, too.
"""

import ast
from pathlib import Path

import numpy as np
import pytest

from plait import ext
from plait.testing import conformance
from plait_autodiff.ext import jvp_rules

ROOT = Path(__file__).parents[2]
SAMPLE = np.linspace(-1, 1, 6, dtype=np.float32)


def functions_with_parameters():
    """Each function of packages and examples that takes `**params`, with its place."""
    for file in sorted(
        [*ROOT.glob("packages/*/src/**/*.py"), *ROOT.glob("examples/*/src/**/*.py")]
    ):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.Lambda) and node.args.kwarg is not None:
                if node.args.kwarg.arg == "params":
                    yield f"{file.relative_to(ROOT)}:{node.lineno}", node.args


NAMES = sorted(
    {a.arg for _, args in functions_with_parameters() for a in (*args.posonlyargs, *args.args)}
    | {"self", "cls", "name", "params", "f", "fun", "x"}
)


def test_a_function_that_takes_parameters_takes_nothing_else_by_name():
    """`def rule(x, /, **params)`: else a parameter named `x` is taken for the operand."""
    loose = [place for place, args in functions_with_parameters() if args.args]
    assert not loose, "write `/` after the last positional argument: " + ", ".join(loose)


def squashing(name: str) -> ext.Primitive:
    """Return the primitive `tanh(x) * NAME`, with nothing but a lowering and a derivative."""
    infer = eval(f"lambda operand_, /, *, {name}: operand_")
    prim = ext.Primitive(f"named.squash_{name}", infer, traits=(ext.Elementwise,))

    @ext.lower_rules.rule(prim)
    def _(e, xs, ins, outs, /, **params):
        (x,), (out,) = xs, outs
        by = e.constant(params[name], out)
        return e.op("stablehlo.multiply", [e.op("stablehlo.tanh", [x], out), by], out)

    @jvp_rules.rule(prim)
    def _(xs, ts, /, **params):
        y = prim.bind(*xs, **params)
        return y, ts[0] * (params[name] - y * y / params[name])

    return prim


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
def test_every_law_holds_for_a_parameter_of_any_name(name):
    report = conformance(
        squashing(name), [SAMPLE], lambda x, /, **params: np.tanh(x) * params[name], {name: 2.0}
    )
    assert report.checks["law piles"]
