"""Derivatives outside of jit, run as one compiled program where the cache has one.

Invariant: the results equal those of the transformation without recording, up to rounding.
"""

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any

from plait.ext.errors import names_of_arguments
from plait.ext.ops.shape import fill, materialise_at_ground
from plait.ext.trace import (
    GROUND,
    Recording,
    Value,
    admitted,
    admitted_leaves,
    is_unplaced,
    name_of,
    opened,
)
from plait.ext.tree import TreeDef, flatten

from .adable import adables
from .forward import JVP
from .linearization import (
    Levels,
    Linearized,
    expect_scalar,
    finished,
    levels_over,
    linearized,
    pushed,
    without_tangents,
)
from .linearized_functions import Pushforward
from .tangents import no_tangent, pair_of

__all__ = ["recorded_gradient", "recorded_jvp", "recorded_linearization"]


class _Recorded:
    """The results of a function whose call was recorded.

    Args:
      recording: the recording.
      f: the function.
      tree, xs: the structure of its arguments, and their leaves as values.
      has_aux: whether it returns (out, aux).

    Attributes:
      outs, tree: the results, and their structure.
      aux, aux_tree: the auxiliary results, and their structure.
    """

    def __init__(
        self,
        recording: Recording,
        f: Callable[..., Any],
        tree: TreeDef,
        xs: Sequence[Any],
        has_aux: bool,
    ):
        self.recording = recording
        with opened(recording):
            given = [recording.input(x.aval) if x.aval.varies else x for x in xs]
            out, aux = f(*tree.unflatten(given)), None
            if has_aux:
                out, aux = pair_of(out, recording.does)
            outs, self.tree = flatten(adables.opened(out))
            self.outs = [admitted(o) for o in outs]
        self.aux, self.aux_tree = flatten(adables.opened(aux))

    def run(
        self, operands: Sequence[list], key: bool | None, transformed: Callable[..., Any]
    ) -> Any:
        """Return the result of `Recording.run` for a function (results, auxiliary values).

        It returns as many of each as were recorded.  Return None if no result was recorded.
        """
        owns = self.recording.owns
        own, own_aux = ([x for x in xs if owns(x)] for xs in (self.outs, self.aux))
        n = len(own)

        def of_pairs(g: Callable[..., Any], *operands: list) -> Any:
            def pair(*xs: Value) -> tuple:
                out = g(*xs)
                return tuple(out[:n]), tuple(out[n:])

            return transformed(pair, *operands)

        return self.recording.run([*own, *own_aux], operands, (n, key), of_pairs) if n else None

    def filled(self, values: Sequence[Any], of_own: Sequence[Any]) -> list:
        """Return values, with recorded ones replaced by the results of a program."""
        given = iter(of_own)
        return [next(given) if self.recording.owns(x) else x for x in values]

    def resumed(self, values: Sequence[Any]) -> list:
        """Return values as the interpreter of the transformation holds them."""
        return [self.recording.value(x) for x in values]


@contextmanager
def _linearizing(xs: Sequence[Any], does: str, of: Callable[..., Any]):
    """Yield (the recording of a linearized function, a function that returns interpreters).

    The second resumes the recording under the interpreters of a linearization, for calls without
    a compiled program.
    """
    levels: Levels | None = None

    def opening() -> tuple[JVP, list]:
        nonlocal levels
        levels = levels_over(GROUND, does, of)
        j, _, t = levels
        return j, [j.dual(x, t.input(x.aval.tangent_type)) for x in xs if x.aval.varies]

    recording = Recording(JVP, of, opening, does)

    def otherwise() -> Levels:
        recording.resume()
        assert levels is not None
        levels.jvp.closed = True
        return levels

    try:
        yield recording, otherwise
    finally:
        recording.abandon()
        if levels is not None:
            levels.jvp.closed = True
            levels.tangents.abandon()


def recorded_gradient(
    f: Callable[..., Any],
    primals: tuple[Any, ...],
    has_aux: bool,
    holomorphic: bool,
    of: Callable[..., Any],
    differentiate: Callable[..., Any],
) -> tuple[Any, ...]:
    """Return (value, auxiliary value, gradients in a tree like the arguments), from one compiled
    program if there is one.

    `of` is the function as its user wrote it, `differentiate` is `value_and_grad`.
    """
    r, xs = _begun(primals, of)
    if not all(map(is_unplaced, xs)):  # placed arrays keep their places
        return linearized(f, primals, has_aux, "grad", of).gradient(holomorphic)

    def transformed(pair: Callable[..., Any], xs: list) -> Any:
        def function(*ys: Value) -> Any:
            (value,), aux = pair(*ys)
            return value, aux

        every = tuple(range(len(xs)))
        return differentiate(function, every, has_aux=True, holomorphic=holomorphic)(*xs)

    with _linearizing(xs, "grad", of) as (recording, otherwise):
        made = _Recorded(recording, f, r.in_tree, xs, has_aux)
        if recording.interpreter is None and len(made.outs) == 1 and recording.owns(made.outs[0]):
            expect_scalar(made.outs, r.name, holomorphic)
            done = made.run([[x for x in xs if x.aval.varies]], holomorphic, transformed)
            if done is not None:
                (value, aux), gs = done
                of_moving = iter(gs)
                g = [next(of_moving) if a.varies else no_tangent(a) for a in r.avals]
                beside = made.aux_tree.unflatten(made.filled(made.aux, aux))
                return made.tree.unflatten([value]), beside, r.in_tree.unflatten(g)
        return _finished(r, made, otherwise, has_aux).gradient(holomorphic)


