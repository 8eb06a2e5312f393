"""Random programs under random stacks of transformations, against an interpreter in numpy.

A program is forty operations on small arrays, with branches, loops and functions that have rules
of their own.  numpy evaluates it on truncated series: the value, and the first and second
derivative along a direction.  Whatever stack of transformations is put around the program, what it
says of that direction must be those three numbers, for each element where it is mapped.

Run as a script it goes on for `--minutes`, from a seed that it prints, and says what differs.

Invariant: a program and its stack follow from the seed alone; the numpy side does not call plait.
"""

import itertools
import random
import sys
import warnings
from typing import NamedTuple

import numpy as np
import pytest

import plait
from plait import ext, lax
from plait.testing.oracle import ArrayOracle

from .seeds import options, seeds

pnp = plait.numpy
LENGTH = 40
SHAPES = [(), (3,), (2, 3)]
ARGUMENTS = [(2, 3), (3,), ()]


# ---- series in numpy -------------------------------------------------------------------------


class Series(NamedTuple):
    """A value, and its first and second derivative along a direction."""

    value: np.ndarray
    first: np.ndarray
    second: np.ndarray


class Tie(Exception):
    """Two elements are as good as equal, or one is at a kink: derivatives there are conventions."""


def apart(x, y):
    if np.any(np.abs(np.asarray(x) - y) < 1e-7):
        raise Tie


def linear(f):
    """An operation that is linear, or picks elements by their values: the same for each term."""
    return lambda x, *p: Series(*(np.asarray(f(t, *p)) for t in x))


def smooth(f, slope, bend):
    """An elementwise function by its first two derivatives."""

    def run(x):
        s, b = slope(x.value), bend(x.value)
        return Series(f(x.value), s * x.first, b * x.first**2 + s * x.second)

    return run


def bilinear(f):
    def run(x, y):
        return Series(
            np.asarray(f(x.value, y.value)),
            np.asarray(f(x.first, y.value) + f(x.value, y.first)),
            np.asarray(f(x.second, y.value) + 2 * f(x.first, y.first) + f(x.value, y.second)),
        )

    return run


def plus(x, y, a=1.0, b=1.0):
    return Series(*(np.asarray(a * s + b * t) for s, t in zip(x, y, strict=True)))


def times(x, y):
    return bilinear(np.multiply)(x, y)


def chosen(first, x, y):
    """Elements of `x` where `first(x, y)`, else of `y`."""
    mask = first(x.value, y.value)
    apart(x.value, y.value)
    return Series(*(np.where(mask, s, t) for s, t in zip(x, y, strict=True)))


def picked(x, index, axis):
    return Series(*(np.take_along_axis(t, index, axis) for t in x))


def by_order(x, axis):
    apart(np.diff(np.sort(x.value, axis), axis=axis), 0)
    return picked(x, np.argsort(x.value, axis, kind="stable"), axis)


def extreme(arg):
    def run(x, axis):
        apart(np.diff(np.sort(x.value, axis), axis=axis), 0)
        index = np.expand_dims(arg(x.value, axis), axis)
        return Series(*(np.take_along_axis(t, index, axis).squeeze(axis) for t in x))

    return run


def exp(x):
    return smooth(np.exp, np.exp, np.exp)(x)


def log(x):
    return smooth(np.log, lambda v: 1 / v, lambda v: -1 / v**2)(x)


def inverse(x):
    # powers of 1 / v, as those of a large v leave float64 where the result is only zero
    return smooth(lambda v: 1 / v, lambda v: -((1 / v) ** 2), lambda v: 2 * (1 / v) ** 3)(x)


def logistic(x):
    def value(v):
        small = np.exp(-np.abs(v))  # of no v does it overflow
        return np.where(v < 0, small, 1) / (1 + small)

    def slope(v):
        return value(v) * value(-v)

    return smooth(value, slope, lambda v: slope(v) * (value(-v) - value(v)))(x)


