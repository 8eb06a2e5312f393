"""Libraries that an extra brings: a module of one that is missing says how to install it."""

import subprocess
import sys

import pytest

from plait import ext
from plait.errors import MissingPlugin

NEEDED = ("a test reads tables", "plait-core", "tables")


def test_a_library_that_is_there():
    assert ext.plugins.library("json.decoder", *NEEDED).JSONDecoder


@pytest.mark.parametrize("name", ["no_such_library", "no_such_library.part"])
def test_a_library_that_is_missing(name):
    with pytest.raises(MissingPlugin, match="a test reads tables, which is not installed") as e:
        ext.plugins.library(name, *NEEDED)
    assert "pip install" in e.value.fix and "[tables]" in e.value.fix


def test_a_folder_of_the_same_name_is_not_the_library(tmp_path, monkeypatch):
    (tmp_path / "like_a_library").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingPlugin, match="not installed"):
        ext.plugins.library("like_a_library.part", *NEEDED)


def test_an_import_that_fails_inside_of_the_library_is_shown(tmp_path):
    (tmp_path / "broken_library.py").write_text("import what_it_needs\n")
    code = f"from plait import ext; ext.plugins.library('broken_library', *{NEEDED!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert "No module named 'what_it_needs'" in done.stderr and "MissingPlugin" not in done.stderr
