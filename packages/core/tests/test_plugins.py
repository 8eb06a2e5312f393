"""What installed distributions declare: read from metadata, used when it is asked for.

Invariant: the distributions are folders written here, with metadata and a module of their own; no
test sees those of another.
"""

import importlib
import sys
import textwrap

import pytest

import plait
import plait.lax
from plait import ext
from plait._core.primitive import registered
from plait._plugins import metadata, rules
from plait.errors import MissingPlugin, PluginError, PluginWarning
from plait.ext.errors import DuplicateRule

MAJOR, MINOR = ext.PLUGIN_API
API = f"{MAJOR}.{MINOR}"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """`install(name, groups, code)`: a distribution whose module has this code; it declares
    `groups`, {group: {name: object}}, and that it was built for `api`, unless that is None."""
    modules = set(sys.modules)

    def forget():
        metadata.scan.cache_clear()
        metadata.declared_api.cache_clear()
        importlib.invalidate_caches()

    def make(name, groups, code="", api=API, version="1.2"):
        module = name.replace("-", "_")
        folder = tmp_path / f"{name}_{len(list(tmp_path.iterdir()))}"
        info = folder / f"{module}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        groups = dict(groups) | ({"plait.plugin_api": {api: module}} if api else {})
        lines = [
            line
            for group, points in groups.items()
            for line in (f"[{group}]", *(f"{k} = {v}" for k, v in points.items()))
        ]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        (folder / f"{module}.py").write_text(textwrap.dedent(code))
        monkeypatch.syspath_prepend(str(folder))
        forget()
        return module

    with plait.config(plugins="all"):
        yield make
    monkeypatch.undo()
    forget()
    for name in set(sys.modules) - modules:
        if name.startswith("core_plugins"):
            del sys.modules[name]


# ---- names ------------------------------------------------------------------------------------


def test_a_name_is_found_when_it_is_asked_for(install):
    """The module is imported for it and no earlier, and is listed among the names."""
    module = install(
        "core-plugins-one", {"plait.api": {"core_one": "core_plugins_one:value"}}, "value = 3"
    )
    assert "core_one" in metadata.public_names() and module not in sys.modules
    assert metadata.resolve("core_one") == 3 and module in sys.modules
    (found,) = metadata.declared("plait.api", "core_one")
    assert str(found) == "core-plugins-one 1.2"
    assert metadata.declared("plait.api", "core_two") == ()


def test_names_of_a_module(install):
    """`additions` gives a module the names that others declare for it."""
    install("core-plugins-lax", {"plait.lax": {"core_three": "core_plugins_lax:f"}}, "f = len")
    module = {"__all__": ["own"]}
    get, listed = metadata.additions(module, "plait.lax")
    assert {"own", "core_three"} <= set(listed()) and get("core_three") is len
    assert module["core_three"] is len, "asked for once"
    with pytest.raises(AttributeError):
        get("__path__")
    with pytest.raises(MissingPlugin, match="plait.lax has no 'core_four'"):
        get("core_four")


def test_a_name_that_two_declare(install):
    for name in ("core-plugins-a", "core-plugins-b"):
        module = name.replace("-", "_")
        install(name, {"plait.api": {"core_both": f"{module}:v"}}, f"v = '{name}'")
    with pytest.raises(PluginError, match="core-plugins-a 1.2 and by core-plugins-b 1.2"):
        metadata.resolve("core_both")
    with plait.config(plugins="core-plugins-b"):
        assert metadata.resolve("core_both") == "core-plugins-b"


def test_an_earlier_folder_wins(install):
    """As it does for imports: one distribution there twice, however its name is spelt."""
    install("core-plugins-twice", {"plait.api": {"core_old": "core_plugins_twice:v"}}, "v = 1")
    install("core_plugins.twice", {"plait.api": {"core_new": "x:v"}}, api=None, version="2")
    assert metadata.declared("plait.api", "core_old") == ()
    (found,) = metadata.declared("plait.api", "core_new")
    assert str(found) == "core-plugins-twice 2"