def recorded_linearization(
    f: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool, does: str
) -> Linearized:
    """Return the function linearized at these primals, by one compiled program if there is one."""
    r, xs = _begun(primals, f)
    if not all(map(is_unplaced, xs)):
        return linearized(f, primals, has_aux, does, f)

    def transformed(pair: Callable[..., Any], xs: list) -> Any:
        inner = linearized(pair, tuple(xs), True, does, f)
        # A pushforward is a tree of residuals whose structure holds the static part.
        return inner.outs, inner.aux, Pushforward(inner.derivative(), inner.residuals)

    with _linearizing(xs, does, f) as (recording, otherwise):
        made = _Recorded(recording, f, r.in_tree, xs, has_aux)
        done = made.run([[x for x in xs if x.aval.varies]], None, transformed)
        if done is None:
            return _finished(r, made, otherwise, has_aux)
        outs, aux, push = done
        r.program, r.residuals = push.of.program, push.residuals
        active = iter(push.of.active)
        r.out_active = [recording.owns(o) and next(active) for o in made.outs]
        r.outs = list(map(materialise_at_ground, made.filled(made.outs, outs)))
        r.tree, r.aux = made.tree, made.aux_tree.unflatten(made.filled(made.aux, aux))
        return r


def _begun(primals: tuple, of: Callable[..., Any]) -> tuple[Linearized, list]:
    r = Linearized()
    leaves, r.in_tree = flatten(adables.opened(primals))
    xs = admitted_leaves(leaves, primals, lambda: names_of_arguments(of))
    r.avals, r.name, r.aux = [x.aval for x in xs], name_of(of), None
    return r, xs


def _finished(
    r: Linearized, made: _Recorded, otherwise: Callable[[], Levels], has_aux: bool
) -> Linearized:
    levels = otherwise()
    r.tree, r.aux = made.tree, made.aux_tree.unflatten(made.resumed(made.aux))
    return finished(r, levels, made.resumed(made.outs), has_aux)


def recorded_jvp(
    f: Callable[..., Any],
    xs: Sequence[Any],
    ts: Sequence[Any],
    tree: TreeDef,
    has_aux: bool,
    differentiate: Callable[..., Any],
) -> tuple[Any, ...]:
    """Return the results of `jvp` with these primals and tangents, from one compiled program if
    there is one.

    `tree` is that of the primals, `differentiate` is `jvp`.
    """
    j: JVP | None = None

    def opening() -> tuple[JVP, list]:
        nonlocal j
        j = JVP(GROUND, of=f)
        return j, [j.dual(x, t) for x, t in zip(xs, ts, strict=True) if x.aval.varies]

    def transformed(pair: Callable[..., Any], xs: list, ts: list) -> Any:
        values, dots, aux = differentiate(pair, xs, ts, has_aux=True)
        return values, [d for x, d in zip(values, dots) if x.aval.varies], aux

    recording = Recording(JVP, f, opening)
    try:
        made = _Recorded(recording, f, tree, xs, has_aux)
        moving = [i for i, x in enumerate(xs) if x.aval.varies]
        done = made.run([[xs[i] for i in moving], [ts[i] for i in moving]], None, transformed)
        if done is None:
            recording.resume()
            assert j is not None
            j.closed = True
            values, dots = pushed(j, made.resumed(made.outs))
            aux = without_tangents(j, made.aux_tree.unflatten(made.resumed(made.aux)))
        else:
            of_dots = iter(done[1])
            dots = [
                no_tangent(o.aval)
                if not o.aval.varies
                else next(of_dots)
                if recording.owns(o)
                else fill(0, o.aval.tangent_type)
                for o in made.outs
            ]
            values = list(map(materialise_at_ground, made.filled(made.outs, done[0])))
            aux = made.aux_tree.unflatten(made.filled(made.aux, done[2]))
        result = made.tree.unflatten(values), made.tree.unflatten(dots)
        return (*result, aux) if has_aux else result
    finally:
        recording.abandon()
        if j is not None:
            j.closed = True
