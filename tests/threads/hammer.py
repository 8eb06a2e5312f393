"""Sixteen threads that fill every table at once: rules, traces, dispatch, the cache on disk.

Run by `test_cold.py` in a fresh process, with the folder of the cache; the exit status is 0 if
every number was right.  Threads are switched as often as Python can.

Invariant: each thread compares what it gets with numpy.
"""

import sys
import threading

import numpy as np

import plait
from plait import ext

THREADS, ROUNDS = 16, 6
wrong: list[str] = []


def at_once(work):
    """Run `work(number)` in all threads, which start together."""
    together = threading.Barrier(THREADS)

    def run(k):
        together.wait()
        try:
            work(k)
        except BaseException as error:
            wrong.append(f"{work.__name__}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=run, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def expect(what, got, want):
    if not np.allclose(np.asarray(got), want, rtol=1e-5, atol=1e-6):
        wrong.append(f"{what}: {np.asarray(got)} instead of {want}")


table = ext.RuleTable("hammered", doc="rule() -> int")


def register(k):
    """Define primitives and rules, while the others look theirs up."""
    for i in range(ROUNDS * 5):
        prim = ext.Primitive(f"hammer.p{k}_{i}", lambda x: x)
        table.rule(prim)(lambda k=k, i=i: (k, i))
        if table[prim]() != (k, i):
            wrong.append(f"the rule of {prim.name} is that of another")


def shared(x, y):
    return plait.lax.sin(x) * y + x


compiled = plait.jit(shared)


def call(k):
    """Trace and dispatch one function at the same new types, and forget some of it meanwhile."""
    for i in range(ROUNDS):
        x = np.full(i + 1, k + 1, np.float32)
        expect("jit", compiled(x, np.float32(i)), np.sin(x) * i + x)
        expect("eager", plait.lax.cos(plait.numpy.asarray(x)), np.cos(x))
        if k == 0 and i % 3 == 2:
            plait.clear_caches()


def keep(k):
    """Compile what all others compile, too, and keep it on disk."""
    for i in range(ROUNDS):
        got = plait.jit(lambda x, i=i: plait.lax.exp(x) + i)(np.float32(k % 2))
        expect("kept", got, np.exp(np.float32(k % 2)) + i)


sys.setswitchinterval(1e-6)
at_once(register)
at_once(call)
plait.config.cache_dir = sys.argv[1]
for _ in range(2):  # the second time they are read
    plait.clear_caches()
    at_once(keep)
print("\n".join(wrong[:20]) or "right")
sys.exit(bool(wrong))