def test_names_that_nobody_has():
    with pytest.raises(MissingPlugin, match="plait has no 'core_nobody'") as caught:
        metadata.resolve("core_nobody")
    assert "dir(plait)" in caught.value.fix
    with pytest.raises(AttributeError):
        plait.core_nobody


def test_the_install_hint(monkeypatch):
    """A name that is known to belong to a distribution says how to install it."""
    monkeypatch.setitem(metadata.HINTS, "core_hinted", "plait-hinted")
    with plait.config(plugins="all"), pytest.raises(MissingPlugin, match="plait-hinted") as caught:
        metadata.resolve("core_hinted")
    assert caught.value.fix.startswith("python -m pip install plait-hinted")
    with plait.config(plugins="other"), pytest.raises(MissingPlugin) as caught:
        metadata.resolve("core_hinted")
    assert "PLAIT_PLUGINS=other,..." in caught.value.fix


# ---- who is admitted --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "own", "strange"),
    [
        ("all", True, True),
        ("off", False, False),
        ("autodiff", True, False),
        ("plait-autodiff", True, False),
        ("mine, autodiff", True, True),
        ("mine", False, True),
        ("auto", False, False),
    ],
)
def test_who_is_admitted(setting, own, strange):
    with plait.config(plugins=setting):
        assert metadata.admitted("plait-autodiff") is own
        assert metadata.admitted("mine") is strange
        assert metadata.admitted("plait-core") is True


def test_what_is_left_out_is_not_listed(install):
    install("core-plugins-left", {"plait.api": {"core_left": "core_plugins_left:v"}}, "v = 1")
    for setting, there in (("all", True), ("off", False), ("core-plugins-left", True)):
        with plait.config(plugins=setting):
            assert ("core_left" in metadata.public_names()) is there
            assert bool(metadata.declared("plait.api", "core_left")) is there
            assert metadata.installed("plait.api", "core_left")


# ---- who cannot be used ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "text", "fix"),
    [
        (API, None, None),
        (f"{MAJOR}.{MINOR + 1}", "was built for PLUGIN_API", "--upgrade plait-core"),
        (f"{MAJOR + 1}.0", "was built for PLUGIN_API", "--upgrade plait-core"),
        (f"{MAJOR - 1}.9", "was built for PLUGIN_API", "--upgrade core-plugins-api"),
        (None, "does not say which PLUGIN_API", "plait.plugin_api"),
        ("new", "does not say which PLUGIN_API", "plait.plugin_api"),
        (f"{MAJOR}.{'9' * 5000}", "does not say which PLUGIN_API", "plait.plugin_api"),
    ],
)
def test_versions_of_the_seam(install, api, text, fix):
    """Same major version and no newer minor one; otherwise refused before it is imported, with the
    command that mends it."""
    module = install(
        "core-plugins-api", {"plait.api": {"core_api": "core_plugins_api:v"}}, "v = 1", api=api
    )
    if text is None:
        assert metadata.resolve("core_api") == 1
        return
    for _ in range(2):
        with pytest.raises(PluginError, match=f"core-plugins-api 1.2 {text}") as caught:
            metadata.resolve("core_api")
        assert fix in caught.value.fix and module not in sys.modules


def test_a_module_that_fails(install):
    """Who, which entry point, what it raised, and how to do without it; every time."""
    install("core-plugins-bad", {"plait.api": {"core_bad": "core_plugins_bad:v"}}, "1 / 0")
    for _ in range(2):
        with pytest.raises(PluginError, match="core-plugins-bad 1.2 cannot be loaded") as caught:
            metadata.resolve("core_bad")
        assert "ZeroDivisionError" in str(caught.value)
        assert "--upgrade core-plugins-bad" in caught.value.fix
        assert "PLAIT_PLUGINS without core-plugins-bad" in caught.value.fix


