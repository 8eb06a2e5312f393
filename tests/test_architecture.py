"""The rules of the design, as tests over the sources.

Invariant: these tests read files and never import what they judge, so that a module that cannot
be imported is judged too.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

DIAGRAM = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
START, END = "## The import diagram", "```"


def for_each(names: Iterable[str]) -> Callable:
    """Make a check of one module or file the test of all: thousands of cases take long to list."""

    def decorate(check: Callable[[str], None]) -> Callable[[], None]:
        def test() -> None:
            failures = {}
            for name in names:
                try:
                    check(name)
                except AssertionError as e:
                    failures[name] = str(e)
            assert not failures

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        test.__dict__.update(vars(check))  # its marks
        return test

    return decorate


def layers() -> list[tuple[str, ...]]:
    """The core from the ground up, as ARCHITECTURE.md draws it: the names on each line of its
    diagram, up to the explanation, which two spaces set off."""
    drawn = DIAGRAM.split(START)[1].split(END)[1].strip("\n").splitlines()
    return [tuple(line.split("  ")[0].split()) for line in drawn]


LAYERS = layers()
"""A module imports what is above its package in this list, and what lies in its own package."""

SIBLINGS = (
    "plait_numpy",
    "plait_checks",
    "plait_testing",
    "plait_inspect",
    "plait_autodiff",
    "plait_batching",
    "plait_sharding",
    "plait_export",
    "plait_state",
    "plait_sparse",
    "plait_jax",
)
GLUE = {
    "plait_autodiff.laws": "plait_testing",
    "plait_autodiff.rules.attention": "plait_numpy",
    "plait_autodiff.rules.linalg": "plait_numpy",
    "plait_autodiff.rules.special": "plait_numpy",
    "plait_autodiff.taylor.laws": "plait_testing",
    "plait_batching.laws": "plait_testing",
    "plait_batching.piles.laws": "plait_testing",
    "plait_batching.piles.rules.attention": "plait_numpy",
    "plait_batching.rules.attention": "plait_numpy",
    "plait_batching.piles.rules.linalg": "plait_numpy",
    "plait_batching.rules.linalg": "plait_numpy",
    "plait_sharding.explicit_matrix_rules": "plait_numpy",
    "plait_sharding.laws": "plait_testing",
    "plait_sharding.notes": "plait_inspect",
    "plait_state.laws": "plait_testing",
    "plait_export.derivatives": "plait_autodiff",
    "plait_export.mapping": "plait_batching",
    "plait_batching.derivatives": "plait_autodiff",
    "plait_batching.piles.derivatives": "plait_autodiff",
    "plait_jax.derivatives": "plait_autodiff",
    "plait_jax.mapping": "plait_batching",
    "plait_jax.partial_values": "plait_autodiff",
    "plait_sharding.autodiff": "plait_autodiff",
    "plait_sharding.batching": "plait_batching",
    "plait_sharding.references": "plait_state",
}
"""Modules and packages that join two siblings, with the sibling whose tables, namespaces or laws
load them."""

SEAM = {"plait._plugins.metadata"}
"""Where own modules may be imported inside a function: the one place that loads plugins."""

DYNAMIC = {
    "plait._base.entry_points",
    "plait._base.lazy",
    "plait._base.pjrt_plugins",
    "plait._api.aliases",
    "plait._plugins.installing",
    "plait_numpy.scipy",
    "plait_jax.finder",
    "plait_jax.names",
}
"""Where a module may be imported by a name made at run time: the seam, lazy public names, those
by which somebody else's are answered, and the runtime's plugins."""

HINT_TABLES = {"GUARD_HINTS", "DISTRIBUTION_OF", "MODULES", "TABLES"}
"""Tables of `plait._plugins.metadata` that may name what plugins offer: install hints only."""

OF_ONE_FUNCTION = {"plait._core.check", "plait._core.primitive", "plait._simplify"}
"""Modules that are their one function, which nobody reaches as an attribute of the package."""

PLUGINS = re.compile(
    rf"plait[-_]({'|'.join(p.name for p in (ROOT / 'packages').iterdir() if p.name != 'core')})\b"
)


# Reading the sources


@cache
def declarations(folder: Path) -> dict:
    """A package's pyproject.toml."""
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


