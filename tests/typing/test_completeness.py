"""The public names of each package have complete types, as pyright reads an installed package.

A package may have as many names of a partly unknown type as the table says; a bound only falls.

Invariant: packages are read from where they are installed, as an editor reads them.
"""

import importlib.util
import re
import subprocess
import sys

import pytest

from .test_programs import needed

MOST = {
    "plait": 47,
    "plait_numpy": 28,
    "plait_autodiff": 0,
    "plait_batching": 0,
    "plait_sharding": 0,
    "plait_export": 0,
    "plait_state": 0,
    "plait_sparse": 1,
    "plait_checks": 0,
    "plait_testing": 13,
    "plait_inspect": 0,
    "plait_jax": 4,
}
"""The most names whose type is partly unknown, of those that a package exports."""


@pytest.mark.parametrize("package", MOST)
def test_few_names_of_a_package_have_a_type_that_is_partly_unknown(package):
    needed("pyright")
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None or "site-packages" not in spec.origin:
        pytest.skip(f"{package} is not installed from its wheel: the nox session `types` runs this")
    command = [sys.executable, "-m", "pyright", "--ignoreexternal", "--verifytypes", package]
    told = subprocess.run(command, capture_output=True, text=True).stdout
    assert "Path of py.typed file" in told, told[-500:]
    exported = re.search(r"Symbols exported.*?unknown type: (\d+)", told, re.S)
    assert exported, told[-500:]
    found = int(exported[1])
    assert found <= MOST[package], f"`pyright --verifytypes {package}` names those without a type"
    assert found > MOST[package] - 10, f"the bound of {package} in MOST falls to {found}"
