"""Interval arithmetic: `bounds(f)(lo, hi)` bounds f on a box.

Invariant: f of anything in [lo, hi] lies in the interval of f, up to rounding.  Control flow, jit,
mapping and derivatives are not mentioned: core carries the transformation through them.
"""

import os

from plait import ext, lax, tree
from plait.ext.ops.contraction import dot_general
from plait.ext.ops.convolution import conv_general
from plait.ext.ops.elementwise import abs_, cos, integer_pow, mul, sin, sub

ext.errors.hide(os.path.dirname(__file__))  # errors name the line of the caller

interval_rules = ext.RuleTable("interval", signature="(lows, highs, **params)", doc="(low, high)")


class Interval(ext.Carrier):
    """Carries the two ends of an interval."""

    rules, does = interval_rules, "interval"
    commutes, loses = frozenset(("mapping",)), frozenset(("derivative",))

    def whole(self, aval):
        return "interval"

    def part_avals(self, aval, form):
        return aval, aval

    def coerce(self, aval, parts, f, g):
        return parts[0], parts[0]

    def shown(self, x):
        """Return the value that `debug.print` prints: both ends."""
        low, high = self.to_form(x, "interval")
        return lax.concatenate([low[None], high[None]], 0)

    def run(self, prim, rule, args, params):
        ends = [self.to_form(a, "interval") for a in args]
        lo, hi = rule([e[0] for e in ends], [e[1] for e in ends], **params)
        if prim.many:
            return [self.lift(a.aval, "interval", (a, b)) for a, b in zip(lo, hi)]
        return self.lift(lo.aval, "interval", (lo, hi))


@interval_rules.rule(ext.Increasing, ext.Structural, ext.Indexing)
def _(prim, lo, hi, /, **params):
    exact = all(a is b or a.aval.inexact for a, b in zip(lo, hi))
    if ext.Indexing in prim.traits and not exact:
        raise ext.PlaitError(f"an index of {prim} is not exact", fix="index by plain integers")
    return prim.bind(*lo, **params), prim.bind(*hi, **params)


@interval_rules.rule(ext.Decreasing)
def _(prim, lo, hi, /, **params):
    return prim.bind(*hi, **params), prim.bind(*lo, **params)


interval_rules.rule(sub)(lambda lo, hi: (sub.bind(lo[0], hi[1]), sub.bind(hi[0], lo[1])))


@interval_rules.rule(mul)
def _(lo, hi):
    a, b, c, d = (mul.bind(x, y) for x in (lo[0], hi[0]) for y in (lo[1], hi[1]))
    return lax.min(lax.min(a, b), lax.min(c, d)), lax.max(lax.max(a, b), lax.max(c, d))


for _p in (dot_general, conv_general):

    @interval_rules.rule(_p)
    def _(lo, hi, prim=_p, /, **params):
        """By midpoint and radius (Rump, "Fast and parallel interval arithmetic", 1999)."""
        m, n = ((a + b) * 0.5 for a, b in zip(lo, hi))
        r, s = hi[0] - m, hi[1] - n
        mid = prim.bind(m, n, **params)
        rad = prim.bind(abs_(m) + r, s, **params) + prim.bind(r, abs_(n), **params)
        return mid - rad, mid + rad


def _even(lo, hi, f):  # f increases on positive numbers
    a, b = f(lo), f(hi)
    return lax.select((lo < 0) & (hi > 0), a * 0, lax.min(a, b)), lax.max(a, b)


interval_rules.rule(abs_)(lambda lo, hi: _even(*lo, *hi, abs_.bind))


@interval_rules.rule(integer_pow)
def _(lo, hi, exponent):
    if exponent < 0:
        raise ext.PlaitError(f"no bounds for x ** {exponent}", fix="write 1 / x ** n where x > 0")
    power = lambda x: integer_pow.bind(x, exponent=exponent)  # noqa: E731
    return _even(*lo, *hi, power) if exponent % 2 == 0 else (power(*lo), power(*hi))


for _p in (sin, cos):

    @interval_rules.rule(_p)
    def _(lo, hi, prim=_p):
        """Within half the width of the value at the midpoint, and within [-1, 1]."""
        mid, half = prim.bind((lo[0] + hi[0]) * 0.5), (hi[0] - lo[0]) * 0.5
        return lax.max(mid - half, -1.0), lax.min(mid + half, 1.0)


def bounds(f):
    """`bounds(f)(lo, hi)`: trees of lower and upper bounds of `f(x)` for lo <= x <= hi."""

    def bounded(lo, hi):
        with ext.opened(Interval(ext.current(), of=f)) as i:

            def lift(low, high):
                low, high = ext.as_value(low), ext.as_value(high)
                return i.lift(low.aval, "interval", (low, high))

            # `tree.map` leaves alone what describes other leaves, as lengths of rows do
            outs, kind = ext.flatten(f(tree.map(lift, lo, hi)))
        parts = [i.to_form(ext.as_value(o), "interval") for o in outs]
        return tuple(kind.unflatten(map(ext.materialise_at_ground, p)) for p in zip(*parts))

    return bounded
