"""Transformations as strangers would write them, from the guides, for the law of nestings.

Those with packages of their own are in `examples`: masks of dependence, structured matrices, named
values.  Here are arrays with a scale, counts of operations, affine bounds, means and variances, and
inverses with the logarithm of their determinant.

Invariant: public names alone, and no rule for an operation with programs.
"""

import numpy as np
from plait_harvest import reap, sow
from plait_sparsity import sparsity
from plait_structured import Diagonal, LowRank, structured

import plait
import plait.numpy as pnp
from plait import ext, lax
from plait.ext.ops import elementwise as el
from plait.ext.ops.contraction import dot_general
from plait.ext.ops.control_flow import cond, scan, while_
from plait.ext.ops.reduction import reduce_sum
from plait_autodiff.ext import ZERO, Unknown, inverse_rules

KEPT = frozenset(("derivative", "mapping"))

# ---- arrays with one scale each -------------------------------------------------------------

scaled_rules = ext.RuleTable(
    "strangers_scaled", signature="(xs, scales, **params)", doc="(x, scale), or NotImplemented",
    default=lambda prim, xs, scales, **params: NotImplemented,
)  # fmt: skip


class Scaled(ext.Carrier):
    """Carries one number beside each array, which it is to be multiplied by."""

    rules, does, commutes = scaled_rules, "scaled", KEPT

    def part_avals(self, aval, form):
        return aval, ext.as_value(np.float32(1)).aval

    def part_axes(self, aval, form):
        return tuple(range(aval.ndim)), (None,) * aval.ndim

    def coerce(self, aval, parts, f, g):
        return parts[0], ext.as_value(np.float32(1))

    def whole(self, aval):
        return "scaled"

    def shown(self, x):
        form, parts = self.split(x)
        return parts[0] if form is None else parts[0] * parts[1].astype(x.aval.dtype)

    def run(self, prim, rule, args, params):
        out = NotImplemented
        if all(a.aval.inexact for a in args):
            parts = [self.to_form(a, "scaled") for a in args]
            out = rule([p[0] for p in parts], [p[1] for p in parts], **params)
        if out is NotImplemented:
            return prim.bind(*map(self.shown, args), **params)
        return self.lift(out[0].aval, "scaled", tuple(map(ext.as_value, out)))


def alike(prim, xs, scales, **params):
    """Bring operands to the greatest scale."""
    top = scales[0]
    for s in scales[1:]:
        top = pnp.maximum(top, s)
    xs = [x * (s / top).astype(x.dtype) for x, s in zip(xs, scales)] if len(xs) > 1 else xs
    return prim.bind(*xs, **params), top


scaled_rules.rule(ext.Structural)(alike)
for _p in (el.add, el.sub, el.neg, reduce_sum):
    scaled_rules.rule(_p)(lambda xs, s, _p=_p, **params: alike(_p, xs, s, **params))
for _p in (el.mul, dot_general):
    scaled_rules.rule(_p)(lambda xs, s, _p=_p, **params: (_p.bind(*xs, **params), s[0] * s[1]))
scaled_rules.rule(el.div)(lambda xs, s: (el.div.bind(*xs), s[0] / s[1]))


def scaled(f):
    """`f` of an array that is kept divided by eight, with a scale of eight."""

    def of(x):
        x = ext.as_value(x)
        with ext.opened(Scaled(ext.current(), of=f)) as carrier:
            parts = (x / 8.0, ext.as_value(np.float32(8)))
            out = ext.as_value(f(carrier.lift(x.aval, "scaled", parts)))
            return ext.materialise_at_ground(carrier.shown(out))

    return of


# ---- counts of operations -------------------------------------------------------------------


class Flops(ext.observers.Observer):
    """Counts operations on floats, but choices."""

    does, folds = "flops", True

    def nothing(self):
        return pnp.float32(0)

    def join(self, found, more):
        return found + more

    def stacked(self, found, count):
        return found.sum()

    def looks_at(self, prim, params):
        return ext.Elementwise in prim.traits and prim is not el.select

    def see(self, prim, args, params):
        y = prim.bind(*args, **params)
        if y.aval.inexact:
            self.found = self.found + pnp.ones(y.shape).sum()
        return y


def flops(f):
    """(the result of `f`, the number of operations on elements)."""

    def of(x):
        with ext.opened(Flops(of=f)) as counter:
            out = f(x)
        return out, counter.found

    return of


# ---- affine bounds --------------------------------------------------------------------------