def const(v, like):
    z = np.zeros(np.shape(v))
    return Series(np.asarray(v, float), z, z)


def summed(x, axis):
    return linear(lambda t: t.sum(axis))(x)


def softmax(x, axis):
    top = const(x.value.max(axis, keepdims=True), x)
    e = exp(plus(x, top, 1, -1))
    total = linear(lambda t: t.sum(axis, keepdims=True))(e)
    return times(e, inverse(total))


def logsumexp(x, axis):
    top = x.value.max(axis, keepdims=True)
    e = exp(plus(x, const(top, x), 1, -1))
    return plus(log(summed(e, axis)), const(top.squeeze(axis), x))


def one_plus_square(x):
    return plus(times(x, x), const(np.ones(x.value.shape), x))


def bent(x, value, kinks):
    """A constant of `x` but for jumps at the kinks."""
    apart(x.value, kinks)
    return const(value, x)


def running_product(x, axis):
    terms = [Series(*(t.take(i, axis) for t in x)) for i in range(x.value.shape[axis])]
    out = [terms[0]]
    for t in terms[1:]:
        out.append(times(out[-1], t))
    return Series(*(np.stack(ts, axis) for ts in zip(*out, strict=True)))


def written(x, i, v):
    out = [np.array(t) for t in x]
    for t, s in zip(out, v, strict=True):
        t[i] = s
    return Series(*out)


def tanh_slope(v):
    return 1 - np.tanh(v) ** 2


# ---- operations ------------------------------------------------------------------------------


class Op(NamedTuple):
    """An operation in plait and in numpy; `takes` says for which shapes, and with what."""

    ours: object
    series: object
    count: int = 1
    takes: object = lambda rng, shape: ()


def any_axis(rng, shape):
    return (rng.randrange(len(shape)),) if shape else None


def row(rng, shape):
    return (rng.randrange(shape[0]),) if shape else None


def cut(rng, shape):
    return (rng.randrange(3),) if shape and shape[-1] == 3 else None


