"""Every public module and name of jax exists where `import jax` is answered by Plait.

Invariant: the names are read from jax itself, in a Python of its own; the other Python imports and
reads each of them.
"""

import json
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("jax", reason="run by `nox -s coexistence`")

PUBLIC = """
import importlib, json, pkgutil, sys, types, warnings
import jax

warnings.simplefilter("ignore")
wanted, packages = {}, [("jax.", jax.__path__)]
while packages:
    prefix, folders = packages.pop()
    for info in pkgutil.iter_modules(folders, prefix):
        if "._" in info.name:
            continue
        wanted[info.name] = []
        try:
            module = importlib.import_module(info.name)
        except Exception:  # it needs what is not installed
            continue
        if info.ispkg:
            packages.append((info.name + ".", module.__path__))

def answers(module, name):
    try:
        value = getattr(module, name)
    except Exception:  # it was taken away
        return False
    return not isinstance(value, types.ModuleType) or value.__name__ == f"{module.__name__}.{name}"

for full in ("jax", *wanted):
    module = sys.modules.get(full)
    if module is not None:
        names = {*dir(module), *getattr(module, "_deprecations", ())}
        wanted[full] = sorted(n for n in names if n[0] != "_" and answers(module, n))
print(json.dumps(wanted))
"""

READ = """
import importlib, json, sys
import plait_jax

plait_jax.install()
missing = []
for full, names in json.load(sys.stdin).items():
    try:
        module = importlib.import_module(full)
    except ImportError as e:
        missing.append(f"{full}: {e}")
        continue
    assert type(module).__module__ == "plait_jax.finder", full
    missing += [f"{full}.{name}" for name in names if not hasattr(module, name)]
    missing += [f"dir: {full}.{name}" for name in names if name not in dir(module)]
print(json.dumps(missing))
"""


def python(code, text=""):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        input=text,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_no_public_name_is_missing():
    public = python(PUBLIC)
    wanted = json.loads(public)
    assert len(wanted) > 200 and {"jit", "grad", "numpy"} <= {*wanted["jax"]}
    assert json.loads(python(READ, public)) == []
