"""Random programs over rows: sums, means and extremes of rows among operations of elements.

The library of kernels computes such programs at once on CPUs, so they are made of operations that
it knows.  In every second one each operation is a function with several calls.  Rows hold nan,
infinities and zeros of both signs here and there.

Run as a script, `python -m tests.fuzz.random_rows`, it goes on for `--minutes` or `--count`
programs, from a seed that it prints, and says what differs.

That holds where the processor multiplies and adds in two roundings, as in `random_expressions`.

Invariant: the truth is the same operations, compiled one by one.
"""

import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import plait
from plait import lax
from plait import numpy as pnp

from .random_expressions import ENVIRONMENT
from .seeds import again, options, seeds

SHAPES = ((64, 96), (5, 1000), (4, 32, 48), (3, 4096), (4096, 3))
UNARY: dict[str, Callable[..., Any]] = {
    "neg": lambda x: -x,
    "abs": abs,
    "exp": lambda x: pnp.exp(-abs(x)),
    "exp of it": pnp.exp,
    "log": lambda x: pnp.log(abs(x) + 0.5),
    "sqrt": lambda x: pnp.sqrt(abs(x)),
    "rsqrt": lambda x: lax.rsqrt(abs(x) + 1e-5),
    "square": lambda x: x * x,
    "double": lambda x: x * 2,
    "third": lambda x: x / 3,
    "scaled": lambda x: x * 0.3,
    "shifted": lambda x: x - 0.25,
    "by 0": lambda x: x / 0,
    "times 0": lambda x: x * 0,
    "reciprocal": lambda x: 1 / (x * x + 0.5),
    "tanh": pnp.tanh,
    "at most 1": lambda x: pnp.minimum(x, 1),
    "positive": lambda x: pnp.where(x > 0, x, 0),
    "masked": lambda x: pnp.where(pnp.arange(x.shape[-1]) % 3 != 1, x, -1e9),
    "masked by an infinity": lambda x: pnp.where(pnp.arange(x.shape[-1]) % 3 != 1, x, -np.inf),
    "all masked": lambda x: pnp.where(pnp.arange(x.shape[-1]) < 0, x, 3e38),
}
BINARY: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / (abs(y) + 0.5),
    "max": pnp.maximum,
}
REDUCED: dict[str, Callable[..., Any]] = {
    "sum": lambda x: x.sum(-1, keepdims=True),
    "mean": lambda x: x.mean(-1, keepdims=True),
    "greatest": lambda x: x.max(-1, keepdims=True),
    "least": lambda x: x.min(-1, keepdims=True),
    "all": lambda x: x.max(keepdims=True),
    "first axis": lambda x: x.sum(0, keepdims=True),
}
IDIOMS: dict[str, Callable[..., Any]] = {
    "softmax": plait.nn.softmax,
    "log_softmax": plait.nn.log_softmax,
    "logsumexp": lambda x: plait.nn.logsumexp(x, -1, keepdims=True),
    "standardize": plait.nn.standardize,
    "stable": lambda x: pnp.exp(x - x.max(-1, keepdims=True)),
    "stable sum": lambda x: pnp.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True),
    "stable mean": lambda x: (pnp.exp(x - x.max(-1, keepdims=True)) * 2).mean(-1, keepdims=True),
    "from the first": lambda x: pnp.exp(x - x.max(keepdims=True)).sum(-1, keepdims=True),
    "across": lambda x: pnp.exp(x - x.max(-1, keepdims=True)).sum(0, keepdims=True),
}
KINDS = (UNARY, BINARY, REDUCED, IDIOMS)


class Step(NamedTuple):
    """An operation on earlier values, by their numbers."""

    name: str
    function: Callable[..., Any]
    operands: tuple[int, ...]