UNARY = {
    "sin": Op(pnp.sin, smooth(np.sin, np.cos, lambda v: -np.sin(v))),
    "cos": Op(pnp.cos, smooth(np.cos, lambda v: -np.sin(v), lambda v: -np.cos(v))),
    "tanh": Op(pnp.tanh, smooth(np.tanh, tanh_slope, lambda v: -2 * np.tanh(v) * tanh_slope(v))),
    "arctan": Op(pnp.arctan, smooth(np.arctan, lambda v: 1 / (1 + v * v),
                                    lambda v: -2 * v / (1 + v * v) ** 2)),
    "bump": Op(lambda x: pnp.exp(-x * x), lambda x: exp(Series(*(-t for t in times(x, x))))),
    "root": Op(lambda x: pnp.sqrt(x * x + 1), lambda x: smooth(
        np.sqrt, lambda v: 0.5 / np.sqrt(v), lambda v: -0.25 * v**-1.5)(one_plus_square(x))),
    "log": Op(lambda x: pnp.log1p(x * x), lambda x: log(one_plus_square(x))),
    "cube": Op(lambda x: (x / 4) ** 3, lambda x: (lambda y: times(y, times(y, y)))(
        Series(*(t / 4 for t in x)))),
    "logistic": Op(plait.nn.sigmoid, logistic),
    "abs": Op(pnp.abs, lambda x: times(x, bent(x, np.sign(x.value), 0))),
    "floor": Op(lambda x: x / 3 + pnp.floor(x), lambda x: plus(
        bent(x, np.floor(x.value), np.round(x.value)), x, 1, 1 / 3)),
    "stopped": Op(lax.stop_gradient, lambda x: const(x.value, x)),
    "clip": Op(lambda x: x / 3 + pnp.clip(x, -0.7, 0.6), lambda x: plus(x, Series(
        np.clip(x.value, -0.7, 0.6),
        *(t * bent(x, (x.value > -0.7) & (x.value < 0.6), [[[-0.7]], [[0.6]]]).value
          for t in x[1:])), 1 / 3)),
    "relu": Op(lambda x: x / 3 + plait.nn.relu(x), lambda x: plus(
        x, times(x, bent(x, x.value > 0, 0)), 1 / 3)),
}  # fmt: skip
PLACED = {
    "sum": Op(lambda x, a: x.sum(a), lambda x, a: summed(x, a), 1, any_axis),
    "mean": Op(lambda x, a: pnp.mean(x, a), linear(lambda t, a: t.mean(a)), 1, any_axis),
    "max": Op(lambda x, a: x.max(a), extreme(np.argmax), 1, any_axis),
    "min": Op(lambda x, a: x.min(a), extreme(np.argmin), 1, any_axis),
    "cumsum": Op(pnp.cumsum, linear(np.cumsum), 1, any_axis),
    "cumprod": Op(lambda x, a: pnp.cumprod(x, a), running_product, 1, any_axis),
    "sort": Op(pnp.sort, by_order, 1, any_axis),
    "softmax": Op(plait.nn.softmax, softmax, 1, any_axis),
    "logsumexp": Op(plait.nn.logsumexp, logsumexp, 1, any_axis),
    "flip": Op(pnp.flip, linear(np.flip), 1, any_axis),
    "roll": Op(lambda x, a: pnp.roll(x, 1, a), linear(lambda t, a: np.roll(t, 1, a)), 1, any_axis),
    "row": Op(lambda x, i: x[i], linear(lambda t, i: t[i]), 1, row),
    "row, computed": Op(
        lambda x, i: lax.dynamic_index_in_dim(x, pnp.argmax(x.ravel()) % 2 + 0 * i, 0, False),
        lambda x, i: (
            by_order(linear(np.ravel)(x), 0)
            and linear(lambda t: t[np.argmax(x.value.ravel()) % 2])(x)
        ),
        1,
        row,
    ),
    "picked": Op(
        lambda x, i: x[..., pnp.array([i, 0, i])], linear(lambda t, i: t[..., [i, 0, i]]), 1, cut
    ),
    "written": Op(
        lambda x, i: x.at[i].set(pnp.sin(x[0])),
        lambda x, i: written(x, i, UNARY["sin"].series(linear(lambda t: t[0])(x))),
        1,
        row,
    ),
    "added": Op(
        lambda x, i: x.at[pnp.array([i, 0])].add(x[0]),
        linear(
            lambda t, i: (
                t
                + sum(
                    np.eye(t.shape[0])[k].reshape((-1,) + (1,) * (t.ndim - 1)) * t[0]
                    for k in (i, 0)
                )
            )
        ),
        1,
        row,
    ),
    "turned": Op(
        lambda x, _: x.T.reshape(x.shape), linear(lambda t, _: t.T.reshape(t.shape)), 1, any_axis
    ),
    "spread": Op(
        lambda x, _: pnp.broadcast_to(x, (2, 3)),
        linear(lambda t, _: np.broadcast_to(t, (2, 3))),
        1,
        lambda rng, shape: (0,) if shape in ((), (3,)) else None,
    ),
}
BINARY = {
    "add": Op(lambda x, y: x + y, plus, 2),
    "mean of": Op(lambda x, y: 0.5 * x - 0.25 * y, lambda x, y: plus(x, y, 0.5, -0.25), 2),
    "mul": Op(lambda x, y: x * y, times, 2),
    "div": Op(lambda x, y: x / (y * y + 1), lambda x, y: times(x, inverse(one_plus_square(y))), 2),
    "maximum": Op(pnp.maximum, lambda x, y: chosen(np.greater, x, y), 2),
    "minimum": Op(pnp.minimum, lambda x, y: chosen(np.less, x, y), 2),
    "where": Op(lambda x, y: pnp.where(x > y, pnp.sin(x), y),
                lambda x, y: apart(x.value, y.value) or chosen(
                    lambda *_: x.value > y.value, UNARY["sin"].series(x), y), 2),
    "inner": Op(lambda x, y: pnp.sum(x * y, -1) if x.ndim else x * y,
                bilinear(lambda s, t: np.sum(s * t, -1) if s.ndim else s * t), 2),
    "outer": Op(lambda x, y: x.T @ y if x.ndim == 2 else pnp.multiply(x, y),
                bilinear(lambda s, t: s.T @ t if s.ndim == 2 else s * t), 2),
    "stacked": Op(lambda x, y: pnp.concatenate([x, y], 0)[1:] if x.ndim else x - y,
                  lambda x, y: Series(*(np.concatenate([s, t], 0)[1:] if s.ndim else s - t
                                        for s, t in zip(x, y, strict=True))), 2),
}  # fmt: skip
EVERY = UNARY | PLACED | BINARY


