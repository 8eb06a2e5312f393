"""The examples that need nothing but Plait run; `nox -s demo` runs the one that needs more.

Invariant: an example is run as a user runs it, in a process of its own.
"""

import ast
import io
import subprocess
import sys
import tokenize
import tomllib
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PACKAGES = sorted(p.parent.name for p in EXAMPLES.glob("*/pyproject.toml"))
STRANGERS = [name for name in PACKAGES if name != "interval"]
API = {"handlers": "1.1", "patterns": "1.1"}
"""The version of plait.ext that a sample package needs, where the first one does not suffice."""
LIBRARY = ("numpy", "scipy", "random", "nn", "image", "lax.linalg", "ext.ops.linalg")
"""Modules of `plait` that plait-numpy brings."""
PUBLIC = ("plait_autodiff.ext", "plait_batching.ext")


def run(*command: object) -> subprocess.CompletedProcess:
    """An example, as a program."""
    return subprocess.run(
        [sys.executable, "-W", "error", *command], capture_output=True, text=True, timeout=200
    )


def test_the_tour_ends_well():
    told = run(EXAMPLES / "tour.py")
    assert told.returncode == 0, told.stderr
    assert "the loss after training, from the file:" in told.stdout


def test_the_transformer_in_pieces_is_that_of_one_device():
    told = run(EXAMPLES / "parallel_transformer.py")
    assert told.returncode == 0, told.stdout + told.stderr
    assert "weights differ from those of one device" in told.stdout


def test_the_reader_refuses_to_run_beside_transformations(tmp_path):
    answers = tmp_path / "answers.npy"
    told = run(EXAMPLES / "reader.py", tmp_path / "program", tmp_path / "images.npy", answers)
    assert told.returncode == 1 and "plait_autodiff is installed here" in told.stderr
    assert not answers.exists()


def sources(package: str) -> dict[str, str]:
    """The modules of a sample package, by their paths."""
    found = (EXAMPLES / package / "src").rglob("*.py")
    return {str(p.relative_to(EXAMPLES)): p.read_text(encoding="utf-8") for p in found}


def code_lines(source: str) -> int:
    """How many lines have code: no blank ones, no comments, no docstrings."""
    said = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    idle = {
        tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
        tokenize.ENDMARKER,
    }  # fmt: skip
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    used = [range(t.start[0], t.end[0] + 1) for t in tokens if t.type not in idle]
    return len({line for lines in used for line in lines} - said)


@pytest.mark.parametrize("package", PACKAGES)
def test_sample_packages_are_short(package):
    counts = {path: code_lines(source) for path, source in sources(package).items()}
    assert 0 < sum(counts.values()) < 150, counts


def test_lines_of_code_are_counted():
    assert (
        code_lines('"""Two\nlines."""\n\n# why\nx = (\n    1\n)\n\ndef f():\n    return x\n') == 5
    )


def names_imported(source: str) -> list[str]:
    """The modules, and the names in modules, that a module imports."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_sample_packages_use_public_names_alone(package):
    for path, source in sources(package).items():
        for name in names_imported(source):
            hidden = name.startswith("plait.") and any(p[0] == "_" for p in name.split("."))
            assert not hidden, f"{path} imports {name}"
            ours = name.startswith(("plait_autodiff", "plait_batching", "plait_sharding"))
            assert not ours or name.startswith(PUBLIC), f"{path} imports {name}"


@pytest.mark.parametrize("package", STRANGERS)
def test_sample_packages_say_what_they_were_built_for(package):
    text = (EXAMPLES / package / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    built_for = {API.get(package, "1.0"): f"plait_{package}"}
    assert project["entry-points"]["plait.plugin_api"] == built_for
    assert "plait-core>=0.3,<0.4" in project["dependencies"] and project["version"] == "0.1.0"
    assert (EXAMPLES / package / "README.md").is_file()


@pytest.mark.parametrize("package", PACKAGES)
def test_sample_packages_require_the_array_library_if_they_import_it(package):
    imported = {name for source in sources(package).values() for name in names_imported(source)}
    text = (EXAMPLES / package / "pyproject.toml").read_text(encoding="utf-8")
    required = "plait-numpy>=0.1,<0.2" in tomllib.loads(text)["project"]["dependencies"]
    assert required == bool(imported & {f"plait.{name}" for name in LIBRARY})


@pytest.mark.sampled(4)
@pytest.mark.parametrize("form", ["tensorstore", "safetensors"])
def test_checkpoints_go_from_any_number_of_processes_to_any(form, tmp_path):
    """4 processes, 2, 1, and 8 devices; what is read at the end is compared with numpy."""
    pytest.importorskip(form)
    chain = [(4, 1), (2, 2), (1, 1), (2, 4), (1, 1)]
    for k, (n, devices) in enumerate(chain):
        source = tmp_path / f"step{k}" if k else "-"
        launch = ["-m", "plait_sharding.launch", "-n", n, "--devices", devices]
        program = [EXAMPLES / "checkpoint.py", form, source, tmp_path / f"step{k + 1}"]
        told = run(*map(str, [*launch, *program]))
        assert told.returncode == 0, told.stderr
        assert f"step {k + 1} by {n} processes" in told.stdout
    rng = np.random.default_rng(0)
    want = {
        "rows": rng.normal(size=(8, 4)).astype(np.float32),
        "columns": rng.normal(size=(3, 16)),
        "copies": np.arange(5, dtype=np.int32),
    }
    last = tmp_path / f"step{len(chain)}"
    for name, x in want.items():
        for _ in chain:
            x = x * 2 + 1
        np.testing.assert_allclose(written(form, last, name), x, rtol=1e-6)
    assert written(form, last, "steps") == len(chain)
    assert not list(tmp_path.glob("*.unfinished"))


def written(form, folder, name):
    """An array of a checkpoint that one process with one device wrote, by the library alone."""
    if form == "safetensors":
        from safetensors.numpy import load_file

        return load_file(folder / "00000.safetensors")[f"{name}.0"]
    import tensorstore as ts

    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(folder / name)}}
    return ts.open(spec).result().read().result()
