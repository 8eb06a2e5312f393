"""The page of all functions is what docs/functions.py makes of what is installed.

Invariant: with the libraries that the page names it is compared whole, with others by its names.
"""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy")

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def functions():
    """docs/functions.py, as a module."""
    spec = importlib.util.spec_from_file_location("functions", DOCS / "functions.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_page_is_up_to_date(functions):
    text, now = functions.PAGE.read_text(encoding="utf-8"), functions.page()
    listed = lambda t: re.findall(r"^\| `(plait\.[\w.]+)`", t, re.M)  # noqa: E731
    assert listed(text) == listed(now), "python docs/functions.py --write"
    if functions.versions() in text:
        assert text == now, "python docs/functions.py --write"


def test_counterparts(functions):
    there = {full: found for short in ("numpy", "numpy.linalg", "scipy.special")
             for name in functions.names(short)
             for full in [functions.full(short, name)]
             for found in [functions.counterpart(short, name)]}  # fmt: skip
    assert there["plait.numpy.add"] == ("numpy.add", np.add)
    assert there["plait.scipy.special.erf"][0] == "scipy.special.erf"
    assert sum(found is None for found in there.values()) < len(there) / 10


def test_nothing_is_listed_twice(functions):
    every = [functions.full(s, n) for s in functions.MODULES.split() for n in functions.names(s)]
    assert len(every) == len(set(every)) > 900
