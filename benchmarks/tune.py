"""Measure on this machine the numbers on which the forms of operations for CPUs depend.

    python benchmarks/tune.py [--only reduction,attention] [--rounds 15]

Each limit (`plait.ext.rules.cpu_limit`) is tried with several numbers, on programs whose form
depends on it.  Programs of different numbers are compiled once if they have the same text, and run
by turns.  A number replaces the default if the geometric mean of the programs' least times is at
least `WORTH` better.  Below the table is the setting `cpu_limits` with what was found; in the
environment it is `PLAIT_CPU_LIMITS`.

Invariant: only times of one interleaved run are compared.
"""

import argparse
import math
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

import plait
import plait.numpy as pnp
from plait import lax

WORTH = 0.04
"""The gain from which a number replaces the default; less is noise."""
TURN = 0.004
"""Seconds that a program runs for in each turn, at least."""

Program = tuple[Callable, tuple[Any, ...]]


class Probe(NamedTuple):
    """Numbers to try for a limit beside its default, and named programs whose form depends on
    it."""

    numbers: tuple[int, ...]
    programs: dict[str, Program]


def drawn(*shape: int) -> Any:
    """Return an array of normal numbers in single precision."""
    return plait.device_put(np.random.default_rng(0).normal(size=shape).astype(np.float32))


