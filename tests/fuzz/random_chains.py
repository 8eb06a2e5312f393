"""Random chains: an expression whose result is an argument of the same expression, several times.

Deep networks and unrolled loops are such chains.  The compiler would compute a chain again for each
loop that reads a link, so links are written to memory, which must change no bit.  Each expression
is drawn by `random_expressions`; its arguments but the first differ from link to link, and a
function that moves elements reads each link.  In every second chain it is a jitted function.

Run as a script, `python -m tests.fuzz.random_chains`, it goes on for `--minutes` or `--count`
chains, from a seed that it prints, and says what differs.

Invariant: the truth is the same operations, one by one.
"""

import gc
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import plait
from plait import lax

from .array_operations import VECTOR
from .random_expressions import ENVIRONMENT, Expression, Maker, applied, array, differs
from .random_expressions import compiled as compiled_now
from .seeds import begin, seeds

LINKS = 6
READERS: tuple[Callable[[Any], Any], ...] = (
    lambda x: lax.rev(x, (0,)),
    lambda x: lax.reduce_max(x, (0,)),
    lambda x: x.reshape(4, -1).T,
)


def drawn(seed: int) -> tuple[Expression, int, list[Any], list[list[Any]]]:
    """Return the expression of a seed, the value of it that goes on, and its arguments.

    That is the last value with the dtype and the shape of the first argument; in most chains it is
    a sum or a product of other values, as links are that are written to memory.
    """
    wanted = ("add", "sub", "mul") if seed % 5 else None
    rng, numbers = random.Random(seed), np.random.RandomState(seed % 2**32)
    while True:
        maker = Maker(rng)
        e = maker.expression()
        count = len(e.arguments)
        if wanted and count < 2:
            continue
        links = [
            i
            for i, (node, of) in enumerate(zip(e.nodes, maker.types[count:], strict=True), count)
            if of == maker.types[0] and (not wanted or node.name in wanted)
        ]
        denormal = any(node.name == "nextafter" for node in e.nodes)
        if links and e.shape == VECTOR and not e.rounded and not denormal:
            break
    x, *_ = (array(numbers, d) for d in e.arguments)
    others = [[array(numbers, d) for d in e.arguments[1:]] for _ in range(LINKS)]
    return e, links[-1], x, others


def run(
    e: Expression, after: int, x: Any, others: list[list[Any]], reader: Any, each: Any
) -> list[Any]:
    """Return what is read of each link, and the last one; `each` makes the function of a link."""

    def link(*arguments: Any) -> Any:
        values = list(arguments)
        for node in e.nodes:
            values.append(applied(node, values))
        return values[after]

    found = []
    for ys in others:
        x = each(link)(x, *ys)
        found.append(reader(x))
    return [*found, x]


def difference(seed: int) -> str | None:
    """Return what differs between a compiled chain and its operations; None if nothing does."""
    e, after, x, others = drawn(seed)
    reader = READERS[seed // 2 % len(READERS)]
    made: dict[str, Any] = {}

    def jitted(link: Callable[..., Any]) -> Any:
        return made.setdefault("link", plait.jit(link))

    def plain(link: Callable[..., Any]) -> Any:
        return link

    each = jitted if seed % 2 else plain
    got = compiled_now(lambda x, others: run(e, after, x, others, reader, each), x, others)
    want = run(e, after, plait.numpy.asarray(x), others, reader, plain)
    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        found = differs(g, w)
        if found.any():
            text = f"{e.text()}\nv{after} goes on"
            return f"seed {seed}, link {k}: {found.sum()} elements\n{text}\n{g}\nis not\n{w}"
    return None


def main() -> int:
    """Run chains for some minutes, and return whether any differs."""
    given, status = begin(
        "tests.fuzz.random_chains", "run random chains for some minutes", ENVIRONMENT
    )
    if status is not None:
        return status
    warnings.simplefilter("ignore")
    wrong = count = 0
    for seed in seeds(given):
        count += 1
        found = difference(seed)
        if found is not None:
            wrong += 1
            print(found, flush=True)
        if count % 500 == 0:  # else the process would run out of mappings for their code
            plait.clear_caches()
            gc.collect()
    print(f"{count} chains: {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
