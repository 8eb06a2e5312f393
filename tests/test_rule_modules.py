"""A table has all rules for a namespace after it imported what is declared for the two.

Invariant: what a table imports is judged in a process that has imported nothing else of Plait.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ALONE = """
import json, os, sys
from importlib import import_module
import plait
from plait._core.primitive import primitives
from plait._plugins.metadata import declared, load, names
from plait._plugins.rules import tables

OURS = {"plait-" + n for n in "core autodiff batching sharding export state jax".split()}
SPACES = [n for n in names("plait.primitives")
          if OURS & {d.distribution for d in declared("plait.primitives", n)}]
USERS = {"checks": "plait.checks"}  # the one that looks rules up has those of core

def bring(group, name):
    for d in declared(group, name):
        if d.distribution in OURS:
            load(d)

def of(table, space):
    return sorted(k.name for k in tables()[table]._rules if k.namespace == space)

def everything():
    import plait.checks
    for group, found in [("plait.primitives", SPACES), ("plait.tables", names("plait.tables"))]:
        for name in found:
            bring(group, name)
    for table in [*tables()]:
        for space in SPACES:
            bring("plait.rules." + table, space)
    pairs = [(t, s) for t in tables() for s in SPACES]
    return [[t, tables()[t].owner, s, of(t, s)] for t, s in pairs if of(t, s)]

def alone(table, owner, spaces):
    import_module(USERS.get(table, owner))
    found = []
    for space in spaces:
        bring("plait.primitives", space)
        prim = next(p for p in primitives().values() if p.namespace == space)
        try:
            tables()[table].own(prim)
        except plait.PlaitError:
            pass
        found.append(of(table, space))
    return found

def apart(f, *args):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        with os.fdopen(write, "w") as out:
            try:
                json.dump(f(*args), out)
            except BaseException as e:
                json.dump(repr(e), out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        found = json.load(told)
    os.waitpid(child, 0)
    return found

every, wrong = apart(everything), {}
assert isinstance(every, list), every
for table, owner in {(t, o) for t, o, _, _ in every}:
    has = {s: keys for t, _, s, keys in every if t == table}
    for spaces in ([s for s in has if s == "core"], [s for s in has if s != "core"]):
        found = apart(alone, table, owner, spaces)
        assert isinstance(found, list), (table, spaces, found)
        for s, keys in zip(spaces, found):
            if keys != has[s]:
                wrong[f"{table} of {s}"] = sorted({*keys} ^ {*has[s]})
print(json.dumps([len(every), wrong]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="tables are judged in forks of one process")
def test_what_is_declared_for_a_table_brings_all_its_rules():
    done = subprocess.run(
        [sys.executable, "-c", ALONE], capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    pairs, wrong = json.loads(done.stdout)
    assert pairs > 40 and not wrong, (
        "declare the module of these rules as an entry point of the table, under the namespace: "
        f"{wrong}"
    )


NOT_YET = {
    ("runs", "plait._ops.passage"),  # makes the table
    ("physical", "plait._ops.opaque"),  # makes the elements that these rules are about
}
LATER = """
import json, pkgutil
from importlib import import_module
import plait
from plait._core.primitive import primitives
from plait._plugins.metadata import declared
from plait._plugins.rules import tables

def rules():
    return {(t, k.name) for t in tables() for k in tables()[t]._rules if k.name in primitives()}

def home(table, prim):
    return tables()[table]._rules[primitives()[prim]].__module__

def is_declared(table, prim, module):
    space = prim.rpartition(".")[0]
    found = declared("plait.rules." + table, space)
    return any(d.point.value == module for d in found)

wrong, count = [], 0
for folder in ("_ops", "_control", "_simplify", "_jit"):
    package = import_module("plait." + folder)
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if found.name.endswith(".families"):
            continue  # it imports the others
        prims, had, count = {*primitives()}, rules(), count + 1
        import_module(found.name)
        for table, prim in sorted(rules() - had):
            module = home(table, prim)
            if prim in prims and not is_declared(table, prim, module):
                wrong.append([table, module, prim])
print(json.dumps([count, wrong]))
"""


def test_no_import_brings_a_rule_to_a_primitive_that_works_without():
    """A module of rules that nothing imports would leave a table with less than it promises."""
    done = subprocess.run(
        [sys.executable, "-c", LATER], capture_output=True, text=True, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    modules, late = json.loads(done.stdout)
    wrong = [row for row in late if (row[0], row[1]) not in NOT_YET]
    assert modules > 50 and not wrong, f"declare the module for the table: {wrong}"
    assert {(table, module) for table, module, _ in late} == NOT_YET


FIRST = {
    "a convolution": "import numpy as np; x = np.ones((1, 1, 3, 3), np.float32); "
    "print(plait.jit(lambda x: plait.lax.conv(x, x, (1, 1), 'VALID'))(x).item())",
    "a key used twice": "twice = lambda k: plait.random.bits(k) + plait.random.bits(k)\n"
    "plait.config.debug_key_reuse = True\n"
    "try: plait.jit(twice)(plait.random.key(0))\n"
    "except plait.errors.KeyReuseError: print(9.0)",
}


def test_the_check_of_keys_says_which_package_it_needs():
    script = """
import plait
plait.config.debug_key_reuse = True
try: print(plait.jit(plait.random.bits)(plait.random.key(0)))
except plait.errors.MissingPlugin as e: print(e)
"""
    env = {**os.environ, "PLAIT_PLUGINS": "numpy"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert "debug_key_reuse" in done.stdout and "plait-checks" in done.stdout, done


@pytest.mark.parametrize("what", FIRST)
def test_the_first_thing_that_a_process_does(what):
    """With few packages: what other packages import does not help."""
    env = {**os.environ, "PLAIT_PLUGINS": "numpy,checks"}
    command = [sys.executable, "-c", f"import plait\n{FIRST[what]}"]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert (done.stdout.strip(), done.stderr) == ("9.0", "")


EVERY = """
import plait
from plait._core.primitive import primitives
from plait._plugins.metadata import declared, load, names

for space in names("plait.primitives"):
    for d in declared("plait.primitives", space):
        load(d)
print(*names("plait.primitives"))
print(*[p.name for p in primitives().values()])
"""
WRITTEN = re.compile(r'(?:\bP|@p)rimitive\(\s*"((\w+)\.[\w.]*[^\W_])"')


def test_what_is_declared_for_a_namespace_defines_all_its_primitives():
    """Texts and files of programs find primitives by what is declared, in any process."""
    done = subprocess.run([sys.executable, "-c", EVERY], capture_output=True, text=True, check=True)
    spaces, defined = map(str.split, done.stdout.splitlines())
    root = Path(__file__).parents[1]
    sources = [f.read_text(encoding="utf-8") for f in root.glob("packages/*/src/**/*.py")]
    written = {name for s in sources for name, space in WRITTEN.findall(s) if space in spaces}
    assert len(written) > 100 and written <= {*defined}, written - {*defined}
