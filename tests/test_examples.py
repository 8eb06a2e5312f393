"""The examples that need nothing but Plait run; `nox -s demo` runs the one that needs more.

Invariant: an example is run as a user runs it, in a process of its own.
"""

import ast
import importlib.util
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import plait

EXAMPLES = Path(__file__).parents[1] / "examples"
LOSSES = Path(__file__).with_name("elastic_losses.py")
PACKAGES = sorted(p.parent.name for p in EXAMPLES.glob("*/pyproject.toml"))
STRANGERS = [name for name in PACKAGES if name != "interval"]
NEWER = ("handlers", "harvest", "patterns", "sparsity", "structured")
API = dict.fromkeys(NEWER, "1.1")
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


def test_four_ways_of_dividing_a_network_are_that_of_one_device():
    told = run(EXAMPLES / "parallel_ways.py")
    assert told.returncode == 0, told.stdout + told.stderr
    ways = dict(line.split(": ", 1) for line in told.stdout.splitlines())
    # All weights are 8 x 16 x 32 x 2 floats.  Of data parallel, each device gives all gradients,
    # and the loss; of the others a layer's, a part of it, or what goes from stage to stage.
    assert f"'all-reduce': {8 * 16 * 32 * 2 * 4 + 4}" in ways["data parallel"]
    assert "'all-gather': 2048" in ways["fully sharded"]
    assert "'reduce-scatter': 4096" in ways["fully sharded"]
    assert ways["tensor parallel"].endswith("{'all-reduce': 4096}")
    assert "'collective-permute': 512" in ways["pipeline"]


def test_sequences_dealt_over_devices_have_the_gradient_of_a_loop(monkeypatch):
    """Against numpy, by differences of a loop over the sequences; and the share of each device."""
    spec = importlib.util.spec_from_file_location("parallel_piles", EXAMPLES / "parallel_piles.py")
    example = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(plait, "config", SimpleNamespace())  # devices are there already
    spec.loader.exec_module(example)
    monkeypatch.undo()
    w = example.weights()
    xs, wanted = example.batch(3)
    parts, their_wanted = example.dealt(xs, wanted)
    rows = np.asarray(parts.lengths).sum(axis=1)
    assert rows.sum() == np.asarray(xs.lengths).sum() and rows.max() - rows.min() <= 2
    in_order = np.asarray(xs.lengths).reshape(example.DEVICES, -1).sum(axis=1)
    assert in_order.max() > 1.2 * rows.max()  # which is why they are dealt
    mesh = plait.make_mesh((example.DEVICES,), ("d",))
    value, slopes = plait.jit(example.over_devices(mesh))(w, parts, their_wanted)

    sequences = [np.asarray(x, np.float64) for x in xs.to_list()]

    def loss(w):
        total = 0.0
        for x, y in zip(sequences, wanted, strict=True):
            p = np.exp((x @ w["query"]) @ (x @ w["key"]).T / np.sqrt(x.shape[1]))
            hidden = np.tanh(p / p.sum(axis=1, keepdims=True) @ (x @ w["value"]))
            total += (hidden.mean(axis=0) @ w["out"] - y) ** 2
        return total / len(sequences)

    exact = {name: np.asarray(x, np.float64) for name, x in w.items()}
    assert float(value) == pytest.approx(loss(exact), rel=1e-5)
    r = np.random.default_rng(0)
    for name in w:  # along a random direction of each weight
        v = r.normal(size=w[name].shape)
        ahead, back = (loss({**exact, name: exact[name] + h * v}) for h in (1e-5, -1e-5))
        assert (np.asarray(slopes[name]) * v).sum() == pytest.approx(
            (ahead - back) / 2e-5, rel=1e-4, abs=1e-6
        ), name


def test_sequences_over_devices_send_one_gradient_and_have_one_program():
    told = run(EXAMPLES / "parallel_piles.py")
    assert told.returncode == 0, told.stdout + told.stderr
    assert told.stdout.count("all-reduce") == 1
    assert f"('all-reduce', {(3 * 8 * 8 + 8 + 1) * 4})" in told.stdout  # all weights, and the loss
    assert told.stdout.endswith("programs made meanwhile: 0\n")


