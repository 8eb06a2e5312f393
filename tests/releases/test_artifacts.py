"""Files that this tree writes, read by every earlier release of plait-export.

Invariant: an earlier release reads what it knows, and what it does not know is refused by name or
is no part of what it computes.
"""

import os
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = tomllib.loads((ROOT / "releases.toml").read_text(encoding="utf-8"))["release"]
RELEASES = [r["version"] for r in ROWS if r["package"] == "plait-export"]

pytestmark = pytest.mark.skipif(
    "PLAIT_TEST_RELEASES" not in os.environ, reason="run by `nox -s releases`"
)

WRITE = """
import sys, numpy as np, plait
w = plait.numpy.asarray(np.arange(600, dtype=np.float32).reshape(3, 200))
types = plait.export.symbolic_args_specs(np.ones((2, 3), np.float32), "b, 3")
exported = plait.export.export(lambda x: x @ w)(types)
for order in (0, 1, 2):
    open(f"{sys.argv[1]}{order}", "wb").write(exported.serialize(vjp_order=order))
"""

WRITE_MORE = """
import sys, numpy as np, plait
plait.config.cpu_devices = 2
w, x = np.arange(6, dtype=np.float32), np.ones(6, np.float32)
plait.export.export(lambda x: x * w, weights=1)(x).save(sys.argv[1] + "separate-weights")
plait.export.export(lambda x: x * w)(x).compile().save(sys.argv[1] + "executables")
f = plait.shard_map(lambda x: x * 2, mesh=plait.make_mesh((2,), ("x",)),
                    in_specs=plait.P("x"), out_specs=plait.P("x"))
plait.export.export(f)(x).save(sys.argv[1] + "meshes")
"""

REFUSE = """
import sys, plait
for feature in ("separate-weights", "executables", "meshes"):
    try:
        plait.export.deserialize(open(sys.argv[1] + feature, "rb").read())
    except plait.errors.PlaitError as e:
        print(e.what, e.fix)
        assert f"requires what this reader does not know: {feature}" in e.what, e
        assert "pip install --upgrade plait-export" in e.fix, e
    else:
        raise AssertionError(f"it knows nothing of {feature}")
"""

READ = """
import sys, numpy as np, plait
w = np.arange(600, dtype=np.float32).reshape(3, 200)
for order in (0, 1, 2):
    again = plait.export.deserialize(open(f"{sys.argv[1]}{order}", "rb").read())
    np.testing.assert_allclose(again.call(np.ones((4, 3), np.float32)), np.ones((4, 3)) @ w)
    try:
        plait.grad(lambda x: again.call(x).sum())(np.ones((4, 3), np.float32))
    except plait.errors.MissingRule as e:
        assert "without its derivative" in str(e), e
    else:
        raise AssertionError("it has no derivative")
"""


@pytest.fixture(scope="module")
def written(python, tmp_path_factory):
    """The beginning of the names of files that this tree wrote, with derivatives to order 2."""
    path = str(tmp_path_factory.mktemp("artifacts") / "order")
    tree = dict.fromkeys(("core", "numpy", "autodiff", "export"), "tree")
    done = python(tree, "-c", WRITE, path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize("version", RELEASES)
def test_a_file_with_derivatives_is_read_without_them(version, python, written):
    """They are no part of what the function computes, so older readers need not know them."""
    versions = dict.fromkeys(("core", "autodiff", "export"), version)
    done = python(versions, "-c", READ, written)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def written_with_more(python, tmp_path_factory):
    """The beginning of the names of files that need what earlier releases do not know."""
    path = str(tmp_path_factory.mktemp("more")) + os.sep
    done = python(dict.fromkeys(("core", "sharding", "export"), "tree"), "-c", WRITE_MORE, path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.parametrize("version", [v for v in RELEASES if v in ("0.1.0", "0.2.0")])
def test_what_an_earlier_release_does_not_know_is_refused_by_name(
    version, python, written_with_more
):
    versions = dict.fromkeys(("core", "export"), version)
    done = python(versions, "-c", REFUSE, written_with_more)
    assert done.returncode == 0, done.stderr