affine_rules = ext.RuleTable(
    "strangers_affine",
    signature="(carrier, bounds, plain, **params)",
    doc="slopes and constant of the lower bound, then of the upper one",
)


class Affine(ext.Carrier):
    """Carries two affine functions of the argument, which bound each value on a box."""

    rules, does, fields = affine_rules, "affine", ("count",)
    commutes, loses = frozenset(("mapping",)), frozenset(("derivative",))

    def part_avals(self, aval, form):
        slopes = aval.with_shape((*aval.shape, self.count))
        return slopes, aval, slopes, aval

    def coerce(self, aval, parts, f, g):
        zero = pnp.zeros((*aval.shape, self.count), aval.dtype)
        return zero, parts[0], zero, parts[0]

    def whole(self, aval):
        return "affine"

    def ends(self, parts):
        """Return the least and the greatest value on the box."""
        s, a, t, b = parts
        low, high = self.ambient
        least = (pnp.maximum(s, 0) * low + pnp.minimum(s, 0) * high).sum(-1)
        return a + least, b + (pnp.maximum(t, 0) * high + pnp.minimum(t, 0) * low).sum(-1)

    def shown(self, x):
        return sum(self.ends(self.split(x)[1])) / 2

    def run(self, prim, rule, args, params):
        bounds = [self.to_form(a, "affine") for a in args]
        plain = [self.split(a)[1][0] if self.form_of(a) is None else None for a in args]
        parts = tuple(map(ext.as_value, rule(self, bounds, plain, **params)))
        return self.lift(parts[1].aval, "affine", parts)


def times(bounds, k):
    """Bounds of a product with numbers."""
    s, a, t, b = bounds
    up, down = pnp.maximum(k, 0), pnp.minimum(k, 0)
    u, d = up[..., None], down[..., None]
    return s * u + t * d, a * up + b * down, t * u + s * d, b * up + a * down


@affine_rules.rule(el.add)
def _(carrier, bounds, plain):
    return [x + y for x, y in zip(*bounds)]


@affine_rules.rule(el.mul)
def _(carrier, bounds, plain):
    for i in (0, 1):
        if plain[i] is not None:
            return times(bounds[1 - i], plain[i])
    ends = [x * y for x in carrier.ends(bounds[0]) for y in carrier.ends(bounds[1])]
    least, most = ends[0], ends[0]
    for e in ends[1:]:
        least, most = pnp.minimum(least, e), pnp.maximum(most, e)
    zero = pnp.zeros_like(bounds[0][0])
    return zero, least, zero, most


@affine_rules.rule(el.neg)
def _(carrier, bounds, plain):
    ((s, a, t, b),) = bounds
    return -t, -b, -s, -a


@affine_rules.rule(el.sub)
def _(carrier, bounds, plain):
    (s, a, t, b), (p, c, q, d) = bounds
    return s - q, a - d, t - p, b - c


@affine_rules.rule(reduce_sum)
def _(carrier, bounds, plain, axes):
    return [x.sum(axes) for x in bounds[0]]


@affine_rules.rule(ext.Structural)
def _(prim, carrier, bounds, plain, **params):
    move = lambda *xs: prim.bind(*xs, **params)  # noqa: E731
    wide = plait.vmap(move, -1, -1)
    return [(wide, move)[k % 2](*[b[k] for b in bounds]) for k in range(4)]


@affine_rules.rule(el.select)
def _(carrier, bounds, plain, **params):
    """A choice by numbers that are known: of values, so of their bounds."""
    if plain[0] is None:
        raise ext.PlaitError("affine: a choice by a value with bounds", fix="choose by a number")
    wide = plait.vmap(lambda *xs: el.select.bind(plain[0], *xs, **params), -1, -1)
    move = lambda *xs: el.select.bind(plain[0], *xs, **params)  # noqa: E731
    return [(wide, move)[k % 2](*[b[k] for b in bounds[1:]]) for k in range(4)]


@affine_rules.rule(el.tanh)
def _(carrier, bounds, plain, **params):
    """Two parallel lines, as steep as the function is at least between the ends."""
    low, high = carrier.ends(bounds[0])
    least, most = pnp.tanh(low), pnp.tanh(high)
    k = pnp.minimum(1 - least * least, 1 - most * most)
    s, a, t, b = times(bounds[0], k)
    return s, a + least - k * low, t, b + most - k * high


