"""A name of PyTorch that has another one here is answered with what to write, as on its page.

Invariant: the rows are those of the page; what an answer calls exists.
"""

import functools
import re
from pathlib import Path

import pytest

import plait
import plait.nn
import plait.random
from plait._base import spelling

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "from-pytorch.md"
SPACES = {"torch": (plait, plait.numpy, plait.random), "nn": (plait.nn,), "F": (plait.nn,)}


def names_of_the_page():
    """Return (space, name) for each name of PyTorch in the first column of the page's tables."""
    rows = [
        line.split("|")[1] for line in PAGE.read_text("utf-8").splitlines() if line[:3] == "| `"
    ]
    found = re.findall(r"\b(torch|nn|F)\.(\w+)(?=[(`])", "\n".join(rows))
    return sorted(set(found))


def answered(space, name):
    """Return whether a module has the name, or says what to write instead."""
    try:
        return getattr(space, name) is not None
    except AttributeError as e:
        return "\n  write " in str(e)


@pytest.mark.parametrize(("space", "name"), names_of_the_page())
def test_each_name_of_the_page(space, name):
    assert any(answered(module, name) for module in SPACES[space])


def test_there_are_many():
    assert len(names_of_the_page()) > 30


@pytest.mark.parametrize("module", spelling._NAMES)
def test_answers(module):
    space = functools.reduce(getattr, module.split(".")[1:], plait)
    for name, written in spelling._NAMES[module].items():
        with pytest.raises(AttributeError, match=re.escape(f"write {written}")):
            getattr(space, name)
        for path in re.findall(r"plait\.([\w.]+)\(", written):
            assert callable(functools.reduce(getattr, path.split("."), plait)), path
