"""Carriers through every operation with programs: each result is that of a loop of numpy's.

Five carriers that no package has: the stack of many values (its form is the axis), a value with a
slope, the two ends of an interval, a value with the names of what it came from (its form), and one
whose every sum is shifted by an ambient value.

Invariant: the references are the same programs in numpy; slopes come of complex steps, intervals
of programs that increase, origins from one written-down list.
"""

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait.ext.ops.elementwise import add, mul, sin

pnp = plait.numpy
X = np.array([0.5, 1.25, 2.0])
Y = np.array([[0.25, 1.5, 0.75], [1.0, 0.5, 2.5]])


def f64(x):
    return pnp.asarray(np.asarray(x, np.float64))


# ---- programs of x: (3,) and y: (2, 3), and the same in numpy ----------------------------------


def pair(x, y):
    return x * x + x, y + y * y


def np_pair(x, y, plus=np.add):
    return plus(x * x, x), plus(y, y * y)


def two(x, y):
    return plait.jit(pair)(x, y)


def chosen(x, y):
    return lax.cond(pnp.asarray(True), lambda x, y: (y + y, x), lambda x, y: (y, x * x), x, x * x)


def np_chosen(x, y, plus=np.add):
    return plus(x * x, x * x), x


def switched(x, y):
    branches = [lambda x, y: (x, y), lambda x, y: (x + x, y * y), lambda x, y: (x * x, y)]
    return lax.switch(pnp.asarray(1), branches, x, y)


def np_switched(x, y, plus=np.add):
    return plus(x, x), y * y


def scanned(x, y):
    return lax.scan(lambda c, r: (c * r + x, (c + r, r)), x, y)


def np_scanned(x, y, plus=np.add, rows=(0, 1)):
    c, sums, same = x, [None] * len(rows), [None] * len(rows)
    for i in rows:
        sums[i], same[i] = plus(c, y[i]), y[i]
        c = plus(c * y[i], x)
    return c, np.stack(sums), np.stack(same)


def reversed_(x, y):
    return lax.scan(lambda c, r: (c * r + x, (c + r, r)), x, y, reverse=True)


def stacked(x, y):
    """Results whose rows come from a carry that is not carried over, and from constants."""
    return lax.scan(lambda c, r: (c, (r * r, x)), x * x, y)


def np_stacked(x, y, plus=np.add):
    return x * x, y * y, np.stack([x, x])


def turned(x, y):
    turn = lambda s: (s[0] + 1, s[1] * y + s[1], s[2] + x)  # noqa: E731
    return lax.while_loop(lambda s: s[0] < 3, turn, (0, y, x))[1:]


def np_turned(x, y, plus=np.add):
    c, d = y, x
    for _ in range(3):
        c, d = plus(c * y, c), plus(d, x)
    return c, d


def counted(x, y):
    return lax.fori_loop(0, 4, lambda i, c: c * x + x, x)


def np_counted(x, y, plus=np.add):
    c = x
    for _ in range(4):
        c = plus(c * x, x)
    return (c,)


def along_rows(x, y):
    return plait.map_axes(lambda r, x: r * x + r, in_axes=(0, None))(y, x)


def np_along_rows(x, y, plus=np.add):
    return (np.stack([plus(r * x, r) for r in y]),)


def along_columns(x, y):
    """Rows of the last axis of y beside single elements of x; stacked at the end, and in front."""
    f = lambda c, v: (c * c, c + v, v)  # noqa: E731
    wide = lambda c, v: f(c, pnp_full(v))  # noqa: E731
    return plait.map_axes(wide, in_axes=(1, 0), out_axes=(1, 0, 0))(y, x)


def pnp_full(v):
    return lax.broadcast_in_dim(v, (2,), ())


def np_along_columns(x, y, plus=np.add):
    columns = [(y[:, i], np.stack([x[i], x[i]])) for i in range(3)]
    squares = np.stack([c * c for c, _ in columns], 1)
    return squares, np.stack([plus(c, v) for c, v in columns]), np.stack([v for _, v in columns])


def nested(x, y):
    def step(c, r):
        inner = lax.scan(lambda d, _: (d * r, d + x), c, None, length=2)
        return lax.cond(pnp.asarray(True), lambda c, d: (c, d), lambda c, d: (c * c, d), *inner)

    return plait.jit(lambda x, y: lax.scan(step, x, y))(x, y)


