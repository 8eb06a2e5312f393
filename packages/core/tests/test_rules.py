"""Rule tables: what may be registered, which rule answers, and what is said where none does.

Invariant: rules return names, so that an answer tells whose it is.
"""

import functools
import types

import pytest

import plait
from plait import ext
from plait._plugins.rules import Signature, again, tables
from plait.errors import RegistrationError
from plait.ext.errors import DuplicateRule, MissingRule
from plait.ext.ops import control_flow, elementwise, reduction
from plait.ext.ops.control_flow import call
from plait.ext.ops.elementwise import cos, sin


@pytest.fixture
def table():
    """A fresh table; a table may be made again by the module that made it."""
    return ext.RuleTable("core_rules", doc="a name")


def primitive(verb, *traits, rule=lambda x: x, **options):
    return ext.Primitive(f"core_rules.{verb}", rule, traits=traits, **options)


first = primitive("first", ext.Linear, ext.Elementwise)
second = primitive("second")


# ---- which rule answers -----------------------------------------------------------------------


def test_own_rules_come_before_those_of_traits(table):
    """The primitive's own rule, else that of its first trait that has one, which is given it."""
    assert table.find(first) is None and table.own(first) is None
    table.rule(ext.Elementwise)(lambda prim, x: f"elementwise {prim} {x}")
    assert table.find(first)(3) == "elementwise core_rules.first 3"
    table.rule(ext.Linear)(lambda prim, x: f"linear {prim} {x}")
    assert table[first](3) == "linear core_rules.first 3"
    assert table.own(first) is None and table.own(ext.Linear) is not None
    rule = table.rule(first)(lambda x: f"own {x}")
    assert table[first](3) == "own 3" and table.find(first) is table.own(first) is rule
    assert table.find(second) is None


def test_traits_answer_in_the_order_of_the_primitive(table):
    table.rule(ext.Linear)(lambda prim: "linear")
    table.rule(ext.Elementwise)(lambda prim: "elementwise")
    turned = primitive("turned", ext.Elementwise, ext.Linear)
    assert (table[first](), table[turned]()) == ("linear", "elementwise")


def test_one_rule_for_several_keys(table):
    @table.rule(first, second, ext.Structural)
    def rule(*args):
        return len(args)

    assert rule(1, 2) == 2, "the decorator gives the function back"
    assert table[first](1) == table[second](1) == 1
    moves = primitive("moves", ext.Structural)
    assert table[moves](1) == 2


def test_what_was_found_is_forgotten_when_a_rule_comes(table):
    for want in (None, "trait", "own"):
        found = table.find(first)
        assert (found and found(1)) == want
        if want is None:
            table.rule(ext.Linear)(lambda prim, x: "trait")
        elif want == "trait":
            table.rule(first)(lambda x: "own")


# ---- two rules for one cell -------------------------------------------------------------------


def test_a_second_rule_is_refused(table):
    table.rule(first)(lambda: "held")
    with pytest.raises(
        DuplicateRule, match="two 'core_rules' rules for core_rules.first"
    ) as caught:
        table.rule(first)(lambda: "new")
    assert str(caught.value).count("test_rules.") >= 2 and "override=True" in caught.value.fix
    assert table[first]() == "held"


def test_overriding(table):
    """It replaces a rule whether it comes first or last; two of it are refused."""
    table.rule(first)(lambda: "held")
    table.find(first)
    table.rule(first, override=True)(lambda: "new")
    assert table[first]() == "new"
    with pytest.raises(DuplicateRule):
        table.rule(first, override=True)(lambda: "third")
    table.rule(first)(lambda: "late")
    assert table[first]() == "new"
    table.rule(second, override=True)(lambda: "early")
    table.rule(second)(lambda: "late")
    assert table[second]() == "early"


def test_a_module_that_is_imported_anew(table):
    """The same function of another import of its module replaces the first; another function of
    that name in the same module does not."""

    def module():
        scope = types.ModuleType("core_rules_module").__dict__
        exec("def rule(): return 'from a module'", scope)
        return scope["rule"]

    one, other = module(), module()
    assert again(one, other) and not again(one, one) and not again(one, lambda: 1)
    table.rule(first)(one)
    table.rule(first)(other)
    assert table.own(first) is other


