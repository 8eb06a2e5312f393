"""Sixteen threads that start Plait at once: import, trace, compile, differentiate and dispatch.

Run by `test_cold.py` in a fresh process; the exit status is 0 if every number was right.

Invariant: nothing of Plait has run in the process before the threads start.
"""

import faulthandler
import sys
import threading

import numpy as np

THREADS = 16
faulthandler.enable()
faulthandler.dump_traceback_later(100, exit=True)
together = threading.Barrier(THREADS)
wrong: list[str] = []


def expect(what, got, want):
    """Note a number that is not right."""
    if not np.allclose(np.asarray(got), want, rtol=1e-5, atol=1e-6):
        wrong.append(f"{what}: {np.asarray(got)} instead of {want}")


def shared(c, x):
    """A step that all threads trace at once."""
    import plait

    return plait.lax.sin(c) + x, c


def loop(c, xs):
    import plait

    return plait.lax.scan(shared, c, xs)[0]


def np_loop(c, xs):
    """(value, slope)"""
    d = 1.0
    for x in xs:
        c, d = np.sin(c) + x, d * np.cos(c)
    return c, d


def both(x):
    """A function jitted once, under a lock of our own making, and used by all."""
    import plait

    with making:
        if not jitted:
            jitted.append(plait.jit(lambda y: plait.lax.sin(y) * y))
    return jitted[0](x)


# Each task is given the package and numbers of its thread; all threads do all of them, each
# starting with another one.


def eager(plait, x, k):
    expect("eager", plait.lax.cos(plait.numpy.asarray(x)) + k, np.cos(x) + k)


def compiled(plait, x, k):
    expect("jit", plait.jit(lambda y, z: plait.lax.cos(y) * z)(x, k), np.cos(x) * k)
    expect("shared jit", both(x), np.sin(x) * x)


def derivative(plait, x, k):
    expect("grad", plait.grad(lambda y: y * y * k)(x), 2 * x * k)
    expect("grad of jit", plait.grad(both)(x), np.cos(x) * x + np.sin(x))


def second(plait, x, k):
    expect("second", plait.jit(plait.grad(plait.grad(both)))(x), 2 * np.cos(x) - np.sin(x) * x)


def forward(plait, x, k):
    expect("jvp", plait.jvp(plait.lax.exp, (x,), (k,))[1], np.exp(x) * k)


def mapped(plait, x, k):
    v = plait.numpy.asarray(np.float32([x, 2 * x]))
    expect("vmap", plait.vmap(lambda y: y * k)(v), np.array([x, 2 * x]) * k)


def scanned(plait, x, k):
    xs = np.float32([0.1, 0.2, 0.3])
    c, d = np_loop(np.float64(x), xs)
    expect("scan", loop(plait.numpy.asarray(x), xs), c)
    expect("grad of scan", plait.jit(plait.grad(loop))(x, xs), d)


def branches(plait, x, k):
    pick = lambda y: plait.lax.cond(y > 0.5, lambda y: y * y, lambda y: y * 3, y)  # noqa: E731
    v = np.float32([x, 2 * x])
    slopes = [2 * y if y > 0.5 else 3 for y in v]
    expect("cond", plait.jit(plait.grad(lambda v: plait.vmap(pick)(v).sum()))(v), slopes)


def recomputed(plait, x, k):
    f = plait.checkpoint(lambda y: plait.lax.sin(plait.lax.sin(y)))
    expect("checkpoint", plait.jit(plait.grad(f))(x), np.cos(np.sin(x)) * np.cos(x))


def custom(plait, x, k):
    f = plait.custom_jvp(lambda y: y * 2)
    f.defjvp(lambda p, t: (f(p[0]), t[0] * p[0] * 10))
    expect("custom", plait.jit(plait.grad(f))(x), 10 * x)


def shapes(plait, x, k):
    for n in range(1, 4):
        ones = plait.numpy.asarray(np.ones(n, np.float32))
        expect("shapes", (ones * k).sum(), n * k)


def dispatched(plait, x, k):
    f = plait.jit(lambda y, z: (y + z, y * z))
    for i in range(50):
        a, b = f(np.float32(i), k)
        expect("dispatch", a, i + k)
        expect("dispatch", b, i * k)


def keyed(plait, x, k):
    bits = plait.random.key_data(plait.random.key(int(k)))
    expect("key", bits, [0, int(k)])


TASKS = [
    eager, compiled, derivative, second, forward, mapped, scanned, branches, recomputed, custom,
    shapes, dispatched, keyed,
]  # fmt: skip


def work(k):
    """All tasks, on numbers that are this thread's own."""
    import plait

    expect("first", plait.lax.sin(np.float32(k)), np.sin(np.float32(k)))
    for i in range(len(TASKS)):
        TASKS[(i + k) % len(TASKS)](plait, np.float32(0.1 + 0.05 * k), np.float32(k))


making, jitted = threading.Lock(), []


def run(k):
    try:
        together.wait()
        work(k)
    except BaseException as error:  # whatever it is, the parent shall hear of it
        import traceback

        traceback.print_exc()
        wrong.append(f"thread {k}: {type(error).__name__}: {error}")


if __name__ == "__main__":
    threads = [threading.Thread(target=run, args=(k,)) for k in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print("\n".join(wrong) or "right")
    sys.exit(bool(wrong))
