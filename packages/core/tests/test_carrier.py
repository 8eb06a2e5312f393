"""What a carrier is: its defaults, its keys, what it owns, what it refuses.

Invariant: values are compared with plain arithmetic; messages name the class and what to define.
"""

import math
import warnings

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait._base.errors import RegistrationError
from plait._core.higher_order import Ends
from plait._core.ir import Thunk
from plait._core.lift_higher_order import lift_rule, solve
from plait.errors import UnexpectedTracerError
from plait.ext.errors import AxisError, MissingRule, TypeRule
from plait.ext.ops.control_flow import call
from plait.ext.ops.elementwise import add, mul, sin

pnp = plait.numpy


def f64(x):
    return pnp.asarray(np.asarray(x, np.float64))


class Tagged(ext.Carrier):
    """Multiplies every product by a static factor; carriers differ by nothing else."""

    rules = ext.RuleTable("core_carrier_tagged")
    does = "tagged"
    fields = ("factor",)

    def part_avals(self, aval, form):
        return (aval,)

    def coerce(self, aval, parts, f, g):
        return parts

    def run(self, prim, rule, args, params):
        out = rule(self, [self.split(a)[1][0] for a in args], **params)
        if prim.many:
            return [self.lift(o.aval, "tagged", (o,)) for o in out]
        return self.lift(out.aval, "tagged", (out,))


Tagged.rules.rule(mul)(lambda c, xs: mul.bind(*xs) * c.factor)


def tagged(f, x, factor=10):
    """(form, value) of `f` of a lifted value."""
    carrier = Tagged(ext.current(), factor, of=f)
    with ext.opened(carrier):
        form, (out,) = carrier.split(f(carrier.lift(x.aval, "tagged", (x,))))
    return form, ext.materialise_at_ground(out).item()


# ---- attributes ------------------------------------------------------------------------------


def test_programs_of_different_attributes():
    """Programs made for one attribute are not used for another of equal shape, nor for one that is
    merely equal to Python."""
    f = plait.jit(lambda v: v * v)
    x = f64(3)

    def run(factor):
        carrier = Tagged(ext.current(), factor)
        with ext.opened(carrier):
            return carrier.split(f(carrier.lift(x.aval, "tagged", (x,))))[1][0].item()

    assert [run(k) for k in (2, 3, 2, 2.0, True)] == [18, 27, 18, 18, 9]
    assert [math.copysign(1, run(k)) for k in (0.0, -0.0, 0.0)] == [1, -1, 1]


def test_fields_are_named_and_counted():
    carrier = Tagged(ext.current(), 7)
    assert carrier.factor == 7 and carrier.values == (7,) and carrier.ambient == ()
    for values in ((), (1, 2)):
        with pytest.raises(ValueError):
            Tagged(ext.current(), *values)


def test_keys_tell_carriers_apart():
    """By class and by static attributes; the interpreter below and ambient values are no part."""

    class Other(Tagged):
        rules = ext.RuleTable("core_carrier_other")

    ground = ext.current()
    assert Tagged(ground, 1).key() == Tagged(None, 1, ambient=(f64(1),)).key()
    keys = [c.key() for c in (Tagged(ground, 1), Tagged(ground, 1.0), Other(ground, 1))]
    assert len(set(keys)) == 3


def test_the_same_over_another_interpreter():
    """`under` keeps the class and the attributes, and takes other ambient values.  Without a
    parent it keeps no function, which would live as long as the programs that it serves."""
    f = lambda x: x  # noqa: E731
    carrier = Tagged(ext.current(), 4, ambient=(f64(1),), of=f)
    other = carrier.under(None, (f64(2),))
    assert type(other) is Tagged and other.factor == 4 and other.of is not f
    assert other.parent is None and [a.item() for a in other.ambient] == [2]
    assert carrier.under(ext.current()).of is f
    assert carrier.under(None).ambient == ()
    assert other.key() == carrier.key()


# ---- values ----------------------------------------------------------------------------------