def np_nested(x, y, plus=np.add):
    c, rows = x, []
    for r in y:
        inner = []
        for _ in range(2):
            inner.append(plus(c, x))
            c = c * r
        rows.append(np.stack(inner))
    return c, np.stack(rows)


def scan_of_map(x, y):
    over = plait.map_axes(lambda a, b: a * b + a)
    return lax.scan(lambda c, r: (over(c, r), c), x, y)


def np_scan_of_map(x, y, plus=np.add):
    c, cs = x, []
    for r in y:
        cs.append(c)
        c = plus(c * r, c)
    return c, np.stack(cs)


def nothing(x, y):
    """Operands that no result needs, a plain result, and a scan of no turns."""
    c, ys = lax.scan(lambda c, r: (c * r, c), x, EMPTY)
    return c, lax.cond(pnp.asarray(False), lambda x: 1.0, lambda x: 2.0, x), ys


EMPTY = f64(np.zeros((0, 3)))


def np_nothing(x, y, plus=np.add):
    return x, np.float64(2.0), np.zeros((0, 3))


PROGRAMS = {
    "python": (pair, np_pair),
    "call": (two, np_pair),
    "cond": (chosen, np_chosen),
    "switch": (switched, np_switched),
    "scan": (scanned, np_scanned),
    "scan in reverse": (reversed_, lambda x, y, plus=np.add: np_scanned(x, y, plus, (1, 0))),
    "scan of constants": (stacked, np_stacked),
    "while": (turned, np_turned),
    "fori": (counted, np_counted),
    "map_axes": (along_rows, np_along_rows),
    "map_axes of columns": (along_columns, np_along_columns),
    "scan in scan in cond in call": (nested, np_nested),
    "scan of map_axes": (scan_of_map, np_scan_of_map),
    "nothing": (nothing, np_nothing),
}
WAYS = ("eager", "twice", "program")


def through(carrier, f, lifted, way):
    """Run `f` on (form, parts, aval) of two values in one of two ways: rules act while Python
    runs, or the program on components is made first; [(form, parts)] of the results."""
    if way == "program":
        program = ext.staged(lambda *xs: ext.flatten(f(*xs))[0], [aval for _, _, aval in lifted])
        forms = tuple([form for form, _, _ in lifted])
        made, out = carrier.lift_program(program, forms)
        given = [*carrier.ambient, *(p for _, parts, _ in lifted for p in parts)]
        flat = iter(ext.evaluate(made, given))
        return [
            (g, tuple([next(flat) for _ in carrier.parts_of(a, g)]))
            for g, a in zip(out, program.out_avals, strict=True)
        ]
    if way != "eager":
        f = plait.jit(f)
    with ext.opened(carrier):
        args = [carrier.lift(aval, form, parts) for form, parts, aval in lifted]
        if way == "twice":  # the second time the lifted programs are known
            f(*args)
        return [carrier.split(ext.as_value(o)) for o in ext.flatten(f(*args))[0]]


def close(got, want):
    np.testing.assert_allclose(np.asarray(ext.materialise_at_ground(got)), want, rtol=1e-12)


# ---- stacks ----------------------------------------------------------------------------------


class Stack(ext.Carrier):
    """As many values as `size`, stacked along the axis that is the form."""

    rules = ext.RuleTable("core_lifting_stack", doc="rule(stack, prim, axes, xs, **params)")
    does = "stack"
    fields = ("size",)

    def part_avals(self, aval, form):
        return (aval.with_shape((*aval.shape[:form], self.size, *aval.shape[form:])),)

    def part_axes(self, aval, form):
        return (tuple([i if i < form else i + 1 for i in range(aval.ndim)]),)

    def coerce(self, aval, parts, f, g):
        (x,) = parts
        if f is None:
            shape = (*aval.shape[:g], self.size, *aval.shape[g:])
            return (lax.broadcast_in_dim(x, shape, [i + (i >= g) for i in range(aval.ndim)]),)
        return (pnp.moveaxis(x, f, g),)

    def join(self, aval, f, g):
        return min(f, g)

    def grow(self, form, axis):
        return form + 1 if axis <= form else form

    def drop(self, form, axis):
        return form - 1 if axis < form else form

    def run(self, prim, rule, args, params):
        axis = next(a.form for a in args if self.form_of(a) is not None)
        axis, out = rule(self, axis, [(self.form_of(a), a) for a in args], **params)
        shape = out.aval.shape
        return self.lift(out.aval.with_shape((*shape[:axis], *shape[axis + 1 :])), axis, (out,))


