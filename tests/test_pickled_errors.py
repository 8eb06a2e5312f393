"""Errors go from process to process: by pools, Ray, Dask.

Invariant: an error is compared with itself as it came back, for every class of the packages.
"""

import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys

import plait
from plait.errors import PlaitError

PACKAGES = [
    f"plait{name}"
    for name in (
        "", "_numpy", "_autodiff", "_batching", "_sharding", "_export", "_state", "_checks",
        "_testing",
    )
]  # fmt: skip


def below(kind):
    """Return all classes that derive from a class."""
    return {kind}.union(*map(below, kind.__subclasses__()))


def classes():
    """Return the classes of errors of all modules."""
    for name in PACKAGES:
        package = importlib.import_module(name)
        for info in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not info.name.endswith("__main__"):
                importlib.import_module(info.name)
    ours = [kind for kind in below(PlaitError) if kind.__module__.partition(".")[0] in PACKAGES]
    return sorted(ours, key=lambda kind: kind.__qualname__)


def made(kind):
    """Return an error of a class, with a text for each argument that it needs."""
    given = {"what": "the text", "at": "f.py:3", "where": "f.py:3", "fix": "the fix"}
    return kind(**{name: given[name] for name in inspect.signature(kind).parameters & given.keys()})


def check():
    """Compare an error of each class with what its pickle gives."""
    kinds = classes()
    assert len(kinds) > 40 and plait.distributed.PeerLost in kinds
    for kind in kinds:
        error = made(kind)
        error.extra = [1]
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is kind and vars(back) == vars(error), kind
        assert str(back) == str(error) and back.args == error.args, kind


def test_errors_are_pickled():
    """It runs apart, since it imports every module, and other tests need some not to be."""
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    check()