def test_lifting_and_splitting():
    """A lifted value has the type that the user sees; form None is the value itself."""
    carrier, x = Tagged(ext.current(), 1), f64([1, 2])
    with ext.opened(carrier):
        assert carrier.lift(x.aval, None, (x,)) is x
        assert carrier.form_of(x) is None and carrier.split(x) == (None, (x,))
        v = carrier.lift(x.aval, "tagged", (x,))
        assert isinstance(v, ext.Lifted) and v.by is carrier and v.aval == x.aval
        assert (v.shape, v.dtype, v.ndim) == ((2,), np.float64, 1)
        assert carrier.form_of(v) == "tagged" and carrier.split(v) == ("tagged", (x,))
        assert carrier.to_form(v, "tagged") == (x,)
        inner = Tagged(carrier, 2)
        with ext.opened(inner):  # what is lifted by another is a plain value to this one
            assert inner.form_of(v) is None and inner.split(v) == (None, (v,))


def test_components_and_their_axes():
    """By default components have the axes of the value."""
    carrier, aval = Tagged(None, 1), ext.Aval((2, 3), np.float64)
    for form in (None, "tagged"):
        (part,) = carrier.parts_of(aval, form)
        assert part.aval == aval and part.at == (0, 1)

    class Turned(Tagged):
        def part_avals(self, aval, form):
            return aval, ext.Aval((), np.int32)

        def part_axes(self, aval, form):
            return (1, 0), (None, None)

    assert [p.at for p in Turned(None, 1).parts_of(aval, "x")] == [(1, 0), (None, None)]
    assert [p.at for p in Turned(None, 1).parts_of(aval, None)] == [(0, 1)]


def test_defaults_of_forms():
    """Forms do not know of axes, widening takes the greater, all programs see the same carrier."""
    carrier, aval = Tagged(None, 1), ext.Aval((2,), np.float64)
    assert carrier.grow("f", 0) == carrier.drop("f", 1) == "f"
    assert carrier.widen(aval, "f", "g") == "g"
    assert carrier.concerns(frozenset({"i"})) is False
    assert carrier.hidden_by(frozenset({"i"})) is carrier


def test_what_must_be_defined():
    """What a carrier needs and does not have is refused where the class is written; what only some
    need is an error that names it when it is asked for."""
    for have in ((), ("run",), ("run", "part_avals"), ("coerce", "run")):
        with pytest.raises(RegistrationError, match="Bare") as caught:
            members = {name: lambda self, *args: args for name in have}
            type("Bare", (ext.Carrier,), {"rules": Tagged.rules, **members})
        for name in ("run", "part_avals", "coerce"):
            assert (f"no method {name}" in str(caught.value)) == (name not in have)
    with pytest.raises(RegistrationError, match="for `rules`"):
        type("Bare", (ext.Carrier,), {"rules": {}})
    type("Base", (ext.Carrier,), {})  # a base for others has no table yet
    own = {"rules": Tagged.rules, "apply": lambda self, prim, args, params: args}
    type("Own", (ext.Carrier,), own)  # does everything by itself
    aval, tagged_ = ext.Aval((), np.float64), Tagged(None, 1)
    for use, name in (
        (lambda: tagged_.join(aval, "f", "g"), "join"),
        (lambda: tagged_.whole(aval), "whole"),
        (lambda: ext.Carrier(None).run(mul, None, (), {}), "run"),
        (lambda: ext.Carrier(None).part_avals(aval, "f"), "part_avals"),
        (lambda: ext.Carrier(None).coerce(aval, (), "f", "g"), "coerce"),
    ):
        with pytest.raises(plait.PlaitError) as caught:
            use()
        assert name in f"{caught.value} {caught.value.fix}"


# ---- what a primitive does -------------------------------------------------------------------


def test_what_it_owns_and_what_it_leaves():
    """Its rules see operations on its values only; all others go to its parent."""
    assert tagged(lambda v: v * v, f64(3)) == ("tagged", 90)
    assert tagged(lambda v: v * (f64(2) * 2.0), f64(3)) == ("tagged", 120)
    assert tagged(lambda v: f64(2) * 3.0, f64(3)) == (None, 6)