# ---- programs --------------------------------------------------------------------------------


class Step(NamedTuple):
    """One operation: its name, operands by number, and what else it is given; or a construct, with
    programs of one argument."""

    name: str
    operands: tuple
    given: tuple = ()
    programs: tuple = ()


class Body(NamedTuple):
    """From a value to one of the same shape."""

    steps: tuple
    out: int


CONSTRUCTS = (
    "cond",
    "scan",
    "loop",
    "while",
    "jit",
    "checkpoint",
    "jvp rule",
    "vjp rule",
    "mapped",
)


def shapes_after(name, given, shapes):
    """The shape of a result: that of numpy's."""
    xs = [const(0.137 + 0.731 * np.arange(np.prod(s)).reshape(s) + i / 7, None)
          for i, s in enumerate(shapes)]  # fmt: skip
    return EVERY[name].series(*xs, *given).value.shape


def one_step(rng, shapes):
    while True:
        name = rng.choice(list(EVERY))
        op = EVERY[name]
        a = rng.randrange(len(shapes))
        same = [i for i, s in enumerate(shapes) if s == shapes[a]]
        operands = (a,) if op.count == 1 else (a, rng.choice(same))
        given = op.takes(rng, shapes[a])
        if given is None:
            continue
        shape = shapes_after(name, given, [shapes[i] for i in operands])
        if len(shape) <= 2 and np.prod(shape, dtype=int) <= 9:
            return Step(name, operands, given), shape


def body(rng, shape, count, depth):
    """A program from a value to one of the same shape."""
    steps, shapes = steps_from(rng, [shape], count, depth)
    last = max(i for i, s in enumerate(shapes) if s == shape)
    return Body(tuple(steps), last)


def steps_from(rng, shapes, count, depth=0, envs=()):
    """(steps, shapes of all values); with `envs`, values at which the program is to have
    derivatives, no step meets a tie."""
    shapes, steps = list(shapes), []
    while len(steps) < count:
        if depth < 2 and rng.random() < 0.12:
            kind, at = rng.choice(CONSTRUCTS), rng.randrange(len(shapes))
            if kind == "mapped" and len(shapes[at]) != 2:
                continue
            inner = shapes[at][1:] if kind == "mapped" else shapes[at]
            more = tuple(body(rng, inner, rng.randrange(1, 5), depth + 1)
                         for _ in range(2 if kind == "cond" else 1))  # fmt: skip
            step, shape = Step(kind, (at,), (), more), shapes[at]
        else:
            step, shape = one_step(rng, shapes)
        try:
            values = [stepped(step, env) for env in envs]
        except Tie:
            continue
        for env, v in zip(envs, values, strict=True):
            env.append(v)
        steps.append(step)
        shapes.append(shape)
    return steps, shapes


