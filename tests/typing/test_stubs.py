"""The stubs of `plait`: an editor finds every public name, and its type.

Pyright runs where it is installed: in the nox session `types`, which runs this file.

Invariant: the expected names are read from the running package, and the types from pyright's
answers, never from the stubs themselves.
"""

import ast
import importlib
import importlib.util
import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import plait
from plait._api import aliases

from .public_functions import SURFACES, functions

ROOT = Path(__file__).parents[2]
STUB = ROOT / "packages" / "core" / "src" / "plait-stubs" / "__init__.pyi"
PACKAGES = (
    "numpy", "checks", "testing", "inspect", "autodiff", "batching", "sharding", "export", "state",
    "sparse",
)  # fmt: skip
OURS = {f"plait-{name}" for name in PACKAGES}
ASKED = {
    "plait.jit": "Overload[(fun: (**P@jit)",
    "plait.grad": "(fun:",
    "plait.vmap": "Overload[(fun: (**P@vmap)",
    "plait.shard_map": "(",
    "plait.remat": "Overload[(fun: (**P@checkpoint)",
    "plait.export.export": "(",
    "plait.make_jaxpr": "(fun:",
    "plait.numpy.sin": "(Array | ndarray[",
    "plait.numpy.sum": "(",
    "plait.lax.scan": "Overload[(f: (Array, X@scan)",
    "plait.lax.zeta": "(",
    "plait.lax.custom_root": "(f:",
    "plait.debug.breakpoint": "(*, backend: str | None = None",
    "plait.debug.progress": "(f:",
    "plait.debug.callback": "(callback: (...) -> Any, *args",
    "plait.Mesh": "type[Mesh]",
    "plait.checkpoint_policies": "Module(",
    "plait.config": "Config",
}
"""Expressions, and how the types that pyright prints for them begin."""

USED = """
x = plait.numpy.asarray(1.0)

def f(x: plait.Array, n: int = 2) -> list[plait.Array]:
    return [x] * n

@plait.jit
def plain(x: plait.Array) -> plait.Array:
    return x

@plait.jit(static_argnames="n")
def given(x: plait.Array, n: int) -> tuple[plait.Array, int]:
    return x, n

@plait.checkpoint(prevent_cse=False)
def again(x: plait.Array) -> plait.Array:
    return x

class Model:
    @plait.jit
    def method(self, x: plait.Array) -> list[plait.Array]:
        return [x]

"""
"""Functions as users write them, with annotations."""
CALLED = {
    "plait.jit(f)": "Jitted[(x: Array, n: int = 2), list[Array]]",
    "plait.jit(f)(x)": "list[Array]",
    "plait.jit(f, static_argnums=1)(x, n=3)": "list[Array]",
    "plain": "Jitted[(x: Array), Array]",
    "plain(x)": "Array",
    "given(x, 3)": "tuple[Array, int]",
    "plain.__name__": "str",
    "plain.__wrapped__": "(x: Array) -> Array",
    "plain.trace(x)": "Staged",
    "plain.trace(x).lower()": "Lowered",
    "plain.lower(x)": "Lowered",
    "plain.lower(x).compile()": "Compiled",
    "plain.clear_cache()": "None",
    "Model().method(x)": "list[Array]",
    "Model.method.lower(Model(), x)": "Lowered",
    "plait.vmap(f)": "(x: Array, n: int = 2) -> list[Array]",
    "plait.vmap(in_axes=1)(f)": "(x: Array, n: int = 2) -> list[Array]",
    "plait.grad(f)": "(x: Array, n: int = 2) -> Any",
    "plait.jacrev(f)": "(x: Array, n: int = 2) -> Any",
    "plait.value_and_grad(f)": "(x: Array, n: int = 2) -> tuple[list[Array], Any]",
    "plait.checkpoint(f)": "(x: Array, n: int = 2) -> list[Array]",
    "again": "(x: Array) -> Array",
    "plait.jit(plait.vmap(plait.grad(f)))": "Jitted[(x: Array, n: int = 2), Any]",
}
"""What is made of them, and its type."""
REFUSED = {
    "plain()": 'Argument missing for parameter "x"',
    "plain(x, 2)": "Expected 1 positional argument",
    "given(x, 'three')": '"Literal[\'three\']" is not assignable to "int"',
    "plain.compile(x)": 'Cannot access attribute "compile"',
    "Model().method()": 'Argument missing for parameter "x"',
    "plait.vmap(f)(x, m=2)": 'No parameter named "m"',
    "plait.jit(f, static=1)": 'No overloads for "jit"',
    "plait.checkpoint(f)(n=2)": 'Argument missing for parameter "x"',
}
"""Mistakes, and what pyright says of them."""


def declared() -> list[str]:
    """The public names that the stub declares, as often as it does."""
    found: list[str] = []
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom | ast.Import):
            found += [alias.asname or alias.name for alias in node.names]
        elif isinstance(node, ast.Assign):
            found += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [name for name in found if not name.startswith("_")]


def strangers() -> set[str]:
    """The names that distributions other than ours add to `plait` here."""
    every = entry_points(group="plait.api")
    return {point.name for point in every if point.dist is None or point.dist.name not in OURS}


def at_run_time() -> set[str]:
    """The modules of `plait` that have no file, by the first parts of their names."""
    declared = [point.name for point in entry_points(group="plait.modules")]
    return {name.partition(".")[0] for name in [*declared, *aliases.TABLE]}