def test_rules_run_under_the_parent():
    """What a rule does is not seen by the carrier again, and the carrier is current afterwards."""
    table = ext.RuleTable("core_carrier_seen")

    class Seen(Tagged):
        rules = table

    who = []

    @table.rule(mul)
    def _(carrier, xs):
        who.append(ext.current())
        return mul.bind(*xs)

    ground = ext.current()
    for parent in (ground, Tagged(ground, 1)):
        carrier, x = Seen(parent, 1), f64(3)
        with ext.opened(carrier):
            assert carrier.split(carrier.lift(x.aval, "tagged", (x,)) * 2.0)[1][0].item() == 6
            assert ext.current() is carrier
        assert who.pop() is parent
    assert ext.current() is ground


def test_a_rule_that_fails_leaves_its_carrier_current():
    table = ext.RuleTable("core_carrier_fails")

    class Fails(Tagged):
        rules = table

    table.rule(mul, ext.Elementwise)(lambda *args, **params: 1 / 0)
    ground, x = ext.current(), f64(1)
    with ext.opened(Fails(ground, 1)) as carrier:
        v = carrier.lift(x.aval, "tagged", (x,))
        for f in (lambda: v * v, lambda: lax.sin(v), lambda: plait.jit(lambda v: v * v)(v)):
            with pytest.raises(ZeroDivisionError):
                f()
            assert ext.current() is carrier
    assert ext.current() is ground


cube = ext.Primitive("core_carrier.cube", lambda x: x)
ext.expand_rules.rule(cube)(lambda x: x * x * x)
powers = ext.Primitive("core_carrier.powers", lambda x: [x, x], many=True)
ext.expand_rules.rule(powers)(lambda x: (x * x, x * x * x))


def test_expand_rules_are_the_last_resort():
    """Without a rule of its own the carrier sees the operations that the primitive is made of."""
    assert tagged(cube, f64(2)) == ("tagged", 8 * 100)
    assert tagged(lambda v: powers(v)[0], f64(2)) == ("tagged", 40)
    assert tagged(lambda v: powers(v)[1], f64(2)) == ("tagged", 800)
    assert isinstance(powers(f64(2)), list)

    class Own(Tagged):
        rules = ext.RuleTable("core_carrier_own")

    Own.rules.rule(cube)(lambda carrier, xs: xs[0] * 0.0)
    with ext.opened(Own(ext.current(), 1)) as carrier:
        x = f64(2)
        assert carrier.split(cube(carrier.lift(x.aval, "tagged", (x,))))[1][0].item() == 0


def test_expanded_lists_stay_lists():
    with ext.opened(Tagged(ext.current(), 1)) as carrier:
        x = f64(2)
        out = powers(carrier.lift(x.aval, "tagged", (x,)))
        assert type(out) is list and [carrier.split(o)[1][0].item() for o in out] == [4, 8]


def test_no_rule():
    """A missing rule names the table, the primitive, and both ways to add one."""
    with pytest.raises(
        MissingRule, match="'core_carrier_tagged' rule for primitive 'core.sin'"
    ) as e:
        tagged(lax.sin, f64(1))
    assert "core_carrier_tagged_rules.rule(sin)" in e.value.fix
    assert "expand_rules.rule(sin)" in e.value.fix


def test_rules_for_traits():
    """The rule of a trait is given the primitive; the primitive's own rule comes before it."""
    table = ext.RuleTable("core_carrier_traits")

    class Traits(Tagged):
        rules = table

    table.rule(ext.Elementwise)(lambda prim, carrier, xs, **params: prim.bind(*xs, **params) + 1.0)
    table.rule(sin)(lambda carrier, xs: xs[0] * 0.0)
    with ext.opened(Traits(ext.current(), 1)) as carrier:
        x = f64(3)
        v = carrier.lift(x.aval, "tagged", (x,))
        found = [carrier.split(o)[1][0].item() for o in (v * v, v + v, lax.sin(v))]
    assert found == [10, 7, 0]