def ours(steps, xs):
    """The values of a program, by plait."""
    env = list(xs)
    for s in steps:
        args = [env[i] for i in s.operands]
        env.append(construct(s, args[0]) if s.programs else EVERY[s.name].ours(*args, *s.given))
    return env


def construct(s, x):
    f, g = (lambda v, b=b: tamed(pnp.tanh, ours(b.steps, [v])[b.out])
            for b in (s.programs[0], s.programs[-1]))  # fmt: skip
    match s.name:
        case "cond":
            return lax.cond(pnp.sum(x) > 0, f, g, x)
        case "scan":
            out, rows = lax.scan(lambda c, k: (f(c) + k, c * k), x, np.array([0.1, 0.2]))
            return out + rows[1]
        case "loop":
            return lax.fori_loop(0, 3, lambda i, c: f(c) + np.float64(0.1) * i, x)
        case "while":  # so often that reverse mode knows it
            turn = lambda c: (c[0] + 1, f(c[1]))  # noqa: E731
            return lax.while_loop(lambda c: c[0] < 2, turn, (0, x), max_steps=3)[1]
        case "jit":
            return plait.jit(f)(x)
        case "checkpoint":
            return plait.checkpoint(f)(x)
        case "mapped":
            return plait.vmap(f)(x)
        case "jvp rule":
            return by_jvp(f)(x)
        case _:
            return by_vjp(f)(x)


def by_jvp(f):
    h = plait.custom_jvp(f)
    h.defjvp(lambda xs, ts: plait.jvp(f, xs, ts))
    return h


def by_vjp(f):
    h = plait.custom_vjp(f)
    h.defvjp(lambda *xs: plait.vjp(f, *xs), lambda pull, ct: pull(ct))
    return h


def tamed(tanh, x):
    """Of size 1 at most, so that no program overflows."""
    return tanh(x)


def series(steps, xs):
    """The same, by numpy."""
    env = list(xs)
    for s in steps:
        env.append(stepped(s, env))
    return env


def stepped(s, env):
    args = [env[i] for i in s.operands]
    return by_hand(s, args[0]) if s.programs else EVERY[s.name].series(*args, *s.given)


def by_hand(s, x):
    f, g = (lambda v, b=b: UNARY["tanh"].series(series(b.steps, [v])[b.out])
            for b in (s.programs[0], s.programs[-1]))  # fmt: skip
    shifted = lambda v, k: Series(v.value + k, *v[1:])  # noqa: E731
    match s.name:
        case "cond":
            apart(np.sum(x.value), 0)
            return f(x) if np.sum(x.value) > 0 else g(x)
        case "scan":
            first = shifted(f(x), 0.1)
            return plus(shifted(f(first), 0.2), first, 1.0, 0.2)
        case "loop":
            for i in range(3):
                x = shifted(f(x), 0.1 * i)
            return x
        case "while":
            return f(f(x))
        case "mapped":
            rows = [f(linear(lambda t, i=i: t[i])(x)) for i in range(len(x.value))]
            return Series(*(np.stack(ts) for ts in zip(*rows, strict=True)))
        case _:
            return f(x)


class Program(NamedTuple):
    """Forty steps on the arguments, then a number that depends on the last ten values."""

    steps: tuple

    def ours(self, *xs):
        last = ours(self.steps, xs)[-10:]
        return sum(pnp.sum(tamed(pnp.tanh, v) * weights(v.shape)) for v in last)

    def series(self, *xs):
        total = const(0.0, None)
        for v in series(self.steps, xs)[-10:]:
            w = weights(v.value.shape)
            total = plus(total, linear(lambda t, w=w: np.sum(t * w))(UNARY["tanh"].series(v)))
        return total


def weights(shape):
    return np.cos(np.arange(np.prod(shape, dtype=int))).reshape(shape)


# ---- stacks ----------------------------------------------------------------------------------