def test_tables_of_one_name():
    """A module may make its table again; another module's is refused, naming both."""
    here = ext.RuleTable("core_rules_name")
    assert tables()["core_rules_name"] is here and repr(here) == "<rules core_rules_name>"
    again_ = ext.RuleTable("core_rules_name")
    assert tables()["core_rules_name"] is again_
    with pytest.raises(DuplicateRule, match="two rule tables 'core_rules_name'") as caught:
        exec("ext.RuleTable('core_rules_name')", {"ext": ext, "__name__": "somebody"})
    assert "somebody" in str(caught.value) and __name__.rpartition(".")[2] in str(caught.value)
    tables().clear()
    assert tables()["core_rules_name"] is again_


def test_primitives_of_one_name():
    """A module may define its primitive again; another module's is refused."""
    held = primitive("defined")
    assert primitive("defined") is not held
    with pytest.raises(DuplicateRule, match="two primitives have the name 'core_rules.defined'"):
        exec(
            "ext.Primitive('core_rules.defined', lambda x: x)", {"ext": ext, "__name__": "somebody"}
        )
    for name in ("plain", "", "no name.verb", 3, "a..b"):
        with pytest.raises(RegistrationError):
            ext.Primitive(name, lambda x: x)
    with pytest.raises(RegistrationError, match="must be callable"):
        ext.Primitive("core_rules.three", 3)
    with pytest.raises(RegistrationError, match="is not a trait"):
        ext.Primitive("core_rules.traits", lambda x: x, traits=("linear",))


# ---- what may be registered -------------------------------------------------------------------


def test_keys_are_primitives_and_traits(table):
    table.rule(first)(lambda: 1)
    for key in ("core_rules.first", "core_rules.nobody", 3, None, lambda x: x, (first,)):
        with pytest.raises(RegistrationError, match="is not a key of 'core_rules' rules"):
            table.rule(key)(lambda: 1)
    with pytest.raises(RegistrationError, match="cannot be called"):
        table.rule(second)(3)
    assert table.find(second) is None


def pairs(x, y, *, k, scale=1):
    return x


two = primitive("two", ext.Linear, rule=pairs)
any_number = primitive("any_number", rule=lambda *xs, k: xs)
any_params = primitive("any_params", rule=lambda x, **params: x)


FITS = [
    ("(xs, **params)", two, lambda xs, k, scale: 1),
    ("(xs, **params)", two, lambda xs, *, k, scale=3: 1),
    ("(xs, **params)", two, lambda xs, **params: 1),
    ("(xs, **params)", two, lambda *args, **params: 1),
    ("(xs, **params)", ext.Linear, lambda prim, xs, **params: 1),
    ("(xs, **params)", any_params, lambda xs, *, what: 1),
    ("(ct, *args, **params)", two, lambda ct, x, y, k, scale: 1),
    ("(ct, *args, **params)", two, lambda ct, x, y, *, k, scale, more=1: 1),
    ("(ct, *args, **params)", any_number, lambda ct, *xs, k: 1),
    ("(xs)", two, lambda xs: 1),
]
DOES_NOT = [
    ("(xs, **params)", two, lambda: 1, "takes 0 positional arguments, and is given 1"),
    ("(xs, **params)", two, lambda xs: 1, "does not take the parameter 'k'"),
    ("(xs, **params)", two, lambda xs, *, k: 1, "does not take the parameter 'scale'"),
    ("(xs, **params)", two, lambda xs, *, k, scale, more: 1, "needs a parameter 'more'"),
    ("(xs, **params)", ext.Linear, lambda xs: 1, "takes 1 positional arguments, and is given 2"),
    ("(ct, *args, **params)", two, lambda ct, x, **params: 1, "takes 2 positional .* given 3"),
    ("(xs)", two, lambda: 1, "takes 0 positional"),
]


@pytest.mark.parametrize(("signature", "key", "rule"), FITS)
def test_rules_that_fit(signature, key, rule):
    table = ext.RuleTable("core_rules_signed", signature=signature, doc="a name")
    assert table.rule(key)(rule) is rule and table.own(key) is rule
    assert table.__doc__ == f"rule{signature} -> a name"


@pytest.mark.parametrize(("signature", "key", "rule", "text"), DOES_NOT)
def test_rules_that_do_not_fit(signature, key, rule, text):
    """Refused where they are registered, naming the rule, what is wrong and how it is called."""
    table = ext.RuleTable("core_rules_signed", signature=signature)
    with pytest.raises(RegistrationError, match=text) as caught:
        table.rule(key)(rule)
    assert "core_rules_signed" in str(caught.value) and str(key) in str(caught.value)
    assert f"rule{signature}" in caught.value.fix
    assert ("after the primitive" in caught.value.fix) == (key is ext.Linear)
    assert table.own(key) is None


