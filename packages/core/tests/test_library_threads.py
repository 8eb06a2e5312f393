"""Threads of the linear algebra library while programs of stacks run, and after them."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import plait
from plait._base import jaxlib_api
from plait._xla import library_threads

N = 48
ONE = np.eye(N, dtype="float32") * 2


def roots(x):
    """The Cholesky factors of symmetric matrices."""
    kinds = plait.ShapeDtypeStruct(x.shape, x.dtype), plait.ShapeDtypeStruct(x.shape[:-2], "int32")
    return plait.ffi.ffi_call("lapack_spotrf_ffi", kinds)(x, uplo=np.uint8(ord("L")))[0]


@pytest.fixture
def library():
    plait.jit(roots)(ONE).block_until_ready()  # loads the library
    found = library_threads._library()
    if found is None:
        pytest.skip("one processor, or another library")
    assert settles(found) == found.get()
    return found


def settles(library):
    """The number of threads when no program runs."""
    end = time.monotonic() + 20
    while library_threads._running and time.monotonic() < end:
        time.sleep(0.001)
    assert not library_threads._running
    return library.get()


def seen(library, f, *args):
    """The numbers of threads that a callback sees while a program computes `f`, and the result."""
    found = []

    def look(x):
        found.append(library.get())
        return x

    def program(*args):
        one = plait.ShapeDtypeStruct((), np.float32)
        return f(*args), plait.pure_callback(look, one, np.float32(1))

    settles(library)
    out, _ = plait.jit(program)(*args)
    return found, np.asarray(out)


STACK = np.stack([ONE * k for k in range(1, 65)])


def test_stacks_leave_the_library_one_thread(library):
    """A program of a stack has one, and the next program what there was before."""
    usual = settles(library)
    assert usual > 1
    found, out = seen(library, roots, STACK)
    assert found == [1]
    assert settles(library) == usual
    np.testing.assert_allclose(np.triu(out), np.linalg.cholesky(STACK), rtol=1e-6)


@pytest.mark.parametrize(
    "args",
    [(ONE,), (ONE[None],), (STACK[:, :8, :8],), (STACK[:2],)],
    ids=["a matrix", "a stack of one", "small ones", "too little work"],
)
def test_others_leave_it_alone(library, args):
    """Single matrices are divided by the library; small stacks are done before it would pay."""
    usual = settles(library)
    found, _ = seen(library, roots, *args)
    assert found == [usual]


def test_most_work_decides(library):
    """A large matrix beside a stack, and a large stack beside a matrix."""
    usual = settles(library)
    large = np.eye(3 * N, dtype="float32")
    both = lambda a, b: roots(a)[0] + roots(b)[:N, :N]
    assert seen(library, both, STACK, large)[0] == [1]
    assert settles(library) == usual
    assert seen(library, both, STACK[:12], large)[0] == [usual]


def test_many_in_flight(library):
    """The last of many programs at once gives the threads back, once."""
    usual = settles(library)
    f = plait.jit(roots)
    outs = [f(STACK * k) for k in range(1, 20)]
    plait.block_until_ready(outs)
    assert settles(library) == usual


def test_a_failed_run_gives_them_back(library):
    """A run that raises at its start counts as ended."""
    usual = settles(library)
    x = plait.jit(lambda x: x)(STACK)
    f = plait.jit(roots, donate_argnums=0)
    f(x).block_until_ready()
    with pytest.raises(plait.PlaitError):
        f(x)
    assert settles(library) == usual


def test_a_failed_callback_gives_them_back(library):
    """A program whose callback raises counts as ended."""
    usual = settles(library)

    def fails(x):
        raise ValueError("no")

    def program(x):
        one = plait.ShapeDtypeStruct((), np.float32)
        return roots(x), plait.pure_callback(fails, one, np.float32(1))

    with pytest.raises(ValueError, match="no"):
        plait.jit(program)(STACK)
    assert settles(library) == usual


def test_one_processor_changes_nothing(monkeypatch):
    """Where no thread could be won, the library is not looked for."""
    monkeypatch.setattr(jaxlib_api, "processors", lambda: 1)
    library_threads._library.cache_clear()
    try:
        assert library_threads._library() is None
    finally:
        library_threads._library.cache_clear()


IN_FLIGHT = """
import atexit, sys
sys.path.insert(0, sys.argv[1])
from test_library_threads import STACK, plait, roots
f, x = plait.jit(roots), plait.numpy.tile(STACK[:, :40, :40], (1, 8, 8))
f(x).block_until_ready()
if sys.argv[2] == "computes":
    atexit.register(lambda: print(f(x).shape))
for _ in range(5):
    f(x)
"""


@pytest.mark.parametrize("at_exit, said", [("ends", ""), ("computes", "(64, 320, 320)")])
def test_a_process_ends_while_programs_run(at_exit, said):
    """No thread is ended in native code, and handlers of the exit can compute."""
    command = [sys.executable, "-c", IN_FLIGHT, str(Path(__file__).parent), at_exit]
    for _ in range(4):
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr, done.stdout.strip()) == (0, "", said)
