"""Physical units: a function is run on quantities, and what does not fit is an error.

    distance, time = Quantity(6.0, metre), Quantity(2.0, second)
    with_units(lambda s, t: s / t)(distance, time)   # Quantity(3.0, m s^-1)

A plain number has no unit of its own: it scales what it multiplies, and takes the unit of what it
is added to.  Units are known from types alone, so they cost nothing where a program runs.

Invariant: the parts of a lifted value are its number in base units; its form is its unit.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from plait import ext, tree
from plait.ext.ops import collective, contraction, convolution, cumulative, indexing, shape, sorting
from plait.ext.ops import elementwise as el
from plait.ext.ops import reduction as red

ext.errors.hide(os.path.dirname(__file__))  # errors name the line of the caller


class Unit(NamedTuple):
    """A product of powers of base units: `metre * second**-2`, `kilogram ** Fraction(1, 2)`."""

    powers: tuple[tuple[str, Fraction], ...] = ()

    def __mul__(self, other: Unit) -> Unit:  # type: ignore[override]
        total = dict(self.powers)
        for name, p in other.powers:
            total[name] = total.get(name, Fraction(0)) + p
        return Unit(tuple(sorted((n, p) for n, p in total.items() if p)))

    def __truediv__(self, other: Unit) -> Unit:
        return self * other**-1

    def __pow__(self, power: int | Fraction) -> Unit:
        return Unit(tuple((n, p * Fraction(power)) for n, p in self.powers if power))

    def __repr__(self) -> str:
        return " ".join(n if p == 1 else f"{n}^{p}" for n, p in self.powers) or "no unit"


def base(name: str) -> Unit:
    """A new base unit: `mole = base("mol")`."""
    return Unit(((name, Fraction(1)),))


ONE, metre, second, kilogram = Unit(), base("m"), base("s"), base("kg")


@tree.register_dataclass
@dataclass
class Quantity:
    """A number, or an array, in a unit; a tree, so it goes through jit, vmap and loops."""

    value: Any
    unit: Unit = tree.static(default=ONE)


units_rules = ext.RuleTable(
    "units",
    doc="rule(*units, **params) -> unit of the result (a list of them if there are many); None is "
    "the unit of a plain number, which takes that of what it is added to.",
)


class Units(ext.Carrier):
    """Carries the unit of every value."""

    rules, does = units_rules, "with_units"
    commutes = frozenset(("derivative", "mapping"))  # they compute the numbers, which are the parts

    def whole(self, aval):
        return ONE

    def collect(self, aval, parts, f, g):  # a cotangent is a number, whatever its unit
        return parts

    def spread(self, aval, parts, g):
        return parts

    def part_avals(self, aval, form):
        return (aval,)

    def coerce(self, aval, parts, f, g):  # only plain numbers: `join` refuses all others
        return parts

    def join(self, aval, f, g):
        return same("one place of a branch or a loop", f, g)

    def run(self, prim, rule, args, params):
        unit = rule(*[self.form_of(a) for a in args], **params)
        out = prim.bind(*[self.split(a)[1][0] for a in args], **params)
        if prim.many:
            return [self.lift(o.aval, u, (o,)) for o, u in zip(out, unit, strict=True)]
        return self.lift(out.aval, unit, (out,))


def same(what: Any, *units: Unit | None) -> Unit | None:
    """The unit that all have that have one; an error if they differ."""
    found = dict.fromkeys(u for u in units if u is not None)
    if len(found) > 1:
        raise ext.PlaitError(
            f"{what} is given values in different units: {' and '.join(sorted(map(repr, found)))}",
            fix="convert one of them: multiply it by a Quantity, or divide by one",
        )
    return next(iter(found), None)


def pure(what: Any, /, *units: Unit | None, **params: Any) -> Unit | None:
    """No unit, of values without one; an error for others."""
    for u in units:
        if u not in (None, ONE):
            raise ext.PlaitError(
                f"{what} of a value in {u!r} has no unit",
                fix="divide it by a Quantity of that unit first",
            )
    return ONE


@units_rules.rule(ext.Linear, ext.Structural, ext.Indexing)
def _(prim, /, *units, **params):
    """What is linear, or moves elements, has one unit throughout."""
    return list(units) if prim.many else same(prim, *units)


units_rules.rule(ext.Elementwise)(pure)  # of what is left: exp, sin, ...
for _p in (el.abs_, el.clamp, el.maximum, el.minimum, el.relu, el.rem, el.select, el.stop,
           cumulative.cummax_, cumulative.cummin_, collective.pmax_, collective.pmin_,
           red.reduce_max, red.reduce_min, shape.pad_):  # fmt: skip
    units_rules.rule(_p)(lambda *units, _p=_p, **params: same(_p, *units))
for _p in (*el.COMPARISONS, el.is_finite, el.sign, red.argmax_, red.argmin_, sorting.argsort_):
    units_rules.rule(_p)(lambda *units, _p=_p, **params: same(_p, *units) and None)
for _p in (cumulative.cumprod_, indexing.scatter_mul_, red.reduce_prod):
    units_rules.rule(_p)(partial(pure, _p))
for _p in (el.mul, contraction.dot_general, convolution.conv_general):
    units_rules.rule(_p)(lambda x, y, /, **params: (x or ONE) * (y or ONE))
for _p, _n in (el.sqrt, Fraction(1, 2)), (el.rsqrt, Fraction(-1, 2)), (el.cbrt, Fraction(1, 3)):
    units_rules.rule(_p)(lambda unit, _n=_n: unit**_n)
units_rules.rule(sorting.sort_)(lambda *units, **params: list(units))
units_rules.rule(el.div)(lambda x, y: (x or ONE) / (y or ONE))
units_rules.rule(el.integer_pow)(lambda unit, exponent: unit**exponent)


def with_units(f):
    """`f` on quantities: arguments and results are trees whose leaves may be of `Quantity`."""
    is_quantity = lambda x: isinstance(x, Quantity)  # noqa: E731

    def measured(*args):
        given, kind = ext.flatten(args, is_quantity)
        pairs = [(x.value, x.unit) if is_quantity(x) else (x, None) for x in given]
        values = [(ext.as_value(v), unit) for v, unit in pairs]
        with ext.opened(Units(ext.current(), of=f)) as u:
            inner = kind.unflatten([u.lift(v.aval, unit, (v,)) for v, unit in values])
            outs, kind = ext.flatten(f(*inner))
        results = [u.split(ext.as_value(o)) for o in outs]
        said = [(unit, ext.materialise_at_ground(v)) for unit, (v,) in results]
        return kind.unflatten([v if unit is None else Quantity(v, unit) for unit, v in said])

    return measured
