"""A table has all rules for a namespace after it imported what is declared for the two.

Invariant: what a table imports is judged in a process that has imported nothing else of Plait.
"""

import json
import os
import subprocess
import sys

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