@pytest.mark.feature("C09")
def test_checks_compare_results_with_types():
    """Under the setting `checks` what a rule returns has the type of the primitive's result."""
    table = ext.RuleTable("core_carrier_wrong")

    class Wrong(Tagged):
        rules = table

    table.rule(mul)(lambda carrier, xs: (xs[0] * xs[1]).astype(np.float32))
    table.rule(add)(lambda carrier, xs: xs[0] + xs[1])
    said = ext.Primitive("core_carrier.said", lambda x: x)
    ext.expand_rules.rule(said)(lambda x: x[None])
    table.rule(ext.Structural)(lambda prim, carrier, xs, **params: prim.bind(*xs, **params))
    x = f64(3)
    with plait.config(checks=True), ext.opened(Wrong(ext.current(), 1)) as carrier:
        v = carrier.lift(x.aval, "tagged", (x,))
        assert carrier.split(v + v)[1][0].item() == 6
        with pytest.raises(TypeRule, match=r"'core_carrier_wrong' rule of core.mul .* f32"):
            v * v
        with pytest.raises(TypeRule, match="'expand' rule of core_carrier.said"):
            said(v)
    with plait.config(checks=False), ext.opened(Wrong(ext.current(), 1)) as carrier:
        v = carrier.lift(x.aval, "tagged", (x,))
        assert carrier.split(v * v)[1][0].dtype == np.float32


# ---- operations with programs ----------------------------------------------------------------


def test_own_rules_for_operations_with_programs():
    """`rule(carrier, args, params) -> lifted values` replaces what the wiring says, under the
    parent; without one the program is taken through."""
    table = ext.RuleTable("core_carrier_calls")

    class Calls(Tagged):
        rules = table

    seen = []

    @table.rule(call)
    def _(carrier, args, params):
        seen.append(ext.current())
        outs = call.bind(*[carrier.split(a)[1][0] for a in args], **params)
        return [carrier.lift(o.aval, "tagged", (o,)) for o in outs]

    ground, x = ext.current(), f64(3)
    with ext.opened(Calls(ground, 10)) as carrier:
        out = plait.jit(lambda v: v * v)(carrier.lift(x.aval, "tagged", (x,)))
        assert carrier.split(out)[1][0].item() == 9 and ext.current() is carrier
    assert seen == [ground]
    assert tagged(plait.jit(lambda v: v * v), x) == ("tagged", 90)


class Ruled(ext.Wiring):
    """A program, and another one that says the same to carriers that keep custom rules."""

    custom = "core_carrier kind"

    def slots(self, params):
        p = params["program"]
        n, m = len(p.inputs), len(p.outputs)
        ins, outs = range(n), range(n, n + m)
        rule = params["rule"]
        rule = rule if isinstance(rule, Thunk) else Thunk(lambda: params["rule"])
        rules = [Ends(rule, tuple(ins), tuple(outs))]
        return ext.Slots(ins, outs, [(p, ins, outs)], n + m, rules=rules)

    def rebuild(self, params, programs, parts, operands, extra):
        return [*extra, *operands], {"program": programs[0], "rule": programs[1]}

    def erase(self, prim, params):
        return call, {"program": params["program"]}


ruled = ext.Primitive(
    "core_carrier.ruled",
    lambda *xs, program, rule: program.out_avals,
    many=True,
    higher=Ruled(),
)
lowered = []


@ext.expand_rules.rule(ruled)
def _(*xs, program, rule):
    made = rule.get() if isinstance(rule, Thunk) else rule
    lowered.append(made)
    return ext.evaluate(made, xs)


class Commuting(Tagged):
    rules = ext.RuleTable("core_carrier_commuting")
    commutes = frozenset({"core_carrier kind"})

    def whole(self, aval):
        return "tagged"


Commuting.rules.rule(mul)(lambda c, xs: mul.bind(*xs) * c.factor)


