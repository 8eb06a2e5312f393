"""What a bad plugin can do: be reported when it is used, and nothing else.

Invariant: every test has two halves: what the hostile distribution offers fails with its name,
version and what mends it; what others offer works as if it were not there.
"""

import math
import re
import shutil

import pytest

ALL = "broken duplicate newer rival"

WORKS = """
    print(float(plait.jit(plait.numpy.cos)(0.0)))
    print(float(plait.jvp(plait.numpy.cos, (0.5,), (1.0,))[1]))
    print(plait.vmap(plait.numpy.cos)(plait.numpy.zeros(3)).shape)
"""


def assert_works(printed: str) -> None:
    """What `WORKS` prints is right."""
    value, slope, shape = printed.splitlines()[-3:]
    assert float(value) == 1.0
    assert math.isclose(float(slope), -math.sin(0.5), rel_tol=1e-6)
    assert shape == "(3,)"


@pytest.mark.sampled(12)
@pytest.mark.parametrize("names", ["broken", "newer", "rival", "duplicate", ALL])
def test_nothing_else_breaks(beside, names):
    assert_works(beside(names, WORKS))


@pytest.mark.parametrize("names", ["broken", "newer", "rival", ALL])
def test_importing_plait_imports_no_plugin(beside, names):
    loaded = beside(names, "print([m for m in sys.modules if m.startswith('hostile')])")
    assert loaded.strip() == "[]"


def test_broken_name_is_reported_when_used(beside):
    text = beside("broken", "print(caught(lambda: plait.broken))")
    assert text.startswith("PluginError")
    assert "hostile-broken 1.2.3" in text
    assert "RuntimeError: the broken plugin was imported" in text
    assert "pip install --upgrade hostile-broken" in text


def test_broken_name_is_reported_every_time(beside):
    code = "print(caught(lambda: plait.broken) == caught(lambda: plait.broken))"
    assert beside("broken", code).strip() == "True"


UNKNOWN = """
    from plait_autodiff.ext import jvp_rules

    class Unknown:
        name, namespace, traits = "core.never_heard_of", "core", ()

    unknown = Unknown()
"""


def test_broken_rules_are_reported_where_a_rule_is_missing(beside):
    text = beside("broken", UNKNOWN + "    print(caught(lambda: jvp_rules[unknown]))")
    assert text.startswith("PluginError")
    assert "hostile-broken 1.2.3" in text
    assert "pip install --upgrade hostile-broken" in text


def test_missing_rule_is_no_plugin_error_without_the_broken_one(beside):
    text = beside("rival", UNKNOWN + "    print(caught(lambda: jvp_rules[unknown]))")
    assert text.startswith("MissingRule")


def test_broken_plugin_can_be_left_out(beside):
    code = UNKNOWN + "    print(caught(lambda: jvp_rules[unknown]))"
    assert beside("broken", code, PLAIT_PLUGINS="autodiff").startswith("MissingRule")


DUPLICATED = "print(caught(lambda: plait.jvp(plait.numpy.sin, (0.5,), (1.0,))))"


def test_duplicate_rule_is_reported_where_it_is_used(beside):
    text = beside("duplicate", DUPLICATED)
    assert re.search("DuplicateRule|PluginError", text)
    assert "two 'jvp' rules for core.sin" in text.replace("Primitive ", "")
    assert "hostile-duplicate" in text.replace("_", "-")
    assert "plait-autodiff" in text.replace("_", "-")
    assert "override=True" in text


MINE, THEIRS = "hostile_duplicate", "plait_autodiff.rules"


@pytest.mark.sampled(10)
@pytest.mark.parametrize("imports", [[MINE], [THEIRS], [MINE, THEIRS], [THEIRS, MINE]])
def test_duplicate_rule_is_reported_in_any_order_of_imports(beside, imports):
    code = f"""
        import importlib

        for name in {imports}:
            try:
                importlib.import_module(name)
            except plait.errors.DuplicateRule:
                pass
        {DUPLICATED}
        print(float(plait.jvp(plait.numpy.cos, (0.5,), (1.0,))[1]))
    """
    text, slope = beside("duplicate", code).strip().rsplit("\n", 1)
    assert "two 'jvp' rules for core.sin" in text.replace("Primitive ", "")
    assert math.isclose(float(slope), -math.sin(0.5), rel_tol=1e-6)


def test_duplicate_rule_is_gone_with_its_plugin(beside):
    code = "print(float(plait.jvp(plait.numpy.sin, (0.5,), (1.0,))[1]))"
    slope = beside("duplicate", code, PLAIT_PLUGINS="autodiff,numpy")
    assert math.isclose(float(slope), math.cos(0.5), rel_tol=1e-6)


def test_too_new_plugin_is_refused_before_it_is_imported(beside):
    code = "print(caught(lambda: plait.from_the_future), 'hostile_newer' in sys.modules)"
    text = beside("newer", code)
    assert text.startswith("PluginError")
    assert text.strip().endswith("False")
    assert "hostile-newer 2.0.0 was built for PLUGIN_API 99.0" in text
    assert "has PLUGIN_API 1.1" in text
    assert "pip install --upgrade plait-core" in text


