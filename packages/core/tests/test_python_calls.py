"""Programs that call numpy: kept, interrupted, in loops and threads, beside callbacks.

Invariant: numbers are those of numpy; what happens in a process of its own is told by its output.
"""

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import plait
from plait import events, lax, pure_callback
from plait import numpy as pnp
from plait.ext.ops.sorting import sort

X = np.random.default_rng(0).normal(size=(3, 5000)).astype(np.float32)
SORTED = np.sort(X, 1)


def in_a_process(text, *arguments, **environment):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text), *arguments],
        capture_output=True, text=True, timeout=120, env={**os.environ, **environment},
    )  # fmt: skip
    return done.returncode, done.stdout.split(), done.stderr


def test_equal_programs_are_compiled_once():
    def program():
        return plait.jit(lambda x: sort(x * -4))

    want = np.sort(X * -4, 1)
    np.testing.assert_array_equal(program()(X), want)
    with events.counting() as seen:
        np.testing.assert_array_equal(program()(X), want)
    assert seen["lower"] == 1 and not seen["compile"]


KEPT = """
    import sys
    import numpy as np, plait
    from plait.ext.ops.sorting import argsort, sort
    plait.config.cache_dir, plait.config.cache_seconds = sys.argv[1], 0
    x = np.random.default_rng(0).normal(size=(3, 5000))
    with plait.events.counting() as seen:
        y, at = plait.jit(lambda x: (sort(x * 1.5), argsort(x)))(x)
    np.testing.assert_array_equal(y, np.sort(x * 1.5, 1))
    np.testing.assert_array_equal(at, np.argsort(x, 1))
    print(seen["compile"], seen["load"])
"""


def test_programs_are_kept_on_disk(tmp_path):
    for want in (["1", "0"], ["0", "1"]):
        code, out, err = in_a_process(KEPT, str(tmp_path))
        assert (code, out) == (0, want), err


def test_loops_branches_and_maps():
    f = lambda x: lax.cond(x[0] > 9, lambda x: -x, sort, x)  # noqa: E731
    np.testing.assert_array_equal(plait.jit(f)(X[0]), SORTED[0])
    _, ys = lax.scan(lambda c, x: (c, sort(x)), 0, X)
    np.testing.assert_array_equal(ys, SORTED)
    np.testing.assert_array_equal(lax.map(sort, X), SORTED)


def test_beside_callbacks_of_users():
    seen = []

    def told(x):
        seen.append(x.shape)
        return x + 1

    def f(x):
        y = sort(x)
        z = pure_callback(told, plait.ShapeDtypeStruct(y.shape, y.dtype), y)
        return sort(-z)

    for _ in range(2):
        np.testing.assert_array_equal(plait.jit(f)(X), np.sort(-(SORTED + 1), 1))
    assert seen == [X.shape] * 2


def test_a_callback_may_sort():
    def told(x):
        return np.asarray(plait.jit(sort)(x))

    f = plait.jit(lambda x: pure_callback(told, plait.ShapeDtypeStruct(x.shape, x.dtype), sort(-x)))
    np.testing.assert_array_equal(f(X), np.sort(-X, 1))


def test_many_threads():
    f, wrong = plait.jit(lambda x, k: sort(x * k)), []

    def run(k):
        for _ in range(20):
            if not np.array_equal(f(X, np.float32(k)), np.sort(X * np.float32(k), 1)):
                wrong.append(k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(1, 7)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_busy_thread_of_python_only_delays():
    done = []
    busy = threading.Thread(target=lambda: list(iter(lambda: len(done), 1)))
    busy.start()
    try:
        for _ in range(5):
            np.testing.assert_array_equal(plait.jit(sort)(X), SORTED)
    finally:
        done.append(1)
        busy.join()


INTERRUPTED = """
    import _thread, signal, sys, threading, time
    import numpy as np, plait
    from plait import lax
    from plait.ext.ops.sorting import sort

    x = np.random.default_rng(0).normal(size=300_000).astype(np.float32)
    loop = lambda x: lax.fori_loop(0, 3, lambda i, x: sort(x[::-1] * 1.5), x)
    f = plait.jit(sort if sys.argv[1] == "once" else loop)
    want = np.asarray(f(x))
    raised = lost = 0
    # A process that was started in the background ignores interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def strike(go, seconds):
        go.wait()
        time.sleep(seconds)
        _thread.interrupt_main()

    for k in range(60):
        go = threading.Event()
        thread = threading.Thread(target=strike, args=(go, 0.002 + k * 1e-4))
        thread.start()
        try:
            end = time.monotonic() + 2
            go.set()
            while time.monotonic() < end:
                np.testing.assert_array_equal(f(x), want)
            lost += 1
        except KeyboardInterrupt:
            raised += 1
        thread.join()
    np.testing.assert_array_equal(f(x), want)
    print(raised + lost, lost < 5)
"""


@pytest.mark.parametrize("way", ["once", "loop"])
def test_an_interrupt_is_an_interrupt(way):
    """It is raised whenever it comes, and later calls work.

    Python itself loses a few: those that come while it collects garbage.
    """
    code, out, err = in_a_process(INTERRUPTED, way)
    assert (code, out) == (0, ["60", "True"]), err


FAILS = """
    import numpy as np, plait
    from plait._ops import numpy_sorts
    from plait.ext.errors import PlaitError
    from plait.ext.ops.sorting import sort

    def fails(x):
        raise MemoryError("no memory for 20 kB")

    numpy_sorts._SORT.function = fails
    try:
        np.asarray(plait.jit(sort)(np.zeros(5000, np.float32)))
    except PlaitError as e:
        print("no memory for 20 kB" in str(e), "garbage" not in str(e))
"""


def test_a_failure_of_numpy_is_an_error():
    code, out, err = in_a_process(FAILS)
    assert (code, out) == (0, ["True", "True"]), err


def test_code_for_elsewhere_calls_no_python():
    from plait._xla.mlir import text
    from plait.ext.lower import module_of

    program = plait.make_program(lambda x: sort(x))(X)
    assert "python" in text(module_of(program).code)
    for other in (module_of(program, platforms=("cuda",)), module_of(program, embed=True)):
        assert "python" not in text(other.code)


def test_eager_calls():
    np.testing.assert_array_equal(sort(X), SORTED)
    np.testing.assert_array_equal(pnp.median(X, axis=1), np.median(X, axis=1))
