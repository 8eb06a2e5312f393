"""What the table of padding says is harmless, for every primitive that it speaks of.

Invariant: the other side is the primitive on what is not padded.
"""

from itertools import islice

import numpy as np
import pytest

from plait import testing
from plait._core.primitive import registered
from plait_batching.ext import padding_rules
from plait_batching.laws import padding_law

KNOWN = testing.references.all_references()
NAMES = [n for n in KNOWN if padding_law.applies(registered(n))]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", NAMES)
def test_padding(name):
    """In the first samples of it that cross an axis."""
    prim, judged = registered(name), 0
    for sample in islice(KNOWN[name].samples(prim), 8):
        try:
            judged += padding_law(prim, [np.asarray(x) for x in sample.args], sample.params)
        except testing.Inapplicable:
            continue
    assert judged


def test_a_wrong_neutral_element_is_found(monkeypatch):
    rules = type("Table", (), {"find": lambda self, prim: lambda avals, axes: [{0: 1.0}]})()
    monkeypatch.setattr("plait_batching.laws.padding_rules", rules)
    with pytest.raises(AssertionError, match="with padding"):
        padding_law(registered("core.reduce_sum"), [np.float32([1, 2])], {"axes": (0,)})


def test_the_table_speaks_of_what_reads_across():
    assert len(NAMES) >= 14
    assert padding_rules.find(registered("core.sin")) is None