@pytest.mark.parametrize(("kind", "want"), [(Tagged, 90), (Commuting, 270)])
def test_custom_rules_are_kept_or_erased(kind, want):
    """A carrier that commutes with a kind of custom rule keeps and lifts it; others see the
    function without it, and never half of each.  The rule says 3 * x * x where the function is
    x * x, which tells who was asked."""
    aval = f64(3).aval
    function = ext.staged(lambda x: [x * x], [aval])
    rule = ext.staged(lambda x: [x * x + x * x + x * x], [aval])
    add_rule = lambda c, xs: xs[0] + xs[1]  # noqa: E731
    if not kind.rules.own(add):
        kind.rules.rule(add)(add_rule)
    del lowered[:]
    opened = ext.opened(kind(ext.current(), 10))
    with warnings.catch_warnings(record=True) as warned, opened as carrier:
        warnings.simplefilter("always")
        x = f64(3)
        (out,) = ruled.bind(carrier.lift(x.aval, "tagged", (x,)), program=function, rule=rule)
        form, (value,) = carrier.split(out)
    assert form == "tagged" and value.item() == want
    assert len(lowered) == (1 if kind is Commuting else 0)
    said = [str(w.message) for w in warned]
    assert len(said) == (0 if kind is Commuting else 1)
    for text in said:
        assert "tagged lost the core_carrier kind rule" in text and "test_carrier.Tagged" in text
        assert 'loses = frozenset(("core_carrier kind",))' in text


@pytest.mark.parametrize(
    ("rule", "form"),
    [
        (lambda x, y: [x * y, y], None),
        (lambda x, y: [x * y, y * x], "tagged"),  # the derivative of a constant that varies
        (lambda x, y: 1 / 0, "tagged"),  # nobody may ever use it
    ],
)
def test_rules_are_asked_for_what_the_function_leaves_plain(rule, form):
    """A result that does not depend on what is lifted stays plain, unless the rule says otherwise
    or cannot be asked."""
    aval = f64(3).aval
    function = ext.staged(lambda x, y: [x * y, y], [aval, aval])
    thunk = Thunk(lambda: ext.staged(rule, [aval, aval]))
    with ext.opened(Commuting(ext.current(), 10)) as carrier:
        lifted = carrier.lift(aval, "tagged", (f64(3),))
        forms = solve(carrier, ruled, [lifted, f64(2)], {"program": function, "rule": thunk})
        assert forms == ["tagged", None, "tagged", form]
        plain = solve(carrier, ruled, [f64(3), f64(2)], {"program": function, "rule": thunk})
        assert plain == [None] * 4


def test_a_rule_that_calls_its_function_is_asked_once():
    """Asking it stages the function again, whose rule is another one, and so on for ever."""
    aval = f64(3).aval
    made = []

    def call(x, y):
        function = ext.staged(lambda x, y: [x * y, y], [aval, aval])
        return ruled.bind(x, y, program=function, rule=Thunk(again))

    def again():
        made.append(1)
        return ext.staged(lambda x, y: call(x, y), [aval, aval])

    with ext.opened(Commuting(ext.current(), 10)) as carrier:
        params = ext.staged(call, [aval, aval]).eqns[0].params
        lifted = carrier.lift(aval, "tagged", (f64(3),))
        # what is said of the inner call is right for any value
        assert solve(carrier, ruled, [lifted, f64(2)], params)[2:] == ["tagged", "tagged"]
    assert made == [1]


def test_rules_keep_what_is_plain():
    """With no lifted operand nothing is lifted."""
    aval = f64(3).aval
    function = ext.staged(lambda x, y: [x * y, y], [aval, aval])
    with ext.opened(Commuting(ext.current(), 10)) as carrier:
        x = f64(3)
        v = carrier.lift(x.aval, "tagged", (x,))
        outs = ruled.bind(v, f64(2), program=function, rule=function)
        assert [carrier.form_of(o) for o in outs] == ["tagged", None]
        assert [carrier.split(o)[1][0].item() for o in outs] == [60, 2]
        outs = ruled.bind(f64(3), f64(2), program=function, rule=function)
        assert [carrier.form_of(o) for o in outs] == [None, None]
        assert [o.item() for o in outs] == [6, 2]


# ---- named axes and sizes ---------------------------------------------------------------------


