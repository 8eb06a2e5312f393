"""What authors of primitives and of transformations may rely on."""

import numpy as np
import pytest

import plait
from plait import ext

NOTED = ext.Effect("authors.noted", repeatable=True)
X = np.float32([1.0, 2.0])


@ext.primitive("authors.noted", effect=lambda params: NOTED)
def noted(x: ext.Aval) -> ext.Aval:
    """x, and somebody takes note."""
    return x


ext.expand_rules.rule(noted)(lambda x: x)


def test_an_effect_does_not_make_many_results_of_one():
    for f in (
        noted,
        plait.jit(noted),
        lambda x: plait.lax.scan(lambda c, r: (c, noted(r)), 0, x)[1],
    ):
        out = f(plait.numpy.asarray(X))
        assert isinstance(out, plait.Array)
        np.testing.assert_array_equal(out, X)


refusing_rules = ext.RuleTable("refusing", doc="rule(x) -> an error")


class Refusing(ext.Carrier):
    """Refuses everything but addition."""

    rules, does = refusing_rules, "refuse"

    def part_avals(self, aval, form):
        return (aval,)

    def coerce(self, aval, parts, f, g):
        return parts

    def run(self, prim, rule, args, params):
        return rule(*args)


@refusing_rules.rule(ext.Elementwise)
def _(prim, *args):
    raise ext.PlaitError(f"{prim} is refused", fix="leave it out")


def refused(x):
    y = plait.numpy.exp(x)  # the line that the error names
    return y * 2


def test_an_error_inside_a_program_names_the_line_of_the_operation():
    """Not that of the call, and not that of the rule."""
    x = ext.as_value(X)
    with pytest.raises(plait.PlaitError) as e, ext.opened(Refusing(ext.current())) as c:
        plait.jit(refused)(c.lift(x.aval, "any", (x,)))
    assert e.value.where.endswith(f"test_authors.py:{refused.__code__.co_firstlineno + 1}")
