"""The errors that the author of a carrier gets for ordinary mistakes.

Invariant: the error names the carrier, and the line where its method or rule is defined; it never
names a line of the function that is transformed, which is in a file of its own here.
"""

import importlib
import pkgutil
import re
import types

import numpy as np
import pytest

import plait
from plait import ext
from plait.errors import CarrierError, PlaitError, RegistrationError

USER = types.ModuleType("user")
exec(
    compile(
        """
import plait
from plait import lax

def loop(x):
    return lax.fori_loop(0, 3, lambda i, y: lax.sin(y) + 1.0, x)

def branch(x):
    return lax.cond(True, lax.sin, lambda x: lax.full_like(x, 1.0), x)

def eager(x):
    return lax.sin(x) * lax.full_like(x, 2.0)

def mistaken(x):
    return lax.concatenate([x, x[:, None]], 0)
""",
        "/home/user/model.py",
        "exec",
    ),
    USER.__dict__,
)


def pair(prim, xs, ys, **params):
    return prim.bind(*xs, **params), prim.bind(*ys, **params)


def part_avals(self, aval, form):
    return aval, aval


def coerce(self, aval, parts, f, g):
    return parts[0], parts[0]


def run(self, prim, rule, args, params):
    pairs = [self.to_form(a, "pair") for a in args]
    first, second = rule([p[0] for p in pairs], [p[1] for p in pairs], **params)
    return self.lift(first.aval, "pair", (first, second))


def carrier(number=iter(range(1000)), rule=pair, **methods):
    """A carrier of pairs, with some methods replaced."""
    table = ext.RuleTable(f"core_carrier_mistakes_{next(number)}", doc="two results")
    table.rule(ext.Elementwise, ext.Structural)(rule)
    body = {"rules": table, "does": "pairs", "part_avals": part_avals, "coerce": coerce, "run": run}
    return type("Pairs", (ext.Carrier,), {**body, "loses": frozenset(("derivative",)), **methods})


def applied(kind, f):
    x = ext.as_value(np.ones(3, np.float32))
    with ext.opened(kind(ext.current(), of=f)) as c:
        return c.to_form(ext.as_value(f(c.lift(x.aval, "pair", (x, x)))), "pair")


def lifts(x, form="pair", parts=2):
    return lambda self, prim, rule, args, params: self.lift(
        x(args[0].aval), form, self.to_form(args[0], "pair")[:parts]
    )


def height(form):
    return form[1] if isinstance(form, tuple) else 0


def growing(**methods):
    """A carrier whose forms rise by one with each operation, from "pair"."""

    def run(self, prim, rule, args, params):
        first = self.to_form(args[0], self.form_of(args[0]) or "pair")
        form = ("pair", height(self.form_of(args[0])) + 1)
        return self.lift(args[0].aval, form, first)

    highest = lambda self, aval, f, g: max(f, g, key=height)
    return dict(run=run, **{"join": highest, **methods})


SAME = lambda aval: aval
MISTAKES = {
    "rule: one value": (
        dict(rule=lambda prim, xs, ys, **p: prim.bind(*xs, **p)),
        "run .*ValueError",
    ),
    "rule: three values": (dict(rule=lambda prim, xs, ys, **p: (1, 2, 3)), "run .*ValueError"),
    "rule: numbers": (dict(rule=lambda prim, xs, ys, **p: (0.0, 0.0)), "run .*AttributeError"),
    "rule: elements": (
        dict(rule=lambda prim, xs, ys, **p: (float(xs[0]), ys[0])),
        "rule .*(Concretization|Type)Error",
    ),
    "run: None": (dict(run=lambda self, *a: None), "run must return one value"),
    "run: a pair": (
        dict(run=lambda self, prim, rule, args, params: (args[0], args[0])),
        "run must return one value",
    ),
    "run: another type": (
        dict(run=lifts(lambda a: a.with_shape((7,)))),
        "run .*returned a value of type f32.7. for f32.3.",
    ),
    "run: one part": (dict(run=lifts(SAME, parts=1)), "part_avals gives the types"),
    "run: a list as form": (dict(run=lifts(SAME, form=["pair"])), "not hashable"),
    "run: two forms": (dict(run=lifts(SAME, form="other")), "join is not defined"),
    "part_avals: one": (dict(part_avals=lambda self, aval, form: (aval,)), "part_avals gives"),
    "part_avals: a type": (
        dict(part_avals=lambda self, aval, form: aval),
        "part_avals must return",
    ),
    "part_avals: dtype": (
        dict(part_avals=lambda self, aval, form: (aval, aval.with_dtype(np.dtype("int32")))),
        "part_avals gives the types",
    ),
    "part_avals: rank": (
        dict(part_avals=lambda self, aval, form: (aval, aval.with_shape((2, *aval.shape)))),
        "part_avals gives the types",
    ),
    "part_axes: one": (
        dict(part_axes=lambda self, aval, form: ((0,),)),
        "part_axes gives the axes",
    ),
    "part_axes: beyond": (
        dict(part_axes=lambda self, aval, form: ((0,), (1,))),
        "part_axes returned",
    ),
    "coerce: one": (
        dict(coerce=lambda self, aval, parts, f, g: parts),
        "coerce returned components",
    ),
    "coerce: a number": (
        dict(coerce=lambda self, aval, parts, f, g: (parts[0], 0.0)),
        "coerce must give a tuple",
    ),
    "coerce: a scalar": (
        dict(coerce=lambda self, aval, parts, f, g: (parts[0], ext.as_value(np.float32(0)))),
        "coerce returned components",
    ),
    "join: without end": (growing(), r"Pairs\.join does not settle the forms of core\.scan"),
    "join: widened without end": (
        growing(widen=lambda self, aval, f, g: ("pair", height(g) + 1)),
        r"Pairs\.widen does not settle the forms of core\.scan",
    ),
    "join: a sum": (
        growing(join=lambda self, aval, f, g: ("pair", height(f) + height(g))),
        "join gives .* which it should be above",
    ),
    "join: None": (growing(join=lambda self, aval, f, g: None), "join returned None"),
    "join: a list": (growing(join=lambda self, aval, f, g: ["pair"]), "not hashable"),
    "no rules": (dict(rules=None), "Pairs.rules is missing"),
}