def test_a_program_deep_in_calls_does_not_break_a_plugin(install):
    """The user's recursion raises RecursionError, and later the plugin is there; one that recurses
    by itself cannot be loaded."""
    code = "def down(n):\n    return n and down(n - 1)\ndown(200)\nv = 5"
    install("core-plugins-deep", {"plait.api": {"core_deep": "core_plugins_deep:v"}}, code)

    def after(calls):
        return after(calls - 1) if calls else metadata.resolve("core_deep")

    here, frame = 1, sys._getframe()
    while (frame := frame.f_back) is not None:
        here += 1
    with pytest.raises(RecursionError):
        after(sys.getrecursionlimit() - here - 150)
    assert metadata.resolve("core_deep") == 5
    code = "def down():\n    down()\ndown()"
    install("core-plugins-loop", {"plait.api": {"core_loop": "core_plugins_loop:v"}}, code)
    with pytest.raises(PluginError, match="raised RecursionError"):
        metadata.resolve("core_loop")


# ---- rules of installed modules ---------------------------------------------------------------


RULES = """
    from plait import ext
    from plait._plugins.rules import tables

    table = tables()["core_plugins_table"]
    table.rule(ext.Primitive("{0}.p", lambda x: x, traits=(ext.Linear,)))(lambda x: "{0}")
"""


def prim(namespace):
    return ext.Primitive(f"{namespace}.q", lambda x: x, traits=(ext.Linear,))


def test_rules_are_loaded_before_a_table_answers(install):
    """The modules for (table, namespace) are imported when it is first asked, and no others."""
    table = ext.RuleTable("core_plugins_table")
    group = {table.group: {"core_plugins_ns": "core_plugins_rules"}}
    other = {table.group: {"core_plugins_far": "core_plugins_other"}}
    module = install("core-plugins-rules", group, RULES.format("core_plugins_ns"))
    far = install("core-plugins-other", other, RULES.format("core_plugins_far"))
    assert module not in sys.modules
    assert table.find(prim("core_plugins_ns")) is None  # asked: now they are there
    assert module in sys.modules and far not in sys.modules
    assert table[registered("core_plugins_ns.p")](1) == "core_plugins_ns"


def test_rules_for_a_former_namespace_are_found(install):
    """A plugin that is older than the name of a primitive declares its rule where it was."""
    table = ext.RuleTable("core_plugins_moved")
    table.rule(ext.Linear)(lambda prim, x: "trait")
    new = ext.Primitive(
        "core_plugins_new.p", lambda x: x, (ext.Linear,), formerly=("core_plugins_old.p",)
    )
    code = """
        from plait import ext
        from plait.ext.ir import registered
        from plait._plugins.rules import tables
        tables()["core_plugins_moved"].rule(registered("core_plugins_old.p"))(lambda x: "own")
    """
    install("core-plugins-older", {table.group: {"core_plugins_old": "core_plugins_older"}}, code)
    assert table[new](1) == "own"


def test_a_primitive_is_found_by_its_former_name(install):
    """The module that defines it now is declared for the namespace that it left, and imported."""
    module = install(
        "core-plugins-went",
        {"plait.former_names": {"core_plugins_before": "core_plugins_went"}},
        """
        from plait import ext
        before = ("core_plugins_before.p",)
        here = ext.Primitive("core_plugins_after.p", lambda x: x, formerly=before)
        """,
    )
    assert module not in sys.modules and registered("core_plugins_elsewhere.p") is None
    assert module not in sys.modules
    read = plait.text.parse("f(%0: f32[]) { %1: f32[] = core_plugins_before.p(%0) return %1 }")
    assert read.eqns[0].prim is sys.modules[module].here
    assert "= core_plugins_after.p(%" in str(read)
    assert registered("core_plugins_before.q") is None


def test_a_former_name_is_found_beside_a_broken_plugin(install):
    """A failure is reported only if no other module has the name; names of today come first."""
    groups = {"plait.former_names": {"core_plugins_left": "core_plugins_aa_fails"}}
    install("core-plugins-aa-fails", groups, "1 / 0")
    code = """
        from plait import ext
        here = ext.Primitive({name!r}, lambda x: x, formerly={formerly!r})
    """
    names = dict(
        name="core_plugins_right.p", formerly=("core_plugins_left.p", "core_plugins_today.p")
    )
    groups = {"plait.former_names": {"core_plugins_left": "core_plugins_right"}}
    module = install("core-plugins-right", groups, code.format(**names))
    names = dict(name="core_plugins_today.p", formerly=())
    groups = {"plait.primitives": {"core_plugins_today": "core_plugins_today"}}
    today = install("core-plugins-today", groups, code.format(**names))
    assert registered("core_plugins_left.p") is sys.modules[module].here
    with pytest.raises(PluginError, match="core-plugins-aa-fails 1.2"):
        registered("core_plugins_left.q")
    assert registered("core_plugins_today.p") is sys.modules[today].here


