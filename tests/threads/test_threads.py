"""Threads inside transformations, transformations inside threads, and event loops.

A thread that is started while a function is being transformed starts on the ground; values of the
transformation that it computes with belong there, and are taken there.
"""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import plait
from plait import events, ext, lax
from plait.errors import UnexpectedTracerError

pnp = plait.numpy


def f32(x):
    return pnp.asarray(np.asarray(x, np.float32))


def elsewhere(f):
    """`f()`, computed by a thread of its own."""
    out = []

    def run():
        try:
            out.append((True, f()))
        except BaseException as error:
            out.append((False, error))

    t = threading.Thread(target=run)
    t.start()
    t.join()
    good, value = out[0]
    if not good:
        raise value
    return value


def test_thread_in_a_transformation():
    """What a thread computes with a traced value is differentiated, mapped and staged."""
    f = lambda x: elsewhere(lambda: x * x)  # noqa: E731
    assert plait.grad(f)(f32(3)).item() == 6
    assert plait.grad(plait.grad(lambda x: f(x) * x))(f32(3)).item() == 18
    assert plait.jvp(f, (f32(3),), (2.0,))[1].item() == 12
    assert plait.jit(f)(f32(3)).item() == 9
    assert plait.jit(plait.grad(f))(f32(3)).item() == 6
    np.testing.assert_array_equal(plait.vmap(f)(f32([1, 2])), [1, 4])
    np.testing.assert_array_equal(plait.vmap(plait.grad(f))(f32([1, 2])), [2, 4])
    loop = lambda x: lax.scan(lambda c, _: (elsewhere(lambda: c * x), None), x, None, 2)[0]  # noqa: E731
    assert plait.grad(loop)(f32(2)).item() == 3 * 4


def test_thread_with_values_of_two_levels():
    """Both levels get their share of what the thread did."""
    f = lambda x: plait.grad(lambda y: elsewhere(lambda: (x * y) * (x * y)) * y)(x)  # noqa: E731
    # d/dy (x^2 y^3) = 3 x^2 y^2 at y = x: 3 x^4
    assert f(f32(3)).item() == 3 * 81
    assert plait.grad(f)(f32(3)).item() == 12 * 27