@cache
def modules() -> dict[str, Path]:
    """Every module of our packages, by its full name."""
    found = {}
    for path in sorted(ROOT.glob("packages/*/src/**/*.py")):
        source = next(p for p in path.parents if p.name == "src")
        name = ".".join(path.relative_to(source).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


@cache
def text(name: str) -> str:
    """The source of a module."""
    return modules()[name].read_text(encoding="utf-8")


@cache
def tree(name: str) -> ast.Module:
    """The syntax of a module."""
    return ast.parse(text(name))


@cache
def nodes(name: str) -> list[ast.AST]:
    """All nodes of the syntax of a module."""
    return list(ast.walk(tree(name)))


def core() -> list[str]:
    """The modules of the core."""
    return [name for name in modules() if name.partition(".")[0] == "plait"]


def imported(node: ast.Import | ast.ImportFrom, name: str) -> list[str]:
    """The full names that one import statement of a module asks for."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    parts = name.split(".") if modules()[name].name == "__init__.py" else name.split(".")[:-1]
    base = parts[: len(parts) - node.level + 1] if node.level else []
    full = ".".join([*base, *([node.module] if node.module else [])])
    inner = [f"{full}.{alias.name}" for alias in node.names]
    return [target if target in modules() else full for target in inner]


def statements(nodes: Iterable[ast.AST]) -> list[ast.Import | ast.ImportFrom]:
    """The import statements among nodes."""
    return [n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)]


def for_checkers(name: str) -> set[ast.AST]:
    """The import statements of a module that only type checkers read."""
    blocks = [n for n in nodes(name) if isinstance(n, ast.If)]
    only = [n for n in blocks if ast.unparse(n.test).removeprefix("typing.") == "TYPE_CHECKING"]
    return {f for block in only for part in block.body for f in statements(ast.walk(part))}


@cache
def edges(name: str) -> frozenset[str]:
    """All that a module imports when it runs, ours or not."""
    left_out = for_checkers(name)
    run = [node for node in statements(nodes(name)) if node not in left_out]
    return frozenset(t for node in run for t in imported(node, name))


def inside_functions(name: str) -> list[ast.AST]:
    """The nodes of a module that run when a function is called, not when it is imported."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    scopes = [n for n in nodes(name) if isinstance(n, functions)]
    return [n for scope in scopes for n in ast.walk(scope)]


def package(name: str) -> str:
    """The entry directly under `plait` that a module of the core belongs to."""
    return name.split(".")[1] if "." in name else "plait"


def layer(name: str) -> int:
    """The line of the diagram that a module of the core stands on."""
    (found,) = [i for i, names in enumerate(LAYERS) if package(name) in names]
    return found


def joined(name: str) -> str | None:
    """Return the sibling that a module joins to its own package; None for other modules."""
    while name and name not in GLUE:
        name = name.rpartition(".")[0]
    return GLUE.get(name)


def top(name: str) -> str:
    """The package at the top of a name."""
    return name.partition(".")[0]


# The rules


def test_there_are_sources_to_judge():
    assert modules()


def test_the_diagram_shows_every_package_once():
    shown = [name for names in LAYERS for name in names]
    assert sorted(shown) == sorted({package(name) for name in core()})


def test_the_page_of_the_core_has_a_row_for_each_module():
    page = (ROOT / "docs" / "internals" / "core.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| module \| contents \|\n((?:\|.*\n)+)", page, re.M)
    cells = re.findall(r"^\| (`[^|]*) \|", "".join(tables), re.M)
    folder = ROOT / "packages" / "core" / "src" / "plait" / "_core"
    modules = {p.stem for p in folder.glob("*.py")} - {"__init__"}
    assert {name for cell in cells for name in re.findall(r"`(\w+)`", cell)} == modules


def test_there_are_few_entries_under_the_core():
    entries = {p.name for p in modules()["plait"].parent.iterdir()} - {"__pycache__"}
    assert len(entries) <= 35, sorted(entries)


@for_each(sorted(core()))
def test_core_imports_downwards(name):
    for target in sorted(edges(name) & set(core()) - {name}):
        assert layer(target) < layer(name) or package(target) == package(name), (
            f"{name} imports {target}, which ARCHITECTURE.md draws above it or beside it"
        )


@pytest.mark.feature("C22")
def test_no_import_cycles():
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in done:
            return
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        for target in sorted(edges(name) & modules().keys() - {name}):
            visit(target, (*path, name))
        done.add(name)

    for name in modules():
        visit(name, ())


def stages_of_jit() -> list[str]:
    """The stages of a jitted function's calls, in the order in which `calls` leads through them."""
    table = (ast.get_docstring(tree("plait._jit.calls")) or "").splitlines()
    return [f"plait._jit.{line.split()[0]}" for line in table if "->" in line]


@for_each(stages_of_jit())
def test_stages_of_jit_import_earlier_ones_only(name):
    stages = stages_of_jit()
    later = {*stages[stages.index(name) :], "plait._jit.calls", "plait._jit.jitted"}
    reached, ahead = set(), [*edges(name)]
    while ahead:
        target = ahead.pop()
        if target in modules() and target not in reached:
            reached.add(target)
            ahead += edges(target) if target.startswith("plait._jit.") else ()
    assert not reached & later


@pytest.mark.feature("C22")
def test_meshes_know_nothing_of_types():
    start = "plait_sharding.mesh"
    if start not in modules():
        pytest.skip(f"there is no {start}")
    reached, ahead = set(), [start]
    while ahead:
        name = ahead.pop()
        if name not in reached:
            reached.add(name)
            ahead += edges(name) & modules().keys()
    assert not reached & {
        "plait._types.avals",
        "plait._core.ir",
        "plait._core.interpreter",
        "plait",
    }


def test_one_door_to_jaxlib():
    assert [n for n in modules() if any(top(t) == "jaxlib" for t in edges(n))] == [
        "plait._base.jaxlib_api"
    ]


def test_jax_is_never_imported():
    assert not [n for n in modules() if any(top(t) == "jax" for t in edges(n))]


@for_each(sorted(modules()))
def test_no_hidden_imports(name):
    ours = {"plait", *SIBLINGS}
    inside = inside_functions(name)
    hidden = statements(inside)
    if name not in SEAM:
        own = [n.lineno for n in hidden if any(top(t) in ours for t in imported(n, name))]
        assert not own, f"{name} imports modules of ours inside functions, at lines {own}"
    if name not in DYNAMIC:
        assert not [n.lineno for n in inside if imports_by_name(n) not in (None, "jaxlib")]


def imports_by_name(node: ast.AST) -> str | None:
    """The package that `import_module(...)` asks for ("?" if only known at run time)."""
    called = node.func if isinstance(node, ast.Call) else None
    if getattr(called, "attr", getattr(called, "id", "")) not in ("import_module", "__import__"):
        return None
    literal = node.args and isinstance(node.args[0], ast.Constant)
    return top(node.args[0].value) if literal else "?"


def without_hint_tables(name: str) -> str:
    """The source of a module, with the install hints left out."""
    lines = text(name).splitlines()
    for node in tree(name).body if name == "plait._plugins.metadata" else ():
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(t, ast.Name) and t.id in HINT_TABLES for t in targets):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (node.end_lineno - node.lineno + 1)
    return "\n".join(lines)


