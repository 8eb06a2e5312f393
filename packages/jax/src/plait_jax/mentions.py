"""Reports of missing JAX names: those requested so far, or those that a library mentions.

Invariant: sources are read, and never run.
"""

import ast
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from plait.errors import PlaitError

from .names import lacks
from .requests import Report, Request, asked

__all__ = ["report"]


def report(library: str | None = None) -> Report:
    """Return a report of the JAX names that are missing.

    It covers the names that this process has requested so far, or those that the sources of an
    installed library mention.

    Args:
      library: its import name.

    Returns a Report: its text is a line per name, `names` is a list, `requests` has each place.
    Raises PlaitError if the library is not installed.

    >>> isinstance(report().names, list)
    True
    """
    return Report(asked() if library is None else tuple(_mentioned(library)))


def _mentioned(library: str) -> Iterator[Request]:
    """Yield the JAX names in a library's sources that are missing."""
    spec = find_spec(library)
    if spec is None or not (spec.submodule_search_locations or spec.origin):
        raise PlaitError(f"there is no library {library!r} here", fix="install it first")
    folders = [Path(p) for p in spec.submodule_search_locations or ()]
    files = [f for folder in folders for f in sorted(folder.rglob("*.py"))]
    for file in files or [Path(str(spec.origin))]:
        for full, line in _names_in(file):
            if lacks(full):
                yield Request(full, f"{file}:{line}", False)


def _names_in(file: Path) -> Iterator[tuple[str, int]]:
    """Yield the JAX names that a file imports, or reaches as attributes of its imports."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "jax":
                    bound[alias.asname or "jax"] = alias.name if alias.asname else "jax"
        elif isinstance(node, ast.ImportFrom) and not node.level:
            if (node.module or "").partition(".")[0] == "jax":
                for alias in node.names:
                    bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                    yield f"{node.module}.{alias.name}", node.lineno
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            head, _, rest = ast.unparse(node).partition(".")
            if head in bound and all(part.isidentifier() for part in rest.split(".")):
                yield f"{bound[head]}.{rest}", node.lineno
