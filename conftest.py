"""What all tests share: nothing compiled is found on disk, and marks of which run and how.

Invariant: the folder of compiled programs is none before any module imports plait, and for the
processes that tests start: compilations can be counted.
"""

import os
import zlib

import pytest

os.environ["PLAIT_CACHE_DIR"] = ""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark as wide the cases of a test with the mark `sampled(n)`, but the first and one in n.

    Which ones follows from their names: those of a product of parameters would otherwise be all of
    one parameter, and new cases would exchange the others.
    """
    seen = set()
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is None:
            continue
        test = item.nodeid.partition("[")[0]
        if test in seen and zlib.crc32(item.nodeid.encode()) % mark.args[0]:
            item.add_marker("wide")
        seen.add(test)


@pytest.fixture(autouse=True)
def compiled_as_marked(request):
    """Compile at the full tier, whatever the runner's is, in a test with the mark `full_tier`."""
    if request.node.get_closest_marker("full_tier") is None:
        yield
        return
    import plait

    with plait.config(tier="full"):
        yield
