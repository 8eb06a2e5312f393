"""The setting `keep_memory`: memory that is freed stays with the process.

Invariant: what is counted is the operating system's count of pages that were given to a process.
"""

import os
import subprocess
import sys

import pytest

import plait
from plait.errors import PlaitError

RESULTS = """
import resource
import numpy as np
import plait

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

f = plait.jit(lambda x: x + 1)
x = plait.numpy.asarray(np.ones(16 << 20, np.float32))
for _ in range(8):
    f(x).block_until_ready()
before = faults()
for _ in range(10):
    f(x).block_until_ready()
print(faults() - before, f(x)[0].item())
"""


def faults_of_ten_results(keep):
    done = subprocess.run(
        [sys.executable, "-c", RESULTS], env={**os.environ, "PLAIT_KEEP_MEMORY": keep},
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    count, value = done.stdout.split()
    assert float(value) == 2
    return int(count)


@pytest.mark.wide
@pytest.mark.skipif(sys.platform != "linux", reason="the GNU C library is asked")
def test_pages_are_asked_for_once():
    """Ten results of 64 MB: 163,840 pages of 4 KB, if the system is asked for them each time."""
    assert faults_of_ten_results("0") > 100_000
    assert faults_of_ten_results("1") < 100_000  # one more where a result is freed late


def test_it_is_said_before_the_first_array():
    plait.numpy.ones(3)
    with pytest.raises(PlaitError, match="keep_memory"):
        plait.config.keep_memory = not plait.config.keep_memory