TRANSFORMS = {
    "grad": (lambda x: elsewhere(lambda: plait.grad(lambda y: y * y * x)(x)), 12.0),
    "jit": (lambda x: elsewhere(lambda: plait.jit(lambda y: y * x)(x)), 6.0),
    "scan": (
        lambda x: elsewhere(lambda: lax.scan(lambda c, _: (c * x, None), x, None, length=2)[0]),
        27.0,
    ),
    "cond": (
        lambda x: elsewhere(lambda: lax.cond(True, lambda: x * x, lambda: x)),
        6.0,
    ),
    "checkpoint": (lambda x: elsewhere(lambda: plait.checkpoint(lambda y: y * x)(x)), 6.0),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transformation_in_a_thread_in_a_transformation(name):
    """A thread that transforms a function over values of a transformation around the thread."""
    f, want = TRANSFORMS[name]
    assert plait.grad(f)(f32(3)).item() == want


def test_map_in_a_thread_in_a_map():
    """The same with both of them maps."""

    def f(x):
        return elsewhere(lambda: plait.vmap(lambda y: y * x)(f32([1, 10])))

    np.testing.assert_array_equal(plait.vmap(f)(f32([1, 2, 3])), [[1, 10], [2, 20], [3, 30]])


def test_pool_in_a_transformation():
    """A pool of threads, some of whose work touches traced values, and some does not."""

    def f(x):
        with ThreadPoolExecutor(4) as pool:
            parts = [pool.submit(lambda k=k: lax.sin(x * k)) for k in range(1, 5)]
            constants = [pool.submit(lambda k=k: lax.cos(f32(k))) for k in range(4)]
            return sum(p.result() for p in parts) + sum(c.result() for c in constants)

    want = sum(k * np.cos(0.3 * k) for k in range(1, 5))
    np.testing.assert_allclose(plait.grad(f)(f32(0.3)), want, rtol=1e-5)


def test_tracer_after_its_transformation():
    """A thread that outlives the transformation: an error there, and no number."""
    saved = []
    plait.grad(lambda x: (saved.append(x * 2), x)[1])(f32(1))
    plait.jit(lambda x: (saved.append(x * 2), x)[1])(f32(1))
    plait.vmap(lambda x: (saved.append(x * 2), x)[1])(f32([1]))
    for x in saved:
        with pytest.raises(UnexpectedTracerError):
            elsewhere(lambda x=x: x + 1)


@pytest.mark.parametrize("theirs", [plait.jit, plait.grad], ids=["jit", "grad"])
@pytest.mark.parametrize("ours", [plait.jit, plait.grad], ids=["jit", "grad"])
def test_tracers_of_two_threads(ours, theirs):
    """Values of transformations that have nothing to do with each other: each takes the other's
    for a constant, whose end is an error; nobody gets a wrong number."""
    saved, ready, done = [], threading.Event(), threading.Event()

    def slow(x):
        saved.append(x)
        ready.set()
        done.wait(60)
        return x * 5

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(theirs(slow), f32(1))
        ready.wait(60)
        try:
            value = ours(lambda x: x * 3 + saved[0])(f32(1))
        except plait.PlaitError:
            value = None
        done.set()
        assert other.result().item() == 5
    if isinstance(value, ext.Tracer):
        with pytest.raises(UnexpectedTracerError):
            value + 1
    else:
        assert value is None or (ours is plait.grad and value.item() == 3)


def test_threads_have_their_own_interpreter():
    """A thread starts on the ground, in whatever it is started."""
    ground = ext.current()
    seen = []

    def f(x):
        seen.append(elsewhere(ext.current))
        return x

    plait.grad(f)(f32(1))
    plait.jit(f)(f32(1))
    plait.vmap(f)(f32([1]))
    assert seen == [ground] * 3


def test_one_function_by_many():
    """One jitted function, traced for many types by many threads at once."""

    @plait.jit
    def f(x):
        return (x * 2).sum()

    def work(k):
        return [f(f32(np.ones((n, k % 3 + 1)))).item() for n in range(1, 5)]

    with ThreadPoolExecutor(8) as pool:
        for k, got in enumerate(pool.map(work, range(24))):
            assert got == [2.0 * n * (k % 3 + 1) for n in range(1, 5)]


def test_equal_programs_are_compiled_once():
    """Whoever comes while another thread compiles the same waits for that."""
    start = threading.Barrier(6)

    def work(_):
        def f(x):
            for k in range(40):
                x = plait.numpy.sin(x) * k + 0.8125
            return x

        start.wait()
        return plait.jit(f)(f32(np.ones(77))).shape

    with events.counting() as counts, ThreadPoolExecutor(6) as pool:
        assert set(pool.map(work, range(6))) == {(77,)}
    assert counts["compile"] == 1 and counts["trace"] == 6


def test_functions_are_made_while_caches_are_cleared():
    """All functions that exist are listed then, and other threads add some."""
    kept = [plait.jit(lambda x: x + 1) for _ in range(2000)]
    done = threading.Event()

    def make():
        while not done.is_set():
            functions = [lambda x: x * 2 for _ in range(50)]
            assert plait.eval_shape(plait.jit(functions[0]), 1).shape == ()
            kept[-50:] = map(plait.jit, functions)

    with ThreadPoolExecutor(3) as pool:
        makers = [pool.submit(make) for _ in range(3)]
        try:
            for _ in range(80):
                plait.clear_caches()
        finally:
            done.set()
        for maker in makers:
            maker.result()
    assert int(kept[0](1)) == 2


def test_asyncio():
    """Tasks and threads of an event loop, inside a transformation and around it."""

    async def square(x):
        await asyncio.sleep(0)
        return x * x

    async def threaded(x):
        return await asyncio.to_thread(lambda: x * x)

    for f in (square, threaded):
        run = lambda x, f=f: asyncio.run(f(x))  # noqa: E731
        assert plait.grad(run)(f32(3)).item() == 6
        assert plait.jit(run)(f32(3)).item() == 9
        np.testing.assert_array_equal(plait.vmap(run)(f32([1, 2])), [1, 4])

    async def main():
        jobs = [
            asyncio.to_thread(lambda k=k: plait.grad(lambda x: x * x * k)(f32(k))) for k in range(6)
        ]
        return [g.item() for g in await asyncio.gather(*jobs)]

    assert asyncio.run(main()) == [2.0 * k * k for k in range(6)]