@Stack.rules.rule(ext.Elementwise)
def _(prim, stack, axis, xs, **params):
    return axis, prim.bind(*[stack.to_form(x, axis)[0] for _, x in xs], **params)


@Stack.rules.rule(ext.Structural)
def _(prim, stack, axis, xs, **params):
    """Broadcasting of a scalar, which is all that the programs need."""
    (x,) = [stack.to_form(x, 0)[0] for _, x in xs]
    return 0, lax.broadcast_in_dim(x, (stack.size, *params["shape"]), [0])


class Front(Stack):
    """The same, always in front: the axis of the rows of a loop is not the first one then."""

    def grow(self, form, axis):
        return form

    drop = grow


STACKS = [
    *[(Stack, axes) for axes in ((0, 0), (1, 2), (0, 1), (1, None), (None, 2))],
    *[(Front, axes) for axes in ((0, 0), (0, None), (None, 0))],
]


@pytest.mark.sampled(16)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("kind", "axes"), STACKS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_stacks(name, kind, axes, way):
    """A stack along any axis: the results are those of each value, stacked."""
    f, reference = PROGRAMS[name]
    xs = np.stack([X, X + 1, X * 0.5, X - 0.25])
    ys = np.stack([Y, Y * 2, Y + 0.5, Y - 0.125])
    lifted = []
    for values, axis in zip((xs, ys), axes):
        whole = values[0] if axis is None else np.moveaxis(values, 0, axis)
        lifted.append((axis, (f64(whole),), f64(values[0]).aval))
    got = through(kind(ext.current(), 4), f, lifted, way)
    each = [
        reference(xs[0 if axes[0] is None else i], ys[0 if axes[1] is None else i])
        for i in range(4)
    ]
    assert any(form is not None for form, _ in got) or name in ("fori", "nothing", "cond")
    for k, (form, (out,)) in enumerate(got):
        if form is None:
            for e in each:
                close(out, e[k])
        else:
            close(out, np.stack([e[k] for e in each], form))


# ---- slopes ----------------------------------------------------------------------------------


class Slope(ext.Carrier):
    """A value and its slope."""

    rules = ext.RuleTable("core_lifting_slope", doc="rule(xs, ts, **params) -> (out, slope)")
    does = "slope"

    def part_avals(self, aval, form):
        return aval, aval

    def coerce(self, aval, parts, f, g):
        return parts[0], ext.Literal(0.0, aval)

    def run(self, prim, rule, args, params):
        xs, ts = zip(*[self.to_form(a, "slope") for a in args])
        out = rule(xs, ts, **params)
        return self.lift(out[0].aval, "slope", out)


@Slope.rules.rule(ext.Linear, ext.Structural)
def _(prim, xs, ts, **params):
    return prim.bind(*xs, **params), prim.bind(*ts, **params)


Slope.rules.rule(mul)(lambda x, t: (x[0] * x[1], x[0] * t[1] + t[0] * x[1]))
Slope.rules.rule(sin)(lambda x, t: (lax.sin(x[0]), lax.cos(x[0]) * t[0]))


