"""Programs for the pieces of eight devices, each in two readings: inside `shard_map`, and in numpy.

A program is written for a *reading*, which says how loops, branches and collectives go.  In numpy
the values of all devices are one array, of float64, loops are loops of Python, and derivatives are
differences.  `random_program` makes one from a seed; run as a script, this module goes on with
others:

    python -m tests.sharding.varying_programs --minutes 5
    python -m tests.sharding.varying_programs --seed 17 --count 1

Invariant: nothing in the numpy reading comes from Plait.
"""

import random
from functools import partial

import numpy as np

import plait
import plait.numpy as pnp
from plait import lax
from plait_sharding import P, make_mesh, shard_map

from ..fuzz.seeds import options, seeds

DEVICES = 8
W = 0.7
V = np.linspace(0.5, 1.3, DEVICES)
D = np.cos(np.arange(DEVICES))
"""A direction in which `V` is moved."""
FLAG = 1
"""Choices that are the same on all devices, compiled with both branches."""


# ---- the two readings ------------------------------------------------------------------------


class InPlait:
    """The reading for one device, inside `shard_map`."""

    sin, tanh = staticmethod(pnp.sin), staticmethod(pnp.tanh)

    def __init__(self, flag):
        self.flag = flag

    def psum(self, x):
        return lax.psum(x, "i") / DEVICES

    def shift(self, x):
        return lax.ppermute(x, "i", [(k, (k + 1) % DEVICES) for k in range(DEVICES)])

    def index(self):
        return lax.axis_index("i")

    def scan(self, step, c, rows):
        return lax.scan(lambda c, r: (step(c, r), None), c, pnp.stack(rows))[0]

    def kept(self, step, c, rows):
        """The sum of what a scan stacks."""
        return lax.scan(lambda c, r: (step(c, r), c * r), c, pnp.stack(rows))[1].sum()

    def fori(self, n, step, c):
        return lax.fori_loop(0, n, lambda i, c: step(c), c)

    def until(self, turns, step, c):
        """At most three turns, as many as each device has."""
        going = lambda s: s[0] < turns  # noqa: E731
        turn = lambda s: (s[0] + 1, step(s[1]))  # noqa: E731
        return lax.while_loop(going, turn, (0, c), max_steps=3)[1]

    def either(self, here, f, g, *xs):
        """The branch of each device, if `here`; else one for all."""
        return lax.cond(self.index() % 2 == 0 if here else self.flag > 0, f, g, *xs)

    def checkpoint(self, f, *xs):
        return plait.checkpoint(f)(*xs)

    def jit(self, f, *xs):
        return plait.jit(f)(*xs)

    def vmap(self, f, x):
        return plait.vmap(f)(pnp.stack([x, x * x])).sum()

    def own_vjp(self, f, *xs):
        g = plait.custom_vjp(f)
        g.defvjp(lambda *xs: (f(*xs), xs), lambda xs, ct: plait.vjp(f, *xs)[1](ct))
        return g(*xs)

    def own_jvp(self, f, *xs):
        g = plait.custom_jvp(f)
        g.defjvp(lambda xs, ts: plait.jvp(f, xs, ts))
        return g(*xs)

    def reduced(self, x):
        """A sum over devices whose pullback is the identity."""
        g = plait.custom_vjp(lambda x: lax.psum(x, "i"))
        g.defvjp(lambda x: (lax.psum(x, "i"), None), lambda _, ct: (ct,))
        return g(lax.pcast(x, "i", to="varying")) / DEVICES


class InNumpy:
    """The reading for all devices: a value is an array of one for each, or one number for all."""

    sin, tanh = staticmethod(np.sin), staticmethod(np.tanh)

    def psum(self, x):
        return np.broadcast_to(x, DEVICES).sum() / DEVICES

    reduced = psum

    def shift(self, x):
        return np.roll(np.broadcast_to(x, DEVICES), 1)

    def index(self):
        return np.arange(DEVICES)

    def scan(self, step, c, rows):
        for r in rows:
            c = step(c, r)
        return c

    def kept(self, step, c, rows):
        total = 0.0
        for r in rows:
            total, c = total + c * r, step(c, r)
        return total

    def fori(self, n, step, c):
        return self.scan(lambda c, _: step(c), c, range(n))

    def until(self, turns, step, c):
        for i in range(3):
            c = np.where(i < turns, step(c), c)
        return c

    def either(self, here, f, g, *xs):
        return np.where(self.index() % 2 == 0, f(*xs), g(*xs)) if here else (f if FLAG else g)(*xs)

    def vmap(self, f, x):
        return f(x) + f(x * x)

    def checkpoint(self, f, *xs):
        return f(*xs)

    jit = own_vjp = own_jvp = checkpoint