JOINS = [name for name in MISTAKES if name.startswith("join")]
IDLE = {
    "loop": ["coerce: one"],  # the body's numbers are coerced first, and the rule fails
    "branch": ["run: two forms", *JOINS],
    "eager": ["run: two forms", "part_axes: one", "part_axes: beyond", "rule: elements", *JOINS],
}
"""The mistakes that do not matter to a function."""


@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.parametrize("f", [USER.loop, USER.branch, USER.eager], ids=["loop", "branch", "eager"])
def test_a_mistake_is_the_authors(name, f):
    """With checks, also where no program is lifted; a mistake may not matter to every function."""
    methods, said = MISTAKES[name]
    kind = carrier(**methods)
    if name in IDLE.get(f.__name__, ()):
        return
    with plait.config(checks=True), pytest.raises(CarrierError, match=said) as e:
        applied(kind, f)
    assert "Pairs" in str(e.value) and e.value.fix
    assert "model.py" not in e.value.where
    assert name == "no rules" or __file__ in e.value.where


@pytest.mark.parametrize("name", ["part_avals: dtype", "run: another type", "coerce: a scalar"])
def test_a_mistake_is_found_without_checks(name):
    with plait.config(checks=False), pytest.raises(CarrierError, match=MISTAKES[name][1]):
        applied(carrier(**MISTAKES[name][0]), USER.branch if "coerce" in name else USER.loop)


@pytest.mark.parametrize("name", JOINS)
def test_a_join_is_judged_without_checks(name):
    with plait.config(checks=False), pytest.raises(CarrierError, match=MISTAKES[name][1]):
        applied(carrier(**MISTAKES[name][0]), USER.loop)


def test_forms_that_grow_may_end():
    """By a join with a highest form, or by `widen`; then the loop is lifted in that form."""
    top = lambda self, aval, f, g: "pair" if "pair" in (f, g) else max(f, g)
    end = lambda self, aval, f, g: ("pair", 99)
    many = lambda self, aval, f, g: max(f, g, key=lambda h: min(height(h), 99))
    for methods in (dict(join=top), dict(join=many, widen=end)):
        first, second = applied(carrier(**growing(**methods)), USER.loop)
        np.testing.assert_array_equal(np.asarray(first), np.ones(3))
        np.testing.assert_array_equal(np.asarray(second), np.ones(3))


def test_without_a_mistake_nothing_is_raised():
    for f in (USER.loop, USER.branch, USER.eager):
        first, second = applied(carrier(), f)
        np.testing.assert_array_equal(np.asarray(first), np.asarray(second))


def test_methods_that_are_missing_are_named_at_the_class():
    for name in ("run", "part_avals", "coerce"):
        body = {"part_avals": part_avals, "coerce": coerce, "run": run, "rules": carrier().rules}
        del body[name]
        with pytest.raises(RegistrationError, match=f"Broken has no method {name}"):
            type("Broken", (ext.Carrier,), body)


def test_errors_of_the_user_stay_his():
    """An error that a rule raises on purpose, and one of the function itself."""

    def refusing(prim, xs, ys, **params):
        raise ValueError("deliberate")

    with pytest.raises(ValueError, match="^deliberate$") as e:
        applied(carrier(rule=refusing), USER.eager)
    assert not isinstance(e.value, PlaitError)

    def telling(prim, xs, ys, **params):
        raise PlaitError("there is a unit", fix="divide by it")

    with pytest.raises(PlaitError, match="there is a unit") as e:
        applied(carrier(rule=telling), USER.eager)
    assert not isinstance(e.value, CarrierError)
    with pytest.raises(PlaitError) as e:
        applied(carrier(), USER.mistaken)
    assert not isinstance(e.value, CarrierError)


def test_a_missing_rule_names_the_primitive_by_a_name_that_can_be_imported():
    """The variable of a primitive is often another than its name, which a function has."""
    table = carrier().rules
    count = 0
    for found in pkgutil.iter_modules(plait.ext.ops.__path__):
        module = importlib.import_module(f"plait.ext.ops.{found.name}")
        for prim in [v for v in vars(module).values() if isinstance(v, ext.Primitive)]:
            fix = table.missing(prim).fix
            (said,) = set(re.findall(r"rule\((\w+)\)", fix))
            assert getattr(module, said) is prim, (module.__name__, fix)
            count += 1
    assert count > 100
