"""The suite for transformations finds silent losses: of custom rules, at cut axes, of types.

Invariant: each fault is planted in a carrier that passes without it.
"""

import numpy as np
import pytest

import plait
from plait import P, ext, lax
from plait_testing.carriers import _constant, _pieces
from plait_testing.coercions import check_coercions
from plait_testing.custom_rules import check_custom_rules
from plait_testing.report import Checks

pnp = plait.numpy
KINDS = frozenset(("derivative", "mapping"))
X = np.float32([[0.5, -1.0], [2.0, 0.25]])


class Twice(ext.Carrier):
    """Carries each value as it is, twice."""

    rules = ext.RuleTable("carriers_conformance_twice", doc="rule(prim, xs, ys) -> two results")
    does = "twice"
    commutes = KINDS

    def part_avals(self, aval, form):
        return aval, aval

    def coerce(self, aval, parts, f, g):
        return parts[0], parts[0]

    def whole(self, aval):
        return "twice"

    def run(self, prim, rule, args, params):
        pairs = [self.to_form(a, "twice") for a in args]
        x, y = rule([p[0] for p in pairs], [p[1] for p in pairs], **params)
        return self.lift(x.aval, "twice", (x, y))


@Twice.rules.rule(ext.Elementwise, ext.Structural, ext.Reduction)
def _(prim, xs, ys, **params):
    return prim.bind(*xs, **params), prim.bind(*ys, **params)


def second(kind):
    """The transformation that returns the second component."""

    def api(f):
        def g(x):
            x = ext.as_value(x)
            with ext.opened(kind(ext.current(), of=f)) as c:
                out = ext.as_value(f(c.lift(x.aval, "twice", (x, x))))
            return ext.materialise_at_ground(c.to_form(out, "twice")[1])

        return g

    return api


def rules(api):
    """The part of the suite that concerns custom rules."""
    checks = Checks("the transformation")
    check_custom_rules(checks, api, lambda f: f, [X])
    return checks.report()


def pieces(kind):
    """The part of the suite that concerns pieces, for diagonal matrices."""
    with plait.config(checks=True):
        return _pieces(dense(kind), matrix, [D], 1e-5)


RULES = ("custom_jvp", "custom_vjp", "custom_vmap")

# ---- custom rules ----------------------------------------------------------------------------


def test_a_carrier_that_keeps_custom_rules_passes():
    checks = rules(second(Twice)).checks
    assert all(checks[f"{name}{way}"] for name in RULES for way in ("", ", jit inside"))


def test_custom_rules_that_are_lost_without_a_word_are_found():
    class Silent(Twice):
        commutes = frozenset()

        def lose(self, prim, params):
            pass

    with pytest.raises(plait.testing.Nonconforming, match="lost without a word") as e:
        rules(second(Silent))
    assert all(f"{name}: a " in str(e.value) for name in RULES)


def test_a_loss_has_to_be_declared():
    class Undeclared(Twice):
        commutes = frozenset()

    class Declared(Undeclared):
        loses = KINDS

    with pytest.raises(plait.testing.Nonconforming, match="neither in `commutes` nor in `loses`"):
        rules(second(Undeclared))
    assert rules(second(Declared)).checks["custom_vmap, jit inside"] == 1


@pytest.mark.parametrize("way", ["eager", "jit", "scan", "vmap"])
def test_a_lost_rule_warns_at_the_users_line(way):
    class Losing(Twice):
        commutes, loses = frozenset(), KINDS

    ways = {
        "eager": lambda f: f,
        "jit": plait.jit,
        "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
        "vmap": plait.vmap,
    }
    rounded = plait.custom_vjp(lambda x: pnp.round(x))
    rounded.defvjp(lambda x: (rounded(x), None), lambda _, ct: (ct,))
    loss = lambda x: second(Losing)(ways[way](rounded))(x).sum()
    with pytest.warns(
        plait.errors.RuleLost, match="twice lost the derivative rule of <lambda>"
    ) as w:
        plait.grad(loss)(X)
    assert all(found.filename == __file__ for found in w)
    kept = lambda x: second(Twice)(ways[way](rounded))(x).sum()
    np.testing.assert_array_equal(plait.grad(kept)(X), np.ones_like(X))