# ---- random programs ---------------------------------------------------------------------------

LOOPS = ("scan", "kept", "fori", "until")
BODIES = (*LOOPS, "either", "checkpoint", "jit", "vmap", "own_vjp", "own_jvp")
LOCAL = ("mul", "mul", "add", "sin", "tanh")
EVERYWHERE = ("psum", "shift", "reduced", "index")


def random_program(seed):
    """A function of a reading, of what all devices share, and of what each has of its own."""
    block = _block(random.Random(seed), 2, depth=2, local=False)

    def program(k, w, v):
        return _run(block, k, [w, v])

    return program


def _block(rng, count, depth, local):
    """Statements on `count` values; the last of these gives the result, which is bounded."""
    block = []
    for _ in range(rng.randrange(2, 4 if depth else 3)):
        at = lambda: rng.randrange(count)  # noqa: E731
        kind = rng.choice((BODIES if depth else ()) + LOCAL + (() if local else EVERYWHERE))
        inner = []
        here = kind == "until" or (kind == "either" and rng.random() < 0.5)
        if kind in BODIES:
            bodies = 2 if kind == "either" else 1
            inner = [_block(rng, 3, depth - 1, local or here) for _ in range(bodies)]
        block.append((kind, (at(), at(), at()), here, inner))
        count += 1
    return block


def _run(block, k, values):
    values = list(values)
    for kind, (a, b, c), here, inner in block:
        x, y, z = values[a], values[b], values[c]
        # Of the values from outside, y is an operand of calls, and is closed over by loops.
        first = partial(_run, inner[0], k) if inner else None
        if kind in ("scan", "kept"):
            step = lambda s, r, f=first, y=y: f([s, y, r])  # noqa: E731
            new = getattr(k, kind)(step, x, [z, z * 0.5, z - 0.3])
        elif kind == "fori":
            new = k.fori(2, lambda s, f=first, y=y, z=z: f([s, y, z]), x)
        elif kind == "until":
            new = k.until(k.index() % 3, lambda s, f=first, y=y, z=z: f([s, y, z]), x)
        elif kind == "either":
            second = partial(_run, inner[1], k)
            new = k.either(here, *[lambda x, y, z, f=f: f([x, y, z]) for f in (first, second)],
                           x, y, z)  # fmt: skip
        elif kind == "vmap":
            new = k.vmap(lambda x, f=first, y=y, z=z: f([x, y, z]), x)
        elif inner:
            new = getattr(k, kind)(lambda x, y, z, f=first: f([x, y, z]), x, y, z)
        elif kind == "mul":
            new = x * y
        elif kind == "add":
            new = x + y * 0.5
        elif kind == "index":
            new = x * (k.index() - 3.5) * 0.2
        else:
            new = getattr(k, kind)(x)
        values.append(new)
    return k.sin(values[-1] + values[-2] * 0.5)


# ---- derivatives -------------------------------------------------------------------------------


def differences(program):
    """(value, dw, dv along D, dww, dwv along D, dww along w), of the mean over devices."""
    k = InNumpy()

    def at(a, b):
        out = program(k, np.float64(W + a), V + b * D)
        return float(np.broadcast_to(out, DEVICES).mean())

    h = 2e-3
    line = lambda a, b: [at(n * h * a, n * h * b) for n in range(-3, 4)]  # noqa: E731

    def first(y):
        return (-y[0] + 9 * y[1] - 45 * y[2] + 45 * y[4] - 9 * y[5] + y[6]) / (60 * h)

    def second(y):
        return (2 * y[0] - 27 * y[1] + 270 * y[2] - 490 * y[3] + 270 * y[4] - 27 * y[5]
                + 2 * y[6]) / (180 * h**2)  # fmt: skip

    def third(y):
        return (y[0] - 8 * y[1] + 13 * y[2] - 13 * y[4] + 8 * y[5] - y[6]) / (8 * h**3)

    w, v, both = line(1, 0), line(0, 1), line(1, 1)
    mixed = (second(both) - second(w) - second(v)) / 2
    return np.array([w[3], first(w), first(v), second(w), mixed, third(w)])