def wrapped(rng, f):
    """The same function, said otherwise."""
    kind = rng.choice(("as it is", "jit", "checkpoint", "jvp rule", "vjp rule", "scan", "closed"))
    match kind:
        case "jit":
            return kind, plait.jit(f)
        case "checkpoint":
            return kind, plait.checkpoint(f)
        case "jvp rule":
            return kind, by_jvp(f)
        case "vjp rule":
            return kind, by_vjp(f)
        case "scan":
            return kind, lambda *xs: lax.scan(
                lambda c, _: (c + f(*xs), None), np.float64(0), None, 1
            )[0]
        case "closed":
            return kind, lambda *xs: (lambda g: g())(plait.checkpoint(lambda: f(*xs)))
        case _:
            return kind, f


def inner_product(gs, ts):
    return sum(pnp.sum(g * t) for g, t in zip(gs, ts, strict=True))


def along(f, ts):
    return lambda *xs: plait.jvp(f, xs, ts)[1]


def by_grad(f, ts):
    return lambda *xs: inner_product(plait.grad(f, (0, 1, 2))(*xs), ts)


def by_vjp_of(f, ts):
    return lambda *xs: inner_product(plait.vjp(f, *xs)[1](np.float64(1)), ts)


def by_linearize(f, ts):
    return lambda *xs: plait.linearize(f, *xs)[1](*ts)


def by_jacobian(kind):
    return lambda f, ts: lambda *xs: inner_product(kind(f, (0, 1, 2))(*xs), ts)


DERIVATIVES = {
    "jvp": along,
    "grad": by_grad,
    "vjp": by_vjp_of,
    "linearize": by_linearize,
    "jacfwd": by_jacobian(plait.jacfwd),
    "jacrev": by_jacobian(plait.jacrev),
}


def smooth_program(rng, numbers):
    """(program, arguments, directions, arguments stacked along a last axis): a program that has
    derivatives at all of these arguments."""
    xs, ts = ([np.asarray(numbers.randn(*s)) for s in ARGUMENTS] for _ in range(2))
    batches = [numbers.randn(*s, 2) for s in ARGUMENTS]
    choices = [(x, b[..., 0], b[..., 1]) for x, b in zip(xs, batches, strict=True)]
    zeros = [np.zeros(s) for s in ARGUMENTS]
    envs = [[*map(Series, some, ts, zeros)] for some in itertools.product(*choices)]
    return Program(tuple(steps_from(rng, ARGUMENTS, LENGTH, envs=envs)[0])), xs, ts, batches


class Stack:
    """Transformations, drawn one after the other, around a function; `names` from inside out."""

    def __init__(self, rng):
        self.rng, self.names = rng, []

    def put(self, name, f):
        self.names.append(name)
        return f

    def wrapped(self, f):
        return self.put(*wrapped(self.rng, f)) if self.rng.random() < 0.5 else f

    def differentiated(self, f, times, ts):
        """`f` along the direction, so many times."""
        for _ in range(times):
            kind = self.rng.choice(list(DERIVATIVES))
            f = DERIVATIVES[kind](self.wrapped(f), list(map(pnp.asarray, ts)))
            f = self.put(kind, f)
        return f

    def mapped(self, f, axes):
        return self.put(f"vmap {axes}", plait.vmap(self.wrapped(f), tuple(axes)))

    def compiled(self, f):
        return self.put("jit", plait.jit(f)) if self.rng.random() < 0.3 else f


def mapping(rng):
    """Which axis of each argument is mapped: one of them at least."""
    axes = [rng.choice([None, 0, -1]) for _ in ARGUMENTS]
    return axes if any(a is not None for a in axes) else [0, *axes[1:]]


