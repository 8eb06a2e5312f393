"""The page on numpy's functions says what is so: its tables are compared with signatures.

Invariant: an argument that only one of the two libraries has is in a table, and no table names
what there is not.
"""

import importlib
import inspect
import re
from pathlib import Path

import numpy as np

import plait.numpy as pnp

PAGE = (Path(__file__).parents[1] / "docs" / "numpy.md").read_text(encoding="utf-8")
EVERYWHERE = {"out", "order", "subok", "like", "casting", "signature", "where", "kwargs", "args",
              "dtype"}  # fmt: skip
CALLED_OTHERWISE = {"arange", "promote_types", "result_type", "broadcast_shapes", "concat"}
"""Functions whose parameters have other names than numpy's, which is written in C."""
NEWER = {"ndmax"}
"""Arguments that not every numpy has."""


def rows(section):
    """The rows of the tables of a section, cells as lists of what is in code."""
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[re.findall(r"`([^`]+)`", c) for c in line.split("|")[1:-1]] for line in lines]
    return [c for c in cells if any(c)]


def functions():
    """Ours with numpy's of the same name, where both tell their parameters."""
    for name in pnp.__all__:
        ours, theirs = getattr(pnp, name), getattr(np, name, None)
        if not inspect.isfunction(ours) or theirs is None or isinstance(theirs, np.ufunc):
            continue
        mine = inspect.signature(ours).parameters
        try:
            yield name, mine, inspect.signature(theirs).parameters
        except (TypeError, ValueError):
            continue


def open_ended(parameters):
    return any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def test_arguments_that_are_not_there():
    told = {(f, a) for fs, args, *_ in rows("Arguments that are not there")
            for f in fs for a in args}  # fmt: skip
    missing = set()
    for name, mine, theirs in functions():
        if open_ended(mine) or name in CALLED_OTHERWISE - {"concat"}:
            continue
        skip = EVERYWHERE - ({"dtype"} if name == "concat" else set())
        missing |= {(name, a) for a, p in theirs.items()
                    if a not in mine and a not in skip and p.kind is not p.POSITIONAL_ONLY
                    and not (name == "clip" and a == "a")}  # fmt: skip
    assert missing - told == set()
    assert {(f, a) for f, a in told - missing if a not in NEWER} <= {
        (f, a) for f, a in told if a not in inspect.signature(getattr(pnp, f)).parameters
    }


def test_arguments_that_numpy_lacks():
    told = {a for args, *_ in rows("Arguments that numpy lacks") for a in args}
    more = set()
    for name, mine, theirs in functions():
        if open_ended(theirs) or name in CALLED_OTHERWISE:
            continue
        named = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        more |= {a for a, p in mine.items() if a not in theirs and p.kind in named}
    assert more - told == set()


def test_functions_that_are_named():
    for section in ("Arguments that are not there", "Results that differ"):
        for names, *_ in rows(section):
            for name in names:
                assert name in pnp.__all__, name
    for (package, *_), names in rows("scipy's functions"):
        module = importlib.import_module(f"plait.scipy.{package}")
        for name in names:
            known = hasattr(module, name) or name in ("bounds_error", "wrap", "grid-wrap",
                                                      "constant", "grid-constant")  # fmt: skip
            assert known, name