def _total(program, alike):
    """The mean over devices, of what `shard_map` gives: one value, or one for each device."""
    mesh = make_mesh((DEVICES,), "i")

    def piece(w, v, flag):
        out = program(InPlait(flag), w, v[0])
        return lax.psum(out, "i") / DEVICES if alike else out[None]

    out = P() if alike else P("i")
    f = shard_map(piece, mesh=mesh, in_specs=(P(), P("i"), P()), out_specs=out)
    return lambda w, v, flag: f(w, v, flag).mean()


def _inside(program, ways):
    """Derivatives with respect to w that are taken inside of `shard_map`."""

    def piece(w, v, flag):
        mean = lambda w: lax.psum(program(InPlait(flag), w, v[0]), "i") / DEVICES  # noqa: E731
        return [way(mean)(w) for way in ways]

    mesh = make_mesh((DEVICES,), "i")
    return shard_map(piece, mesh=mesh, in_specs=(P(), P("i"), P()), out_specs=P())


def along(f, w, t=1.0):
    """The derivative of `f` along w, by forward mode."""
    return plait.jvp(f, (w,), (pnp.full_like(w, t),))[1]


def outside(alike):
    """Derivatives of the whole: reverse over reverse, forward over reverse, and three levels."""

    def derivatives(program):
        total = _total(program, alike)

        def all_of(w, v, flag):
            f = lambda w, v: total(w, v, flag)  # noqa: E731
            dw, dv = plait.grad(f), plait.grad(f, 1)
            slope = lambda w: (dv(w, v) * D.astype("f")).sum()  # noqa: E731
            value, mixed = plait.value_and_grad(slope)(w)
            dww = lambda w: plait.grad(dw)(w, v)  # noqa: E731
            return [value, mixed, dww(w), along(slope, w), along(dww, w)]

        return all_of

    return derivatives, (2, 4, 3, 4, 5)


def inside(program):
    g = plait.grad
    ways = [g, lambda f: g(g(f)), lambda f: g(lambda w: along(f, w)), lambda f: g(g(g(f)))]
    return _inside(program, ways)


def in_and_out(program):
    """One derivative inside, others outside."""
    one = _inside(program, [plait.grad])

    def all_of(w, v, flag):
        f = lambda w: one(w, v, flag)[0]  # noqa: E731
        return [f(w), plait.grad(f)(w), along(plait.grad(f), w)]

    return all_of


WAYS = {
    "outside": outside(False),
    "outside, alike": outside(True),
    "inside": (inside, (1, 3, 3, 5)),
    "in and out": (in_and_out, (1, 3, 5)),
}


def check(program, way):
    """Derivatives in one way are those that numpy's differences give."""
    make, positions = WAYS[way]
    with plait.config(tier="fast"):
        got = plait.jit(make(program))(np.float32(W), V.astype("f"), np.int32(FLAG))
    want = differences(program)
    scale = 1 + np.abs(want).max()
    for k, (x, p) in enumerate(zip(got, positions, strict=True)):
        near = np.isclose(float(x), want[p], rtol=5e-3, atol=2e-3 * scale)
        assert near, f"derivative {k} {way} is {float(x)}, and {want[p]} by differences"


def main():
    a = options("run random programs inside shard_map for some minutes", 1.0).parse_args()
    plait.config.cpu_devices = DEVICES
    plait.config.checks = True
    run = failed = 0
    for seed in seeds(a):
        for way in WAYS if a.count == 1 else [random.Random(seed).choice([*WAYS])]:
            run += 1
            try:
                check(random_program(seed), way)
            except Exception as e:
                failed += 1
                print(f"--seed {seed} ({way}): {type(e).__name__}: {str(e)[:600]}", flush=True)
    print(f"{run} programs, {failed} failed")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