@for_each(sorted(core()))
def test_core_does_not_know_its_plugins(name):
    assert not [t for t in edges(name) if top(t) in SIBLINGS]
    named = [n for n in ast.walk(ast.parse(without_hint_tables(name))) if is_plugin_name(n)]
    assert not named, f"{name} names plugins at lines {[n.lineno for n in named]}"


def is_plugin_name(node: ast.AST) -> bool:
    """Whether a node is a string, other than a docstring's prose, that is a plugin's name."""
    return isinstance(node, ast.Constant) and PLUGINS.fullmatch(str(node.value)) is not None


@for_each(sorted(n for n in modules() if top(n) in SIBLINGS))
def test_siblings_do_not_import_each_other(name):
    strangers = {*SIBLINGS} - {top(name), joined(name)}
    assert not [t for t in edges(name) if top(t) in strangers]


def test_glue_is_loaded_by_tables_only():
    loaders = {n: [t for t in edges(n) if joined(t)] for n in modules() if not joined(n)}
    assert {n: found for n, found in loaders.items() if found} == {}


PUBLIC = {
    f"plait.{name}": place
    for folder in sorted((ROOT / "packages").iterdir())
    if (folder / "pyproject.toml").exists()
    for name, place in declarations(folder)["project"]["entry-points"].get("plait.api", {}).items()
    if ":" not in place
}
"""The modules that packages offer as names of `plait`, with their places."""


@for_each(sorted(n for n in modules() if top(n) in SIBLINGS))
def test_modules_of_siblings_are_declared(name):
    """A module that imports `plait.numpy` has plait-numpy as a dependency, if only in an extra."""
    project = declarations(package_of(name))["project"]
    declared = [
        *project["dependencies"],
        *sum(project.get("optional-dependencies", {}).values(), []),
    ]
    for target in edges(name):
        place = next((PUBLIC[p] for p in PUBLIC if f"{target}.".startswith(f"{p}.")), "")
        if place and top(place) != top(name):
            wanted = top(place).replace("_", "-")
            assert any(re.match(rf"{wanted}\b", d) for d in declared), f"{name} needs {wanted}"


