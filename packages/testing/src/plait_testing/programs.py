"""Random Programs, for tests of functions from Programs to Programs.

Invariant: a seed gives the same program everywhere and always.  It is well typed, terminates, and
has the hard cases of rewriting: dead and repeated equations, identities, literals, constants,
repeated sub-programs, branches, loops.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from plait.ext import Aval, Literal, Program, current, stage, staged
from plait.ext.ops import control_flow, reduction, shape
from plait.ext.ops import elementwise as el
from plait.ext.trace import Stage, Value
from plait.ext.types import BOOL, INT32
from plait.ext.values import asarray

__all__ = ["random_arguments", "random_program"]

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_SHAPES = ((), (3,), (2, 3), (3, 1))
_SCALARS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5)


def random_program(seed: int, size: int = 24, depth: int = 2) -> Program:
    """Return a program of about `size` equations, with sub-programs `depth` deep.

    Floating values stay finite for finite arguments.  Among transcendental functions, whose
    rounding depends on the machine, only `sin` and `tanh` occur.

    >>> import plait
    >>> plait.testing.random_program(1) is plait.testing.random_program(1)
    False
    """
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 4))
    avals = [_type(rng) for _ in range(count)]
    return staged(_Writer(rng, size, depth).body, avals, f"random_{seed}")


def random_arguments(program: Program, seed: int = 0) -> list[np.ndarray]:
    """Return arrays of the types of the program's inputs."""
    rng = np.random.default_rng(seed)
    return [_array(rng, a) for a in program.in_avals]


def _type(rng: np.random.Generator) -> Aval:
    dtype = (_F32, _F32, _F64, INT32, BOOL)[rng.integers(5)]
    return Aval(_SHAPES[rng.integers(len(_SHAPES))], dtype)


def _array(rng: np.random.Generator, aval: Aval) -> np.ndarray:
    if aval.dtype.kind == "f":
        x = rng.choice([-1.5, -0.0, 0.0, 0.25, 1.0, 3.0], aval.shape)
        return np.asarray(x).astype(aval.dtype)
    return np.asarray(rng.integers(0, 2 if aval.dtype == BOOL else 7, aval.shape), aval.dtype)