class Program(NamedTuple):
    """Operations on an array, and the numbers of the values that are results."""

    x: np.ndarray
    steps: list[Step]
    results: list[int]

    def run(self, each: Callable[[Callable[..., Any]], Callable[..., Any]]) -> list[Any]:
        """Return the results; `each` makes the function that is called from an operation's."""
        values: list[Any] = [self.x]
        for s in self.steps:
            values.append(each(s.function)(*[values[i] for i in s.operands]))
        return [values[i] for i in self.results]

    def __str__(self) -> str:
        lines = [f"v{i + 1} = {s.name}{s.operands}" for i, s in enumerate(self.steps)]
        return "\n".join([f"v0: {self.x.shape}", *lines, f"results {self.results}"])


def drawn(seed: int, hostile: bool) -> Program:
    """Return the program of a seed; a hostile one has special numbers in its array."""
    r = np.random.default_rng(seed)
    shape = SHAPES[r.integers(len(SHAPES))]
    x = r.standard_normal(shape).astype(np.float32)
    if hostile:
        odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, 1e-38], np.float32)
        some = odd[r.permutation(len(odd))[: r.integers(1, 4)]]
        x = np.where(r.random(shape) < r.choice([3e-4, 0.05]), r.choice(some, shape), x)
    steps: list[Step] = []
    for _ in range(r.integers(3, 9)):
        kind = KINDS[r.choice(4, p=[0.35, 0.35, 0.1, 0.2])]
        name = list(kind)[r.integers(len(kind))]
        count = 2 if kind is BINARY else 1
        n = len(steps) + 1
        near = [int(max(0, n - 1 - r.geometric(0.5) + 1)) for _ in range(count)]
        steps.append(Step(name, kind[name], tuple(near)))
    n = len(steps)
    return Program(x, steps, sorted({n, int(r.integers(1, n + 1))}))


def together(program: Program, by_functions: bool = False) -> list[np.ndarray]:
    """Return the results of one compiled program.

    With `by_functions` each operation is a function that is called again, in the same program for
    another array.
    """
    made: dict[Any, Any] = {}

    def each(f: Callable[..., Any]) -> Callable[..., Any]:
        return made.setdefault(f, plait.jit(f)) if by_functions else f

    def both(*xs: Any) -> list[Any]:
        return [program._replace(x=x).run(each) for x in xs]

    others = [np.ones_like(program.x)] if by_functions else []
    with plait.config(cache_dir=None):
        found = plait.jit(both, tier="full")(program.x, *others)[0]
    return [np.asarray(y) for y in found]


def one_by_one(program: Program) -> list[np.ndarray]:
    """Return the results of the operations, each compiled alone."""
    return [np.asarray(y) for y in program.run(lambda f: plait.jit(f, tier="full"))]


def difference(seed: int, hostile: bool) -> str | None:
    """Return what differs between a program and its operations; None if nothing does.

    Elements that are nan must be nan in both.  Of tame arrays, numbers must be close, relative to
    the greatest of each result: sums of rows may have other orders.
    """
    program = drawn(seed, hostile)
    for got, want in zip(together(program, seed % 2 == 1), one_by_one(program), strict=True):
        nan = np.isnan(got) != np.isnan(want)
        if nan.any():
            at = tuple(int(i[0]) for i in np.nonzero(nan))
            return f"{seed}, {hostile}\n{program}\nat {at}: {got[at]}, not {want[at]}"
        if not hostile:
            finite = np.isfinite(want)
            scale = np.abs(np.where(finite, want, 0)).max()
            far = np.abs(np.where(finite, got - want, 0)).max()
            if not (np.isfinite(got) == finite).all() or far > 1e-3 * scale:
                return f"{seed}, {hostile}\n{program}\nby {far} of {scale}"
    return None


def main() -> int:
    """Run programs for some minutes, and return whether any differs."""
    given = options("run random programs over rows for some minutes").parse_args()
    status = again("tests.fuzz.random_rows", ENVIRONMENT)
    if status is not None:
        return status
    warnings.simplefilter("ignore")
    wrong = count = 0
    for seed in seeds(given):
        for hostile in (True, False):
            count += 1
            found = difference(seed, hostile)
            if found is not None:
                wrong += 1
                print(found, flush=True)
    print(f"{count} programs: {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
