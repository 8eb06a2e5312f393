"""Sixteen threads that start Weft at once: import, trace, compile, differentiate and dispatch.

Run by `test_cold.py` in a fresh process; the exit status is 0 if every number was right.

Invariant: nothing of Weft has run in the process before the threads start.
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
    import weft as wf

    return wf.lax.sin(c) + x, c


def np_shared(c, xs):
    d = 1.0
    for x in xs:
        c, d = np.sin(c) + x, d * np.cos(c)
    return c, d


def work(k):
    """All kinds of things, on values that are this thread's own."""
    import weft as wf

    lax, wnp = wf.lax, wf.numpy
    x = np.float32(0.1 + 0.05 * k)
    xs = np.float32([0.1, 0.2, 0.3])
    v = wnp.asarray(np.float32([x, 2 * x]))
    expect("eager", lax.sin(wnp.asarray(x)) * 2 + k, np.sin(x) * 2 + k)
    expect("jit", wf.jit(lambda y: lax.cos(y) * k)(x), np.cos(x) * k)
    expect("shared jit", both(x), np.sin(x) * x)
    expect("grad", wf.grad(lambda y: y * y * k)(x), 2 * x * k)
    expect("grad of jit", wf.grad(both)(x), np.cos(x) * x + np.sin(x))
    expect("second", wf.grad(wf.grad(both))(x), 2 * np.cos(x) - np.sin(x) * x)
    expect("vmap", wf.vmap(lambda y: y * k + 1)(v), np.array([x, 2 * x]) * k + 1)
    expect("jvp", wf.jvp(lax.exp, (x,), (np.float32(k),))[1], np.exp(x) * k)
    loop = lambda c: lax.scan(shared, c, xs)[0]  # noqa: E731
    c, d = np_shared(np.float64(x), xs)
    expect("scan", loop(wnp.asarray(x)), c)
    expect("grad of scan", wf.grad(loop)(x), d)
    expect("jit of grad of scan", wf.jit(wf.grad(loop))(x), d)
    expect("vmap of grad of scan", wf.vmap(wf.grad(loop))(v[:1]), [d])
    pick = lambda y: lax.cond(y > 0.5, lambda y: y * y, lambda y: y * 3, y)  # noqa: E731
    slopes = [2 * y if y > 0.5 else 3 for y in (x, 2 * x)]
    expect("cond", wf.grad(lambda v: wf.vmap(pick)(v).sum())(v), slopes)
    expect("checkpoint", wf.grad(wf.checkpoint(lambda y: lax.sin(lax.sin(y))))(x),
           np.cos(np.sin(x)) * np.cos(x))  # fmt: skip

    @wf.custom_jvp
    def custom(y):
        return y * k

    custom.defjvp(lambda p, t: (custom(p[0]), t[0] * 10 * k))
    expect("custom", wf.jit(wf.grad(custom))(x), 10 * k)
    for n in range(1, 4):
        ones = wnp.asarray(np.ones(n, np.float32))
        expect("shapes", (ones * k).sum(), n * k)
    f = wf.jit(lambda y, z: (y + z, y * k))
    for i in range(50):
        a, b = f(wnp.asarray(np.float32(i)), v)
        expect("dispatch", a, i + np.array([x, 2 * x]))
        expect("dispatch", b, i * k)


def both(x):
    """A function jitted once, under a lock of our own making, and used by all."""
    import weft as wf

    with making:
        if not jitted:
            jitted.append(wf.jit(lambda y: wf.lax.sin(y) * y))
    return jitted[0](x)


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