def numbers(text: str) -> list[float]:
    """The numbers of a text, in order."""
    return [float(n) for n in re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?", text)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("texts", lambda lines: numbers(lines[1])[0] > 0.7),
        ("graphs", lambda lines: numbers(lines[0])[0] < numbers(lines[0])[1] / 2),
        (
            "particles",
            lambda lines: (
                numbers(lines[0])[0] < 0.1
                and numbers(lines[2])[0] < 1e-4
                and numbers(lines[3])[1] < numbers(lines[3])[0] / 2
            ),
        ),
    ],
)
def test_examples_of_piles_are_one_program(name, holds):
    """Each batch of training has the program of the first, and the figures are what is claimed."""
    told = run(EXAMPLES / f"{name}.py")
    assert told.returncode == 0, told.stdout + told.stderr
    lines = told.stdout.splitlines()
    (programs,) = [line for line in lines if line.startswith("programs")]
    assert numbers(programs) == [1] and holds(lines), told.stdout


def test_the_reversible_network_takes_constant_memory(monkeypatch):
    """On images drawn here: scikit-learn, whose digits the example trains on, need not be there."""
    monkeypatch.setitem(sys.modules, "sklearn", ModuleType("sklearn"))
    monkeypatch.setitem(sys.modules, "sklearn.datasets", SimpleNamespace(load_digits=None))
    spec = importlib.util.spec_from_file_location("reversible", EXAMPLES / "reversible.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    r = np.random.default_rng(0)
    images = r.uniform(size=(512, 64)).astype(np.float32)
    labels = r.integers(0, 10, 512).astype(np.int32)
    used = [example.memory(d, images, labels, plait.invertible) for d in (4, 16)]
    kept = [example.memory(d, images, labels, example.plain) for d in (4, 16)]
    assert used[1] <= 1.05 * used[0] and kept[1] > 2 * kept[0]
    gradients = [
        plait.grad(lambda p, how=how: example.loss(p, images, labels, how))(example.parameters(16))
        for how in (plait.invertible, example.plain)
    ]
    assert example.apart(*gradients) < 1e-5


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


@pytest.mark.wide
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


DIES = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {folder!r})
import checkpoint, elastic, plait

class Saving(checkpoint.Saving):
    def _come(self, where, awaited):
        if where == "written" and self.folder.name == "00000008" and plait.process_index() == 1:
            os.kill(os.getpid(), signal.SIGKILL)  # its pieces are there, and those of others
        super()._come(where, awaited)

checkpoint.Saving = Saving
elastic.train(Path(sys.argv[1]), 18)
"""


@pytest.mark.wide
@pytest.mark.skipif(sys.platform == "win32", reason="several processes need POSIX")
def test_training_goes_on_after_a_kill_while_it_writes(tmp_path):
    """3 processes write, one is killed in it; 5, 2 and 1 go on from the last whole checkpoint."""
    pytest.importorskip("tensorstore")
    spec = importlib.util.spec_from_file_location("elastic_losses", LOSSES)
    elastic_losses = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(elastic_losses)
    launch = ["-m", "plait_sharding.launch", "--devices", "1", "-n"]
    dying = tmp_path / "dying.py"
    dying.write_text(DIES.format(folder=str(EXAMPLES)))
    root = tmp_path / "run"
    root.mkdir()
    told = run(*launch, "3", dying, root)
    assert told.returncode != 0 and "PeerLost" in told.stderr, told.stderr
    whole = lambda: sorted(p.name for p in root.glob("0*"))
    assert whole() == ["00000004", "00000008.unfinished"]
    for n, steps in ((5, 10), (2, 14), (1, 18)):
        told = run(*launch, str(n), EXAMPLES / "elastic.py", root, str(steps))
        assert told.returncode == 0, told.stderr
    assert whole() == ["00000004", "00000008", "00000012", "00000016"]
    counts, steps = elastic_losses.follows(root, elastic_losses.losses(18))
    assert counts == [3, 5, 2, 1]
    begun = [k for i, k in enumerate(steps) if i == 0 or k <= steps[i - 1]]
    assert begun == [0, 4, 8, 12]


def written(form, folder, name):
    """An array of a checkpoint that one process with one device wrote, by the library alone."""
    if form == "safetensors":
        from safetensors.numpy import load_file

        return load_file(folder / "00000.safetensors")[f"{name}.0"]
    import tensorstore as ts

    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(folder / name)}}
    return ts.open(spec).result().read().result()