def affine(f):
    """Affine bounds of `f` around an argument, and the ends of what they allow."""

    def of(x):
        x = ext.as_value(x)
        eye, zero = pnp.eye(x.shape[0], dtype=x.dtype), pnp.zeros_like(x)
        box = (x - 0.1, x + 0.1)
        with ext.opened(Affine(ext.current(), x.shape[0], ambient=box, of=f)) as carrier:
            out = ext.as_value(f(carrier.lift(x.aval, "affine", (eye, zero, eye, zero))))
            parts = carrier.to_form(out, "affine")
            return tuple(map(ext.materialise_at_ground, (*parts, *carrier.ends(parts))))

    return of


# ---- means and variances --------------------------------------------------------------------


def by_derivative(prim, jvp, means, variances, **params):
    """To first order, of independent operands."""
    total = out = None
    for i, v in enumerate(variances):
        ts = [pnp.ones_like(m) if i == j else ZERO for j, m in enumerate(means)]
        out, t = jvp(means, ts, **params)
        if t is not ZERO:
            total = t * t * v if total is None else total + t * t * v
    return out, pnp.zeros_like(out) if total is None else total


moments_rules = ext.RuleTable(
    "strangers_moments", signature="(means, variances, **params)", doc="(mean, variance)",
    fallback="jvp", default=by_derivative,
)  # fmt: skip


class Moments(ext.Carrier):
    """Carries the mean and the variance of each element."""

    rules, does = moments_rules, "moments"
    commutes, loses = frozenset(("mapping",)), frozenset(("derivative",))

    def part_avals(self, aval, form):
        return aval, aval

    def coerce(self, aval, parts, f, g):
        return parts[0], pnp.zeros_like(parts[0])

    def whole(self, aval):
        return "moments"

    def run(self, prim, rule, args, params):
        carried = any(self.form_of(a) and a.aval.inexact for a in args)
        if not carried or ext.Discrete in prim.traits:
            return prim.bind(*[self.split(a)[1][0] for a in args], **params)
        parts = [self.to_form(a, "moments") for a in args]
        mean, variance = rule([p[0] for p in parts], [p[1] for p in parts], **params)
        return self.lift(mean.aval, "moments", (mean, variance))


@moments_rules.rule(ext.Structural)
def _(prim, means, variances, **params):
    return prim.bind(*means, **params), prim.bind(*variances, **params)


@moments_rules.rule(reduce_sum)
def _(means, variances, axes):
    return means[0].sum(axes), variances[0].sum(axes)


def moments(f):
    """(means, variances) of `f`, of an argument whose elements have the variance 0.01."""

    def of(x):
        x = ext.as_value(x)
        with ext.opened(Moments(ext.current(), of=f)) as carrier:
            out = ext.as_value(f(carrier.lift(x.aval, "moments", (x, pnp.full_like(x, 0.01)))))
        return tuple(map(ext.materialise_at_ground, carrier.to_form(out, "moments")))

    return of


# ---- inverses with the logarithm of their determinant ---------------------------------------


def undo(program, known, results):
    """Return the inputs, some of which are known, from all results; and log |d inputs / d results|
    of what was undone."""
    env = {**dict(program.consts), **{v: x for v, x in zip(program.inputs, known) if x is not None}}
    read = lambda a: env.get(a) if isinstance(a, ext.ir.Var) else a  # noqa: E731
    for e in program.eqns:
        xs = [read(a) for a in e.inputs]
        if all(x is not None for x in xs):
            outs = e.prim.bind(*xs, **e.params)
            env.update(zip(e.outputs, outs if e.prim.many else [outs]))
    env.update((v, y) for v, y in zip(program.outputs, results) if isinstance(v, ext.ir.Var))
    total = pnp.float32(0)
    for e in reversed(program.eqns):
        xs, ys = [read(a) for a in e.inputs], [read(v) for v in e.outputs]
        if any(x is None for x in xs):
            found, more = undone(e, xs, ys)
            env.update((a, x) for a, x in zip(e.inputs, found) if isinstance(a, ext.ir.Var))
            total = total + more
    return [env[v] for v in program.inputs], total


