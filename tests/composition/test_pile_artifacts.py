"""Piles in artifacts: saved by name, called with rows and lengths where piles are not installed.

Invariant: values are numpy's; the process that reads has a copy of the artifact and nothing else.
"""

import json
import subprocess
import sys

import numpy as np
import pytest

import plait
from plait import Pile, pile_axis, vmap
from plait.export import deserialize, export

XS = [np.arange(1.0, 1 + 2 * n).reshape(n, 2).astype("float32") for n in (3, 0, 4)]


def scaled(w, p):
    return {
        "sums": w * vmap(lambda x: x.sum(0), pile_axis)(p),
        "rows": vmap(lambda x: x[::-1], pile_axis, pile_axis)(p),
    }


def saved():
    return export(plait.jit(scaled))(np.float32(2), Pile.from_list(XS)).serialize()


def test_a_pile_is_saved_by_name():
    got = deserialize(saved()).call(np.float32(2), Pile.from_list(XS[::-1]))
    np.testing.assert_array_equal(got["sums"], [2 * x.sum(0) for x in XS[::-1]])
    for y, x in zip(got["rows"].to_list(), XS[::-1], strict=True):
        np.testing.assert_array_equal(y, x[::-1])


KINDS = {
    "trees": lambda: Pile.from_list([{"a": (np.ones(n), np.arange(n))} for n in (2, 0)]),
    "two sizes": lambda: Pile.from_list([np.ones((n, n + 1)) for n in (2, 0)], axis=(0, 1)),
    "facts": lambda: Pile.from_list([np.ones(4), np.ones(2)], at_least=2, multiple_of=2),
    "room": lambda: Pile.from_list([np.ones(4)], capacity=plait.Capacities(64, 8, count=3)),
    "narrow": lambda: Pile.from_list([np.ones(4, "bfloat16")]),
    "piles": lambda: Pile.from_list([Pile.from_list([np.ones(2), np.ones(1)])]),
    "keys": lambda: Pile.from_list([plait.random.split(plait.random.key(0), 2)]),
}


@pytest.mark.parametrize("name", KINDS)
def test_structures_are_read_as_they_were_written(name):
    p = KINDS[name]()
    exported = export(plait.jit(lambda p: p))(p)
    again = deserialize(exported.serialize())
    assert again.in_tree == exported.in_tree and again.out_tree == exported.out_tree
    got = again.call(p)
    assert plait.tree.structure(got) == plait.tree.structure(p)
    assert got.lengths.tolist() == p.lengths.tolist()


READER = """
import json, sys, numpy as np, plait
from plait.errors import PlaitError
x = plait.export.deserialize(open(sys.argv[1], "rb").read())
rows = np.arange(1.0, 13.0, dtype="float32").reshape(6, 2)
out = x.call(np.float32(2), (rows, np.array([1, 5, 0])))
try:
    x.call(np.float32(2), (rows, np.array([1, 50, 0], "int32")))
except PlaitError as e:
    refused = e.what
rows, lengths = out["rows"]
print(json.dumps([np.asarray(out["sums"]).tolist(), np.asarray(rows)[:6].tolist(),
                  np.asarray(lengths).tolist(), refused, "plait_batching" in sys.modules]))
"""


def test_a_process_without_piles_calls_with_rows_and_lengths(tmp_path):
    """The plugins that it may use are the core and export."""
    (tmp_path / "saved").write_bytes(saved())
    (tmp_path / "reader.py").write_text(READER)
    done = subprocess.run(
        [sys.executable, tmp_path / "reader.py", tmp_path / "saved"],
        env={"PLAIT_PLUGINS": "plait-core,plait-export", "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr
    sums, rows, lengths, refused, imported = json.loads(done.stdout)
    x = np.arange(1.0, 13.0).reshape(6, 2)
    assert sums == [(2 * x[:1].sum(0)).tolist(), (2 * x[1:].sum(0)).tolist(), [0, 0]]
    assert rows == np.concatenate([x[:1], x[:0:-1]]).tolist() and lengths == [1, 5, 0]
    assert "do not fit" in refused and not imported