def test_operations_that_speak_of_its_axis():
    """A carrier sees an operation ambient to an axis that concerns it although no operand is its
    own, alone and in programs; one that others bind hides it."""
    table = ext.RuleTable("core_carrier_named")
    index = ext.Primitive(
        "core_carrier.index",
        lambda *, name: ext.Aval((), np.float64),
        ambient=lambda params: (params["name"],),
    )

    class Named(Tagged):
        rules = table

        def concerns(self, axes):
            return self.factor in axes

    table.rule(index)(lambda carrier, xs, *, name: ext.as_value(f64(5)))
    table.rule(mul)(lambda carrier, xs: xs[0] * xs[1])
    ground = ext.current()
    with ext.opened(Named(ground, "i")) as carrier:
        for f in (lambda: index.bind(name="i"), plait.jit(lambda: index.bind(name="i"))):
            out = f()
            assert carrier.form_of(out) == "tagged" and carrier.split(out)[1][0].item() == 5
        with pytest.raises(AxisError, match="'j'"):
            index.bind(name="j")
        inner = Named(carrier, "j")
        with ext.opened(inner):  # the inner one leaves the name of the outer one alone
            out = index.bind(name="i")
            assert inner.form_of(out) is None and carrier.form_of(out) == "tagged"


# ---- afterwards ------------------------------------------------------------------------------


@pytest.mark.feature("C01")
def test_values_of_a_closed_carrier():
    """Using a value after its transformation ended is an error that says where it was made."""
    kept = []
    tagged(lambda v: kept.append(v * v) or v, f64(3))
    with pytest.raises(UnexpectedTracerError, match=r"test_carrier.py:\d+"):
        kept[0] * 2.0
    with pytest.raises(UnexpectedTracerError, match="outlived tagged of"):
        tagged(lambda v: v * kept[0], f64(1))


# ---- what programs are made for -----------------------------------------------------------------


class Binding(ext.Wiring):
    """A program in which `i` is somebody else's axis."""

    def binds(self, params):
        return frozenset({"i"})


bound = ext.Primitive(
    "core_carrier.bound", lambda *xs, program: program.out_avals, many=True, higher=Binding()
)
place = ext.Primitive(
    "core_carrier.place",
    lambda *, name: ext.Aval((), np.float64),
    ambient=lambda params: (params["name"],),
)


class Placed(Tagged):
    """Maps over an axis that is called `factor`; hidden, it has no name."""

    rules = ext.RuleTable("core_carrier_placed")

    def concerns(self, axes):
        return self.factor in axes

    def hidden_by(self, axes):
        return type(self)(self.parent, None, of=self.of) if self.concerns(axes) else self


Placed.rules.rule(place)(lambda carrier, xs, *, name: ext.as_value(f64(5)))
Placed.rules.rule(mul)(lambda carrier, xs: xs[0] * xs[1])


@pytest.mark.parametrize(("axis", "forms"), [("i", ["tagged", None]), ("j", ["tagged", "tagged"])])
def test_axes_that_others_bind(axis, forms):
    """In a program whose operation binds the name of its axis a carrier does not see that name;
    another name it sees."""
    program = ext.staged(
        lambda x: [x * place.bind(name=axis), place.bind(name=axis)], [f64(3).aval]
    )
    stage = ext.trace.Stage()
    carrier = Placed(stage, axis)
    x = stage.input(f64(3).aval)
    with ext.opened(carrier):
        outs = bound.bind(carrier.lift(x.aval, "tagged", (x,)), program=program)
    assert [carrier.form_of(o) for o in outs] == forms
    (equation,) = stage.eqns
    inside = [e.prim for e in equation.params["program"].eqns]
    assert inside.count(place) == (2 if axis == "i" else 0)


class Offset(Tagged):
    """Every product gets the ambient value added."""

    rules = ext.RuleTable("core_carrier_offset")
    fields = ()


Offset.rules.rule(mul)(lambda carrier, xs: xs[0] * xs[1] + carrier.ambient[0])


def test_types_of_ambient_values():
    """Programs made for an ambient value of one type are not used for one of another."""
    f = plait.jit(lambda x: x * x)
    x = f64([1, 2])
    for shift in (f64(10), f64([10, 20]), pnp.asarray(np.float32(3)), f64(10)):
        with ext.opened(Offset(ext.current(), ambient=(shift,))) as carrier:
            (out,) = carrier.split(f(carrier.lift(x.aval, "tagged", (x,))))[1]
        np.testing.assert_array_equal(out, np.array([1, 4]) + np.asarray(shift))