def package_of(name: str) -> Path:
    """The folder of the package that a module belongs to."""
    return ROOT / "packages" / top(name).removeprefix("plait_")


def outside_core() -> dict[str, str]:
    """The sources of all that builds on the core: plugins, examples, the tests of both, and the
    Python blocks of pages, by path."""
    plugins = [ROOT / "packages" / name.removeprefix("plait_") for name in SIBLINGS]
    found = [p for folder in [*plugins, ROOT / "examples"] for p in sorted(folder.rglob("*.py"))]
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    code = {p: p.read_text(encoding="utf-8") for p in found}
    for page in pages:
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
        code[page] = "\n".join(blocks)
    return {str(p.relative_to(ROOT)): code[p] for p in code}


OUTSIDE = outside_core()


def dotted(node: ast.AST) -> str:
    """Return the names of attributes of a name, with dots; "" if something else has them."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


@cache
def reached(source: str) -> dict[str, int]:
    """The full names that a source imports or reaches as attributes of what it imports, each with
    a line that does; imports within the source's own package aside."""
    parts, names = list(ast.walk(ast.parse(source))), {}
    found = {}
    for node in statements(parts):
        for alias in node.names:
            if isinstance(node, ast.Import):
                full, bound = alias.name, alias.asname or top(alias.name)
                names[bound] = full if alias.asname else bound
            elif node.level:
                continue
            else:
                full = f"{node.module}.{alias.name}"
                names[alias.asname or alias.name] = full
            found[full] = node.lineno
    for node in parts:
        if isinstance(node, ast.Attribute):
            head, _, rest = dotted(node).partition(".")
            if head in names:
                found.setdefault(f"{names[head]}.{rest}", node.lineno)
    return found


@for_each(sorted(OUTSIDE))
def test_what_builds_on_core_uses_its_public_names(path):
    """Nothing outside of core reaches a name of `plait` with a part that begins with `_`; notebooks
    call `_repr_html_`."""
    inner = {
        full: line
        for full, line in reached(OUTSIDE[path]).items()
        if top(full) == "plait" and re.search(r"\._(?!_|repr_)", full)
    }
    assert not inner, f"{path} reaches core's own modules; plait.ext or a surface has what it needs"


@for_each(sorted(OUTSIDE))
def test_of_a_plugin_others_use_its_ext(path):
    """A plugin reaches of a sibling `plait_X.ext` alone; examples and pages reach what its package
    itself offers, too."""
    parts = path.split("/")
    own = f"plait_{parts[1]}" if parts[0] == "packages" else ""
    for full, line in reached(OUTSIDE[path]).items():
        name = top(full)
        if name in {*SIBLINGS} - {own}:
            at = module_of(full)
            allowed = (
                at == f"{name}.ext" or at.startswith(f"{name}.ext.") or (not own and at == name)
            )
            assert allowed, f"{path}:{line} reaches {full}, and not {name}.ext"


def module_of(full: str) -> str:
    """The module that a full name is in."""
    while full not in modules():
        full = full.rpartition(".")[0]
    return full


@pytest.mark.parametrize(
    "source, names",
    [
        ("import plait._ops.shape", {"plait._ops.shape"}),
        ("from plait import _control as c\nc.scan", {"plait._control", "plait._control.scan"}),
        ("import plait as w\nw._core.ir", {"plait", "plait._core", "plait._core.ir"}),
        ("from .ir import x\nx.y", set()),
    ],
)
def test_what_is_reached_is_seen(source, names):
    assert {*reached(source)} == names


@for_each(sorted(modules()))
def test_each_module_states_its_invariant(name):
    assert "Invariant" in (ast.get_docstring(tree(name)) or "")


@for_each(sorted(modules()))
def test_no_module_is_named_like_a_function_of_its_own(name):
    short = name.rpartition(".")[2]
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    if name not in OF_ONE_FUNCTION:
        assert short not in [n.name for n in tree(name).body if isinstance(n, functions)]
    assert short not in ("utils", "common", "misc", "helpers", "internal")


@for_each(sorted(modules()))
def test_only_what_is_declared_is_imported(name):
    """Third-party imports are those that the packages' metadata promises."""
    allowed = {"plait", *SIBLINGS, "numpy", "jaxlib", "ml_dtypes", "typing_extensions"}
    foreign = {top(t) for t in edges(name)} - sys.stdlib_module_names - allowed
    optional = {"tensorflow"} if top(name) == "plait_export" else set()
    optional |= {"pytest", "scipy", "mpmath"} if top(name) == "plait_testing" else set()
    assert foreign <= optional