@pytest.mark.sampled(16)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("which", ["x", "y", "both"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_slopes(name, which, way):
    """A slope through any program is that of a complex step."""
    f, reference = PROGRAMS[name]
    t = np.array([1.0, -2.0, 0.5]) * (which != "y")
    s = np.array([[0.5, 1.0, -1.0], [2.0, 0.0, 1.0]]) * (which != "x")
    h = 1e-30
    with np.errstate(all="raise", under="ignore"):
        steps = reference(X + 1j * h * t, Y + 1j * h * s)
    x = ("slope", (f64(X), f64(t)), f64(X).aval) if which != "y" else (None, (f64(X),), f64(X).aval)
    y = ("slope", (f64(Y), f64(s)), f64(Y).aval) if which != "x" else (None, (f64(Y),), f64(Y).aval)
    got = through(Slope(ext.current()), f, [x, y], way)
    for (form, parts), want in zip(got, steps, strict=True):
        close(parts[0], np.real(want))
        slope = np.imag(want) / h
        if form is None:
            assert not slope.any()
        else:
            close(parts[1], slope)


# ---- intervals -------------------------------------------------------------------------------


class Ends(ext.Carrier):
    """The two ends of an interval of numbers that are not negative."""

    rules = ext.RuleTable("core_lifting_ends", doc="rule(prim, lows, highs, **params) -> (lo, hi)")
    does = "ends"

    def part_avals(self, aval, form):
        return aval, aval

    def coerce(self, aval, parts, f, g):
        return parts[0], parts[0]

    def run(self, prim, rule, args, params):
        lows, highs = zip(*[self.to_form(a, "ends") for a in args])
        out = rule(lows, highs, **params)
        return self.lift(out[0].aval, "ends", out)


@Ends.rules.rule(ext.Increasing, ext.Structural, mul)
def _(*args, **params):
    prim, lows, highs = args if len(args) == 3 else (mul, *args)
    return prim.bind(*lows, **params), prim.bind(*highs, **params)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_ends(name, way):
    """All programs increase on positive numbers: the ends go to the ends."""
    f, reference = PROGRAMS[name]
    lifted = [("ends", (f64(v), f64(v + 0.5)), f64(v).aval) for v in (X, Y)]
    got = through(Ends(ext.current()), f, lifted, way)
    lows, highs = reference(X, Y), reference(X + 0.5, Y + 0.5)
    for (form, parts), lo, hi in zip(got, lows, highs, strict=True):
        close(parts[0], lo)
        close(parts[-1], hi)
        assert len(parts) == (1 if form is None else 2)


# ---- origins ---------------------------------------------------------------------------------


class Origin(ext.Carrier):
    """A value; the form is the set of names that it depends on."""

    rules = ext.RuleTable("core_lifting_origin", doc="rule(prim, xs, **params) -> out")
    does = "origin"

    def part_avals(self, aval, form):
        return (aval,)

    def coerce(self, aval, parts, f, g):
        assert f is None or f < g, "a form is only coerced to a greater one"
        return parts

    def join(self, aval, f, g):
        assert f != g and f is not None and g is not None
        return f | g

    def run(self, prim, rule, args, params):
        names = frozenset().union(*[self.form_of(a) or () for a in args])
        out = rule([self.split(a)[1][0] for a in args], **params)
        return self.lift(out.aval, names, (out,))


Origin.rules.rule(ext.Elementwise, ext.Structural)(
    lambda prim, xs, **params: prim.bind(*xs, **params)
)
ORIGINS = {
    "python": ("x", "y"),
    "call": ("x", "y"),
    "cond": ("x", "x"),
    "switch": ("x", "y"),
    "scan": ("xy", "xy", "y"),
    "scan in reverse": ("xy", "xy", "y"),
    "scan of constants": ("x", "y", "x"),
    "while": ("y", "x"),
    "fori": ("x",),
    "map_axes": ("xy",),
    "map_axes of columns": ("y", "xy", "x"),
    "scan in scan in cond in call": ("xy", "xy"),
    "scan of map_axes": ("xy", "xy"),
    "nothing": ("x", "", "x"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_origins(name, way):
    """Every result has the least form that holds whatever branch is taken, however often a loop
    turns; its value is not touched."""
    f, reference = PROGRAMS[name]
    lifted = [(frozenset(n), (f64(v),), f64(v).aval) for n, v in (("x", X), ("y", Y))]
    got = through(Origin(ext.current()), f, lifted, way)
    assert ["".join(sorted(form or "")) for form, _ in got] == list(ORIGINS[name])
    for (_, parts), want in zip(got, reference(X, Y), strict=True):
        close(parts[0], want)


def rotated(a, b, c, d):
    return lax.scan(lambda s, _: ((s[1], s[2], s[2] * d), s[0]), (a, b, c), None, length=2)


def test_forms_that_take_turns_to_arrive():
    """A form that reaches a carry through two others, and the stacked results through a third."""
    values = [(frozenset(n), (f64(X),), f64(X).aval) for n in "abcd"]
    got = through(Origin(ext.current()), rotated, values, "eager")
    assert ["".join(sorted(form)) for form, _ in got] == ["abcd", "bcd", "cd", "abcd"]


def test_forms_of_loops_that_are_plain():
    """A carry that is never lifted stays plain beside one that is."""
    f = lambda x, y: lax.scan(lambda s, r: ((s[0] * 2.0, s[1] + r), s[0]), (f64(1), x), y)  # noqa: E731
    lifted = [(frozenset(n), (f64(v),), f64(v).aval) for n, v in (("x", X), ("y", Y))]
    got = through(Origin(ext.current()), f, lifted, "jit")
    assert [form for form, _ in got] == [None, frozenset("xy"), None]
    assert got[0][1][0].item() == 4
    close(got[1][1][0], X + Y[0] + Y[1])
    close(got[2][1][0], [1, 2])


# ---- an ambient value ------------------------------------------------------------------------


class Shifted(ext.Carrier):
    """Every sum is shifted by one value, which all rules may use."""

    rules = ext.RuleTable("core_lifting_shifted", doc="rule(shift, xs, **params) -> out")
    does = "shifted"

    def part_avals(self, aval, form):
        return (aval,)

    def coerce(self, aval, parts, f, g):
        return parts

    def run(self, prim, rule, args, params):
        out = rule(self.ambient[0], [self.split(a)[1][0] for a in args], **params)
        return self.lift(out.aval, "shifted", (out,))


Shifted.rules.rule(add)(lambda shift, xs: xs[0] + xs[1] + shift)
Shifted.rules.rule(ext.Elementwise, ext.Structural)(
    lambda prim, shift, xs, **params: prim.bind(*xs, **params)
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_shifted(name, way):
    """The value reaches every program, and programs made for one value serve another."""
    f, reference = PROGRAMS[name]
    for shift in (10.0, -1.0):
        carrier = Shifted(ext.current(), ambient=(f64(shift),), of=f)
        lifted = [("shifted", (f64(v),), f64(v).aval) for v in (X, Y)]
        got = through(carrier, f, lifted, way)
        want = reference(X, Y, lambda a, b, s=shift: a + b + s)
        for (_, (out,)), w in zip(got, want, strict=True):
            close(out, w)


# ---- one in the other ------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["eager", "jit"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_slopes_of_stacks(name, way):
    """A stack of values with slopes: the slopes of each."""
    f, reference = PROGRAMS[name]
    outer = Slope(ext.current())
    xs, ys = np.stack([X, X + 1]), np.stack([Y, Y * 2], 1)
    with ext.opened(outer):
        x = outer.lift(f64(xs).aval, "slope", (f64(xs), f64(np.ones_like(xs))))
        stack = Stack(ext.current(), 2)
        lifted = [(0, (x,), f64(X).aval), (1, (f64(ys),), f64(Y).aval)]
        got = through(stack, f, lifted, way)
        found = [(form, outer.split(parts[0])) for form, parts in got]
    each = [reference(xs[i] + 1e-30j, ys[:, i]) for i in range(2)]
    for k, (axis, (form, parts)) in enumerate(found):
        want = each[0][k] if axis is None else np.stack([e[k] for e in each], axis)
        close(parts[0], np.real(want))
        if form is not None:
            close(parts[1], np.imag(want) / 1e-30)
        else:
            assert not np.imag(want).any()


def test_carriers_of_one_kind_are_told_apart():
    """Slopes of slopes: x * x * x has the second slope 6 x, not that of a mixture."""

    def slope(f, x):
        carrier = Slope(ext.current(), of=f)
        with ext.opened(carrier):
            out = f(carrier.lift(x.aval, "slope", (x, pnp.ones_like(x))))
            return carrier.to_form(out, "slope")[1]

    for wrap in (lambda f: f, plait.jit):
        cube = wrap(lambda x: x * x * x)
        inner = wrap(lambda x: slope(cube, x))
        close(slope(inner, f64(X)), 6 * X)
        # x * d/dy (x + y) at y = 1, differentiated by x: 1 and not 2
        mixed = lambda x: x * slope(lambda y: x + y, pnp.ones_like(x))  # noqa: E731
        close(slope(wrap(mixed), f64(X)), np.ones(3))


# ---- axes that programs do not see -----------------------------------------------------------


class Elements(ext.Wiring):
    """A program of single elements, applied to each of arrays of one shape."""

    def slots(self, params):
        p, n = params["program"], len(params["program"].inputs)
        m = len(p.outputs)
        ins, outs = range(n), range(n, n + m)
        axes = [*params["ins"], *params["outs"]]
        mapped = {s: a for s, a in enumerate(axes) if a}
        return ext.Slots(ins, outs, [(p, ins, outs)], n + m, mapped)

    def rebuild(self, params, programs, parts, operands, extra):
        n = len(params["ins"])
        moved = [
            tuple([tuple([p.at[a] for a in axes]) for p in ps])
            for ps, axes in zip(parts, (*params["ins"], *params["outs"]))
        ]
        ins = (*(() for _ in extra), *sum(moved[:n], ()))
        outs = sum(moved[n:], ())
        return [*extra, *operands], {"program": programs[0], "ins": ins, "outs": outs}


def _each(*xs, program, ins, outs):
    """Apply `program` for each place along two axes: `ins` says which these are of each operand
    (none: it is the same for all), `outs` of each result."""
    sizes = next(tuple([x.shape[a] for a in axes]) for x, axes in zip(xs, ins) if axes)
    found = []
    for aval, axes in zip(program.out_avals, outs, strict=True):
        shape = list(aval.shape)
        for axis, size in sorted(zip(axes, sizes)):
            shape.insert(axis, size)
        found.append(aval.with_shape(tuple(shape)))
    return found


each_p = ext.Primitive("core_lifting.each", _each, many=True, higher=Elements())


@ext.expand_rules.rule(each_p)
def _(*xs, program, ins, outs):
    """Place after place: slow, and plainly what is meant."""
    sizes = next(tuple([x.shape[a] for a in axes]) for x, axes in zip(xs, ins) if axes)
    found = {}
    for i in range(sizes[0]):
        for j in range(sizes[1]):
            given = []
            for x, axes in zip(xs, ins):
                at = [slice(None)] * x.ndim
                for a, k in zip(axes, (i, j)):
                    at[a] = k
                given.append(x[tuple(at)])
            found[i, j] = ext.evaluate(program, given)
    results = []
    for r, axes in enumerate(outs):
        rows = [
            pnp.stack([found[i, j][r] for j in range(sizes[1])], axis=axes[1] - (axes[0] < axes[1]))
            for i in range(sizes[0])
        ]
        results.append(pnp.stack(rows, axis=axes[0]))
    return results


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("axes", [(0, 0), (1, 1), (2, 2), (0, 2), (2, None), (None, 1)])
def test_several_axes_that_programs_do_not_see(axes, order):
    """An operation on elements of matrices, whichever axis stacks them, whichever way round its
    axes are named."""
    rng = np.random.default_rng(0)
    a, b, k = rng.random((4, 2, 3)), rng.random((4, 2, 3)), rng.random(4)

    def f(x, y, k):
        program = ext.staged(
            lambda x, y, k: [x * y + k, x * x], [v.aval.with_shape(()) for v in (x, y, k)]
        )
        return each_p.bind(x, y, k, program=program, ins=(order, order, ()), outs=(order, order))

    lifted = []
    for v, axis in zip((a, b), axes):
        whole = v[0] if axis is None else np.moveaxis(v, 0, axis)
        lifted.append((axis, (f64(whole),), f64(v[0]).aval))
    lifted.append((0, (f64(k),), f64(k[0]).aval))
    got = through(Stack(ext.current(), 4), f, lifted, "eager")
    x = np.broadcast_to(a[0], a.shape) if axes[0] is None else a
    y = np.broadcast_to(b[0], b.shape) if axes[1] is None else b
    for (form, (out,)), want in zip(got, (x * y + k[:, None, None], x * x), strict=True):
        if form is None:
            assert axes[0] is None
            close(out, a[0] * a[0])
        else:
            close(out, np.moveaxis(want, 0, form))


# ---- what is refused -------------------------------------------------------------------------


def test_predicates_are_not_lifted():
    """A carrier without a rule for it cannot branch on a lifted value, and is told what to add."""
    i = ext.as_value(pnp.asarray(np.int32(1)))
    carrier = Origin(ext.current())
    with ext.opened(carrier):
        index = carrier.lift(i.aval, frozenset("i"), (i,))
        with pytest.raises(plait.ext.errors.MissingRule, match="predicate of core.cond") as caught:
            plait.jit(lambda i: lax.switch(i, [lambda: 1.0, lambda: 2.0]))(index)
        assert "core_lifting_origin_rules.rule(cond)" in caught.value.fix
        with pytest.raises(plait.ext.errors.MissingRule, match="predicate of core.while"):
            plait.jit(lambda i: lax.while_loop(lambda s: s < 5, lambda s: s + 1, i))(index)


def test_a_lifted_program_is_made_once():
    """Programs on components are kept on the program: no trace, no lifting for a second call."""
    seen = []

    class Watched(Origin):
        rules = ext.RuleTable("core_lifting_watched")

    @Watched.rules.rule(ext.Elementwise)
    def _(prim, xs, **params):
        seen.append(prim)
        return prim.bind(*xs, **params)

    f = plait.jit(lambda x: lax.scan(lambda c, _: (c * x, None), x, None, length=3)[0])

    def run(names):
        carrier = Watched(ext.current())
        with ext.opened(carrier):
            x = f64(X)
            form, (out,) = carrier.split(f(carrier.lift(x.aval, frozenset(names), (x,))))
        assert form == frozenset(names)
        close(out, X**4)

    run("a")
    first = len(seen)
    assert first >= 1
    run("a")
    assert len(seen) == first
    run("b")
    assert len(seen) == 2 * first


# ---- forms that say something of each axis ------------------------------------------------------


class Marks(ext.Carrier):
    """A value some of whose axes are marked: the form has a mark for each."""

    rules = ext.RuleTable("core_lifting_marks", doc="rule(prim, xs, **params) -> out")
    does = "marks"

    def part_avals(self, aval, form):
        assert len(form) == aval.ndim
        return (aval,)

    def coerce(self, aval, parts, f, g):
        return parts

    def join(self, aval, f, g):
        return tuple([a or b for a, b in zip(f, g, strict=True)])

    def grow(self, form, axis):
        assert 0 <= axis <= len(form)
        return (*form[:axis], False, *form[axis:])

    def drop(self, form, axis):
        assert 0 <= axis < len(form)
        return (*form[:axis], *form[axis + 1 :])

    def run(self, prim, rule, args, params):
        forms = [f for f in map(self.form_of, args) if f is not None]
        marks = tuple([any(m) for m in zip(*forms, strict=True)])
        out = rule([self.split(a)[1][0] for a in args], **params)
        return self.lift(out.aval, marks, (out,))


Marks.rules.rule(ext.Elementwise)(lambda prim, xs, **params: prim.bind(*xs, **params))


@pytest.mark.parametrize("axes", [(0, 1), (0, 2), (1, 2), (2, 0)])
@pytest.mark.parametrize("marks", [(True, False, False), (False, True, True), (True, True, False)])
def test_marks_of_axes(marks, axes):
    """Axes that a program does not see lose their marks, all others keep theirs in their place."""
    x = np.random.default_rng(0).random((2, 3, 4))
    (left,) = {0, 1, 2} - set(axes)

    def f(x):
        element = x.aval.with_shape((x.shape[left],))
        program = ext.staged(lambda v: [v * v + v], [element])
        return each_p.bind(x, program=program, ins=(axes,), outs=(axes,))

    ((form, (out,)),) = through(Marks(ext.current()), f, [(marks, (f64(x),), f64(x).aval)], "eager")
    close(out, x * x + x)
    assert form == tuple([m and i == left for i, m in enumerate(marks)])


def test_marks_of_rows():
    """scan and map_axes take the mark of their axis away and leave the others."""
    x = np.random.default_rng(0).random((2, 3))
    for marks in ((True, False), (False, True), (True, True)):
        lifted = [(marks, (f64(x),), f64(x).aval)]
        rows = lambda x: lax.scan(lambda c, r: (c, r * r), 0.0, x)[1]  # noqa: E731
        columns = lambda x: plait.map_axes(lambda c: c * c, in_axes=1, out_axes=1)(x)  # noqa: E731
        for f, want in ((rows, (False, marks[1])), (columns, (marks[0], False))):
            ((form, (out,)),) = through(Marks(ext.current()), f, lifted, "eager")
            close(out, x * x)
            assert form == want
