"""Every primitive that has a rule for piles, over examples of several sizes.

Invariant: the other side is the primitive on one example after the other.
"""

from itertools import islice

import numpy as np
import pytest

from plait import testing
from plait._core.primitive import registered
from plait.ext.ir import Primitive
from plait.ext.ops import shape
from plait.ext.rules import Elementwise, lower_rules
from plait_batching.ext import batching_rules, pile_rules
from plait_batching.piles.laws import piles_law

KNOWN = testing.references.all_references()
NAMES = [n for n in KNOWN if piles_law.applies(registered(n))]

ONE_SIZE = {
    "core.all_gather",
    "core.all_to_all",
    "core.axis_index",
    "core.call",
    "core.check",
    "core.composite",
    "core.cond",
    "core.dim",
    "core.foreign",
    "core.iota",
    "core.map_axes",
    "core.platform_index",
    "core.pmax",
    "core.pmin",
    "core.ppermute",
    "core.psum",
    "core.psum_scatter",
    "core.random_bits",
    "core.random_clone",
    "core.random_fold_in",
    "core.random_seed",
    "core.random_split",
    "core.reshape",
    "core.rng_bit_generator",
    "core.scan",
    "core.slice",
    "core.unwrap",
    "core.while",
    "core.wrap",
}
"""Primitives whose samples have parameters, programs or axes for one size, or are not numbers."""


def judged(name, most):
    """Return the number of comparisons of the first samples."""
    prim, count = registered(name), 0
    for sample in islice(KNOWN[name].samples(prim), most):
        try:
            count += piles_law(prim, [np.asarray(x) for x in sample.args], sample.params)
        except testing.Inapplicable:
            continue
    return count


@pytest.mark.sampled(48)
@pytest.mark.parametrize("name", NAMES)
def test_examples_of_several_sizes(name):
    assert judged(name, 2) or name in ONE_SIZE


def test_the_law_speaks_of_what_has_a_rule():
    assert len(NAMES) >= 150 and len(ONE_SIZE) <= 30


def reversal(name, rule, traits=()):
    """Return the reversal of axis 0, with a rule under judgement."""
    p = Primitive(f"testing.{name}", lambda x: x, traits=traits)
    lower_rules.rule(p)(
        lambda e, xs, ins, outs: lower_rules[shape.rev](e, xs, ins, outs, axes=(0,))
    )
    batching_rules.rule(p)(
        lambda b, xs, ds: (shape.rev.bind(xs[0], axes=(int(ds[0] == 0),)), ds[0])
    )
    if rule is not None:
        pile_rules.rule(p)(rule)
    return p


X = np.float32([[0.5, -0.25], [0.3, 0.9], [1.5, 2.0], [0.25, -3.0]])


def test_a_rule_that_reverses_the_rows_of_all_examples_is_found():
    def rule(r, args, out):
        return r.result(out, shape.rev.bind(r.data(args[0], "flat"), axes=(0,)), "flat")

    with pytest.raises(AssertionError, match="over a pile of"):
        piles_law(reversal("of_all", rule), [X], {})


def test_a_trait_that_does_not_hold_is_found():
    with pytest.raises(AssertionError, match="over a pile of"):
        piles_law(reversal("elementwise", None, (Elementwise,)), [X], {})


def test_a_primitive_without_a_rule_is_mapped_over_equal_lengths():
    assert piles_law(reversal("without", None), [X], {}) >= 4