def test_no_trait_answers_for_rules_that_failed(install):
    """Where nobody says whose the primitives are, whoever declares rules must be heard first."""
    table = ext.RuleTable("core_plugins_failed")
    table.rule(ext.Linear)(lambda prim, x: "trait")
    assert table[prim("core_plugins_quiet")](1) == "trait"
    group = {table.group: {"core_plugins_loud": "core_plugins_fails"}}
    install("core-plugins-fails", group, "1 / 0")
    for _ in range(2):
        with pytest.raises(PluginError, match="core-plugins-fails 1.2"):
            table.find(prim("core_plugins_loud"))
    own = prim("core_plugins_loud")
    table.rule(own)(lambda x: "own")
    assert table[own](1) == "own", "its own rule is no guess"
    with plait.config(plugins="off"):
        left = ext.RuleTable("core_plugins_failed")
        left.rule(ext.Linear)(lambda prim, x: "trait")
        with pytest.raises(PluginError, match="left out by PLAIT_PLUGINS=off"):
            left.find(prim("core_plugins_loud"))


def test_glue_that_fails_is_told_and_does_not_stop_others(install):
    """The owner of the primitives was heard: a third distribution's failure is a warning."""
    table = ext.RuleTable("core_plugins_glue")
    table.rule(ext.Linear)(lambda prim, x: "trait")
    install(
        "core-plugins-owner",
        {
            "plait.primitives": {"core_plugins_owned": "core_plugins_owner"},
            table.group: {"core_plugins_owned": "core_plugins_owner"},
        },
    )
    group = {table.group: {"core_plugins_owned": "core_plugins_glue"}}
    install("core-plugins-glue", group, "1 / 0")
    with pytest.warns(PluginWarning, match="core-plugins-glue 1.2"):
        rule = table.find(prim("core_plugins_owned"))
    assert rule(1) == "trait"
    assert table.find(prim("core_plugins_owned"))(1) == "trait"  # told once


def test_two_modules_with_one_rule(install):
    """Neither is blamed while they are imported: whoever asks for the cell is told of both."""
    table = ext.RuleTable("core_plugins_clash")
    code = """
        from plait import ext
        from plait._core.primitive import registered
        from plait._plugins.rules import tables

        table = tables()["core_plugins_clash"]
        table.rule(registered("core_plugins_clash.q"))(lambda x: "{0}")
        table.rule(registered("core_plugins_clash.{0}"))(lambda x: "{0}")
    """
    cell = prim("core_plugins_clash")
    apart = [ext.Primitive(f"core_plugins_clash.{v}", lambda x: x) for v in ("left", "right")]
    for verb in ("left", "right"):
        group = {table.group: {"core_plugins_clash": f"core_plugins_{verb}"}}
        install(f"core-plugins-{verb}", group, code.format(verb))
    assert [table[p](1) for p in apart] == ["left", "right"]
    for _ in range(2):
        with pytest.raises(DuplicateRule, match="core_plugins_left.*core_plugins_right"):
            table.find(cell)
    table.rule(cell, override=True)(lambda x: "mine")
    assert table[cell](1) == "mine"


def test_changing_the_setting_asks_again(install):
    """Who is admitted later is heard then."""
    table = ext.RuleTable("core_plugins_table")
    group = {table.group: {"core_plugins_late": "core_plugins_later"}}
    module = install("core-plugins-later", group, RULES.format("core_plugins_late"))
    with plait.config(plugins="off"), pytest.raises(PluginError, match="left out"):
        table.find(prim("core_plugins_late"))
    assert module not in sys.modules
    with plait.config(plugins="core-plugins-later"):
        assert table.find(prim("core_plugins_late")) is None
    assert module in sys.modules
    assert rules.tables()["core_plugins_table"] is table
