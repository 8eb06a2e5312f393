"""The page on derivatives at edges lists where the tests of autodiff want another value than JAX's.

Invariant: what the tests say is read from their sources, and what the page says from the page.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "edges.md").read_text(encoding="utf-8")
TESTS = ROOT / "packages" / "autodiff" / "tests"


def differs(name: str) -> dict[str, str]:
    """The table `DIFFERS` of a test module of autodiff."""
    body = ast.parse((TESTS / f"test_{name}.py").read_text(encoding="utf-8")).body
    (value,) = [n.value for n in body if isinstance(n, ast.Assign) and named(n) == "DIFFERS"]
    return ast.literal_eval(value)


def named(node: ast.Assign) -> str:
    """The one name that an assignment gives a value."""
    return ast.unparse(node.targets[0])


def test_the_page_lists_what_jax_gives():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    assert all(any(jax in row for row in rows) for jax in differs("edges").values())


@pytest.mark.parametrize("name", ["ties", "corners"])
def test_the_page_lists_what_differs(name):
    assert {*differs(name).values()} <= {*re.findall(r"\| `([^`]*)`", PAGE)}