@pytest.fixture(scope="module")
def writer():
    """docs/stubs.py, as a module."""
    spec = importlib.util.spec_from_file_location("stubs", ROOT / "docs" / "stubs.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_stubs_are_up_to_date(writer):
    everything_installed()
    assert writer.written() == writer.stubs(), "python docs/stubs.py --write"


def test_the_stub_has_each_member_of_arrays(writer):
    tree = ast.parse((STUB.parent / "_core" / "array_type.pyi").read_text(encoding="utf-8"))
    (kind,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    written = {n.name for n in kind.body if isinstance(n, ast.FunctionDef)}
    x = plait.numpy.ones(3)
    missing = {n for n in dir(x) if not n.startswith("_")} - written - writer.INTERNAL - {"aval"}
    assert not missing
    assert written <= set(dir(x))


def test_every_stub_of_a_module_is_imported_at_run_time():
    everything_installed()
    found = [path.parent.relative_to(STUB.parent) for path in STUB.parent.rglob("__init__.pyi")]
    for folder in found:
        importlib.import_module(".".join(["plait", *folder.parts]))
    assert len(found) > 20


def test_pyright_finds_the_names_of_modules_without_files(tmp_path):
    everything_installed()
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed: the nox session `types` runs this")
    folders = [path.parent.relative_to(STUB.parent) for path in STUB.parent.rglob("__init__.pyi")]
    modules = [".".join(["plait", *folder.parts]) for folder in folders if folder.parts]
    names = [
        f"{module}.{name}"
        for module in modules
        for found in [importlib.import_module(module)]
        for name in getattr(found, "__all__", None) or dir(found)
        if not name.startswith("_")
    ]
    lines = [f"import {module}\n" for module in modules] + [f"reveal_type({n})\n" for n in names]
    (tmp_path / "names.py").write_text("".join(lines))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run([*command, "names.py"], capture_output=True, text=True, cwd=tmp_path)
    found = json.loads(done.stdout)["generalDiagnostics"]
    assert len(names) > 80
    assert not [said["message"] for said in found if said["severity"] == "error"]


def everything_installed() -> None:
    if missing := OURS - {p.dist.name for p in entry_points(group="plait.api") if p.dist}:
        pytest.skip(f"not all plugins are installed: {', '.join(sorted(missing))}")


def test_the_stub_declares_the_names_of_the_package_and_no_others():
    everything_installed()
    names = declared()
    assert sorted(names) == sorted(set(names))
    assert set(names) == (set(dir(plait)) | at_run_time()) - strangers()


def test_what_the_stub_does_not_declare_is_no_name():
    assert "gradient" not in declared()
    with pytest.raises(AttributeError):
        _ = plait.gradient


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> dict[str, list[str]]:
    """What pyright says of each expression, asked in a file of its own: first its type."""
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed: the nox session `types` runs this")
    folder = tmp_path_factory.mktemp("asked")
    file = folder / "asked.py"
    begin = "import plait\n" + USED
    asked = [*ASKED, *CALLED, "plait.gradient", *REFUSED]
    file.write_text(begin + "".join(f"reveal_type({x})\n" for x in asked))
    settings = {"include": ["asked.py"]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run([*command, "-p", str(folder)], capture_output=True, text=True)
    found: dict[str, list[str]] = {x: [] for x in asked}
    for said in json.loads(done.stdout)["generalDiagnostics"]:
        at = said["range"]["start"]["line"] - begin.count("\n")
        if said["severity"] == "information":
            kind = said["message"].partition(" is ")[2].strip('"')
            found[asked[at]].insert(0, kind)
        else:
            assert at >= 0, said["message"]  # USED has no mistakes
            found[asked[at]].append(said["message"])
    return found


MAKERS = {"plait.lax.composite", "plait.numpy.vectorize"}
"""Functions that return functions."""


def test_pyright_finds_the_results_of_all_functions_of_arrays(tmp_path):
    """A decorator without types would hide those of its function."""
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed: the nox session `types` runs this")
    names = [name for name, _ in functions(SURFACES)]
    modules = "".join(f"import {name}\n" for name in SURFACES)
    file = tmp_path / "every.py"
    file.write_text(modules + "".join(f"reveal_type({name})\n" for name in names))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, cwd=tmp_path)
    found = {}
    for said in json.loads(done.stdout)["generalDiagnostics"]:
        if said["severity"] == "information":
            kind = said["message"].partition(" is ")[2]
            name = names[said["range"]["start"]["line"] - len(SURFACES)]
            found[name] = kind.rpartition(" -> ")[2].rstrip('")]')
    assert found.keys() == set(names)
    hidden = {name for name, result in found.items() if result in ("Any", "Unknown", "")}
    assert hidden <= MAKERS


@pytest.mark.parametrize("expression", ASKED)
def test_pyright_knows_the_type(said, expression):
    kind = said[expression][0]
    assert "Unknown" not in kind
    assert kind.startswith(ASKED[expression])


@pytest.mark.parametrize("expression", CALLED)
def test_pyright_knows_what_a_transformed_function_is(said, expression):
    assert said[expression] == [CALLED[expression]]


@pytest.mark.parametrize("expression", REFUSED)
def test_pyright_sees_mistakes_with_a_transformed_function(said, expression):
    assert any(REFUSED[expression] in message for message in said[expression][1:])


def test_pyright_does_not_know_what_is_no_name(said):
    assert said["plait.gradient"][0] == "Unknown"
