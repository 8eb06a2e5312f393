"""Wheels of every release and of this tree, each unpacked into a folder of its own.

Invariant: a release is built of the commit that `releases.toml` records, and of nothing else.
"""

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]


def load():
    """The module `releasing` at the root, which is no part of any package."""
    spec = importlib.util.spec_from_file_location("releasing", ROOT / "releasing.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["releasing"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Built(NamedTuple):
    """A distribution that was built: its sources, the wheel, and where that is unpacked."""

    source: Path
    wheel: Path
    site: Path


@pytest.fixture(scope="session")
def releasing():
    """The module that reads `releases.toml`."""
    return load()


@pytest.fixture(scope="session")
def built(tmp_path_factory, releasing):
    """`built(package, version)`: a release, or what is in this tree for the version "tree"; the
    package "" is the meta-distribution."""
    made: dict[tuple[str, str], Built] = {}

    def source_of(package: str, version: str, folder: Path) -> Path:
        if version == "tree":
            return ROOT / "packages" / package if package else ROOT
        (of,) = [r for r in releasing.released(f"plait-{package}") if r.version == version]
        try:
            return releasing.unpacked(of.commit, of.folder, folder / "source")
        except releasing.NotThere as error:
            if os.environ.get("CI"):  # skipped tests would leave the job green
                pytest.fail(f"{error}; clone with the whole history (fetch-depth: 0)")
            pytest.skip(str(error))

    def build(package: str, version: str) -> Built:
        if (package, version) not in made:
            folder = tmp_path_factory.mktemp(f"{package or 'plait'}-{version}")
            source = source_of(package, version, folder)
            target = folder / "wheel"
            command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
            subprocess.run(command, cwd=source, check=True, capture_output=True)
            (wheel,) = target.glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder / "site")
            made[package, version] = Built(source, wheel, folder / "site")
        return made[package, version]

    return build


@pytest.fixture(scope="session")
def python(built):
    """`python(versions, *args)`: what a Python that has these versions prints; `versions` gives the
    one of each package, and nobody checks that they fit."""

    def run(versions: dict[str, str], *args: str, **env: str) -> subprocess.CompletedProcess:
        folders = [str(built(*item).site) for item in versions.items()]
        return subprocess.run(
            [sys.executable, "-P", *args],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), **env},
            capture_output=True,
            text=True,
            timeout=280,
        )

    return run