def stacks(n: int) -> Program:
    """Return products of transposed matrices, of about a million numbers in all."""
    x = drawn(max(1, (1 << 20) // (n * n)), n, n)
    return lambda x, y: lax.dot_general(x, y, (((1,), (2,)), ((0,), (0,)))), (x, x + 1)


def narrow(rows: int, columns: int) -> Program:
    """Return products of transposed square matrices and matrices of fewer columns."""
    count = max(1, (1 << 22) // rows**2)
    arguments = drawn(count, rows, rows), drawn(count, rows, columns)
    return lambda x, y: lax.dot_general(x, y, (((1,), (1,)), ((0,), (0,)))), arguments


def small_integers(n: int) -> Program:
    """Return the product of two matrices of integers of 16 bits."""
    x = (drawn(n, n) * 100).astype("int16")
    return lambda x, y: x @ y, (x, x + 1)


def convolution(x: tuple[int, ...], kernel: tuple[int, ...], groups: int = 1) -> Program:
    """Return a convolution of images with channels last."""
    how = {"dimension_numbers": ("NHWC", "HWIO", "NHWC"), "feature_group_count": groups}
    arguments = drawn(*x), drawn(*kernel)
    return lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", **how), arguments


def by_kernel(program: Program) -> Program:
    """Return the derivative of a convolution by its kernel."""
    function, (x, kernel) = program
    return lambda x, k: plait.grad(lambda k: (function(x, k) ** 2).sum())(k), (x, kernel)


def depthwise(window: int) -> Program:
    """Return a convolution with a kernel for each feature alone."""
    return convolution((4, 32, 32, 64), (window, window, 1, 64), 64)


def grouped(groups: int) -> Program:
    """Return a convolution of groups of features."""
    return convolution((4, 32, 32, 64), (3, 3, 64 // groups, 64), groups)


def of_examples(features: int) -> Program:
    """Return the derivatives by a kernel of each example apart."""
    function, (x, kernel) = convolution((1, 16, 16, 8), (3, 3, 8, features))
    loss = plait.grad(lambda k, x: (function(x, k) ** 2).sum())
    return plait.vmap(loss, (None, 0)), (kernel, drawn(16, 1, 16, 16, 8))


def sums(length: int, row: int = 256) -> Program:
    """Return sums of `length` rows, between other operations."""
    x = drawn((1 << 20) // (length * row), length, row)
    return lambda x: pnp.tanh(x).sum(1) * 2, (x,)


def greatest(n: int, k: int) -> Program:
    """Return the `k` greatest of rows of `n` elements."""
    return lambda x: lax.top_k(x, k), (drawn((1 << 19) // n, n),)


def rows(count: int, n: int) -> Program:
    """Return sorted rows of `n` elements."""
    return lambda x: pnp.sort(x, -1), (drawn(count, n),)


def attention(n: int, causal: bool = False) -> Program:
    """Return attention of `n` queries and 8 heads."""
    x = drawn(max(1, 2048 // n), n, 8, 64)
    return lambda q: plait.nn.dot_product_attention(q, q + 1, q * 2, is_causal=causal), (x,)


def its_gradient(program: Program) -> Program:
    """Return the gradient of the sum of squares of a program's result."""
    function, arguments = program
    return plait.grad(lambda x: (function(x) ** 2).sum()), arguments


def named(make: Callable[..., Program], *sizes: Any) -> dict[str, Program]:
    """Return programs of several sizes, each with its size as its name."""
    return {f"{s}": make(*s) if isinstance(s, tuple) else make(s) for s in sizes}


def probes() -> dict[str, Callable[[], Probe]]:
    """Return what makes the probe of each limit."""
    return {
        "contraction.smallest_stacked": lambda: Probe(
            (4, 8, 16, 32, 64, 10**6), named(stacks, 4, 8, 16, 32, 64, 128)),
        "contraction.wider": lambda: Probe(
            (1, 2, 4, 8, 16, 10**6), named(narrow, (256, 128), (256, 64), (256, 32), (1024, 64))),
        "contraction.fewest_integers": lambda: Probe(
            tuple([1 << n for n in range(6, 21, 2)]), named(small_integers, 4, 8, 16, 32, 64, 128)),
        "convolution.most_terms": lambda: Probe(
            (8, 9, 25, 49, 64, 81, 121, 169), named(depthwise, 3, 5, 7, 9, 11, 13)),
        "convolution.most_sums": lambda: Probe(
            (8, 9, 25, 49), {str(n): by_kernel(depthwise(n)) for n in (3, 5, 7)}),
        "convolution.smallest_result": lambda: Probe(
            (8, 16, 48, 96, 192), named(of_examples, 2, 4, 8, 16)),
        "convolution.most_groups": lambda: Probe(
            (1, 2, 4, 8, 16, 32), named(grouped, 2, 4, 8, 16, 32)),
        "reduction.longest": lambda: Probe(
            (1, 2, 4, 8, 16, 32), named(sums, 2, 4, 8, 16, 32)),
        "reduction.shortest_row": lambda: Probe(
            (2, 4, 8, 16, 32), named(sums, (4, 2), (4, 4), (4, 8), (4, 16))),
        "top_k.block": lambda: Probe(
            (8, 16, 32, 64, 128), named(greatest, (4096, 4), (8192, 16), (65536, 16))),
        "top_k.fewest": lambda: Probe(
            (256, 512, 1024, 2048, 4096), named(
                greatest, (256, 2), (512, 4), (1024, 4), (2048, 4))),
        "top_k.least_left_out": lambda: Probe(
            (2, 4, 8, 16), named(greatest, (4096, 16), (4096, 32), (4096, 64), (4096, 128))),
        "sort.fewest": lambda: Probe(
            tuple([1 << n for n in range(8, 18, 2)]),
            named(rows, (1, 512), (1, 2048), (16, 512), (1, 1 << 15))),
        "attention.tile": lambda: Probe(
            (32, 64, 128, 256, 512), of_attention(256, 1024, 2048)),
        "attention.smallest_tile": lambda: Probe(
            (32, 64, 128, 256), of_attention(256, 512, causal=True)),
        "attention.loops": lambda: Probe(
            (1, 2, 4, 8), of_attention(512, 1024, causal=True)),
        "attention.at_once": lambda: Probe(
            tuple([1 << n for n in range(16, 24, 2)]), of_attention(128, 512)),
        "attention.few_turns": lambda: Probe(
            (1, 2, 4, 8, 16), of_attention(256, 512, 1024, causal=True)),
        "attention.fewest": lambda: Probe(
            (1 << 10, 1 << 12, 1 << 14, 1 << 16), of_attention(32, 64, 128, 256)),
    }  # fmt: skip


def of_attention(*sizes: int, causal: bool = False) -> dict[str, Program]:
    """Return attention of several numbers of queries, and its gradients."""
    made = {str(n): attention(n, causal=causal) for n in sizes}
    return made | {f"gradient of {n}": its_gradient(p) for n, p in made.items()}


def least_times(name: str, program: Program, numbers: Iterable[int | None], rounds: int) -> list:
    """Return the least seconds of a program for each number of a limit; None is its default.

    Numbers that give the program one text share its time.
    """
    function, arguments = program
    texts, compiled = [], {}
    for number in numbers:
        with plait.config(cpu_limits={} if number is None else {name: number}):
            lowered = plait.jit(lambda *xs: function(*xs)).lower(*arguments)
            texts.append(lowered.as_text())
            if texts[-1] not in compiled:
                compiled[texts[-1]] = lowered.compile()
    if len(compiled) == 1:
        return [1.0] * len(texts)
    turns = {text: repetitions(run, arguments) for text, run in compiled.items()}
    found = dict.fromkeys(compiled, math.inf)
    for _ in range(rounds):
        for text, run in compiled.items():
            found[text] = min(found[text], seconds(run, arguments, turns[text]))
    return [found[text] for text in texts]


def repetitions(run: Callable, arguments: tuple) -> int:
    """Return how many calls fill a turn."""
    seconds(run, arguments, 1)
    return max(1, math.ceil(TURN / seconds(run, arguments, 1)))


def seconds(run: Callable, arguments: tuple, count: int) -> float:
    """Return the mean time of `count` calls, in seconds."""
    start = time.perf_counter()
    result = run(*arguments)
    for _ in range(count - 1):
        result = run(*arguments)
    plait.block_until_ready(result)
    return (time.perf_counter() - start) / count


def ratios_of(name: str, probe: Probe, rounds: int) -> dict[int | None, list[float]]:
    """Return the times of the programs for each number of a limit, in terms of the default's."""
    numbers = None, *probe.numbers
    ratios: dict[int | None, list[float]] = {n: [] for n in numbers}
    for program in probe.programs.values():
        times = least_times(name, program, numbers, rounds)
        for number, spent in zip(numbers, times, strict=True):
            ratios[number].append(spent / times[0])
    return ratios


def best_of(ratios: dict[int | None, list[float]]) -> int | None:
    """Return the number with the least times; None if the default is about as good."""
    best = min(ratios, key=lambda n: mean(ratios[n]))
    return best if mean(ratios[best]) <= 1 - WORTH else None


def mean(ratios: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main() -> None:
    """Measure the limits that the command line names, and print a table and the setting."""
    parser = argparse.ArgumentParser(description="Measure limits of forms for CPUs.")
    parser.add_argument("--only", default="", help="the first letters of limits, by commas")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each program")
    arguments = parser.parse_args()
    setting = {}
    print("| limit | best | time of each number / the default's | of the best, by program |")
    print("|---|---|---|---|")
    for name, make in probes().items():
        if not name.startswith(tuple(arguments.only.split(","))):
            continue
        probe = make()
        ratios = ratios_of(name, probe, arguments.rounds)
        best = best_of(ratios)
        tried = ", ".join(f"{n}: {mean(ratios[n]):.2f}" for n in probe.numbers)
        each = ", ".join(f"{p}: {r:.2f}" for p, r in zip(probe.programs, ratios[best], strict=True))
        print(f"| {name} | {best or 'default'} | {tried} | {each} |", flush=True)
        if best is not None:
            setting[name] = best
    print("\nPLAIT_CPU_LIMITS=" + ",".join([f"{name}={n}" for name, n in setting.items()]))


if __name__ == "__main__":
    main()