@pytest.mark.parametrize("around", [lambda f: f, plait.jit], ids=["eager", "jit"])
def test_a_mapping_rule_is_lifted(around):
    """Through components with the mapped axis at other places, and one that has it not."""

    @plait.custom_vmap
    def f(x, y):
        return x * y, x + 1.0

    calls = []

    @f.def_vmap
    def _(size, stacked, x, y):
        calls.append(tuple(stacked))
        return (x * y * 10.0, (x + 1.0) * 10.0), (True, stacked[0])

    class Turned(Twice):
        """Its second component has the axes of the value in the reverse order."""

        rules = ext.RuleTable("carriers_conformance_turned", doc="rule(prim, xs) -> result")
        does = "turned"

        def part_avals(self, aval, form):
            return aval, aval.with_shape(aval.shape[::-1])

        def part_axes(self, aval, form):
            return tuple(range(aval.ndim)), tuple(reversed(range(aval.ndim)))

        def coerce(self, aval, parts, f, g):
            return parts[0], pnp.transpose(parts[0])

        def run(self, prim, rule, args, params):
            pairs = [self.to_form(a, "twice") for a in args]
            x = prim.bind(*[p[0] for p in pairs], **params)
            return self.lift(x.aval, "twice", (x, pnp.transpose(x)))

    Turned.rules.rule(ext.Elementwise)(lambda prim, *xs, **params: None)

    def api(x, y):
        x, y = ext.as_value(x), ext.as_value(y)
        with ext.opened(Turned(ext.current(), of=f)) as c:
            lifted = c.lift(x.aval, "twice", (x, pnp.transpose(x)))
            outs = around(f)(lifted, y)
        return [c.to_form(o, "twice") for o in outs]

    x = np.arange(12.0, dtype="f").reshape(2, 2, 3)
    for y, axis in ((np.ones((2, 3), "f"), None), (np.arange(12.0, dtype="f").reshape(2, 2, 3), 0)):
        (a, at), (b, bt) = plait.vmap(api, (0, axis))(x, y)
        np.testing.assert_allclose(a, 10 * x * y)
        np.testing.assert_allclose(at, np.swapaxes(10 * x * y, 1, 2))
        np.testing.assert_allclose(b, 10 * (x + 1))
        np.testing.assert_allclose(bt, np.swapaxes(10 * (x + 1), 1, 2))
    assert (True, False) in calls and (True, True) in calls


# ---- cut axes --------------------------------------------------------------------------------


class Diagonal(ext.Carrier):
    """A square matrix with zeros off its diagonal is the diagonal; all else is made dense."""

    rules = ext.RuleTable("carriers_conformance_diagonal", doc="rule(prim, *xs) -> result")
    does = "diagonal"
    loses = KINDS

    def part_avals(self, aval, form):
        return (aval if form == "dense" else aval.with_shape(aval.shape[1:]),)

    def part_axes(self, aval, form):
        return (tuple(range(aval.ndim)) if form == "dense" else (0, None),)

    def coerce(self, aval, parts, f, g):
        (x,) = parts
        return (pnp.diag(x) if f == "diagonal" else x,)

    def join(self, aval, f, g):
        return "dense"

    def whole(self, aval):
        return "dense"

    def run(self, prim, rule, args, params):
        out = rule(*[self.to_form(a, "dense")[0] for a in args], **params)
        return self.lift(out.aval, "dense", (out,))


@Diagonal.rules.rule(ext.Elementwise, ext.Structural, ext.Reduction)
def _(prim, *xs, **params):
    return prim.bind(*xs, **params)


class Blind(Diagonal):
    """It declares by `cut` that a piece of a diagonal matrix is one."""

    def cut(self, form, axis):
        return form


class Refused(Diagonal):
    """Its forms depend on axes, and it has no `cut`."""

    def grow(self, form, axis):
        return "dense"

    def drop(self, form, axis):
        return "dense"


