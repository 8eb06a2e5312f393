"""The parameters of functions name types: few are of `Any`, and few have no annotation.

A package may have as many as the table says.  When there are fewer, the table follows: a bound
only falls.

Invariant: functions are read from the sources, nested ones and methods included.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGES = Path(__file__).parents[2] / "packages"
MOST = {
    "autodiff": 11,
    "batching": 22,
    "checks": 11,
    "core": 11,
    "export": 22,
    "inspect": 17,
    "jax": 32,
    "numpy": 10,
    "sharding": 11,
    "sparse": 14,
    "state": 15,
    "testing": 7,
}
"""The most parameters without a type, in hundredths of all parameters of a package."""
ALL = 15
"""The same over all packages."""


def parameters(package: str) -> Iterator[ast.arg]:
    """Yield the parameters of all functions of a package, but for `self` and `cls`."""
    for path in sorted((PACKAGES / package / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                every = [n for n in ast.walk(node.args) if isinstance(n, ast.arg)]
                lambdas = [n for n in ast.walk(node.args) if isinstance(n, ast.Lambda)]
                inner = {n for f in lambdas for n in ast.walk(f.args)}
                yield from [a for a in every if a not in inner and a.arg not in ("self", "cls")]


def is_unknown(parameter: ast.arg) -> bool:
    return parameter.annotation is None or ast.unparse(parameter.annotation) == "Any"


def share(found: list[ast.arg]) -> float:
    """Return the share of parameters without a type, in hundredths."""
    return 100 * sum(map(is_unknown, found)) / len(found)


def test_the_table_has_every_package():
    assert MOST.keys() == {path.name for path in PACKAGES.iterdir() if (path / "src").is_dir()}


@pytest.mark.parametrize("package", MOST)
def test_few_parameters_of_a_package_have_no_type(package):
    found = share(list(parameters(package)))
    assert found <= MOST[package], "write the types of new parameters"
    assert found > MOST[package] - 2, f"the bound of {package} in MOST falls to {found:.0f}"


def test_few_parameters_have_no_type():
    assert share([p for package in MOST for p in parameters(package)]) < ALL