def test_lifted_programs_hold_nothing_dead():
    """What no result needs is not in the program on components."""
    program = ext.staged(lambda x, y: [x * x, (y * y) * y][:1], [f64(1).aval] * 2)
    assert len(program.eqns) == 3
    made, forms = Tagged(None, 10).lift_program(program, ("tagged", "tagged"))
    assert forms == ("tagged",) and len(made.eqns) == 2  # a product, times the factor
    assert [o.item() for o in ext.evaluate(made, [f64(3), f64(4)])] == [90]


def test_forms_that_are_wanted():
    """Without them results have the least forms; with them, those."""
    program = ext.staged(lambda x, y: [x * x, y], [f64(1).aval] * 2)
    carrier = Tagged(None, 10)
    assert carrier.lift_program(program, ("tagged", None))[1] == ("tagged", None)
    made, forms = carrier.lift_program(program, ("tagged", None), ("tagged", "tagged"))
    assert forms == ("tagged", "tagged") and len(made.outputs) == 2
    assert carrier.lift_program(program, ("tagged", None)) is carrier.lift_program(
        program, ("tagged", None)
    )


leaks = []
leaky = ext.Primitive("core_carrier.leaky", lambda x: x)
ext.expand_rules.rule(leaky)(lambda x: leaks.append(x) or x * x)


@pytest.mark.feature("C01")
def test_values_that_rules_keep():
    """What an expand rule keeps of a carrier in a program has escaped when the program is made."""
    with ext.opened(Tagged(ext.current(), 1)) as carrier:
        x = f64(3)
        plait.jit(lambda x: leaky(x))(carrier.lift(x.aval, "tagged", (x,)))
        kept = [v for v in leaks if isinstance(v, ext.Lifted)]
        assert kept and all(v.by.closed for v in kept)
        for v in kept:
            with pytest.raises(UnexpectedTracerError, match="outlived"):
                v * 2.0


def test_custom_rules_are_lifted_once():
    """For the same forms and carrier; another attribute is another rule."""
    aval, seen = f64(3).aval, []

    class Watching(Commuting):
        rules = ext.RuleTable("core_carrier_watching")

    @Watching.rules.rule(mul)
    def _(carrier, xs):
        seen.append(xs)
        return mul.bind(*xs) * carrier.factor

    function = ext.staged(lambda x: [x * x], [aval])
    rule = Thunk(lambda: ext.staged(lambda x: [x * x * x], [aval]))

    def run(factor):
        with ext.opened(Watching(ext.current(), factor)) as carrier:
            (out,) = ruled.bind(
                carrier.lift(aval, "tagged", (f64(2),)), program=function, rule=rule
            )
            return carrier.split(out)[1][0].item()

    assert run(10) == 800
    first = len(seen)
    assert run(10) == 800 and len(seen) == first
    assert run(3) == 72 and len(seen) == 2 * first


class Doubled(Tagged):
    """Two components of the value's type."""

    rules = ext.RuleTable("core_carrier_doubled")
    fields = ()

    def part_avals(self, aval, form):
        return aval, aval

    def coerce(self, aval, parts, f, g):
        return parts[0], parts[0]

    def whole(self, aval):
        return "whole"

    def run(self, prim, rule, args, params):
        out = rule(*zip(*[self.to_form(a, "whole") for a in args]))
        return self.lift(out[0].aval, "whole", out)


Doubled.rules.rule(mul)(lambda a, b: (a[0] * a[1], b[0] * b[1]))