class Cutting(Refused):
    def cut(self, form, axis, aval):
        assert aval.shape[axis] in (1, 2, 4, 16)
        return "dense"


def dense(kind):
    def api(f):
        def g(d):
            d = ext.as_value(d)
            n = d.shape[0]
            with ext.opened(kind(ext.current(), of=f)) as c:
                x = c.lift(d.aval.with_shape((n, n)), "diagonal", (d,))
                out = ext.as_value(f(x))
                return c.to_form(out, "dense")[0]

        return g

    return api


D = np.float32([1, 2, 3, 4])


def matrix(f):
    return lambda d: f(pnp.diag(d))


def test_a_form_that_is_wrong_for_pieces_is_found():
    assert pieces(Cutting) == 6
    with pytest.raises((AssertionError, plait.PlaitError)):
        pieces(Blind)
    with pytest.raises(plait.testing.Inapplicable, match="Refused.*has no method `cut`"):
        pieces(Refused)


PROGRAMS = {
    "rows in": lambda m: (lambda v: (v * 2.0).sum(1), P("d"), P("d")),
    "columns in": lambda m: (lambda v: v * 2.0, P(None, "d"), P(None, "d")),
    "untouched": lambda m: (lambda v: v, P("d"), P("d")),
    "whole in": lambda m: (lambda v: v, P(), P("d")),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_pieces_of_a_form(name):
    f, ins, outs = PROGRAMS[name](D)
    mesh = plait.make_mesh((4,), ("d",))
    sharded = plait.shard_map(f, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False)
    want = sharded(pnp.diag(D))
    np.testing.assert_allclose(dense(Cutting)(sharded)(D), want)
    np.testing.assert_allclose(plait.jit(dense(Cutting)(sharded))(D), want)
    with pytest.raises(plait.errors.MissingRule, match="Refused.*has no method `cut`"):
        dense(Refused)(sharded)(D)


class Least(Cutting):
    def least(self, aval):
        return "dense" if aval.ndim == 2 else None


MEETINGS = {
    "cond": lambda yes: lambda m: lax.cond(yes, lambda m: m, lambda m: pnp.ones((4, 4)), m),
    "carry": lambda yes: (
        lambda m: lax.fori_loop(
            0, 2, lambda i, c: lax.cond(yes, lambda: c, lambda: m), pnp.ones((4, 4))
        )
    ),
    "carry of itself": lambda yes: (
        lambda m: lax.fori_loop(
            0, 2, lambda i, c: lax.cond(yes, lambda: c, lambda: pnp.ones((4, 4))), m
        )
    ),
    "switch": lambda yes: (
        lambda m: lax.switch(
            int(yes), [lambda m: m, lambda m: m * 2.0, lambda m: pnp.ones((4, 4))], m
        )
    ),
}


@pytest.mark.parametrize("yes", [True, False])
@pytest.mark.parametrize("name", MEETINGS)
def test_a_plain_value_that_has_no_such_form(name, yes):
    """Where a diagonal meets a constant, both are made dense."""
    f = MEETINGS[name](yes)
    want = f(pnp.diag(D))
    np.testing.assert_allclose(dense(Least)(f)(D), want)
    np.testing.assert_allclose(plait.jit(dense(Least)(plait.jit(f)))(D), want)


# ---- coercions -------------------------------------------------------------------------------


class Summands(ext.Carrier):
    """A value is "one" array, or the sum of "two"; operations on both make one of them."""

    rules = ext.RuleTable("carriers_conformance_summands", doc="rule(prim, xs, ys) -> two results")
    does = "summands"
    commutes = KINDS

    def part_avals(self, aval, form):
        return (aval,) if form == "one" else (aval, aval)

    def coerce(self, aval, parts, f, g):
        if g == "one":
            return (parts[0] + parts[1],) if f == "two" else parts
        return parts[0] * 0.25, parts[0] * 0.75

    def join(self, aval, f, g):
        return "one"

    def whole(self, aval):
        return "one"

    def run(self, prim, rule, args, params):
        if prim is ext.ops.elementwise.mul and self.form_of(args[0]) == "two":
            if self.form_of(args[1]) is None:
                x, y = self.split(args[0])[1]
                c = args[1]
                return self.lift(args[0].aval, "two", (x * c, y * c))
        out = prim.bind(*[self.to_form(a, "one")[0] for a in args], **params)
        return self.lift(out.aval, "one", (out,))


Summands.rules.rule(ext.Elementwise, ext.Structural)(lambda prim, *xs, **params: None)


def summed(kind):
    def api(f):
        def g(x):
            x = ext.as_value(x)
            with ext.opened(kind(ext.current(), of=f)) as c:
                out = ext.as_value(f(c.lift(x.aval, "two", (x * 2.0, -x))))
                return ext.materialise_at_ground(c.to_form(out, "one")[0])

        return g

    return api


class OfOne(Summands):
    """It drops a summand where it makes one array of two."""

    def coerce(self, aval, parts, f, g):
        return parts[:1] if (f, g) == ("two", "one") else super().coerce(aval, parts, f, g)


class OfPlain(Summands):
    """It drops a summand where a plain value becomes two."""

    def coerce(self, aval, parts, f, g):
        made = super().coerce(aval, parts, f, g)
        return made if f is not None or g == "one" else (made[0], made[0] * 0.0)


class ToWhole(Twice):
    """Its components are lost in the form that every value can take."""

    def coerce(self, aval, parts, f, g):
        if f == "whole":
            return parts
        return parts[0], parts[0] if f is None else parts[0] * 0.0

    def join(self, aval, f, g):
        return "whole"

    def whole(self, aval):
        return "whole"


class Forgetting(Twice):
    """Its rules take plain values as they are, and elsewhere these lose a component."""

    def coerce(self, aval, parts, f, g):
        return parts[0], parts[0] * 0.0

    def run(self, prim, rule, args, params):
        pairs = [p if len(p) == 2 else p * 2 for _, p in map(self.split, args)]
        x, y = rule([p[0] for p in pairs], [p[1] for p in pairs], **params)
        return self.lift(x.aval, "twice", (x, y))


def coercions(api, truth=lambda f: f, x=X):
    with plait.config(checks=True):
        return check_coercions(api, truth, lambda x: x * 0.5, _constant, [x], 1e-5)


def test_coercions_that_keep_values_pass():
    assert coercions(second(Twice)) == 2  # a plain value becomes "twice", in two ways
    assert coercions(summed(Summands)) == 8


@pytest.mark.parametrize(
    "api, told",
    [
        (second(Forgetting), "a plain value, coerced to the form 'twice'"),
        (second(ToWhole), "the argument, coerced to the form 'whole'"),
        (summed(OfOne), "the argument, coerced to the form 'one'"),
        (summed(OfPlain), "a plain value, coerced to the form 'two'"),
    ],
    ids=["plain", "whole", "join", "plain and join"],
)
def test_a_coercion_that_loses_components_is_found(api, told):
    with pytest.raises(AssertionError, match=told):
        coercions(api)


def test_a_plain_value_that_is_lost_in_a_branch_is_found():
    """The functions of the suite meet plain values that no component of zeros can stand for."""
    with pytest.raises(plait.testing.Nonconforming) as e:
        plait.testing.transform_suite(second(Forgetting), lambda f: f, [X])
    told = {line.partition(":")[0] for line in str(e.value).split("\n")}
    assert {"coerce", "cond taking a plain branch", "scan from a plain carry"} <= told


def test_forms_that_may_not_meet_are_left_alone():
    """A diagonal matrix is coerced to dense alone, and a plain value to neither of them."""
    assert coercions(dense(Least), matrix, D) == 4  # the argument and a plain value, in two ways

    class Garbled(Least):
        def coerce(self, aval, parts, f, g):
            (x,) = super().coerce(aval, parts, f, g)
            return (x if f is None else x.at[0, 1].set(1.0),)

    with pytest.raises(AssertionError, match="the argument, coerced to the form 'dense'"):
        coercions(dense(Garbled), matrix, D)
