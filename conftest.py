"""Share among all tests where compiled programs are kept, marks of which run and how, and a bound
on skipped tests.

Invariant: tests that count compilations, and the processes that they start, find nothing compiled
on disk. Others find what a run of the sessions has kept in `PLAIT_TEST_PROGRAMS`, if it is set.
"""

import gc
import os
import re
import zlib
from functools import cache

import pytest

os.environ["PLAIT_CACHE_DIR"] = os.environ.get("PLAIT_TEST_PROGRAMS", "")
# Tests mix arrays of numpy, of 64 bits, with others on purpose; warnings are errors.
os.environ.setdefault("PLAIT_PROMOTION_WARNING", "0")
# So do they change variables that jitted functions read.
os.environ.setdefault("PLAIT_PURITY_WARNING", "0")


def pytest_addoption(parser):
    """Add the option `--again`."""
    words = "of the cases that `nox -s tests` runs, run one in N; cases that are wide run as always"
    parser.addoption("--again", type=int, default=1, metavar="N", help=words)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark which cases are wide, then leave out those that `--again` does not name."""
    mark_wide(items)
    run, left = run_again(items, config.getoption("again"))
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = run


def run_again(items, n):
    """Return the cases that `--again=n` runs and those that it leaves out, by their names.

    Those that compile at the full tier in every session would run the same way once more. If the
    names choose none of a small package, the first runs: a run of no tests counts as failed.
    """
    again, left = [], []
    for item in items:
        twice = n > 1 and item.get_closest_marker("wide") is None
        same = item.get_closest_marker("full_tier") is not None
        leave = twice and (same or zlib.crc32(item.nodeid.encode()) % n)
        (left if leave else again).append(item)
    return (again, left) if again else (left[:1], left[1:])


def mark_wide(items):
    """Mark as wide the cases of a test with the mark `sampled(n)`, but the first and one in n.

    Which ones follows from their names: those of a product of parameters would otherwise be all of
    one parameter, and new cases would exchange the others.
    """
    seen = set()
    for item in items:
        refuse_unordered_name(item)
        mark = item.get_closest_marker("sampled")
        if mark is None:
            continue
        test = item.nodeid.partition("[")[0]
        if test in seen and zlib.crc32(item.nodeid.encode()) % mark.args[0]:
            item.add_marker("wide")
        seen.add(test)


def refuse_unordered_name(item):
    """Refuse a test that is named by a set of strings, or by an address: its name differs between
    processes.

    Python orders such a set by hashes that every process draws anew, so the processes that share
    the tests would not agree on which there are.
    """
    if re.search(r" at 0x[0-9a-f]+>", item.nodeid):
        raise pytest.UsageError(f"{item.nodeid}: give the parameters ids without an address")
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    for value in values:
        several = isinstance(value, set | frozenset) and len(value) > 1
        if several and not all(map(is_number, value)) and str(value) in item.name:
            raise pytest.UsageError(f"{item.nodeid}: give the parameter {value} an id")


def is_number(x):
    return isinstance(x, int | float)


SKIPPED = 0.2
"""The part of the tests of a run that may be skipped where CI is set."""


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    """Fail a run in CI that skips too many tests: it would be green, and have tested little.

    A shallow clone once skipped 98 of 103 tests of earlier releases.
    """
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not os.environ.get("CI") or exitstatus != 0:
        return  # a worker of xdist has no reporter
    skipped = len(reporter.stats.get("skipped", ()))
    run = skipped + len(reporter.stats.get("passed", ()))
    if run >= 50 and skipped > SKIPPED * run:
        reporter.write_line(f"{skipped} of {run} tests were skipped, more than {SKIPPED:.0%}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True, scope="module")
def earlier_objects_are_left_alone():
    """Let collections of garbage look at the objects of one file of tests alone.

    A process that runs thousands of tests keeps millions of objects.  Collections would visit all
    of them: late in a run, those that tests ask for took a second each.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def compiled_as_marked(request, monkeypatch):
    """Compile at the full tier, whatever the runner's is, in a test with the mark `full_tier`;
    and anew in one whose file speaks of compilations."""
    settings = {}
    if request.node.get_closest_marker("full_tier") is not None:
        settings["tier"] = "full"
    if os.environ["PLAIT_CACHE_DIR"] and counts_compilations(request.path):
        monkeypatch.setenv("PLAIT_CACHE_DIR", "")
        settings["cache_dir"] = None
    if not settings:
        yield
        return
    import plait

    with plait.config(**settings):
        yield


@cache
def counts_compilations(file):
    """Return whether a file of tests may count what is compiled, or asks what is on disk."""
    text = file.read_text(encoding="utf-8")
    return re.search(r"counting|events|compil|cache|PLAIT_TIER", text) is not None
