"""What `python -m plait new-transform` writes is a distribution that works as it is.

Invariant: the skeleton is built to a wheel and found through its metadata, as a user's would be;
its own tests run in a process of their own, and fail where its rules are wrong.
"""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest


def run(*args: str, site: Path | None = None, cwd: Path | None = None):
    """The end of a Python process that has `site` on its search path."""
    env = {**os.environ, "PYTHONPATH": str(site or ""), "PYTHONDONTWRITEBYTECODE": "1"}
    call = [sys.executable, *args]
    return subprocess.run(call, env=env, cwd=cwd, capture_output=True, text=True, timeout=240)


@pytest.fixture(scope="module")
def skeleton(tmp_path_factory):
    """The folder of a skeleton, and the one into which its wheel is unpacked."""
    folder = tmp_path_factory.mktemp("skeleton") / "shifting"
    made = run("-m", "plait", "new-transform", "shifting", str(folder))
    assert made.returncode == 0, made.stderr
    site = tmp_path_factory.mktemp("site")
    built = run("-m", "hatchling", "build", "-t", "wheel", "-d", str(site), cwd=folder)
    assert built.returncode == 0, built.stderr
    (wheel,) = site.glob("shifting-0.1.0-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return folder, site


def own_tests(folder: Path, site: Path):
    """Its tests, run where `site` is what is installed."""
    return run("-m", "pytest", "-q", "-p", "no:cacheprovider", site=site, cwd=folder)


def test_its_own_tests_pass(skeleton):
    done = own_tests(*skeleton)
    assert done.returncode == 0, done.stdout
    assert "13 passed" in done.stdout


def test_its_own_tests_find_a_wrong_rule(skeleton, tmp_path):
    folder, site = skeleton
    source = (site / "shifting" / "__init__.py").read_text(encoding="utf-8")
    wrong = source.replace("mul.bind(x, e))", "mul.bind(x, d))")
    assert wrong != source
    (tmp_path / "shifting").mkdir()
    (tmp_path / "shifting" / "__init__.py").write_text(wrong, encoding="utf-8")
    for info in site.glob("*.dist-info"):
        (tmp_path / info.name).symlink_to(info)
    done = own_tests(folder, tmp_path)
    assert done.returncode == 1
    assert "test_it_is_the_difference[False-a polynomial]" in done.stdout


def test_it_works_with_every_other_package(skeleton):
    """Mapped, and differentiated: the difference of x^3 for a step d has the slope
    3 (x + d)^2 - 3 x^2."""
    _, site = skeleton
    code = """
import plait, plait.numpy as pnp
moved = lambda x: plait.shifting(lambda v: v * v * v)(x, 0.5)[1]
slope = plait.jit(plait.vmap(plait.grad(moved)))
print([float(s) for s in slope(pnp.array([0.0, 1.0, 2.0]))])
"""
    done = run("-c", code, site=site)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str([3 * (x + 0.5) ** 2 - 3 * x**2 for x in (0.0, 1.0, 2.0)])


def test_all_that_is_installed_fits(skeleton):
    _, site = skeleton
    done = run("-m", "plait", "doctor", site=site)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    fitting = [words[0] for words in lines if words[-1:] == ["fits"]]
    ours = {f"plait-{p}" for p in ("autodiff", "batching", "sharding", "export", "state")}
    assert {"shifting", *ours} <= {*fitting}


def test_the_commands_show_it(skeleton):
    _, site = skeleton
    shown = run("-m", "plait", "plugins", site=site)
    assert "shifting 0.1.0, plugin API" in shown.stdout
    column = run("-m", "plait", "coverage", "shifting", site=site).stdout
    cells = dict(line.split(None, 1) for line in column.split("\n\n")[0].splitlines())
    assert {n for n, cell in cells.items() if cell == "own"} == {"core.mul", "core.pad"}
    assert cells["core.add"] == cells["core.sin"] == "trait"
    assert cells["core.scan"] == "wiring"
    assert cells["core.sort"] == "missing"
