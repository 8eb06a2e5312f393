"""Every nesting of two operations over, around and under a transformation.

    python -m tests.carriers.nestings sparsity    # all of them, for one transformation

A way is an operation with programs, as a function from functions of a vector to such functions, and
the same in plain Python.

Invariant: a transformation of the nested function has to give what it gives for the plain one.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import plait
import plait.numpy as pnp
from plait import P, Pile, lax, pile_axis

from .strangers import REFUSED, TRANSFORMATIONS, Names

X = np.float32([0.1, 0.4, 0.3, 0.2])
Function = Callable[[Any], Any]


class Way(NamedTuple):
    """An operation around a function of a vector, and the same in plain Python."""

    staged: Callable[[Function], Function]
    plain: Callable[[Function], Function]


class Case(NamedTuple):
    """One nesting: a function, and the one that it is compared with."""

    name: str
    inside: set[str]
    nested: Callable[[], Any]
    plain: Callable[[], Any]


def alone(f: Function) -> Function:
    return f


def twice(f: Function) -> Function:
    return lambda x: f(f(x))


def pieces(*sizes: int) -> Callable[[Function], Function]:
    """`f` of pieces of a vector, joined; of the whole, if it is a piece already."""

    def cut(f):
        def of(x):
            if x.shape[0] != len(X):
                return f(x)
            ends = np.cumsum(sizes)
            return pnp.concatenate([f(x[b - n : b]) for b, n in zip(ends, sizes)])

        return of

    return cut


def gradient(f: Function) -> Function:
    return lambda x: plait.grad(lambda y: (f(y) * 0.5).sum())(x)


def turning(f: Function) -> Function:
    turn = lambda s: (s[0] + 1, f(s[1]))  # noqa: E731
    return lambda x: lax.while_loop(lambda s: s[0] < 2, turn, (0, x))[1]


def choosing(f: Function) -> Function:
    return lambda x: lax.cond(pnp.array(True), f, lambda y: f(1.0 * y), x)


def divided(f: Function) -> Function:
    mesh = plait.make_mesh((4,), ("d",))
    return lambda x: plait.shard_map(f, mesh=mesh, in_specs=P("d"), out_specs=P("d"))(x)


def examples(f: Function) -> Function:
    def of(x):
        n = x.shape[0]
        lengths = np.array([3, 1] if n == len(X) else [1])
        return plait.vmap(f, pile_axis, pile_axis)(Pile(x, lengths)).data[:n]

    return of


def from_file(f: Function) -> Function:
    def of(x):
        file = plait.export.export(plait.jit(f))(x).serialize()
        return plait.export.deserialize(file).call(x)

    return of


WAYS = {
    "jit": Way(lambda f: plait.jit(f), alone),
    "vmap": Way(lambda f: lambda x: plait.vmap(f)(x[None])[0], alone),
    "grad": Way(gradient, gradient),
    "scan": Way(lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 2)[0], twice),
    "rows": Way(lambda f: lambda x: lax.scan(lambda c, r: (c, f(r)), 0.0, x[None])[1][0], alone),
    "while": Way(turning, twice),
    "cond": Way(choosing, alone),
    "checkpoint": Way(lambda f: plait.checkpoint(f), alone),
    "shard_map": Way(divided, pieces(1, 1, 1, 1)),
    "pile": Way(examples, pieces(3, 1)),
    "export": Way(from_file, alone),
}
CUT = ("shard_map", "pile")
COUNTS = {"over grad checkpoint": 40, "over grad shard_map": 36, "over grad pile": 36}
"""Numbers of operations that differ from the plain function's: the gradient itself has 9 for each
of 4 elements, checkpoint computes tanh again, and plain pieces add what their gradients pad."""


def possible(outer: str, inner: str) -> bool:
    """Return whether these operations nest: not a division of what is divided, reverse mode
    through a loop of unknown length, or an artifact below other operations."""
    ends = (outer, inner) == ("grad", "while") or inner == "export"
    return not ends and not (outer in CUT and inner in CUT)


def vector(g: Function) -> Function:
    """A function of a vector that returns one, whose result depends on all results of `g`."""

    def of(x):
        out, weight = x * 0.1, 0.3
        for leaf in plait.tree.leaves(g(x)):
            out, weight = out + weight * pnp.asarray(leaf).astype(pnp.float32).mean(), weight * 0.7
        return out

    return of


def nestings(transform: Callable[[Function], Function], f: Function) -> Iterator[Case]:
    """Yield each nesting of two operations with the transformation."""
    for outer, a in WAYS.items():
        for inner, b in WAYS.items():
            if not possible(outer, inner):
                continue
            if outer != "export":
                yield Case(
                    f"over {outer} {inner}",
                    {outer, inner},
                    lambda a=a, b=b: transform(a.staged(b.staged(f)))(X),
                    lambda a=a, b=b: transform(a.plain(b.plain(f)))(X),
                )
            yield Case(
                f"around {outer} {inner}",
                {inner},
                lambda a=a, b=b: a.staged(vector(transform(b.staged(f))))(X),
                lambda a=a, b=b: a.plain(vector(transform(b.plain(f))))(X),
            )
            yield Case(
                f"under {outer} {inner}",
                set(),
                lambda a=a, b=b: a.staged(b.staged(vector(transform(f))))(X),
                lambda a=a, b=b: a.plain(b.plain(vector(transform(f))))(X),
            )


def compare(name: str, case: Case) -> bool:
    """Return whether a transformation of the nested function gives what it gives for the plain one.

    Raises AssertionError if it gives something else, and PlaitError if it is refused, unless an
    operation inside may be."""
    refused = REFUSED.get(name, ())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", plait.errors.RuleLost)
            want = plait.tree.leaves(plainly(case.plain))
            got = plait.tree.leaves(case.nested())
    except plait.PlaitError as e:
        if case.inside.isdisjoint(refused) or not e.fix:
            raise
        return False
    if name == "flops":
        want[-1] = COUNTS.get(case.name, want[-1])
    assert len(want) == len(got)
    for x, y in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=5e-4, atol=2e-4)
    return True


def plainly(g: Callable[[], Any]) -> Any:
    """Call a plain function, which gives each value that it names another name."""
    Names.plain = True
    try:
        return g()
    finally:
        Names.plain = False


def main(*names: str) -> int:
    """Compare every nesting of some transformations, and print what is wrong; return how many."""
    failed = 0
    for name in names or TRANSFORMATIONS:
        cases, right, wrong = [*nestings(*TRANSFORMATIONS[name])], 0, []
        for case in cases:
            try:
                right += compare(name, case)
            except Exception as e:
                wrong.append(f"  {case.name}: {type(e).__name__} {e}"[:300])
        failed += len(wrong)
        told = f"{right} right, {len(cases) - right - len(wrong)} refused, {len(wrong)} wrong"
        print(f"{name}: {told} of {len(cases)}", *wrong, sep="\n", flush=True)
    return failed


if __name__ == "__main__":
    plait.config.cpu_devices = 8
    sys.exit(main(*sys.argv[1:]) > 0)
