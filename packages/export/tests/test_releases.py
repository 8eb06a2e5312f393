"""What every release wrote, with numpy's results: read, called and differentiated today.

`golden/releases/VERSION` was written once, by `golden/write.py` of that release; what it holds is
what there is in the world.
"""

import hashlib
import tomllib
from pathlib import Path

import numpy as np
import pytest

from plait_export import check, deserialize, load

HERE = Path(__file__).parent
GOLDEN = HERE / "golden" / "releases"
LISTED = [line.split() for line in (GOLDEN / "CHECKSUMS").read_text("ascii").splitlines()]
FILES = [name for _, name in LISTED if name.endswith(".plait")]
ON_MESHES = [name for name in FILES if name.endswith("meshes.plait")]


def test_nothing_was_written_again():
    there = sorted(p.relative_to(GOLDEN).as_posix() for p in GOLDEN.glob("*/*"))
    assert there == sorted(name for _, name in LISTED)
    for digest, name in LISTED:
        assert hashlib.sha256((GOLDEN / name).read_bytes()).hexdigest() == digest, name


def test_the_version_that_is_here_has_files():
    """Who makes a release writes them: `python packages/export/tests/golden/write.py VERSION`."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))
    assert (GOLDEN / project["project"]["version"]).is_dir()


def numbered(arrays, side: str) -> list[np.ndarray]:
    return [arrays[f"{side}{i}"] for i in range(sum(n.startswith(side) for n in arrays.files))]


def same(found, wanted) -> None:
    for x, y in zip(found, wanted, strict=True):
        x = np.asarray(x) if x.dtype.name != "bfloat16" else np.asarray(x, np.float32)
        np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-4)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", sorted({*FILES} - {*ON_MESHES}))
def test_what_a_release_wrote(name):
    saved = (GOLDEN / name).read_bytes()
    arrays = np.load(GOLDEN / name.replace(".plait", ".npz"))
    args, ct = numbered(arrays, "args"), numbered(arrays, "ct")
    flat, _ = zip(*[(a, None) for a in args])
    for exported in (deserialize(saved), load(GOLDEN / name), deserialize(saved, isolated=True)):
        given, kwargs = exported.in_tree.unflatten(list(flat))
        same(exported.out_tree.flatten_up_to(exported.call(*given, **kwargs)),
             numbered(arrays, "results"))  # fmt: skip
        assert exported.has_vjp() == bool(ct)
        if ct:
            same(exported.vjp().call(*args, *ct), numbered(arrays, "over"))


@pytest.mark.parametrize("name", ON_MESHES)
def test_what_a_release_wrote_for_several_devices(name):
    """It is called in tests/export, with plait-sharding."""
    assert check(GOLDEN / name).nr_devices == 8
    assert load(GOLDEN / name).nr_devices == 8
