"""The primitives of the array library, by their namespaces.

Invariant: what defines a primitive is imported by the families of its namespace.
"""

import importlib
import pkgutil

import pytest

from plait.ext.ir import primitives


@pytest.mark.parametrize("namespace", ("linalg", "special", "nn"))
def test_every_family_is_known(namespace):
    home = f"plait_numpy.primitives.{namespace}"
    folder = importlib.import_module(home)
    for m in pkgutil.iter_modules(folder.__path__, f"{home}."):
        importlib.import_module(m.name)
    made_in = {getattr(p.rule, "func", p.rule).__module__ for p in primitives().values()}
    found = {m.rpartition(".")[2] for m in made_in if m.startswith(f"{home}.")}
    assert found and found <= {*importlib.import_module(f"{home}.families").__all__}