def undone(e, xs, ys):
    """Return the operands of an equation, and the logarithm that it adds."""
    programs = ext.programs_in(e.params)
    if e.prim is cond and xs[0] is not None:
        sides = [lambda ks, ys, p=p: undo(p, filled(xs[1:], ks), ys) for p in programs]
        found, total = lax.switch(xs[0], sides, [x for x in xs[1:] if x is not None], ys)
        return [xs[0], *found], total
    if e.prim is scan and e.params["carry"] == len(ys):
        return undone_scan(xs, ys, **e.params)
    if len(programs) == 1 and len(programs[0].inputs) == len(xs) and e.prim not in (while_, scan):
        return undo(programs[0], xs, ys)
    rule = inverse_rules.find(e.prim)
    if rule is None or programs:
        raise inverse_rules.missing(e.prim, e.where)
    given = [Unknown(a.aval) if x is None else x for a, x in zip(e.inputs, xs)]
    found = rule(ys[0], *given, **e.params)
    found = list(found) if isinstance(found, list | tuple) else [found]
    whole = [x if x is not None else y for x, y in zip(xs, found)]
    if any(x is None for x in whole):
        raise ext.PlaitError(f"inverse: {e.prim} has two unknown operands", fix="use each once")
    if ext.Elementwise not in e.prim.traits:
        return whole, pnp.float32(0)
    ones = [pnp.ones_like(w) if x is None else pnp.zeros_like(w) for x, w in zip(xs, whole)]
    slope = plait.jvp(lambda *a: e.prim.bind(*a, **e.params), tuple(whole), tuple(ones))[1]
    return whole, -pnp.log(pnp.abs(slope)).sum()


def filled(xs, known):
    """`xs` with those that are known taken from a list."""
    found = iter(known)
    return [None if x is None else next(found) for x in xs]


def undone_scan(xs, ys, body, consts, carry, length, reverse, **how):
    """Undo a scan whose rows and constants are known, from its last turn to its first."""
    front, rows = xs[:consts], xs[consts + carry :]
    if any(x is None for x in (*front, *rows)):
        raise ext.PlaitError("inverse: a loop reads an unknown value", fix="carry it")

    def turn(state, row):
        inputs, more = undo(body, [*front, *[None] * carry, *row], state[0])
        return (inputs[consts : consts + carry], state[1] + more), None

    last = ([*ys], pnp.float32(0))
    (found, total), _ = lax.scan(turn, last, rows, length, reverse=not reverse)
    return [*front, *found, *rows], total


def inverted(f):
    """The inverse of `f` at a value, and the logarithm of its determinant."""

    def of(y):
        y = ext.as_value(y)
        program, captured = ext.stage(lambda x: [ext.as_value(f(x))], [y.aval])
        found, total = undo(program, [*captured, None], [y * 0.3])
        return found[-1], total

    return of


# ---- what is nested -------------------------------------------------------------------------


def named(f):
    """`f`, and the sum of all that it names."""

    def of(x):
        out, found = reap(f)(x)
        return out, sum([v.sum() for v in found.values()], start=pnp.float32(0))

    return of


def of_diagonal(f):
    """`f` of a vector that a diagonal matrix gives."""
    return lambda x: structured(lambda m: f(m @ pnp.ones(x.shape)))(Diagonal(x))


def of_low_rank(f):
    """`f` of a vector that a matrix of a low-rank update gives."""

    def of(x):
        ones = pnp.ones_like(x)
        matrix = LowRank(pnp.outer(x, x), pnp.stack([x, x * 2], 1), pnp.stack([ones, x]))
        return structured(lambda m, x: f(m @ x * 0.1))(matrix, x)

    return of


def masked(f):
    """`f`, and its mask as numbers."""
    return lambda x: plait.tree.map(lambda y: y.astype(pnp.float32), sparsity(f)(x))


def body(x):
    return pnp.tanh(x) * 2.0 + x


class Names:
    """Names of sown values: one in a nested function, and new ones in a plain one, which calls it
    more than once."""

    plain, count = False, 0

    @classmethod
    def sowing(cls, x):
        cls.count += cls.plain
        return sow(pnp.tanh(x), f"h{cls.count}" if cls.plain else "h") * 2.0 + x


TRANSFORMATIONS = {
    "sparsity": (masked, body),
    "diagonal": (of_diagonal, body),
    "low rank": (of_low_rank, body),
    "harvest": (named, Names.sowing),
    "scaled": (scaled, body),
    "flops": (flops, body),
    "affine": (affine, body),
    "moments": (moments, body),
    "inverse": (inverted, lambda x: pnp.sinh(x) * 2.0 + 1.0),
}
REFUSED = {
    "harvest": {"while", "pile"},
    "inverse": {"grad", "while", "shard_map", "pile", "rows"},
}
"""Operations inside that a transformation may refuse: a loop of unknown length has no row for each
turn, examples of several sizes have no stack, and these have no inverse here."""