def case(seed, run):
    """(program, stack, what plait says, what numpy says); `run` is how plait is asked."""
    rng = random.Random(seed)
    program, xs, ts, batches = smooth_program(rng, np.random.RandomState(seed % 2**32))
    order, stack, zeros = rng.randrange(3), Stack(rng), [np.zeros(s) for s in ARGUMENTS]
    inside = rng.choice([None, *range(order + 1)])
    if inside is None:
        f = stack.compiled(stack.differentiated(program.ours, order, ts))
        return program, stack, run(f, xs), program.series(*map(Series, xs, ts, zeros))[order]
    # derivatives inside the mapping are of one element, those around it of a sum over elements
    axes = mapping(rng)
    along = list(zip(batches, xs, ts, axes, strict=True))
    f = stack.mapped(stack.differentiated(program.ours, inside, ts), axes)
    if outside := order - inside:
        directions = [t if a is None else np.moveaxis(np.stack([t, t], -1), -1, a)
                      for _, _, t, a in along]  # fmt: skip
        total = lambda *vs, f=f: pnp.sum(f(*vs) * pnp.array([1.0, 10.0]))  # noqa: E731
        f = stack.differentiated(total, outside, directions)
    given = [x if a is None else np.moveaxis(b, -1, a) for b, x, _, a in along]
    rows = [[x if a is None else b[..., i] for b, x, _, a in along] for i in range(2)]
    each = [program.series(*map(Series, row, ts, zeros))[order] for row in rows]
    want = each[0] + 10 * each[1] if outside else np.stack(each)
    return program, stack, run(stack.compiled(f), given), want


class Oracle(ArrayOracle):
    """Evaluates programs by numpy, one equation after the other: nothing is compiled."""

    def apply(self, prim, args, params):
        if prim.higher is None or prim.name.startswith("core."):
            return super().apply(prim, args, params)
        prim, params = prim.higher.erase(prim, params)
        return ext.ir.evaluate(params["program"], args)


def by_numpy(f, xs):
    """What a function returns by its Program, whose primitives numpy evaluates."""
    program = plait.make_program(f)(*xs)
    with ext.trace.use(Oracle()), np.errstate(all="ignore"):
        (out,) = ext.ir.evaluate(program, [np.asarray(x) for x in xs])
    return out.numpy() if hasattr(out, "numpy") else np.asarray(out)


def executed(f, xs):
    return f(*map(pnp.asarray, xs))


def difference(seed, run=executed):
    """What is wrong with the case of a seed, in words; None if nothing is."""
    try:
        program, stack, got, want = case(seed, run)
    except Exception as error:
        return f"seed {seed}: {type(error).__name__}: {error}"
    got, want = np.asarray(got), np.asarray(want)
    scale = 1 + np.abs(want).max()
    if got.shape == want.shape and np.all(np.abs(got - want) <= 1e-7 * scale):
        return None
    steps = "\n".join(f"  %{i + 3} = {s}" for i, s in enumerate(program.steps))
    return f"seed {seed}, {' of '.join(reversed(stack.names))}: {got}, numpy says {want}\n{steps}"


# ---- as a test, and as a script ----------------------------------------------------------------


@pytest.mark.sampled(10)
@pytest.mark.parametrize("block", range(20))
def test_random_programs(block):
    """The same seeds in every run: some are executed, and of the others the Programs are evaluated
    by numpy, for compiling takes the most of the time by far."""
    seeds = range(10 * block, 10 * block + 10)
    wrong = [difference(seed, by_numpy if seed % 25 else executed) for seed in seeds]
    wrong = [d for d in wrong if d is not None]
    assert not wrong, "\n\n".join(wrong[:3])


def main() -> int:
    parser = options("run random programs for some minutes")
    parser.add_argument("--by-numpy", action="store_true", help="evaluate Programs by numpy")
    given = parser.parse_args()
    warnings.simplefilter("error")
    found = done = 0
    for seed in seeds(given):
        wrong = difference(seed, by_numpy if given.by_numpy else executed)
        if wrong is not None:
            found += 1
            print(wrong, flush=True)
        done += 1
        if done % 1000 == 0:
            print(f"{done} programs, {found} differ", flush=True)
    print(f"{done} programs: {found} differ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
