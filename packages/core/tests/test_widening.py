"""Forms that grow from turn to turn of a loop: they settle, are widened, or are refused.

The carrier holds a number as the terms of a sum that is not added up yet.

Invariant: whatever the forms, the terms add up to what the program computes.
"""

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait.ext.ops.elementwise import add

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


# ---- sums that are not added up yet ----------------------------------------------------------


class Sum(ext.Carrier):
    """A number as the terms of a sum; the form is how many there are, at most `most`."""

    rules = ext.RuleTable("core_widening_sum", doc="rule(terms, **params) -> terms")
    does = "sum"
    fields = ("most",)

    def part_avals(self, aval, form):
        return (aval,) * form

    def join(self, aval, f, g):
        return max(f, g)

    def coerce(self, aval, parts, f, g):
        return parts + (ext.Literal(0.0, aval),) * (g - len(parts))

    def run(self, prim, rule, args, params):
        terms = rule([self.split(a)[1] for a in args])
        if self.most is not None and len(terms) > self.most:
            rest = terms[self.most - 1]
            for t in terms[self.most :]:
                rest = rest + t
            terms = (*terms[: self.most - 1], rest)
        return self.lift(args[0].aval, len(terms), tuple(terms))


class Widened(Sum):
    def widen(self, aval, f, g):
        return self.most


@Sum.rules.rule(add)
def _(terms):
    return sum(terms, ())


def terms(kind, f, x, most):
    carrier = kind(ext.current(), most)
    with ext.opened(carrier):
        out = f(carrier.lift(x.aval, 1, (x,)))
        return carrier.split(out)


def counted(x, n=3):
    return lax.scan(lambda c, _: (c + x, None), x, None, length=n)[0]


def test_form_that_grows_for_ever():
    """A form that each turn makes greater is an error that names the slot, not a loop."""
    with pytest.raises(plait.PlaitError, match=r"does not settle .*: .*slot 1: \d+") as caught:
        terms(Sum, counted, f32(1), None)
    assert "widen" in caught.value.fix
    with pytest.raises(plait.PlaitError, match="does not settle .*core.while"):
        terms(
            Sum,
            lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + x), (0, x))[1],
            f32(1),
            None,
        )


@pytest.mark.parametrize("kind", [Sum, Widened])
@pytest.mark.parametrize("most", [1, 2, 8])
def test_form_that_settles(kind, most):
    """It settles where it can grow no more, by itself or widened, and the value is right."""
    form, parts = terms(kind, counted, f32(1.5), most)
    assert form == len(parts) <= most
    assert sum(p.item() for p in parts) == 6
    form, parts = terms(kind, plait.jit(counted), f32(1.5), most)
    assert sum(p.item() for p in parts) == 6


def test_widening_saves_rounds():
    """Without `widen` a hundred forms are tried; with it, a few."""
    tried = []

    class Slow(Sum):
        def join(self, aval, f, g):
            tried.append((f, g))
            return max(f, g)

    class Fast(Slow):
        def widen(self, aval, f, g):
            return self.most

    form, parts = terms(Fast, counted, f32(1.0), 100)
    assert form == 100 and sum(p.item() for p in parts) == 4
    assert len(tried) < 20


def test_forms_of_branches():
    """Branches meet in the greater form; what is plain is brought to it."""

    def g(x):
        return lax.switch(1, [lambda x: x, lambda x: x + x + x, lambda x: 7.0], x)

    form, parts = terms(Sum, g, f32(2), None)
    assert form == 3 and sum(p.item() for p in parts) == 6


@pytest.mark.parametrize("most", [2, 4, 5, 6, 8, 12])
def test_when_forms_are_widened(most):
    """Four rounds may settle it by themselves: only what grows in the fifth is widened, and what
    settles in time keeps its least form."""
    asked = []

    class Late(Sum):
        def widen(self, aval, f, g):
            asked.append((f, g))
            return max(g, 20)

    def grown(x):
        """A carry that has one more term each turn, `most` of them at most."""
        return lax.scan(lambda c, _: (c + x, None), x, None, length=3)[0]

    form, parts = terms(Late, grown, f32(1.5), most)
    assert sum(p.item() for p in parts) == 6
    assert asked == ([] if most <= 5 else [(5, 6)])
    assert form == (most if most <= 5 else 20)


def test_a_form_that_passes_through_many_carries():
    """A form needs a turn for each carry that it passes through; that is not going on for ever."""

    class Wide(Sum):
        pass

    n = 40

    def f(x):
        start = [f32(0.0)] * n
        step = lambda c, _: ([x, *c[:-1]], None)  # noqa: E731
        return lax.scan(step, start, None, length=n)[0][-1]

    form, parts = terms(Wide, f, f32(2.5), None)
    assert form == 1 and parts[0].item() == 2.5


def test_two_forms_that_grow_are_named():
    """The message names every slot with its form, and plain ones are left out."""
    step = lambda x: lambda c, _: ((c[0] + x, c[1]), None)  # noqa: E731
    f = lambda x: lax.scan(step(x), (x, 1.0), None, length=2)[0][0]  # noqa: E731
    with pytest.raises(plait.PlaitError, match="does not settle") as caught:
        terms(Sum, f, f32(1), None)
    assert str(caught.value).count("slot ") == 2 and "None" not in str(caught.value)
