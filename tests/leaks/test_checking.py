"""The leak checker, in a process of its own.

It searches all objects of the process, which the runner of all tests has millions of.

Invariant: every test of `checking.py` is one here, and is reported with its own error.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

CHECKING = Path(__file__).with_name("checking.py")
NAMES = [
    node.name
    for node in ast.parse(CHECKING.read_text(encoding="utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
]


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """The error of each test, "" for one that passed."""
    report = tmp_path_factory.mktemp("checking") / "report.xml"
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--junitxml={report}")
    command = [sys.executable, "-P", "-m", "pytest", *options, str(CHECKING)]
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240)
    assert report.exists(), done.stderr
    return {
        case.get("name"): "".join(part.text or "" for part in case)
        for case in ElementTree.parse(report).getroot().iter("testcase")
    }


@pytest.mark.sampled(10)
@pytest.mark.feature("C23")
@pytest.mark.feature("S22")
@pytest.mark.parametrize("name", NAMES)
def test_the_checker(name, errors):
    assert name in errors
    assert not errors[name], errors[name]