def test_signatures_of_operations_with_programs():
    """Where rules for them are called otherwise, that is what they are compared with."""
    table = ext.RuleTable(
        "core_rules_both", signature="(xs, **params)", programs="(carrier, args, params)"
    )
    table.rule(call)(lambda carrier, args, params: 1)
    with pytest.raises(RegistrationError, match="takes 1 positional"):
        ext.RuleTable("core_rules_both", signature="(xs)", programs="(a, b, c)").rule(call)(
            lambda xs: 1
        )
    assert "Of an operation with programs: rule(carrier, args, params)." in table.__doc__
    unsigned = ext.RuleTable("core_rules_unsigned", signature="(xs, **params)")
    unsigned.rule(call)(lambda whatever, it, takes: 1)


def test_what_has_no_code_is_not_compared(table):
    signed = ext.RuleTable("core_rules_signed", signature="(xs, **params)")
    signed.rule(two)(functools.partial(lambda x, y: x, 1))
    signed.rule(first)(max)
    assert signed[first]([3, 4]) == 4


def test_parts_of_a_signature():
    s = Signature("(ct, *args, **params)")
    assert (s.fixed, s.operands, s.params) == (["ct"], True, True)
    s = Signature("(xs, ts)")
    assert (s.fixed, s.operands, s.params) == (["xs", "ts"], False, False)


def test_a_type_error_of_the_call_and_one_of_the_rule(table):
    """Only a rule that never began is said not to fit; what a rule itself does wrong stays."""

    def short(x):
        return x

    def wrong(x):
        return x + "text"

    for rule, args, misfits in ((short, (), True), (short, (1, 2), True), (wrong, (1,), False)):
        try:
            rule(*args)
        except TypeError as e:
            found = table.misapplied(first, rule, e)
            assert (found is not None) == misfits
            assert not misfits or "does not fit" in str(found) and "test_rules" in str(found)
            bound = table.misapplied(first, functools.partial(rule, *args), e)
            assert (bound is not None) == misfits


# ---- where there is none ----------------------------------------------------------------------


def test_no_rule(table):
    with pytest.raises(MissingRule) as caught:
        table[second]
    text = f"{caught.value} {caught.value.fix}"
    for part in (
        "no 'core_rules' rule for primitive 'core_rules.second'",
        "no installed module",
        "'plait.rules.core_rules', name 'core_rules'",
        "@core_rules_rules.rule(second)",
        "@expand_rules.rule(second)",
    ):
        assert part in text
    assert "pip install" not in text


# ---- defaults and fallbacks ------------------------------------------------------------------


def test_a_default_answers_for_primitives_that_nothing_else_serves():
    """Not for programs, and not where core rewrites the primitive in terms of others."""
    seen = lambda prim, *xs, **params: ("default", prim.name, *xs)
    table = ext.RuleTable("core_default", doc="anything", default=seen)
    table.rule(sin)(lambda x: "own")
    table.rule(ext.Reduction)(lambda prim, x, **params: "trait")
    assert table.find(sin)(1) == "own"
    assert table.find(reduction.reduce_sum)(1, axes=(0,)) == "trait"
    assert table.find(cos)(1) == ("default", "core.cos", 1)
    assert table.find(control_flow.scan) is None
    rewritten = [p for p in vars(elementwise).values() if isinstance(p, ext.Primitive)]
    rewritten = [p for p in rewritten if ext.expand_rules.find(p) is not None]
    assert rewritten and all(table.find(p) is None for p in rewritten)
    table.rule(cos)(lambda x: "later")
    assert table.find(cos)(1) == "later"


@pytest.mark.parametrize("named", [True, False])
def test_a_fallback_gives_the_default_the_rule_of_another_table(named):
    below = ext.RuleTable(f"core_below_{named}", doc="a number")
    table = ext.RuleTable(
        f"core_falling_{named}",
        doc="twice that",
        default=lambda prim, rule, x: 2 * rule(x),
        fallback=below.name if named else below,
    )
    assert table.find(sin) is None
    below.rule(sin)(lambda x: x + 1)
    assert table.find(sin)(3) == 8 and table.find(cos) is None
    table.rule(sin)(lambda x: "own")
    assert table.find(sin)(3) == "own"


def test_a_fallback_needs_a_default_and_a_table():
    with pytest.raises(RegistrationError, match="a fallback and no default"):
        ext.RuleTable("core_idle", fallback="jvp")
    lost = ext.RuleTable("core_lost", default=lambda *a: a, fallback="core_nowhere")
    with pytest.raises(plait.errors.PluginError, match="core_nowhere"):
        lost.find(sin)