def test_rules_of_a_too_new_plugin_are_refused(beside):
    code = (
        UNKNOWN
        + """
    print(caught(lambda: jvp_rules[unknown]), 'hostile_newer' in sys.modules)
"""
    )
    text = beside("newer", code)
    assert text.startswith("PluginError")
    assert "PLUGIN_API 99.0" in text
    assert text.strip().endswith("False")


def test_name_declared_twice_is_refused_naming_both(beside):
    text = beside("rival", "print(caught(lambda: plait.grad))")
    assert text.startswith("PluginError")
    assert "hostile-rival 0.0.1" in text
    assert "plait-autodiff" in text
    assert "uninstall" in text
    assert "PLAIT_PLUGINS" in text


@pytest.mark.parametrize("admitted, slope", [("autodiff", "1.0"), ("hostile-rival", "rival")])
def test_name_declared_twice_is_settled_by_the_setting(beside, admitted, slope):
    code = "g = plait.grad(plait.numpy.sin)\nprint(g if isinstance(g, str) else float(g(0.0)))"
    assert beside("rival", code, PLAIT_PLUGINS=f"{admitted},numpy").strip() == slope


def test_all_at_once_are_reported_apart(beside):
    code = """
        print(caught(lambda: plait.broken))
        print(caught(lambda: plait.from_the_future))
        print(caught(lambda: plait.grad))
        print(sorted({'broken', 'from_the_future', 'grad', 'jvp', 'vmap'} - {*dir(plait)}))
    """
    text = beside(ALL, code)
    for mine in ("hostile-broken 1.2.3", "hostile-newer 2.0.0", "hostile-rival 0.0.1"):
        assert mine in text
    assert text.strip().endswith("[]")


def test_plugins_can_be_switched_off(beside):
    code = "print(caught(lambda: plait.broken), caught(lambda: plait.vmap))"
    text = beside(ALL, code, PLAIT_PLUGINS="off")
    assert text.count("MissingPlugin") == 2
    assert "hostile-broken" not in text


def test_threads_that_load_rules_at_once_agree(beside):
    code = """
        import threading

        answers, gate = [], threading.Barrier(8)

        def ask():
            gate.wait()
            answers.append(float(plait.jvp(plait.numpy.cos, (0.5,), (1.0,))[1]))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        print(len(answers), len({*answers}))
    """
    assert beside("broken newer", code).split() == ["8", "1"]


OWNED = """
    from hostile_owner import identity

    print(caught(lambda: plait.grad(identity)(1.0)))
    print(caught(lambda: plait.vmap(identity)(plait.numpy.ones(3))))
    print(float(identity(2.0)), float(plait.grad(lambda x: x * identity(2.0))(1.0)))
"""


def test_no_trait_answers_for_an_owner_whose_rules_fail(beside):
    printed = beside("owner", OWNED).strip()
    told, value = printed.rsplit("\n", 1)
    _, slope, mapped = told.split("PluginError: ")
    for text in (slope, mapped):
        assert "hostile-owner 0.7.0" in text
        assert "a_module_that_nobody_has" in text
        assert "pip install --upgrade hostile-owner" in text
    assert value == "2.0 2.0"


def test_no_trait_answers_for_an_owner_that_is_left_out(beside):
    text = beside("owner", OWNED, PLAIT_PLUGINS="autodiff,batching,numpy")
    assert (
        text.count("hostile-owner 0.7.0 is left out by PLAIT_PLUGINS=autodiff,batching,numpy") == 2
    )
    assert text.count("admit it: PLAIT_PLUGINS=autodiff,batching,numpy,hostile-owner") == 2


def test_no_expansion_answers_for_an_owner_whose_expansion_fails(beside):
    code = """
        from hostile_owner import identity
        from plait.ext import Carrier, RuleTable, as_value, current, opened

        class Plain(Carrier):
            rules, does = RuleTable("plain", signature="(xs)"), "plain"

            def run(self, prim, rule, args, params): ...
            def part_avals(self, aval, form): return (aval,)
            def coerce(self, aval, parts, f, g): return parts

        def apply():
            x = as_value(1.0)
            with opened(Plain(current())) as plain:
                return identity(plain.lift(x.aval, "plain", (x,)))

        print(caught(apply))
    """
    text = beside("owner", code)
    assert text.startswith("PluginError") and "hostile_owner.parts" in text


def test_glue_that_fails_is_warned_of_once(beside):
    code = """
        import warnings

        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for _ in range(3):
                plait.grad(plait.numpy.sin)(1.0)
        print([w.category.__name__ for w in told], str(told[0].message))
    """
    text = beside("broken", code)
    assert text.startswith("['PluginWarning']")
    assert "hostile-broken 1.2.3" in text


def test_a_plugin_that_does_not_say_what_it_was_built_for_is_refused(beside, installed, tmp_path):
    site = tmp_path / "site"
    shutil.copytree(installed("rival"), site)
    (info,) = site.glob("*.dist-info")
    points = (info / "entry_points.txt").read_text()
    (info / "entry_points.txt").write_text(points.replace("[plait.plugin_api]", "[other.group]"))
    text = beside(str(site), "print(caught(lambda: plait.grad))", PLAIT_PLUGINS="hostile-rival")
    assert text.startswith("PluginError")
    assert "hostile-rival 0.0.1 does not say which PLUGIN_API it was built for" in text
    assert '"1.1" = "the_package"' in text
