"""Distributions whose files cannot be read, or whose import does not end as it should.

Invariant: each runs beside what is installed, in a process of its own; whatever it offers fails
with an error of Plait, and everything else works.
"""

import subprocess
import sys

import pytest

META = "Metadata-Version: 2.1\nName: unreadable\nVersion: 1.0\n"
POINTS = "[plait.api]\nhostile = unreadable:f\n[plait.rules.jvp]\ncore = unreadable\n"
API = "[plait.plugin_api]\n1.1 = unreadable\n"
FILES = {  # METADATA, entry points, module
    "no METADATA": (None, POINTS + API, "f = 1"),
    "empty METADATA": ("", POINTS + API, "f = 1"),
    "METADATA in another encoding": (b"Name: b\xff\xfe\nVersion: 1\n", POINTS + API, "f = 1"),
    "METADATA is a folder": (..., POINTS + API, "f = 1"),
    "no version": ("Name: unreadable\n", POINTS + API, "f = 1"),
    "a line without =": (META, "[plait.api]\nhostile\n" + API, "f = 1"),
    "entry points in another encoding": (META, b"[plait.api]\nh\xff = unreadable:f\n", "f = 1"),
    "entry points are a folder": (META, ..., "f = 1"),
    "an empty value": (META, "[plait.api]\nhostile =\n" + API, "f = 1"),
    "a value that is not a module": (META, "[plait.api]\nhostile = !!! ::\n" + API, "f = 1"),
    "another's line without =": (META, "[console_scripts]\nx\n[jax_plugins]\ny\n", ""),
    "another's METADATA": (None, "[console_scripts]\nx = y:z\n[jax_plugins]\nx = y\n", ""),
    "SystemExit": (META, POINTS + API, "raise SystemExit(7)"),
    "a BaseException": (META, POINTS + API, "raise type('E', (BaseException,), {})('x')"),
    "an error without text": (
        META,
        POINTS + API,
        "class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E",
    ),
    "an import that uses Plait": (META, POINTS + API, "import plait\nplait.grad(lambda x: x)(1.0)"),
    "an import that waits for a thread": (
        META,
        POINTS + API,
        "import threading, plait\n"
        "t = threading.Thread(target=lambda: plait.grad(lambda x: x * x)(1.0))\n"
        "t.start()\nt.join()",
    ),
}
PROGRAM = """
import sys, threading, warnings
warnings.simplefilter("ignore")
threading.excepthook = lambda *_: None
import plait, plait.numpy as pnp
from plait import lax
from plait._plugins.metadata import loading
loading.patience = 1.0
assert float(plait.grad(lambda x: lax.sin(x) * x)(0.0)) == 0.0
assert plait.vmap(plait.grad(lambda x: x * x))(pnp.ones(2)).tolist() == [2.0, 2.0]
assert float(plait.new_ref(1.0)[...]) == 1.0
assert "grad" in dir(plait)
for name in ("hostile", "nosuch"):
    try:
        getattr(plait, name)
    except plait.PlaitError:
        pass
    else:
        assert name == "hostile"
try:
    plait._core.buffers._plugins_for("rocm")
except plait.PlaitError:
    pass
print("works")
"""


def write(path, content):
    if content is ...:
        path.mkdir()
    elif content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.sampled(12)
@pytest.mark.parametrize("case", FILES)
def test_nothing_else_breaks(tmp_path, case):
    meta, points, module = FILES[case]
    folder = tmp_path / "unreadable-1.0.dist-info"
    folder.mkdir()
    write(folder / "METADATA", meta)
    write(folder / "entry_points.txt", points)
    write(tmp_path / "unreadable.py", module)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=90)
    assert done.stdout == "works\n", done.stderr


@pytest.mark.wide
def test_doctor_names_them(tmp_path):
    """The doctor reports a distribution that cannot be read, and goes on."""
    folder = tmp_path / "unreadable-1.0.dist-info"
    folder.mkdir()
    write(folder / "entry_points.txt", POINTS)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from plait._api.doctor import diagnosis\nprint(diagnosis().problems)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=90)
    assert "unreadable-1.0.dist-info cannot be read" in done.stdout, done.stderr
    assert "METADATA is missing" in done.stdout