class _Writer:
    """A writer that applies random primitives to the values it holds."""

    def __init__(self, rng: np.random.Generator, size: int, depth: int):
        self.rng, self.size, self.depth = rng, size, depth
        self.values: list[Any] = []
        self.programs: list[Program] = []

    def body(self, *xs: Any) -> list[Any]:
        self.values = list(xs)
        while len(self.values) < self.size:
            self.values += self.step()
        picked = self.rng.choice(len(self.values), self.rng.integers(1, 5))
        outs = [self.values[i] for i in picked]
        return [*outs, self.literal(outs[0].aval)] if self.rng.random() < 0.2 else outs

    def step(self) -> list[Any]:
        makers = [self.unary, self.unary, self.binary, self.binary, self.again, self.neutral,
                  self.twice, self.moved, self.moved, self.compared, self.constant]  # fmt: skip
        if self.depth and self.rng.random() < 0.2:
            makers = [self.call, self.call, self.branch, self.loop, self.scan]
        return makers[self.rng.integers(len(makers))]()

    # -- choices ---------------------------------------------------------------------------

    def any(self, ok: Callable[[Aval], Any] = bool) -> Any:
        fit = [v for v in self.values if ok(v.aval)]
        return fit[self.rng.integers(len(fit))] if fit else self.made(ok)

    def made(self, ok: Callable[[Aval], Any]) -> Any:
        """Return a new array: a constant that the program closes over."""
        for dtype in (_F32, INT32, BOOL):
            for s in _SHAPES:
                if ok(Aval(s, dtype)):
                    return self.kept(asarray(_array(self.rng, Aval(s, dtype))))
        return self.kept(asarray(np.float32(1)))

    def kept(self, x: Value) -> Any:
        by = current()
        return by.atom(x) if isinstance(by, Stage) else x

    def float(self) -> Any:
        return self.any(lambda a: a.inexact)

    def literal(self, aval: Aval) -> Literal:
        if aval.inexact:
            return Literal(_SCALARS[self.rng.integers(len(_SCALARS))], aval)
        if aval.dtype == BOOL:
            return Literal(bool(self.rng.integers(2)), aval)
        return Literal(int(self.rng.integers(-1, 3)), aval)

    def like(self, x: Value) -> Any:
        """Return another value of the type of `x`, maybe a literal."""
        if self.rng.random() < 0.3:
            return self.literal(x.aval)
        return self.any(lambda a: a is x.aval)

    def pick(self, *prims: Any) -> Any:
        return prims[self.rng.integers(len(prims))]

    # -- equations -------------------------------------------------------------------------

    def constant(self) -> list[Any]:
        return [self.kept(asarray(_array(self.rng, _type(self.rng))))]

    def unary(self) -> list[Any]:
        return [self.pick(el.neg, el.sin, el.tanh, el.sign, el.stop).bind(self.float())]

    def binary(self) -> list[Any]:
        x = self.any()
        y = self.like(x)
        if x.aval.inexact:
            z = self.pick(el.add, el.mul, el.sub, el.maximum, el.minimum).bind(x, y)
            return [el.tanh.bind(z)] if self.rng.random() < 0.5 else [z]
        return [self.pick(el.and_, el.or_, el.xor).bind(x, y)]

    def again(self) -> list[Any]:
        """Write the same operation twice, on values or on literals."""
        x = self.float()
        c = _SCALARS[self.rng.integers(len(_SCALARS))]
        return [el.mul.bind(x, Literal(c, x.aval)) for _ in range(2)]

    def neutral(self) -> list[Any]:
        """Write an operation that has no effect, or nearly none."""
        x = self.any()
        if not x.aval.inexact:
            zero = Literal(False if x.aval.dtype == BOOL else 0, x.aval)
            return [self.pick(el.or_, el.xor, el.and_).bind(x, zero)]
        prim, scalar = self.pick(
            (el.mul, 1.0), (el.div, 1.0), (el.add, 0.0), (el.add, -0.0), (el.sub, 0.0),
            (el.sub, -0.0), (el.mul, 0.0), (el.mul, -1.0),
        )  # fmt: skip
        return [prim.bind(x, Literal(scalar, x.aval))]

    def twice(self) -> list[Any]:
        x = self.any(lambda a: a.ndim == 2)
        prim, params = self.pick(
            (shape.transpose_, {"perm": (1, 0)}), (shape.rev, {"axes": (0,)}),
            (shape.rev, {"axes": (0, 1)}), (el.neg, {}),
        )  # fmt: skip
        if prim is el.neg and not x.aval.inexact:
            prim, params = shape.rev, {"axes": (1,)}
        y = prim.bind(x, **params)
        return [y, prim.bind(y, **params)]

    def moved(self) -> list[Any]:
        x = self.any()
        n, s = x.aval.ndim, x.aval.shape
        if not n:
            return [shape.broadcast_in_dim.bind(x, shape=(3,), dims=())]
        which = self.rng.integers(7)
        if which == 0:
            return [shape.slice_.bind(x, starts=(0,) * n, limits=s, strides=(1,) * n)]
        if which == 1:
            return [shape.reshape_.bind(x, shape=(1, *s) if n == 1 else (s[0] * s[1],))]
        if which == 2 and n == 1:
            return [shape.broadcast_in_dim.bind(x, shape=(2, *s), dims=(1,))]
        if which == 3:
            dtype = _F64 if x.aval.dtype == _F32 else _F32
            y = shape.convert_.bind(x, dtype=dtype, weak=False)
            return [y, shape.convert_.bind(y, dtype=_F64, weak=False)]
        if which == 4 and x.aval.inexact:
            return [el.tanh.bind(reduction.reduce_sum.bind(x, axes=(n - 1,)))]
        if which == 5:
            y = self.like(x)
            return [shape.concatenate_.bind(x, y, axis=0)]
        low = (int(self.rng.integers(2)),) + (0,) * (n - 1)
        cell = Aval((), x.aval.dtype)
        return [shape.pad_.bind(x, self.literal(cell), low=low, high=(0,) * n, interior=(0,) * n)]

    def compared(self) -> list[Any]:
        x = self.float()
        y = self.like(x)
        p = self.pick(el.lt, el.ge, el.eq).bind(x, y)
        a = x if self.rng.random() < 0.3 else y
        return [p, el.select.bind(p, a, self.like(x))]

    # -- equations with programs -----------------------------------------------------------

    def some(self) -> list[Any]:
        return [self.any() for _ in range(self.rng.integers(1, 4))]

    def inner(self, avals: Sequence[Aval], outs: Sequence[Aval] | None = None) -> Program:
        """Return a program on these types; with results of these types, if given.

        It closes over arrays only, which become its constants.
        """
        writer = _Writer(self.rng, len(avals) + int(self.rng.integers(3, 9)), self.depth - 1)

        def body(*xs: Any) -> list[Any]:
            got = writer.body(*xs)
            if outs is None:
                return got
            fit = [v for v in writer.values if v.aval.inexact]
            return [self.cast(fit[i % len(fit)] if fit else xs[0], t) for i, t in enumerate(outs)]

        p, captured = stage(body, avals, f"inner_{len(self.programs)}", on=Stage(None, "jit"))
        assert not captured
        self.programs.append(p)
        return p

    def cast(self, x: Value, aval: Aval) -> Any:
        """Return a value of that type computed from `x`."""
        if x.aval is aval:
            return x
        if x.aval.ndim:
            n = x.aval.ndim
            x = shape.slice_.bind(x, starts=(0,) * n, limits=(1,) * n, strides=(1,) * n)
            x = shape.reshape_.bind(x, shape=())
        if x.aval.inexact:
            x = el.tanh.bind(x)
        if x.aval.dtype != aval.dtype:
            x = shape.convert_.bind(x, dtype=aval.dtype, weak=False)
        return shape.broadcast_in_dim.bind(x, shape=aval.shape, dims=())

    def call(self) -> list[Any]:
        known = [p for p in self.programs if self.rng.random() < 0.5]
        for p in known:
            args = [[v for v in self.values if v.aval is a] for a in p.in_avals]
            if all(args):
                picked = [vs[self.rng.integers(len(vs))] for vs in args]
                return control_flow.call.bind(*picked, program=p)
        xs = self.some()
        return control_flow.call.bind(*xs, program=self.inner([x.aval for x in xs]))

    def branch(self) -> list[Any]:
        xs = self.some()
        avals = [x.aval for x in xs]
        first = self.inner(avals)
        second = self.inner(avals, first.out_avals)
        index = self.cast(self.any(lambda a: a.dtype == BOOL), Aval((), INT32))
        return control_flow.cond.bind(index, *xs, branches=(first, second))

    def loop(self) -> list[Any]:
        xs = self.some()
        avals = [Aval((), INT32), *(x.aval for x in xs)]

        def test(i: Value, *_: object) -> list[Any]:
            return [el.lt.bind(i, Literal(3, i.aval))]

        inside = self.inner(avals, avals[1:])

        def turn(i: Value, *vs: Any) -> list[Any]:
            return [
                el.add.bind(i, Literal(1, i.aval)),
                *control_flow.call.bind(i, *vs, program=inside),
            ]

        programs = {"cond": staged(test, avals, "test"), "body": staged(turn, avals, "turn")}
        zero = Literal(0, avals[0])
        return control_flow.while_.bind(zero, *xs, **programs, cond_consts=0, body_consts=0)[1:]

    def scan(self) -> list[Any]:
        consts, carry = self.some()[:1], self.some()
        rows = [self.any(lambda a: a.ndim and a.shape[0] == 3)]
        avals = [x.aval for x in (*consts, *carry)]
        avals += [r.aval.with_shape(r.aval.shape[1:]) for r in rows]
        body = self.inner(avals, [*(c.aval for c in carry), Aval((), _F32)])
        return control_flow.scan.bind(
            *consts, *carry, *rows, body=body, consts=len(consts), carry=len(carry), length=3,
            reverse=bool(self.rng.integers(2)), unroll=1,
        )  # fmt: skip
