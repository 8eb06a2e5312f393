"""The stub of `plait`: an editor knows every public name, and its type.

Pyright is asked where it is installed: in the nox session `types`, which runs this file.

Invariant: what is expected of the stub is read from the running package and from pyright, never
from the stub itself.
"""

import ast
import importlib.util
import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import plait

ROOT = Path(__file__).parents[2]
STUB = ROOT / "packages" / "core" / "src" / "plait" / "__init__.pyi"
OURS = {"plait-autodiff", "plait-batching", "plait-sharding", "plait-export"}
ASKED = {
    "plait.jit": "(fun:",
    "plait.grad": "(fun:",
    "plait.vmap": "(fun:",
    "plait.shard_map": "(",
    "plait.custom_vjp": "type[custom_vjp]",
    "plait.remat": "(",
    "plait.export.export": "(",
    "plait.make_jaxpr": "(fun:",
    "plait.numpy.sin": "(Any) -> Any",
    "plait.numpy.sum": "(",
    "plait.lax.scan": "(",
    "plait.Mesh": "type[Mesh]",
    "plait.checkpoint_policies": "Module(",
    "plait.config": "Config",
}
"""Expressions, and how the types that pyright prints for them begin."""


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


def test_the_stub_declares_the_names_of_the_package_and_no_others():
    if missing := OURS - {p.dist.name for p in entry_points(group="plait.api") if p.dist}:
        pytest.skip(f"not all plugins are installed: {', '.join(sorted(missing))}")
    names = declared()
    assert sorted(names) == sorted(set(names))
    assert set(names) == set(dir(plait)) - strangers()


def test_what_the_stub_does_not_declare_is_no_name():
    assert "gradient" not in declared()
    with pytest.raises(AttributeError):
        _ = plait.gradient


@pytest.fixture(scope="module")
def revealed(tmp_path_factory) -> dict[str, str]:
    """What pyright says of each expression, asked in a file of its own."""
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed: the nox session `types` runs this")
    folder = tmp_path_factory.mktemp("asked")
    file = folder / "asked.py"
    asked = [*ASKED, "plait.gradient"]
    file.write_text("import plait\n" + "".join(f"reveal_type({x})\n" for x in asked))
    settings = {"include": ["asked.py"], "extraPaths": [str(STUB.parents[1])]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run([*command, "-p", str(folder)], capture_output=True, text=True)
    found: dict[str, str] = {}
    for said in json.loads(done.stdout)["generalDiagnostics"]:
        if said["severity"] == "information":
            kind = said["message"].partition(" is ")[2].strip('"')
            found[asked[said["range"]["start"]["line"] - 1]] = kind
    return found


@pytest.mark.parametrize("expression", ASKED)
def test_pyright_knows_the_type(revealed, expression):
    kind = revealed[expression]
    assert "Unknown" not in kind
    assert kind.startswith(ASKED[expression])


def test_pyright_does_not_know_what_is_no_name(revealed):
    assert revealed["plait.gradient"] == "Unknown"