@pytest.mark.parametrize("more", [0, 1, 3])
def test_residuals_have_the_forms_they_come_in(more):
    """Where rules have inputs and outputs of which the operation does not know how many there are,
    those of the second are what the first gives, each in its own form."""
    aval = f64(1).aval
    first = Thunk(lambda: ext.staged(lambda x, z: [z, *[x * x, z * z] * more], [aval] * 2))

    def product(*vs):
        out = vs[-1]
        for v in vs[:-1]:
            out = out * v
        return [out]

    second = Thunk(lambda: ext.staged(product, [aval] * (2 * more + 1)))
    forms = ["whole", None]
    forward = lift_rule(Doubled(None), Ends(first, (0, 1), (1, ...)), forms)
    back = lift_rule(Doubled(None), Ends(second, (..., 1), (0,)), forms, forward)
    again = lift_rule(Doubled(None), Ends(second, (..., 1), (0,)), forms, forward)
    assert again is back, "one rule for these forms"
    assert back.made is None and forward.made is None, "they are made when they are asked for"
    out = [o.item() for o in ext.evaluate(back.get(), [f64(2)] * len(back.get().inputs))]
    assert len(back.get().inputs) == 3 * more + 1, "one that is whole, one that is not"
    assert out == [2.0 ** (2 * more + 1)] * 2
    assert list(forward.rest) == ["whole", None] * more
    xs = [f64(3), f64(5), f64(7)]
    got = [o.item() for o in ext.evaluate(forward.get(), xs)]
    assert got == [7, *[9, 25, 49] * more]


def test_cotangents_of_what_is_plain_are_collected():
    """By the transpose of what makes a plain value whole: both components are the value."""
    aval = f64(1).aval
    rule = Thunk(lambda: ext.staged(lambda y, ct: [y * ct, ct], [aval] * 2))

    class Summing(Doubled):
        def collect(self, aval, parts, f, g):
            return (parts[0] + parts[1],)

    ends = Ends(rule, (1, 2), (0, 1), (2,))
    made = lift_rule(Summing(None), ends, [None, "whole", "whole"]).get()
    got = [o.item() for o in ext.evaluate(made, [f64(2), f64(3), f64(5), f64(7)])]
    assert got == [2 * 5 + 3 * 7, 5, 7]
    mixed = Ends(rule, (1, 2), (0, 1), (1, 2))
    with pytest.raises(plait.errors.PlaitError, match="no method `spread`"):
        lift_rule(Summing(None), mixed, [None, None, "whole"]).get()


@pytest.mark.parametrize("kind", [Commuting, Doubled])
def test_without_collect_rules_for_reverse_mode_have_everything_whole(kind):
    """So that no cotangent of a plain value comes in another form."""
    aval = f64(3).aval
    function = ext.staged(lambda x, y: [x, y], [aval, aval])
    rule = Thunk(lambda: ext.staged(lambda x, y: [x, y], [aval, aval]))

    class Backwards(Ruled):
        def slots(self, params):
            w = super().slots(params)
            w.rules = (Ends(rule, w.outputs, w.operands, w.outputs),)
            return w

    prim = ext.Primitive(
        "core_carrier.backwards_" + kind.__name__,
        lambda *xs, program, rule: program.out_avals,
        many=True,
        higher=Backwards(),
    )
    carrier = kind(ext.current(), *[10] * len(kind.fields))
    form = carrier.whole(aval)
    with ext.opened(carrier):
        lifted = carrier.lift(aval, form, (f64(3),) * len(carrier.part_avals(aval, form)))
        forms = solve(carrier, prim, [lifted, f64(2)], {"program": function, "rule": rule})
    assert forms == [form] * 4


def test_lifted_inputs_have_the_lines_of_the_inputs():
    program = ext.staged(lambda x: [x * x], [f64(1).aval])
    line = program.inputs[0].where
    made, _ = Doubled(None).lift_program(program, ("whole",))
    assert [v.where for v in made.inputs] == [line, line]
    assert [e.where for e in made.eqns] == [program.eqns[0].where] * 2


def test_a_closed_carrier_that_is_entered_again():
    """Its values have escaped there, too."""
    carrier, x = Tagged(ext.current(), 10), f64(3)
    with ext.opened(carrier):
        v = carrier.lift(x.aval, "tagged", (x,))
    with ext.use(carrier), pytest.raises(UnexpectedTracerError, match="outlived"):
        v * 2.0
    assert ext.current() is carrier.parent
