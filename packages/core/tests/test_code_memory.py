"""Processes that compile program after program have memory for the next one.

Invariant: the mappings are counted by the operating system.
"""

import gc
from pathlib import Path

import numpy as np
import pytest

import plait
from plait._base import code_memory

pnp = plait.numpy
MAPS = Path("/proc/self/maps")
ROOM, SMALL = 100, 150

pytestmark = pytest.mark.skipif(not MAPS.exists(), reason="only Linux limits mappings")


def taken():
    return len(MAPS.read_text().splitlines())


def floats(n):
    return np.ones(n, np.float32)


def operations(n):
    x = pnp.asarray(floats(n))
    return abs(x * x)


def dispatched(n):
    return pnp.ptp(pnp.asarray(floats(n)))


def functions(n):
    return plait.jit(lambda x: pnp.sort(x))(floats(n))


@plait.jit
def _shaped(x):
    return pnp.sort(x) * 2 - x


def shapes(n):
    return _shaped(floats(n))


@pytest.mark.sampled(10)
@pytest.mark.parametrize("one", [operations, dispatched, functions, shapes])
def test_mappings_are_bounded(one, monkeypatch):
    plait.clear_caches()
    _shaped.clear_cache()
    gc.collect()
    monkeypatch.setattr(code_memory.watch, "most", taken() + ROOM)
    monkeypatch.setattr(code_memory.watch, "left", 0)
    monkeypatch.setattr(code_memory, "_SELDOM", 1)
    begin, most = taken(), 0
    for n in range(1000, 1060):
        one(n)
        most = max(most, taken())
    assert most < begin + ROOM + SMALL


def test_operations_run_again_after_their_executables_are_dropped():
    x = pnp.asarray(floats(7))
    assert (x + x).sum() == 14
    plait.clear_caches()
    assert (x + x).sum() == 14
    code_memory.forget_all()
    assert (x + x).sum() == 14 and abs(-x).sum() == 7


def test_clear_caches_drops_the_executables_of_operations():
    plait.clear_caches()
    gc.collect()
    begin = taken()
    for n in range(2000, 2010):
        operations(n)
    grown = taken() - begin
    plait.clear_caches()
    gc.collect()
    assert grown > 30 > taken() - begin
